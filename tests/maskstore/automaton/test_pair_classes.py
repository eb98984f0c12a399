"""Classes of pairs that come in parts, against partition refinement of all of them at once."""

from __future__ import annotations

import random

import numpy as np
import pytest

from maskwright.maskstore.automaton import pair_classes
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, FIRST_STATE, REFUSED
from maskwright.maskstore.automaton.pair_classes import PairClasses

Graph = list[tuple[int, list[int]]]
"""Each pair's cell and edges: REFUSED, ACCEPTED or FIRST_STATE + a pair. As many edges as the cell says, and one."""


def random_parts(rng: random.Random, n_cells: int) -> list[Graph]:
    """Parts whose edges lead into them or to earlier ones. Copies of what is there, unrolled or not, make pairs that are bisimilar."""
    whole: Graph = []
    parts = []
    for _ in range(rng.randint(1, 6)):
        base, size = len(whole), rng.randint(1, 9)
        part: Graph = []
        if base and rng.random() < 0.6:
            # two copies of some pairs, edges among them led to either copy, or left where they were
            source = rng.sample(range(base), min(base, size))
            copy = {old: [base + i, base + i + len(source)] for i, old in enumerate(source)}
            for _ in range(2):
                for old in source:
                    cell, edges = whole[old]
                    part.append(
                        (
                            cell,
                            [
                                FIRST_STATE + rng.choice([*copy[after - FIRST_STATE], after - FIRST_STATE])
                                if after - FIRST_STATE in copy and after >= FIRST_STATE
                                else after
                                for after in edges
                            ],
                        )
                    )
            if rng.random() < 0.3:
                part[0] = (part[0][0], [REFUSED, *part[0][1][1:]])
        else:
            for _ in range(size):
                cell = rng.randrange(n_cells)
                reach = FIRST_STATE + base + size
                part.append((cell, [rng.choice([rng.randrange(2), rng.randrange(reach)]) for _ in range(cell + 1)]))
        whole += part
        parts.append(part)
    return parts


def can_be(graph: Graph, verdict: int) -> list[bool]:
    found = [False] * len(graph)
    while True:
        more = [
            any(after == verdict or (after >= FIRST_STATE and found[after - FIRST_STATE]) for after in edges)
            for _, edges in graph
        ]
        if more == found:
            return found
        found = more


def naive_classes(graph: Graph) -> list[int]:
    """The coarsest partition: REFUSED, ACCEPTED, or a number from FIRST_STATE on; by definition, round by round."""
    accepts, refuses = can_be(graph, ACCEPTED), can_be(graph, REFUSED)
    classes = [REFUSED if not accepts[i] else ACCEPTED if not refuses[i] else FIRST_STATE for i, _ in enumerate(graph)]
    while True:
        number: dict[object, int] = {}
        every = [REFUSED, ACCEPTED, *classes]
        fresh = [
            mine
            if mine < FIRST_STATE
            else number.setdefault((mine, cell, tuple(every[e] for e in edges)), FIRST_STATE + len(number))
            for mine, (cell, edges) in zip(classes, graph, strict=True)
        ]
        if len(set(fresh)) == len(set(classes)):
            return fresh
        classes = fresh


def arrays(graph: Graph, n_cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    keys = np.array([(1000 - i) * n_cells + cell for i, (cell, _) in enumerate(graph)], np.int64)
    starts = np.concatenate([[0], np.cumsum([len(edges) for _, edges in graph])]).astype(np.int64)
    return keys, starts, np.array([after for _, edges in graph for after in edges], np.int32)


def check(seed: int) -> int:
    """Returns how many pairs are in the class of one of an earlier part, without being decided."""
    rng = random.Random(seed)
    n_cells = rng.randint(1, 3)
    parts = random_parts(rng, n_cells)
    classes, graph, shared = PairClasses(), [], 0
    for part in parts:
        before = set(classes.of_pair[FIRST_STATE:].tolist())
        graph += part
        if not all(a or r for a, r in zip(can_be(graph, ACCEPTED), can_be(graph, REFUSED), strict=True)):
            with pytest.raises(AssertionError, match="can never be decided"):
                classes.extend(n_cells, len(graph), *arrays(graph, n_cells))
            return shared
        classes.extend(n_cells, len(graph), *arrays(graph, n_cells))
        found, wanted = classes.of_pair[FIRST_STATE:].tolist(), naive_classes(graph)
        assert len(set(zip(found, wanted, strict=True))) == len(set(found)) == len(set(wanted)), (graph, found, wanted)
        assert all(mine == other for mine, other in zip(found, wanted, strict=True) if min(mine, other) < FIRST_STATE)
        assert classes.n_classes == len(set(wanted) - {REFUSED, ACCEPTED})
        for number in set(found) - {REFUSED, ACCEPTED}:
            assert classes.least[number] == 1000 - max(i for i, mine in enumerate(found) if mine == number)
        shared += sum(mine in before and mine >= FIRST_STATE for mine in found[-len(part) :])
    return shared


def test_classes_of_parts_are_those_of_the_whole() -> None:
    assert sum(check(seed) for seed in range(400)) > 300


def test_a_pause_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_classes, "PAUSE", 1)
    for seed in range(100):
        check(seed)


@pytest.mark.slow
def test_classes_of_many_random_parts() -> None:
    for seed in range(1_000, 15_000):
        check(seed)
