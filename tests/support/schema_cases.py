"""Schemas of public suites, and whether two graphs are the same."""

from __future__ import annotations

import json
import lzma
from typing import Any

import numpy as np
import pytest
from paths import SHARED

from maskwright.analysis.schema.shapes import NO_NODE, Arrays, KeyAutomaton, Objects, SchemaGraph, Shape

DRAFTS = {"draft4": 4, "draft6": 6, "draft7": 7, "draft2019-09": 2019, "draft2020-12": 2020}


def records(name: str) -> list[dict[str, Any]]:
    """The records of a file beside the repository; skips the test where it is not there."""
    path = SHARED / "jsonschema" / f"{name}.jsonl.xz"
    if not path.exists():
        pytest.skip(f"{path} is not there: it holds third-party schemas that are not in the repository")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def same_graphs(left: SchemaGraph, right: SchemaGraph) -> bool:
    """Whether two graphs have the same shapes in the same order, whatever the numbers of their nodes."""
    todo = [(left.root, right.root)]
    known = set(todo)
    for a, b in todo:
        if (a == NO_NODE) != (b == NO_NODE):
            return False
        if a == NO_NODE:
            continue
        if len(left.nodes[a]) != len(right.nodes[b]):
            return False
        for one, other in zip(left.nodes[a], right.nodes[b], strict=True):
            inside = _same_shapes(one, other)
            if inside is None:
                return False
            new = [pair for pair in inside if pair not in known]
            known.update(new)
            todo.extend(new)
    return True


def _same_shapes(one: Shape, other: Shape) -> list[tuple[int, int]] | None:
    """The pairs of nodes that must be the same; None if the shapes differ."""
    if type(one) is not type(other):
        return None
    if isinstance(one, Objects) and isinstance(other, Objects):
        blank = {"values": (), "others": (), "key_automaton": None, "wanted": ()}
        if one._replace(**blank) != other._replace(**blank) or len(one.others) != len(other.others):
            return None
        if len(one.wanted) != len(other.wanted):
            return None
        if not _same_keys(one.key_automaton, other.key_automaton):
            return None
        return [*zip(one.member_nodes, other.member_nodes, strict=True)]
    if isinstance(one, Arrays) and isinstance(other, Arrays):
        plain = {"prefix": (), "items": 0, "contained": None}
        if one._replace(**plain) != other._replace(**plain) or len(one.prefix) != len(other.prefix):
            return None
        pairs = [*zip(one.prefix, other.prefix, strict=True), (one.items, other.items)]
        if one.contained is None or other.contained is None:
            return pairs if one.contained == other.contained else None
        if one.contained._replace(prefix=(), items=0) != other.contained._replace(prefix=(), items=0):
            return None
        pairs += zip(one.contained.prefix, other.contained.prefix, strict=True)
        return [*pairs, (one.contained.items, other.contained.items)]
    return [] if one == other else None


def _same_keys(one: KeyAutomaton | None, other: KeyAutomaton | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.next_state, other.next_state) and np.array_equal(one.ends, other.ends)


def check_graph(graph: SchemaGraph) -> None:
    """The invariants of `shapes.py` that can be checked at once."""
    n = len(graph.nodes)
    assert 0 <= graph.root < n
    for shapes in graph.nodes:
        assert shapes
        for shape in shapes:
            if isinstance(shape, Objects):
                _check_object(shape, n)
            elif isinstance(shape, Arrays):
                assert shape.most is None or shape.most >= shape.least
                nodes = [*shape.prefix, shape.items]
                if shape.contained is not None:
                    assert not shape.is_unique
                    assert len(shape.contained.prefix) == len(shape.prefix)
                    nodes += [*shape.contained.prefix, shape.contained.items]
                assert all(NO_NODE <= node < n for node in nodes)
                if shape.is_unique and not shape.is_deep:
                    inside = [each for node in nodes if node != NO_NODE for each in graph.nodes[node]]
                    assert not any(isinstance(each, (Objects, Arrays)) for each in inside)
            elif hasattr(shape, "texts"):
                assert shape.texts and list(shape.texts) == sorted(set(shape.texts))


def _check_object(shape: Objects, n: int) -> None:
    assert list(shape.keys) == sorted(set(shape.keys))
    assert len(shape.keys) == len(shape.values) == len(shape.required)
    assert all(NO_NODE <= node < n for node in shape.values)
    assert all(0 <= node < n for node in shape.others)
    assert all(node != NO_NODE for node, needed in zip(shape.values, shape.required, strict=True) if needed)
    possible = sum(node != NO_NODE for node in shape.values)
    assert shape.others or shape.least <= possible
    assert shape.most is None or shape.most >= max(sum(shape.required) + len(shape.wanted), shape.least)
    for row in shape.wanted:
        assert len(row) == len(shape.others) and max(row) > NO_NODE and all(NO_NODE <= node < n for node in row)
        assert shape.most is None or NO_NODE not in row
    assert shape.ranks is None or sorted(shape.ranks) == list(range(len(shape.keys)))
    automaton = shape.key_automaton
    if automaton is None:
        assert len(shape.others) <= 1
        return
    assert {int(which) for which in automaton.ends if which >= 0} == set(range(len(shape.others)))
    for key in shape.keys:
        state = 0
        for byte in key:
            state = int(automaton.next_state[state, byte]) if state >= 0 else -1
        assert state < 0 or automaton.ends[state] < 0
