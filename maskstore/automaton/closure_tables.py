"""The tables of the closing of a stack automaton, as tuples of arrays for kernels.

They grow as those of `exploration_tables` do. A field `slots` is the hash table of a tuple's rows:
int32, a power of two long, -1 where free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int32_2D, Int64, UInt32, UInt32_2D
from maskwright.maskstore.tokens._hash_kernels import add_hashed, doubled, free_slots, grown
from maskwright.maskstore.vocabulary.masks import BITS, n_words

FIRST_DENSE, FIRST_IDS = 1 << 8, 1 << 14
"""Dense masks, and classes of sparse masks, that a pool has room for at first."""

NO_MASK = 0
DECIDED = 0
"""The empty mask, and the node in which nothing is undecided."""

# codes of full tables that kernels return, besides DONE and PAUSED of `exploration_tables`
FULL_MASKS, FULL_DENSE, FULL_IDS, FULL_NODES, FULL_ITEMS, FULL_EDGES, FULL_VISITS, FULL_CELLS = 1, 2, 3, 4, 5, 6, 7, 8

# indices of `sizes`
N_MASKS, N_DENSE, N_IDS, N_NODES, N_ITEMS, N_EDGES, N_VISITS, NEXT_VISIT, NEXT_ROOT = range(9)


class Pool(NamedTuple):
    """Distinct masks by number.

    limit : a mask of more classes of tokens is dense: kept as a bitmask, which is smaller then.
    words : (n_words,) uint32, all zero between calls; the mask that is being made.
    hashes : (capacity,) int64; of a mask's words.
    n_ids : (capacity,) int32; classes of a sparse mask; -1 for a dense one.
    begin : (capacity,) int64; where a sparse mask begins in `ids`, or the row of a dense mask.
    dense : (dense_capacity, n_words) uint32.
    ids : (ids_capacity,) int32; ascending in each mask.
    """

    limit: int
    words: UInt32
    hashes: Int64
    n_ids: Int32
    begin: Int64
    slots: Int32
    dense: UInt32_2D
    ids: Int32


class Nodes(NamedTuple):
    """Nodes by number: node n has the items start[n] : start[n + 1].

    hashes : (capacity,) int64; of a node's items.
    start : (capacity + 1,) int64.
    """

    hashes: Int64
    start: Int64
    slots: Int32


class Items(NamedTuple):
    """The items of nodes: configuration sets, each with the tokens that hang on it.

    state : (capacity,) int32; the configuration set, ascending in each node.
    mask : (capacity,) int32; its tokens.
    """

    state: Int32
    mask: Int32


class Edges(NamedTuple):
    """Edges by number.

    keys : (capacity,) int64; node * n_cells + cell.
    node, mask : (capacity,) int32; the node that the edge leads to, and its mask.
    """

    keys: Int64
    node: Int32
    mask: Int32
    slots: Int32


class Visits(NamedTuple):
    """The agenda: pairs of a node and the last cell read. The first sizes[NEXT_VISIT] are done.

    keys : (capacity,) int64; node * n_cells + cell.
    """

    keys: Int64
    slots: Int32


class Scratch(NamedTuple):
    """Memory in which the edges of one node are made.

    states, masks : (width,) int32; the items of the node that an edge leads to.
    accepted : (width,) int32; the masks that an edge accepts.
    several, more_states, more_masks : (width,) int32; to unite and to sort items.
    cursor : (width,) int64; for each item of a node where the edges of its pair begin.
    edge_slots : int32; a hash table of a root's edges, those equal to earlier ones left out. A
        power of two and at least twice as long as there are cells; -1 where free.
    by_cell : (capacity, 2) int32; the masks and results of a root's items, sorted by cell.
    cell_start : (n_cells + 1,) int64; see `_closure_kernels.sort_by_cell`.
    """

    states: Int32
    masks: Int32
    accepted: Int32
    several: Int32
    more_states: Int32
    more_masks: Int32
    cursor: Int64
    edge_slots: Int32
    by_cell: Int32_2D
    cell_start: Int64


class Closing(NamedTuple):
    """All tables of a closing.

    n_cells : LR states.
    sizes : (16,) int64; how many rows of each table are in use, by the indices above.
    """

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
        """Bytes of all arrays but the scratch."""
        parts = self.pool, self.nodes, self.items, self.edges, self.visits
        return sum(array.nbytes for part in parts for array in part if isinstance(array, np.ndarray))

    def with_room(self, full: int) -> Closing:
        """The same tables with one of them twice as large. full : one of the FULL_ codes."""
        if full in (FULL_MASKS, FULL_DENSE, FULL_IDS):
            return self._replace(pool=pool_with_room(self.pool, full, self.sizes))
        if full == FULL_CELLS:
            return self._replace(scratch=self.scratch._replace(by_cell=doubled(self.scratch.by_cell)))
        name, size = _TABLES[full]
        n, first = int(self.sizes[size]), 0
        if full == FULL_NODES:
            # BOUND: node 0 and the roots have no items and are in no slot; all later nodes have
            # items
            first = int(np.append(np.flatnonzero(np.diff(self.nodes.start[: n + 1])), n)[0])
        return self._replace(**{name: grown(getattr(self, name), n, first)})


_TABLES = {
    FULL_NODES: ("nodes", N_NODES),
    FULL_ITEMS: ("items", N_ITEMS),
    FULL_EDGES: ("edges", N_EDGES),
    FULL_VISITS: ("visits", N_VISITS),
}
"""By FULL_ code: the name of the table, and the index of `sizes` that counts its rows."""


def new_pool(n_classes: int) -> tuple[Pool, Int64]:
    """A pool with only the empty mask, number 0; and `sizes`, (16,) int64.

    n_classes : classes of tokens.
    """
    capacity = 1 << 12
    width = n_words(n_classes)
    sizes = np.zeros(16, np.int64)
    sizes[N_MASKS] = sizes[N_NODES] = 1
    pool = Pool(
        limit=max(8, n_classes // BITS),
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
    """The same pool with more room. full : FULL_MASKS, FULL_DENSE or FULL_IDS.

    sizes : (16,) int64; `Closing.sizes`.
    """
    if full == FULL_DENSE:
        return pool._replace(dense=doubled(pool.dense))
    if full == FULL_IDS:
        return pool._replace(ids=doubled(pool.ids))
    slots = free_slots(2 * len(pool.hashes))
    add_hashed(pool.hashes, 1, int(sizes[N_MASKS]), slots)
    return pool._replace(hashes=doubled(pool.hashes), n_ids=doubled(pool.n_ids), begin=doubled(pool.begin), slots=slots)


def new_closing(n_cells: int, n_roots: int, widest: int, pool: Pool, sizes: Int64, first_capacity: int) -> Closing:
    """Tables with the root nodes and no edges yet.

    n_cells : LR states.
    n_roots : root nodes, which `sizes` counts from now on.
    widest : the most items of a root.
    pool, sizes : from `new_pool`.
    first_capacity : edges, and visits, that there is room for at first: a power of two.
    """
    capacity = 1 << max(10, (2 * n_roots + 2).bit_length())
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
        cursor=np.zeros(4 * widest + 64, np.int64),
        edge_slots=free_slots(1 << n_cells.bit_length()),
        by_cell=np.zeros((1 << 12, 2), np.int32),
        cell_start=np.zeros(n_cells + 1, np.int64),
    )
    return Closing(n_cells, pool, nodes, items, edges, visits, scratch, sizes)
