"""The jitted loops that lay out the engine's table, and how its hash table of edges is addressed."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def edge_slot(key, n_slots):  # type: ignore[no-untyped-def]
    """Where the search for an edge begins. key : int32, not negative."""
    # numba widens a product of two uint32 to 64 bits
    h = (np.uint64(key) * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)
    return np.int64((h * np.uint64(n_slots)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def choose_defaults(node_of, number, nodes):  # type: ignore[no-untyped-def]
    """nodes[n, 0] : the most common number among node n's edges, the least of several. node_of, number : (n_edges,), sorted by node."""
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


@njit(cache=True, nogil=True)
def fill_edges(keys, number, slots):  # type: ignore[no-untyped-def]
    """The hash table of edges: slots (size, 2) int32 with key and number; -1 = free."""
    n_slots = slots.shape[0]
    for i in range(keys.shape[0]):
        at = edge_slot(keys[i], n_slots)
        while slots[at, 0] >= 0:
            at = at + 1 if at + 1 < n_slots else 0
        slots[at, 0] = keys[i]
        slots[at, 1] = number[i]
