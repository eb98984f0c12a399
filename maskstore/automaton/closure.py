"""The stack automaton: the tokens that a parser's stack allows, read from the top of the stack.

A *node* holds configuration sets, each with the tokens that hang on it. Reading one cell (LR state)
of the stack decides some of the tokens. An *edge* (node, cell) has the mask of the tokens accepted
there, and leads to the node of those that are still undecided. Node 0 has nothing undecided. So

    mask(lexer state, stack) = union of the edges' masks on the walk over the stack,
                               from the lexer state's root to node 0

This module closes the automaton over all stacks that the parser can build: a decoder never meets a
missing edge. (A root has no edge for a cell that refuses all of its tokens.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.errors import LimitError
from maskwright.maskstore.automaton import _closure_kernels as kernels
from maskwright.maskstore.automaton import closure_tables as closing
from maskwright.maskstore.automaton._pool_kernels import DepthCase, find_items
from maskwright.maskstore.automaton.configuration_sets import NEVER_LEGAL, ConfigurationSets
from maskwright.maskstore.automaton.exploration_tables import DONE

Progress = Callable[[int, int], None]

EDGE_BUDGET = 4_000_000
"""Most edges of a closed automaton."""
BYTES_BUDGET = 3 << 30
"""Most bytes of the tables while the automaton is closed."""

PAUSE = 1 << 20
"""Units of work after which a kernel returns, so that Ctrl-C is obeyed.

It takes some tenths of a second at most.
"""

FIRST_CAPACITY = 1 << 10
"""Edges, and visits, that the tables have room for at first: a power of two."""


@dataclass(frozen=True)
class Closure:
    """Nodes and edges of a closed stack automaton. Its masks are sets of classes of tokens.

    edge_key : (n_edges,) int64; node * n_cells + cell.
    edge_node, edge_mask : (n_edges,) int32; the node that the edge leads to, and its mask. Mask 0
        is empty.
    mask_count : (n_masks,) int32; the number of classes of a sparse mask, or -1 for a dense one.
    mask_at : (n_masks,) int64; where a sparse mask begins in `mask_ids`, or the row of a dense mask
        in `dense`.
    dense : (n_dense, n_words) uint32; bit i of word w is class 32 w + i.
    mask_ids : (n_ids,) int32; the classes of sparse masks, ascending in each; others between them.
    n_nodes : all nodes: node 0, the roots 1 .. n_roots, and the others.
    n_roots : the nodes at which walks begin.
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
    """Collects the masks of a closure, each distinct mask once. Number 0 is the empty mask."""

    def __init__(self, n_classes: int) -> None:
        """n_classes : classes of tokens (`TokenClasses`), of which masks are made."""
        self.pool = closing.new_pool(n_classes)

    def without_nodes(self) -> Closure:
        """The masks collected so far, as a closure of node 0 alone."""
        none = np.zeros(0, np.int32)
        return Closure(np.zeros(0, np.int64), none, none, *self._masks(), 1, 0)

    def _masks(self) -> tuple[Int32, Int64, npt.NDArray[np.uint32], Int32]:
        masks = self.pool.masks
        start = masks.start[: int(masks.size[0]) + 1]
        count, at = np.diff(start).astype(np.int32), start[:-1].copy()
        is_dense = (count > 0) & (masks.items[at] == closing.DENSE)
        rows = masks.items[at[is_dense, None] + np.arange(1, 1 + len(self.pool.words))].view(np.uint32)
        count[is_dense], at[is_dense] = -1, np.arange(len(rows))
        return count, at, rows, masks.items[: start[-1]]

    def find_items(
        self, case: DepthCase, breaks: int, distinct: Int32, n_continuations: int
    ) -> tuple[Int32, Int32, int]:
        """The distinct roots of the groups behind certain line breaks, and the masks of each.

        case : a depth case, and its lexer state's groups.
        breaks : the number of the line breaks.
        distinct : int32; the distinct root of each continuation, then of each lookahead set.
        n_continuations : where the sets begin.

        Returns the roots, (n,) int32, ascending; their masks, (n,) int32; and the mask of what is
        allowed whatever comes.
        """
        roots, masks = np.empty((2, len(case.group)), np.int32)
        while True:
            n, own = find_items(case, breaks, distinct, n_continuations, NEVER_LEGAL, roots, masks, self.pool)
            if n >= 0:
                return roots[:n], masks[:n], own
            self.pool = self.pool.with_room(-n)


def close(
    configuration_sets: ConfigurationSets,
    roots: Sequence[tuple[Int32, Int32]],
    collector: MaskCollector,
    progress: Progress | None = None,
    edge_budget: int = EDGE_BUDGET,
    bytes_budget: int = BYTES_BUDGET,
) -> Closure:
    """Close the automaton over all stacks.

    configuration_sets : the sets, closed over all stacks.
    roots : for each root node, 1, 2, ..., two arrays (n_items,) int32: the distinct roots of
        `configuration_sets` that it holds, and their masks.
    collector : has these masks. The masks of edges are added to it.
    progress : called with the visits made and the visits known so far.
    edge_budget, bytes_budget : most edges, and most bytes of the tables.

    Raises: LimitError if there are more edges or bytes than the budget. The collector then has the
        masks that it had before, for `MaskCollector.without_nodes`, but no masks can be added any
        more.
    """
    widest = max(max((len(items) for items, _ in roots), default=0), 1)
    item_start = np.concatenate([[0], np.cumsum([len(items) for items, _ in roots])]).astype(np.int64)
    none = np.zeros(0, np.int32)
    item_root = np.concatenate([none, *(items for items, _ in roots)])
    item_mask = np.concatenate([none, *(masks for _, masks in roots)])
    # INVARIANT: the collector's pool changes only if closing succeeds
    pool = collector.pool._replace(masks=collector.pool.masks._replace(size=collector.pool.masks.size.copy()))
    c = closing.new_closing(len(configuration_sets.parser.action), len(roots), widest, pool, FIRST_CAPACITY)

    def check() -> None:
        if c.edges.size[0] > edge_budget or c.n_bytes > bytes_budget:
            raise LimitError(
                f"the stack automaton has more than {int(c.edges.size[0]):,} edges: beyond its budget of {edge_budget:,} edges "
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
    while (code := kernels.close_nodes(configuration_sets.parser, configuration_sets.followed, c, PAUSE)) != DONE:
        if code > 0:
            c = c.with_room(code)
        check()
        if progress is not None:
            progress(int(c.cursor[closing.NEXT_VISIT]), int(c.visits.size[0]))
    check()
    collector.pool = c.pool
    n_edges = int(c.edges.size[0])
    return Closure(
        c.edges.keys[:n_edges],
        c.edges.node[:n_edges],
        c.edges.mask[:n_edges],
        *collector._masks(),
        int(c.nodes.size[0]),
        len(roots),
    )
