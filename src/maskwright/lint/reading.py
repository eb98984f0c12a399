"""Whether a grammar accepts a text: the lexer's longest match and the LALR tables, in plain code.

This is for the short texts of findings. With contextual lexing, the stacks of each mode lex for
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from maskwright.analysis.grammar.columns import FIRST_COLUMN
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lr.encoding import LrTables
from maskwright.decoding.reference.lexer import Lexer
from maskwright.decoding.reference.parser import Parser, Stacks
from maskwright.decoding.reference.text_parser import Configuration, TextParser

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


class Reader(TextParser):
    """Reads texts under a grammar with lexing "longest" or "contextual".

    grammar : its layout and ignored terminals apply.
    lexer : finds the longest match.
    modes : the lexing modes of the tables' states.
    tables : of the parser.
    """

    def __init__(self, grammar: Grammar, lexer: Lexer, modes: Modes, tables: LrTables) -> None:
        super().__init__(grammar, Parser(tables, grammar.name, MAX_STACKS, is_cut=True), modes.of_state.tolist())
        self.lexer = lexer

    def read(self, text: bytes) -> Reading:
        """Read a text from its start. The first thread that accepts ends the search.

        text : bytes.
        """
        agenda = [(0, self.start)]
        best = agenda[0]
        is_unfinished = False
        for at, configuration in agenda:  # grows while it is read
            if at > best[0]:
                best = at, configuration
            if at == len(text):
                if isinstance(self.close(configuration), Configuration):
                    return Reading(True, at, configuration.terminals())
                continue
            if len(agenda) > MAX_THREADS:
                break
            for mode, thread in self.by_mode(configuration):
                terminal, end = self.lexer.longest(mode, text, at)
                if terminal >= 0:
                    agenda += [(end, after) for after in self._step(thread, terminal, text[at:end], end == len(text))]
                elif self.lexer.scan(mode, text, at)[2] >= 0:
                    is_unfinished = True
        return Reading(False, best[0], best[1].terminals(), is_unfinished)

    def _step(self, thread: Configuration, terminal: int, lexeme: bytes, is_last: bool) -> Iterator[Configuration]:
        """The configuration after a lexeme, if it is taken. is_last : whether it ends the text."""
        layout = self.grammar.layout
        if terminal in self.grammar.ignored or (terminal == self.grammar.newline and thread.depth):
            yield thread
            return
        if layout is not None and terminal == layout.newline:
            # Blanks that end the text have no column.
            thread = thread._replace(column=FIRST_COLUMN if is_last else layout.column_after(lexeme))
        after = self.emit(thread, (terminal,))
        if isinstance(after, Configuration):
            yield after

    def stacks_after(self, terminals: tuple[int, ...]) -> Stacks:
        """The parser's stacks after a terminal sequence; () if no sentence begins with it.

        terminals : with those that the layout inserts; number n_terminals is the end of the text.
        """
        return self.parser.shift_all((self.parser.start,), terminals)

    def next_terminals(self, terminals: tuple[int, ...]) -> set[int]:
        """The terminals that the parser takes after a terminal sequence."""
        return set(self.acceptable(self.stacks_after(terminals), range(self.grammar.n_terminals)))
