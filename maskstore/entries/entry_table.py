"""The table that a decoder of lexing "nfa" reads: in each lexer state, sequences and their tokens.

The tokens of an entry are allowed if the parser accepts its sequence. The table consists of flat
arrays, which `build` makes and a file holds.
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


@dataclass(frozen=True, eq=False)
class EntryTable:
    """Masks by lexer state and terminal sequence.

    A *cell* is a list of entries: those of one lexer state after one terminal or two. States with
    equal entries share a cell.

    codes : the meaning of the symbols in `sequence_symbols`.
    rules : the rules on which always-verdicts were judged, see `Judge`.
    cell_start : (n_cells + 1,) int64; the entries of cell c are cell_start[c] .. cell_start[c + 1].
    entry_sequence, entry_mask : (n_entries,) int32; each entry's sequence and mask, by number. The
        sequences of a cell are distinct.
    cell_of_state : (n_states + 1,) int32; the last is the cell of the start of the text. NO_CELL
        for states in which no text can stand between tokens.
    dependent : (n_dependent,) int32, ascending; the states whose own terminal does not tell what
        the parser saw last: those inside ignored terminals and, with layout, inside newlines. With
        two terminals of context the others too. Empty if the table is not streamlined.
    cell_of_last : (n_dependent, n_terminals + 1) int32; the cell of a dependent state if the parser
        has seen a certain terminal last, before the state's own if it has seen that. The last
        column holds where it has seen none, since the text has just begun. NO_CELL where only
        `cell_of_state` holds. A state inside a newline has just one such cell, under the newline
        itself: it holds outside brackets.
    sequence_start : (n_sequences + 1,) int32; the symbols of sequence n are
        sequence_symbols[sequence_start[n] : sequence_start[n + 1]]. Sequence 0 is empty.
    sequence_symbols : (n_symbols,) int32; terminals and the layout's events (`EventCodes`).
    masks : the masks by number.
    counts : step -> (n_resting,) int32; the number of entries of each resting state after the step,
        "original" first. Statistics only.
    """

    file_kind = "entries"
    """What its file says that it is of (`maskstore.file`)."""
    engine = ""
    """No engine reads texts under these masks: a `ReferenceDecoder` does."""

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
        """Whether the entries have been streamlined."""
        return len(self.counts) > 1

    @property
    def n_cells(self) -> int:
        """The number of distinct cells."""
        return len(self.cell_start) - 1

    @property
    def n_entries(self) -> int:
        """The number of entries in all cells. A shared cell counts once."""
        return len(self.entry_sequence)

    def sequence(self, number: int) -> tuple[int, ...]:
        """The symbols of a sequence: terminals and the layout's events."""
        begin, end = self.sequence_start[number : number + 2].tolist()
        return tuple(self.sequence_symbols[begin:end].tolist())

    def cell(self, state: int, last: int | None = None) -> int:
        """The cell of a lexer state; NO_CELL if no text can stand there between tokens.

        last : the terminal that the parser has seen last, before the state's own if it has seen
            that, or START. In a `dependent` state it chooses the cell. None if it must not be used.
        """
        if last is not None:
            row = int(np.searchsorted(self.dependent, state))
            if row < len(self.dependent) and self.dependent[row] == state:
                found = int(self.cell_of_last[row, last])  # START = -1 is the last column
                if found != NO_CELL:
                    return found
        return int(self.cell_of_state[state])

    def entries(self, cell: int) -> list[tuple[tuple[int, ...], int]]:
        """The entries of a cell: each a sequence and the number of its mask.

        The empty sequence comes first if the cell has it.
        """
        rows = range(int(self.cell_start[cell]), int(self.cell_start[cell + 1]))
        return [(self.sequence(int(self.entry_sequence[row])), int(self.entry_mask[row])) for row in rows]
