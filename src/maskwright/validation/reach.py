"""What a grammar reaches: is a text accepted, and if not, which byte is the first that cannot come? In: a grammar and bytes. Out: verdicts.

The exact engine over the vocabulary of the 256 single bytes answers; no tokenizer has a say in it. So the answer is about the language
that the grammar and its lexing define, which is what a reference parser's answer is held against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwright.analysis.errors import GrammarError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store

ACCEPTED = "accepted"
REFUSED = "refused"
EARLY = "refused too early"
LATE = "refused too late"
OVER_LIMIT = "over a limit"

Positive = tuple[str, bytes]
"""Name, and a text that the reference accepts."""
Negative = tuple[str, bytes, int, int]
"""Name, a text that the reference refuses, and the least and the greatest byte that may be the first that cannot come."""


def byte_vocabulary() -> Vocabulary:
    """The 256 single bytes, each with its value as id, and an end of text."""
    return Vocabulary("bytes", (*(bytes([byte]) for byte in range(256)), b""), {256: "</s>"}, (256,))


class ByteParser:
    """The texts that a grammar accepts, and where it refuses the others.

    Raises GrammarError for a grammar with lexing "nfa", which has no exact engine, and what `compile_store` raises.

    >>> from maskwright.analysis.loading import parse_grammar
    >>> parser = ByteParser(parse_grammar('start: "a" start "b" | "a" "b"'))
    >>> [parser.refusal(text) for text in (b"aabb", b"aab", b"abb", "aä".encode())]
    [None, 3, 2, 1]
    """

    def __init__(self, grammar: Grammar, progress: Progress | None = None) -> None:
        if grammar.lexing == "nfa":
            raise GrammarError(
                f"grammar {grammar.name}: lexing 'nfa' has no exact engine to ask; load the grammar with lexing='longest'"
            )
        self.grammar = grammar
        self.store = compile_store(grammar, byte_vocabulary(), progress)
        self._matcher: Any = self.store.matcher(0)

    def refusal(self, data: bytes) -> int | None:
        """The first byte that cannot come: data[:k] is a legal prefix and data[:k + 1] is not; len(data) if only the end is wrong.

        None if the text is accepted. Raises LimitError for a text that is too ambiguous, DeadEndError if data[:k] has no continuation
        at all, a defect of the grammar. Cost: some 0.5 us a byte.
        """
        matcher = self._matcher
        matcher.reset()
        good = int(matcher.replay(np.frombuffer(data, np.uint8)))
        return None if good == len(data) and matcher.is_accepting() else good

    def accepts(self, data: bytes) -> bool:
        """Whether the text is one of the language."""
        return self.refusal(data) is None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one text.

    verdict : ACCEPTED, REFUSED (in the interval that was given, if one was), EARLY, LATE or OVER_LIMIT. is_right : whether that is what
    the reference says. at : the first byte that cannot come. expected : the interval that it should have been in.
    """

    name: str
    verdict: str
    is_right: bool
    at: int | None = None
    expected: tuple[int, int] | None = None
    why: str = ""
    shown: str = ""


def judge_positive(parser: ByteParser, cases: Iterable[Positive]) -> Iterator[Outcome]:
    """An outcome for each text that ought to be accepted, in their order."""
    for name, data in cases:
        try:
            at = parser.refusal(data)
        except MaskwrightError as error:
            yield Outcome(name, OVER_LIMIT, False, why=str(error))
            continue
        if at is None:
            yield Outcome(name, ACCEPTED, True)
        else:
            yield Outcome(name, REFUSED, False, at, shown=excerpt(data, at))


def judge_negative(parser: ByteParser, cases: Iterable[Negative]) -> Iterator[Outcome]:
    """An outcome for each text that ought to be refused, in their order."""
    for name, data, lower, upper in cases:
        if not 0 <= lower <= upper <= len(data):
            raise MaskwrightError(
                f"case {name}: its first bad byte is to lie in {lower} .. {upper}; expected an interval within 0 .. {len(data)}"
            )
        try:
            at = parser.refusal(data)
        except MaskwrightError as error:
            yield Outcome(name, OVER_LIMIT, False, expected=(lower, upper), why=str(error))
            continue
        verdict = _verdict(at, lower, upper)
        shown = "" if verdict == REFUSED else excerpt(data, lower if at is None else at)
        yield Outcome(name, verdict, verdict == REFUSED, at, (lower, upper), shown=shown)


def _verdict(at: int | None, lower: int, upper: int) -> str:
    if at is None:
        return ACCEPTED
    if at < lower:
        return EARLY
    return LATE if at > upper else REFUSED


def excerpt(data: bytes, at: int, width: int = 40) -> str:
    """The bytes around a place, on one line, the place marked by a broken bar.

    >>> excerpt(b"first\\nx = = y", 10)
    'first\\\\nx = ¦= y'
    """
    parts = (data[max(0, at - width) : at], data[at : at + width // 2])
    return "¦".join(part.decode("utf-8", "backslashreplace").encode("unicode_escape").decode() for part in parts)


@dataclass(frozen=True)
class Reach:
    """The outcomes of one kind of text. known : name of a text -> why its outcome is another than the reference's."""

    outcomes: tuple[Outcome, ...]
    known: Mapping[str, str]

    @property
    def counts(self) -> dict[str, int]:
        """How many texts there are and how many came out right, and of the others how many are known; then each verdict's count."""
        verdicts = (ACCEPTED, REFUSED, EARLY, LATE, OVER_LIMIT)
        found = {verdict: sum(outcome.verdict == verdict for outcome in self.outcomes) for verdict in verdicts}
        return {
            "texts": len(self.outcomes),
            "right": sum(outcome.is_right for outcome in self.outcomes),
            "known": sum(not outcome.is_right and outcome.name in self.known for outcome in self.outcomes),
            **{verdict: n for verdict, n in found.items() if n},
        }

    @property
    def wrong(self) -> tuple[Outcome, ...]:
        """The outcomes that differ from the reference's, whether known or not."""
        return tuple(outcome for outcome in self.outcomes if not outcome.is_right)

    @property
    def unexplained(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.wrong if outcome.name not in self.known)

    @property
    def stale(self) -> tuple[str, ...]:
        """Texts of this kind that are listed as exceptions and came out right."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.is_right and outcome.name in self.known)
