"""What one keyword asks of the values of one JSON type, and what is left where it is not met.

A *clause* is a list of constraints on one type, all of which a value meets. The values of a schema
are, for each type, those of some clauses (`normal.py`). Terms are those of `documents.py`: a
subschema's number times two, plus one where it is negated.

PERF: constraints never change, but are not `frozen`: to make one would take three times as long,
and an object with five members has six of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from maskwright.analysis.kept import size
from maskwright.analysis.marks import part_of_format
from maskwright.analysis.schema.strings import format_most, has_automaton, is_one_sided, repeated_class

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT = "null", "boolean", "number", "string", "array", "object"
TYPES = (NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT)

TRUE, FALSE = 0, 1
"""The terms that every value and no value satisfies."""


@dataclass(unsafe_hash=True, slots=True)
class Among:
    """A null, boolean, number or string that is one of `values`, or that is none of them.

    values : of one type: Decimals for numbers, str for strings, `None`, and bools.
    """

    values: frozenset[Any]
    is_among: bool

    @property
    def nbytes(self) -> int:
        """About the bytes of the values, for caches (`analysis.kept`)."""
        return size(self.values)


@dataclass(unsafe_hash=True, slots=True)
class Length:
    """A string of `least` to `most` characters (Unicode scalar values).

    most : None for no limit.
    """

    least: int
    most: int | None


@dataclass(unsafe_hash=True, slots=True)
class Pattern:
    """A string in which a pattern is found, or is not.

    text : as ECMA 262 reads it.
    is_counted : whether the number of characters matters; False only for a pattern that does
        nothing but repeat a set (`repeated_class`).
    """

    text: str
    is_found: bool
    is_counted: bool = True

    @property
    def nbytes(self) -> int:
        """The bytes of the text, for caches."""
        return len(self.text)


@dataclass(unsafe_hash=True, slots=True)
class Format:
    """A string that is surely of a format, or that is surely none (`formats.py`)."""

    name: str
    is_one: bool


@dataclass(unsafe_hash=True, slots=True)
class Bound:
    """A number at least or at most `value`."""

    value: Decimal
    is_lower: bool
    is_exclusive: bool


@dataclass(unsafe_hash=True, slots=True)
class Multiple:
    """A multiple of a positive number, or a number that is none."""

    of: Decimal
    is_multiple: bool


@dataclass(unsafe_hash=True, slots=True)
class Whole:
    """An integer, or a number that is none. with_fraction : whether 1.0 is an integer."""

    is_whole: bool
    with_fraction: bool


@dataclass(unsafe_hash=True, slots=True)
class Size:
    """An array of `least` to `most` items, or an object of as many members.

    most : None for no limit.
    """

    least: int
    most: int | None


@dataclass(unsafe_hash=True, slots=True)
class Items:
    """An array whose items satisfy terms: the first ones each its own, the others `others`."""

    first: tuple[int, ...]
    others: int


@dataclass(unsafe_hash=True, slots=True)
class Contains:
    """An array in which `least` to `most` items from offset `start` on satisfy a term."""

    start: int
    term: int
    least: int
    most: int | None


@dataclass(unsafe_hash=True, slots=True)
class Unique:
    """An array without equal items. pointer : where that is asked."""

    pointer: str


@dataclass(unsafe_hash=True, slots=True)
class Equal:
    """An array with equal items, of which only is known that no `Unique` array is one.

    pointer : where that is asked.
    """

    pointer: str


@dataclass(eq=False, slots=True)
class Members:
    """An object whose members satisfy terms. One is equal to itself only.

    names : the terms of members by name.
    patterns : the terms of members whose name has a pattern; several may apply to one.
    others : the term of members to which none of those applies.
    forbidden : the names of members that may not be there.
    """

    names: dict[str, int]
    patterns: tuple[tuple[str, int], ...]
    others: int
    forbidden: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        forbidden = [name for name, term in self.names.items() if term == FALSE] if FALSE in self.names.values() else ()
        self.forbidden = frozenset(forbidden)


@dataclass(unsafe_hash=True, slots=True)
class Names:
    """An object whose members' names satisfy a term."""

    term: int


