"""Strongly connected components against the definition: who reaches whom."""

from __future__ import annotations

import random

from maskwright.analysis.components import components


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


def test_a_long_chain_and_a_long_cycle() -> None:
    n = 100_000
    assert len(components([[node + 1] for node in range(n)] + [[]])) == n + 1
    assert list(map(len, components([[(node + 1) % n] for node in range(n)]))) == [n]
