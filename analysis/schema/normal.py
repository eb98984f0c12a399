"""From a term to clauses.

Combinators become unions and conjunctions, and negations go down to constraints.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.nesting import MOST_NESTED
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.clauses import FEW_TAGGED, Cases, Values, absorbed, exclude, implies, joined, listed
from maskwright.analysis.schema.documents import OPAQUE, Document
from maskwright.analysis.schema.keywords import Keywords
from maskwright.analysis.schema.known_keywords import COMBINING, REFERENCES, SAYING, UNEVALUATED

MOST_CLAUSES = 5_000
"""BOUND: the clauses of one type that a subschema may come to."""
MOST_WORK = 1_000_000
"""BOUND: the conjunctions of two clauses that are made for a whole schema."""
MOST_COMPARED = 100
"""BOUND: clauses of objects that are compared with one another for what they say by lists."""
MOST_SUBSETS = 10
"""BOUND: branches of an `anyOf` beside `unevaluatedProperties` or `unevaluatedItems`."""


_ALL_SEEN = {c.OBJECT: c.SeenMembers(frozenset(), (), True), c.ARRAY: c.SeenItems(None)}


def _named(clause: c.Clause) -> set[str]:
    """The keys that a clause of objects gives a place in an order."""
    return {name for one in clause if isinstance(one, c.Members) for name in one.names}


class Normals:
    """The clauses of terms, each made once.

    document : whose terms they are.
    cases : of their clauses of objects.
    in_order : whether the order matters in which clauses name their keys.
    """

    in_order = False

    def __init__(self, document: Document) -> None:
        self.document = document
        self.cases = Cases(self.listed)
        self._listed: dict[int, Values | None] = {}
        self._normals: dict[tuple[int, bool], c.Normal] = {
            (c.TRUE, False): c.ANYTHING, (c.TRUE, True): c.ANYTHING, (c.FALSE, False): {}, (c.FALSE, True): {},
        }  # fmt: skip
        self._conjunctions: dict[tuple[int, ...], c.Normal] = {}
        self._open: set[tuple[int, bool]] = set()
        self._work = MOST_WORK

    def is_plainly_empty(self, kind: str, clause: c.Clause, left: c.Clause, right: c.Clause) -> bool:
        """Whether a clause, which joins two, has no value, as far as a short look tells."""
        return False

    def normal(self, term: int, seen: bool = False) -> c.Normal:
        """The clauses of a term.

        seen : whether they also say which members and items count as evaluated.

        Raises: SchemaError for what is malformed, for a subschema that is a part of itself without
        a member or an item between, and where there are too many clauses.
        """
        key = (term, seen)
        found = self._normals.get(key)
        if found is None:
            if len(self._open) >= MOST_NESTED:
                what = f"more than {MOST_NESTED} subschemas stand inside one another"
                raise self.document.error(
                    term >> 1, "", f"{what} without a member or an item between; write it flatter"
                )
            if key in self._open:
                what = "the subschema refers to itself without a member or an item between, so it says nothing"
                raise self.document.error(term >> 1, "", what)
            self._open.add(key)
            try:
                found = self._negative(term >> 1) if term & 1 else self._positive(term >> 1, seen)
            finally:
                self._open.discard(key)
            self._normals[key] = found
        return found

    def listed(self, location: int) -> Values | None:
        """The scalars that a subschema lists, if it says nothing else; else None."""
        if location not in self._listed:
            self._listed[location] = None
            schema = self.document.schemas[location]
            said = SAYING.intersection(schema) if isinstance(schema, dict) else frozenset()
            if said and {"type"} != said <= {"type", "enum", "const"}:
                with suppress(SchemaError):  # it will be met again where it counts
                    self._listed[location] = listed(self.normal(2 * location))
        return self._listed[location]

    def meet_terms(self, terms: tuple[int, ...]) -> c.Normal:
        """The clauses of the values that satisfy all of some terms.

        PERF: conjunctions in which more and more terms meet begin alike.
        """
        if len(terms) < 2:
            return self.normal(terms[0]) if terms else c.ANYTHING
        n, known = len(terms), self._conjunctions
        while n and terms[:n] not in known:
            n -= 1
        found = known[terms[:n]] if n else c.ANYTHING
        for term in terms[n:]:
            found = self.meet(found, self.normal(term), term >> 1)
        known[terms] = found
        return found

    def _met(self, parts: Iterable[c.Normal], where: int) -> c.Normal:
        """The values of all of them.

        PERF: parts of one clause each meet as a balanced tree: one by one, the first clause would
        grow, and be copied for each of hundreds. So do conditions on the member of a name, which
        become one: n of them have n + 2 cases.
        """
        every = list(parts)
        groups: dict[str | None, list[c.Normal]] = {}  # by a name, "" for parts of one clause: as a tree
        if len(every) > 2 and all([len(clauses) == 1 for part in every for clauses in part.values()]):
            groups[""] = every
        else:
            are_told_apart = len(every) > FEW_TAGGED and not self.in_order
            for part in every:
                groups.setdefault(self.cases.condition(part) if are_told_apart else None, []).append(part)
        found: c.Normal = c.ANYTHING
        for name, some in groups.items():
            while name is not None and len(some) > 1:
                pairs = itertools.zip_longest(some[::2], some[1::2], fillvalue=c.ANYTHING)
                some = [self.meet(one, other, where) for one, other in pairs]
            for part in some:
                found = self.meet(found, part, where)
        return found

    def meet(self, left: c.Normal, right: c.Normal, where: int) -> c.Normal:
        """The values of both. where : the location, for messages."""
        if left is c.ANYTHING:
            return right
        if right is c.ANYTHING:
            return left
        found: c.Normal = {}
        for kind in c.TYPES:
            if kind not in left or kind not in right:
                continue
            clauses = self._product(kind, left[kind], right[kind], where)
            if clauses:
                found[kind] = clauses
        return found

    def _product(
        self, kind: str, left: tuple[c.Clause, ...], right: tuple[c.Clause, ...], where: int
    ) -> tuple[c.Clause, ...]:
        if left == ((),):
            return right
        if right == ((),):
            return left
        met: list[c.Clause] = []
        for one, others in zip(left, self.cases.partners(kind, left, right), strict=True):
            self._spend(len(others), where)
            met += [both for other in others if (both := self._pair(kind, one, right[other])) is not None]
        if len(met) < 2:
            return tuple(met)
        return self._limited(self._widest(kind, dict.fromkeys(met)), where)

    def _spend(self, work: int, where: int) -> None:
        """Counts conjunctions. Raises: SchemaError past MOST_WORK."""
        self._work -= work
        if self._work < 0:
            what = "the combinators of the schema multiply too far; write some of them out"
            raise self.document.error(where, "", what)

    def _meeting(self, normals: list[c.Normal], where: int) -> Iterator[tuple[int, int, c.Normal]]:
        """The pairs i > j of normals that have values in common, and these."""
        for i, j in self.cases.possibly_met(normals):
            self._spend(1, where)
            if common := self.meet(normals[i], normals[j], where):
                yield i, j, common

    def _widest(self, kind: str, clauses: Collection[c.Clause]) -> tuple[c.Clause, ...]:
        """The clauses without those that ask for more than another one.

        PERF: where members depend on others, many objects meet several clauses of a product.
        """
        has_cases = kind == c.OBJECT and len(clauses) <= MOST_COMPARED and not self.in_order
        if not has_cases or any([one.__class__ in c.SEEN for clause in clauses for one in clause]):
            return absorbed(clauses)
        return self.cases.widest(clauses)

    def _pair(self, kind: str, one: c.Clause, other: c.Clause) -> c.Clause | None:
        """The conjunction of two clauses; None if it is plain that no value meets both."""
        if kind == c.OBJECT and one and other:
            case, its = self.cases.of(one), self.cases.of(other)
            if exclude(case, its):
                return None
            if implies(case, its) and not (self.in_order and _named(other) - _named(one)):
                return one
            if not self.in_order and implies(its, case):
                return other
        both = joined(kind, one, other)
        return None if both is None or self.is_plainly_empty(kind, both, one, other) else both

    def _limited(self, clauses: tuple[c.Clause, ...], where: int) -> tuple[c.Clause, ...]:
        if len(clauses) > MOST_CLAUSES:
            what = f"the subschema has more than {MOST_CLAUSES:,} alternatives of one type"
            advice = "write fewer combinators, or such as exclude one another by a required key with a constant"
            raise self.document.error(where, "", f"{what}; {advice}")
        return clauses

    def join(self, parts: Iterable[c.Normal], where: int) -> c.Normal:
        """The values of any of them."""
        every = [part for part in parts if part]
        if len(every) == 1:
            return every[0]
        found: c.Normal = {}
        for kind in c.TYPES:
            clauses = [clause for part in every for clause in part.get(kind, ())]
            if clauses:
                found[kind] = self._limited(absorbed(clauses), where)
        return found

    def outside(self, normal: c.Normal, where: int) -> c.Normal:
        """All other values."""
        pointer = self.document.pointer(where)
        found: c.Normal = {}
        for kind in c.TYPES:
            clauses: tuple[c.Clause, ...] = ((),)
            for clause in normal.get(kind, ()):
                parts = c.outside_clause(clause, pointer)
                if kind == c.OBJECT and len(parts) > 1 and not self.in_order:
                    parts = self._by_tag(clause, parts)
                clauses = self._product(kind, clauses, tuple(parts), where) if parts else ()
                if not clauses:
                    break
            if clauses:
                found[kind] = clauses
        return found

    def _by_tag(self, clause: c.Clause, parts: list[c.Clause]) -> list[c.Clause]:
        """The clauses outside of a clause, each narrowed to the objects with its required constant.

        Those that contradict the constant stay, and hold all other objects. So clauses outside of n
        constants exclude one another, and do not multiply.
        INVARIANT: `outside_clause` has one that is just "not this constant", with which `_pair`
        finds nothing.
        """
        case = self.cases.of(clause)
        for members in [one for one in clause if isinstance(one, c.Members)]:
            for name, term in members.names.items():
                if name in case.required and case.among.get(name) and not term & 1:
                    tag = c.Required(name), c.Members({name: term}, (), c.TRUE)
                    return [self._pair(c.OBJECT, tag, part) or part for part in parts]
        return parts

    # -- a subschema as it stands

    def _positive(self, location: int, seen: bool) -> c.Normal:
        schema = self.document.schemas[location]
        if schema is False:
            return {}
        if location in self.document.unknown:
            return self._refused(*self.document.unknown[location], seen)
        if not seen and COMBINING.isdisjoint(schema):
            own = self._own(location, False)
            return own[0] if len(own) == 1 else self._met(own, location)
        unevaluated = [key for key in UNEVALUATED if key in schema and self.document.drafts[location] >= 2019]
        inner = seen or bool(unevaluated)
        found = self._met(self._parts(location, inner), location)
        for keyword in unevaluated:
            found = self._evaluated(found, location, keyword)
        if inner and not seen:
            found = {kind: absorbed(tuple(x for x in one if not isinstance(x, c.SEEN)) for one in clauses)
                     for kind, clauses in found.items()}  # fmt: skip
        return found

    def _is_reference_only(self, location: int) -> bool:
        return "$ref" in self.document.schemas[location] and self.document.drafts[location] <= 7

    def _references(self, location: int) -> list[int]:
        """The terms of the references of a location."""
        schema, draft = self.document.schemas[location], self.document.drafts[location]
        is_read = {"$ref": True, "$dynamicRef": draft >= 2020, "$recursiveRef": draft == 2019}
        keywords = [keyword for keyword in REFERENCES if keyword in schema and is_read[keyword]]
        if len(keywords) > 1 or (keywords and keywords[0] != "$ref"):
            self.document.check_names()
        return [2 * self.document.followed(self.document.follow(location, keyword)) for keyword in keywords]

    def _parts(self, location: int, seen: bool) -> Iterable[c.Normal]:
        """What a subschema is the conjunction of."""
        for term in self._references(location):
            yield self.normal(term, seen)
        if self._is_reference_only(location):
            return
        yield from self._own(location, seen)
        schema = self.document.schemas[location]
        words = Keywords(self.document, location, seen)
        for term in self._branches(words, "allOf"):
            yield self.normal(term, seen)
        if "anyOf" in schema:
            yield self._any_of(self._branches(words, "anyOf"), location, seen)
        if "oneOf" in schema:
            yield self._one_of(self._branches(words, "oneOf"), location, seen)
        if "not" in schema:
            yield self.normal(words.term(schema["not"], "not") ^ 1)
        if (condition := self._condition(words)) is not None:
            test, then, other = condition
            if seen or not then == other == c.TRUE:
                there = self.meet(self.normal(test, seen), self.normal(then, seen), location)
                yield self.join([there, self.meet(self.normal(test ^ 1), self.normal(other, seen), location)], location)
        for name, required, term in self._dependencies(words):
            # without `name` itself, which would make two clauses of what one says, unless it
            # decides what is evaluated
            names = dict.fromkeys([name, *required] if seen else required)
            named: c.Clause = tuple(c.Required(one) for one in names)
            present = self.meet({c.OBJECT: (named,)}, self.normal(term, seen), location)
            others: c.Normal = {kind: ((),) for kind in c.TYPES if kind != c.OBJECT}
            yield self.join([present, {**others, c.OBJECT: ((c.absent(name),),)}], location)

    def _own(self, location: int, seen: bool) -> list[c.Normal]:
        """What the keywords say that are no combinators."""
        schema = self.document.schemas[location]
        words = Keywords(self.document, location, seen)
        own: c.Normal = {}
        for kind, (clause,) in words.clauses().items():
            both = joined(kind, clause[:1], clause[1:]) if len(clause) > 1 else clause
            if both is not None:
                own[kind] = (both,)
        found = [own]
        if "enum" in schema:
            found.append(words.listed("enum", words.sequence("enum")))
        if "const" in schema and words.draft > 4:
            found.append(words.listed("const", [schema["const"]]))
        return found

    @staticmethod
    def _branches(words: Keywords, keyword: str) -> list[int]:
        if keyword not in words.schema:
            return []
        branches = words.sequence(keyword)
        if not branches:
            raise words.error(keyword, "is an empty array; expected at least one schema")
        return [words.term(branch, keyword, i) for i, branch in enumerate(branches)]

    def _any_of(self, terms: list[int], location: int, seen: bool) -> c.Normal:
        if not seen:
            return self.join([self.normal(term) for term in terms], location)
        if len(terms) > MOST_SUBSETS:
            where = f"{self.document.pointer(location)}/anyOf"
            refused = self._refused(where, f"more than {MOST_SUBSETS} branches beside unevaluated keywords", True)
            return self.meet(self.join([self.normal(term) for term in terms], location), refused, location)
        found: c.Normal = {}
        for term in terms:
            branch = self.normal(term, True)
            found = self.join([found, branch, self.meet(found, branch, location)], location)
        return found

    @staticmethod
    def _refused(pointer: str, reason: str, seen: bool = False) -> c.Normal:
        """What cannot be said. All that it may have evaluated counts as evaluated, if `seen`."""
        refused: c.Clause = (c.Refused(pointer, reason),)
        found: c.Normal = {kind: (refused,) for kind in c.TYPES}
        if seen:
            found |= {kind: ((*refused, mark),) for kind, mark in _ALL_SEEN.items()}
        return found

    def _one_of(self, terms: list[int], location: int, seen: bool) -> c.Normal:
        """The values of just one branch: of each those that are in no other one that it meets."""
        normals = [self.normal(term) for term in terms]
        meets: list[list[int]] = [[] for _ in terms]
        for i, j, _ in self._meeting(normals, location):
            meets[i].append(j)
            meets[j].append(i)
        found: list[c.Normal] = []
        for i, others in enumerate(meets):
            branch = whole = self.normal(terms[i], seen)
            for j in sorted(others):
                # what is left of the branch may no longer meet the other one: nothing to take away
                if branch is whole or self.meet(branch, normals[j], location):
                    branch = self.meet(branch, self.normal(terms[j] ^ 1), location)
            found.append(branch)
        return self.join(found, location)

    @staticmethod
    def _condition(words: Keywords) -> tuple[int, int, int] | None:
        """The terms of `if`, `then` and `else`; None if there is no `if`."""
        if "if" not in words.schema or words.draft < 7:
            return None
        test, then, other = (words.term(words.schema.get(key, True), key) for key in ("if", "then", "else"))
        return test, then, other

    def _dependencies(self, words: Keywords) -> Iterable[tuple[str, list[str], int]]:
        """Each name with the names and the term that its member asks for."""
        if words.draft >= 2019:
            for name, value in words.mapping("dependentRequired").items():
                yield name, words.names("dependentRequired", value), c.TRUE
            for name, value in words.mapping("dependentSchemas").items():
                yield name, [], words.term(value, "dependentSchemas", name)
        for name, value in words.mapping("dependencies").items():
            if isinstance(value, (dict, bool)):
                yield name, [], words.term(value, "dependencies", name)
            else:
                yield name, words.names("dependencies", value), c.TRUE

    def _evaluated(self, normal: c.Normal, location: int, keyword: str) -> c.Normal:
        """The clauses with what `unevaluatedProperties` or `unevaluatedItems` asks for."""
        words = Keywords(self.document, location, True)
        term = words.term(words.schema[keyword], keyword)
        kind = UNEVALUATED[keyword]
        if kind not in normal:
            return normal
        found: list[c.Clause] = []
        for clause in normal[kind]:
            more = c.other_members(clause, term) if kind == c.OBJECT else self._other_items(clause, term, location)
            if both := joined(kind, clause, (*more, _ALL_SEEN[kind])):
                found.append(both)
        rest = {one: clauses for one, clauses in normal.items() if one != kind}
        return {**rest, kind: absorbed(found)} if found else rest

    def _other_items(self, clause: c.Clause, term: int, location: int) -> c.Clause:
        first = 0
        contained: list[int] = []
        for one in clause:
            if isinstance(one, c.SeenItems):
                if one.first is None:
                    return ()
                first = max(first, one.first)
            elif isinstance(one, c.SeenContained):
                contained.append(one.term)
        if term == c.TRUE or c.TRUE in contained:
            return ()
        if contained:
            term = self._either([term, *contained], location)
        return (c.Items((c.TRUE,) * first, term),)

    def _either(self, terms: list[int], location: int) -> int:
        """The term of the values that satisfy any of some terms."""
        number = self.document.made(OPAQUE, location)
        self._normals[2 * number, False] = self.join([self.normal(term) for term in terms], location)
        self._normals[2 * number + 1, False] = self._met((self.normal(term ^ 1) for term in terms), location)
        return 2 * number

    # -- a subschema's other values

    def _negative(self, location: int) -> c.Normal:
        schema = self.document.schemas[location]
        if schema is False:
            return c.ANYTHING
        if location in self.document.unknown:
            return self._refused(*self.document.unknown[location])
        found = [self.normal(term ^ 1) for term in self._references(location)]
        if not self._is_reference_only(location):
            found.extend(self._negative_parts(location))
        return self.join(found, location)

    def _negative_parts(self, location: int) -> Iterable[c.Normal]:
        schema: dict[str, Any] = self.document.schemas[location]
        words = Keywords(self.document, location, False)
        for part in self._own(location, False):
            yield self.outside(part, location)
        for term in self._branches(words, "allOf"):
            yield self.normal(term ^ 1)
        for keyword in ("anyOf", "oneOf"):
            if terms := self._branches(words, keyword):
                yield self.meet_terms(tuple([term ^ 1 for term in terms]))
            normals = [self.normal(term) for term in terms] if keyword == "oneOf" else []
            yield from (common for _, _, common in self._meeting(normals, location))
        if "not" in schema:
            yield self.normal(words.term(schema["not"], "not"))
        if (condition := self._condition(words)) is not None:
            test, then, other = condition
            yield self.meet(self.normal(test), self.normal(then ^ 1), location)
            yield self.meet(self.normal(test ^ 1), self.normal(other ^ 1), location)
        for name, required, term in self._dependencies(words):
            there: c.Clause = (c.Required(name),)
            for missing in required:
                both = joined(c.OBJECT, there, (c.absent(missing),))
                if both is not None:
                    yield {c.OBJECT: (both,)}
            yield self.meet({c.OBJECT: (there,)}, self.normal(term ^ 1), location)
        yield from self._negative_unevaluated(words)

    def _negative_unevaluated(self, words: Keywords) -> Iterable[c.Normal]:
        """The objects and arrays for which all that is evaluated is not enough, and some more."""
        there = [key for key in UNEVALUATED if key in words.schema and words.schema[key] is not True]
        if words.draft < 2019 or not there:
            return
        whole = self._met(self._parts(words.location, True), words.location)
        for keyword in there:
            kind = UNEVALUATED[keyword]
            some = {one: clauses for one, clauses in whole.items() if one == kind}
            # a value is outside if it is outside of each clause: in another one more is evaluated
            rest = self.outside(self._evaluated(some, words.location, keyword), words.location)
            yield {one: clauses for one, clauses in rest.items() if one == kind}
