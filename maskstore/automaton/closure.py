"""The stack automaton: which tokens are allowed, read off the parser's stack from the top.

A *node* is a set of suspended parses, each with the tokens that hang on it. Reading one cell (LR state) of the stack decides some:
an *edge* (node, cell) holds the mask of the tokens accepted there and the node of those still undecided. Node 0 has nothing
undecided. So

    mask(lexer state, stack) = union of the edges' masks on the run over the stack, from the state's root until node 0

The automaton is closed here over all stacks that the parser can build: a decoder never meets a missing edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.maskstore.automaton import _closure_kernels as kernels
from maskwright.maskstore.automaton import _parse_kernels
from maskwright.maskstore.automaton.suspended import Suspended, doubled, free_slots
from maskwright.maskstore.vocabulary.masks import BITS, n_words

_compiled: Any = kernels
"""The same for calls with unpacked arguments, which numba's stubs do not describe."""

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

EDGE_BUDGET = 4_000_000
BYTES_BUDGET = 3 << 30

PAUSE = 1 << 20
"""Work after which a kernel comes back, some tenths of a second at most: a pause in which Ctrl-C is obeyed."""

FIRST_CAPACITY = 1 << 16
"""Edges and visits that the tables begin with room for: a power of two."""


@dataclass(frozen=True)
class Closure:
    """Nodes and edges of a closed stack automaton.

    edge_key : (n_edges,) int64; node * n_cells + cell. edge_node, edge_mask : (n_edges,) int32; mask 0 is empty.
    mask_count : (n_masks,) int32; tokens of a sparse mask, at mask_ids[mask_at:], or -1 for row mask_at of dense. mask_at : int64.
    n_nodes : node 0, the roots 1 .. n_roots, and the others.
    """

    edge_key: Int64
    edge_node: Int32
    edge_mask: Int32
    mask_count: Int32
    mask_at: Int64
    dense: npt.NDArray[np.uint32]
    mask_ids: Int32
    n_nodes: int
    n_roots: int


