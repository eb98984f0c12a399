"""Values that the items of an array are compared by.

An object or an array is known by what it is, not by its content: the interpreter makes one of equal
content once, so that deep values are compared at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Number(NamedTuple):
    """A number by its value: digits * 10 ** exponent.

    is_negative : False for 0.
    digits : of its significant part, without zeros at either end; "" for 0.
    exponent : 0 for 0.
    """

    is_negative: bool
    digits: str
    exponent: int


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


def value_of(text: bytes) -> Number:
    """The value of a number's spelling.

    >>> value_of(b"1.50e1") == value_of(b"15"), value_of(b"-0.0")
    (True, Number(is_negative=False, digits='', exponent=0))
    """
    mantissa, _, exponent = text.decode("ascii").lower().partition("e")
    is_negative = mantissa.startswith("-")
    before, _, behind = mantissa.lstrip("+-").partition(".")
    digits = before + behind
    stripped = digits.rstrip("0")
    shift = _integer(exponent or "0") - len(behind) + len(digits) - len(stripped)
    stripped = stripped.lstrip("0")
    return Number(is_negative and bool(stripped), stripped, shift if stripped else 0)


def _integer(text: str) -> int:
    """The value of an integer of any length; Python's `int` takes 4,300 digits at most."""
    digits = text.lstrip("+-")
    value = 0
    for begin in range(0, len(digits), 4000):
        part = digits[begin : begin + 4000]
        value = value * 10 ** len(part) + int(part)
    return -value if text.startswith("-") else value
