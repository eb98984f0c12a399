"""Masks as shared rows and ids beside them: each mask is what it was, and the stated limits hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from shares import share

from maskwright.maskstore.table.write import MaskRows, most_ids, most_ids_more, share_rows
from maskwright.maskstore.tokens.classes import TokenClasses


def singles(n_tokens: int) -> TokenClasses:
    return TokenClasses(np.arange(n_tokens + 1), np.arange(n_tokens, dtype=np.int32))


def closure_of(masks: list[list[int]], n_words: int, dense_from: int) -> Any:
    """Masks as a closure holds them: bitmasks from so many tokens on, else lists of ids."""
    dense: list[np.ndarray] = []
    ids: list[int] = []
    count, at = [], []
    for mask in masks:
        if len(mask) >= dense_from:
            words = np.zeros(n_words, np.uint32)
            for token in mask:
                words[token >> 5] |= np.uint32(1 << (token & 31))
            count.append(-1)
            at.append(len(dense))
            dense.append(words)
        else:
            count.append(len(mask))
            at.append(len(ids))
            ids += mask
    return SimpleNamespace(
        dense=np.array(dense, np.uint32).reshape(-1, n_words),
        mask_count=np.array(count, np.int32),
        mask_at=np.array(at, np.int64),
        mask_ids=np.array(ids, np.int32),
    )


@pytest.mark.parametrize("seed", share(range(40), 7))
def test_rows_and_ids_are_the_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_words = int(rng.choice([1, 3, 8, 40, 300]))
    n_tokens = 32 * n_words
    kinds = [rng.random(n_tokens) < rng.random() for _ in range(int(rng.integers(1, 5)))]
    masks = [[]]
    for _ in range(int(rng.integers(1, 150))):
        kind = kinds[rng.integers(len(kinds))] ^ (rng.random(n_tokens) < rng.choice([0, 1, 10]) / n_tokens)
        masks.append(np.flatnonzero(kind if rng.random() < 0.7 else rng.random(n_tokens) < 0.01).tolist())
    found = share_rows(
        closure_of(masks, n_words, int(rng.choice([5, n_tokens // 4 + 1, n_tokens + 1]))), singles(n_tokens), n_words
    )
    for number, mask in enumerate(masks):
        ids = found.ids[found.begin[number] : found.begin[number] + found.count[number]].tolist()
        row = found.row[number]
        shared = (
            [] if row < 0 else np.flatnonzero(np.unpackbits(found.rows[row].view(np.uint8), bitorder="little")).tolist()
        )
        assert sorted(shared + ids) == mask and ids == sorted(ids), "each token once, in the row or beside it"
        assert len(ids) <= (most_ids(n_words) if row < 0 else most_ids_more(n_words))
        assert row >= 0 or len(mask) <= most_ids(n_words)
    assert sorted(set(found.row[found.row >= 0].tolist())) == list(range(len(found.rows))), "no row is for nothing"


@pytest.mark.parametrize("seed", share(range(40), 7))
def test_masks_of_classes_are_those_of_their_tokens(seed: int) -> None:
    """The same rows and ids, whether a mask is told by classes or by each of its tokens."""
    rng = np.random.default_rng(seed)
    n_words = int(rng.choice([1, 3, 8, 40]))
    n_tokens = 32 * n_words - int(rng.integers(32))
    n_classes = int(rng.integers(1, min(n_tokens, 150)))
    class_of = (
        rng.integers(n_classes, size=n_tokens) if seed % 2 else rng.geometric(4 / n_classes, n_tokens) % n_classes
    )
    is_in_none = rng.random(n_tokens) < 0.1
    of_class = [np.flatnonzero((class_of == number) & ~is_in_none).astype(np.int32) for number in range(n_classes)]
    of_class = sorted((ids for ids in of_class if len(ids)), key=lambda ids: int(ids[0]))
    start = np.concatenate([[0], np.cumsum([len(ids) for ids in of_class])]).astype(np.int64)
    classes = TokenClasses(start, np.concatenate([np.zeros(0, np.int32), *of_class]))
    kinds = [rng.random(len(classes)) < rng.random() for _ in range(3)]
    masks = [[]]
    for _ in range(int(rng.integers(1, 80))):
        kind = kinds[rng.integers(3)] ^ (rng.random(len(classes)) < 1 / len(classes))
        masks.append(np.flatnonzero(kind).tolist())
    found = share_rows(closure_of(masks, -(-len(classes) // 32), int(rng.choice([1, 5, 1000]))), classes, n_words)
    told = [sorted(int(token) for number in mask for token in of_class[number]) for mask in masks]
    expected = share_rows(closure_of(told, n_words, int(rng.choice([1, 5, 10_000]))), singles(n_tokens), n_words)
    for name in MaskRows.__slots__:
        assert (getattr(found, name) == getattr(expected, name)).all(), name


def test_like_masks_share_a_row() -> None:
    masks = [[], *([*range(900), 1000 + k] for k in range(20)), list(range(900, 1024))]
    found = share_rows(closure_of(masks, 32, 32), singles(1024), 32)
    assert len(found.rows) == 2 and len(set(found.row[1:21].tolist())) == 1
    assert found.count[1:].tolist() == [0, *[1] * 19, 0] or found.count[1:21].max() <= 1


def test_no_masks() -> None:
    found = share_rows(closure_of([[]], 4, 9), singles(128), 4)
    assert len(found.rows) == 0 and found.row.tolist() == [-1] and found.count.tolist() == [0]