class MaskCollector:
    """The pool of masks that a closure adds to; number 0 is the empty mask."""

    def __init__(self, n_tokens: int) -> None:
        self.n_tokens = n_tokens
        self.limit = max(8, n_tokens // BITS)
        """A mask of more tokens is smaller as a bitmask than as a list of ids."""
        width = n_words(n_tokens)
        self.words = np.zeros(width, np.uint32)
        self.sizes = np.zeros(16, np.int64)
        self.hashes = np.zeros(1 << 16, np.int64)
        self.count = np.zeros(1 << 16, np.int32)
        self.at = np.zeros(1 << 16, np.int64)
        self.slots = free_slots(1 << 16)
        self.dense = np.zeros((1 << 10, width), np.uint32)
        self.ids = np.zeros(1 << 20, np.int32)
        self.sizes[kernels.N_MASKS] = 1
        self.sizes[kernels.N_NODES] = 1

    def pool(self) -> tuple[npt.NDArray[Any], ...]:
        return self.hashes, self.count, self.at, self.slots, self.dense, self.ids

    def grow(self, which: int) -> None:
        if which == 1:
            self.hashes, self.count, self.at = doubled(self.hashes), doubled(self.count), doubled(self.at)
            self.slots = free_slots(len(self.hashes))
            kernels.refill_by_hash(self.hashes, 1, int(self.sizes[kernels.N_MASKS]), self.slots)
        elif which == 2:
            self.dense = doubled(self.dense)
        elif which == 3:
            self.ids = doubled(self.ids)

    def without_nodes(self) -> Closure:
        """The masks so far, with no automaton that uses them."""
        none = np.zeros(0, np.int32)
        return Closure(np.zeros(0, np.int64), none, none, *self._masks(), 1, 0)

    def _masks(self) -> tuple[Int32, Int64, npt.NDArray[np.uint32], Int32]:
        n_masks = int(self.sizes[kernels.N_MASKS])
        dense = self.dense[: int(self.sizes[kernels.N_DENSE])]
        return self.count[:n_masks], self.at[:n_masks], dense, self.ids[: int(self.sizes[kernels.N_IDS])]

    def add_groups(self, members: Int32, member_start: Int64, groups: Int32, starts: Int64) -> Int32:
        """Mask numbers of unions of groups of tokens: groups[starts[i] : starts[i + 1]] for each i."""
        out = np.zeros(len(starts) - 1, np.int32)
        done = 0
        while True:
            done += kernels.pool_groups(
                members,
                member_start,
                groups,
                starts[done:],
                self.limit,
                self.words,
                out[done:],
                self.sizes,
                *self.pool(),
            )
            if done == len(out):
                return out
            for which in (1, 2, 3):
                self.grow(which)


def close(
    suspended: Suspended,
    roots: Sequence[tuple[Int32, Int32]],
    collector: MaskCollector,
    progress: Progress | None = None,
    edge_budget: int = EDGE_BUDGET,
    bytes_budget: int = BYTES_BUDGET,
) -> Closure:
    """Close the automaton over all stacks.

    roots : for each root node, 1, 2, ..., the distinct roots of `suspended` that it holds and their masks.

    Raises LimitError when there would be more than `edge_budget` edges or the tables would take more than `bytes_budget` bytes.
    """
    n_cells = int(suspended.lr[_parse_kernels.N_STATES])
    widest = max(max((len(items) for items, _ in roots), default=0), 1)
    item_start = np.concatenate([[0], np.cumsum([len(items) for items, _ in roots])]).astype(np.int64)
    none = np.zeros(0, np.int32)
    item_root = np.concatenate([none, *(items for items, _ in roots)])
    item_mask = np.concatenate([none, *(masks for _, masks in roots)])
    table = _Table(len(roots), collector)
    order = np.zeros(max(widest * 4, n_cells) + 8, np.int64)
    scratch = [np.zeros(4 * widest + 64, np.int32) for _ in range(6)]
    states, masks, tmp_states, tmp_masks, several, accepted = scratch
    shared = (collector.limit, collector.words, states, masks, order, tmp_states, tmp_masks, several, accepted)
    by_cell = np.zeros((1 << 12, 2), np.int32)
    cell_start = np.zeros(n_cells + 1, np.int64)
    sizes = collector.sizes

    def check() -> None:
        if sizes[kernels.N_EDGES] > edge_budget or table.n_bytes > bytes_budget:
            raise LimitError(
                f"the stack automaton has more than {int(sizes[kernels.N_EDGES]):,} edges: beyond its budget of {edge_budget:,} edges "
                f"and {bytes_budget >> 20} MiB"
            )

    while (
        code := _compiled.close_roots(
            n_cells, item_start, item_root, item_mask, suspended.root_start, suspended.root_cell, suspended.root_state, sizes,
            *collector.pool(), *table.arrays(), *shared, by_cell, cell_start, PAUSE,
        )
    ) != 0:  # fmt: skip
        if code == 8:
            by_cell = doubled(by_cell)
        elif code > 0:
            table.grow(code)
            check()
    while (
        code := _compiled.close_nodes(
            suspended.lr, suspended.step_keys, suspended.step_result, suspended.step_slots, sizes,
            *collector.pool(), *table.arrays(), *shared, PAUSE,
        )
    ) != 0:  # fmt: skip
        if code > 0:
            table.grow(code)
        check()
        if progress is not None:
            progress(int(sizes[kernels.NEXT_VISIT]), int(sizes[kernels.N_VISITS]))
    check()
    n_edges = int(sizes[kernels.N_EDGES])
    return Closure(
        table.edge_keys[:n_edges],
        table.edge_node[:n_edges],
        table.edge_mask[:n_edges],
        *collector._masks(),
        int(sizes[kernels.N_NODES]),
        len(roots),
    )


class _Table:
    """The growing tables of a closure; those of the masks are the collector's."""

    def __init__(self, n_roots: int, collector: MaskCollector) -> None:
        self.collector = collector
        capacity = 1 << max(14, (2 * n_roots + 2).bit_length())
        self.node_start = np.zeros(capacity + 1, np.int64)
        self.node_state = np.zeros(capacity, np.int32)
        self.node_mask = np.zeros(capacity, np.int32)
        self.node_hash = np.zeros(capacity, np.int64)
        self.node_slots = free_slots(capacity)
        self.edge_keys = np.full(FIRST_CAPACITY, -1, np.int64)
        self.edge_node = np.zeros(FIRST_CAPACITY, np.int32)
        self.edge_mask = np.zeros(FIRST_CAPACITY, np.int32)
        self.edge_slots = free_slots(FIRST_CAPACITY)
        self.visit_keys = np.zeros(FIRST_CAPACITY, np.int64)
        self.visit_slots = free_slots(FIRST_CAPACITY)
        collector.sizes[kernels.N_NODES] = 1 + n_roots

    @property
    def n_bytes(self) -> int:
        mine = sum(v.nbytes for v in vars(self).values() if isinstance(v, np.ndarray))
        return mine + sum(array.nbytes for array in self.collector.pool())

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self.node_start, self.node_state, self.node_mask, self.node_hash, self.node_slots, self.edge_keys, self.edge_node,
            self.edge_mask, self.edge_slots, self.visit_keys, self.visit_slots,
        )  # fmt: skip

    def grow(self, which: int) -> None:
        sizes = self.collector.sizes
        if which <= 3:
            self.collector.grow(which)
        elif which == 4:
            self.node_start, self.node_hash = doubled(self.node_start), doubled(self.node_hash)
            self.node_slots = free_slots(len(self.node_hash))
            kernels.refill_nodes(self.node_start, self.node_hash, int(sizes[kernels.N_NODES]), self.node_slots)
        elif which == 5:
            self.node_state, self.node_mask = doubled(self.node_state), doubled(self.node_mask)
        elif which == 6:
            self.edge_keys = np.concatenate([self.edge_keys, np.full_like(self.edge_keys, -1)])
            self.edge_node, self.edge_mask = doubled(self.edge_node), doubled(self.edge_mask)
            self.edge_slots = free_slots(len(self.edge_keys))
            _parse_kernels.refill(self.edge_keys, sizes[kernels.N_EDGES], self.edge_slots)
        elif which == 7:
            self.visit_keys = doubled(self.visit_keys)
            self.visit_slots = free_slots(len(self.visit_keys))
            _parse_kernels.refill(self.visit_keys, sizes[kernels.N_VISITS], self.visit_slots)
