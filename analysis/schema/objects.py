"""From a clause of objects to drafts of shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.clauses import simplified
from maskwright.analysis.schema.drafts import Doubtful, Draft, Patterned
from maskwright.analysis.schema.keys import MOST_NAMED, key_sets
from maskwright.analysis.schema.shapes import NO_NODE, Objects
from maskwright.analysis.schema.strings import finite_language, pattern_automaton, utf8

MOST_SPLIT = 5
"""BOUND: optional keys whose presence is decided one by one for a key beside them."""


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


class _Asked(NamedTuple):
    """What a clause asks for, by kind.

    some : the first member that is asked for without a name; None if there is none.
    refused : pointer and reason of what cannot be said.
    """

    members: list[c.Members]
    names: list[c.Names]
    required: dict[str, None]
    some: c.Some | None
    least: int
    most: int | None
    refused: list[tuple[str, str]]


def _asked(clause: c.Clause) -> _Asked:
    members: list[c.Members] = []
    names: list[c.Names] = []
    required: dict[str, None] = {}
    some: list[c.Some] = []
    least, most = 0, None
    refused: list[tuple[str, str]] = []
    for one in clause:
        if isinstance(one, c.Required):
            required[one.name] = None
        elif isinstance(one, c.Members):
            members.append(one)
        elif isinstance(one, c.Size):
            least, most = one.least, one.most
        elif isinstance(one, c.Names):
            names.append(one)
        elif isinstance(one, c.Some):
            some.append(one)
        elif isinstance(one, c.Refused):
            refused.append((one.pointer, one.reason))
    return _Asked(members, names, required, some[0] if some else None, least, most, refused)


class _Keys(NamedTuple):
    """The keys of a clause.

    named : in the order in which the schema names them.
    automata : of the patterns that other keys may match, and of the sets of names.
    patterns, name_sets : the bit of each in a set of automata.
    sets : the sets of automata that other keys match.
    """

    named: tuple[str, ...]
    automata: tuple[Dfa, ...]
    patterns: dict[str, int]
    name_sets: dict[int, int]
    sets: tuple[int, ...]


def object_drafts(clause: c.Clause, nodes: Nodes, in_order: bool) -> list[Draft]:
    """The drafts of a clause.

    clause : of objects.
    in_order : whether keys keep the order of the schema.

    Raises: SchemaError, LimitError.
    """
    asked = _asked(clause)
    keys = _keys(clause, asked, nodes)
    if asked.some is not None:
        return _with_some(clause, asked, asked.some, keys, nodes, in_order)
    found: list[tuple[bytes, int, bool, int]] = []
    for rank, name in enumerate(keys.named):
        node = NO_NODE
        if not asked.names or _is_name(asked, name, nodes):
            node = nodes.node(member_terms(asked.members, name))
        is_required = name in asked.required
        if is_required and node == NO_NODE:
            return []
        try:
            found.append((name.encode(), node, is_required, rank))
        except UnicodeEncodeError:  # half a surrogate pair, which no text has
            if is_required:
                return []
    texts, values, required, ranks = zip(*sorted(found), strict=True) if found else ((), (), (), ())
    others: dict[int, int] = {}
    for number in keys.sets:
        node = nodes.node(_class_terms(asked, keys, number))
        if node != NO_NODE:
            others[number] = node
    objects = Objects(
        texts,
        values,
        required,
        () if keys.automata else tuple(others.values()),
        None,
        asked.least,
        asked.most,
        ranks if in_order else None,
    )
    draft = Patterned(objects, keys.automata, others) if keys.automata and others else objects
    return [Doubtful(draft, tuple(asked.refused)) if asked.refused else draft]


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


def _class_terms(asked: _Asked, keys: _Keys, number: int) -> list[int]:
    """The terms of the members whose key matches a set of automata, and is not named."""
    if any([_is_unnamed(keys, number, one.term) for one in asked.names]):
        return [c.FALSE]
    found: list[int] = []
    for one in asked.members:
        hits = [term for text, term in one.patterns if number & keys.patterns.get(text, 0)]
        found.extend(hits or [one.others])
    return found


@Kept
def is_found(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text."""
    return pattern_automaton(pattern).matches(text.encode("utf-8", "surrogatepass"))


def _is_name(asked: _Asked, name: str, nodes: Nodes) -> bool:
    """Whether the sets of names of a clause have a name."""
    for one in asked.names:
        dfa = nodes.names((one.term,), [])
        if dfa is not None and not dfa.matches(name.encode("utf-8", "surrogatepass")):
            return False
    return True


