"""Which texts does a grammar accept, and where does it refuse others? In: texts. Out: verdicts.

The exact engine answers, with the 256 single bytes as its vocabulary, so the answer does not depend
on a tokenizer. It is about the language that the grammar and its lexing define, and can be compared
with the answer of a reference parser.
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
"""A name, and a text that the reference accepts."""
Negative = tuple[str, bytes, int, int]
"""A name, a text that the reference refuses, and the interval of its first wrong byte.

The interval is the least and the greatest offset at which the text may go wrong.
"""


def byte_vocabulary() -> Vocabulary:
    """A vocabulary of the 256 single bytes, with their values as ids; end of text has id 256."""
    return Vocabulary("bytes", (*(bytes([byte]) for byte in range(256)), b""), {256: "</s>"}, (256,))


class ByteParser:
    """Decides which texts a grammar accepts, and where it refuses others.

    grammar : a grammar of lexing "longest" or "contextual".
    progress : called with (what, done, total) while the store is built.

    Raises: GrammarError for a grammar of lexing "nfa", which has no exact engine; and as
        `compile_store`.

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
        """The offset k of the first byte that cannot come; None if the text is accepted.

        data[:k] is a legal prefix, and data[:k + 1] is not. If only the end is wrong, k is
        len(data).

        data : the text.

        Raises: LimitError for a text with too many readings; DeadEndError if nothing at all can
            follow data[:k], which is a defect of the grammar.
        Cost: some 0.5 us for a byte.
        """
        matcher = self._matcher
        matcher.reset()
        good = int(matcher.replay(np.frombuffer(data, np.uint8)))
        return None if good == len(data) and matcher.is_accepting() else good

    def accepts(self, data: bytes) -> bool:
        """Whether the grammar accepts the text. Raises: as `refusal`."""
        return self.refusal(data) is None


@dataclass(frozen=True, slots=True)
class TextResult:
    """The result for one text.

    name : the text's name.
    verdict : ACCEPTED, REFUSED, EARLY, LATE or OVER_LIMIT. If an interval was given, REFUSED is
        inside, EARLY before and LATE behind it.
    is_right : whether this is what the reference says.
    at : offset of the first byte that cannot come; None if the text is accepted or over a limit.
    expected : the interval in which `at` should be; None for a text that should be accepted.
    why : the error's message if the verdict is OVER_LIMIT.
    shown : the text around `at`, or around where it should be; "" if the verdict is right or
        OVER_LIMIT.
    """

    name: str
    verdict: str
    is_right: bool
    at: int | None = None
    expected: tuple[int, int] | None = None
    why: str = ""
    shown: str = ""


def judge_positive(parser: ByteParser, cases: Iterable[Positive]) -> Iterator[TextResult]:
    """Outcomes of texts that should be accepted, in the same order."""
    for name, data in cases:
        try:
            at = parser.refusal(data)
        except MaskwrightError as error:
            yield TextResult(name, OVER_LIMIT, False, why=str(error))
            continue
        if at is None:
            yield TextResult(name, ACCEPTED, True)
        else:
            yield TextResult(name, REFUSED, False, at, shown=excerpt(data, at))


def judge_negative(parser: ByteParser, cases: Iterable[Negative]) -> Iterator[TextResult]:
    """Outcomes of texts that should be refused, in the same order.

    Raises: MaskwrightError for a case whose interval is not within its text.
    """
    for name, data, lower, upper in cases:
        if not 0 <= lower <= upper <= len(data):
            raise MaskwrightError(
                f"case {name}: its first bad byte is given as {lower} .. {upper}; expected an interval within 0 .. {len(data)}"
            )
        try:
            at = parser.refusal(data)
        except MaskwrightError as error:
            yield TextResult(name, OVER_LIMIT, False, expected=(lower, upper), why=str(error))
            continue
        verdict = _verdict(at, lower, upper)
        shown = "" if verdict == REFUSED else excerpt(data, lower if at is None else at)
        yield TextResult(name, verdict, verdict == REFUSED, at, (lower, upper), shown=shown)


def _verdict(at: int | None, lower: int, upper: int) -> str:
    if at is None:
        return ACCEPTED
    if at < lower:
        return EARLY
    return LATE if at > upper else REFUSED


def excerpt(data: bytes, at: int, width: int = 40) -> str:
    """The bytes around an offset, on one line, with a broken bar at the offset.

    data : a text.
    at : the offset.
    width : most bytes before the offset; half as many are shown after it.

    >>> excerpt(b"first\\nx = = y", 10)
    'first\\\\nx = ¦= y'
    """
    parts = (data[max(0, at - width) : at], data[at : at + width // 2])
    return "¦".join(part.decode("utf-8", "backslashreplace").encode("unicode_escape").decode() for part in parts)


@dataclass(frozen=True)
class Reach:
    """The outcomes of one kind of text, and which wrong ones are known.

    outcomes : the outcomes.
    known : name of a text -> why the outcome differs from the reference.
    """

    outcomes: tuple[TextResult, ...]
    known: Mapping[str, str]

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of texts, of right outcomes and of known wrong ones, then of each verdict.

        Verdicts that do not occur are left out.
        """
        verdicts = (ACCEPTED, REFUSED, EARLY, LATE, OVER_LIMIT)
        found = {verdict: sum(outcome.verdict == verdict for outcome in self.outcomes) for verdict in verdicts}
        return {
            "texts": len(self.outcomes),
            "right": sum(outcome.is_right for outcome in self.outcomes),
            "known": sum(not outcome.is_right and outcome.name in self.known for outcome in self.outcomes),
            **{verdict: n for verdict, n in found.items() if n},
        }

    @property
    def wrong(self) -> tuple[TextResult, ...]:
        """The outcomes that differ from what the reference says, known or not."""
        return tuple(outcome for outcome in self.outcomes if not outcome.is_right)

    @property
    def unexplained(self) -> tuple[TextResult, ...]:
        """The wrong outcomes that are not known."""
        return tuple(outcome for outcome in self.wrong if outcome.name not in self.known)

    @property
    def stale(self) -> tuple[str, ...]:
        """Names of texts that are listed as known exceptions, but have the right outcome."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.is_right and outcome.name in self.known)
