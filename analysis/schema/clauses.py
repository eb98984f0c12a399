"""Conjunctions of clauses, and which objects a constant tells apart.

Constraints that say the same thing become one, and contradictions go away. Of two clauses of
objects, as those with `kind: "circle"` and `kind: "square"`, a `Cases` tells whether they have a
value in common, and whether one says no more than the other, as far as names and lists of scalars
decide it. PERF: a schema of n such cases meets each with each, and each with "none of the others".
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from maskwright.analysis.deadline import look
from maskwright.analysis.schema import constraints as c


def joined(kind: str, left: c.Clause, right: c.Clause) -> c.Clause | None:
    """The conjunction of two clauses of a type; None if it is plain that no value meets both."""
    if not left:
        return right
    if not right:
        return left
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
        asked = {one.is_unique for one in clause if isinstance(one, c.Unique)}
        return None if len(asked) > 1 else _ranged(clause, c.Size)
    else:
        merged = clause
    return None if merged is None else _chosen(kind, merged)


def _ranged(clause: c.Clause, kind: type[c.Length] | type[c.Size]) -> c.Clause | None:
    """The clause with at most one range; None for an empty range."""
    ranges = [one for one in clause if isinstance(one, kind)]
    if not ranges:
        return clause
    met = reduce(lambda one, other: one.met(other.least, other.most), ranges)
    if met.is_empty:
        return None
    return clause if len(ranges) == 1 else (*(one for one in clause if not isinstance(one, kind)), met)


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
        is_one = lower.value == upper.value and not (lower.is_exclusive or upper.is_exclusive)
        if lower.value >= upper.value and not is_one:
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
        values = frozenset(value for value in values if all(one.admits(value) for one in tests))
    if not values:
        return None
    return (*(one for one in rest if isinstance(one, (c.Refused, c.Whole, *c.SEEN))), c.Among(values, True))


def _listing(clause: c.Clause) -> Values | None:
    """The scalars that a clause lists, some of which it has; None if it lists none."""
    return next((one.values for one in clause if one.__class__ is c.Among and one.is_among), None)


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
    every = Counter([one for whole in distinct for one in whole])
    evaluated = {one for one in every if one.__class__ in c.SEEN}
    # PERF: a clause is looked up by its rarest constraint, which those that ask for more have, too
    by_rarest: dict[c.Constraint | None, list[frozenset[c.Constraint]]] = {}
    for whole in distinct:
        by_rarest.setdefault(min(whole - evaluated, key=every.__getitem__, default=None), []).append(whole)

    def is_more(other: frozenset[c.Constraint], whole: frozenset[c.Constraint]) -> bool:
        if not evaluated:
            return other < whole
        return other != whole and other - evaluated <= whole and whole & evaluated <= other

    return tuple([
        clause for whole, clause in distinct.items()
        if not any([is_more(other, whole) for one in (None, *whole) for other in by_rarest.get(one, ())])
    ])  # fmt: skip


# -- objects that a constant tells apart

Values = frozenset[Any]
"""Scalars, equal where they are the same in JSON."""
FEW_TAGGED = 8
"""Among fewer clauses no tag is looked for."""
_NO_TAG = object()


def listed(normal: c.Normal) -> Values | None:
    """The scalars that clauses list, if they say nothing else; else None."""
    found: set[Any] = set()
    for kind, clauses in normal.items():
        for clause in clauses:
            lists = [one.values for one in clause if isinstance(one, c.Among) and one.is_among]
            rest = [one for one in clause if not isinstance(one, c.Among)]
            if len(lists) != 1 or not all(isinstance(one, c.Whole) and one.with_fraction for one in rest):
                return None
            found |= lists[0] if kind in (c.STRING, c.NUMBER) else {(value,) for value in lists[0]}
    return frozenset(found)


class Case(NamedTuple):
    """What a clause of objects says by names and by lists of scalars.

    required : the names of members that are there.
    names : those of the members that may be there; None if endlessly many may.
    among : name -> the values of which the member is one, if it is there; none for one that may not
        be there.
    none_of : name -> the values of which it is none.
    rest : the constraints of which these tell only a part, or nothing; compared as they stand.
    """

    required: frozenset[str]
    names: frozenset[str] | None
    among: dict[str, Values]
    none_of: dict[str, Values]
    rest: frozenset[c.Constraint]


class Cases:
    """The cases of clauses, each made once.

    listed : the scalars that a location lists, if it says nothing else; else None.
    """

    def __init__(self, listed: Callable[[int], Values | None]) -> None:
        self._listed = listed
        self._members: dict[c.Members, Case] = {}
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
            required, rest = case.required, case.rest
            if not any([x.required <= required and x.rest <= rest and implies(case, x) for x, _ in kept]):
                kept = [
                    (x, other) for x, other in kept
                    if not (required <= x.required and rest <= x.rest and implies(x, case))
                ]  # fmt: skip
                kept.append((case, clause))
        return tuple([clause for _, clause in kept])

    def partners(self, kind: str, left: Sequence[c.Clause], right: Sequence[c.Clause]) -> Iterator[Sequence[int]]:
        """For each clause on the left the numbers of those on the right that may share a value.

        Others have none in common, as far as one list tells: of a scalar, of a required member, or
        of the names that members may have.

        PERF: n clauses with a constant each meet n others in O(n) pairs.
        """
        ours: Sequence[Iterable[Any] | None] = ()
        theirs: Sequence[Iterable[Any] | None] = ()
        if len(left) * len(right) <= FEW_TAGGED**2:
            pass
        elif kind == c.OBJECT:
            ours, theirs = self._tags([*map(self.of, left)], [*map(self.of, right)])
        else:
            ours, theirs = ([_listing(clause) for clause in side] for side in (left, right))
        by_tag: dict[Any, list[int]] = {}
        for number, tags in enumerate(theirs):
            for tag in (_NO_TAG,) if tags is None else tags:
                by_tag.setdefault(tag, []).append(number)
        for tags in ours or itertools.repeat(None, len(left)):
            if tags is None or not by_tag:
                yield range(len(right))
            else:
                yield sorted({number for tag in (_NO_TAG, *tags) for number in by_tag.get(tag, ())})

    def possibly_met(self, normals: list[c.Normal]) -> Iterator[tuple[int, int]]:
        """The pairs i > j of normals that may have a value in common, in order.

        PERF: constants tell most apart, of objects and of scalars.
        """
        rows: dict[str, tuple[list[int], Iterator[Sequence[int]]]] = {}  # for each type, whose its clauses are
        for kind in c.TYPES:
            each = [(i, clause) for i, normal in enumerate(normals) for clause in normal.get(kind, ())]
            clauses = [clause for _, clause in each]
            rows[kind] = [i for i, _ in each], self.partners(kind, clauses, clauses)
        for i, normal in enumerate(normals):
            look()
            found: set[int] = set()
            for kind, own in normal.items():
                whose, partners = rows[kind]
                found.update([whose[one] for others in itertools.islice(partners, len(own)) for one in others])
            yield from ((i, j) for j in sorted(found) if j < i)

    def condition(self, part: c.Normal) -> str | None:
        """The name whose member tells two clauses of objects apart; None if there are others."""
        clauses = part.get(c.OBJECT, ())
        if len(clauses) != 2 or any([len(some) > 1 for kind, some in part.items() if kind != c.OBJECT]):
            return None
        for one, other in itertools.permutations(map(self.of, clauses)):
            for name, values in other.none_of.items():
                if name in other.required and one.among.get(name) == values:
                    return name
        return None

    @staticmethod
    def _tags(
        left: list[Case], right: list[Case]
    ) -> tuple[Sequence[Iterable[Any] | None], Sequence[Iterable[Any] | None]]:
        """For each case what tells it from those of the other side with which it shares nothing."""
        required = Counter([name for case in right for name in case.required])
        tagged = Counter([name for case in right for name in case.required if case.among.get(name)])
        name = max(tagged, key=lambda one: (tagged[one], one), default="")
        if tagged[name] >= FEW_TAGGED:
            theirs = [case.among.get(name) if name in case.required else None for case in right]
            return [case.among.get(name) for case in left], theirs
        rarest = [min(case.required, key=lambda one: (required[one], one), default=None) for case in right]
        return [case.names for case in left], [None if one is None else (one,) for one in rarest]

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
                its = self._members.get(one) or self._of_members(one)
                for name, some in its.among.items():
                    among[name] = among[name] & some if name in among else some
                for name, some in its.none_of.items():
                    none_of[name] = none_of[name] | some if name in none_of else some
                rest += its.rest
                if its.names is not None:
                    names = its.names if names is None else names & its.names
            else:
                rest.append(one)
        return Case(frozenset(required), names, among, none_of, frozenset(rest))

    def _of_members(self, members: c.Members) -> Case:
        among: dict[str, Values] = {}
        none_of: dict[str, Values] = {}
        is_all = members.others == c.TRUE and not members.patterns  # a pattern may say more of a name
        for name, term in members.names.items():
            found = self._listed(term >> 1) if term > c.FALSE else None
            if found is not None:
                (none_of if term & 1 else among)[name] = found
            elif term == c.FALSE:
                among[name] = frozenset()
            elif term != c.TRUE:
                is_all = False
        is_closed = members.others == c.FALSE and not members.patterns
        names = frozenset(members.names) - members.forbidden if is_closed else None
        rest = frozenset() if is_all else frozenset((members,))
        made = self._members[members] = Case(frozenset(), names, among, none_of, rest)
        return made


def exclude(one: Case, other: Case) -> bool:
    """Whether no object meets both clauses, as far as names and lists tell."""
    if (names := other.names) is not None and not one.required <= names:
        return True
    if (names := one.names) is not None and not other.required <= names:
        return True
    return _is_left_nothing(one, other) or _is_left_nothing(other, one)


def _is_left_nothing(one: Case, other: Case) -> bool:
    """Whether a list of a member that is there has only values that the other one excludes."""
    theirs, excluded = other.among, other.none_of
    for name, values in one.among.items():
        if name in one.required or name in other.required:
            if name in theirs and values.isdisjoint(theirs[name]):
                return True
            if name in excluded and values <= excluded[name]:
                return True
    return False


def implies(one: Case, other: Case) -> bool:
    """Whether every object of the one clause meets the other, as far as lists tell."""
    if not other.required <= one.required or not other.rest <= one.rest:
        return False
    ours, without = one.among, one.none_of
    for name, values in other.among.items():
        mine = ours.get(name)
        if mine is not values and (mine is None or not mine <= values):  # PERF: most are the same list
            return False
    for name, values in other.none_of.items():
        excluded = without.get(name)
        if excluded is not values and (excluded is None or not values <= excluded):
            mine = ours.get(name)
            if mine is None or not mine.isdisjoint(values):
                return False
    return True
