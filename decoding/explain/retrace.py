"""Reading a text plainly: one byte at a time through the lexer's transducer, explicit stacks through the full LALR tables.

The answers are the engine's, by other code: no look-ups, no merged states, and whatever is refused is kept with the stacks
that refuse it. For explaining, not for decoding: some 25 us a byte of Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_lexemes
from maskwright.analysis.lexing.transducer import DEAD, RESTART, START_STATE, STATE_LIMIT
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.bisimulation import coarsest_partition
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, ERROR
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.decoding.engine.constants import MAX_STACKS
from maskwright.maskstore.automaton.stack_automaton import build_lexer_and_parser

END = -1
"""The end of the text, where a terminal is expected."""

ENDED = -1
"""In place of a stack: the text was accepted as a whole."""

INSERTED = -1
"""In place of a lexing mode: layout has put the terminal in, no text spells it."""

Read = tuple[int, int, "Read | None"]
"""What the parser has read: a terminal, the mode in which it was lexed, and what came before."""


class Configuration(NamedTuple):
    """Where one reading of a text stands.

    lexer : the transducer's state. column : of the newline under way. depth : open brackets. columns : of the open blocks. stacks :
    numbers in `Stacks`. last_was_newline : the last thing read was a newline with its column. read : all that was read, the last first.
    """

    lexer: int
    column: Column
    depth: int
    columns: tuple[Column, ...]
    stacks: tuple[int, ...]
    last_was_newline: bool
    read: Read | None


Kind = Literal["bytes", "terminal", "newline", "indent", "dedent", "column", "tabs", "end", "unfinished"]


class Refusal(NamedTuple):
    """Why a reading stops.

    kind : "bytes": the lexer goes on with no such byte. "terminal", "newline", "indent", "dedent",
        "end": the parser refuses that. "column": a line begins where no block is open. "tabs": its tabs
        and blanks do not compare with the open block's. "unfinished": the text cannot end inside a lexeme.
    configuration : where it stops. symbol : the terminal, or END. stacks : those that refuse, after all
        that could be reduced. column : the line's.
    """

    kind: Kind
    configuration: Configuration
    symbol: int = END
    stacks: tuple[int, ...] = ()
    column: Column = FIRST_COLUMN


class Stacks:
    """Stacks of LR states by number; equal stacks have equal numbers. Number 0 holds the start state alone."""

    def __init__(self) -> None:
        self.state = [0]
        self.below = [-1]
        self._number: dict[tuple[int, int], int] = {}

    def push(self, stack: int, state: int) -> int:
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


class Machine:
    """Lexer and parser of a grammar. Raises as `build_store`, GrammarError for lexing "nfa". Cost for python.lark: 1.5 s."""

    def __init__(self, grammar: Grammar) -> None:
        if grammar.lexing == "nfa":
            raise GrammarError(
                f"grammar {grammar.name}: lexing 'nfa' keeps several hypotheses, which are not explained; load it with lexing='longest'"
            )
        self.grammar = grammar
        found = build_lexer_and_parser(grammar)
        modes, self.transducer = found.modes, found.transducer
        self.tables = build_lr_tables(grammar, grammar.conflicts)
        self.automaton = build_automaton(parsed_grammar(grammar, grammar.conflicts)).restricted(self.tables.origin)
        self.class_of: list[int] = coarsest_partition(self.tables).states.tolist()
        """The merged LR state of each of ours; several of the engine's may stand for one, see `LexerAndParser`."""
        self.origin: list[int] = found.origin.tolist()
        self.live = found.live
        """What tells stacks that lead into dead ends; None if none do."""
        of_class = dict(zip(self.origin, modes.of_state.tolist(), strict=True))
        self.mode_of = [of_class.get(number, 0) for number in self.class_of]  # states only of dead ends have no mode
        self.next_state: list[list[int]] = self.transducer.next_state.tolist()
        self.output: list[list[int]] = self.transducer.output.tolist()
        self.byte_class: list[int] = self.transducer.byte_class.tolist()
        self.is_newline: list[bool] = self.transducer.is_newline.tolist()
        self.mode_state: list[int] = self.transducer.mode_state.tolist()
        self.competing = modes.competing
        self.column_of: list[int] = self.tables.terminal_column.tolist()
        self.end_column = self.tables.n_terminals
        self._action: list[list[int]] = self.tables.action.tolist()
        self.default_rule: list[int] = self.tables.default_rule.tolist()
        self.goto: list[list[int]] = self.tables.goto.tolist()
        self.rule_lhs: list[int] = self.tables.rule_lhs.tolist()
        self.rule_length: list[int] = self.tables.rule_length.tolist()
        layout = grammar.layout
        self.newline = grammar.newline
        brackets = layout.brackets if layout else ()
        self.bracket = {opening: 1 for opening, _ in brackets} | {closing: -1 for _, closing in brackets}
        self.corners: dict[int, frozenset[int]] = {}
        """Remembered by explanations: the nonterminals that each nonterminal's text may begin with."""

    def actions(self, state: int, column: int) -> tuple[int, ...]:
        """What the parser may do in a state; a reduction that it can do whatever comes is done even where no terminal fits."""
        default = self.default_rule[state]
        if default >= 0:
            return (-default - 1,)
        action = self._action[state][column] if column >= 0 else ERROR
        if action >= CONFLICT:
            return self.tables.actions(state, column)
        return () if action == ERROR else (action,)

    @cached_property
    def _union(self) -> tuple[list[list[int]], list[int], list[bool], list[int]]:
        """The automaton of all terminals side by side: transitions, winners, whether it can grow, and the start of each mode."""
        nfa = build_terminal_nfa(compile_lexemes(self.grammar))
        starts = [tuple(int(nfa.initial[t]) for t in sorted(mode)) for mode in self.competing]
        union = build_union_dfa(nfa, [terminal.name for terminal in self.grammar.terminals], STATE_LIMIT, starts)
        rank = terminal_rank(self.grammar.terminals)
        winners = [min(found, key=rank.__getitem__, default=-1) for found in union.accepting]
        can_grow = [bool(row.any()) for row in union.next_state >= 0]
        next_state: list[list[int]] = union.next_state.tolist()
        return next_state, winners, can_grow, list(union.starts)

    def longest_match(self, text: bytes, begin: int, mode: int) -> tuple[int, int, bool]:
        """The longest match at `begin`: its terminal or -1, its end, and whether no further text can change it."""
        next_state, winners, can_grow, starts = self._union
        state, terminal, end = starts[mode], -1, begin
        for at in range(begin, len(text)):
            state = next_state[state][text[at]]
            if state < 0:
                return terminal, end, True
            if winners[state] >= 0:
                terminal, end = winners[state], at + 1
        return terminal, end, not can_grow[state]

    def lexemes(self, text: bytes, configuration: Configuration, mode: int) -> tuple[list[tuple[int, int, int]], int]:
        """The lexemes of a text up to a configuration in its reading: terminal, begin, end; and where the one under way begins.

        Ignored lexemes are among them; terminals that layout inserted have no length. mode : in which the one under way is lexed.
        """
        chain: list[tuple[int, int]] = []
        read = configuration.read
        while read is not None:
            chain.append(read[:2])
            read = read[2]
        found: list[tuple[int, int, int]] = []
        at = 0
        for terminal, own_mode in reversed(chain):
            if own_mode == INSERTED:
                found.append((terminal, at, at))
                continue
            lexeme, end, _ = self.longest_match(text, at, own_mode)
            while lexeme in self.grammar.ignored:
                found.append((lexeme, at, end))
                at = end
                lexeme, end, _ = self.longest_match(text, at, own_mode)
            found.append((terminal, at, end))
            at = end
        is_sure = True
        while at < len(text) and is_sure:
            lexeme, end, is_sure = self.longest_match(text, at, mode)
            is_sure = is_sure and lexeme in self.grammar.ignored
            if is_sure:
                found.append((lexeme, at, end))
                at = end
        return found, at

    def ends_before(self, text: bytes, configuration: Configuration, mode: int) -> bool:
        """Whether the lexeme under way could end before the text's last byte, with which no terminal begins."""
        _, begin = self.lexemes(text[:-1], configuration, mode)
        terminal, end, _ = self.longest_match(text[:-1], begin, mode)
        next_state, _, _, starts = self._union
        return terminal >= 0 and end == len(text) - 1 and next_state[starts[mode]][text[-1]] < 0


