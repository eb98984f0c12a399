"""Numbers of JSON by value: which numbers are equal, and whether a new one can still be spelled."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


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


_ZERO = Number(False, "", 0)


class NumberAutomaton:
    """The numbers of an automaton over bytes.

    rows : the next state for each state and byte, -1 for none.
    accepting : whether each state accepts.
    """

    def __init__(self, rows: list[list[int]], accepting: list[bool]) -> None:
        self.rows = rows
        self.accepting = accepting
        self._ends_with_zeros = _only_zeros(rows)

    def has_new(self, state: int, text: bytes, known: Collection[Number]) -> bool:
        """Whether some number that begins with `text` is accepted, and equal to none of `known`.

        state : behind `text`.
        """
        return not known or self.find_new(state, text, known) is not None

    def find_new(self, state: int, text: bytes, known: Collection[Number]) -> Number | None:
        """A number that begins with `text` and is equal to none of `known`; None if there is none.

        state : behind `text`.

        It follows only beginnings whose significant digits are those of a known number, so there
        are few. Each run of zeros is followed as long as some of its continuations could be new for
        the first time: of more than `states * (known + 1)` zeros as many continuations with other
        values exist as there are known numbers, and one more.
        """
        most_zeros = len(self.rows) * (len(known) + 2) + max((len(one.digits) for one in known), default=0)
        seen = set()
        todo = [(state, text)]
        if _is_zero_with_exponent(text):
            return None if _ZERO in known else _ZERO
        if (found := self._longer(state, text, known)) is not None:
            return found
        for at, begun in todo:  # grows while it is read
            if self._must_be_new(begun, known):
                return value_of(begun + self._shortest(at))
            if self.accepting[at] and value_of(begun) not in known:
                return value_of(begun)
            if _is_zero_with_exponent(begun):
                continue  # that number is known
            if self._ends_with_zeros[at] and b"." in begun and value_of(begun) in known:
                continue  # PERF: more zeros do not change the number
            for byte in b"0123456789.+-eE":
                after = self.rows[at][byte]
                longer = _shortened(begun + bytes([byte]))
                is_near = len(longer) - len(longer.rstrip(b"0")) <= most_zeros
                if after >= 0 and is_near and (after, longer) not in seen:
                    seen.add((after, longer))
                    todo.append((after, longer))
        return None

    def _longer(self, state: int, text: bytes, known: Collection[Number]) -> Number | None:
        """A number equal to none of `known` that has more and more digits, if that leads to one.

        PERF: it does nearly always, where `find_new` would look at all beginnings of known numbers.
        """
        there = frozenset(known)
        for _ in range(max((len(one.digits) for one in known), default=0) + 2):
            if self.accepting[state] and (found := value_of(text)) not in there:
                return found
            byte = next((byte for byte in b"7153908642." if self.rows[state][byte] >= 0), None)
            if byte is None:
                break
            state, text = self.rows[state][byte], text + bytes([byte])
        return None

    def _shortest(self, state: int) -> bytes:
        """A shortest text from a state to one that accepts."""
        todo, seen = [(state, b"")], {state}
        for at, text in todo:  # grows while it is read
            if self.accepting[at]:
                return text
            for byte in b"0123456789.+-eE":
                after = self.rows[at][byte]
                if after >= 0 and after not in seen:
                    seen.add(after)
                    todo.append((after, text + bytes([byte])))
        raise ValueError("a state of a number's automaton leads to no end")

    def _must_be_new(self, text: bytes, known: Collection[Number]) -> bool:
        """Whether no number that begins so is known."""
        mantissa, mark, exponent = text.decode("ascii").lower().partition("e")
        digits = mantissa.lstrip("+-").replace(".", "").lstrip("0")
        is_negative = mantissa.startswith("-")
        if not digits:
            return bool(mark) and _ZERO not in known
        near = [
            one
            for one in known
            if one.is_negative == is_negative and one.digits.ljust(len(digits), "0").startswith(digits)
        ]
        if not mark or not exponent.lstrip("+-"):
            return not near
        ours = value_of(mantissa.encode())
        limit = max((abs(one.exponent - ours.exponent) for one in near if one.digits == ours.digits), default=-1)
        return abs(_integer(exponent)) > limit


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


def _integer(text: str) -> int:
    """The value of an integer of any length; Python's `int` takes 4,300 digits at most."""
    digits = text.lstrip("+-")
    value = 0
    for begin in range(0, len(digits), 4000):
        part = digits[begin : begin + 4000]
        value = value * 10 ** len(part) + int(part)
    return -value if text.startswith("-") else value


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
