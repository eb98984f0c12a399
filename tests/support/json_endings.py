"""Endings of JSON texts without a store: of any graph, behind any beginning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maskwright.analysis.schema.preferred import Preferred
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.endings.ending import Ending, Endings
from maskwright.decoding.reference.json_places import Readings
from maskwright.decoding.schema.ending_states import JsonStates
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class Said:
    """A text of some bytes, or of readings. It is not asked whether it is whole."""

    said: bytes = b""
    readings: Readings = ()
    store: Any = None

    def can_end(self) -> bool:
        return False

    def bytes_said(self) -> bytes:
        return self.said


class _OfReadings(JsonStates):
    """Whose texts are given as readings."""

    def start(self, text: Any) -> Readings:
        return text.readings


class JsonEndings:
    """The questions of `Endings`, asked of readings."""

    def __init__(self, texts: Texts, vocabulary: Vocabulary | None = None, preferred: Preferred | None = None) -> None:
        states = _OfReadings("schema", texts, preferred)
        self.interpreter, self.costs, self.readings = states.interpreter, states.costs, states.readings
        self.endings = Endings(lambda: states, vocabulary)

    def shortest(self, readings: Readings, max_nodes: int | None = None) -> Ending:
        return self.endings.shortest(Said(readings=readings), max_nodes)

    def short(self, readings: Readings) -> Ending:
        return self.endings.short(Said(readings=readings))

    def min_bytes_left(self, readings: Readings) -> int:
        return self.endings.min_bytes_left(Said(readings=readings))
