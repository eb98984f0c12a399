"""The tables of the closing of a stack automaton, as tuples of arrays for kernels.

They grow as those of `exploration_tables` do (`tokens._hash_kernels`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int64, UInt32
from maskwright.maskstore.tokens._hash_kernels import Keys, Runs, doubled, grown, no_keys, no_rows, no_runs
from maskwright.maskstore.vocabulary.masks import BITS, n_words

FIRST_IDS = 1 << 14
"""Classes of masks that a pool has room for at first."""

NO_MASK = 0
DECIDED = 0
"""The empty mask, and the node in which nothing is undecided."""

# codes of full tables that kernels return, besides DONE and PAUSED of `exploration_tables`
FULL_MASKS, FULL_IDS, FULL_NODES, FULL_EDGES, FULL_VISITS, FULL_CELLS = range(1, 7)

# indices of `Closing.cursor`
NEXT_VISIT, NEXT_ROOT = range(2)

DENSE = -1
"""Begins a mask that is kept as a bitmask."""


class Pool(NamedTuple):
    """Distinct masks by number. Mask 0 is empty.

    limit : a mask of more classes of tokens is kept as a bitmask, which is smaller then.
    words : (n_words,) uint32, all zero between calls; the mask that is being made.
    run : (n,) int32; scratch, as long as the longest run of `masks`.
    masks : the classes of each, ascending; or DENSE and its words.
    """

    limit: int
    words: UInt32
    run: Int32
    masks: Runs

    def with_room(self, full: int) -> Pool:
        """The same pool with more room. full : FULL_MASKS, or FULL_IDS for its classes alone."""
        masks = self.masks
        return self._replace(masks=grown(masks) if full == FULL_MASKS else masks._replace(items=doubled(masks.items)))


class Nodes(NamedTuple):
    """Nodes by number, as `Runs` of items. Node 0 and the roots have none.

    items : int64; a configuration set * 2^32 + the mask of the tokens that hang on it, ascending in
        each node.
    """

    hashes: Int64
    start: Int64
    items: Int64
    slots: Int32
    size: Int64


class Edges(NamedTuple):
    """Edges by number.

    keys : (capacity,) int64; node * n_cells + cell.
    node, mask : (capacity,) int32; the node that the edge leads to, and its mask.
    """

    keys: Int64
    node: Int32
    mask: Int32
    slots: Int32
    size: Int64


class Scratch(NamedTuple):
    """Memory in which the edges of one node are made.

    items : (width,) int64; the items of the node that an edge leads to.
    accepted : (width,) int32; the masks that an edge accepts.
    several : (width,) int32; to unite items.
    cursor : (width,) int64; for each item of a node where the edges of its pair begin.
    edge_slots : int32; a hash table of a root's edges, those equal to earlier ones left out. A
        power of two and at least twice as long as there are cells; -1 where free.
    by_cell : (capacity,) int64; the results of a root's items, ACCEPTED or a configuration set,
        * 2^32 + the masks, sorted by cell.
    cell_start : (n_cells + 1,) int64; see `_closure_kernels.sort_by_cell`.
    """

    items: Int64
    accepted: Int32
    several: Int32
    cursor: Int64
    edge_slots: Int32
    by_cell: Int64
    cell_start: Int64


class Closing(NamedTuple):
    """All tables of a closing.

    n_cells : LR states.
    visits : the agenda: pairs of a node and the last cell read, node * n_cells + cell. The first
        cursor[NEXT_VISIT] are done.
    cursor : (2,) int64; the next visit and the next root.
    """

    n_cells: int
    pool: Pool
    nodes: Nodes
    edges: Edges
    visits: Keys
    scratch: Scratch
    cursor: Int64

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays but the scratch."""
        parts = self.pool.masks, self.nodes, self.edges, self.visits
        return sum(array.nbytes for part in parts for array in part)

    def with_room(self, full: int) -> Closing:
        """The same tables with one of them twice as large. full : one of the FULL_ codes."""
        if full in (FULL_MASKS, FULL_IDS):
            return self._replace(pool=self.pool.with_room(full))
        if full == FULL_CELLS:
            return self._replace(scratch=self.scratch._replace(by_cell=doubled(self.scratch.by_cell)))
        name = {FULL_NODES: "nodes", FULL_EDGES: "edges", FULL_VISITS: "visits"}[full]
        return self._replace(**{name: grown(getattr(self, name))})


def new_pool(n_classes: int) -> Pool:
    """A pool with only the empty mask. n_classes : classes of tokens."""
    width, limit = n_words(n_classes), max(8, n_classes // BITS)
    run = np.zeros(max(1 + width, limit), np.int32)
    return Pool(limit, np.zeros(width, np.uint32), run, no_runs(1 << 12, FIRST_IDS, 1))


def new_closing(n_cells: int, n_roots: int, widest: int, pool: Pool, first_capacity: int) -> Closing:
    """Tables with the root nodes and no edges yet.

    n_cells : LR states.
    n_roots : root nodes.
    widest : the most items of a root.
    pool : has the masks of the roots.
    first_capacity : edges, and visits, that there is room for at first: a power of two.
    """
    capacity = 1 << max(10, (2 * n_roots + 2).bit_length())
    nodes = Nodes(*no_runs(capacity, 0)[:2], np.zeros(capacity, np.int64), *no_rows(capacity, 1 + n_roots))
    targets, masks = np.zeros((2, first_capacity), np.int32)
    edges = Edges(np.zeros(first_capacity, np.int64), targets, masks, *no_rows(first_capacity))
    accepted, several = np.zeros((2, 4 * widest + 64), np.int32)
    items, cursor = np.zeros((2, 4 * widest + 64), np.int64)
    edge_slots, _ = no_rows(1 << n_cells.bit_length())
    by_cell, cell_start = np.zeros(1 << 12, np.int64), np.zeros(n_cells + 1, np.int64)
    scratch = Scratch(items, accepted, several, cursor, edge_slots, by_cell, cell_start)
    return Closing(n_cells, pool, nodes, edges, no_keys(first_capacity), scratch, np.zeros(2, np.int64))
