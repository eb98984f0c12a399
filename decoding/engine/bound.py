"""The arrays that texts work on, and their addresses, which quick calls take."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine.alone import Shared
from maskwright.decoding.engine.arguments import NO_BITMASK, check_words
from maskwright.maskstore.table.compiled import EngineTable

Words = npt.NDArray[np.int32]

Bound = tuple[Any, Words, Words, Words]
"""What quick calls take, such as addresses; and the arrays: the table, the memory, the bitmask."""


class BoundTexts(Shared):
    """What a store's texts read and write.

    store : the engine's table.
    """

    store: EngineTable
    _n_words: int
    _bound: Bound
    _is_provisional: bool
    _checked: Any
    """The bitmask that has been checked; NO_BITMASK if none has."""

    def _bound_to(self, table: Words, memory: Words, words: Words) -> Bound:
        """What `_bound` is with some arrays.

        INVARIANT: addresses and what keeps their arrays alive are replaced together, whoever
        interrupts: by one assignment.
        """
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

    def _newest_table(self) -> Words:
        """The store's table, which may change once (`EngineTable.is_final`)."""
        # in this order: a table that is taken too early is taken again
        self._is_provisional = not self.store.is_final
        # PERF: compiled code is specialised on whether an array is read-only. A mapped file is, so
        # all tables are.
        table = self.store.table.view()
        table.setflags(write=False)
        return table

    def _take_table(self) -> None:
        """Read the store's newest table from now on.

        States and records mean the same under both tables. (Walks would not, but none is cached
        while the parser is asked.)
        """
        self._bound = self._bound_to(self._newest_table(), self._memory, self._words)

    def _take_bitmask(self, bitmask: Any, leading: tuple[int, ...]) -> None:
        """Write to this bitmask from now on. Raises: as `check_words`.

        PERF: called only where the bitmask is new, or the table may be.
        """
        self._checked = NO_BITMASK  # for whoever interrupts here
        words = check_words(bitmask, leading, self._n_words)
        table = self._newest_table() if self._is_provisional else self._table
        self._bound = self._bound_to(table, self._memory, words)
        if not self._is_provisional:
            self._checked = bitmask
