"""The jitted loops that lay out the engine's table."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def choose_defaults(node_of, target, mask, n_roots, nodes):  # type: ignore[no-untyped-def]
    """nodes[n, :2] : the most common (target, mask) among node n's edges, the first of several; roots keep (0, 0).

    node_of, target, mask : (n_edges,), sorted by node.
    """
    begin = 0
    n_edges = node_of.shape[0]
    while begin < n_edges:
        end = begin
        node = node_of[begin]
        while end < n_edges and node_of[end] == node:
            end += 1
        if node > n_roots:
            keys = np.empty(end - begin, np.int64)
            for i in range(begin, end):
                keys[i - begin] = (np.int64(target[i]) << 32) | np.int64(mask[i])
            keys.sort()
            best = 0
            best_key = keys[0]
            count = 0
            for i in range(keys.shape[0]):
                count = count + 1 if i > 0 and keys[i] == keys[i - 1] else 1
                if count > best:
                    best = count
                    best_key = keys[i]
            nodes[node, 0] = best_key >> 32
            nodes[node, 1] = best_key & 0xFFFFFFFF
        begin = end


@njit(cache=True, nogil=True)
def fill_edges(keys, target, mask, slots):  # type: ignore[no-untyped-def]
    """The hash table of edges: slots (size, 3) int32 with key, target and mask; -1 = free. size : a power of two."""
    last = slots.shape[0] - 1
    for i in range(keys.shape[0]):
        h = np.int64((np.uint32(keys[i]) * np.uint32(0x9E3779B1)) >> np.uint32(4)) & last
        while slots[h, 0] >= 0:
            h = (h + 1) & last
        slots[h, 0] = keys[i]
        slots[h, 1] = target[i]
        slots[h, 2] = mask[i]
