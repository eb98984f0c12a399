"""Schemas, cut and narrowed: shapes as a root, strings without excluded texts."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.analysis.arguments import clip
from maskwright.analysis.composition.structural_tags_host import without
from maskwright.analysis.errors import SchemaError
from maskwright.analysis.regex.dfa import Dfa, difference, intersect
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.schema.keys import key_automaton, keys_within
from maskwright.analysis.schema.lengths import lengths_exist
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Contained,
    ItemState,
    Objects,
    SchemaGraph,
    Shape,
    StringLiterals,
    Strings,
)
from maskwright.analysis.schema.strings import literals


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
                    made.append(shape._replace(values=moved(shape.values), others=moved(shape.others)))
                case Arrays():
                    inside = shape.contained
                    if inside is not None:
                        inside = Contained(inside.least, inside.most, moved(inside.prefix), number(inside.items))
                    states = tuple(
                        ItemState(one.is_end, tuple((number(node), after) for node, after in one.moves))
                        for one in shape.states
                    )
                    made.append(
                        shape._replace(
                            prefix=moved(shape.prefix), items=number(shape.items), contained=inside, states=states
                        )
                    )
                case _:
                    made.append(shape)
        found.append(tuple(made))
    return SchemaGraph(tuple(found), 0, graph.left_out)


def keys_of_class(objects: Objects, of: int) -> Dfa:
    """The keys that an object does not name, of one class."""
    automaton = objects.key_automaton
    if automaton is None:
        return difference(valid_utf8(), literals(objects.keys)) if objects.keys else valid_utf8()
    return Dfa.minimal(automaton.next_state, automaton.ends == of)


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


def _narrowed(shape: Shape, kept: Dfa, excluded: tuple[str, ...]) -> Shape:
    match shape:
        case StringLiterals(texts):
            _check_texts(texts, kept, excluded)
        case Strings(automaton, least, most):
            dfa = kept if automaton is None else intersect(automaton, kept)
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
    every = objects.key_automaton or key_automaton((), (0,), objects.keys)
    narrowed = None if every is None else keys_within(every, kept)
    if narrowed is None or len({*narrowed.ends.tolist()} - {-1}) < len(objects.others):
        raise SchemaError(f"all keys of a pattern hold one of the excludes {clip(list(excluded))}")
    return objects._replace(key_automaton=narrowed)
