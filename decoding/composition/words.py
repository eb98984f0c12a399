"""Why a token may not come in a text of several languages, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from maskwright.analysis.arguments import clip
from maskwright.analysis.marks import MARK
from maskwright.decoding.composition.readings import Reading, Rules, distinct
from maskwright.decoding.schema.text import SchemaText
from maskwright.maskstore.composition.tables import ComposedTables


class Described(Protocol):
    """What a `ComposedMatcher` tells of its text."""

    @property
    def store(self) -> ComposedTables:
        """What the masks come from."""

    def where(self, readings: Sequence[Reading] = ()) -> str:
        """In which languages the text may be, or readings of it."""

    def is_finished(self) -> bool:
        """Whether the text has ended."""

    def _accepts(self) -> bool:
        """Whether the text is legal as a whole."""

    def _close(self) -> list[Reading]:
        """The closed readings."""

    @property
    def _rules(self) -> Rules:
        """How texts are read."""

    def _allows_bytes(self, slot: int, data: bytes) -> bool:
        """Whether bytes may come next."""


def refusal(matcher: Described, token: int | None, data: bytes) -> str:
    """Why some bytes may not come: the first wrong one, and what could stand there."""
    what = f"bytes {data[:40]!r}" if token is None else f"token {token} ({data!r})"
    rules = matcher._rules
    readings, begin = rules.behind_pieces(matcher._close(), data)
    good = begin
    while good + 1 < len(data) and data[good] < MARK and rules.can_read(readings, data[begin : good + 1]):
        good += 1
    where = matcher.where(readings if begin else ())
    if good > begin:
        stays, crossed = rules.behind(readings, data[begin:good])
        readings = rules.close(distinct([*stays, *crossed]))
    allowed = [byte for byte in range(MARK) if rules.can_read(readings, bytes((byte,)))]
    shown = ", ".join(repr(bytes((byte,)))[1:] for byte in allowed[:12])
    more = f" and {len(allowed) - 12} more" if len(allowed) > 12 else ""
    inner = (getattr(reading.cursor, "matcher", None) for reading in readings)
    # where a part may end, what may come behind it is no matter of its schema
    reasons = (one.reason(data[good : good + 1]) for one in inner if isinstance(one, SchemaText) and not one._can_end())
    why = next((reason for reason in reasons if reason), "")
    return (
        f"{what} is not legal here under {matcher.store.name}, in {where}; the state is unchanged. Byte {good} of it, "
        f"{data[good : good + 1]!r}, cannot come here{why}; allowed: {shown or 'nothing'}{more}"
    )


def why_not(matcher: Described, number: int) -> str:
    """Why a token may not come next."""
    vocabulary = matcher.store.vocabulary
    if not 0 <= number < vocabulary.size:
        return f"token {clip(number)} is out of range: the vocabulary has the ids 0 to {vocabulary.size - 1}"
    if matcher.is_finished():
        return (
            f"token {number} ({vocabulary.tokens[number]!r}) comes after the end of the text: reset() begins a new one"
        )
    if number in vocabulary.eos:
        return (
            f"token {number} ends the text, which is not complete here under {matcher.store.name}, in {matcher.where()}"
        )
    data = vocabulary.tokens[number]
    if not data:
        return f"token {number} stands for no text, and no part that may come here is this token"
    return refusal(matcher, number, data)


def dead_end(matcher: Described) -> str:
    """Why no token can come next."""
    vocabulary = matcher.store.vocabulary.name
    if matcher._accepts():
        return (
            f"the text is complete under {matcher.store.name} and no token can come behind it, but vocabulary {vocabulary} has no "
            "end-of-text token to say so: ask is_accepting before fill, or give the vocabulary one"
        )
    allowed = bytes(byte for byte in range(MARK) if matcher._allows_bytes(0, bytes((byte,))))
    return (
        f"no token of vocabulary {vocabulary} can come next, and the text is not complete under {matcher.store.name}, in "
        f"{matcher.where()}. The bytes {allowed[:20]!r} may come next, but no token that begins with one of them is legal: use a "
        "vocabulary that has them, or a language that does not need them"
    )
