"""Compiled loops that make masks, sets of classes of tokens, each distinct mask once.

`pool` is a `Pool`, see `closure_tables`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton import closure_tables as closing
from maskwright.maskstore.tokens._hash_kernels import number_of_run


@kernel
def add_mask(mask, pool):  # type: ignore[no-untyped-def]
    """Add the classes of a pooled mask to pool.words."""
    items = pool.masks.items
    begin, end = pool.masks.start[mask], pool.masks.start[mask + 1]
    if begin < end and items[begin] == closing.DENSE:
        for w in range(pool.words.shape[0]):
            pool.words[w] |= np.uint32(items[begin + 1 + w])
    else:
        for i in range(begin, end):
            pool.words[items[i] >> 5] |= np.uint32(1) << np.uint32(items[i] & 31)


@kernel(forceinline=True)
def bits_of(word):  # type: ignore[no-untyped-def]
    """The number of bits set in a uint32."""
    word = word - ((word >> np.uint32(1)) & np.uint32(0x55555555))
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return (word * np.uint32(0x01010101) & np.uint32(0xFFFFFFFF)) >> np.uint32(24)


@kernel
def pool_mask(pool):  # type: ignore[no-untyped-def]
    """The number of the mask in pool.words, a new one if it is not in the pool.

    Clears the words.
    """
    words, run = pool.words, pool.run
    count = 0
    for w in range(words.shape[0]):
        if words[w] != 0:
            count += np.int64(bits_of(words[w]))
    if count == 0:
        return np.int64(closing.NO_MASK)
    n = 0
    if count > pool.limit:
        run[0] = closing.DENSE
        n = 1 + words.shape[0]
        for w in range(words.shape[0]):
            run[1 + w] = np.int32(words[w])
            words[w] = 0
        return number_of_run(run, n, pool.masks)
    for w in range(words.shape[0]):
        word = words[w]
        if word != 0:
            while word != 0:
                rest = word & (word - np.uint32(1))
                run[n] = w * 32 + np.int64(bits_of((word ^ rest) - np.uint32(1)))
                n += 1
                word = rest
            words[w] = 0
    return number_of_run(run, n, pool.masks)


@kernel(forceinline=True)
def lack_of_masks(n, pool):  # type: ignore[no-untyped-def]
    """FULL_MASKS or FULL_IDS if there may be no room for n more masks, else 0."""
    masks = pool.masks
    if masks.size[0] + n > masks.hashes.shape[0]:
        return closing.FULL_MASKS
    return closing.FULL_IDS if masks.start[masks.size[0]] + n * pool.run.shape[0] > masks.items.shape[0] else 0


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
    pool: closing.Pool,
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
    full = lack_of_masks(n + 3, pool)
    if full != 0:
        return -full, -1
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
    own = pool_mask(pool)
    order = np.argsort(found[:n], kind="mergesort")
    n_roots = 0
    for i in range(n):
        add_group(groups[order[i]], case, pool)
        if i + 1 == n or found[order[i + 1]] != found[order[i]]:
            roots[n_roots] = found[order[i]]
            masks[n_roots] = pool_mask(pool)
            n_roots += 1
    return n_roots, own


@kernel(forceinline=True)
def union(masks, n, pool):  # type: ignore[no-untyped-def]
    """The number of the union of masks[:n]; NO_MASK if n is 0."""
    if n == 0:
        return np.int64(closing.NO_MASK)
    first = np.int64(masks[0])
    same = True
    for i in range(1, n):
        if masks[i] != first:
            same = False
            break
    if same:
        return first
    for i in range(n):
        add_mask(masks[i], pool)
    return pool_mask(pool)
