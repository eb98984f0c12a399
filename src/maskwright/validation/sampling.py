"""Sample: texts drawn under the masks, each closed with its shortest ending, must be texts of the grammar and of the language.

Tokens are drawn uniformly from those allowed, or by a model. After a budget of tokens the text is closed with `shortest_ending`; so
is each of some cut-offs, prefixes of the same text. What comes out is put before the grammar's own parse and the reference parser.
Where texts are given, each sample goes on from a random place of one of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError, VocabularyError
from maskwright.decoding.endings.ending import short_ending
from maskwright.decoding.endings.ending_search import MAX_NODES
from maskwright.validation.grammar_parse import GrammarParse
from maskwright.validation.references import Verdict, make_reference
from maskwright.validation.replay import BEFORE, OVER_LIMIT, replay
from maskwright.validation.work import Outcome, Tools

ACCEPTED = "accepted"
REFUSED_GRAMMAR = "refused by the grammar's own parse"
REFUSED_REFERENCE = "refused by the reference"
NO_ENDING = "no ending"
UNDECIDED = "the reference crashed or hung"

NextToken = Callable[[Sequence[int], npt.NDArray[np.uint32]], int]
"""From the tokens so far and the mask of those allowed (bit i of word w is token 32 w + i) to the next; an end-of-text id ends the text.
If it has a method `begin_text`, that is called with the number of each sample: a sample that is drawn again to be made short must come
out as it did before, in whatever order and process."""

Draw = tuple[int, str | None, str | None]
"""Number of a sample, the text that it goes on from, and the cause of its refusal if that is to be made short."""

MINIMAL_STEPS = 64
"""Prefixes that are tried in a first and in a second round to make a refused text short."""

CLOSED = frozenset((REFUSED_GRAMMAR, REFUSED_REFERENCE, NO_ENDING, UNDECIDED))
"""Classes of refused closures, which can be made short. A text over a limit has none."""
_SEVERITY = (REFUSED_GRAMMAR, NO_ENDING, REFUSED_REFERENCE, UNDECIDED)


@dataclass(frozen=True)
class Sampling:
    """The check. Units are draws. budget : tokens drawn for each. cuts : cut-offs of each."""

    reference: str = "none"
    reference_seconds: float = 10.0
    seed: int = 0
    budget: int = 100
    cuts: int = 4
    next_token: NextToken | None = field(default=None, repr=False)
    name: str = "sample"

    def start(self, tools: Tools) -> Callable[[Any], Outcome]:
        sampler = _Sampler(self, tools)
        return lambda draw: sampler.run(*draw)


class _Sampler:
    def __init__(self, check: Sampling, tools: Tools) -> None:
        self.check = check
        self.store = tools.store
        self.encoder = tools.encoder
        self.matcher = tools.store.matcher(0)
        self.words = np.zeros(self.store.n_words, np.uint32)
        self.eos = frozenset(self.store.vocabulary.eos)
        self.reference = make_reference(check.reference, check.reference_seconds)
        grammar = self.store.grammar
        self.parse = GrammarParse(grammar)

    def run(self, number: int, text: str | None, cause: str | None) -> Outcome:
        rng = random.Random(f"{self.check.seed}:{number}")
        begin_text = getattr(self.check.next_token, "begin_text", None)
        if begin_text is not None:
            begin_text(number)
        try:
            tokens = self.prompt(text, rng)
            n_prompt = len(tokens)
            tokens = self.draw(tokens, rng)
        except LimitError as error:
            return {"class": OVER_LIMIT, "why": str(error)}
        except DeadEndError as error:
            return {"class": NO_ENDING, "why": str(error)}
        n_drawn = len(tokens) - n_prompt
        cuts = sorted(rng.sample(range(len(tokens)), min(self.check.cuts, len(tokens)))) if tokens else []
        facts: Outcome = {"class": ACCEPTED, "tokens": n_drawn, "closed": len(cuts) + 1, "characters": 0, "limits": 0}
        refused = len(tokens)
        for cut in [len(tokens), *cuts]:
            kind, said, closed = self.close(tokens[:cut])
            facts["characters"] += len(closed)
            if kind == "limit":
                facts["limits"] += 1
            elif kind != ACCEPTED and (
                facts["class"] == ACCEPTED or _SEVERITY.index(kind) < _SEVERITY.index(facts["class"])
            ):
                facts |= {"class": kind, **self.shown(tokens[:cut], closed, said)}
                refused = cut
        if cause is not None:
            self.minimise(tokens[:refused], cause, facts)
        return facts

    def minimise(self, tokens: list[int], cause: str, facts: Outcome) -> None:
        """Look for the shortest prefix whose closure is refused for the same cause, as that of all the tokens is; of long texts, for a
        short one."""
        stride = max(1, -(-len(tokens) // MINIMAL_STEPS))
        first = self.first_refused(tokens, range(0, len(tokens) + stride, stride), facts["class"], cause)
        cut = self.first_refused(tokens, range(max(0, first - stride + 1), first), facts["class"], cause)
        _, said, closed = self.close(tokens[:cut])
        facts["minimal"] = {**self.shown(tokens[:cut], closed, said), "text": closed}

    def first_refused(self, tokens: list[int], cuts: range, kind: str, cause: str) -> int:
        for cut in cuts:
            found, said, _ = self.close(tokens[:cut])
            if found == kind and Verdict("refused", said).cause == cause:
                return min(cut, len(tokens))
        return min(cuts.stop, len(tokens))

    def prompt(self, text: str | None, rng: random.Random) -> list[int]:
        """The tokens of a text up to a random place, as far as they are legal."""
        self.matcher.reset()
        if text is None:
            return []
        assert self.encoder is not None
        try:
            tokens = self.encoder.exact_tokens(text).tokens
        except VocabularyError:
            return []
        tokens = tokens[: rng.randint(0, len(tokens))]
        return tokens[: replay(self.matcher, tokens)]

    def draw(self, tokens: list[int], rng: random.Random) -> list[int]:
        """The tokens and up to a budget of further ones; the matcher stands behind the first."""
        tokens = list(tokens)
        for _ in range(self.check.budget):
            self.matcher.fill(self.words)
            if self.check.next_token is None:
                allowed = np.flatnonzero(np.unpackbits(self.words.view(np.uint8), bitorder="little").view(np.bool_))
                token = int(allowed[rng.randrange(len(allowed))])
            else:
                token = int(self.check.next_token(tokens, self.words))
                if not (int(self.words[token >> 5]) >> (token & 31)) & 1:
                    raise MaskwrightError(
                        f"the model chose token {token}, which is masked; it must choose under the mask"
                    )
            if token in self.eos:
                break
            self.matcher.advance(token)
            tokens.append(token)
        return tokens

    def close(self, tokens: list[int]) -> tuple[str, str, str]:
        """What becomes of some tokens with their shortest ending: its class, what was said, and the text."""
        matcher = self.matcher
        matcher.reset()
        data = b"".join(map(self.store.vocabulary.tokens.__getitem__, tokens))
        if replay(matcher, tokens) < len(tokens):
            # what was drawn under the masks is refused by them now
            return REFUSED_GRAMMAR, "the masks refuse what they allowed before", data.decode("utf-8", "replace")
        try:
            # where the shortest takes too long to find, one near it shows as well what the masks let in
            ending = short_ending(matcher, max_nodes=MAX_NODES)
        except (DeadEndError, LimitError) as error:
            return NO_ENDING, str(error), data.decode("utf-8", "replace")
        spelt = list(ending.tokens)
        if replay(matcher, spelt) < len(spelt) or not matcher.is_accepting():
            return NO_ENDING, f"the masks refuse the ending {ending.data!r}", data.decode("utf-8", "replace")
        try:
            text = (data + ending.data).decode("utf-8")
        except UnicodeDecodeError as error:
            return REFUSED_GRAMMAR, f"not UTF-8 at byte {error.start}", (data + ending.data).decode("utf-8", "replace")
        try:
            refused = self.parse.refusal(text)
        except MaskwrightError as error:
            return "limit", str(error), text
        if refused is not None:
            return REFUSED_GRAMMAR, refused.why, text
        if self.reference is None:
            return ACCEPTED, "", text
        verdict = self.reference.judge(text)
        if verdict.answer in ("accepted", "limit"):
            return (ACCEPTED if verdict.answer == "accepted" else "limit"), verdict.message, text
        if verdict.answer == "refused":
            return REFUSED_REFERENCE, verdict.message, text
        return UNDECIDED, f"{verdict.answer}: {verdict.message}", text

    def shown(self, tokens: list[int], closed: str, said: str) -> dict[str, Any]:
        data = b"".join(map(self.store.vocabulary.tokens.__getitem__, tokens))
        line = 1 + data.count(b"\n")
        last = data.rpartition(b"\n")[2].decode("utf-8", "replace")
        return {
            "line": line,
            "column": len(last) + 1,
            "byte": len(data),
            "before": data.decode("utf-8", "replace")[-BEFORE:],
            "token": None,
            "ending": closed.encode()[len(data) :].decode("utf-8", "replace"),
            "why": said,
        }
