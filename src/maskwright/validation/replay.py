"""The check "replay": is every next token of real texts allowed?

In: a text. Out: it was replayed, it is outside the grammar, or a refusal is false.

Two parsers that share no code with the engine judge a refusal:

- The grammar's own parse (`grammar_parse`) decides. If it accepts the text, or gets past the byte
  that the engine refuses, the refusal is false: the engine refused what the grammar allows. If it
  stops there too, the text is outside the grammar. The reference parser then tells why: it is no
  text of the language, or the grammar is narrower than the language.
- If the grammar's own parse is undecided, the reference parser decides. A text that it refuses is
  outside; any other refusal counts as false.

A token that the mask refuses, although the engine reads its bytes, is refused falsely whatever the
parsers say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError, VocabularyError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.validation.grammar_parse import GrammarParse
from maskwright.validation.references import Reference, make_reference
from maskwright.validation.work import Outcome, Tools

REPLAYED = "replayed"
OUTSIDE_TEXT = "outside: not a text of the language"
OUTSIDE_GRAMMAR = "outside: the grammar lacks it"
OUTSIDE = "outside the grammar"
FALSE_REFUSAL = "false refusal"
NOT_SPELLED = "not spelled by the vocabulary"
OVER_LIMIT = "over a limit of the engine"
ENDED_EARLY = "ended early: the grammar refuses what comes"
"""A class of other checks, which follow a text only as far as the grammar allows it."""

NOT_COMPLETE = "the text is not complete: its end is not allowed here"

BEFORE = 60
"""Most characters of the text before a refusal that are shown."""


class Stop(NamedTuple):
    """Where the engine refuses a text.

    n_tokens : number of tokens that it has read before.
    token : the refused token; None for the end of the text.
    why : the reason, in words.
    """

    n_tokens: int
    token: int | None
    why: str


def replay(matcher: Any, tokens: list[int]) -> int:
    """Read tokens as long as the masks allow them; returns how many were read.

    PERF: `Matcher.replay` is one compiled call. If it ends in an error, `plain_replay` counts once
    more.

    matcher : advanced to the first token that is refused. It is not advanced if the vocabulary
        lacks one of the ids.
    tokens : the token ids to read.
    """
    before = matcher.fork()
    try:
        return int(matcher.replay(tokens))
    except (DeadEndError, IllegalTokenError):
        return plain_replay(before, tokens)


def plain_replay(matcher: Any, tokens: list[int]) -> int:
    """The same as `replay`, from its definition: fill a mask, look up the token, advance.

    Unlike `Matcher.replay`, it counts the tokens before a dead end or an id out of range.
    """
    words = np.zeros(matcher.store.n_words, np.uint32)
    size = matcher.store.vocabulary.size
    for taken, token in enumerate(tokens):
        try:
            matcher.fill(words)
            if not 0 <= token < size or not (int(words[token >> 5]) >> (token & 31)) & 1:
                return taken
            matcher.advance(token)
        except (DeadEndError, IllegalTokenError):
            return taken
    return len(tokens)


def find_stop(matcher: Any, tokens: list[int]) -> Stop | None:
    """Where the engine refuses a text; None if each mask allows the next token, or the end.

    matcher : reset first, then advanced to where the text is refused.
    tokens : the token ids of the whole text.

    Raises: LimitError for a text with too many readings.
    """
    matcher.reset()
    taken = replay(matcher, tokens)
    if taken < len(tokens):
        return Stop(taken, tokens[taken], why_refused(matcher, tokens[taken]))
    ends = matcher.store.vocabulary.eos
    words = np.zeros(matcher.store.n_words, np.uint32)
    try:
        matcher.fill(words)
    except DeadEndError as error:
        return Stop(taken, None, str(error))
    if not matcher.is_accepting():
        return Stop(taken, None, NOT_COMPLETE)
    for end in ends:
        if not (int(words[end >> 5]) >> (end & 31)) & 1:
            return Stop(taken, None, f"the mask refuses end-of-text token {end} though the text is legal as it stands")
    return None


def why_refused(matcher: Any, token: int) -> str:
    """Why the mask refuses a token where the matcher stands, in words."""
    try:
        if matcher.is_allowed(token):
            return f"the mask refuses token {token}, which may come next"
        return str(matcher.explain(token).summary)
    except (IllegalTokenError, DeadEndError) as error:
        return str(error)


def good_bytes(matcher: Any, token: bytes) -> int:
    """Number of the token's bytes that may come where the matcher stands.

    If a refused token gives all of its bytes, the mask is wrong.
    """
    return int(matcher.fork().text.read_longest(token))


def of_last_line_feed(matcher: Any, text: str) -> list[str]:
    """A hint, if a refused text would be legal without the line feed at its end; else [].

    matcher : reset, and advanced.
    """
    if not text.endswith("\n"):
        return []
    matcher.reset()
    try:
        matcher.advance_bytes(text[:-1].encode())
    except (IllegalTokenError, LimitError):
        return []
    said = "the text ends with a line feed that the grammar does not have; without it, the text is legal"
    return [said] if matcher.is_accepting() else []


def facts_of_stop(text: str, tokens: Sequence[int], stop: Stop, vocabulary: Vocabulary, good: int) -> Outcome:
    """The members of an outcome that say where and why a text is refused.

    text : the text.
    tokens : its token ids.
    stop : where the engine refuses it.
    vocabulary : of the tokens.
    good : number of the refused token's bytes that may come, see `good_bytes`.
    """
    spelled = b"" if stop.token is None else vocabulary.tokens[stop.token]
    begin = sum(len(vocabulary.tokens[token]) for token in tokens[: stop.n_tokens])
    return facts_of_place(text, begin, begin + good % max(1, len(spelled)), stop.token, vocabulary) | {"why": stop.why}


def facts_of_place(text: str, begin: int, offset: int, token: int | None, vocabulary: Vocabulary) -> Outcome:
    """The members of an outcome that say where something is wrong.

    text : the text.
    begin : offset of the token, in bytes.
    offset : offset of what is wrong, in bytes; in the token.
    token : the token's id; None for the end of the text.
    vocabulary : of the token.
    """
    line, column = place_of(text, offset)
    return {
        "line": line,
        "column": column,
        "byte": offset,
        "before": text.encode()[:begin].decode("utf-8", "replace")[-BEFORE:],
        "token": None if token is None else [token, vocabulary.tokens[token].decode("utf-8", "backslashreplace")],
    }


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a byte offset, from 1. Columns count characters.

    >>> place_of("ä\\nbc", 4)
    (2, 2)
    """
    before = text.encode()[:offset].decode("utf-8", "ignore")
    line = before.count("\n")
    return line + 1, len(before) - (before.rfind("\n") + 1) + 1


