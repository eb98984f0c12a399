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
from maskwright.analysis.lexing.transducer import DEAD, RESTART, START_STATE
from maskwright.analysis.lr.encoding import ACCEPT
from maskwright.decoding.engine.constants import MAX_STACKS
from maskwright.decoding.explain.machine import INSERTED, Configuration, Machine

END = -1
"""Stands for the end of the text where a terminal is expected."""

ENDED = -1
"""Stands for a stack after the parser has accepted the whole text."""


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
    stacks: tuple[int, ...] = ()
    column: Column = FIRST_COLUMN


class Stacks:
    """Stacks of LR states by number.

    Equal stacks have equal numbers. Number 0 holds only the start state.

    state : the state on top of each stack.
    below : the number of the stack under it; -1 for stack 0.
    """

    def __init__(self) -> None:
        self.state = [0]
        self.below = [-1]
        self._number: dict[tuple[int, int], int] = {}

    def push(self, stack: int, state: int) -> int:
        """The number of a stack with one more state on top."""
        number = self._number.setdefault((stack, state), len(self.state))
        if number == len(self.state):
            self.state.append(state)
            self.below.append(stack)
        return number

    def states(self, stack: int) -> list[int]:
        """The LR states of a stack, from the bottom."""
        found = []
        while stack >= 0:
            found.append(self.state[stack])
            stack = self.below[stack]
        return found[::-1]