def _keys(clause: c.Clause, asked: _Asked, nodes: Nodes) -> _Keys:
    """The keys of a clause; what cannot be said of them is added to what is refused."""
    named: dict[str, None] = {}
    texts: dict[str, None] = {}
    terms = dict.fromkeys(one.term for one in asked.names)
    for one in clause:
        if isinstance(one, c.Members):
            named |= dict.fromkeys(one.names)
            texts |= {text: None for text, _ in one.patterns}
        elif isinstance(one, c.Some):
            named |= dict.fromkeys(sorted(one.but_names))
            texts |= dict.fromkeys([*one.but_patterns, *([one.pattern] if one.pattern else [])])
            if one.name != c.TRUE:
                terms[one.name] = None
    named |= asked.required
    automata: list[Dfa] = []
    patterns: dict[str, int] = {}
    name_sets: dict[int, int] = {}
    for text in texts:
        dfa = pattern_automaton(text)
        finite = finite_language(dfa, MOST_NAMED)
        if finite is not None:
            named |= {key.decode(): None for key in finite}
        else:
            patterns[text] = 1 << len(automata)
            automata.append(dfa)
    is_closed = False
    for term in terms:
        allowed = nodes.names((term,), asked.refused)
        if allowed is None:
            continue
        finite = finite_language(allowed, MOST_NAMED)
        if finite is not None:
            named |= {key.decode(): None for key in finite}
            is_closed = is_closed or any([one.term == term for one in asked.names])
        name_sets[term] = 1 << len(automata)
        automata.append(allowed)
    if is_closed:
        return _Keys(tuple(named), (), {}, {}, ())
    if not automata:
        closed = any([one.others == c.FALSE for one in asked.members])
        return _Keys(tuple(named), (), {}, {}, () if closed else (0,))
    return _Keys(tuple(named), tuple(automata), patterns, name_sets, key_sets(automata, utf8(named)))


def _with_some(clause: c.Clause, asked: _Asked, some: c.Some, keys: _Keys, nodes: Nodes, in_order: bool) -> list[Draft]:
    """The drafts of a clause that asks for a member: by the name that it has."""
    refused: list[tuple[str, str]] = []
    allowed = nodes.names((some.name,), refused) if some.name != c.TRUE else None
    rest = (*(one for one in clause if one is not some), *(c.Refused(*one) for one in refused))
    members, required = asked.members, asked.required
    found: list[Draft] = []

    def add(more: c.Clause) -> None:
        # the keys that `some` names stay named
        whole = simplified(c.OBJECT, tuple(dict.fromkeys((*rest, *more))))
        if whole is not None:
            found.extend(object_drafts(whole, nodes, in_order))

    def split(less: Iterable[str]) -> None:
        """By which free names are there. All other members satisfy `some`: one more is asked for.

        less : names that are not there.
        """
        for chosen in range(1 << len(free)):
            there = [name for i, name in enumerate(free) if chosen >> i & 1]
            absent = [c.absent(name) for name in (*less, *free) if name not in there]
            size = c.Size(len(required) + len(there) + 1, None)
            add((*(c.Required(name) for name in there), *absent, size))

    possible: list[str] = []  # names whose member can satisfy `some`
    covered: list[str] = []  # those whose member always does
    for name in keys.named:
        is_allowed = name not in some.but_names and not any(is_found(text, name) for text in some.but_patterns)
        if some.pattern is not None and not is_found(some.pattern, name):
            is_allowed = False
        if allowed is not None and not allowed.matches(name.encode("utf-8", "surrogatepass")):
            is_allowed = False
        terms = member_terms(members, name)
        if is_allowed and not nodes.is_surely_empty([*terms, some.value]):
            possible.append(name)
            if _is_implied(some.value, terms, nodes):
                covered.append(name)
    inside: list[list[int]] = []
    outside: list[list[int]] = []
    for number in keys.sets:
        terms = _class_terms(asked, keys, number)
        if c.FALSE not in terms and not nodes.is_surely_empty(terms):
            (inside if _is_inside(some, keys, number) else outside).append(terms)
    inside = [terms for terms in inside if not nodes.is_surely_empty([*terms, some.value])]
    is_there = any([name in required for name in covered])
    free = [name for name in keys.named
            if name not in required and name not in covered
            and not nodes.is_surely_empty(member_terms(members, name))]  # fmt: skip
    is_implied = all([_is_implied(some.value, terms, nodes) for terms in inside])
    is_counted = is_implied and not outside and len(free) <= MOST_SPLIT
    # if each name that can satisfy `some` always does, members are counted; with an order, `some`
    # gives names their places
    if not in_order and len(possible) == len(covered):
        if is_there:
            add(())
            return found
        if is_counted and (inside or 1 << len(free) <= len(covered)):  # fewer objects than by name
            split(())
            return found
    for name in possible:
        add((c.Required(name), c.Members({name: some.value}, (), c.TRUE)))
    if is_there or not inside:
        return found
    if not is_counted:
        what = "it asks for some member among others, which is not counted"
        add((c.Refused(some.pointer, what),))
        return found
    split(covered)
    return found


def _is_implied(value: int, terms: list[int], nodes: Nodes) -> bool:
    """Whether what satisfies some terms satisfies a value's, as far as a short look tells."""
    return value == c.TRUE or value in terms or nodes.is_surely_empty([*terms, value ^ 1])


def _is_inside(some: c.Some, keys: _Keys, number: int) -> bool:
    """Whether keys that match a set of automata, and are not named, are of those `some` wants."""
    if any(number & keys.patterns.get(text, 0) for text in some.but_patterns):
        return False
    if some.pattern is not None and not number & keys.patterns.get(some.pattern, 0):
        return False
    return not _is_unnamed(keys, number, some.name)


def _is_unnamed(keys: _Keys, number: int, term: int) -> bool:
    """Whether keys that match a set of automata do not satisfy a term of names."""
    bit = keys.name_sets.get(term)  # a term that all strings satisfy has none
    return bit is not None and not number & bit
