"""The schema engine beside the plain interpreter, on random graphs: whole masks, along random texts."""

from __future__ import annotations

import random

import pytest
from random_graphs import random_graph
from random_texts import ESCAPES
from schema_masks import SPACINGS, follow
from shares import share

import maskwright as mw
from maskwright.analysis.schema.shapes import Arrays, Numbers, SchemaGraph, Spellings, StringLiterals, Strings, Texts


def unique_nodes(graph: SchemaGraph) -> list[tuple[object, ...]]:
    """The nodes of items that must differ, where they are not finitely many."""
    arrays = [shape for node in graph.nodes for shape in node if isinstance(shape, Arrays) and shape.is_unique]
    numbers = {number for each in arrays for number in (*each.prefix, each.items) if number >= 0}
    nodes = [graph.nodes[number] for number in sorted(numbers)]
    return [node for node in nodes if not all(isinstance(shape, Spellings | StringLiterals) for shape in node)]


def with_free_strings(graph: SchemaGraph, rng: random.Random) -> SchemaGraph:
    """The graph with strings of any content: items of other automata need not be comparable."""

    def freed(shape: object) -> object:
        if not isinstance(shape, Strings):
            return shape
        return Strings(None, min(shape.least, 2), rng.choice((None, 3, 2)))

    nodes: list[tuple[object, ...]] = [tuple(map(freed, node)) for node in graph.nodes]
    return graph._replace(nodes=tuple(nodes))  # type: ignore[arg-type]


def can_compare(node: tuple[object, ...]) -> bool:
    strings = [shape for shape in node if isinstance(shape, Strings)]
    if any(isinstance(shape, Numbers) for shape in node):
        return False
    if any(shape.automaton is None and shape.most is None for shape in strings):
        return True
    return len(strings) == 1 and strings[0].automaton is None and not any(isinstance(s, StringLiterals) for s in node)


SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 200))]


@pytest.mark.parametrize("seed", share(SEEDS, 5))
def test_masks_are_those_of_the_interpreter(seed: int) -> None:
    n_masks = 0
    for k in range(6):
        rng = random.Random(1000 * seed + k)
        graph = random_graph(rng)
        if not unique_nodes(graph):
            texts = Texts(graph, rng.choice(SPACINGS), ESCAPES[k % 3])
            n_masks += follow(texts, rng, rng.choice((10, 40)))
    assert n_masks > 5


@pytest.mark.parametrize("seed", share(SEEDS[:10], 2))
def test_masks_with_items_that_must_differ(seed: int) -> None:
    n_masks = 0
    for k in range(999):
        if n_masks > 40:
            return
        rng = random.Random(7_000_000 + 1000 * seed + k)
        graph = with_free_strings(random_graph(rng), rng)
        nodes = unique_nodes(graph)
        if nodes and all(map(can_compare, nodes)):
            texts = Texts(graph, rng.choice(SPACINGS), ESCAPES[k % 3])
            n_masks += follow(texts, rng, 25)
    pytest.fail(f"only {n_masks} masks")


@pytest.mark.parametrize("seed", share(SEEDS[:20], 5))
def test_masks_with_items_of_any_kind_that_must_differ(seed: int) -> None:
    n_masks = 0
    for k in range(99):
        if n_masks > 30:
            return
        rng = random.Random(9_000_000 + 1000 * seed + k)
        graph = random_graph(rng, is_deep=True)
        deep = [shape for node in graph.nodes for shape in node if isinstance(shape, Arrays) and shape.is_deep]
        plain = [shape for node in graph.nodes for shape in node if isinstance(shape, Arrays) and not shape.is_deep]
        if deep and not any(shape.is_unique for shape in plain):
            n_masks += follow(Texts(graph, rng.choice(SPACINGS)), rng, 25)
    pytest.fail(f"only {n_masks} masks")


def nested_schema(rng: random.Random, depth: int) -> dict[str, object]:
    """A random schema of alternatives inside one another that little tells apart."""
    ways: list[object] = []
    for _ in range(rng.choice((2, 2, 3))):
        if depth == 0 or rng.random() < 0.1:
            ways.append(
                rng.choice(
                    ({"enum": [1, "a"]}, {"type": "string", "maxLength": 2}, {"type": "null"}, {"enum": [[], {}]})
                )
            )
            continue
        inner = nested_schema(rng, depth - 1)
        kind = rng.random()
        if kind < 0.5:
            keys = {key: rng.choice((inner, nested_schema(rng, 0))) for key in rng.sample("abc", 2)}
            rest = rng.choice((False, {}, {"type": "null"}))
            ways.append(
                {
                    "type": "object",
                    "properties": keys,
                    "required": [*keys][: rng.randint(0, 1)],
                    "additionalProperties": rest,
                }
            )
        elif kind < 0.8:
            ways.append({"type": "array", "items": inner, "maxItems": rng.choice((1, 2, 3))})
        else:
            ways.append(
                {"type": "array", "items": inner, "contains": {"type": rng.choice(("string", "array", "object"))}}
            )
    return {"anyOf": ways}


@pytest.mark.parametrize("seed", share(SEEDS[:80], 5))
def test_masks_of_nested_alternatives(seed: int) -> None:
    n_masks = 0
    for k in range(4):
        rng = random.Random(5_000_000 + 1000 * seed + k)
        try:
            graph = mw.load_schema(nested_schema(rng, 3)).texts.graph
        except mw.MaskwrightError:  # too many alternatives
            continue
        n_masks += follow(Texts(graph, rng.choice(SPACINGS)), rng, 30)
    assert n_masks > 5
