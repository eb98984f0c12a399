"""Whether a grammar accepts a text: the lexer's longest match and the LALR tables, in plain code.

This is for the short texts of findings. Where conflicts leave several actions, each is followed on
a thread of its own. With contextual lexing each thread lexes for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lr.encoding import ACCEPT, LrTables
from maskwright.lint.lexer import Lexer, PlainLexer

Stack: TypeAlias = "tuple[int, Stack | None]"
"""State on top, and the stack below it (None at the bottom)."""

MAX_THREADS = 2_000
"""Steps of all threads over one text."""
MAX_STACKS = 100
"""Stacks made for one terminal."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a text.

    accepted : whether it is a whole text.
    reached : bytes that were lexed and parsed, by the thread that came furthest.
    terminals : those of this thread, with those that the layout inserts.
    is_unfinished : whether the text ends inside a lexeme that more text may complete.
    """

    accepted: bool
    reached: int
    terminals: tuple[int, ...]
    is_unfinished: bool = False


@dataclass(frozen=True, slots=True)
class _Thread:
    """One way to read a text.

    at : offset in bytes.
    columns : of the open blocks.
    depth : open brackets.
    """

    at: int
    stack: Stack
    columns: tuple[Column, ...] = (FIRST_COLUMN,)
    depth: int = 0
    terminals: tuple[int, ...] = ()


class Reader:
    """Reads texts under a grammar with lexing "longest" or "contextual".

    grammar : its layout and ignored terminals apply.
    lexer : finds the longest match.
    modes : the lexing modes of the tables' states.
    tables : of the parser.
    """

    def __init__(self, grammar: Grammar, lexer: Lexer | PlainLexer, modes: Modes, tables: LrTables) -> None:
        self.grammar, self.lexer, self.tables = grammar, lexer, tables
        self.mode_of: list[int] = modes.of_state.tolist()
        self.rules = list(zip(tables.rule_lhs.tolist(), tables.rule_length.tolist(), strict=True))
        layout = grammar.layout
        self.change = {} if layout is None else {o: 1 for o, _ in layout.brackets} | {c: -1 for _, c in layout.brackets}

    def read(self, text: bytes) -> Reading:
        """Read a text from its start. The first thread that accepts ends the search.

        text : bytes.
        """
        agenda = [_Thread(0, (0, None))]
        best = agenda[0]
        is_unfinished = False
        for thread in agenda:  # grows while it is read
            if thread.at > best.at:
                best = thread
            if thread.at == len(text):
                if self._may_end(thread):
                    return Reading(True, thread.at, thread.terminals)
                continue
            if len(agenda) > MAX_THREADS:
                break
            mode = self.mode_of[thread.stack[0]]
            terminal, end = self.lexer.longest(mode, text, thread.at)
            if terminal >= 0:
                agenda += self.step(thread, terminal, end, text[thread.at : end], end == len(text))
            elif isinstance(self.lexer, Lexer) and self.lexer.is_under_way(mode, text[thread.at :]):
                is_unfinished = True
        return Reading(False, best.at, best.terminals, is_unfinished)

    def stacks_after(self, terminals: tuple[int, ...]) -> list[Stack]:
        """The parser's stacks after a terminal sequence; [] if no sentence begins with it.

        terminals : with those that the layout inserts.
        """
        stacks: list[Stack] = [(0, None)]
        for terminal in terminals:
            stacks = [after for stack in stacks for after in self.shift(stack, terminal)][:MAX_STACKS]
        return stacks

    def next_terminals(self, terminals: tuple[int, ...]) -> set[int]:
        """The terminals that the parser takes after a terminal sequence."""
        stacks = self.stacks_after(terminals)
        return {t for t in range(self.tables.n_terminals) if any(self.shift(stack, t) for stack in stacks)}

    def shift(self, stack: Stack, terminal: int) -> list[Stack]:
        """The stacks after a terminal. The end of the text has the number n_terminals."""
        found: list[Stack] = []
        agenda = [stack]
        for current in agenda:  # grows while it is read
            if len(agenda) > MAX_STACKS:
                break
            for action in self.tables.actions(current[0], terminal):
                if action == ACCEPT:
                    found.append(current)
                elif action > 0:
                    found.append((action - 1, current))
                else:
                    lhs, length = self.rules[-action - 1]
                    below: Stack | None = current
                    for _ in range(length):
                        assert below is not None
                        below = below[1]
                    assert below is not None
                    agenda.append((int(self.tables.goto[below[0], lhs]), below))
        return found

    def step(self, thread: _Thread, terminal: int, end: int, lexeme: bytes, is_last: bool) -> list[_Thread]:
        """The threads after a lexeme.

        end : its end in bytes.
        is_last : whether it ends the text.
        """
        layout = self.grammar.layout
        if terminal in self.grammar.ignored:
            return [_Thread(end, thread.stack, thread.columns, thread.depth, thread.terminals)]
        columns = thread.columns
        sequence = [terminal]
        if layout is not None and terminal == layout.newline:
            if thread.depth:
                return [_Thread(end, thread.stack, columns, thread.depth, thread.terminals)]
            # Blanks that end the text have no column.
            column = FIRST_COLUMN if is_last else layout.column_after(lexeme)
            order = layout.compare(column, columns[-1])
            if order == 1:
                columns, sequence = (*columns, column), [terminal, layout.indent]
            while order == -1:
                columns = columns[:-1]
                sequence.append(layout.dedent)
                order = layout.compare(column, columns[-1])
            if column != columns[-1]:
                return []
        stacks = [thread.stack]
        for symbol in sequence:
            stacks = [after for stack in stacks for after in self.shift(stack, symbol)]
        depth = max(0, thread.depth + self.change.get(terminal, 0))
        terminals = (*thread.terminals, *sequence)
        return [_Thread(end, stack, columns, depth, terminals) for stack in stacks]

    def _may_end(self, thread: _Thread) -> bool:
        """Whether the text may end here, after the dedents that close its blocks."""
        stacks = [thread.stack]
        layout = self.grammar.layout
        for _ in thread.columns[1:]:
            assert layout is not None
            stacks = [after for stack in stacks for after in self.shift(stack, layout.dedent)]
        return any(self.shift(stack, self.tables.n_terminals) for stack in stacks)
