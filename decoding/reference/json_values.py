"""Values that the items of an array are compared by, and the numbers that begin with some text.

An object or an array is known by what it is, not by its content: the interpreter makes one of equal
content once, so that deep values are compared at once.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class NumberAutomaton:
    """The numbers of an automaton over bytes.

    rows : the next state for each state and byte, -1 for none.
    accepting : whether each state accepts.

    """

    def __init__(self, rows: list[list[int]], accepting: list[bool]) -> None:
        self.rows = rows
        self.accepting = accepting
        self._has_digits = _with_digits(rows)

    def values(self, state: int, text: bytes) -> Iterator[Number]:
        """The numbers that begin with `text`, which led to `state`, each once; the shortest first.

        It ends where there are finitely many, though they may have endlessly many spellings.
        """
        found: set[Number] = set()
        seen, todo = {(state, text)}, [(state, text)]
        for at, begun in todo:  # grows while it is read
            is_zero = _is_zero_with_exponent(begun)
            if is_zero or self.accepting[at]:
                value = Number(False, "", 0) if is_zero else value_of(begun)
                if value not in found:
                    found.add(value)
                    yield value
            for byte in b"" if is_zero else b"7153908642.-+eE":  # PERF: few of a text go on so
                after = self.rows[at][byte]
                longer = self._shortened(begun + bytes([byte]), after)
                if after >= 0 and (after, longer) not in seen:
                    seen.add((after, longer))
                    todo.append((after, longer))

    def _shortened(self, text: bytes, state: int) -> bytes:
        """A beginning of the same values: without zeros that do not matter, whatever follows.

        They are those that begin an exponent, but for the last, and those behind the point where no
        other digit can follow. So a text has no more than the states can tell apart.
        """
        mantissa, mark, exponent = text.lower().partition(b"e")
        if not mark:
            return text if b"." not in text or self._has_digits[state] else text.rstrip(b"0")
        sign = exponent[:1] if exponent[:1] in (b"+", b"-") else b""
        digits = exponent[len(sign) :]
        return mantissa + mark + sign + (digits.lstrip(b"0") or digits[:1])


def _with_digits(rows: list[list[int]]) -> list[bool]:
    """For each state of an automaton over bytes, whether digits may follow that are not all 0."""
    found, before = [any(row[byte] >= 0 for byte in b"123456789") for row in rows], list[bool]()
    while found != before:
        before = found
        found = [has or (row[0x30] >= 0 and before[row[0x30]]) for has, row in zip(before, rows, strict=True)]
    return found


def _is_zero_with_exponent(text: bytes) -> bool:
    mantissa, mark, _ = text.lower().partition(b"e")
    return bool(mark) and not mantissa.strip(b"+-.0")