@dataclass(unsafe_hash=True, slots=True)
class Required:
    """An object with a member of that name."""

    name: str


@dataclass(unsafe_hash=True, slots=True)
class Some:
    """An object with a member that satisfies `value`, and whose name all of the following allow.

    but_names : it is none of these.
    but_patterns : it has none of these patterns.
    pattern : it has this pattern; None for any name.
    name : it satisfies this term.
    pointer : where that is asked.
    """

    value: int
    but_names: frozenset[str]
    but_patterns: tuple[str, ...]
    pattern: str | None
    name: int
    pointer: str


@dataclass(unsafe_hash=True, slots=True)
class Refused:
    """What cannot be said exactly. reason : in words, behind the pointer."""

    pointer: str
    reason: str


@dataclass(unsafe_hash=True, slots=True)
class SeenMembers:
    """No constraint: these members count as evaluated. is_all : all members do."""

    names: frozenset[str]
    patterns: tuple[str, ...]
    is_all: bool


@dataclass(unsafe_hash=True, slots=True)
class SeenItems:
    """No constraint: the first `first` items count as evaluated, None for all of them."""

    first: int | None


@dataclass(unsafe_hash=True, slots=True)
class SeenContained:
    """No constraint: the items that satisfy a term count as evaluated."""

    term: int


SEEN = (SeenMembers, SeenItems, SeenContained)

Constraint = (
    Among
    | Length
    | Pattern
    | Format
    | Bound
    | Multiple
    | Whole
    | Size
    | Items
    | Contains
    | Unique
    | Equal
    | Members
    | Names
    | Required
    | Some
    | Refused
    | SeenMembers
    | SeenItems
    | SeenContained
)
Clause = tuple[Constraint, ...]
"""Constraints in the order in which they were met, without repetition."""

Normal = dict[str, tuple[Clause, ...]]
"""Type -> the clauses of which a value of that type meets at least one; a type that is not there
has no values."""

ANYTHING: Normal = {name: ((),) for name in TYPES}


def negated(term: int) -> int:
    """The term that just the other values satisfy."""
    return term ^ 1


def outside_clause(clause: Clause, pointer: str) -> list[Clause]:
    """The clauses of the values of the same type that do not meet a clause.

    pointer : as for `outside`.

    A member that must be there and satisfy a term is not there or does not satisfy it: that is one
    clause, not two, so that n such members of as many branches do not make 2 ** n clauses.
    """
    members = [one for one in clause if isinstance(one, Members)]
    found: list[Clause] = []
    merged: set[str] = set()
    if members:
        for one in clause:
            if isinstance(one, Required):
                terms = [m.names[one.name] for m in members if one.name in m.names]
                if terms and FALSE not in terms:
                    merged.add(one.name)
                    if terms.count(TRUE) == len(terms):
                        found.append((absent(one.name),))
                    found.extend((Members({one.name: negated(term)}, (), TRUE),) for term in terms if term != TRUE)
    for one in clause:
        if isinstance(one, Required) and one.name in merged:
            continue
        if isinstance(one, Members) and not merged.isdisjoint(one.names):
            one = Members(
                {name: TRUE if name in merged else term for name, term in one.names.items()}, one.patterns, one.others
            )
        found.extend(outside(one, pointer))
    return found


def outside(constraint: Constraint, pointer: str) -> list[Clause]:
    """The clauses of the values of the same type that do not meet a constraint.

    pointer : of the schema that is negated, for what cannot be said.
    """
    match constraint:
        case Among(values, is_among):
            return [(Among(values, not is_among),)]
        case Length(least, most):
            return _outside_range(Length, least, most)
        case Size(least, most):
            return _outside_range(Size, least, most)
        case Pattern():
            return _outside_pattern(constraint)
        case Format(name, is_one):
            return _outside_format(name, is_one, pointer)
        case Bound(value, is_lower, is_exclusive):
            return [(Bound(value, not is_lower, not is_exclusive),)]
        case Multiple(of, is_multiple):
            return [(Multiple(of, not is_multiple),)]
        case Whole(is_whole, with_fraction):
            return [(Whole(not is_whole, with_fraction),)]
        case Items() | Contains() | Unique() | Equal():
            return _outside_array(constraint, pointer)
        case Members() | Names() | Required():
            return _outside_object(constraint, pointer)
        case Refused():
            return [(constraint,)]
        case Some():
            return [(Refused(constraint.pointer, "what it excludes cannot be negated twice"),)]
    return []


