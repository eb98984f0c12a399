"""Continuations by number: terminals to read, then one terminal of a lookahead set.

Continuations that end alike share their ends: each is a symbol and the continuation after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32
from maskwright.maskstore.tokens import _continuation_kernels as kernels
from maskwright.maskstore.tokens._hash_kernels import no_keys, with_room

WHATEVER = kernels.WHATEVER
"""The continuation with nothing left to read: accepted by every stack."""

FIRST_CAPACITY = 1 << 8
"""Pairs that a table has room for at first: a power of two."""


class Continuations:
    """The continuations of a vocabulary, by number.

    Continuation n >= 0 reads symbols[n], then goes on as continuation next_continuation[n].
    Continuation -1 - s asks for one terminal of lookahead set sets[s]. Set 0 stands for "whatever
    comes" (`WHATEVER`).

    Symbols are the parser's columns. Symbol n_columns + m reads nothing: it requires lexing mode m.

    n_words : 64-bit words of a set of columns.
    sets : by number; each a set of columns.
    pairs : a symbol and the continuation after it, by continuation.
    """

    def __init__(self, n_columns: int) -> None:
        """n_columns : the parser's columns, with that for the end of the text."""
        self.n_words = (n_columns + 63) // 64
        self.pairs = no_keys(FIRST_CAPACITY)
        self.sets: list[frozenset[int]] = [frozenset()]
        self._set_number: dict[frozenset[int], int] = {}

    def __len__(self) -> int:
        """The number of continuations that read a symbol."""
        return int(self.pairs.size[0])

    @property
    def symbols(self) -> Int32:
        """(n,) int32; by continuation the first symbol."""
        return (self.pairs.keys[: len(self)] >> 32).astype(np.int32)

    @property
    def next_continuation(self) -> Int32:
        """(n,) int32; by continuation what follows its first symbol."""
        return self.pairs.keys[: len(self)].astype(np.int32)  # the low 32 bits

    def end(self, terminals: frozenset[int]) -> int:
        """The continuation that asks for one terminal of a set. terminals : their columns."""
        number = self._set_number.get(terminals)
        if number is None:
            number = self._set_number[terminals] = len(self.sets)
            self.sets.append(terminals)
        return -1 - number

    def before(self, symbols: Sequence[int], continuation: int) -> int:
        """The continuation that reads some symbols, then goes on as `continuation`.

        Raises: ValueError if a symbol is below 0.
        """
        if not len(symbols):
            return continuation
        if min(symbols) < 0:
            raise ValueError("a terminal that occurs in no rule has no column to read")
        self.make_room(len(symbols))
        return int(kernels.number_before(np.array(symbols, np.int32), len(symbols), continuation, self.pairs))

    def make_room(self, need: int) -> None:
        """Make room in `pairs` for some more continuations."""
        self.pairs = with_room(self.pairs, need)

    def set_bits(self) -> npt.NDArray[np.uint64]:
        """The lookahead sets: (n_sets, n_words) uint64; bit i of word w is column 64 w + i."""
        bits = np.zeros((len(self.sets), self.n_words), np.uint64)
        for row, members in enumerate(self.sets):
            for column in members:
                bits[row, column >> 6] |= np.uint64(1 << (column & 63))
        return bits
