"""The pool of masks against sets of token ids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_store import mask_ids

from maskwright.maskstore.vocabulary.masks import MaskPoolBuilder, n_words


def to_words(ids: set[int], n_tokens: int) -> np.ndarray:
    words = np.zeros(n_words(n_tokens), np.uint32)
    for i in ids:
        words[i // 32] |= np.uint32(1 << (i % 32))
    return words


@st.composite
def pools(draw: st.DrawFn) -> tuple[int, list[set[int]]]:
    n_tokens = draw(st.integers(1, 200))
    ids = st.sets(st.integers(0, n_tokens - 1), min_size=1)
    few = st.sets(st.integers(0, n_tokens - 1), min_size=1, max_size=3)
    return n_tokens, draw(st.lists(st.one_of(ids, few), max_size=12))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(pools())
def test_pool_equals_sets(case: tuple[int, list[set[int]]]) -> None:
    n_tokens, sets = case
    builder = MaskPoolBuilder(n_tokens)
    provisional = [builder.add(to_words(ids, n_tokens), len(ids)) for ids in sets]
    pool, final = builder.build()
    distinct = {frozenset(ids) for ids in sets}
    assert len(pool) == len(distinct) == len(final)
    assert sorted(final.tolist()) == list(range(len(pool)))
    for ids, number in zip(sets, provisional, strict=True):
        mask = int(final[number])
        assert pool.ids(mask).tolist() == sorted(ids)
        words = to_words({0}, n_tokens)
        pool.or_into(words, mask)
        assert mask_ids(words) == ids | {0}
        # an id list of n tokens takes 4 n bytes, a bitmask V / 8
        assert (mask < len(pool.dense)) == (32 * len(ids) > n_tokens)
    assert pool.n_bytes == pool.dense.nbytes + pool.sparse_ids.nbytes + pool.sparse_start.nbytes


@pytest.mark.parametrize(("n_tokens", "expected"), [(0, 0), (1, 1), (32, 1), (33, 2), (64, 2), (32000, 1000)])
def test_n_words(n_tokens: int, expected: int) -> None:
    assert n_words(n_tokens) == expected


def test_bits_are_little_end_first() -> None:
    builder = MaskPoolBuilder(40)
    ids = {0, 5, 31, 32, 39}
    builder.add(to_words(ids, 40), len(ids))
    pool, _ = builder.build()
    assert pool.dense.tolist() == [[1 | 1 << 5 | 1 << 31, 1 | 1 << 7]]
    assert pool.ids(0).dtype == np.int32 and pool.ids(0).tolist() == sorted(ids)