def _outside_pattern(one: Pattern) -> list[Clause]:
    repeated = repeated_class(one.text) if one.is_found and one.is_counted else None
    if repeated is None or has_automaton(one.text):
        return [(Pattern(one.text, not one.is_found, one.is_counted),)]
    _, least, most = repeated
    return [(Pattern(one.text, False, False),), *_outside_range(Length, least, most)]


def _outside_format(name: str, is_one: bool, pointer: str) -> list[Clause]:
    if part_of_format(name) is not None:
        return [(Refused(pointer, "a part of another language is negated"),)]
    if is_one_sided(name):
        return [(Refused(pointer, f"the format {name} is negated, and not all of its strings are known"),)]
    most = format_most(name)
    if not is_one or most is None:
        return [(Format(name, not is_one),)]
    return [(Format(name, False),), (Length(most + 1, None),)]


def _outside_range(kind: type[Length] | type[Size], least: int, most: int | None) -> list[Clause]:
    found: list[Clause] = []
    if least > 0:
        found.append((kind(0, least - 1),))
    if most is not None:
        found.append((kind(most + 1, None),))
    return found


def _outside_array(constraint: Items | Contains | Unique | Equal, pointer: str) -> list[Clause]:
    if isinstance(constraint, Unique):
        return [(Size(2, None), Equal(constraint.pointer))]
    if isinstance(constraint, Equal):
        return [(Unique(constraint.pointer),)]
    found: list[Clause] = []
    if isinstance(constraint, Contains):
        start, term, most = constraint.start, constraint.term, constraint.most
        if constraint.least > 0:
            found.append((contains(start, term, 0, constraint.least - 1),))
        if most is not None:
            found.append((contains(start, term, most + 1, None),))
        return found
    first, others = constraint.first, constraint.others
    for i, term in enumerate(first):
        if term != TRUE:
            found.append((Size(i + 1, None), Items((TRUE,) * i + (negated(term),), TRUE)))
    if others == FALSE:
        found.append((Size(len(first) + 1, None),))
    elif others != TRUE:
        found.append((Contains(len(first), negated(others), 1, None),))
    return found


def contains(start: int, term: int, least: int, most: int | None) -> Contains | Items | Size:
    """The constraint that `least` to `most` items from `start` on satisfy a term."""
    if most is not None and most < least:
        return Size(1, 0)
    if most == 0:
        return Items((TRUE,) * start, negated(term))
    if term == TRUE:
        return Size(least + start if least else 0, None if most is None else most + start)
    return Contains(start, term, least, most)


def _outside_object(constraint: Members | Names | Required, pointer: str) -> list[Clause]:
    nothing: frozenset[str] = frozenset()
    if isinstance(constraint, Required):
        return [(absent(constraint.name),)]
    if isinstance(constraint, Names):
        return [(Some(TRUE, nothing, (), None, negated(constraint.term), pointer),)]
    found: list[Clause] = []
    for name, term in constraint.names.items():
        if term == FALSE:
            found.append((Required(name),))
        elif term != TRUE:
            found.append((Required(name), Members({name: negated(term)}, (), TRUE)))
    for text, term in constraint.patterns:
        if term != TRUE:
            found.append((Some(negated(term), nothing, (), text, TRUE, pointer),))
    if constraint.others != TRUE:
        patterns = tuple(text for text, _ in constraint.patterns)
        value = negated(constraint.others)
        if constraint.names or patterns or value != TRUE:
            found.append((Some(value, frozenset(constraint.names), patterns, None, TRUE, pointer),))
        else:
            found.append((Size(1, None),))
    return found


_ABSENT: dict[str, Members] = {}


def absent(name: str) -> Members:
    """The constraint that an object has no member of a name."""
    found = _ABSENT.get(name)
    if found is None:
        if len(_ABSENT) > 10_000:
            _ABSENT.clear()
        found = _ABSENT[name] = Members({name: FALSE}, (), TRUE)
    return found
