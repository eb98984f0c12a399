"""Values that the items of an array are compared by.

An object or an array is known by what it is, not by its content: the interpreter makes one of equal
content once, so that deep values are compared at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from maskwright.decoding.reference.json_numbers import Number


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ObjectValue:
    """An object. members : its keys, UTF-8, with their values."""

    members: frozenset[tuple[bytes, Value]]

    def get(self, key: bytes) -> Value | None:
        """The value of a key; None if it is not there."""
        return next((value for name, value in self.members if name == key), None)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ArrayValue:
    """An array. items : its items, in order."""

    items: tuple[Value, ...]


Value: TypeAlias = "bytes | Number | str | ObjectValue | ArrayValue"
"""UTF-8 of a string, a number, the text of any other scalar, an object or an array."""
Known: TypeAlias = "frozenset[Value]"
Members: TypeAlias = "frozenset[tuple[bytes, Value]]"