class Retrace:
    """The readings of one text, and of what may come after it.

    stacks : all stacks met so far.
    start : the configuration before the text.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.stacks = Stacks()
        self.dead: set[tuple[int, int]] = set()
        """(stack, column) pairs with a shift after which no text can be completed."""
        self._kinds = {0: 0}
        self.start = Configuration(START_STATE, FIRST_COLUMN, 0, (FIRST_COLUMN,), (0,), False, None)

    # -------------------------------------------------------------------------------------- parsing

    def shift(self, stacks: Iterable[int], column: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The stacks after a terminal, and the stacks that refuse it after all possible reductions.

        stacks : numbers in `Stacks`.
        column : of the terminal in the tables; -1 if no state takes it.

        Raises: LimitError if the text has too many readings.
        """
        machine, known = self.machine, self.stacks
        found: dict[int, None] = {}
        refusing: dict[int, None] = {}
        agenda = list(stacks)[::-1]
        seen = set(agenda)
        while agenda:
            stack = agenda.pop()
            actions = machine.actions(known.state[stack], column)
            if not actions:
                refusing[stack] = None
            for action in actions:
                if action == ACCEPT:
                    found[ENDED] = None
                    continue
                if action > 0 and self._is_dead(stack, action - 1):
                    refusing[stack] = None
                    self.dead.add((stack, column))
                    continue
                if action > 0:
                    found[known.push(stack, action - 1)] = None
                    continue
                reduced = self._reduced(stack, -action - 1)
                if reduced not in seen:
                    seen.add(reduced)
                    agenda.append(reduced)
            if len(found) > MAX_STACKS or len(seen) > 64 * MAX_STACKS:
                raise LimitError(
                    f"grammar {machine.grammar.name} has more than {MAX_STACKS} readings of the text: their number grows with its length; "
                    "load the grammar with conflicts='shift', or make its rules less ambiguous"
                )
        return tuple(found), tuple(refusing)

    def _is_dead(self, stack: int, state: int) -> bool:
        """Whether no text can be completed after a shift."""
        live, class_of = self.machine.live, self.machine.class_of
        if live is None:
            return False
        known, kinds = self.stacks, self._kinds
        waiting = []
        at = stack
        while at not in kinds:
            waiting.append(at)
            at = known.below[at]
        for one in reversed(waiting):
            top = class_of[known.state[at]]
            kinds[one] = live.push(top, kinds[at], class_of[known.state[one]])
            at = one
        return not live.can_shift(class_of[known.state[stack]], kinds[stack], class_of[state])

    def _reduced(self, stack: int, rule: int) -> int:
        """The stack after a reduction."""
        machine, below = self.machine, self.stacks.below
        for _ in range(machine.rule_length[rule]):
            stack = below[stack]
        return self.stacks.push(stack, machine.goto[self.stacks.state[stack]][machine.rule_lhs[rule]])

    def acceptable(self, stacks: Sequence[int], symbols: Iterable[int]) -> list[int]:
        """Those of some terminals (or END) that the parser can take."""
        return [symbol for symbol in symbols if self.shift(stacks, self.column(symbol))[0]]

    def column(self, symbol: int) -> int:
        """The column of a terminal, or of END, in the tables."""
        return self.machine.end_column if symbol == END else self.machine.column_of[symbol]

    def expected(self, stacks: Sequence[int]) -> list[int]:
        """All terminals that the parser can take, ascending, then END.

        With a layout the end of the text may need dedents before it; these are not tried.
        """
        columns = self.machine.column_of
        return self.acceptable(stacks, [*(t for t in range(len(columns)) if columns[t] >= 0), END])

    def _feed(
        self, configuration: Configuration, symbol: int, kind: Kind, column: Column = FIRST_COLUMN
    ) -> Configuration | Refusal:
        """The configuration after one terminal. kind : of the refusal, if the parser refuses it."""
        after, refusing = self.shift(configuration.stacks, self.column(symbol))
        if not after:
            return Refusal(kind, configuration, symbol, refusing, column)
        return configuration._replace(stacks=after)

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
        order = layout.compare(column, configuration.columns[-1])
        if order is None:
            return Refusal("tabs", configuration, layout.indent, (), column)
        if order < 0 and column not in configuration.columns:
            is_open = any(column.wide == opened.wide for opened in configuration.columns)
            return Refusal("tabs" if is_open else "column", configuration, layout.dedent, (), column)
        if order > 0:
            after = self._feed(configuration, layout.indent, "indent", column)
            if isinstance(after, Refusal):
                return after
            return after._replace(
                columns=(*configuration.columns, column), read=(layout.indent, INSERTED, configuration.read)
            )
        while column != configuration.columns[-1]:
            after = self._feed(configuration, layout.dedent, "dedent", column)
            if isinstance(after, Refusal):
                return after
            configuration = after._replace(
                columns=configuration.columns[:-1], read=(layout.dedent, INSERTED, configuration.read)
            )
        return configuration

    # --------------------------------------------------------------------------------------- lexing

    def modes(self, stacks: Sequence[int]) -> list[int]:
        """The lexing modes of some stacks, without repeats."""
        if len(self.machine.mode_state) == 1:
            return [0]
        return list(dict.fromkeys(self.machine.mode_of[self.stacks.state[stack]] for stack in stacks))

    def begun(self, configuration: Configuration) -> list[Configuration]:
        """A configuration with no lexeme under way, split by the mode in which the next one begins.

        With several modes, each mode that its stacks choose gives one configuration, in that mode's
        start state. Any other configuration is returned alone.
        """
        if configuration.lexer != START_STATE or len(self.machine.mode_state) == 1:
            return [configuration]
        mode_of, state = self.machine.mode_of, self.stacks.state
        return [
            configuration._replace(
                lexer=self.machine.mode_state[mode],
                stacks=tuple(stack for stack in configuration.stacks if mode_of[state[stack]] == mode),
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
            for here in self.begun(configuration):
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
                    again = transducer.pending[here.lexer] + waiting
                    if len(again) > longest:
                        raise LimitError(
                            f"grammar {machine.grammar.name}: the lexer would reread too much of the text; make the grammar's terminals "
                            "differ sooner"
                        )
                    agenda.append((reached._replace(lexer=START_STATE), again))
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
        again = transducer.again[lexer]
        after = self.emit(configuration, emitted + again[0] if again is not None else emitted)
        if isinstance(after, Refusal):
            return [], [after]
        if again is not None:
            return [after._replace(lexer=again[1])], []
        return self.read([after._replace(lexer=START_STATE)], transducer.pending[lexer])

    def ways(self, configurations: Iterable[Configuration]) -> Iterator[Configuration | Refusal]:
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

    def under_way(self, configuration: Configuration) -> tuple[int, ...]:
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
        wanted = self.under_way(configuration)
        return not wanted or any(self.shift(configuration.stacks, self.column(symbol))[0] for symbol in wanted)

    def is_legal(self, configurations: Iterable[Configuration]) -> bool:
        """Whether some continuation of the text, from one of the configurations, is legal."""
        return any(not isinstance(way, Refusal) and self.goes_on(way) for way in self.ways(configurations))

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
