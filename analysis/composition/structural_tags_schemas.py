"""What structural tags make of schemas: lists of elements, parts of a graph, excluded texts.

A list is of the members of an object or the items of an array, one behind the other. A *list
automaton* has states and, from each, steps: an element, and the state behind it. State 0 is
initial. Each state becomes a rule, of what may come from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from maskwright.analysis.arguments import clip
from maskwright.analysis.composition.structural_tags_host import HostRules
from maskwright.analysis.composition.tag_rules import Body
from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa, intersect
from maskwright.analysis.regex.whole import without
from maskwright.analysis.schema.keys import key_automaton, keys_within
from maskwright.analysis.schema.lengths import lengths_exist
from maskwright.analysis.schema.load import JsonSchema, Narrowing
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Contained,
    ItemState,
    Numbers,
    Objects,
    SchemaGraph,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
)
from maskwright.analysis.schema.spacing import NOTHING

MOST_IN_ANY_ORDER = 8
"""BOUND: the named members of an object in any order; each set of them is a state."""
MOST_LIST_STATES = 2_000
"""BOUND: the states of a list automaton."""

State = TypeVar("State")
Element: TypeAlias = Callable[[int], Body | None]
"""An expression of the element with a number; None if there is none."""


class ListAutomaton(NamedTuple):
    """Lists of elements.

    steps : for each state, expressions of elements and the states behind them.
    is_final : whether a list may end in a state.
    """

    steps: list[list[tuple[Body, int]]]
    is_final: list[bool]


def object_list(objects: Objects, named: Element, other: Element) -> ListAutomaton:
    """The lists of an object's members.

    named : of the member with the number of a key; other : of those with keys of a class.

    Raises: LimitError for too many members in any order.
    """
    if objects.wanted:
        raise SchemaError(
            "an argument is asked for without a name, by what it is: that cannot be said in a list of arguments"
        )
    keys = [k for k, node in enumerate(objects.values) if node != NO_NODE]
    if objects.ranks is not None:
        ranks = objects.ranks
        keys.sort(key=lambda k: ranks[k])
    elif len(keys) > MOST_IN_ANY_ORDER:
        raise LimitError(
            f"{len(keys)} arguments in any order are more than {MOST_IN_ANY_ORDER}, as many as can be kept apart: let them have the "
            "schema's order (any_order false)"
        )
    required = sum(1 << i for i, k in enumerate(keys) if objects.required[k])
    expressions = [named(k) for k in keys]
    others = [found for found in map(other, range(len(objects.others))) if found is not None]
    most = objects.most
    if most is not None and not others and len(keys) <= most:
        most = None
    cap = most if most is not None else objects.least if objects.least > required.bit_count() else 0

    def steps(state: tuple[int, int]) -> list[tuple[Body, tuple[int, int]]]:
        gone, count = state
        if most is not None and count == most:
            return []
        after = min(count + 1, cap)
        found: list[tuple[Body, tuple[int, int]]] = []
        for i, expression in enumerate(expressions):
            bit = 1 << i
            if gone & bit or expression is None:
                continue
            if objects.ranks is None:
                found.append((expression, (gone | bit, after)))
            elif not required & ~gone & (bit - 1):
                found.append((expression, (gone | (2 * bit - 1), after)))
        if objects.ranks is None:
            found.extend((one, (gone, after)) for one in others)
        elif not required & ~gone:
            found.extend((one, ((1 << len(keys)) - 1, after)) for one in others)
        return found

    def is_final(state: tuple[int, int]) -> bool:
        least = objects.least if cap else 0
        return not required & ~state[0] and state[1] >= least

    return _explored((0, 0), steps, is_final)


def array_list(arrays: Arrays, item: Element) -> ListAutomaton:
    """The lists of an array's items. item : of the items that are of a node.

    Raises: SchemaError for what no list of elements can say.
    """
    if arrays.contained is not None or arrays.is_unique or arrays.states:
        raise SchemaError("contains and uniqueItems of a list that is written in XML cannot be said: take them out")
    prefix = [item(node) if node != NO_NODE else None for node in arrays.prefix]
    behind = item(arrays.items) if arrays.items != NO_NODE else None
    cap = max(len(prefix), arrays.least, arrays.most or 0)
    if cap > MOST_LIST_STATES:
        raise LimitError(
            f"a list of {cap:,} items that is written in XML is too long; at most {MOST_LIST_STATES:,} are counted"
        )

    def steps(count: int) -> list[tuple[Body, int]]:
        if arrays.most is not None and count >= arrays.most:
            return []
        expression = prefix[count] if count < len(prefix) else behind
        return [] if expression is None else [(expression, min(count + 1, cap))]

    return _explored(0, steps, lambda count: count >= arrays.least)


def _explored(
    start: State, steps: Callable[[State], list[tuple[Body, State]]], is_final: Callable[[State], bool]
) -> ListAutomaton:
    states = [start]
    number = {start: 0}
    found: list[list[tuple[Body, int]]] = []
    for at in states:  # grows while it is read
        row = []
        for expression, to in steps(at):
            if to not in number:
                number[to] = len(states)
                states.append(to)
            row.append((expression, number[to]))
        found.append(row)
        if len(states) > MOST_LIST_STATES:
            raise LimitError(f"a list of arguments has more than {MOST_LIST_STATES:,} states: let their number be free")
    return ListAutomaton(found, [is_final(one) for one in states])


def united(automata: Sequence[ListAutomaton]) -> ListAutomaton:
    """The lists of any of some automata, deterministic; no step leads to where no list ends.

    Elements are the same if their expressions are.
    """
    start = frozenset((k, 0) for k in range(len(automata)))

    def steps(states: frozenset[tuple[int, int]]) -> list[tuple[Body, frozenset[tuple[int, int]]]]:
        found: dict[Body, set[tuple[int, int]]] = {}
        for k, state in sorted(states):
            for expression, to in automata[k].steps[state]:
                found.setdefault(expression, set()).add((k, to))
        return [(expression, frozenset(to)) for expression, to in found.items()]

    made = _explored(start, steps, lambda states: any(automata[k].is_final[state] for k, state in states))
    ends = {state for state, is_final in enumerate(made.is_final) if is_final}
    size = -1
    while size != len(ends):
        size = len(ends)
        ends |= {state for state, row in enumerate(made.steps) if any(to in ends for _, to in row)}
    return ListAutomaton(
        [[step for step in row if state in ends and step[1] in ends] for state, row in enumerate(made.steps)],
        made.is_final,
    )


def list_expression(rules: HostRules, automaton: ListAutomaton, space: Body, nothing: Body) -> Body | None:
    """The expression of the lists of an automaton; None if there is no list.

    space : what stands before each element, and behind a list that is not empty.
    nothing : the expression of an empty list.
    """
    if not automaton.steps[0]:
        return nothing if automaton.is_final[0] else None
    elements = {each: rules.one(each) for row in automaton.steps for each, _ in row}
    names = [rules.name() for _ in automaton.steps]
    for name, row, is_final in zip(names, automaton.steps, automaton.is_final, strict=True):
        going_on = [elements[each] + space + names[to] for each, to in row]
        rules.define(name, [(), *going_on] if is_final else going_on)
    some = [space + elements[each] + space + names[to] for each, to in automaton.steps[0]]
    return rules.either([nothing, *some] if automaton.is_final[0] else some)


# -- schemas, cut and narrowed: shapes as a root, strings without excluded texts


def rooted(graph: SchemaGraph, shapes: tuple[Shape, ...]) -> SchemaGraph:
    """The graph of the values of some shapes of another graph. shapes : at least one."""
    numbers: dict[int, int] = {}
    old: list[tuple[Shape, ...]] = [shapes]

    def number(node: int) -> int:
        if node == NO_NODE:
            return NO_NODE
        if node not in numbers:
            numbers[node] = len(old)
            old.append(graph.nodes[node])
        return numbers[node]

    def moved(nodes: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(number, nodes))

    found: list[tuple[Shape, ...]] = []
    for node in old:  # grows while it is read
        made: list[Shape] = []
        for shape in node:
            match shape:
                case Objects():
                    wanted = tuple(map(moved, shape.wanted))
                    made.append(shape._replace(values=moved(shape.values), others=moved(shape.others), wanted=wanted))
                case Arrays():
                    inside = shape.contained
                    if inside is not None:
                        inside = Contained(inside.least, inside.most, moved(inside.prefix), number(inside.items))
                    states = tuple(
                        ItemState(one.is_end, tuple((number(node), after) for node, after in one.moves))
                        for one in shape.states
                    )
                    prefix, items = moved(shape.prefix), number(shape.items)
                    made.append(shape._replace(prefix=prefix, items=items, contained=inside, states=states))
                case _:
                    made.append(shape)
        found.append(tuple(made))
    return SchemaGraph(tuple(found), 0, graph.left_out)


@Kept
def but_for(dfa: Dfa, texts: tuple[bytes, ...]) -> Dfa:
    """The strings of a set but for some texts. Cost: O(the states, and the bytes of the texts)."""
    states, children, is_text = [0], [dict[int, int]()], [False]
    for text in filter(dfa.matches, texts):
        at = 0
        for byte in text:
            after = children[at].setdefault(byte, len(states))
            if after == len(states):
                states.append(int(dfa.next_state[states[at], byte]))
                children.append({})
                is_text.append(False)
            at = after
        is_text[at] = True
    # the beginnings of texts first, then all other strings
    table = np.vstack([dfa.next_state[states], dfa.next_state])
    table[table >= 0] += len(states)
    for at, row in enumerate(children):
        table[at, list(row)] = list(row.values())
    return Dfa.minimal(table, np.append(dfa.is_accepting[states] & ~np.array(is_text), dfa.is_accepting))


Kind: TypeAlias = Literal["string", "number", "boolean", "null", "object", "array"]
KINDS: tuple[Kind, ...] = ("string", "number", "boolean", "null", "object", "array")
_KIND_OF: dict[type, Kind] = {Objects: "object", Arrays: "array", Numbers: "number"}
_SPELLED: dict[Kind, bytes] = {"null": b"n", "boolean": b"tf", "number": b"-0123456789"}


def kinds_of(shape: Shape) -> Iterator[tuple[Kind, Shape]]:
    """The kinds of a shape's values, each with the shape of these."""
    if not isinstance(shape, Spellings):
        yield _KIND_OF.get(type(shape), "string"), shape
        return
    for kind, first in _SPELLED.items():
        of = tuple(text for text in shape.texts if text[0] in first)
        if of:
            yield kind, Spellings(of)