class SecondOpinion:
    """Judges texts that the engine refuses, with the grammar's own parse and a reference parser.

    grammar : a grammar of lexing "longest" or "contextual".
    reference : the reference parser, or None.
    """

    def __init__(self, grammar: Grammar, reference: Reference | None) -> None:
        self.reference = reference
        self.parse = GrammarParse(grammar)

    def judge(self, text: str, offset: int) -> tuple[str, list[str]]:
        """The class of a refusal, and what each parser said.

        text : the refused text.
        offset : byte offset at which the engine refuses it.

        Returns: FALSE_REFUSAL, OUTSIDE_TEXT, OUTSIDE_GRAMMAR or OUTSIDE; sentences.
        """
        said = []
        stops: Literal["here", "later", "unknown"] = "unknown"
        try:
            refused = self.parse.refusal(text)
        except MaskwrightError as error:
            said.append(f"the grammar's own parse is undecided: {error}")
        else:
            if refused is None:
                stops = "later"
                said.append("the grammar's own parse takes the text")
            else:
                begin = len(text[: refused.begin].encode())
                stops = "later" if offset < begin else "here"
                line, column = place_of(text, begin)
                said.append(f"the grammar's own parse refuses it at {line}:{column}: {refused.why}")
        answer = None
        if self.reference is not None:
            verdict = self.reference.judge(text)
            answer = verdict.answer
            said.append(f"{self.reference.name}: {verdict.answer}{': ' * bool(verdict.message)}{verdict.message}")
        if stops == "later" or (stops == "unknown" and answer != "refused"):
            return FALSE_REFUSAL, said
        if answer == "refused":
            return OUTSIDE_TEXT, said
        return (OUTSIDE_GRAMMAR if answer == "accepted" else OUTSIDE), said


@dataclass(frozen=True)
class Replay:
    """The check "replay". A unit of work is a text.

    reference : the reference parser, as for `make_reference`.
    reference_seconds : time that it has for a text, in seconds.
    """

    reference: str = "none"
    reference_seconds: float = 10.0
    name: str = "replay"

    def start(self, tools: Tools) -> Callable[[Any], Outcome]:
        """The function that does this check for one text, see `Check.start`."""
        store, encoder = tools.store, tools.encoder
        assert encoder is not None
        matcher = store.matcher(0)
        opinion: list[SecondOpinion] = []

        def run(text: str) -> Outcome:
            try:
                spelling = encoder.exact_tokens(text)
            except VocabularyError as error:
                return {"class": NOT_SPELLED, "why": str(error), "tokens": 0}
            facts: Outcome = {"class": REPLAYED, "tokens": len(spelling.tokens)}
            if spelling.respelled:
                facts["respelled_bytes"] = spelling.respelled
            try:
                stop = find_stop(matcher, spelling.tokens)
                if stop is None:
                    return facts
                token = b"" if stop.token is None else store.vocabulary.tokens[stop.token]
                good = good_bytes(matcher, token)
                hint = of_last_line_feed(matcher, text)
            except LimitError as error:
                return {**facts, "class": OVER_LIMIT, "why": str(error)}
            if not opinion:
                opinion.append(SecondOpinion(store.grammar, make_reference(self.reference, self.reference_seconds)))
            where = facts_of_stop(text, spelling.tokens, stop, store.vocabulary, good)
            kind, said = opinion[0].judge(text, where["byte"])
            if token and good == len(token):
                kind, said = FALSE_REFUSAL, [*said, "the engine itself takes the token's bytes, one by one"]
            return {**facts, "class": kind, "tokens": stop.n_tokens, **where, "said": [*hint, *said]}

        return run
