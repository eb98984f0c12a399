"""The check "negative": is a text that goes wrong at a known byte refused at that byte?

In: cases. Out: whether each is refused at the right byte, too early or too late. A case gives an
interval for its first bad byte k: some legal text begins with `text[:k]`, none begins with
`text[:k + 1]`. If only the end of the text is wrong, k is its length. If a refusal lies outside the
interval, the independent oracle decides whether the engine or the grammar is at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.validation.corpus import CorpusError, Text
from maskwright.validation.oracle import Oracle
from maskwright.validation.replay import facts_of_place, facts_of_stop, find_stop
from maskwright.validation.work import Outcome, Setup

RIGHT = "refused where it goes wrong"
EARLY = "refused too early"
EARLY_GRAMMAR = "refused too early: the grammar lacks it"
LATE = "refused too late"
LATE_GRAMMAR = "refused too late: the grammar takes it"

Case = tuple[str, int, int]
"""A text, and the least and the greatest byte offset at which it may go wrong."""


def case_of(text: Text) -> Case:
    """The case that a record describes.

    text : a text with a record that has `first_bad_byte`, or `first_bad_lower` and
        `first_bad_upper`: offsets in the text's UTF-8, at most its length.

    Raises: CorpusError if the record does not say where the text goes wrong.
    """
    record: Mapping[str, Any] = text.record or {}
    exact = record.get("first_bad_byte")
    lower, upper = record.get("first_bad_lower", exact), record.get("first_bad_upper", exact)
    n = len(text.text.encode("utf-8", "surrogatepass"))
    if not (isinstance(lower, int) and isinstance(upper, int) and 0 <= lower <= upper <= n):
        raise CorpusError(
            f"{text.name}: does not say where its text goes wrong (found lower {lower!r}, upper {upper!r} of {n} bytes); expected JSON "
            "Lines records with text and first_bad_byte, or first_bad_lower and first_bad_upper"
        )
    return text.text, lower, upper


def refused_in_place(setup: Setup) -> Callable[[Case], Outcome]:
    """The check "negative". A unit of work is a case."""
    grammar, vocabulary = setup.store.grammar, setup.store.vocabulary
    matcher = setup.store.matcher(0)
    oracle = cache(lambda: Oracle(grammar, grammar.conflicts))

    def is_legal(text: bytes, is_whole: bool) -> bool | None:
        """What the oracle says of a prefix, or of a whole text; None if it gives no answer."""
        try:
            return oracle().is_legal_text(text) if is_whole else oracle().is_legal_prefix(text)
        except MaskwrightError:
            return None

    def run(case: Case) -> Outcome:
        text, lower, upper = case
        tokens = setup.tokens(text)
        stop, data = find_stop(matcher, tokens), text.encode()
        offset = len(data) + 1 if stop is None else facts_of_stop(text, tokens, stop, vocabulary)["byte"]
        if lower <= offset <= upper:
            return {"class": RIGHT}
        if offset < lower:
            kind = EARLY_GRAMMAR if is_legal(data[: offset + 1], False) is False else EARLY
        else:
            kind = LATE_GRAMMAR if is_legal(data[:offset], stop is None) else LATE
        said = "accepted as a whole" if stop is None else f"refused at {offset}: {stop.why}"
        shown = min(offset, len(data))
        return {
            "class": kind,
            **facts_of_place(text, shown, shown, None, vocabulary),
            "byte": offset,
            "expected": [lower, upper],
            "why": f"expected between bytes {lower} and {upper}; {said}",
        }

    return run
