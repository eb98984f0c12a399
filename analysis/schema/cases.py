"""Objects that a constant tells apart, as `kind: "circle"` and `kind: "square"`.

In: clauses of objects. Out: whether two of them have a value in common, and whether one says no
more than another, as far as lists of scalars decide it. PERF: a schema of n such cases meets each
with each, and each with "none of the others".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from maskwright.analysis.schema import constraints as c

Values = frozenset[Any]
"""Scalars, equal where they are the same in JSON."""


class _Lists(NamedTuple):
    """What constraints say of members by lists of scalars.

    among : name -> the values of which the member is one, if it is there.
    none_of : name -> the values of which it is none.
    is_all : whether the constraints say nothing else.
    """

    among: dict[str, Values]
    none_of: dict[str, Values]
    is_all: bool


class Case(NamedTuple):
    """What a clause says by lists of scalars. required : the names of members that are there."""

    required: frozenset[str]
    lists: _Lists


class Cases:
    """The cases of clauses, each made once.

    listed : the scalars that a location lists, if it says nothing else; else None.
    """

    def __init__(self, listed: Callable[[int], Values | None]) -> None:
        self._listed = listed
        self._members: dict[c.Members, _Lists] = {}
        self._cases: dict[int, tuple[c.Clause, Case]] = {}  # by identity, which the clause keeps

    def of(self, clause: c.Clause) -> Case:
        """The case of a clause of objects."""
        found = self._cases.get(id(clause))
        if found is None:
            found = self._cases[id(clause)] = clause, self._made(clause)
        return found[1]

    def _made(self, clause: c.Clause) -> Case:
        among: dict[str, Values] = {}
        none_of: dict[str, Values] = {}
        is_all = True
        required = []
        for one in clause:
            if one.__class__ is c.Required:
                required.append(one.name)
            elif one.__class__ is c.Members:
                lists = self._members.get(one) or self._of_members(one)
                for name, some in lists.among.items():
                    among[name] = among[name] & some if name in among else some
                for name, some in lists.none_of.items():
                    none_of[name] = none_of[name] | some if name in none_of else some
                is_all = is_all and lists.is_all
            else:
                is_all = False
        return Case(frozenset(required), _Lists(among, none_of, is_all))

    def _of_members(self, members: c.Members) -> _Lists:
        among: dict[str, Values] = {}
        none_of: dict[str, Values] = {}
        is_all = members.others == c.TRUE
        if members.patterns:
            is_all = False  # a pattern may say more of a name
        for name, term in members.names.items():
            found = self._listed(term >> 1) if term > c.FALSE else None
            if found is not None:
                (none_of if term & 1 else among)[name] = found
            elif term != c.TRUE:
                is_all = False
        made = self._members[members] = _Lists(among, none_of, is_all)
        return made


def exclude(one: Case, other: Case) -> bool:
    """Whether no object meets both clauses, as far as lists tell."""
    return _excludes(one, other) or _is_left_nothing(one, other) or _is_left_nothing(other, one)


def _excludes(one: Case, other: Case) -> bool:
    theirs = other.lists.among
    for name, values in one.lists.among.items():
        more = theirs.get(name)
        if more is not None and (name in one.required or name in other.required) and values.isdisjoint(more):
            return True
    return False


def _is_left_nothing(one: Case, other: Case) -> bool:
    """Whether a list of the one has only values that the other excludes."""
    ours = one.lists.among
    for name, values in other.lists.none_of.items():
        mine = ours.get(name)
        if mine is not None and (name in one.required or name in other.required) and mine <= values:
            return True
    return False


def implies(one: Case, other: Case) -> bool:
    """Whether every object of the one clause meets the other, as far as lists tell."""
    if not other.lists.is_all or not other.required <= one.required:
        return False
    ours = one.lists.among
    for name, values in other.lists.none_of.items():
        mine = ours.get(name)
        if mine is None or not mine.isdisjoint(values):
            return False
    for name, values in other.lists.among.items():
        mine = ours.get(name)
        if mine is None or not mine <= values:
            return False
    return True
