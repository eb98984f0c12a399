"""What tokens ask of the parser, as numbers: sequences of terminals that share their ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

WHATEVER = -1
"""A continuation with nothing left to read: accepted."""


class Continuations:
    """Sequences to be read, sharing their ends. A continuation is a number >= 0, or -1 - n for the lookahead set terminal set n.

    Set 0 stands for "whatever comes" (`WHATEVER`).
    """

    def __init__(self, n_columns: int) -> None:
        self.n_words = (n_columns + 63) // 64
        self.symbols: list[int] = []
        self.nexts: list[int] = []
        self._number: dict[tuple[int, int], int] = {}
        self.sets: list[frozenset[int]] = [frozenset()]
        self._set_number: dict[frozenset[int], int] = {}

    def end(self, terminals: frozenset[int]) -> int:
        """The continuation of which some terminal of a set must be acceptable."""
        number = self._set_number.get(terminals)
        if number is None:
            number = self._set_number[terminals] = len(self.sets)
            self.sets.append(terminals)
        return -1 - number

    def before(self, symbols: Sequence[int], continuation: int) -> int:
        """The continuation that reads some columns, then another continuation."""
        for symbol in reversed(symbols):
            if symbol < 0:
                raise ValueError("a terminal that occurs in no rule has no column to read")
            key = (symbol, continuation)
            number = self._number.get(key)
            if number is None:
                number = self._number[key] = len(self.symbols)
                self.symbols.append(symbol)
                self.nexts.append(continuation)
            continuation = number
        return continuation

    def set_bits(self) -> npt.NDArray[np.uint64]:
        bits = np.zeros((len(self.sets), self.n_words), np.uint64)
        for row, members in enumerate(self.sets):
            for column in members:
                bits[row, column >> 6] |= np.uint64(1 << (column & 63))
        return bits