def narrowed(schema: JsonSchema, how: Narrowing) -> JsonSchema:
    """Some of a schema's values.

    Raises: SchemaError as `excluding`, and for a node that is not there or has no such values.
    """
    texts, graph = schema.texts, schema.texts.graph
    if how.kinds:
        every = [each for node in graph.nodes[how.node : how.node + 1] for shape in node for each in kinds_of(shape)]
        shapes = tuple(shape for wanted in dict.fromkeys(how.kinds) for kind, shape in every if kind == wanted)
        if how.node < 0 or not shapes:
            raise SchemaError(f"{schema.name} has no values of node {how.node} and the kinds {clip(list(how.kinds))}")
        graph = rooted(graph, shapes)
    texts = texts._replace(graph=excluding(graph, how.excluded), spacing=NOTHING if how.is_tight else texts.spacing)
    return JsonSchema(schema.name, schema.schema, texts, schema.options, how)


def excluding(graph: SchemaGraph, excluded: tuple[str, ...]) -> SchemaGraph:
    """The values in which no string and no key of an object says any of some texts.

    Raises: SchemaError if the schema names such a string or key, or has strings that all do.
    """
    if not excluded:
        return graph
    kept = without(excluded)
    return graph._replace(
        nodes=tuple(tuple(_narrowed(shape, kept, excluded) for shape in node) for node in graph.nodes)
    )


