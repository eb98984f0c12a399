"""The check "negative": is a text that goes wrong at a known byte refused at that byte?

In: cases. Out: whether each is refused at the right byte, too early or too late. A case gives an
interval for its first bad byte k: some legal text begins with `text[:k]`, none begins with
`text[:k + 1]`. If only the end of the text is wrong, k is its length. If a refusal lies outside the
interval, the independent oracle decides whether the engine or the grammar is at fault.
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


@dataclass(frozen=True)
class Negative:
    """The check "negative". A unit of work is a case."""

    name: str = "negative"

    def start(self, tools: Tools) -> Callable[[Any], Outcome]:
        """The function that does this check for one case, see `Check.start`."""
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
            """Whether the oracle says that a prefix is legal; None if it gives no answer."""
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
                offset = len(data) + 1
            else:
                token = b"" if stop.token is None else store.vocabulary.tokens[stop.token]
                begin = sum(len(store.vocabulary.tokens[token]) for token in tokens[: stop.n_tokens])
                offset = begin + good_bytes(matcher, token) % max(1, len(token))
            if lower <= offset <= upper:
                return {"class": RIGHT}
            if offset < lower:
                kind = EARLY_GRAMMAR if is_legal(data[: offset + 1]) is False else EARLY
            else:
                is_accepted = is_legal(data[:offset])
                if is_accepted and offset > len(data):
                    found = oracle()
                    is_accepted = found is not None and found.is_legal_text(data)
                kind = LATE_GRAMMAR if is_accepted else LATE
            shown = min(offset, len(data))
            line, column = place_of(text, shown)
            return {
                "class": kind,
                "line": line,
                "column": column,
                "byte": offset,
                "expected": [lower, upper],
                "before": data[:shown].decode("utf-8", "replace")[-BEFORE:],
                "token": None,
                "why": f"expected between bytes {lower} and {upper}; "
                + ("accepted as a whole" if stop is None else f"refused at {offset}: {stop.why}"),
            }

        return run
