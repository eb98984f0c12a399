"""Which spellings of JSON numbers have a value within bounds, and so on: automata over bytes.

A number is spelled as in RFC 8259, section 6. Where its value matters it is spelled without an
exponent, since a finite automaton cannot weigh one against the digits before it. So `type: number`
takes `1e5`, and `minimum: 3` takes `100000` only.

In: exact decimals. Out: minimal `Dfa`, each kept for a second request.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Protocol

import numpy as np

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex import Dfa, ecma
from maskwright.analysis.regex.spell import of_columns, spell
from maskwright.analysis.schema.constraints import Bound
from maskwright.analysis.schema.strings import literals

MOST_STATES = 20_000
"""BOUND: the states of an automaton of numbers before it is made minimal."""
MOST_DIGITS = 2_000
"""BOUND: the digits of a number, spelled without an exponent. A double has at most 1,100."""
_COLUMN_OF = np.full(256, -1, np.intp)
"""The column of each byte of a number without an exponent in `constrained`."""
_COLUMN_OF[list(b"0123456789-.")] = np.arange(12)


class _Condition(Protocol):
    """What is kept of the digits of a number, so as to say something of its value."""

    def begin(self, minus: bool) -> Any:
        """What is kept before the first digit; whether the number has a minus."""

    def whole(self, kept: Any, digit: int) -> Any | None:
        """What is kept after one more digit before the point; None for a number that is refused."""

    def point(self, kept: Any) -> Any:
        """What is kept where the digits before the point are over."""
        return kept

    def fraction(self, kept: Any, digit: int) -> Any | None:
        """What is kept after one more digit behind the point; None for a number that is refused."""

    def accepts(self, kept: Any) -> bool:
        """Whether the number may end with this, which has passed `point`."""


class _Spelled(_Condition):
    """A number as it is spelled.

    whole : None, or that it is a whole number, and whether zeros may stand behind its point.
    is_natural : whether people write it so: not `-0`, and not `1.0` for a whole one.
    """

    def __init__(self, whole: bool | None, is_natural: bool) -> None:
        self._has_fraction, self._is_whole = whole is None or (whole and not is_natural), whole is not None
        self._is_natural = is_natural

    def begin(self, minus: bool) -> Any:
        return minus and self._is_natural  # whether it is -0 as yet, which it may not stay

    def whole(self, kept: Any, digit: int) -> Any | None:
        return kept and not digit

    def fraction(self, kept: Any, digit: int) -> Any | None:
        return kept and not digit if self._has_fraction and not (digit and self._is_whole) else None

    def accepts(self, kept: Any) -> bool:
        return not kept


def _digits(value: Decimal) -> tuple[str, str]:
    """The digits of a magnitude before and behind the point, without needless zeros.

    Raises: LimitError if there are more than `MOST_DIGITS`.
    """
    _, digits, exponent = value.as_tuple()
    if max(len(digits), len(digits) + int(exponent), -int(exponent)) > MOST_DIGITS:
        raise LimitError(f"a number has more than {MOST_DIGITS:,} digits without its exponent")
    whole, _, fraction = format(value.copy_abs(), "f").partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0")


class _Bounded(_Condition):
    """A number on one side of a bound.

    What is kept: the sign, and how the digits so far compare with those of the bound's magnitude:
    -1, 0 or 1, with the number of digits compared while that is 0. More digits before the point
    than the bound has make a greater number.
    """

    def __init__(self, limit: Bound) -> None:
        self._limit = limit
        self._is_negative = limit.value < 0
        whole, fraction = _digits(limit.value)
        self._digits = [int(digit) for digit in whole]
        self._behind = [int(digit) for digit in fraction]

    def begin(self, minus: bool) -> Any:
        return minus, 0, 0

    def whole(self, kept: Any, digit: int) -> Any | None:
        minus, order, n = kept
        if n == len(self._digits):
            return minus, 1, n
        return minus, order or (digit > self._digits[n]) - (digit < self._digits[n]), n + 1

    def point(self, kept: Any) -> Any:
        minus, order, n = kept
        return minus, order if n == len(self._digits) else -1, 0

    def fraction(self, kept: Any, digit: int) -> Any | None:
        minus, order, n = kept
        if order:
            return kept
        other = self._behind[n] if n < len(self._behind) else 0
        order = (digit > other) - (digit < other)
        return minus, order, 0 if order else min(n + 1, len(self._behind))

    def accepts(self, kept: Any) -> bool:
        minus, order, n = kept
        if order == 0 and n < len(self._behind):
            order = -1
        # the order of the values, from that of the magnitudes
        if minus != self._is_negative:
            is_zero = order == 0 and self._limit.value == 0
            order = 0 if is_zero else -1 if minus else 1
        elif minus:
            order = -order
        if order == 0:
            return not self._limit.is_exclusive
        return bool((order > 0) == self._limit.is_lower)


class _Multiple(_Condition):
    """A multiple of q * 10^k / 10^places: k or places is 0, and q not divisible by 10 if places is.

    What is kept: of the digits read as one integer, the zeros at its end, up to k, and what is
    before these zeros, modulo q; and how many digits stood behind the point, up to `places`. The
    digits behind these must be zeros. The integer 0 has k zeros.
    """

    def __init__(self, of: Decimal) -> None:
        """of : positive. Raises: LimitError if too much would be kept."""
        whole, fraction = _digits(of)
        self._places = len(fraction)
        self._k = 0 if fraction else len(whole) - len(whole.rstrip("0"))
        self._q = int(whole + fraction) // 10**self._k
        if self._q * (self._places + 2) > MOST_STATES:
            raise LimitError(
                f"multiples of {of} need an automaton with about as many states as the number has without its zeros and "
                f"its point, more than {MOST_STATES:,}"
            )

    def begin(self, minus: bool) -> Any:
        return 0, self._k, 0

    def whole(self, kept: Any, digit: int) -> Any | None:
        remainder, zeros, _ = kept
        if digit == 0 and zeros < self._k:
            return remainder, zeros + 1, 0
        if digit == 0:
            return remainder * 10 % self._q, zeros, 0
        return (remainder * pow(10, zeros + 1, self._q) + digit) % self._q, 0, 0

    def fraction(self, kept: Any, digit: int) -> Any | None:
        remainder, zeros, n = kept
        if n == self._places:
            return None if digit else kept
        return (remainder * 10 + digit) % self._q, zeros, n + 1

    def accepts(self, kept: Any) -> bool:
        remainder, zeros, n = kept
        return bool(zeros == self._k and remainder * pow(10, self._places - n, self._q) % self._q == 0)


@Kept
def constrained(
    limits: frozenset[Bound], multiples_of: frozenset[Decimal], whole: bool | None, is_natural: bool
) -> Dfa:
    """All numbers without an exponent that meet several conditions, made in one go.

    limits : bounds.
    multiples_of : positive numbers, of all of which it is a multiple.
    whole : None, or that it is a whole number, and whether `1.0` is one.
    is_natural : whether only spellings count that people write: not `-0`, and not `1.0` for a whole
        number.

    Raises: LimitError for a number with more than `MOST_DIGITS` digits, and if there are more than
    `MOST_STATES` states.

    Example:
        >>> at_least_3 = frozenset([Bound(Decimal(3), True, False)])
        >>> constrained(at_least_3, frozenset(), True, False).matches(b"12")
        True
    """
    conditions: list[_Condition] = [_Bounded(limit) for limit in limits]
    conditions += [_Multiple(of) for of in sorted(multiples_of)]
    if is_natural or whole is not None:
        conditions.append(_Spelled(whole, is_natural))
    start = ("start", tuple([one.begin(False) for one in conditions]))
    number = {start: 0}
    states = [start]
    rows: list[list[int]] = []
    is_accepting: list[bool] = []

    def state(phase: str, kept: tuple[Any, ...]) -> int:
        found = number.setdefault((phase, kept), len(states))
        if found == len(states):
            states.append((phase, kept))
            if found >= MOST_STATES:
                raise LimitError(f"the automaton of its numbers has more than {MOST_STATES:,} states")
        return found

    for phase, kept in states:  # grows while it is read
        look()
        row = [-1] * 12
        rows.append(row)
        is_behind = phase in {"point", "fraction"}
        if phase != "zero":
            for digit in range(10):
                after = []
                for one, value in zip(conditions, kept, strict=True):
                    found = one.fraction(value, digit) if is_behind else one.whole(value, digit)
                    if found is None:
                        break
                    after.append(found)
                else:
                    name = "fraction" if is_behind else "whole" if phase == "whole" or digit else "zero"
                    row[digit] = state(name, tuple(after))
        if phase == "start":
            row[10] = state("minus", tuple([one.begin(True) for one in conditions]))
        passed = kept
        if phase in {"zero", "whole"}:
            passed = tuple([one.point(value) for one, value in zip(conditions, kept, strict=True)])
            row[11] = state("point", passed)
        ends = phase in {"zero", "whole", "fraction"}
        is_accepting.append(ends and all(one.accepts(value) for one, value in zip(conditions, passed, strict=True)))
    return of_columns(rows, is_accepting, _COLUMN_OF)


@Kept
def equal_to(values: frozenset[Decimal], is_natural: bool) -> Dfa:
    """All spellings without an exponent of some numbers. Raises: as `constrained`.

    is_natural : whether without needless zeros: of one that is whole, `1` and `1.0`.
    """
    parts = [(value, *_digits(value)) for value in sorted(values)]
    if not is_natural:
        texts = [
            f"{'-' if value < 0 else '' if value else '-?'}{whole}" + (rf"\.{fraction}0*" if fraction else r"(?:\.0+)?")
            for value, whole, fraction in parts
        ]
        return spell(ecma.parse("|".join(texts)), MOST_STATES) if texts else literals(())
    texts = [f"{'-' * (value < 0)}{whole}" for value, whole, fraction in parts if not fraction]
    texts += [f"{'-' * (value < 0)}{whole}.{fraction or 0}" for value, whole, fraction in parts]
    return literals([text.encode() for text in texts])
