"""Compiled loops that make masks, sets of classes of tokens, each distinct mask once.

`pool` is a `Pool`, see `closure_tables`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton.closure_tables import (
    FULL_DENSE,
    FULL_IDS,
    FULL_MASKS,
    N_DENSE,
    N_IDS,
    N_MASKS,
    NO_MASK,
    Pool,
)
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


class DepthCase(NamedTuple):
    """A depth case of a lexer state, with the classes of tokens of its groups.

    line_breaks, continuation, group : (n,) int32; see `state_tokens.DepthCase`.
    members, member_start : see `state_tokens.StateTokens`.
    """

    line_breaks: Int32
    continuation: Int32
    group: Int32
    members: Int32
    member_start: Int64


@kernel
def add_group(group, case, pool):  # type: ignore[no-untyped-def]
    """Add the classes of a group to pool.words."""
    for j in range(case.member_start[group], case.member_start[group + 1]):
        member = case.members[j]
        pool.words[member >> 5] |= np.uint32(1) << np.uint32(member & 31)


@kernel(entry=True, allocates=True)
def find_items(
    case: DepthCase,
    breaks: int,
    distinct: Int32,
    n_continuations: int,
    never: int,
    roots: Int32,
    masks: Int32,
    pool: Pool,
    sizes: Int64,
) -> tuple[int, int]:
    """The distinct roots of the groups behind certain line breaks, with the masks of their classes.

    breaks : the number of the line breaks.
    distinct : the distinct root of each continuation, then of lookahead set -1 - n at
        n_continuations + n. `never` stands for a root that no stack accepts.
    Written: roots, ascending, and masks, which have room for all groups.

    Returns how many roots there are, and the mask of what is allowed whatever comes. If a table of
    the pool may have no room: -1 times its code, and -1.
    """
    n = 0
    for i in range(case.group.shape[0]):
        if case.line_breaks[i] == breaks:
            n += 1
    if sizes[N_MASKS] + n + 3 > pool.hashes.shape[0]:
        return -FULL_MASKS, -1
    if sizes[N_DENSE] + n + 3 > pool.dense.shape[0]:
        return -FULL_DENSE, -1
    if sizes[N_IDS] + (n + 2) * pool.limit + 2 > pool.ids.shape[0]:
        return -FULL_IDS, -1
    found, groups = np.empty(n, np.int32), np.empty(n, np.int32)
    n = 0
    for i in range(case.group.shape[0]):
        if case.line_breaks[i] != breaks:
            continue
        continuation = case.continuation[i]
        if continuation == -1:  # whatever comes
            add_group(case.group[i], case, pool)
            continue
        root = distinct[continuation if continuation >= 0 else n_continuations - continuation - 1]
        if root != never:
            found[n] = root
            groups[n] = case.group[i]
            n += 1
    own = pool_mask(pool, sizes)
    order = np.argsort(found[:n], kind="mergesort")
    n_roots = 0
    for i in range(n):
        add_group(groups[order[i]], case, pool)
        if i + 1 == n or found[order[i + 1]] != found[order[i]]:
            roots[n_roots] = found[order[i]]
            masks[n_roots] = pool_mask(pool, sizes)
            n_roots += 1
    return n_roots, own


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
