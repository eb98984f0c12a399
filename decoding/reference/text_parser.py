"""LR parsing of a text's terminals with its layout, one after another, with a reason for each stop.

How the text is cut into terminals is for others to say (`interpreter`, `lint.texts`). Those that
the layout inserts are added here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.encoding import START_STATE
from maskwright.decoding.reference.parser import Parser, Shifted, Stack, Stacks

END = -1
"""Stands for the end of the text where a terminal is expected."""
INSERTED = -1
"""Stands for the lexing mode of a terminal that the layout inserted and no text spells."""
Read = tuple[int, int, "Read | None"]
"""The terminals read: the last one, the mode in which it was lexed, and those before it."""

Kind = Literal["bytes", "terminal", "newline", "indent", "dedent", "column", "tabs", "end", "unfinished"]


class Configuration(NamedTuple):
    """The state of the readings of a text that the lexer cannot tell apart.

    lexer : the transducer's state.
    column : of the newline under way.
    depth : open brackets.
    columns : of the open blocks, the outermost first.
    stacks : the parser's.
    last_was_newline : whether the last thing read was a newline whose column is known.
    read : all that was read, as a linked list from the last terminal.
    """

    lexer: int
    column: Column
    depth: int
    columns: tuple[Column, ...]
    stacks: Stacks
    last_was_newline: bool
    read: Read | None

    def terminals(self, since: Read | None = None) -> tuple[int, ...]:
        """The terminals that were read, in order. since : what had been read before the first."""
        found = []
        read = self.read
        while read is not None and read is not since:
            found.append(read[0])
            read = read[2]
        return tuple(found[::-1])


class Refusal(NamedTuple):
    """Why a reading stops.

    kind : the reason. "bytes": the lexer cannot go on with this byte. "terminal", "newline",
        "indent", "dedent", "end": the parser refuses that. "column": a line begins where no block
        is open. "tabs": its tabs and blanks do not compare with the open block's. "unfinished": the
        text cannot end inside a lexeme.
    configuration : where it stops.
    symbol : the terminal, or END.
    stacks : those that refuse, after all possible reductions.
    column : the line's.
    """

    kind: Kind
    configuration: Configuration
    symbol: int = END
    stacks: Stacks = ()
    column: Column = FIRST_COLUMN


class TextParser:
    """The parser and the layout of a grammar, over the terminals of texts.

    parser : makes the stacks.
    mode_of : for each state of the parser the lexing mode that it chooses.
    start : the configuration before the text.
    """

    def __init__(self, grammar: Grammar, parser: Parser, mode_of: Sequence[int]) -> None:
        self.grammar, self.parser, self.mode_of, self.newline = grammar, parser, mode_of, grammar.newline
        self.column_of: list[int] = parser.tables.terminal_column.tolist()
        brackets = grammar.layout.brackets if grammar.layout else ()
        self.bracket = {opening: 1 for opening, _ in brackets} | {closing: -1 for _, closing in brackets}
        self.start = Configuration(START_STATE, FIRST_COLUMN, 0, (FIRST_COLUMN,), (parser.start,), False, None)

    def shift(self, stacks: Sequence[Stack], symbol: int) -> Shifted:
        """What becomes of some stacks before a terminal, or END. Raises: as `Parser.shift`."""
        return self.parser.shift(stacks, self.parser.end_column if symbol == END else self.column_of[symbol])

    def acceptable(self, stacks: Sequence[Stack], symbols: Iterable[int]) -> list[int]:
        """Those of some terminals (or END) that the parser can take."""
        return [symbol for symbol in symbols if self.shift(stacks, symbol).stacks]

    def expected(self, stacks: Sequence[Stack]) -> list[int]:
        """All terminals that the parser can take, ascending, then END.

        With a layout the end of the text may need dedents before it; these are not tried.
        """
        columns = self.column_of
        return self.acceptable(stacks, [*(t for t in range(len(columns)) if columns[t] >= 0), END])

    def _feed(
        self, configuration: Configuration, symbol: int, kind: Kind, column: Column = FIRST_COLUMN
    ) -> Configuration | Refusal:
        """The configuration after one terminal. kind : of the refusal, if the parser refuses it."""
        after = self.shift(configuration.stacks, symbol)
        if not after.stacks:
            return Refusal(kind, configuration, symbol, after.refusing, column)
        return configuration._replace(stacks=after.stacks)

    def take(self, configuration: Configuration, symbol: int) -> Configuration | Refusal:
        """The configuration after one terminal of the text; what a newline inserts is left out."""
        is_newline = symbol == self.newline
        after = self.shift(configuration.stacks, symbol)
        if not after.stacks:
            kind: Kind = "newline" if is_newline else "terminal"
            return Refusal(kind, configuration, symbol, after.refusing, configuration.column)
        lexer, column, depth, columns, *_ = configuration
        depth = max(0, depth + self.bracket.get(symbol, 0))
        # PERF: `_replace` takes twice the time
        return Configuration(lexer, column, depth, columns, after.stacks, is_newline, self._read(configuration, symbol))

    def _read(self, configuration: Configuration, symbol: int) -> Read:
        """The terminals read, with one more of the text."""
        return symbol, self.mode_of[configuration.stacks[0].top], configuration.read

    def emit(self, configuration: Configuration, symbols: Iterable[int]) -> Configuration | Refusal:
        """The configuration after terminals that the lexer emits, with the layout applied.

        Returns the first refusal instead, if there is one.
        """
        for symbol in symbols:
            is_newline = symbol == self.newline
            if is_newline and configuration.depth > 0:
                configuration = configuration._replace(read=self._read(configuration, symbol))
                continue
            after = self.take(configuration, symbol)
            if is_newline and isinstance(after, Configuration):
                after = self.line(after, configuration.column)
            if isinstance(after, Refusal):
                return after
            configuration = after
        return configuration

    def line(self, configuration: Configuration, column: Column) -> Configuration | Refusal:
        """The configuration after the indent or dedents of a line that begins at a column."""
        layout = self.grammar.layout
        assert layout is not None
        line = layout.line_at(configuration.columns, column)
        if line is None:
            order = layout.compare(column, configuration.columns[-1])
            is_open = any(column.wide == opened.wide for opened in configuration.columns)
            symbol = layout.indent if order is None else layout.dedent
            return Refusal("tabs" if order is None or is_open else "column", configuration, symbol, (), column)
        for symbol in line.inserted:
            after = self._feed(configuration, symbol, "indent" if symbol == layout.indent else "dedent", column)
            if isinstance(after, Refusal):
                return after
            columns = configuration.columns[:-1] if symbol == layout.dedent else line.columns
            configuration = after._replace(columns=columns, read=(symbol, INSERTED, configuration.read))
        return configuration

    def close(self, configuration: Configuration) -> Configuration | Refusal:
        """The configuration after the end of the text, with the dedents that close its blocks."""
        if len(configuration.columns) > 1:
            after = self.line(configuration, FIRST_COLUMN)
            if isinstance(after, Refusal):
                return after._replace(kind="end", symbol=END)
            configuration = after
        return self._feed(configuration, END, "end")

    def by_mode(self, configuration: Configuration) -> list[tuple[int, Configuration]]:
        """A configuration split by the lexing modes that its stacks choose."""
        by_mode: dict[int, list[Stack]] = {}
        for stack in configuration.stacks:
            by_mode.setdefault(self.mode_of[stack.top], []).append(stack)
        return [(mode, configuration._replace(stacks=tuple(stacks))) for mode, stacks in by_mode.items()]
