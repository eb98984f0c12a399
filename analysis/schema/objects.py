"""From a clause of objects to drafts of shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.clauses import simplified
from maskwright.analysis.schema.drafts import Doubtful, Draft, Patterned
from maskwright.analysis.schema.keys import MOST_NAMED, few_keys, key_sets
from maskwright.analysis.schema.shapes import NO_NODE, Objects
from maskwright.analysis.schema.strings import finite_language, pattern_automaton, utf8

MOST_SPLIT = 5
"""BOUND: optional keys whose presence is decided one by one for a key beside them."""
MOST_WANTED = 3
"""BOUND: members that one object is asked for, each with any of the keys that have no names."""


class Nodes(Protocol):
    """What makes nodes of terms (`builder.py`).

    has_unique : whether an array of unique items was met.
    """

    has_unique: bool

    def node(self, terms: Sequence[int]) -> int:
        """The node of the values that satisfy all terms."""

    def is_surely_empty(self, terms: Sequence[int]) -> bool:
        """Whether no value satisfies all terms, as far as a short look tells."""

    def names(self, terms: tuple[int, ...], refused: list[tuple[str, str]]) -> Dfa | None:
        """The strings that satisfy all terms; None for all strings."""

    def drafts(self, node: int) -> Sequence[Draft]:
        """The drafts of a node's shapes."""

    def pointer(self, term: int) -> str:
        """The JSON pointer of a term's subschema."""


def object_drafts(clause: c.Clause, nodes: Nodes, in_order: bool) -> list[Draft]:
    """The drafts of a clause.

    clause : of objects.
    in_order : whether keys keep the order of the schema.

    Raises: SchemaError, LimitError.
    """
    asked = _Asked(clause, nodes)
    return [*asked.drafts(in_order)] if asked.some is None else asked.drafts_with(asked.some, in_order)


def member_terms(members: list[c.Members], name: str) -> list[int]:
    """The terms that the member of a name satisfies. members : those of a clause."""
    found: list[int] = []
    for one in members:
        term = one.names.get(name)
        if one.patterns:
            hits = [] if term is None else [term]
            hits.extend(term for text, term in one.patterns if is_found(text, name))
            found.extend(hits or [one.others])
        else:
            found.append(one.others if term is None else term)
    return found


