"""The parser and the lexer as an engine's table holds them.

In: a table that has passed `check_table`. Out: lists, for the other modules here. The walks take
them as right. `maskstore/table/anew.py` compares them with those that the grammar gives, and
`tables` asks whether the parser's are sound (docs/verify.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.table import schema

Int32 = npt.NDArray[np.int32]


def run_of(table: Int32, part: int, *shape: int) -> Int32:
    """The first integers of a part of the table, in a shape. part : its offset in the header."""
    begin = int(table[part])
    return table[begin : begin + int(np.prod(shape, dtype=np.int64))].reshape(shape)


def runs_of(table: Int32, starts: int, part: int, n: int) -> list[list[int]]:
    """The runs of a part, whose starts are another part. n : how many runs there are."""
    begin = int(table[part])
    at = run_of(table, starts, n + 1).tolist()
    members: list[int] = table[begin : begin + at[-1]].tolist()
    return [members[first:last] for first, last in pairwise(at)]


class Actions(Protocol):
    """What a parser does, as in `Parser`, whose words these are."""

    @property
    def n_states(self) -> int:
        """The number of LR states."""

    @property
    def n_columns(self) -> int:
        """The number of columns, that of the end of the text included."""

    @property
    def acts(self) -> list[tuple[int, ...]]:
        """Plain actions, by state and column."""

    @property
    def goto(self) -> list[list[int]]:
        """By state and nonterminal."""

    @property
    def lhs(self) -> list[int]:
        """By rule."""

    @property
    def length(self) -> list[int]:
        """By rule."""

    @property
    def below(self) -> list[list[int]]:
        """By state."""


class Columns(Protocol):
    """The columns of terminals, as in `Lexer`, whose words these are."""

    @property
    def column(self) -> list[int]:
        """By terminal, -1 for none."""

    @property
    def indent(self) -> int:
        """A column, NONE without a layout."""

    @property
    def dedent(self) -> int:
        """A column, NONE without a layout."""

    @property
    def newline(self) -> int:
        """A terminal, NONE without a layout."""


class Parser:
    """The LALR tables as an engine reads them.

    n_states, n_columns : as in the table. The last column is the end of the text.
    acts : acts[state * n_columns + column] are the plain actions there, () for an error. A state
        with a default rule has this one action before every column.
    goto, lhs, length : as in `LrTables`, as lists.
    below : for each state the states that can lie directly below it on a stack, ascending.
    shifts : for each state the columns that it shifts, as bits.
    entered : for each column the states that its shift leads to.
    has_conflicts : whether a cell has several actions, so that a text may have several stacks.
    """

    def __init__(self, table: Int32) -> None:
        self.n_states = int(table[schema.N_STATES])
        self.n_columns = int(table[schema.N_COLUMNS])
        n_nonterminals, n_rules = int(table[schema.N_NONTERMINALS]), int(table[schema.N_RULES])
        self.goto: list[list[int]] = run_of(table, schema.GOTO, self.n_states, n_nonterminals).tolist()
        self.lhs: list[int] = run_of(table, schema.RULE_LHS, n_rules).tolist()
        self.length: list[int] = run_of(table, schema.RULE_LENGTH, n_rules).tolist()
        self.acts = self._acts(table)
        self.shifts = [0] * self.n_states
        self.entered: list[set[int]] = [set() for _ in range(self.n_columns)]
        below: list[set[int]] = [set() for _ in range(self.n_states)]
        for state in range(self.n_states):
            for after in self.goto[state]:
                if after >= 0:
                    below[after].add(state)
            for column in range(self.n_columns):
                for action in self.acts[state * self.n_columns + column]:
                    if 0 < action <= self.n_states:
                        self.shifts[state] |= 1 << column
                        self.entered[column].add(action - 1)
                        below[action - 1].add(state)
        self.below = [sorted(each) for each in below]
        self.has_conflicts = any(len(actions) > 1 for actions in self.acts)

    def _acts(self, table: Int32) -> list[tuple[int, ...]]:
        action: list[list[int]] = run_of(table, schema.ACTION, self.n_states, self.n_columns).tolist()
        default: list[int] = run_of(table, schema.DEFAULT, self.n_states).tolist()
        begin = int(table[schema.ALTERNATIVES])
        found: list[tuple[int, ...]] = []
        known: dict[int, tuple[int, ...]] = {0: ()}
        for row, rule in zip(action, default, strict=True):
            if rule >= 0:
                found += [(-1 - rule,)] * self.n_columns
                continue
            for cell in row:
                if cell not in known:
                    known[cell] = (cell,)
                    if cell >= CONFLICT_FROM:
                        at = begin + cell - CONFLICT_FROM
                        known[cell] = tuple(table[at + 1 : at + 1 + int(table[at])].tolist())
                found.append(known[cell])
        return found


ACCEPTS = 1 << 29
"""The action that accepts the text (`schema.ACTION`)."""
CONFLICT_FROM = 1 << 30
"""An action from here on stands for several."""


class Lexer:
    """The transducer, the layout and what lexemes under way may become, as an engine reads them.

    byte_class, next_state, output, outputs, end_output : as in `Transducer`, as lists.
    is_newline : for each state whether the lexeme under way may become the layout's newline.
    column, bracket : for each terminal its column, and 1 or -1 for a bracket of the layout.
    newline, indent, dedent : the layout's terminal, and the columns of the others; NONE without.
    newline_column : the column of the newline.
    mode_state : the state in which lexemes begin, by mode. mode_of : the mode of each LR state.
    fallback : for each state the terminals emitted where the lexer backs up, none or one.
    pending : for each state the bytes that are then read anew.
    endings : for each state its alternatives: the terminals that come first, and a code, as in
        `schema.ENDINGS`.
    sets : the sets of columns, as bits. after_newline : the one behind a line break, by number.
    again : the most bytes that wait to be read anew.
    """

    def __init__(self, table: Int32, n_terminals: int) -> None:
        n = self.n_states = int(table[schema.N_LEXER_STATES])
        n_classes, n_modes = int(table[schema.N_CLASSES]), int(table[schema.N_MODES])
        n_outputs = int(table[schema.OUTPUT_SYMBOLS]) - int(table[schema.OUTPUT_START]) - 1
        self.byte_class: list[int] = run_of(table, schema.BYTE_CLASS, 256).tolist()
        self.next_state: list[list[int]] = run_of(table, schema.NEXT_STATE, n, n_classes).tolist()
        self.output: list[list[int]] = run_of(table, schema.OUTPUT, n, n_classes).tolist()
        self.outputs = runs_of(table, schema.OUTPUT_START, schema.OUTPUT_SYMBOLS, n_outputs)
        self.end_output: list[int] = run_of(table, schema.END_OUTPUT, n).tolist()
        flags: list[int] = run_of(table, schema.STATE_FLAGS, n).tolist()
        self.is_newline = [bool(flag & schema.IS_NEWLINE) for flag in flags]
        self.column: list[int] = run_of(table, schema.SYMBOL_COLUMN, n_terminals).tolist()
        self.bracket: list[int] = run_of(table, schema.SYMBOL_DEPTH, n_terminals).tolist()
        self.newline, self.indent = int(table[schema.NEWLINE]), int(table[schema.INDENT])
        self.dedent = int(table[schema.DEDENT])
        self.newline_column = self.column[self.newline] if self.newline >= 0 else schema.NONE
        self.tab_length, self.tabs = int(table[schema.TAB_LENGTH]), int(table[schema.TABS])
        self.mode_state: list[int] = run_of(table, schema.MODE_STATE, n_modes).tolist()
        self.mode_of: list[int] = run_of(table, schema.MODE_OF_STATE, int(table[schema.N_STATES])).tolist()
        emitted = int(table[schema.OUTPUT_SYMBOLS])
        self.fallback = [
            [] if at < 0 else [int(table[emitted + at])] for at in run_of(table, schema.FALLBACK, n).tolist()
        ]
        self.pending = [bytes(each) for each in runs_of(table, schema.PENDING_START, schema.PENDING, n)]
        self.endings = [list(_endings(run)) for run in runs_of(table, schema.ENDING_START, schema.ENDINGS, n)]
        n_words = int(table[schema.N_SET_WORDS])
        n_sets = (int(table[schema.SHIFT_BITS]) - int(table[schema.SET_BITS])) // max(1, n_words)
        words = run_of(table, schema.SET_BITS, n_sets, n_words)
        self.sets = [int.from_bytes(row.astype("<i4").tobytes(), "little") for row in words]
        self.after_newline = int(table[schema.AFTER_NEWLINE])
        self.again = int(table[schema.AGAIN])


def _endings(run: list[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """The alternatives of a run of ENDINGS: terminals, and a code."""
    at = 0
    while at < len(run):
        n = run[at + 1]
        yield tuple(run[at + 2 : at + 2 + n]), run[at]
        at += 2 + n
