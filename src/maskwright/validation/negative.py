"""Negative: texts that go wrong at a known byte must be refused there, neither before nor after.

A case says between which bytes its first bad byte lies: `text[:k]` can be gone on with, `text[:k + 1]` cannot; k = the length of the text
if only its end is wrong. Outside that interval the independent oracle decides whose fault it is, the engine's or the grammar's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maskwright.analysis.errors import LimitError, MaskwrightError, MissingExtraError, VocabularyError
from maskwright.validation.corpus import CorpusError, Text
from maskwright.validation.oracle import Oracle
from maskwright.validation.replay import BEFORE, NOT_SPELLED, OVER_LIMIT, find_stop, good_bytes, place_of
from maskwright.validation.work import Outcome, Tools

RIGHT = "refused where it goes wrong"
EARLY = "refused too early"
EARLY_GRAMMAR = "refused too early: the grammar lacks it"
LATE = "refused too late"
LATE_GRAMMAR = "refused too late: the grammar takes it"

Case = tuple[str, int, int]
"""Text, and the least and the greatest byte at which it may go wrong."""


def case_of(text: Text) -> Case:
    """The case of a record. Raises CorpusError if it does not say where the text goes wrong."""
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


@dataclass(frozen=True)
class Negative:
    """The check. Units are cases."""

    name: str = "negative"

    def start(self, tools: Tools) -> Callable[[Any], Outcome]:
        store, encoder = tools.store, tools.encoder
        assert encoder is not None
        matcher = store.matcher(0)
        oracles: list[Oracle | None] = []

        def oracle() -> Oracle | None:
            if not oracles:
                try:
                    oracles.append(Oracle(store.grammar, store.grammar.conflicts))
                except MissingExtraError:
                    oracles.append(None)
            return oracles[0]

        def is_legal(prefix: bytes) -> bool | None:
            """Whether the oracle takes a prefix; None if it cannot be asked."""
            try:
                found = oracle()
                return None if found is None else found.is_legal_prefix(prefix)
            except MaskwrightError:
                return None

        def run(case: Case) -> Outcome:
            text, lower, upper = case
            try:
                tokens = encoder.exact_tokens(text).tokens
                stop = find_stop(matcher, tokens)
            except VocabularyError as error:
                return {"class": NOT_SPELLED, "why": str(error)}
            except LimitError as error:
                return {"class": OVER_LIMIT, "why": str(error)}
            data = text.encode()
            if stop is None:
                place = len(data) + 1
            else:
                token = b"" if stop.token is None else store.vocabulary.tokens[stop.token]
                begin = sum(len(store.vocabulary.tokens[token]) for token in tokens[: stop.n_tokens])
                place = begin + good_bytes(matcher, token) % max(1, len(token))
            if lower <= place <= upper:
                return {"class": RIGHT}
            if place < lower:
                kind = EARLY_GRAMMAR if is_legal(data[: place + 1]) is False else EARLY
            else:
                takes = is_legal(data[:place])
                if takes and place > len(data):
                    found = oracle()
                    takes = found is not None and found.is_legal_text(data)
                kind = LATE_GRAMMAR if takes else LATE
            shown = min(place, len(data))
            line, column = place_of(text, shown)
            return {
                "class": kind,
                "line": line,
                "column": column,
                "byte": place,
                "expected": [lower, upper],
                "before": data[:shown].decode("utf-8", "replace")[-BEFORE:],
                "token": None,
                "why": f"expected between bytes {lower} and {upper}; "
                + ("accepted as a whole" if stop is None else f"refused at {place}: {stop.why}"),
            }

        return run
