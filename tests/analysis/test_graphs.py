"""What is reached, components, unions and shortest texts against the definition: who reaches whom."""

from __future__ import annotations

import functools
import operator
import random

from maskwright.analysis.graphs import components, predecessors, reachable, shortest_texts, unions


def reached(successors: list[list[int]], node: int) -> set[int]:
    """The nodes that a node reaches, itself included."""
    found = {node}
    while True:
        more = found.union(*(successors[one] for one in found))
        if more == found:
            return found
        found = more


def test_components_are_the_nodes_that_reach_each_other() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        n = rng.randrange(12)
        successors = [[rng.randrange(n) for _ in range(rng.randrange(3))] for _ in range(n)]
        reach = [reached(successors, node) for node in range(n)]
        found = components(successors)
        expected = {frozenset(b for b in range(n) if b in reach[a] and a in reach[b]) for a in range(n)}
        assert {frozenset(part) for part in found} == expected and sum(map(len, found)) == n
        place = {node: number for number, part in enumerate(found) for node in part}
        assert all(place[target] <= place[node] for node in range(n) for target in successors[node])
        own = [rng.getrandbits(4) for _ in range(n)]
        joined = [functools.reduce(operator.or_, (own[b] for b in reach[a])) for a in range(n)]
        assert unions(successors, own) == joined
        assert [set(reachable([node], successors.__getitem__)) for node in range(n)] == reach


def test_shortest_texts_are_found_nearest_first() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        n = rng.randrange(1, 8)
        edges = [[(97 + rng.randrange(3), rng.randrange(n)) for _ in range(rng.randrange(3))] for _ in range(n)]
        found = shortest_texts([0], edges.__getitem__)
        assert list(map(len, found.values())) == sorted(map(len, found.values()))
        successors = [[target for _, target in ways] for ways in edges]
        before = predecessors(successors)
        assert list(found) == reachable([0], successors.__getitem__)
        for node, text in found.items():
            assert node == 0 or len(text) == 1 + min(len(found[one]) for one in before[node] if one in found)
            nodes = {0}
            for byte in text:
                nodes = {target for one in nodes for letter, target in edges[one] if letter == byte}
            assert node in nodes


def test_a_long_chain_and_a_long_cycle() -> None:
    n = 100_000
    assert len(components([[node + 1] for node in range(n)] + [[]])) == n + 1
    assert list(map(len, components([[(node + 1) % n] for node in range(n)]))) == [n]
