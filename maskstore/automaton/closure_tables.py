"""What the closing of a stack automaton knows, as tuples of arrays that compiled code reads and writes. See `exploration_tables`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.automaton._hash_kernels import add_hashed, doubled, free_slots, grown
from maskwright.maskstore.vocabulary.masks import BITS, n_words

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]

FIRST_DENSE, FIRST_IDS = 1 << 10, 1 << 20
"""Dense masks, and tokens of sparse ones, that a pool has room for at first."""

NO_MASK = 0
DECIDED = 0
"""The node in which no token is undecided, and the mask with no token."""

# what kernels return; the FULL_ codes as in `exploration_tables`
FULL_MASKS, FULL_DENSE, FULL_IDS, FULL_NODES, FULL_ITEMS, FULL_EDGES, FULL_VISITS, FULL_CELLS = 1, 2, 3, 4, 5, 6, 7, 8

# indices of `sizes`
N_MASKS, N_DENSE, N_IDS, N_NODES, N_ITEMS, N_EDGES, N_VISITS, NEXT_VISIT, NEXT_ROOT = range(9)


class Pool(NamedTuple):
    """Masks by number.

    limit : a mask of more tokens is kept as a bitmask, which is smaller then. words : (n_words,) uint32; zero, to make a mask in.
    hashes : int64. n_ids : int32; tokens of a sparse mask, at ids[begin:]; -1 for a dense one, row `begin` of dense. begin : int64.
    """

    limit: int
    words: UInt32
    hashes: Int64
    n_ids: Int32
    begin: Int64
    slots: Int32
    dense: UInt32
    ids: Int32


class Nodes(NamedTuple):
    """Node n has the items start[n] : start[n + 1]. hashes : int64; of a node's items."""

    hashes: Int64
    start: Int64
    slots: Int32


class Items(NamedTuple):
    """The items of nodes. state, mask : int32; a configuration set, ascending in each node, and the mask that hangs on it."""

    state: Int32
    mask: Int32


class Edges(NamedTuple):
    """keys : int64; node * n_cells + cell. node, mask : int32; what the edge leads to, and adds."""

    keys: Int64
    node: Int32
    mask: Int32
    slots: Int32


class Visits(NamedTuple):
    """The agenda, and what was on it. keys : int64; node * n_cells + the last cell read."""

    keys: Int64
    slots: Int32


class Scratch(NamedTuple):
    """What one node is made in.

    states, masks, accepted, several, more_states, more_masks : int32.
    equal_edge : int64; for each edge of a root an earlier one that is equal, or -1. hashes : uint64; of
        its outcomes.
    by_cell : (capacity, 2) int32, cell_start : (n_cells + 1,) int64; a root's outcomes by their cell.
    """

    states: Int32
    masks: Int32
    accepted: Int32
    several: Int32
    more_states: Int32
    more_masks: Int32
    equal_edge: Int64
    hashes: npt.NDArray[np.uint64]
    by_cell: Int32
    cell_start: Int64


class Closing(NamedTuple):
    """All of it. n_cells : LR states. sizes : (16,) int64; rows of the tables, by the indices above."""

    n_cells: int
    pool: Pool
    nodes: Nodes
    items: Items
    edges: Edges
    visits: Visits
    scratch: Scratch
    sizes: Int64

    @property
    def n_bytes(self) -> int:
        parts = self.pool, self.nodes, self.items, self.edges, self.visits
        return sum(array.nbytes for part in parts for array in part if isinstance(array, np.ndarray))

    def with_room(self, full: int) -> Closing:
        """The same with a larger table. full : one of the FULL_ codes."""
        if full in (FULL_MASKS, FULL_DENSE, FULL_IDS):
            return self._replace(pool=pool_with_room(self.pool, full, self.sizes))
        if full == FULL_CELLS:
            return self._replace(scratch=self.scratch._replace(by_cell=doubled(self.scratch.by_cell)))
        name, size = _TABLES[full]
        n, first = int(self.sizes[size]), 0
        if full == FULL_NODES:
            # BOUND: number 0 and the roots have no items and are in no slot; all nodes behind them have items
            first = int(np.append(np.flatnonzero(np.diff(self.nodes.start[: n + 1])), n)[0])
        return self._replace(**{name: grown(getattr(self, name), n, first)})


_TABLES = {
    FULL_NODES: ("nodes", N_NODES),
    FULL_ITEMS: ("items", N_ITEMS),
    FULL_EDGES: ("edges", N_EDGES),
    FULL_VISITS: ("visits", N_VISITS),
}
"""By code: the table, and where `sizes` counts its rows."""


def new_pool(n_tokens: int) -> tuple[Pool, Int64]:
    """A pool with the empty mask, number 0; and `sizes`."""
    capacity = 1 << 16
    width = n_words(n_tokens)
    sizes = np.zeros(16, np.int64)
    sizes[N_MASKS] = sizes[N_NODES] = 1
    pool = Pool(
        limit=max(8, n_tokens // BITS),
        words=np.zeros(width, np.uint32),
        hashes=np.zeros(capacity, np.int64),
        n_ids=np.zeros(capacity, np.int32),
        begin=np.zeros(capacity, np.int64),
        slots=free_slots(capacity),
        dense=np.zeros((FIRST_DENSE, width), np.uint32),
        ids=np.zeros(FIRST_IDS, np.int32),
    )
    return pool, sizes


def pool_with_room(pool: Pool, full: int, sizes: Int64) -> Pool:
    """The same with more room. full : FULL_MASKS, FULL_DENSE or FULL_IDS."""
    if full == FULL_DENSE:
        return pool._replace(dense=doubled(pool.dense))
    if full == FULL_IDS:
        return pool._replace(ids=doubled(pool.ids))
    slots = free_slots(2 * len(pool.hashes))
    add_hashed(pool.hashes, 1, int(sizes[N_MASKS]), slots)
    return pool._replace(hashes=doubled(pool.hashes), n_ids=doubled(pool.n_ids), begin=doubled(pool.begin), slots=slots)


def new_closing(n_cells: int, n_roots: int, widest: int, pool: Pool, sizes: Int64, first_capacity: int) -> Closing:
    """One that has no edges yet. widest : the most items of a root. first_capacity : edges and visits that there is room for at first."""
    capacity = 1 << max(14, (2 * n_roots + 2).bit_length())
    sizes[N_NODES] = 1 + n_roots
    nodes = Nodes(np.zeros(capacity, np.int64), np.zeros(capacity + 1, np.int64), free_slots(capacity))
    items = Items(np.zeros(capacity, np.int32), np.zeros(capacity, np.int32))
    edges = Edges(
        keys=np.zeros(first_capacity, np.int64),
        node=np.zeros(first_capacity, np.int32),
        mask=np.zeros(first_capacity, np.int32),
        slots=free_slots(first_capacity),
    )
    visits = Visits(np.zeros(first_capacity, np.int64), free_slots(first_capacity))
    states, masks, accepted, several, more_states, more_masks = np.zeros((6, 4 * widest + 64), np.int32)
    scratch = Scratch(
        states,
        masks,
        accepted,
        several,
        more_states,
        more_masks,
        equal_edge=np.zeros(max(widest * 4, n_cells) + 8, np.int64),
        hashes=np.zeros(n_cells + 1, np.uint64),
        by_cell=np.zeros((1 << 12, 2), np.int32),
        cell_start=np.zeros(n_cells + 1, np.int64),
    )
    return Closing(n_cells, pool, nodes, items, edges, visits, scratch, sizes)
