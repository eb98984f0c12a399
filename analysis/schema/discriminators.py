"""Objects that a constant tells apart, as `kind: "circle"` and `kind: "square"`.

In: clauses of objects. Out: whether two of them have a value in common, and whether one says no
more than another, as far as names and lists of scalars decide it. PERF: a schema of n such cases
meets each with each, and each with "none of the others".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from maskwright.analysis.deadline import look
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.documents import Document
from maskwright.analysis.schema.keywords import decimal
from maskwright.analysis.schema.known_keywords import SAYING

Values = frozenset[Any]
"""Scalars, equal where they are the same in JSON."""

_NOTHING: Values = frozenset()


class Listed:
    """The values of subschemas that list some scalars and say nothing else.

    document : where they stand.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._found: dict[int, frozenset[Any] | None] = {}

    def __call__(self, location: int) -> frozenset[Any] | None:
        """The values of the subschema at a location; None for one that says anything else."""
        if location not in self._found:
            document = self._document
            schema = document.schemas[location]
            is_known = schema.__class__ is dict and location not in document.unknown
            self._found[location] = _listed_values(schema, document.drafts[location]) if is_known else None
        return self._found[location]


class _Lists(NamedTuple):
    """What constraints say of members by names and by lists of scalars.

    names : those of the members that may be there; None if endlessly many may.
    among : name -> the values of which the member is one, if it is there; none for one that may not
        be there.
    none_of : name -> the values of which it is none.
    rest : the constraints of which these tell only a part, or nothing; compared as they stand.
    """

    names: frozenset[str] | None
    among: dict[str, Values]
    none_of: dict[str, Values]
    rest: frozenset[c.Constraint]


class Case(NamedTuple):
    """What a clause says by names and lists. required : the names of members that are there."""

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

    def widest(self, clauses: Iterable[c.Clause]) -> tuple[c.Clause, ...]:
        """The clauses without each that another one contains, as far as lists tell.

        PERF: of most pairs names and constraints tell that the one does not imply the other.
        """
        kept: list[tuple[Case, c.Clause]] = []
        for clause in clauses:
            look()
            case = self.of(clause)
            required, rest = case.required, case.lists.rest
            if not any([x.required <= required and x.lists.rest <= rest and implies(case, x) for x, _ in kept]):
                kept = [
                    (x, other) for x, other in kept
                    if not (required <= x.required and rest <= x.lists.rest and implies(x, case))
                ]  # fmt: skip
                kept.append((case, clause))
        return tuple([clause for _, clause in kept])

    def _made(self, clause: c.Clause) -> Case:
        among: dict[str, Values] = {}
        none_of: dict[str, Values] = {}
        rest: list[c.Constraint] = []
        required = []
        names: frozenset[str] | None = None
        for one in clause:
            if one.__class__ is c.Required:
                required.append(one.name)
            elif one.__class__ is c.Members:
                lists = self._members.get(one) or self._of_members(one)
                for name, some in lists.among.items():
                    among[name] = among[name] & some if name in among else some
                for name, some in lists.none_of.items():
                    none_of[name] = none_of[name] | some if name in none_of else some
                rest += lists.rest
                if lists.names is not None:
                    names = lists.names if names is None else names & lists.names
            else:
                rest.append(one)
        return Case(frozenset(required), _Lists(names, among, none_of, frozenset(rest)))

    def _of_members(self, members: c.Members) -> _Lists:
        among: dict[str, Values] = {}
        none_of: dict[str, Values] = {}
        is_all = members.others == c.TRUE and not members.patterns  # a pattern may say more of a name
        for name, term in members.names.items():
            found = self._listed(term >> 1) if term > c.FALSE else None
            if found is not None:
                (none_of if term & 1 else among)[name] = found
            elif term == c.FALSE:
                among[name] = _NOTHING
            elif term != c.TRUE:
                is_all = False
        is_closed = members.others == c.FALSE and not members.patterns
        names = frozenset(members.names) - members.forbidden if is_closed else None
        rest = frozenset() if is_all else frozenset((members,))
        made = self._members[members] = _Lists(names, among, none_of, rest)
        return made


def exclude(one: Case, other: Case) -> bool:
    """Whether no object meets both clauses, as far as names and lists tell."""
    if (names := other.lists.names) is not None and not one.required <= names:
        return True
    if (names := one.lists.names) is not None and not other.required <= names:
        return True
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
    if not other.required <= one.required or not other.lists.rest <= one.lists.rest:
        return False
    ours, without = one.lists.among, one.lists.none_of
    for name, values in other.lists.among.items():
        mine = ours.get(name)
        if mine is not values and (mine is None or not mine <= values):  # PERF: most are the same list
            return False
    for name, values in other.lists.none_of.items():
        excluded = without.get(name)
        if excluded is not values and (excluded is None or not values <= excluded):
            mine = ours.get(name)
            if mine is None or not mine.isdisjoint(values):
                return False
    return True


def _listed_values(schema: dict[str, Any], draft: int) -> frozenset[Any] | None:
    """The scalars of a subschema that lists some and says nothing else; else None.

    Two of these values are equal if they are the same in JSON: strings are themselves, numbers
    `Decimal`, the others their texts in a tuple.
    """
    values: frozenset[Any] | None = None
    types = None
    for name, value in schema.items():
        if name not in SAYING:
            continue
        if name == "enum" and value.__class__ is list and value:
            some = frozenset([_scalar(each) for each in value])
        elif name == "const" and draft > 4:
            some = frozenset((_scalar(value),))
        elif name == "type" and value.__class__ is str:
            types = value
            continue
        else:
            return None
        if None in some:
            return None
        values = some if values is None else values & some
    if values is None or types is None:
        return values
    if types == "string":
        return frozenset(value for value in values if value.__class__ is str)
    if types == "integer" and draft > 4:
        return frozenset(value for value in values if isinstance(value, Decimal) and value == value.to_integral_value())
    return None


def _scalar(value: Any) -> Any:
    """A scalar, equal to another one if they are the same in JSON; None for all else."""
    if value.__class__ is str:
        return value
    if value is None or value.__class__ is bool:
        return (repr(value),)
    return decimal(value) if isinstance(value, (int, float)) else None
