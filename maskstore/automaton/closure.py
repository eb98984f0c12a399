"""The stack automaton: which tokens are allowed, read off the parser's stack from the top.

A *node* is a set of configuration sets, each with the tokens that hang on it. Reading one cell (LR state) of the stack decides some:
an *edge* (node, cell) holds the mask of the tokens accepted there and the node of those still undecided. Node 0 has nothing
undecided. So

    mask(lexer state, stack) = union of the edges' masks on the walk over the stack, from the state's root until node 0

The automaton is closed here over all stacks that the parser can build: a decoder never meets a missing edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.maskstore.automaton import _closure_kernels as kernels
from maskwright.maskstore.automaton import closure_tables as closing
from maskwright.maskstore.automaton.closure_tables import FULL_DENSE, FULL_IDS, FULL_MASKS
from maskwright.maskstore.automaton.configuration_sets import ConfigurationSets
from maskwright.maskstore.automaton.exploration_tables import DONE

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
        self.pool, self.sizes = closing.new_pool(n_tokens)

    def without_nodes(self) -> Closure:
        """The masks so far, with no automaton that uses them."""
        none = np.zeros(0, np.int32)
        return Closure(np.zeros(0, np.int64), none, none, *self._masks(), 1, 0)

    def _masks(self) -> tuple[Int32, Int64, npt.NDArray[np.uint32], Int32]:
        n_masks = int(self.sizes[closing.N_MASKS])
        dense = self.pool.dense[: int(self.sizes[closing.N_DENSE])]
        return (
            self.pool.n_ids[:n_masks],
            self.pool.begin[:n_masks],
            dense,
            self.pool.ids[: int(self.sizes[closing.N_IDS])],
        )

    def add_groups(self, members: Int32, member_start: Int64, groups: Int32, starts: Int64) -> Int32:
        """Mask numbers of unions of groups of tokens: groups[starts[i] : starts[i + 1]] for each i."""
        out = np.zeros(len(starts) - 1, np.int32)
        done = 0
        while True:
            done += kernels.pool_groups(members, member_start, groups, starts[done:], out[done:], self.pool, self.sizes)
            if done == len(out):
                return out
            for full in (FULL_MASKS, FULL_DENSE, FULL_IDS):
                self.pool = closing.pool_with_room(self.pool, full, self.sizes)


def close(
    configuration_sets: ConfigurationSets,
    roots: Sequence[tuple[Int32, Int32]],
    collector: MaskCollector,
    progress: Progress | None = None,
    edge_budget: int = EDGE_BUDGET,
    bytes_budget: int = BYTES_BUDGET,
) -> Closure:
    """Close the automaton over all stacks.

    roots : for each root node, 1, 2, ..., the distinct roots of `configuration_sets` that it holds and their masks.

    Raises LimitError when there would be more than `edge_budget` edges or the tables would take more than `bytes_budget` bytes. The
    collector has the masks that it had before then, for `MaskCollector.without_nodes`; no masks can be added to it any more.
    """
    widest = max(max((len(items) for items, _ in roots), default=0), 1)
    item_start = np.concatenate([[0], np.cumsum([len(items) for items, _ in roots])]).astype(np.int64)
    none = np.zeros(0, np.int32)
    item_root = np.concatenate([none, *(items for items, _ in roots)])
    item_mask = np.concatenate([none, *(masks for _, masks in roots)])
    # INVARIANT: the collector's pool and sizes change together, and only where the closing succeeds
    sizes = collector.sizes.copy()
    c = closing.new_closing(
        len(configuration_sets.parser.action), len(roots), widest, collector.pool, sizes, FIRST_CAPACITY
    )

    def check() -> None:
        if sizes[closing.N_EDGES] > edge_budget or c.n_bytes > bytes_budget:
            raise LimitError(
                f"the stack automaton has more than {int(sizes[closing.N_EDGES]):,} edges: beyond its budget of {edge_budget:,} edges "
                f"and {bytes_budget >> 20} MiB"
            )

    items = (
        item_start,
        item_root,
        item_mask,
        configuration_sets.root_start,
        configuration_sets.root_cell,
        configuration_sets.root_state,
    )
    while (code := kernels.close_roots(*items, c, PAUSE)) != DONE:
        if code > 0:
            c = c.with_room(code)
            check()
    while (code := kernels.close_nodes(configuration_sets.parser, configuration_sets.steps, c, PAUSE)) != DONE:
        if code > 0:
            c = c.with_room(code)
        check()
        if progress is not None:
            progress(int(sizes[closing.NEXT_VISIT]), int(sizes[closing.N_VISITS]))
    check()
    collector.pool, collector.sizes = c.pool, sizes
    n_edges = int(sizes[closing.N_EDGES])
    return Closure(
        c.edges.keys[:n_edges],
        c.edges.node[:n_edges],
        c.edges.mask[:n_edges],
        *collector._masks(),
        int(sizes[closing.N_NODES]),
        len(roots),
    )