@lru_cache(maxsize=4)
def machine_of(grammar: Grammar) -> Machine:
    """The machine of a grammar, kept for the next question."""
    return Machine(grammar)


class Retrace:
    """The readings of one text, and of what may come after it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.stacks = Stacks()
        self.dead: set[tuple[int, int]] = set()
        """Stacks and the columns that they could shift, were there a text that goes on behind."""
        self._kinds = {0: 0}
        self.start = Configuration(START_STATE, FIRST_COLUMN, 0, (FIRST_COLUMN,), (0,), False, None)

    # ------------------------------------------------------------------------------------------------------ parsing

    def shift(self, stacks: Iterable[int], column: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The stacks after a terminal, and those that refuse it after all that could be reduced. Raises LimitError for too many."""
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
                    f"grammar {machine.grammar.name} has more than {MAX_STACKS} readings of the text: their number grows with it; "
                    "load the grammar with conflicts='shift', or make its rules less ambiguous"
                )
        return tuple(found), tuple(refusing)

    def _is_dead(self, stack: int, state: int) -> bool:
        """Whether no text goes on behind a shift."""
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
        machine, below = self.machine, self.stacks.below
        for _ in range(machine.rule_length[rule]):
            stack = below[stack]
        return self.stacks.push(stack, machine.goto[self.stacks.state[stack]][machine.rule_lhs[rule]])

    def acceptable(self, stacks: Sequence[int], symbols: Iterable[int]) -> list[int]:
        """Those of some terminals (or END) that the parser can take."""
        return [symbol for symbol in symbols if self.shift(stacks, self.column(symbol))[0]]

    def column(self, symbol: int) -> int:
        return self.machine.end_column if symbol == END else self.machine.column_of[symbol]

    def expected(self, stacks: Sequence[int]) -> list[int]:
        """All terminals that the parser can take, and END last; with layout the end of the text may need dedents before it."""
        columns = self.machine.column_of
        return self.acceptable(stacks, [*(t for t in range(len(columns)) if columns[t] >= 0), END])

    def _feed(
        self, configuration: Configuration, symbol: int, kind: Kind, column: Column = FIRST_COLUMN
    ) -> Configuration | Refusal:
        after, refusing = self.shift(configuration.stacks, self.column(symbol))
        if not after:
            return Refusal(kind, configuration, symbol, refusing, column)
        return configuration._replace(stacks=after)

    def emit(self, configuration: Configuration, symbols: Iterable[int]) -> Configuration | Refusal:
        """The configuration after terminals that the lexer emits, layout obeyed."""
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

    # ------------------------------------------------------------------------------------------------------- lexing

    def modes(self, stacks: Sequence[int]) -> list[int]:
        """The lexing modes of some stacks, without repeats."""
        if len(self.machine.mode_state) == 1:
            return [0]
        return list(dict.fromkeys(self.machine.mode_of[self.stacks.state[stack]] for stack in stacks))

    def begun(self, configuration: Configuration) -> list[Configuration]:
        """A configuration in START_STATE under several modes is one for each mode that its stacks choose, in that mode's state."""
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
        """The configurations after some bytes, and why there are not more."""
        machine, transducer = self.machine, self.machine.transducer
        found: dict[tuple[object, ...], Configuration] = {}
        refused: list[Refusal] = []
        agenda = [(configuration, data) for configuration in configurations][::-1]
        longest = len(data) + 4 * (transducer.longest_pending + 2)
        while agenda:
            configuration, waiting = agenda.pop()
            if not waiting:
                key = configuration[:4]
                if key in found:  # readings that the lexer cannot tell apart go on as one
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
                            f"grammar {machine.grammar.name}: the lexer would read too much of the text again; make its terminals differ "
                            "sooner"
                        )
                    agenda.append((reached._replace(lexer=START_STATE), again))
                else:
                    column = reached.column
                    if machine.is_newline[after] and machine.grammar.layout is not None:
                        column = machine.grammar.layout.column_after(waiting[:1], column)
                    agenda.append((reached._replace(lexer=after, column=column), waiting[1:]))
        return list(found.values()), refused

    def backed_up(self, configuration: Configuration) -> tuple[list[Configuration], list[Refusal]]:
        """The configurations if the lexeme under way fails and ends at its last end; none and none where it cannot."""
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
        """All that the lexemes under way may still be: the configurations themselves, those backed up, and so on."""
        agenda = list(configurations)[::-1]
        while agenda:
            configuration = agenda.pop()
            yield configuration
            more, refused = self.backed_up(configuration)
            yield from refused
            agenda += more[::-1]

    def under_way(self, configuration: Configuration) -> tuple[int, ...]:
        """The terminals of which one must be acceptable for a text to go on from a configuration; () if there is no condition."""
        lookahead = self.machine.transducer.lookahead[configuration.lexer]
        if lookahead is not None and (self.machine.newline not in lookahead or configuration.depth == 0):
            grammar = self.machine.grammar
            wanted = tuple(t for t in sorted(lookahead) if t != grammar.n_terminals)
            if grammar.n_terminals not in lookahead:
                return wanted
            return (*wanted, END) if grammar.layout is None else (*wanted, grammar.layout.dedent, END)
        if not configuration.last_was_newline:
            return ()
        # no indent can come any more after a newline whose column is known
        layout = self.machine.grammar.layout
        return tuple(t for t in (*range(len(self.machine.column_of)), END) if layout is None or t != layout.indent)

    def goes_on(self, configuration: Configuration) -> bool:
        """Whether the lexeme under way may become something that the parser takes."""
        wanted = self.under_way(configuration)
        return not wanted or any(self.shift(configuration.stacks, self.column(symbol))[0] for symbol in wanted)

    def is_legal(self, configurations: Iterable[Configuration]) -> bool:
        """Whether the text can go on from one of some configurations to a legal text."""
        return any(not isinstance(way, Refusal) and self.goes_on(way) for way in self.ways(configurations))

    def end(self, configurations: Iterable[Configuration]) -> list[Refusal]:
        """Why the text cannot end here; nothing if it can."""
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
            # a newline that ends the text is behind its last line, whatever blanks follow
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
