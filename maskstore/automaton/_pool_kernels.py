"""Compiled loops that make masks, sets of classes of tokens, each distinct mask once.

`pool` is a `Pool`, see `closure_tables`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton.closure_tables import N_DENSE, N_IDS, N_MASKS, NO_MASK, Pool
from maskwright.maskstore.tokens._hash_kernels import first_slot, mix


@kernel
def add_mask(mask, pool):  # type: ignore[no-untyped-def]
    """Add the classes of a pooled mask to pool.words."""
    at = pool.begin[mask]
    if pool.n_ids[mask] < 0:
        for w in range(pool.words.shape[0]):
            pool.words[w] |= pool.dense[at, w]
    else:
        for i in range(at, at + pool.n_ids[mask]):
            member = pool.ids[i]
            pool.words[member >> 5] |= np.uint32(1) << np.uint32(member & 31)


@kernel
def is_in_words(mask, count, pool):  # type: ignore[no-untyped-def]
    """Whether a pooled mask is the one in pool.words. Both have `count` classes."""
    if pool.n_ids[mask] < 0:
        row = pool.begin[mask]
        for w in range(pool.words.shape[0]):  # noqa: SIM110
            if pool.dense[row, w] != pool.words[w]:
                return False
        return True
    for i in range(pool.begin[mask], pool.begin[mask] + count):
        member = pool.ids[i]
        if (pool.words[member >> 5] >> np.uint32(member & 31)) & np.uint32(1) == 0:
            return False
    return True


@kernel(forceinline=True)
def bits_of(word):  # type: ignore[no-untyped-def]
    """The number of bits set in a uint32."""
    word = word - ((word >> np.uint32(1)) & np.uint32(0x55555555))
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return (word * np.uint32(0x01010101) & np.uint32(0xFFFFFFFF)) >> np.uint32(24)


@kernel
def pool_mask(pool, sizes):  # type: ignore[no-untyped-def]
    """The number of the mask in pool.words, a new one if it is not in the pool.

    Clears the words.
    """
    words = pool.words
    n_words = words.shape[0]
    count = 0
    h = np.uint64(0x2545F4914F6CDD1D)
    for w in range(n_words):
        word = words[w]
        if word != 0:
            h = mix(h, (np.uint64(w) << np.uint64(32)) | np.uint64(word))
            count += np.int64(bits_of(word))
    if count == 0:
        return NO_MASK
    key = np.int64(h >> np.uint64(1))
    at = first_slot(key, pool.slots)
    is_dense = count > pool.limit
    while pool.slots[at] >= 0:
        known = pool.slots[at]
        if (
            pool.hashes[known] == key
            and pool.n_ids[known] == (-1 if is_dense else count)
            and is_in_words(known, count, pool)
        ):
            words[:] = 0
            return known
        at = (at + 1) & (pool.slots.shape[0] - 1)
    number = sizes[N_MASKS]
    sizes[N_MASKS] = number + 1
    pool.hashes[number] = key
    pool.slots[at] = number
    if is_dense:
        row = sizes[N_DENSE]
        sizes[N_DENSE] = row + 1
        pool.n_ids[number] = -1
        pool.begin[number] = row
        for w in range(n_words):
            pool.dense[row, w] = words[w]
            words[w] = 0
        return number
    end = sizes[N_IDS]
    pool.n_ids[number] = count
    pool.begin[number] = end
    for w in range(n_words):
        word = words[w]
        if word != 0:
            while word != 0:
                rest = word & (word - np.uint32(1))
                pool.ids[end] = w * 32 + np.int64(bits_of((word ^ rest) - np.uint32(1)))
                end += 1
                word = rest
            words[w] = 0
    sizes[N_IDS] = end
    return number


@kernel(entry=True)
def pool_groups(
    members: Int32, member_start: Int64, groups: Int32, starts: Int64, out: Int32, pool: Pool, sizes: Int64
) -> int:
    """Make the masks of unions of groups of classes; see `MaskCollector.add_groups`.

    Written: out, (n,) int32; out[i] is the mask of groups[starts[i] : starts[i + 1]].

    Returns how many are made: n, or fewer if the pool is full.
    """
    for i in range(starts.shape[0] - 1):
        if (
            sizes[N_MASKS] + 2 > pool.hashes.shape[0]
            or sizes[N_DENSE] + 2 > pool.dense.shape[0]
            or sizes[N_IDS] + pool.limit + 2 > pool.ids.shape[0]
        ):
            return i
        for g in range(starts[i], starts[i + 1]):
            group = groups[g]
            for j in range(member_start[group], member_start[group + 1]):
                member = members[j]
                pool.words[member >> 5] |= np.uint32(1) << np.uint32(member & 31)
        out[i] = pool_mask(pool, sizes)
    return starts.shape[0] - 1


@kernel(forceinline=True)
def union(masks, n, pool, sizes):  # type: ignore[no-untyped-def]
    """The number of the union of masks[:n]; NO_MASK if n is 0."""
    if n == 0:
        return NO_MASK
    first = masks[0]
    same = True
    for i in range(1, n):
        if masks[i] != first:
            same = False
            break
    if same:
        return first
    for i in range(n):
        add_mask(masks[i], pool)
    return pool_mask(pool, sizes)
