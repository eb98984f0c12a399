"""Read a JSON text of a schema's values in plain Python, byte by byte, from the definition.

All readings of a text are followed side by side. A reading is kept only if some legal text goes on
that way, so a text is a legal prefix if it has a reading. This is the definition from which the
compiled engine is tested, and from which refusals are explained. It is slow: 20 us a byte and more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from maskwright.analysis.errors import LimitError
from maskwright.analysis.schema.shapes import Texts
from maskwright.analysis.schema.spacing import CLOSES, GOES_ON, SPACES
from maskwright.decoding.reference import json_places as p
from maskwright.decoding.reference import json_words as words
from maskwright.decoding.reference.json_characters import QUOTE, Ranges, left, spelled
from maskwright.decoding.reference.json_completions import Completions
from maskwright.decoding.reference.json_shapes import (
    OTHER,
    ArrayShape,
    NumberShape,
    ObjectShape,
    ReadNodes,
    ReadShape,
    WordShape,
)
from maskwright.decoding.reference.json_values import ArrayValue, ObjectValue, Value, value_of

MOST_READINGS = 20_000
"""BOUND: readings of one text. Alternatives inside alternatives may double them each time."""

T = TypeVar("T")

_NOTHING: frozenset[Any] = frozenset()
_BEHIND = b" \t\n\r,]}"
"""What may come behind a word or a number."""


class JsonInterpreter:
    """The readings of JSON texts of some values.

    nodes : the shapes of each node of the graph, as they are read.
    n_equal : how many readings have ended since an item became equal to one before it.
    """

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.nodes: Sequence[tuple[ReadShape, ...]] = ReadNodes(texts.graph.nodes)
        self.n_equal = 0
        self._spacing = texts.spacing
        self._made: WeakValueDictionary[Any, Any] = WeakValueDictionary()
        self.completions = Completions(self.nodes, texts.escapes, self.one)

    def start(self) -> p.Readings:
        """The readings of the empty text."""
        space = self._spacing.outer
        return (p.Reading(None, p.Gap(space, "value", self.texts.graph.root)),) if self._spacing.leads(space) else ()

    def read(self, readings: p.Readings, byte: int) -> p.Readings:
        """The readings behind one more byte; () if no legal text goes on so.

        Raises: LimitError if there are more than `MOST_READINGS`.
        """
        found = tuple(dict.fromkeys(after for one in readings for after in self._step(one, byte)))
        if len(found) > MOST_READINGS:
            raise LimitError(
                f"a JSON text has more than {MOST_READINGS:,} readings; make the schema's alternatives less alike"
            )
        return found

    def read_bytes(self, readings: p.Readings, data: bytes) -> p.Readings:
        """The readings behind some bytes; () if no legal text goes on so."""
        for byte in data:
            if not readings:
                break
            readings = self.read(readings, byte)
        return readings

    def ended(self, readings: p.Readings) -> p.Readings:
        """The readings in which a word or a number that may end has ended, and those in none."""
        ends = [(one,) if isinstance(one.place, p.Gap) else self._ended(one) for one in readings]
        return tuple(dict.fromkeys(one for some in ends for one in some if self.completions.is_new(one)))

    def is_complete(self, readings: p.Readings) -> bool:
        """Whether the text is legal as a whole."""
        return any(self._is_whole(one) for reading in readings for one in (reading, *self._ended(reading)))

    def refusals(self, readings: p.Readings, byte: int) -> tuple[str, ...]:
        """Why each reading ends at a byte: a reason for each that does."""
        found: dict[str, None] = {}
        for one in readings:
            if not list(self._step(one, byte)):
                equal = next(self._read(one, byte), None)
                found[words.of_byte(self, one, byte) if equal is None else words.of_equal(equal)] = None
        return tuple(found)

    def refusals_of_end(self, readings: p.Readings) -> tuple[str, ...]:
        """Why the text is not legal as a whole: a reason for each reading; () if it is."""
        if self.is_complete(readings):
            return ()
        return tuple(dict.fromkeys(words.of_end(self, one) for one in readings))

    # ------------------------------------------------------------------------------------- one byte

    def _step(self, reading: p.Reading, byte: int) -> Iterator[p.Reading]:
        """The readings behind a byte."""
        for after in self._read(reading, byte):
            if self.completions.is_new(after):
                yield after
            else:
                self.n_equal += 1

    def _read(self, reading: p.Reading, byte: int) -> Iterator[p.Reading]:
        """As `_step`, whether or not an item becomes equal to others."""
        frame, place = reading
        if isinstance(place, p.Gap):
            yield from self._gap(frame, place, byte)
        elif isinstance(place, p.Quoted):
            yield from self._quoted(frame, place, byte)
        else:
            longer = place.text + bytes([byte]) if isinstance(place, p.Word) or _holds_compared(frame) else b""
            if isinstance(place, p.Word):
                if place.shape.begun(longer):
                    yield p.Reading(frame, place._replace(text=longer))
            elif (state := place.shape.rows[place.state][byte]) >= 0:
                yield p.Reading(frame, place._replace(state=state, text=longer))
            for after in self._ended(reading) if byte in _BEHIND else ():
                yield from self._gap(after.frame, after.place, byte)  # type: ignore[arg-type]

    def _ended(self, reading: p.Reading) -> Iterator[p.Reading]:
        """The reading behind a word or a number that may end where the reading stands."""
        frame, place = reading
        if isinstance(place, p.Word) and place.text in place.shape.values:
            value = place.shape.values[place.text]
        elif isinstance(place, p.Digits) and place.shape.accepting[place.state]:
            value = value_of(place.text) if place.text else b""
        else:
            return
        if isinstance(frame, p.ArrayFrame) and value in frame.known:
            self.n_equal += 1
        else:
            yield from self.behind(frame, value)

    def behind(self, frame: p.Frame | None, value: Value) -> Iterator[p.Reading]:
        """The reading behind a value. value : what it is compared by, if it is."""
        if frame is None:
            yield p.Reading(None, p.Gap(self._spacing.outer, "end", 0))
        elif isinstance(frame, p.ObjectFrame):
            members = frame.members | {(frame.key, value)} if frame.is_compared else frame.members
            after = self.one(p.ObjectFrame, frame.parent, frame.shape, frame.used, frame.others, b"", members)
            yield p.Reading(after, p.Gap(0, "object's more", 0))
        else:
            known = frame.known | {value} if frame.shape.shape.is_unique else frame.known
            items = (*frame.items, value) if frame.is_compared else frame.items
            array = self.one(p.ArrayFrame, frame.parent, frame.shape, frame.count, frame.contained, known, items)
            yield p.Reading(array, p.Gap(0, "array's more", 0))

    def _behind_bracket(self, frame: p.Frame) -> Iterator[p.Reading]:
        """The reading behind the bracket of a frame."""
        value: Value = b""
        if frame.is_compared and isinstance(frame, p.ObjectFrame):
            value = self.one(ObjectValue, frame.members)
        elif frame.is_compared and isinstance(frame, p.ArrayFrame):
            value = self.one(ArrayValue, frame.items)
        return self.behind(frame.parent, value)

    def one(self, kind: type[T], *parts: Any) -> T:
        """The one frame, object or array with some parts."""
        key = kind, parts
        found: T = self._made.get(key) or self._made.setdefault(key, kind(*parts))
        return found

    # ---------------------------------------------------------------------------------- white space

    def _gap(self, frame: p.Frame | None, place: p.Gap, byte: int) -> Iterator[p.Reading]:
        if byte not in SPACES:
            if self._spacing.ends(place.space) & (CLOSES if byte in b"}]" else GOES_ON):
                yield from self._token(frame, place, byte)
            return
        space = self._spacing.after(place.space, byte, p.level_of(frame))
        awaited = self._awaited(frame, place.awaited, self._spacing.leads(space)) if space >= 0 else None
        if awaited is not None:
            yield p.Reading(frame, p.Gap(space, awaited, place.node))

    def _awaited(self, frame: p.Frame | None, awaited: p.Awaited, leads: int) -> p.Awaited | None:
        """What is awaited behind white space that leads to some ends; None if that may not come."""
        if awaited in ("object's more", "array's more") and leads == CLOSES:
            return "bracket" if frame is not None and frame.may_end else None
        if leads == GOES_ON and awaited == "first key" and isinstance(frame, p.ObjectFrame):
            return "key" if frame.may_go_on else None
        if leads == GOES_ON and awaited == "first item" and isinstance(frame, p.ArrayFrame):
            return "item" if self.roles(frame) else None
        return awaited

    def roles(self, frame: p.ArrayFrame) -> list[tuple[int, int]]:
        """What the next item may be: its node, and what it adds to the items that are contained."""
        found = frame.shape.ways(frame.count, frame.contained)
        return [way for way in found if self.completions.has_new(way[0], frame.known)]

    def _is_whole(self, reading: p.Reading) -> bool:
        """Whether a reading stands at the end of a text."""
        place = reading.place
        return isinstance(place, p.Gap) and place.awaited == "end" and bool(self._spacing.ends(place.space) & GOES_ON)

    def _token(self, frame: p.Frame | None, place: p.Gap, byte: int) -> Iterator[p.Reading]:
        """The readings behind a byte that is no white space, and comes where it may end."""
        awaited = place.awaited
        if awaited == "value":
            yield from self._begin(frame, place.node, byte)
        elif awaited == "colon":
            if byte == ord(":"):
                yield p.Reading(frame, p.Gap(self._spacing.behind_colon, "value", place.node))
        elif isinstance(frame, p.ObjectFrame):
            yield from self._in_object(frame, awaited, byte)
        elif isinstance(frame, p.ArrayFrame):
            yield from self._in_array(frame, awaited, byte)

    def _in_object(self, frame: p.ObjectFrame, awaited: p.Awaited, byte: int) -> Iterator[p.Reading]:
        if awaited != "key" and byte == ord("}"):
            if frame.may_end:
                yield from self._behind_bracket(frame)
        elif awaited in ("first key", "key") and byte == QUOTE and frame.may_go_on:
            yield p.Reading(frame, p.Quoted(frame.shape, 0, 0, b"", b""))
        elif awaited == "object's more" and byte == ord(",") and frame.may_go_on:
            yield p.Reading(frame, p.Gap(self._spacing.behind_comma, "key", 0))

    def _in_array(self, frame: p.ArrayFrame, awaited: p.Awaited, byte: int) -> Iterator[p.Reading]:
        if byte == ord("]"):
            if awaited != "item" and frame.may_end:
                yield from self._behind_bracket(frame)
        elif awaited == "array's more":
            if byte == ord(",") and self.roles(frame):
                yield p.Reading(frame, p.Gap(self._spacing.behind_comma, "item", 0))
        elif awaited != "bracket":
            for node, role in self.roles(frame):
                count, contained = frame.count + 1, frame.contained + role
                after = self.one(p.ArrayFrame, frame.parent, frame.shape, count, contained, frame.known, frame.items)
                yield from self._begin(after, node, byte)

    # --------------------------------------------------------------------------------------- values

    def _begin(self, frame: p.Frame | None, node: int, byte: int) -> Iterator[p.Reading]:
        """The readings behind the first byte of a value."""
        text = bytes([byte])
        for shape in self.nodes[node]:
            if isinstance(shape, ObjectShape):
                if byte == ord("{"):
                    opened: p.Frame = self.one(p.ObjectFrame, frame, shape, _NOTHING, _NOTHING, b"", _NOTHING)
                    yield p.Reading(opened, p.Gap(self._spacing.opened, "first key", 0))
            elif isinstance(shape, ArrayShape):
                if byte == ord("["):
                    opened = self.one(p.ArrayFrame, frame, shape, 0, 0, _NOTHING, ())
                    yield p.Reading(opened, p.Gap(self._spacing.opened, "first item", 0))
            elif isinstance(shape, WordShape):
                if shape.begun(text):
                    yield p.Reading(frame, p.Word(shape, text))
            elif isinstance(shape, NumberShape):
                state = shape.rows[0][byte]
                if state >= 0:
                    yield p.Reading(frame, p.Digits(shape, state, text if _holds_compared(frame) else b""))
            elif byte == QUOTE:
                yield p.Reading(frame, p.Quoted(shape, 0, 0, b"", b""))

    def _quoted(self, frame: p.Frame | None, place: p.Quoted, byte: int) -> Iterator[p.Reading]:
        """The readings behind a byte within a string or a key."""
        if byte == QUOTE and not place.spelling:
            yield from self._closed(frame, place)
            return
        after = self.longer(frame, place, byte)
        if after is not None and _goes_on(frame, after, after.ranges(self.texts.escapes)):
            yield p.Reading(frame, after)

    def longer(self, frame: p.Frame | None, place: p.Quoted, byte: int) -> p.Quoted | None:
        """A place in a string or a key with one more byte, or None if nothing is spelled so.

        Whether such a string may stand here is another question.
        """
        shape, spelling = place.shape, place.spelling + bytes([byte])
        ranges = spelled(spelling, self.texts.escapes)
        if not ranges:
            return None
        if left(spelling):
            return place._replace(spelling=spelling)
        character = chr(ranges[0][0]).encode()
        state = shape.after(place.state, place.content, character)
        content = place.content + character if shape.needs_content or _holds_compared(frame) else b""
        return p.Quoted(shape, state, place.length + 1, content, b"")

    def _closed(self, frame: p.Frame | None, place: p.Quoted) -> Iterator[p.Reading]:
        """The reading behind the quotation mark that ends a string or a key."""
        shape = place.shape
        if not isinstance(shape, ObjectShape):
            if shape.ends(place.state, place.length, place.content):
                yield from self.behind(frame, place.content)
            return
        assert isinstance(frame, p.ObjectFrame)
        for index, node in shape.key_indexes(place.state, place.content, frame.used, frame.others):
            used = frame.used if index == OTHER else frame.used | {index}
            others = frame.others if index < shape.n_named else frame.others | {place.content}
            after = self.one(p.ObjectFrame, frame.parent, shape, used, others, place.content, frame.members)
            yield p.Reading(after, p.Gap(self._spacing.before_colon, "colon", node))


def _goes_on(frame: p.Frame | None, place: p.Quoted, ranges: Ranges | None) -> bool:
    """Whether a string or key goes on from a place. ranges : of the next character, or None."""
    shape = place.shape
    if isinstance(shape, ObjectShape):
        assert isinstance(frame, p.ObjectFrame)
        return shape.key_lives(place.state, place.content, ranges, frame.used, frame.others)
    return place.state >= 0 and shape.lives(place.state, place.length, place.content, ranges)


def _holds_compared(frame: p.Frame | None) -> bool:
    """Whether what stands in a frame is compared, as an item or in one."""
    return frame is not None and frame.holds_compared


def bytes_allowed(interpreter: JsonInterpreter, readings: p.Readings) -> bytes:
    """The bytes that may come next, ascending."""
    return bytes(byte for byte in range(256) if interpreter.read(readings, byte))


def tokens_allowed(interpreter: JsonInterpreter, readings: p.Readings, tokens: Sequence[bytes]) -> list[bool]:
    """Whether each of some tokens may come next; those without bytes may not.

    Cost: that of reading the bytes of all tokens, of beginnings that several have once.
    """
    known: dict[bytes, p.Readings] = {}
    found = []
    for token in tokens:
        here = readings
        for end, byte in enumerate(token, 1):
            if not here:
                break
            begun = token[:end]
            if begun not in known:
                known[begun] = interpreter.read(here, byte)
            here = known[begun]
        found.append(bool(token and here))
    return found
