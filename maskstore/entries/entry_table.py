"""What a decoder of lexing "nfa" reads: for every lexer state, which tokens are allowed if the parser accepts which sequence.

Flat arrays, which `build` makes and a file holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa
from maskwright.maskstore.tokens.events import EventCodes
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import MaskPool

NO_CELL = -1


@dataclass(frozen=True)
class EntryTable:
    """Masks by lexer state and terminal sequence.

    A *cell* is a list of entries: what one lexer state needs after one terminal. States with equal entries share a cell.

    cell_start : (n_cells + 1,) int64. entry_sequence, entry_mask : (n_entries,) int32; cell c's entries are cell_start[c] ..
        cell_start[c + 1]; their sequences are distinct.
    cell_of_state : (n_states + 1,) int32, NO_CELL for states in which no text can stand between tokens; the last is the start.
    dependent : (n_dependent,) int32, ascending; the states whose own terminal does not tell what the parser saw last, that is those
        inside ignored terminals and, with layout, inside newlines.
    cell_of_last : (n_dependent, n_terminals + 1) int32; for a dependent state the cell if the parser has seen a certain terminal last
        (the last column: none, the text has just begun), NO_CELL where only cell_of_state holds. A newline state has just one such
        cell, under the newline itself: it holds outside brackets.
    sequence_start : (n_sequences + 1,) int32. sequence_symbols : int32; terminals and layout's events (`EventCodes`). Sequence 0 is empty.
    counts : step name -> (n_resting,) int32 entries of each resting state after the step; "original" first. Statistics only.
    """

    grammar: Grammar
    vocabulary: Vocabulary
    nfa: TerminalNfa
    codes: EventCodes
    rules: str
    cell_start: npt.NDArray[np.int64]
    entry_sequence: npt.NDArray[np.int32]
    entry_mask: npt.NDArray[np.int32]
    cell_of_state: npt.NDArray[np.int32]
    dependent: npt.NDArray[np.int32]
    cell_of_last: npt.NDArray[np.int32]
    sequence_start: npt.NDArray[np.int32]
    sequence_symbols: npt.NDArray[np.int32]
    masks: MaskPool
    counts: Mapping[str, npt.NDArray[np.int32]]

    @property
    def is_streamlined(self) -> bool:
        return len(self.counts) > 1

    @property
    def n_cells(self) -> int:
        return len(self.cell_start) - 1

    @property
    def n_entries(self) -> int:
        """Entries in all cells; shared cells count once."""
        return len(self.entry_sequence)

    def sequence(self, number: int) -> tuple[int, ...]:
        begin, end = self.sequence_start[number : number + 2].tolist()
        return tuple(self.sequence_symbols[begin:end].tolist())

    def cell(self, state: int, last: int | None = None) -> int:
        """The cell of a lexer state. last : the terminal that the parser has seen last, START, or None if that is not to be used."""
        if last is not None:
            row = int(np.searchsorted(self.dependent, state))
            if row < len(self.dependent) and self.dependent[row] == state:
                found = int(self.cell_of_last[row, last])  # START = -1 is the last column
                if found != NO_CELL:
                    return found
        return int(self.cell_of_state[state])

    def entries(self, cell: int) -> list[tuple[tuple[int, ...], int]]:
        """The cell's entries: sequence and mask number, the empty sequence first if it is there."""
        rows = range(int(self.cell_start[cell]), int(self.cell_start[cell + 1]))
        return [(self.sequence(int(self.entry_sequence[row])), int(self.entry_mask[row])) for row in rows]
