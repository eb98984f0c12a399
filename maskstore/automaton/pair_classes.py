"""The classes of pairs (configuration set, last cell read).

A pair is decided if all stacks below agree: all are accepted, or all are refused. Two other pairs
are in one class if they agree on every stack below. The classes grow with the exploration. The
class of a pair is final once found, because its edges lead to pairs that were there when it was
explored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32
from maskwright.maskstore.automaton import _class_kernels as kernels
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, FIRST_STATE, REFUSED

NO_STATE = 1 << 30
PAUSE = 1 << 20
"""Edges after which the kernel returns, so that Ctrl-C is obeyed."""


class PairClasses:
    """The classes of the pairs explored so far. Class 0 is REFUSED, class 1 ACCEPTED."""

    def __init__(self) -> None:
        self._cursor = np.zeros(8, np.int64)
        self._cursor[kernels.N_CLASSES] = FIRST_STATE
        self._cursor[kernels.COMPONENT] = -1
        self._tables = _tables(1 << 10)
        self._tables.of_pair[:FIRST_STATE] = REFUSED, ACCEPTED

    @property
    def n_classes(self) -> int:
        """The number of classes of pairs that are not decided."""
        return int(self._cursor[kernels.N_CLASSES]) - FIRST_STATE

    @property
    def of_pair(self) -> Int32:
        """(n_pairs + 2,) int32; the classes of REFUSED, of ACCEPTED and of each pair."""
        return self._tables.of_pair[: FIRST_STATE + int(self._cursor[kernels.N_CLASSIFIED])]

    @property
    def least(self) -> Int32:
        """(n_classes + 2,) int32; REFUSED, ACCEPTED, and the least set of each class."""
        least = self._tables.least[: int(self._cursor[kernels.N_CLASSES])]
        least[:FIRST_STATE] = REFUSED, ACCEPTED
        return least

    def extend(self, n_cells: int, pairs: int, keys: npt.NDArray[np.int64], *edges: npt.NDArray[Any]) -> None:
        """Find the classes of the pairs that are new since the last call.

        n_cells : LR states.
        pairs : how many pairs there are now.
        keys : (capacity,) int64; `exploration_tables.Pairs.keys`.
        edges : `Pairs.edge_start` and `Exploration.edges` of `exploration_tables`.

        Cost: O(edges of the new pairs). For a new component on a cycle it is multiplied by the
            rounds of refinement. For each known cycle that the component leads to, the classes of
            that cycle are added; those that have such an edge are compared with the component.
        """
        cursor = self._cursor
        n_new = pairs - int(cursor[kernels.N_CLASSIFIED])
        self._reserve(pairs + FIRST_STATE)
        met, lowest, stack, calls, block = np.zeros((5, n_new), np.int32)
        colors, fresh = np.zeros((2, n_new), np.uint64)
        search = kernels.Search(met, lowest, np.zeros(n_new, np.int64), stack, calls, block, colors, fresh)
        cursor[kernels.NEXT_ROOT : kernels.N_MET + 1] = 0  # N_CALLS and N_STACK are between them
        graph = kernels.Pairs(n_cells, keys, *edges)
        while (code := kernels.classify(pairs, graph, self._tables, search, cursor, PAUSE)) != 0:
            if code == kernels.UNDECIDABLE:
                # INVARIANT: every stack has a bottom, and nothing waits for a cell below it
                raise AssertionError("a configuration set can never be decided")

    def _reserve(self, capacity: int) -> None:
        before = self._tables
        if capacity <= len(before.of_pair):
            return
        self._tables = _tables(1 << capacity.bit_length())
        for name in ("of_pair", "first_pair", "cycle_start", "tried", "least", "hashes", "cycle_hashes"):
            getattr(self._tables, name)[: len(before.of_pair)] = getattr(before, name)
        kernels.refill(int(self._cursor[kernels.N_CLASSES]), self._tables)


def _tables(capacity: int) -> kernels.Classes:
    return kernels.Classes(
        of_pair=np.full(capacity, -1, np.int32),
        first_pair=np.zeros(capacity, np.int32),
        cycle_start=np.zeros(capacity, np.int32),
        tried=np.zeros(capacity, np.int32),
        least=np.full(capacity, NO_STATE, np.int32),
        hashes=np.zeros(capacity, np.int64),
        slots=np.full(2 * capacity, -1, np.int32),
        cycle_hashes=np.zeros(capacity, np.int64),
        cycle_slots=np.full(2 * capacity, -1, np.int32),
    )
