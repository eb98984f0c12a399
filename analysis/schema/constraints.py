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
from functools import lru_cache
from typing import Any, Self

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.kept import size
from maskwright.analysis.marks import part_of_format
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema import strings
from maskwright.analysis.schema.formats import LONGEST

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT = "null", "boolean", "number", "string", "array", "object"
TYPES = (NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT)
TRUE, FALSE = 0, 1
"""The terms that every value and no value satisfies."""


class Constraint:
    """What a keyword asks of the values of one type; or, of no values, which count as evaluated."""

    __slots__ = ()

    def outside(self, pointer: str) -> list[Clause]:
        """The clauses of the values of the same type that do not meet it.

        pointer : of the schema that is negated, for what cannot be said.
        """
        return []

    def admits(self, value: Any) -> bool:
        """Whether a string or a number (a Decimal) meets it.

        Raises: SchemaError for a pattern that cannot be used.
        """
        return True


Clause = tuple[Constraint, ...]
"""Constraints in the order in which they were met, without repetition."""
Normal = dict[str, tuple[Clause, ...]]
"""Type -> the clauses of which a value of that type meets at least one; a type that is not there
has no values."""
ANYTHING: Normal = {name: ((),) for name in TYPES}


# -- scalars


@dataclass(unsafe_hash=True, slots=True)
class Among(Constraint):
    """A null, boolean, number or string that is one of `values`, or that is none of them.

    values : of one type: Decimals for numbers, str for strings, `None`, and bools.
    """

    values: frozenset[Any]
    is_among: bool

    @property
    def nbytes(self) -> int:
        """About the bytes of the values, for caches (`analysis.kept`)."""
        return size(self.values)

    def outside(self, pointer: str) -> list[Clause]:
        return [(Among(self.values, not self.is_among),)]

    def admits(self, value: Any) -> bool:
        return (value in self.values) == self.is_among


@dataclass(unsafe_hash=True, slots=True)
class Range(Constraint):
    """Values with `least` to `most` of something; most : None for no limit."""

    least: int
    most: int | None

    @property
    def is_empty(self) -> bool:
        """Whether there is no such number."""
        return self.most is not None and self.most < self.least

    def met(self, least: int, most: int | None) -> Self:
        """As many as this and another range allow."""
        limits = [one for one in (self.most, most) if one is not None]
        return type(self)(max(self.least, least), min(limits, default=None))

    def outside(self, pointer: str) -> list[Clause]:
        found: list[Clause] = [(type(self)(0, self.least - 1),)] if self.least > 0 else []
        return found if self.most is None else [*found, (type(self)(self.most + 1, None),)]

    def admits(self, value: Any) -> bool:
        return self.least <= len(value) and (self.most is None or len(value) <= self.most)


class Length(Range):
    """A string of `least` to `most` characters (Unicode scalar values)."""

    __slots__ = ()


class Size(Range):
    """An array of `least` to `most` items, or an object of as many members."""

    __slots__ = ()


@dataclass(unsafe_hash=True, slots=True)
class Pattern(Constraint):
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

    def outside(self, pointer: str) -> list[Clause]:
        repeated = strings.repeated_class(self.text) if self.is_found and self.is_counted else None
        if repeated is None or isinstance(strings.searched(self.text), Dfa):
            return [(Pattern(self.text, not self.is_found, self.is_counted),)]
        return [(Pattern(self.text, False, False),), *Length(*repeated[1:]).outside(pointer)]

    def admits(self, value: Any) -> bool:
        letters, least, most = strings.pattern_parts(self.text, self.is_counted)
        text = value.encode("utf-8", "surrogatepass")
        return (Length(least, most).admits(value) and letters.matches(text)) == self.is_found


@dataclass(unsafe_hash=True, slots=True)
class Format(Constraint):
    """A string that is surely of a format, or that is surely none (`formats.py`)."""

    name: str
    is_one: bool

    def outside(self, pointer: str) -> list[Clause]:
        if part_of_format(self.name) is not None:
            return [(Refused(pointer, "a part of another language is negated"),)]
        most = LONGEST.get(self.name)
        found: list[Clause] = [(Format(self.name, not self.is_one),)]
        return [*found, (Length(most + 1, None),)] if self.is_one and most is not None else found

    def admits(self, value: Any) -> bool:
        if part_of_format(self.name) is not None:
            raise SchemaError("a part of another language is combined with constants of strings: say one of the two")
        dfa = strings.format_automaton(self.name) if self.is_one else strings.widest_format(self.name)
        is_short = not self.is_one or Length(0, LONGEST.get(self.name)).admits(value)
        text = value.encode("utf-8", "surrogatepass")
        return dfa is None or (dfa.matches(text) == self.is_one and is_short)


