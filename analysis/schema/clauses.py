"""Conjunctions of clauses.

Constraints that say the same thing become one, and contradictions go away.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import SchemaError
from maskwright.analysis.marks import part_of_format
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.strings import format_automaton, format_most, pattern_parts, widest_format


def joined(kind: str, left: c.Clause, right: c.Clause) -> c.Clause | None:
    """The conjunction of two clauses of a type; None if it is plain that no value meets both."""
    if not left:
        return right
    if not right:
        return left
    if len(left) == len(right) == 1:  # PERF: constants of branches meet in pairs
        one, other = left[0], right[0]
        if isinstance(one, c.Among) and isinstance(other, c.Among):
            return _listed(kind, one, other)
    look()
    found = tuple(dict.fromkeys(left + right))
    if len(found) == len(left):
        return left
    return simplified(kind, found)


def simplified(kind: str, clause: c.Clause) -> c.Clause | None:
    """A clause that says the same in fewer constraints.

    Returns None if it is plain that it has no value.
    """
    if kind == c.STRING:
        merged = _ranged(clause, c.Length)
    elif kind == c.NUMBER:
        merged = _bounded(clause)
    elif kind == c.OBJECT:
        merged = _ranged(clause, c.Size)
        merged = merged if merged is None else _named(merged)
        return None if merged is None or _lacks_members(merged) else merged
    elif kind == c.ARRAY:
        kinds = {one.__class__ for one in clause}
        return None if c.Unique in kinds and c.Equal in kinds else _ranged(clause, c.Size)
    else:
        merged = clause
    return None if merged is None else _chosen(kind, merged)


def _ranged(clause: c.Clause, kind: type[c.Length] | type[c.Size]) -> c.Clause | None:
    """The clause with at most one range; None for an empty range."""
    ranges = [one for one in clause if isinstance(one, kind)]
    if not ranges:
        return clause
    least = max(one.least for one in ranges)
    limits = [one.most for one in ranges if one.most is not None]
    most = min(limits, default=None)
    if most is not None and most < least:
        return None
    if len(ranges) == 1:
        return clause
    rest = tuple(one for one in clause if not isinstance(one, kind))
    return (*rest, kind(least, most))


def _bounded(clause: c.Clause) -> c.Clause | None:
    """The clause with at most one bound on each side; None if they exclude one another."""
    bounds = [one for one in clause if isinstance(one, c.Bound)]
    if len(bounds) < 2:
        return clause
    lower = max((one for one in bounds if one.is_lower), key=lambda one: (one.value, one.is_exclusive), default=None)
    upper = min(
        (one for one in bounds if not one.is_lower), key=lambda one: (one.value, not one.is_exclusive), default=None
    )
    if lower and upper:
        if lower.value > upper.value:
            return None
        if lower.value == upper.value and (lower.is_exclusive or upper.is_exclusive):
            return None
    rest = tuple(one for one in clause if not isinstance(one, c.Bound))
    return (*rest, *(one for one in (lower, upper) if one))


def _lacks_members(clause: c.Clause) -> bool:
    """Whether a required member may not be there, as far as that is plain."""
    required = {one.name for one in clause if isinstance(one, c.Required)}
    if not required:
        return False
    for one in clause:
        if isinstance(one, c.Members):
            if one.others == c.FALSE and not one.patterns and not required <= one.names.keys():
                return True
            if not one.forbidden.isdisjoint(required):
                return True
        elif isinstance(one, c.Size) and one.most is not None and len(required) > one.most:
            return True
    return False


def _named(clause: c.Clause) -> c.Clause | None:
    """The clause in which a member that must be there has a name, if only one may be that member.

    Returns None if none may be.
    """
    if not any(one.__class__ is c.Some for one in clause):
        return clause
    names: set[str] | None = None  # those that may be there, if all are named
    for one in clause:
        if isinstance(one, c.Members) and one.others == c.FALSE and not one.patterns:
            some = one.names.keys() - one.forbidden
            names = some if names is None else names & some
    required = {one.name for one in clause if isinstance(one, c.Required)}
    found: list[c.Constraint] = []
    for one in clause:
        if not isinstance(one, c.Some) or one.pattern is not None or one.but_patterns or one.name != c.TRUE:
            found.append(one)
        elif one.value == c.TRUE and not required <= one.but_names:
            continue  # it is there
        elif names is None or len(names - one.but_names) > 1:
            found.append(one)
        elif names <= one.but_names:
            return None
        else:
            (name,) = names - one.but_names
            found.append(c.Required(name))
            if one.value != c.TRUE:
                found.append(c.Members({name: one.value}, (), c.TRUE))
    return tuple(dict.fromkeys(found))


_ALL = {c.NULL: frozenset({None}), c.BOOLEAN: frozenset({False, True})}


def _chosen(kind: str, clause: c.Clause) -> c.Clause | None:
    """The clause whose values are listed, if there is a list of them; None if it becomes empty."""
    among = [one for one in clause if isinstance(one, c.Among)]
    if not among:
        return clause
    values: frozenset[Any] | None = _ALL.get(kind)
    without: frozenset[Any] = frozenset()
    for one in among:
        if not one.is_among:
            without |= one.values
        else:
            values = one.values if values is None else values & one.values
    rest = tuple(one for one in clause if not isinstance(one, c.Among))
    if values is None:
        return (*rest, c.Among(without, False))
    values -= without
    tests = [one for one in rest if not isinstance(one, (c.Refused, *c.SEEN))]
    if tests:
        values = frozenset(value for value in values if all(admits(one, value) for one in tests))
    if not values:
        return None
    return (*(one for one in rest if _is_kept(one)), c.Among(values, True))


def _listed(kind: str, one: c.Among, other: c.Among) -> c.Clause | None:
    """As `_chosen`, of a clause of two lists."""
    if one.is_among:
        values = one.values & other.values if other.is_among else one.values - other.values
    elif other.is_among:
        values = other.values - one.values
    elif kind in _ALL:
        values = _ALL[kind] - one.values - other.values
    else:
        return (c.Among(one.values | other.values, False),)
    return (c.Among(values, True),) if values else None


def _is_kept(constraint: c.Constraint) -> bool:
    """Whether a constraint says something of values that are listed and that it admits."""
    return isinstance(constraint, (c.Refused, c.Whole, *c.SEEN))


def admits(constraint: c.Constraint, value: Any) -> bool:
    """Whether a string or a number (a Decimal) meets a constraint.

    Raises: SchemaError for a pattern that cannot be used.
    """
    match constraint:
        case c.Among(values, is_among):
            return (value in values) == is_among
        case c.Length(least, most):
            return least <= len(value) and (most is None or len(value) <= most)
        case c.Pattern(text, is_found, is_counted):
            letters, low, high = pattern_parts(text, is_counted)
            is_long_enough = low <= len(value) and (high is None or len(value) <= high)
            return (is_long_enough and _matches(value, letters)) == is_found
        case c.Format(name, is_one):
            if part_of_format(name) is not None:
                raise SchemaError(
                    "a part of another language is combined with constants of strings: say one of the two"
                )
            dfa, longest = format_automaton(name) if is_one else widest_format(name), format_most(name)
            fits = not is_one or longest is None or len(value) <= longest
            return dfa is None or (_matches(value, dfa) == is_one and fits)
        case c.Bound(bound, is_lower, is_exclusive):
            if value == bound:
                return not is_exclusive
            return bool(value > bound) == is_lower
        case c.Multiple(of, is_multiple):
            return is_multiple_of(value, of) == is_multiple
        case c.Whole(is_whole, with_fraction):
            is_integral = bool(value == value.to_integral_value())
            # where 1.0 is no integer, but 1 is, the spelling decides
            return is_integral == is_whole or (is_integral and not with_fraction)
    return True


def _matches(text: str, dfa: Any) -> bool:
    return bool(dfa.matches(text.encode("utf-8", "surrogatepass")))


def is_multiple_of(value: Decimal, of: Decimal) -> bool:
    """Whether one number is a multiple of another, exactly."""
    a, b = value.as_integer_ratio(), of.as_integer_ratio()
    return a[0] * b[1] % (a[1] * b[0]) == 0


def absorbed(clauses: Iterable[c.Clause]) -> tuple[c.Clause, ...]:
    """The clauses without repetitions, and without those that ask for more than another one.

    Of two clauses that ask for the same, the one in which more counts as evaluated allows more.
    """
    look()
    distinct: dict[frozenset[c.Constraint], c.Clause] = {}
    for clause in clauses:
        distinct.setdefault(frozenset(clause), clause)
    if not 1 < len(distinct) <= 300:
        return tuple(distinct.values())
    if not any(isinstance(one, c.SEEN) for whole in distinct for one in whole):
        return tuple(clause for whole, clause in distinct.items() if not any(other < whole for other in distinct))
    parts = [_parted(whole) for whole in distinct]
    return tuple(
        clause
        for (asked, seen), clause in zip(parts, distinct.values(), strict=True)
        if not any(a <= asked and s >= seen and (a, s) != (asked, seen) for a, s in parts)
    )


def _parted(clause: frozenset[c.Constraint]) -> tuple[frozenset[c.Constraint], frozenset[c.Constraint]]:
    """What a clause asks for, and what counts as evaluated in it."""
    seen = frozenset(one for one in clause if isinstance(one, c.SEEN))
    return clause - seen, seen
