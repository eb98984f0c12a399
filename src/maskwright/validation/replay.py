"""Reads texts under the masks. In: a matcher, tokens. Out: where and why a text is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.validation.work import Outcome

ENDED_EARLY = "ended early: the grammar refuses what comes"
"""A class of checks that follow a text only as far as the grammar allows it."""

NOT_COMPLETE = "the text is not complete: its end is not allowed here"

BEFORE = 60
"""Most characters of the text before a refusal that are shown."""


class Stop(NamedTuple):
    """Where the engine refuses a text.

    n_tokens : number of tokens that it has read before.
    token : the refused token; None for the end of the text.
    why : the reason, in words.
    good : number of the refused token's bytes that may come. If all may, the mask is wrong.
    """

    n_tokens: int
    token: int | None
    why: str
    good: int = 0


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
        return stop_at(matcher, taken, tokens[taken])
    words = np.zeros(matcher.store.n_words, np.uint32)
    try:
        matcher.fill(words)
    except DeadEndError as error:
        return Stop(taken, None, str(error))
    if not matcher.is_accepting():
        return Stop(taken, None, NOT_COMPLETE)
    for end in matcher.store.vocabulary.eos:
        if not (int(words[end >> 5]) >> (end & 31)) & 1:
            return Stop(taken, None, f"the mask refuses end-of-text token {end} though the text is legal as it stands")
    return None


def stop_at(matcher: Any, n_tokens: int, token: int) -> Stop:
    """The refusal of a token where the matcher stands, after so many others."""
    why = f"the mask refuses token {token}, which may come next"
    try:
        if not matcher.is_allowed(token):
            why = str(matcher.explain(token).summary)
    except (IllegalTokenError, DeadEndError) as error:
        why = str(error)
    return Stop(n_tokens, token, why, int(matcher.fork().text.read_longest(matcher.store.vocabulary.tokens[token])))


def is_text(matcher: Any, text: str) -> bool:
    """Whether a text is legal as a whole, whatever its tokens. matcher : reset, and advanced."""
    matcher.reset()
    try:
        matcher.advance_bytes(text.encode())
        return bool(matcher.is_accepting())
    except (MaskwrightError, UnicodeEncodeError):
        return False


def of_last_line_feed(matcher: Any, text: str) -> list[str]:
    """A hint, if a refused text would be legal without the line feed at its end; else []."""
    said = "the text ends with a line feed that the grammar does not have; without it, the text is legal"
    return [said] if text.endswith("\n") and is_text(matcher, text[:-1]) else []


def facts_of_stop(text: str, tokens: Sequence[int], stop: Stop, vocabulary: Vocabulary) -> Outcome:
    """The members of an outcome that say where and why a text is refused.

    tokens : of the text.
    stop : where the engine refuses it.
    """
    spelled = b"" if stop.token is None else vocabulary.tokens[stop.token]
    begin = sum(len(vocabulary.tokens[token]) for token in tokens[: stop.n_tokens])
    offset = begin + stop.good % max(1, len(spelled))
    return facts_of_place(text, begin, offset, stop.token, vocabulary) | {"why": stop.why}


def facts_of_place(text: str, begin: int, offset: int, token: int | None, vocabulary: Vocabulary) -> Outcome:
    """The members of an outcome that say where something is wrong.

    begin : offset of the token, in bytes.
    offset : offset of what is wrong, in bytes; in the token.
    token : the token's id; None for the end of the text.
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