@dataclass(unsafe_hash=True, slots=True)
class Bound(Constraint):
    """A number at least or at most `value`."""

    value: Decimal
    is_lower: bool
    is_exclusive: bool

    def outside(self, pointer: str) -> list[Clause]:
        return [(Bound(self.value, not self.is_lower, not self.is_exclusive),)]

    def admits(self, value: Any) -> bool:
        return not self.is_exclusive if value == self.value else bool(value > self.value) == self.is_lower


@dataclass(unsafe_hash=True, slots=True)
class Multiple(Constraint):
    """A multiple of a positive number, or a number that is none."""

    of: Decimal
    is_multiple: bool

    def outside(self, pointer: str) -> list[Clause]:
        return [(Multiple(self.of, not self.is_multiple),)]

    def admits(self, value: Any) -> bool:
        a, b = value.as_integer_ratio(), self.of.as_integer_ratio()
        return bool(a[0] * b[1] % (a[1] * b[0]) == 0) == self.is_multiple


@dataclass(unsafe_hash=True, slots=True)
class Whole(Constraint):
    """An integer, or a number that is none. with_fraction : whether 1.0 is an integer."""

    is_whole: bool
    with_fraction: bool

    def outside(self, pointer: str) -> list[Clause]:
        return [(Whole(not self.is_whole, self.with_fraction),)]

    def admits(self, value: Any) -> bool:
        is_integral = bool(value == value.to_integral_value())
        # where 1.0 is no integer, but 1 is, the spelling decides
        return is_integral == self.is_whole or (is_integral and not self.with_fraction)


# -- arrays


@dataclass(unsafe_hash=True, slots=True)
class Items(Constraint):
    """An array whose items satisfy terms: the first ones each its own, the others `others`."""

    first: tuple[int, ...]
    others: int

    def outside(self, pointer: str) -> list[Clause]:
        found: list[Clause] = [
            (Size(i + 1, None), Items((TRUE,) * i + (term ^ 1,), TRUE))
            for i, term in enumerate(self.first)
            if term != TRUE
        ]
        n = len(self.first)
        if self.others == FALSE:
            return [*found, (Size(n + 1, None),)]
        return found if self.others == TRUE else [*found, (Contains(n, self.others ^ 1, 1, None),)]


@dataclass(unsafe_hash=True, slots=True)
class Contains(Constraint):
    """An array in which `least` to `most` items from offset `start` on satisfy a term."""

    start: int
    term: int
    least: int
    most: int | None

    def outside(self, pointer: str) -> list[Clause]:
        others = Size(self.least, self.most).outside(pointer)
        return [(contains(self.start, self.term, one.least, one.most),) for (one,) in others if isinstance(one, Size)]


@dataclass(unsafe_hash=True, slots=True)
class Unique(Constraint):
    """An array without equal items; or one with some, of which only is known that it is none such.

    pointer : where that is asked.
    """

    pointer: str
    is_unique: bool

    def outside(self, pointer: str) -> list[Clause]:
        other = Unique(self.pointer, not self.is_unique)
        return [(Size(2, None), other)] if self.is_unique else [(other,)]


def contains(start: int, term: int, least: int, most: int | None) -> Contains | Items | Size:
    """The constraint that `least` to `most` items from `start` on satisfy a term."""
    if most is not None and most < least:
        return Size(1, 0)
    if most == 0:
        return Items((TRUE,) * start, term ^ 1)
    if term == TRUE:
        return Size(least + start if least else 0, None if most is None else most + start)
    return Contains(start, term, least, most)


# -- objects


@dataclass(eq=False, slots=True)
class Members(Constraint):
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

    def outside(self, pointer: str) -> list[Clause]:
        nothing: frozenset[str] = frozenset()
        found: list[Clause] = []
        for name, term in self.names.items():
            if term == FALSE:
                found.append((Required(name),))
            elif term != TRUE:
                found.append((Required(name), Members({name: term ^ 1}, (), TRUE)))
        for text, term in self.patterns:
            if term != TRUE:
                found.append((Some(term ^ 1, nothing, (), text, TRUE, pointer),))
        if self.others != TRUE:
            patterns, value = tuple([text for text, _ in self.patterns]), self.others ^ 1
            if self.names or patterns or value != TRUE:
                found.append((Some(value, frozenset(self.names), patterns, None, TRUE, pointer),))
            else:
                found.append((Size(1, None),))
        return found