@Kept
def is_found(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text."""
    return pattern_automaton(pattern).matches(text.encode("utf-8", "surrogatepass"))


class _Asked:
    """What a clause asks for, by kind, and the keys that it tells apart.

    some : the first member that is asked for without a name; None if there is none.
    wanted : those that are to have no name.
    refused : pointer and reason of what cannot be said.
    named : the keys that have names, in the order in which the schema names them.
    automata : of the patterns that other keys may match, and of the sets of names.
    patterns, name_sets : the bit of each in a set of automata.
    allowed : the names that a term allows, if not all.
    sets : the sets of automata that other keys match.
    """

    def __init__(self, clause: c.Clause, nodes: Nodes) -> None:
        self.clause, self.nodes = clause, nodes
        self.members = [one for one in clause if isinstance(one, c.Members)]
        self.names = [one for one in clause if isinstance(one, c.Names)]
        self.required = {one.name: None for one in clause if isinstance(one, c.Required)}
        self.some = next((one for one in clause if isinstance(one, c.Some) and not one.is_other), None)
        self.wanted = [one for one in clause if isinstance(one, c.Some) and one.is_other]
        self.size = next((one for one in clause if isinstance(one, c.Size)), c.Size(0, None))
        self.refused = [(one.pointer, one.reason) for one in clause if isinstance(one, c.Refused)]
        self.named: dict[str, None] = {}
        texts: dict[str, None] = {}
        more_names: dict[int, None] = {}
        for one in clause:
            if isinstance(one, c.Members):
                self.named |= dict.fromkeys(one.names)
                texts |= {text: None for text, _ in one.patterns}
            elif isinstance(one, c.Some):
                self.named |= dict.fromkeys(sorted(one.but_names))
                texts |= dict.fromkeys([*one.but_patterns, *([one.pattern] if one.pattern else [])])
                if one.name != c.TRUE:
                    more_names[one.name] = None
        self.named |= self.required
        self.automata: list[Dfa] = []
        self.patterns: dict[str, int] = {}
        self.name_sets: dict[int, int] = {}
        self.allowed: dict[int, Dfa] = {}
        self.sets: tuple[int, ...] = ()
        self._tell_apart(texts, dict.fromkeys(one.term for one in self.names) | more_names)

    def _tell_apart(self, texts: Iterable[str], terms: Iterable[int]) -> None:
        """Which keys patterns and terms of names tell apart; few of them become named ones."""
        for text in texts:
            dfa = pattern_automaton(text)
            finite = finite_language(dfa, MOST_NAMED)
            if finite is not None:
                self.named |= {key.decode(): None for key in finite}
            else:
                self.patterns[text] = 1 << len(self.automata)
                self.automata.append(dfa)
        is_closed = False
        for term in terms:
            allowed = self.nodes.names((term,), self.refused)
            if allowed is None:
                continue
            finite = finite_language(allowed, MOST_NAMED)
            if finite is not None:
                self.named |= {key.decode(): None for key in finite}
                is_closed = is_closed or any([one.term == term for one in self.names])
            self.allowed[term] = allowed
            self.name_sets[term] = 1 << len(self.automata)
            self.automata.append(allowed)
        if is_closed:
            self.automata, self.patterns, self.name_sets = [], {}, {}
        elif self.automata:
            self.sets = key_sets(self.automata, utf8(self.named))
        elif not any([one.others == c.FALSE for one in self.members]):
            self.sets = (0,)

    def drafts(self, in_order: bool) -> Iterator[Draft]:
        """The drafts of a clause that asks for no member but by name, or without one."""
        found: list[tuple[bytes, int, bool, int]] = []
        for rank, name in enumerate(self.named):
            node = NO_NODE
            utf_8 = name.encode("utf-8", "surrogatepass")
            if all([self.allowed[one.term].matches(utf_8) for one in self.names if one.term in self.allowed]):
                node = self.nodes.node(member_terms(self.members, name))
            is_required = name in self.required
            if is_required and node == NO_NODE:
                return
            try:
                found.append((name.encode(), node, is_required, rank))
            except UnicodeEncodeError:  # half a surrogate pair, which no text has
                if is_required:
                    return
        keys, values, required, ranks = zip(*sorted(found), strict=True) if found else ((), (), (), ())
        nodes_of_sets = [(number, self.nodes.node(self._class_terms(number))) for number in self.sets]
        classes = {number: node for number, node in nodes_of_sets if node != NO_NODE}
        if len(self.wanted) > MOST_WANTED:
            what = f"it asks for more than {MOST_WANTED} members among others, which are not counted"
            self.refused.append((self.wanted[0].pointer, what))
            self.wanted = []
        others = () if self.automata or self.wanted else tuple(classes.values())
        order = ranks if in_order else None
        objects = Objects(keys, values, required, others, None, self.size.least, self.size.most, order)
        for parts in _partitions(self.wanted):
            draft: Objects | Patterned = objects
            if classes and (self.automata or parts):
                rows = {number: (node, *self._wanted_nodes(number, parts)) for number, node in classes.items()}
                draft = Patterned(objects, tuple(self.automata), rows, tuple([part[0].pointer for part in parts]))
            elif parts:
                continue
            yield Doubtful(draft, tuple(self.refused)) if self.refused else draft

    def _wanted_nodes(self, number: int, parts: list[list[c.Some]]) -> Iterator[int]:
        """For each part the node of a key of a set whose member is all that the part asks for."""
        for part in parts:
            values = [one.value if self._is_inside(one, number) else c.FALSE for one in part]
            yield self.nodes.node([*self._class_terms(number), *values])

    def _class_terms(self, number: int) -> list[int]:
        """The terms of the members whose key matches a set of automata, and is not named."""
        if any([self._is_unnamed(number, one.term) for one in self.names]):
            return [c.FALSE]
        found: list[int] = []
        for one in self.members:
            hits = [term for text, term in one.patterns if number & self.patterns.get(text, 0)]
            found.extend(hits or [one.others])
        return found

    def _is_unnamed(self, number: int, term: int) -> bool:
        """Whether keys that match a set of automata do not satisfy a term of names."""
        bit = self.name_sets.get(term)  # a term that all strings satisfy has none
        return bit is not None and not number & bit

    def _is_inside(self, some: c.Some, number: int) -> bool:
        """Whether keys that match a set of automata, unnamed ones, are of those `some` wants."""
        is_out = any(number & self.patterns.get(text, 0) for text in some.but_patterns)
        has_pattern = some.pattern is None or number & self.patterns.get(some.pattern, 0) > 0
        return has_pattern and not is_out and not self._is_unnamed(number, some.name)

    def _is_implied(self, value: int, terms: list[int]) -> bool:
        """Whether what satisfies some terms satisfies a value's, as far as a short look tells."""
        return value == c.TRUE or value in terms or self.nodes.is_surely_empty([*terms, value ^ 1])

    def drafts_with(self, some: c.Some, in_order: bool) -> list[Draft]:
        """The drafts of the clause, which asks for a member: by the name that it has."""
        refused: list[tuple[str, str]] = []
        allowed = self.nodes.names((some.name,), refused) if some.name != c.TRUE else None
        rest = (*(one for one in self.clause if one is not some), *(c.Refused(*one) for one in refused))
        nodes, members, required = self.nodes, self.members, self.required
        found: list[Draft] = []

        def add(more: c.Clause) -> None:
            # the keys that `some` names stay named
            whole = simplified(c.OBJECT, tuple(dict.fromkeys((*rest, *more))))
            if whole is not None:
                found.extend(object_drafts(whole, nodes, in_order))

        def split(less: Iterable[str]) -> None:
            """By which free names are there. All other members satisfy `some`: one more is asked.

            less : names that are not there.
            """
            for chosen in range(1 << len(free)):
                there = [name for i, name in enumerate(free) if chosen >> i & 1]
                absent = [c.absent(name) for name in (*less, *free) if name not in there]
                size = c.Size(len(required) + len(there) + 1, None)
                add((*(c.Required(name) for name in there), *absent, size))

        possible: list[str] = []  # names whose member can satisfy `some`
        covered: list[str] = []  # those whose member always does
        for name in self.named:
            is_allowed = name not in some.but_names and not any(is_found(text, name) for text in some.but_patterns)
            if some.pattern is not None and not is_found(some.pattern, name):
                is_allowed = False
            if allowed is not None and not allowed.matches(name.encode("utf-8", "surrogatepass")):
                is_allowed = False
            terms = member_terms(members, name)
            if is_allowed and not nodes.is_surely_empty([*terms, some.value]):
                possible.append(name)
                if self._is_implied(some.value, terms):
                    covered.append(name)
        inside: list[list[int]] = []
        outside: list[list[int]] = []
        sets: list[int] = []  # those of `inside`
        for number in self.sets:
            terms = self._class_terms(number)
            if c.FALSE not in terms and not nodes.is_surely_empty(terms):
                can_be = self._is_inside(some, number) and not nodes.is_surely_empty([*terms, some.value])
                (inside if can_be else outside).append(terms)
                sets += [number] * can_be
        is_there = any([name in required for name in covered])
        free = [name for name in self.named
                if name not in required and name not in covered
                and not nodes.is_surely_empty(member_terms(members, name))]  # fmt: skip
        is_implied = all([self._is_implied(some.value, terms) for terms in inside])
        is_counted = is_implied and not outside and len(free) <= MOST_SPLIT
        # if each name that can satisfy `some` always does, members are counted; with an order,
        # `some` gives names their places
        if not in_order and len(possible) == len(covered):
            if is_there:
                add(())
                return found
            if is_counted and (inside or 1 << len(free) <= len(covered)):  # fewer objects than by name
                split(())
                return found
        if inside and not is_there and not is_counted and (few := few_keys(self.automata, sets, utf8(self.named))):
            # these names may be what was wanted without one, too
            clause = [replace(one, is_other=False) if isinstance(one, c.Some) else one for one in self.clause]
            return object_drafts((*clause, c.Members(dict.fromkeys(few, c.TRUE), (), c.TRUE)), nodes, in_order)
        for name in possible:
            add((c.Required(name), c.Members({name: some.value}, (), c.TRUE)))
        if inside and not is_there:
            if is_counted:
                split(covered)
            else:
                add((replace(some, is_other=True),))
        return found


def _partitions(some: Sequence[c.Some]) -> Iterator[list[list[c.Some]]]:
    """All ways to put some constraints into sets: which of them one member meets."""
    if not some:
        yield []
        return
    for rest in _partitions(some[1:]):
        yield [[some[0]], *rest]
        for i, part in enumerate(rest):
            yield [*rest[:i], [some[0], *part], *rest[i + 1 :]]
