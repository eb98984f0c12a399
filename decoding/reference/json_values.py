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

    def plain(self) -> bytes:
        """The spelling without an exponent.

        >>> value_of(b"-15e-3").plain(), value_of(b"1e2").plain()
        (b'-0.015', b'100')
        """
        digits = (self.digits or "0") + "0" * self.exponent
        if self.exponent < 0:
            digits = digits.rjust(1 - self.exponent, "0")
            digits = f"{digits[: self.exponent]}.{digits[self.exponent :]}"
        return ("-" * self.is_negative + digits).encode()


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

    INVARIANT: it reads no exponent, or all that there are.
    """

    def __init__(self, rows: list[list[int]], accepting: list[bool]) -> None:
        self.rows = rows
        self.accepting = accepting
        self._ends_with_zeros = _only_zeros(rows)

    def values(self, state: int, text: bytes) -> Iterator[Number]:
        """The numbers that begin with `text`, which led to `state`, each once; the shortest first.

        It ends where there are finitely many, though they have endlessly many spellings: more zeros
        behind the point, and an exponent of 0, do not change the number.
        """
        found: set[Number] = set()
        seen, todo = {(state, text)}, [(state, text)]
        for at, begun in todo:  # grows while it is read
            is_zero = _is_zero_with_exponent(begun)
            is_fixed = is_zero or (self._ends_with_zeros[at] and b"." in begun)
            if is_fixed or self.accepting[at]:
                value = Number(False, "", 0) if is_zero else value_of(begun)
                if value not in found:
                    found.add(value)
                    yield value
            if is_fixed:
                continue
            for byte in b"7153908642.-+eE":  # PERF: digits with which few numbers of a text go on
                after, longer = self.rows[at][byte], _shortened(begun + bytes([byte]))
                if after >= 0 and (after, longer) not in seen:
                    seen.add((after, longer))
                    todo.append((after, longer))


def _only_zeros(rows: list[list[int]]) -> list[bool]:
    """For each state of an automaton over bytes, whether no byte but zeros can come any more."""
    found = [all(after < 0 or byte == ord("0") for byte, after in enumerate(row)) for row in rows]
    changed = True
    while changed:
        changed = False
        for state, row in enumerate(rows):
            if found[state] and not all(found[after] for after in row if after >= 0):
                found[state], changed = False, True
    return found


def _is_zero_with_exponent(text: bytes) -> bool:
    mantissa, mark, _ = text.lower().partition(b"e")
    return bool(mark) and not mantissa.strip(b"+-.0")


def _shortened(text: bytes) -> bytes:
    """A beginning of the same values: without the zeros that begin the exponent, but the last."""
    mantissa, mark, exponent = text.lower().partition(b"e")
    if not mark:
        return text
    sign = exponent[:1] if exponent[:1] in (b"+", b"-") else b""
    digits = exponent[len(sign) :]
    return mantissa + mark + sign + (digits.lstrip(b"0") or digits[:1])