@dataclass(unsafe_hash=True, slots=True)
class Names(Constraint):
    """An object whose members' names satisfy a term."""

    term: int

    def outside(self, pointer: str) -> list[Clause]:
        return [(Some(TRUE, frozenset(), (), None, self.term ^ 1, pointer),)]


@dataclass(unsafe_hash=True, slots=True)
class Required(Constraint):
    """An object with a member of that name."""

    name: str

    def outside(self, pointer: str) -> list[Clause]:
        return [(absent(self.name),)]


@lru_cache(maxsize=10_000)
def absent(name: str) -> Members:
    """The constraint that an object has no member of a name."""
    return Members({name: FALSE}, (), TRUE)


@dataclass(unsafe_hash=True, slots=True)
class Some(Constraint):
    """An object with a member that satisfies `value`, and whose name all of the following allow.

    but_names : it is none of these.
    but_patterns : it has none of these patterns.
    pattern : it has this pattern; None for any name.
    name : it satisfies this term.
    pointer : where that is asked.
    is_other : whether it is meant to have a key that the clause gives no name.
    """

    value: int
    but_names: frozenset[str]
    but_patterns: tuple[str, ...]
    pattern: str | None
    name: int
    pointer: str
    is_other: bool = False

    def outside(self, pointer: str) -> list[Clause]:
        return [(Refused(self.pointer, "what it excludes cannot be negated twice"),)]


# -- values of any type


@dataclass(unsafe_hash=True, slots=True)
class Refused(Constraint):
    """What cannot be said exactly. reason : in words, behind the pointer."""

    pointer: str
    reason: str

    def outside(self, pointer: str) -> list[Clause]:
        return [(self,)]


@dataclass(unsafe_hash=True, slots=True)
class SeenMembers(Constraint):
    """No constraint: these members count as evaluated. is_all : all members do."""

    names: frozenset[str]
    patterns: tuple[str, ...]
    is_all: bool


@dataclass(unsafe_hash=True, slots=True)
class SeenItems(Constraint):
    """No constraint: the first `first` items count as evaluated, None for all of them."""

    first: int | None


@dataclass(unsafe_hash=True, slots=True)
class SeenContained(Constraint):
    """No constraint: the items that satisfy a term count as evaluated."""

    term: int


SEEN = (SeenMembers, SeenItems, SeenContained)


def other_members(clause: Clause, term: int) -> Clause:
    """The constraint that a term holds for the members that do not count as evaluated."""
    seen = [one for one in clause if isinstance(one, SeenMembers)]
    if term == TRUE or any(one.is_all for one in seen):
        return ()
    names = {name: TRUE for one in seen for name in sorted(one.names)}
    patterns = {text: TRUE for one in seen for text in one.patterns}
    return (Members(names, tuple(patterns.items()), term),)


def outside_clause(clause: Clause, pointer: str) -> list[Clause]:
    """The clauses of the values of the same type that do not meet a clause.

    pointer : as for `Constraint.outside`.

    A member that must be there and satisfy a term is not there or does not satisfy it: that is one
    clause, not two, so that n such members of as many branches do not make 2 ** n clauses.
    """
    members = [one for one in clause if isinstance(one, Members)]
    found: list[Clause] = []
    merged: set[str] = set()
    for one in clause if members else ():
        if isinstance(one, Required):
            terms = [m.names[one.name] for m in members if one.name in m.names]
            if terms and FALSE not in terms:
                merged.add(one.name)
                if terms.count(TRUE) == len(terms):
                    found.append((absent(one.name),))
                found.extend((Members({one.name: term ^ 1}, (), TRUE),) for term in terms if term != TRUE)
    for one in clause:
        if isinstance(one, Required) and one.name in merged:
            continue
        if isinstance(one, Members) and not merged.isdisjoint(one.names):
            names = {name: TRUE if name in merged else term for name, term in one.names.items()}
            one = Members(names, one.patterns, one.others)
        found.extend(one.outside(pointer))
    return found
