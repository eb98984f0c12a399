"""Whether a grammar accepts a text: the lexer's longest match and the LALR tables, in plain code.

This is for the short texts of findings. Where conflicts leave several actions, each is followed on
a thread of its own. With contextual lexing each thread lexes for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lr.encoding import LrTables
from maskwright.decoding.reference.parser import Parser, Stack
from maskwright.lint.lexer import Lexer, PlainLexer

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
        self.parser = Parser(tables, grammar.name, MAX_STACKS, is_cut=True)
        layout = grammar.layout
        self.bracket_change = (
            {} if layout is None else {o: 1 for o, _ in layout.brackets} | {c: -1 for _, c in layout.brackets}
        )

    def read(self, text: bytes) -> Reading:
        """Read a text from its start. The first thread that accepts ends the search.

        text : bytes.
        """
        agenda = [_Thread(0, self.parser.start)]
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
            mode = self.mode_of[thread.stack.top]
            terminal, end = self.lexer.longest(mode, text, thread.at)
            if terminal >= 0:
                agenda += self.step(thread, terminal, end, text[thread.at : end], end == len(text))
            elif isinstance(self.lexer, Lexer) and self.lexer.is_under_way(mode, text[thread.at :]):
                is_unfinished = True
        return Reading(False, best.at, best.terminals, is_unfinished)

    def stacks_after(self, terminals: tuple[int, ...]) -> tuple[Stack, ...]:
        """The parser's stacks after a terminal sequence; () if no sentence begins with it.

        terminals : with those that the layout inserts.
        """
        stacks: tuple[Stack, ...] = (self.parser.start,)
        for terminal in terminals:
            stacks = self.parser.shift(stacks, terminal).stacks
        return stacks

    def next_terminals(self, terminals: tuple[int, ...]) -> set[int]:
        """The terminals that the parser takes after a terminal sequence."""
        stacks = self.stacks_after(terminals)
        return {t for t in range(self.tables.n_terminals) if self.parser.shift(stacks, t).stacks}

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
            line = layout.line_at(columns, FIRST_COLUMN if is_last else layout.column_after(lexeme))
            if line is None:
                return []
            columns = line.columns
            sequence += line.inserted
        stacks = self.parser.shift_all((thread.stack,), sequence)
        depth = max(0, thread.depth + self.bracket_change.get(terminal, 0))
        terminals = (*thread.terminals, *sequence)
        return [_Thread(end, stack, columns, depth, terminals) for stack in stacks]

    def _may_end(self, thread: _Thread) -> bool:
        """Whether the text may end here, after the dedents that close its blocks."""
        layout = self.grammar.layout
        dedents = [] if layout is None else [layout.dedent] * (len(thread.columns) - 1)
        return self.parser.accepts_end(self.parser.shift_all((thread.stack,), dedents))
