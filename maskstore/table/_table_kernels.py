"""Compiled loops that lay out the engine's table, and its hash function for edges."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32, Int32_2D, Int64, Int64_2D, UInt32_2D
from maskwright.analysis.jit import kernel


@kernel
def edge_slot(key, n_slots):  # type: ignore[no-untyped-def]
    """The slot at which the search for an edge begins. key : int32, not negative."""
    # Numba widens a product of two uint32 to 64 bits
    h = (np.uint64(key) * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)
    return np.int64((h * np.uint64(n_slots)) >> np.uint64(32))


@kernel(entry=True, allocates=True)
def choose_defaults(node_of: Int64, number: Int32, nodes: Int32_2D) -> None:
    """Write the most common number among each node's edges to nodes[n, 0]. The least wins a tie.

    node_of, number : (n_edges,); each edge's node, ascending, and its number.
    nodes : (n_nodes, 2) int32. A node without edges is left as it is.
    """
    begin = 0
    n_edges = node_of.shape[0]
    while begin < n_edges:
        end = begin
        node = node_of[begin]
        while end < n_edges and node_of[end] == node:
            end += 1
        keys = np.sort(number[begin:end])
        best = 0
        count = 0
        for i in range(keys.shape[0]):
            count = count + 1 if i > 0 and keys[i] == keys[i - 1] else 1
            if count > best:
                best = count
                nodes[node, 0] = keys[i]
        begin = end


@kernel(entry=True)
def fill_edges(keys: Int32, number: Int32, slots: Int32_2D) -> None:
    """Enter edges into the hash table.

    keys, number : (n_edges,) int32; keys are distinct and not negative.
    slots : (n_slots, 2) int32; key and number; -1 where free, at least one slot more than edges.
    """
    n_slots = slots.shape[0]
    for i in range(keys.shape[0]):
        at = edge_slot(keys[i], n_slots)
        while slots[at, 0] >= 0:
            at = at + 1 if at + 1 < n_slots else 0
        slots[at, 0] = keys[i]
        slots[at, 1] = number[i]


@kernel(entry=True)
def write_rows(count: Int32, at: Int64, dense: UInt32_2D, ids: Int32, words: UInt32_2D) -> None:
    """Write masks of a closure as bitmasks of classes.

    count, at : (n,); of the masks, as `Closure.mask_count` and `Closure.mask_at`.
    dense, ids : `Closure.dense`, `Closure.mask_ids`.
    words : (n, n_words) uint32, zero before; word row i becomes mask i.
    """
    for i in range(count.shape[0]):
        if count[i] < 0:
            for w in range(words.shape[1]):
                words[i, w] = dense[at[i], w]
        else:
            for k in range(at[i], at[i] + count[i]):
                words[i, ids[k] >> 5] |= np.uint32(1) << np.uint32(ids[k] & 31)


@kernel(forceinline=True)
def weight_of(word, w, weights):  # type: ignore[no-untyped-def]
    """The number of tokens of the classes in word w of a bitmask.

    weights : (8 n_words, 16) int32; see `write.MaskRows`.
    """
    weight = np.int64(0)
    at = 8 * w
    while word != 0:
        weight += np.int64(weights[at, word & np.uint32(15)])
        word >>= np.uint32(4)
        at += 1
    return weight


@kernel(entry=True)
def mask_sizes(
    count: Int32, at: Int64, dense: UInt32_2D, ids: Int32, class_sizes: Int64, weights: Int32_2D, sizes: Int64
) -> None:
    """Count the tokens of masks of a closure.

    count, at : (n,); of the masks, as `Closure.mask_count` and `Closure.mask_at`.
    dense, ids : `Closure.dense`, `Closure.mask_ids`.
    class_sizes : (n_classes,) int64; the number of tokens of each class.
    weights : see `weight_of`.
    sizes : (n,) int64, zero before, written.
    """
    for i in range(count.shape[0]):
        if count[i] < 0:
            for w in range(dense.shape[1]):
                sizes[i] += weight_of(dense[at[i], w], w, weights)
        else:
            for k in range(at[i], at[i] + count[i]):
                sizes[i] += class_sizes[ids[k]]


@kernel(forceinline=True)
def list_bits(words, row, end, found):  # type: ignore[no-untyped-def]
    """Write the members of a bitmask, from found[end] on, or only count them if `found` is empty.

    Returns where they end.
    """
    for w in range(words.shape[1]):
        word = words[row, w]
        bit = 0
        while word != 0:
            if word & np.uint32(1) != 0:
                if found.shape[0] > 0:
                    found[end] = 32 * w + bit
                end += 1
            word >>= np.uint32(1)
            bit += 1
    return end


@kernel(entry=True)
def list_classes(
    count: Int32,
    at: Int64,
    dense: UInt32_2D,
    ids: Int32,
    beside_of: Int64,
    beside: UInt32_2D,
    start: Int64,
    found: Int32,
) -> None:
    """List the classes that masks of a closure have beside their rows.

    count, at, dense, ids : see `mask_sizes`.
    beside_of : (n,) int64; the row of `beside` that has them, or -1 for all classes of the mask.
    beside : (n_beside, words of a bitmask) uint32.
    start : (n + 1,) int64, zero at first, written; where the list of each mask begins in `found`.
    found : int32, written; the lists, end to end. If it is empty, only `start` is.
    """
    end = np.int64(0)
    for i in range(count.shape[0]):
        if beside_of[i] >= 0:
            end = list_bits(beside, beside_of[i], end, found)
        elif count[i] < 0:
            end = list_bits(dense, at[i], end, found)
        else:
            for k in range(at[i], at[i] + count[i]):
                if found.shape[0] > 0:
                    found[end] = ids[k]
                end += 1
        start[i + 1] = end


@kernel(entry=True)
def share_rows(
    words: UInt32_2D,
    sizes: Int64,
    order: Int64,
    done: int,
    row_of: Int32,
    rows: UInt32_2D,
    kept: Int64_2D,
    n_rows: int,
    most: int,
    weights: Int32_2D,
) -> tuple[int, int]:
    """Give each mask, from order[done] on, the row from which it differs least, or a new row.

    A row is the intersection of its masks. No mask may have more than `most` tokens that its row
    lacks.

    words : (n, n_words) uint32; the masks, as bitmasks of classes.
    sizes : (n,) int64; the number of tokens of each.
    order : (n,); the masks in the order in which they choose a row.
    row_of : (n,) int32, written; the row of each mask.
    rows : (capacity, n_words) uint32, written; the rows.
    kept : (capacity, 2), written; for each row its tokens, and the most tokens that one of its
        masks has beside it.
    n_rows : the rows so far.
    weights : see `weight_of`.

    Returns how many masks are done (fewer than all if `rows` is full) and the number of rows.
    """
    n_words = words.shape[1]
    for at in range(done, order.shape[0]):
        mask = order[at]
        best = -1
        least = most + most + 1
        for row in range(n_rows):
            more = sizes[mask] - kept[row, 0]
            if more > most or kept[row, 1] - more > most:
                continue
            beside = np.int64(0)  # in the mask, not in the row
            lost = np.int64(0)  # in the row, not in the mask
            for begin in range(0, n_words, 4):
                for w in range(begin, min(n_words, begin + 4)):
                    beside += weight_of(words[mask, w] & ~rows[row, w], w, weights)
                    lost += weight_of(rows[row, w] & ~words[mask, w], w, weights)
                if beside > most or kept[row, 1] + lost > most or beside + lost >= least:
                    break
            else:
                least = beside + lost
                best = row
        if best < 0:
            if n_rows == rows.shape[0]:
                return at, n_rows
            best = n_rows
            n_rows += 1
            kept[best, 0] = sizes[mask]
            for w in range(n_words):
                rows[best, w] = words[mask, w]
        else:
            lost = np.int64(0)
            beside = np.int64(0)
            for w in range(n_words):
                beside += weight_of(words[mask, w] & ~rows[best, w], w, weights)
                lost += weight_of(rows[best, w] & ~words[mask, w], w, weights)
                rows[best, w] &= words[mask, w]
            kept[best, 0] -= lost
            kept[best, 1] = max(kept[best, 1] + lost, beside)
        row_of[mask] = best
    return order.shape[0], n_rows
