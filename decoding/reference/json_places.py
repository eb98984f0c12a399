"""Where a reading of a JSON text stands: what is open around it, and what is under way."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from maskwright.analysis.schema.shapes import NO_NODE, Escapes
from maskwright.decoding.reference.json_characters import Ranges, spelled
from maskwright.decoding.reference.json_shapes import (
    OTHER,
    ArrayShape,
    AutomatonShape,
    NumberShape,
    ObjectShape,
    StringShape,
    WordShape,
)
from maskwright.decoding.reference.json_values import Known, Members, Value

Awaited = Literal[
    "value", "first item", "item", "first key", "key", "colon", "object's more", "array's more", "bracket", "end"
]
"""What comes behind white space.

"first ...": or the end of the array or object. "... more": a comma or the end. "bracket": the end.
"""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Open:
    """An open object or array.

    parent : the frame around it; None for the whole text.
    is_compared : whether it stands in an array of distinct items, however deep.
    level : the number of open objects and arrays, itself among them.
    """

    parent: Frame | None
    is_compared: bool = field(init=False)
    level: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_compared", self.parent is not None and self.parent.holds_compared)
        object.__setattr__(self, "level", 1 + level_of(self.parent))


@dataclass(frozen=True, slots=True, eq=False)
class ObjectFrame(_Open):
    """An open object.

    used : the named keys so far and what is wanted, by offset.
    others : the other keys so far.
    key : that of the member under way; b"" between members.
    members : the members so far, if the object is compared with others.
    """

    shape: ObjectShape
    used: frozenset[int]
    others: frozenset[bytes]
    key: bytes
    members: Members

    @property
    def holds_compared(self) -> bool:
        """Whether its members stand in an array of distinct items, however deep."""
        return self.is_compared

    @property
    def addable(self) -> frozenset[int]:
        """The named keys that may come next, what is wanted, and OTHER if any other may."""
        return self.shape.addable(self.used, len(self.others))

    @property
    def may_go_on(self) -> bool:
        """Whether a further member may come."""
        return self.shape.key_lives(0, b"", None, self.used, self.others)

    @property
    def may_end(self) -> bool:
        """Whether the object may end."""
        return self.shape.may_end(self.used, len(self.others))


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFrame(_Open):
    """An open array.

    count : the number of its items, with one that is under way.
    contained : how many of them are `contained`.
    known : the items so far, if they must be distinct.
    items : the items so far but one under way, if the array is compared with others.
    """

    shape: ArrayShape
    count: int
    contained: int
    known: Known
    items: tuple[Value, ...]

    @property
    def holds_compared(self) -> bool:
        """As of an `ObjectFrame`, of its items."""
        return self.is_compared or self.shape.shape.is_unique

    @property
    def may_end(self) -> bool:
        """Whether the array may end."""
        return self.shape.may_end(self.count, self.contained)


Frame = ObjectFrame | ArrayFrame


def level_of(frame: Frame | None) -> int:
    """The number of open objects and arrays in a frame."""
    return 0 if frame is None else frame.level


class Gap(NamedTuple):
    """Between two parts of a text, where white space may stand.

    space : the state of the white space's automaton.
    awaited : what comes next.
    node : of the value that is awaited, or that comes behind the colon.
    """

    space: int
    awaited: Awaited
    node: int


class Word(NamedTuple):
    """In, or at the end of, a value of one spelling. text : its beginning."""

    shape: WordShape
    text: bytes


class Digits(NamedTuple):
    """In, or at the end of, a number.

    state : of its automaton.
    text : its beginning; b"" where no items are compared.
    """

    shape: NumberShape
    state: int
    text: bytes


class Quoted(NamedTuple):
    """In a string or a key.

    shape : an `ObjectShape` for a key.
    state : of its automaton.
    length : in characters.
    content : UTF-8 of what it says; b"" where that does not matter.
    spelling : the beginning of the next character's spelling; b"" between characters.
    """

    shape: StringShape | ObjectShape
    state: int
    length: int
    content: bytes
    spelling: bytes

    def ranges(self, escapes: Escapes) -> Ranges | None:
        """The characters whose spelling has begun; None between characters."""
        return spelled(self.spelling, escapes) if self.spelling else None


Place = Gap | Word | Digits | Quoted


class Reading(NamedTuple):
    """One reading of a text so far. frame : the innermost one that is open."""

    frame: Frame | None
    place: Place


Readings = tuple[Reading, ...]


def is_free(reading: Reading) -> bool:
    """Whether a reading stands in a string or key that goes on without end, wherever it is.

    So it can still become infinitely many values, and will however its content goes on.
    """
    place = reading.place
    if not isinstance(place, Quoted):
        return False
    shape, frame = place.shape, reading.frame
    if isinstance(shape, ObjectShape):
        assert isinstance(frame, ObjectFrame)
        return _takes_any_key(frame)
    return isinstance(shape, AutomatonShape) and shape.is_free


def takes_more(reading: Reading) -> bool:
    """Whether an item that must be new takes more and more, until it ends.

    It is the one in the innermost array of distinct items.
    """
    at = reading.frame
    while at is not None and not (isinstance(at, ArrayFrame) and at.shape.shape.is_unique):
        if isinstance(at, ObjectFrame):
            has_more = _takes_any_key(at)
        else:
            has_more = at.shape.shape.items != NO_NODE and at.shape.shape.contained is None
        if has_more and at.shape.shape.most is None:
            return True
        at = at.parent
    return False


def _takes_any_key(frame: ObjectFrame) -> bool:
    """Whether an object takes one more key that can be anything new."""
    return frame.shape.automaton is None and OTHER in frame.addable


def is_between(reading: Reading) -> bool:
    """Whether a reading stands in an object or array, but in none of its members or items."""
    place = reading.place
    if isinstance(place, Quoted):
        return isinstance(place.shape, ObjectShape)
    return isinstance(place, Gap) and place.awaited not in ("value", "colon")


def known_of(frame: Frame | None) -> Known:
    """The values that may not come again in a frame."""
    return frame.known if isinstance(frame, ArrayFrame) else frozenset()


def path_of(frame: Frame | None, *, is_inside: bool = True) -> str:
    """The JSON path of the value under way.

    frame : the innermost open one.
    is_inside : whether it is that of its member or item; else that of the object or array.

    Example: `$.friends[0]["first name"]`; `$` is the whole text.
    """
    parts = []
    while frame is not None:
        if is_inside:
            if isinstance(frame, ArrayFrame):
                parts.append(f"[{frame.count - 1}]")
            else:
                parts.append(step_of(frame.key.decode()))
        frame, is_inside = frame.parent, True
    return "$" + "".join(reversed(parts))


def step_of(key: str) -> str:
    """A key as a step of a JSON path."""
    return f".{key}" if re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII) else f"[{json.dumps(key, ensure_ascii=False)}]"
