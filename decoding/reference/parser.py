"""LR parsing in plain Python, on stacks that several readings share.

A stack is a linked list of LR states. Equal stacks of a parser are one object, so what a terminal
does to a stack is worked out once. Where a cell of the tables has several actions, all of them are
followed, on several stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.encoding import START_STATE
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, ERROR, LrTables

MOST_STACKS = 10_000
"""Stacks after one terminal above which a text counts as too ambiguous, by default."""
MOST_AT_ONCE = 65_536
"""Stacks that reductions before one terminal may make, of all stacks together."""


class Stack:
    """A parser stack. Compare with `is`; `push` makes them.

    top : the LR state on top.
    below : the stack under it; None at the bottom.
    pushed : the known stacks with one more state, by that state.
    after : what is known of terminals on this stack, by their columns.
    """

    __slots__ = ("after", "below", "pushed", "top")

    def __init__(self, top: int, below: Stack | None) -> None:
        self.top = top
        self.below = below
        self.pushed: dict[int, Stack] = {}
        self.after: dict[int, Shifted] = {}

    def push(self, state: int) -> Stack:
        """The stack with one more state on top."""
        found = self.pushed.get(state)
        if found is None:
            found = self.pushed[state] = Stack(state, self)
        return found

    def states(self) -> list[int]:
        """The LR states, from the bottom."""
        found = []
        here: Stack | None = self
        while here is not None:
            found.append(here.top)
            here = here.below
        return found[::-1]


Stacks = tuple[Stack, ...]


class Shifted(NamedTuple):
    """What becomes of stacks before a terminal.

    stacks : those after it; `ENDED` is one of them if the whole text is accepted. () if the
        terminal is refused.
    refusing : those that refuse it, after all possible reductions.
    dead : those of them that could shift it, but then no text could be completed.
    """

    stacks: Stacks
    refusing: Stacks
    dead: Stacks = ()


ENDED = Stack(-1, None)
"""Stands for a stack after the parser has accepted the whole text."""


class Parser:
    """The parser that some tables describe.

    Default reductions are done whatever comes next, even where no terminal fits.

    tables : their columns are the terminals here, and the last one the end of the text.
    name : of the grammar, for messages.
    most : stacks after one terminal above which a text counts as too ambiguous.
    advice : what to do about that, for messages.
    is_cut : whether stacks past the limits are left out, without an error.
    is_dead : whether no text can be completed once a stack shifts to a state; None if there are no
        dead ends.
    start : the stack before the text.
    """

    def __init__(
        self,
        tables: LrTables,
        name: str,
        most: int = MOST_STACKS,
        *,
        advice: str = "make its rules less ambiguous",
        is_cut: bool = False,
        is_dead: Callable[[Stack, int], bool] | None = None,
    ) -> None:
        self.tables = tables
        self._name, self._most, self._advice = name, most, advice
        self._is_cut, self._is_dead = is_cut, is_dead
        self._most_at_once = most if is_cut else MOST_AT_ONCE
        self._action: list[list[int]] = tables.action.tolist()
        self._goto: list[list[int]] = tables.goto.tolist()
        self._default_rule: list[int] = tables.default_rule.tolist()
        self._rule_lhs: list[int] = tables.rule_lhs.tolist()
        self._rule_length: list[int] = tables.rule_length.tolist()
        self.end_column = tables.n_terminals
        self.start = Stack(0, None)

    def shift(self, stacks: Sequence[Stack], column: int) -> Shifted:
        """What becomes of some stacks before a terminal.

        column : of the terminal in the tables, or `end_column`; -1 if no state takes it.

        Raises: LimitError if the text has too many readings.
        Cost: O(reductions), once for each stack and terminal.
        """
        if len(stacks) == 1 and (known := stacks[0].after.get(column)) is not None:
            return known
        room = [self._most_at_once]
        parts = [self._shift(stack, column, room) for stack in stacks]
        if len(parts) == 1:
            return parts[0]
        found = Shifted(*(tuple(dict.fromkeys(one for part in parts for one in part[i])) for i in range(3)))
        return found._replace(stacks=found.stacks[: self._most]) if self._is_past(len(found.stacks)) else found

    def shift_all(self, stacks: Sequence[Stack], columns: Iterable[int]) -> Stacks:
        """The stacks after several terminals; () if they are refused.

        columns : of the terminals, as in `shift`.

        Raises: as `shift`.
        """
        found = tuple(stacks)
        for column in columns:
            found = self.shift(found, column).stacks
        return found

    def accepts_end(self, stacks: Sequence[Stack]) -> bool:
        """Whether the text may end with some of these stacks. Raises: as `shift`."""
        return bool(self.shift(stacks, self.end_column).stacks)

    def _shift(self, stack: Stack, column: int, room: list[int]) -> Shifted:
        """What becomes of one stack.

        room : one number, the stacks that reductions may still make; it becomes less.
        """
        known = stack.after.get(column)
        if known is not None:
            return known
        found: dict[Stack, None] = {}
        refusing: dict[Stack, None] = {}
        dead: dict[Stack, None] = {}
        agenda = [stack]
        seen = {stack}
        is_cut = False
        while agenda and not is_cut:
            here = agenda.pop()
            actions = self._actions(here.top, column)
            if not actions:
                refusing[here] = None
            for action in actions:
                if action == ACCEPT:
                    found[ENDED] = None
                elif action < 0:
                    after = self._reduced(here, -action - 1)
                    if after not in seen:
                        seen.add(after)
                        agenda.append(after)
                elif self._is_dead is not None and self._is_dead(here, action - 1):
                    refusing[here] = dead[here] = None
                else:
                    found[here.push(action - 1)] = None
            is_cut = self._is_past(len(found), len(seen) - room[0])
        room[0] -= len(seen)
        shifted = Shifted(tuple(found)[: self._most], tuple(refusing), tuple(dead))
        if not is_cut:
            stack.after[column] = shifted
        return shifted

    def _actions(self, state: int, column: int) -> tuple[int, ...]:
        if state < 0:  # nothing comes after `ENDED`
            return ()
        default = self._default_rule[state]
        if default >= 0:
            return (-default - 1,)
        action = self._action[state][column] if column >= 0 else ERROR
        if action >= CONFLICT:
            return self.tables.actions(state, column)
        return () if action == ERROR else (action,)

    def _reduced(self, stack: Stack, rule: int) -> Stack:
        """The stack after a reduction."""
        here = stack
        for _ in range(self._rule_length[rule]):
            assert here.below is not None  # INVARIANT: a rule's symbols are on the stack when it is reduced
            here = here.below
        return here.push(self._goto[here.top][self._rule_lhs[rule]])

    def _is_past(self, n: int, n_past: int = 0) -> bool:
        """Whether there are too many stacks, and those past the limit are to be left out.

        n : the stacks after a terminal.
        n_past : by how many the reductions before it have made too many.

        Raises: LimitError if there are too many, and none may be left out.
        """
        if not self._is_cut and n > self._most:
            raise LimitError(
                f"grammar {self._name} has more than {self._most} readings of the text: their number grows with its length; "
                + self._advice
            )
        if not self._is_cut and n_past > 0:
            raise LimitError(
                f"grammar {self._name} takes more than {self._most_at_once} steps to read one terminal; {self._advice}"
            )
        return n > self._most or n_past > 0


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
    """The parser and the layout of a grammar, over texts' terminals, with a reason for each stop.

    How a text is cut into terminals is for others to say (`interpreter`, `lint.texts`). Those that
    the layout inserts are added here.

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