@Kept
def _both(one: Dfa, other: Dfa) -> Dfa:  # many strings of a schema have the same automaton
    return intersect(one, other)


def _narrowed(shape: Shape, kept: Dfa, excluded: tuple[str, ...]) -> Shape:
    match shape:
        case StringLiterals(texts):
            _check_texts(texts, kept, excluded)
        case Strings(automaton, least, most):
            dfa = kept if automaton is None else _both(automaton, kept)
            if not lengths_exist(dfa, least, most):
                raise SchemaError(f"all strings of a subschema hold one of the excludes {clip(list(excluded))}")
            return Strings(dfa, least, most)
        case Objects():
            _check_texts(shape.keys, kept, excluded)
            return _narrowed_keys(shape, kept, excluded)
        case Arrays() if shape.is_unique:
            raise SchemaError("uniqueItems beside excludes cannot be said: take one of them out")
    return shape


def _check_texts(texts: tuple[bytes, ...], kept: Dfa, excluded: tuple[str, ...]) -> None:
    for text in texts:
        if not kept.matches(text):
            raise SchemaError(
                f"the schema names {clip(text.decode())}, which holds one of the excludes {clip(list(excluded))}"
            )


def _narrowed_keys(objects: Objects, kept: Dfa, excluded: tuple[str, ...]) -> Objects:
    if not objects.others:
        return objects
    if objects.wanted:
        raise SchemaError("excludes beside a schema that asks for a member by what it is cannot be said")
    every = objects.key_automaton or key_automaton((), {0: 0}, objects.keys)
    narrowed = None if every is None else keys_within(every, kept)
    if narrowed is None or len({*narrowed.ends.tolist()} - {-1}) < len(objects.others):
        raise SchemaError(f"all keys of a pattern hold one of the excludes {clip(list(excluded))}")
    return objects._replace(key_automaton=narrowed)
