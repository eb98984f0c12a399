"""Read a text in plain Python: byte by byte through the transducer, explicit stacks for the parser.

The answers are the engine's, worked out by other code: no look-ups, no merged states. Each refusal
is kept with the stacks that refuse. This is for explaining, not for decoding: it takes about 25 us
a byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.lexing.encoding import DEAD, RESTART, START_STATE
from maskwright.decoding.engine.constants import MAX_STACKS
from maskwright.decoding.reference.machine import INSERTED, Configuration, Machine
from maskwright.decoding.reference.parser import Parser, Shifted, Stack, Stacks

END = -1
"""Stands for the end of the text where a terminal is expected."""

Kind = Literal["bytes", "terminal", "newline", "indent", "dedent", "column", "tabs", "end", "unfinished"]


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


class Interpreter:
    """The readings of one text, and of what may come after it.

    parser : makes the stacks. Its tables are the full ones, with no states merged.
    start : the configuration before the text.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.parser = Parser(
            machine.tables,
            machine.grammar.name,
            MAX_STACKS,
            advice="load the grammar with conflicts='shift', or make its rules less ambiguous",
            is_dead=None if machine.live is None else self._is_dead,
        )
        self._kinds = {self.parser.start: 0}
        self.start = Configuration(START_STATE, FIRST_COLUMN, 0, (FIRST_COLUMN,), (self.parser.start,), False, None)

    # -------------------------------------------------------------------------------------- parsing

    def shift(self, stacks: Sequence[Stack], symbol: int) -> Shifted:
        """What becomes of some stacks before a terminal, or END. Raises: as `Parser.shift`."""
        return self.parser.shift(stacks, self.parser.end_column if symbol == END else self.machine.column_of[symbol])

    def _is_dead(self, stack: Stack, state: int) -> bool:
        """Whether no text can be completed after a shift."""
        live, class_of, kinds = self.machine.live, self.machine.class_of, self._kinds
        assert live is not None
        waiting = []
        at = stack
        while at not in kinds:
            waiting.append(at)
            assert at.below is not None  # INVARIANT: the lowest stack has a kind
            at = at.below
        for one in reversed(waiting):
            kinds[one] = live.push(class_of[at.top], kinds[at], class_of[one.top])
            at = one
        return not live.can_shift(class_of[stack.top], kinds[stack], class_of[state])

    def acceptable(self, stacks: Sequence[Stack], symbols: Iterable[int]) -> list[int]:
        """Those of some terminals (or END) that the parser can take."""
        return [symbol for symbol in symbols if self.shift(stacks, symbol).stacks]

    def expected(self, stacks: Sequence[Stack]) -> list[int]:
        """All terminals that the parser can take, ascending, then END.

        With a layout the end of the text may need dedents before it; these are not tried.
        """
        columns = self.machine.column_of
        return self.acceptable(stacks, [*(t for t in range(len(columns)) if columns[t] >= 0), END])

    def _feed(
        self, configuration: Configuration, symbol: int, kind: Kind, column: Column = FIRST_COLUMN
    ) -> Configuration | Refusal:
        """The configuration after one terminal. kind : of the refusal, if the parser refuses it."""
        after = self.shift(configuration.stacks, symbol)
        if not after.stacks:
            return Refusal(kind, configuration, symbol, after.refusing, column)
        return configuration._replace(stacks=after.stacks)

    def emit(self, configuration: Configuration, symbols: Iterable[int]) -> Configuration | Refusal:
        """The configuration after terminals that the lexer emits, with the layout applied.

        Returns the first refusal instead, if there is one.
        """
        machine = self.machine
        for symbol in symbols:
            read = (symbol, self.modes(configuration.stacks)[0], configuration.read)
            if symbol == machine.newline and configuration.depth > 0:
                configuration = configuration._replace(read=read)
                continue
            is_newline = symbol == machine.newline
            after = self._feed(configuration, symbol, "newline" if is_newline else "terminal", configuration.column)
            if isinstance(after, Refusal):
                return after
            depth = max(0, configuration.depth + machine.bracket.get(symbol, 0))
            configuration = after._replace(depth=depth, read=read, last_was_newline=is_newline)
            if is_newline:
                after = self._indent(configuration, configuration.column)
                if isinstance(after, Refusal):
                    return after
                configuration = after
        return configuration

    def _indent(self, configuration: Configuration, column: Column) -> Configuration | Refusal:
        """The configuration after the indent or dedents of a line that begins at a column."""
        layout = self.machine.grammar.layout
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

    # --------------------------------------------------------------------------------------- lexing

    def modes(self, stacks: Sequence[Stack]) -> list[int]:
        """The lexing modes of some stacks, without repeats."""
        if len(self.machine.mode_state) == 1:
            return [0]
        return list(dict.fromkeys(self.machine.mode_of[stack.top] for stack in stacks))

    def split_by_mode(self, configuration: Configuration) -> list[Configuration]:
        """A configuration with no lexeme under way, split by the mode in which the next one begins.

        With several modes, each mode that its stacks choose gives one configuration, in that mode's
        start state. Any other configuration is returned alone.
        """
        if configuration.lexer != START_STATE or len(self.machine.mode_state) == 1:
            return [configuration]
        mode_of = self.machine.mode_of
        return [
            configuration._replace(
                lexer=self.machine.mode_state[mode],
                stacks=tuple(stack for stack in configuration.stacks if mode_of[stack.top] == mode),
            )
            for mode in self.modes(configuration.stacks)
        ]

    def read(self, configurations: Iterable[Configuration], data: bytes) -> tuple[list[Configuration], list[Refusal]]:
        """The configurations after some bytes, and the refusals on the way.

        Raises: LimitError if the text has too many readings, or if the lexer would read too many
            bytes again.
        """
        machine, transducer = self.machine, self.machine.transducer
        found: dict[tuple[object, ...], Configuration] = {}
        refused: list[Refusal] = []
        agenda = [(configuration, data) for configuration in configurations][::-1]
        longest = len(data) + 4 * (transducer.longest_pending + 2)
        while agenda:
            configuration, waiting = agenda.pop()
            if not waiting:
                key = configuration[:4]
                # Readings that the lexer cannot tell apart go on as one.
                if key in found:
                    both = dict.fromkeys((*found[key].stacks, *configuration.stacks))
                    configuration = found[key]._replace(
                        stacks=tuple(both),
                        last_was_newline=found[key].last_was_newline and configuration.last_was_newline,
                    )
                found[key] = configuration
                continue
            for here in self.split_by_mode(configuration):
                klass = machine.byte_class[waiting[0]]
                after = machine.next_state[here.lexer][klass]
                if after == DEAD:
                    refused.append(Refusal("bytes", here))
                    continue
                reached: Configuration | Refusal = here
                output = machine.output[here.lexer][klass]
                if output:
                    reached = self.emit(here, transducer.outputs[output])
                if isinstance(reached, Refusal):
                    refused.append(reached)
                elif after == RESTART:
                    reread = transducer.pending[here.lexer] + waiting
                    if len(reread) > longest:
                        raise LimitError(
                            f"grammar {machine.grammar.name}: the lexer would reread too much of the text; make the grammar's terminals "
                            "differ sooner"
                        )
                    agenda.append((reached._replace(lexer=START_STATE), reread))
                else:
                    column = reached.column
                    if machine.is_newline[after] and machine.grammar.layout is not None:
                        column = machine.grammar.layout.column_after(waiting[:1], column)
                    agenda.append((reached._replace(lexer=after, column=column), waiting[1:]))
        return list(found.values()), refused

    def backed_up(self, configuration: Configuration) -> tuple[list[Configuration], list[Refusal]]:
        """The configurations if the lexeme under way fails and ends where it last could.

        Returns them with the refusals on the way; ([], []) if the lexer cannot back up.
        """
        transducer, lexer = self.machine.transducer, configuration.lexer
        terminal = transducer.fallback[lexer]
        if terminal < 0:
            return [], []
        emitted = () if terminal in self.machine.grammar.ignored else (terminal,)
        reread = transducer.reread[lexer]
        after = self.emit(configuration, emitted + reread[0] if reread is not None else emitted)
        if isinstance(after, Refusal):
            return [], [after]
        if reread is not None:
            return [after._replace(lexer=reread[1])], []
        return self.read([after._replace(lexer=START_STATE)], transducer.pending[lexer])

    def readings(self, configurations: Iterable[Configuration]) -> Iterator[Configuration | Refusal]:
        """All readings of the lexemes under way: each configuration, then backed up, and so on.

        Refusals on the way are yielded too.
        """
        agenda = list(configurations)[::-1]
        while agenda:
            configuration = agenda.pop()
            yield configuration
            more, refused = self.backed_up(configuration)
            yield from refused
            agenda += more[::-1]

    def lookahead_set(self, configuration: Configuration) -> tuple[int, ...]:
        """The lookahead set of a configuration: one of these terminals must be acceptable next.

        Returns () if there is no condition.
        """
        lookahead = self.machine.transducer.lookahead[configuration.lexer]
        if lookahead is not None and (self.machine.newline not in lookahead or configuration.depth == 0):
            grammar = self.machine.grammar
            wanted = tuple(t for t in sorted(lookahead) if t != grammar.n_terminals)
            if grammar.n_terminals not in lookahead:
                return wanted
            return (*wanted, END) if grammar.layout is None else (*wanted, grammar.layout.dedent, END)
        if not configuration.last_was_newline:
            return ()
        # After a newline whose column is known, no indent can come any more.
        layout = self.machine.grammar.layout
        return tuple(t for t in (*range(len(self.machine.column_of)), END) if layout is None or t != layout.indent)

    def goes_on(self, configuration: Configuration) -> bool:
        """Whether the lexeme under way may become something that the parser takes."""
        wanted = self.lookahead_set(configuration)
        return not wanted or any(self.shift(configuration.stacks, symbol).stacks for symbol in wanted)

    def is_legal(self, configurations: Iterable[Configuration]) -> bool:
        """Whether some continuation of the text, from one of the configurations, is legal."""
        return any(not isinstance(one, Refusal) and self.goes_on(one) for one in self.readings(configurations))

    def end(self, configurations: Iterable[Configuration]) -> list[Refusal]:
        """Why the text cannot end here; empty if it can."""
        machine, transducer = self.machine, self.machine.transducer
        refused: list[Refusal] = []
        agenda = list(configurations)[::-1]
        while agenda:
            configuration = agenda.pop()
            output = int(transducer.end_output[configuration.lexer])
            if output == RESTART:
                more, why = self.backed_up(configuration)
                refused += why
                agenda += more[::-1]
                continue
            if output < 0:
                refused.append(Refusal("unfinished", configuration))
                continue
            # A newline that ends the text belongs to no further line, so blanks after it do not
            # count.
            after = self.emit(configuration._replace(column=FIRST_COLUMN), transducer.outputs[output])
            if not isinstance(after, Refusal) and machine.grammar.layout is not None and len(after.columns) > 1:
                after = self._indent(after, FIRST_COLUMN)
                if isinstance(after, Refusal):
                    after = after._replace(kind="end", symbol=END)
            if not isinstance(after, Refusal):
                after = self._feed(after, END, "end")
            if not isinstance(after, Refusal):
                return []
            refused.append(after)
        return refused
