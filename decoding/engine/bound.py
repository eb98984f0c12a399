"""The arrays that texts work on, and what quick calls take in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine.alone import Shared
from maskwright.decoding.engine.arguments import NO_BITMASK, check_words
from maskwright.maskstore.table.compiled import EngineTable

Words = npt.NDArray[np.int32]

Bound = tuple[Any, Words, Words, Words]
"""What quick calls take; the table; the memory; the bitmask."""


class BoundTexts(Shared):
    """What a store's texts read and write.

    store : the engine's table.

    INVARIANT: the arrays, and their addresses in what quick calls take, are replaced together,
    whoever interrupts: by one assignment.
    """

    store: EngineTable
    _n_words: int
    _bound: Bound
    _is_provisional: bool
    """Whether the table may be replaced by another (`EngineTable.is_final`)."""
    _checked: Any
    """The bitmask that has been checked; NO_BITMASK if none has."""

    def _bound_to(self, table: Words, memory: Words, words: Words) -> Bound:
        """What `_bound` is with some arrays."""
        return None, table, memory, words

    @property
    def _table(self) -> Words:
        return self._bound[1]

    @property
    def _memory(self) -> Words:
        return self._bound[2]

    @property
    def _words(self) -> Words:
        """Where masks are written."""
        return self._bound[3]

    def _newest_table(self) -> tuple[Words, bool]:
        """The store's table, and whether it may be replaced."""
        # in this order: a table that is taken too early is taken again
        is_provisional = not self.store.is_final
        # PERF: compiled code is specialised on whether an array is read-only. A mapped file is, so
        # all tables are.
        table = self.store.table.view()
        table.setflags(write=False)
        return table, is_provisional

    def _take_table(self) -> None:
        """Read the store's newest table from now on.

        States and records mean the same under both tables. (Walks would not, but none is cached
        while the parser is asked.)
        """
        table, is_provisional = self._newest_table()
        self._bound, self._is_provisional = self._bound_to(table, self._memory, self._words), is_provisional

    def _take_bitmask(self, bitmask: Any, leading: tuple[int, ...]) -> None:
        """Write to this bitmask from now on. Raises: as `check_words`.

        PERF: called only where the bitmask is new, or the table may be.
        """
        self._checked = NO_BITMASK  # an interrupted call leaves none, so the next one checks again
        words = check_words(bitmask, leading, self._n_words)
        table, is_provisional = self._newest_table() if self._is_provisional else (self._table, False)
        self._bound, self._is_provisional = self._bound_to(table, self._memory, words), is_provisional
        if not is_provisional:
            self._checked = bitmask
