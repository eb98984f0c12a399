"""Classes of tokens: the coarsest of which all groups are unions, on random groups and of real lexers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from maskwright.maskstore.tokens.classes import TokenClasses, token_classes


def random_groups(rng: np.random.Generator, n_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """The groups of one lexer state. A token may be in several of them, and in one of them twice."""
    ids: list[int] = []
    starts = [0]
    n_kinds = int(rng.integers(1, 6))
    kind = np.arange(n_tokens) * n_kinds // n_tokens ^ (rng.random(n_tokens) < 0.02)
    for _ in range(int(rng.integers(0, 5))):
        group = np.flatnonzero(kind == rng.integers(n_kinds))
        if rng.random() < 0.3:
            group = np.sort(np.concatenate([group, rng.choice(n_tokens, 2), group[:2]]))
        if len(group):
            ids += group.tolist()
            starts.append(len(ids))
    return np.array(ids, np.int32), np.array(starts, np.int64)


def naive_classes(states: list[tuple[np.ndarray, np.ndarray]], n_tokens: int) -> list[list[int]]:
    """Tokens by the groups that they are in."""
    of: list[set[tuple[int, int]]] = [set() for _ in range(n_tokens)]
    for state, (ids, starts) in enumerate(states):
        for group, (begin, end) in enumerate(pairwise(starts.tolist())):
            for token in ids[begin:end].tolist():
                of[token].add((state, group))
    classes: dict[frozenset[tuple[int, int]], list[int]] = {}
    for token, groups in enumerate(of):
        if groups:
            classes.setdefault(frozenset(groups), []).append(token)
    return list(classes.values())


@pytest.mark.parametrize("seed", range(60))
def test_tokens_of_a_class_are_in_the_same_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_tokens = int(rng.choice([1, 7, 40, 300]))
    states = [random_groups(rng, n_tokens) for _ in range(int(rng.integers(0, 8)))]
    classes, groups = token_classes(states, n_tokens)
    found = [classes.ids[begin:end].tolist() for begin, end in pairwise(classes.start.tolist())]
    assert found == naive_classes(states, n_tokens)
    assert classes.sizes.tolist() == [len(ids) for ids in found] and len(classes) == len(found)
    for (ids, starts), (members, member_start) in zip(states, groups, strict=True):
        assert len(starts) == len(member_start)
        for (begin, end), (first, last) in zip(pairwise(starts), pairwise(member_start), strict=True):
            assert len(set(members[first:last].tolist())) == last - first
            tokens, _ = classes.tokens(members[first:last], np.array([0, last - first]))
            assert tokens.tolist() == sorted(set(ids[begin:end].tolist()))


@pytest.mark.parametrize("seed", range(20))
def test_tokens_and_rows_of_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_tokens = int(rng.integers(1, 400))
    classes, _ = token_classes([random_groups(rng, n_tokens) for _ in range(4)], n_tokens)
    classes = classes.and_one(np.array([n_tokens, n_tokens + 2], np.int32))
    sets = [np.flatnonzero(rng.random(len(classes)) < rng.random()).astype(np.int32) for _ in range(5)]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    ids, begin = classes.tokens(np.concatenate(sets), starts)
    words = np.zeros((5, -(-len(classes) // 32)), np.uint32)
    for row, one in enumerate(sets):
        for number in one.tolist():
            words[row, number >> 5] |= np.uint32(1 << (number & 31))
    rows = classes.rows(words, (n_tokens + 3 + 31) // 32)
    for row, (one, (first, last)) in enumerate(zip(sets, pairwise(begin), strict=True)):
        expected = sorted(
            t
            for number in one.tolist()
            for t in classes.ids[classes.start[number] : classes.start[number + 1]].tolist()
        )
        assert ids[first:last].tolist() == expected
        assert np.flatnonzero(np.unpackbits(rows[row].view(np.uint8), bitorder="little")).tolist() == expected


def test_no_tokens() -> None:
    classes, groups = token_classes([(np.zeros(0, np.int32), np.zeros(1, np.int64))], 3)
    assert len(classes) == 0 and groups[0][0].tolist() == [] and groups[0][1].tolist() == [0]
    assert isinstance(classes, TokenClasses) and not classes.rows(np.zeros((2, 0), np.uint32), 1).any()
