"""The states of a grammar's texts for the search for endings: lexer, layout and parser, and bounds.

What follows a state is what the engine's kernels say, on stacks that share their frames. The lower
bound of the bytes left for a lexer state q and a stack g is

    min over terminals u of  bytes from q to the end of lexeme u  +  V(g after u, u)

V(g, u) is the length of a least ending of stack g after lexeme u in a relaxed problem. There every
later lexeme has its least length, two lexemes that no spelling allows side by side are separated,
and an indented line pays for its indentation. V is computed from the bottom of the stack up, one
step for each frame: what is left of a rule has a least cost, and where the rule is reduced the
parser is lower on the stack with a nonterminal to push. Costs are matrices over classes of
terminals (those that must be separated from the same lexemes). They consist of bytes and of lines,
since only the stack tells how deep the lines of a rule are indented.

INVARIANT: every bound is a true lower bound.

Source: Knuth, "A generalization of Dijkstra's algorithm" (1977) for least costs of nonterminals.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.lexing.encoding import DEAD, RESTART
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending_lexer import EndingLexer
from maskwright.decoding.endings.ending_parser import (
    NO_BOUNDS,
    EndingParser,
    Frame,
    Options,
    ParserConfiguration,
    State,
    pop_frames,
    uncounted,
)
from maskwright.decoding.endings.ending_spelling import ONE_BYTE, PREFERRED, Spelling
from maskwright.decoding.endings.states import Move, States
from maskwright.decoding.engine import constants
from maskwright.maskstore.table import schema

if TYPE_CHECKING:
    from maskwright.decoding.engine.slot import SlotText
    from maskwright.maskstore.table.compiled import EngineTable

FRAME, CONFIGURATION = 1_000, 1_500
"""The bytes of memory that a stack takes, and a configuration without its bounds."""
MAX_REDUCTIONS = 1 << 19
"""Reductions before one terminal, beyond those that bring a stack lower.

Rules that may be empty can need as many as there are ways to derive nothing from them. A table that
no compiler wrote may reduce for ever.
"""
MAX_READINGS = 50_000
"""Stacks beyond the first, in all states looked at: how ambiguous a text may be."""


class GrammarStates(States):
    """The states of lexer, layout and parser that endings lead through.

    Equal stacks are one object, and so are equal configurations.

    store : the engine's table with its grammar.
    """

    def __init__(self, store: EngineTable, spelling: Spelling | None = None) -> None:
        super().__init__(f"grammar {store.grammar.name}", spelling)
        self._store = store
        alphabet = PREFERRED if spelling is None else spelling.alphabet
        self.lexer = EndingLexer(store, alphabet, is_spelled=spelling is not None)
        self.parser = EndingParser(store, self.lexer)
        self._n_frames = 0
        self._ambiguous = (
            f"{self.under} is so ambiguous here that endings of the text have too many readings to follow; load the grammar with "
            "conflicts='shift', or make its rules less ambiguous"
        )
        if store.table[schema.DEFAULT] > store.table[schema.ALTERNATIVES]:  # it has conflicts
            self.may_cut = self._ambiguous
        self._backs_up = np.array(self.lexer.backs_up)
        self._by_terminal = np.ascontiguousarray(self.lexer.least.T)
        self._text_columns = (1 << (self.parser.n_columns - 1)) - 1
        for column in (self.parser.indent, self.parser.dedent):
            if column >= 0 and all(self.lexer.width[t] >= COSTLY for t in self.parser.members[column]):
                self._text_columns &= ~(1 << column)
        self.begin()
        self.forget()

    def spelled_by(self, spelling: Spelling) -> States:
        return GrammarStates(self._store, spelling)

    def why_none(self) -> str:
        return uncounted(self._store.grammar, self.lexer.width)

    def begin(self, times: int = 1) -> None:
        self._readings = times * MAX_READINGS

    def forget(self) -> None:
        """As `States.forget`. No frame's number is given twice."""
        self.held = 0
        self._frames: dict[tuple[int, int, int], Frame] = {}
        self._configurations: dict[tuple[tuple[int, ...], tuple[Column, ...], int], ParserConfiguration] = {}

    def start(self, text: SlotText) -> State:
        memory, columns = text.memory, text.columns()
        frames = [self._stack(states, columns) for states in text.stacks()]
        configuration = self._configuration(frames, tuple(columns), int(memory[constants.DEPTH]))
        state = int(memory[constants.LEXER])
        column = Column(int(memory[constants.COLUMN]), int(memory[constants.NARROW]))
        return configuration, state, column if self.lexer.is_newline[state] else FIRST_COLUMN

    def _stack(self, states: Sequence[int], columns: Sequence[Column]) -> Frame:
        parser = self.parser
        opened = parser.column_targets[parser.indent] if parser.has_levels else set()
        closed = parser.column_targets[parser.dedent] if parser.has_levels else set()
        levels = list(accumulate((state in opened) - (state in closed) for state in states))
        is_level = levels[-1] + 1 == len(columns) and min(levels) >= 0
        frame: Frame | None = None
        for state, level in zip(states, levels, strict=True):
            # behind a dedent, no rule continues inside the block that the dedent ended
            is_open = is_level and level < len(columns)
            frame = self._frame(state, frame, self._pay(self.lexer.indentation(columns[level])) if is_open else 0)
        assert frame is not None  # a stack has the start state
        return frame

    def _frame(self, state: int, below: Frame | None, pay: int) -> Frame:
        key = (state, -1 if below is None else below.number, pay)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = Frame(state, below, pay, self._n_frames)
            self._n_frames += 1
            self.held += FRAME
        return found

    def _pay(self, indentation: int) -> int:
        """The bytes of an indentation that the newline before it does not pay for already."""
        if not self.parser.has_levels:
            return 0
        # the bytes of a shortest newline besides its line feed may be part of the indentation
        return max(0, indentation - (self.lexer.width[self.parser.newline] - 1))

    def _configuration(self, frames: Iterable[Frame], indents: tuple[Column, ...], depth: int) -> ParserConfiguration:
        members = {frame.number: frame for frame in frames}
        key = (tuple(sorted(members)), indents, depth)
        found = self._configurations.get(key)
        if found is None:
            found = ParserConfiguration(tuple(members[number] for number in key[0]), indents, depth)
            self._configurations[key] = found
            self.held += CONFIGURATION + 2 * len(self.lexer.backs_up) * NO_BOUNDS.itemsize
        return found

    def _actions(self, frames: Iterable[Frame], columns: int) -> Iterator[tuple[int, int, Frame]]:
        """What the parser can do next on some stacks, after all reductions.

        columns : a set of columns, as bits of an integer.

        Yields a column, the LR state to push, and the stack to push it on; state -1 where the text
        is accepted.

        Raises: LimitError after `MAX_REDUCTIONS`.
        """
        parser = self.parser
        end = parser.n_columns - 1
        agenda = [(frame, columns) for frame in frames]
        most = left = MAX_REDUCTIONS + len(parser.default) * sum(frame.height for frame, _ in agenda)
        done: dict[int, int] = {}
        while agenda:
            left -= 1
            if left < 0:
                raise LimitError(
                    f"{self.under}: more than {most:,} reductions before one terminal; make rules that may be empty "
                    "less ambiguous, or, if the store is not your own, build it from the grammar"
                )
            frame, wanted = agenda.pop()
            # the parses of an ambiguous text may meet again
            known = done.get(frame.number, 0)
            done[frame.number] = known | wanted
            wanted &= ~known
            state = frame.state
            rules = [(parser.default[state], wanted)]
            if parser.default[state] < 0:
                rules = parser.reduces[state]
                for column, target in parser.shifts[state]:
                    if wanted >> column & 1:
                        yield column, target, frame
                if parser.accepts[state] and wanted >> end & 1:
                    yield end, -1, frame
            for rule, before in rules:
                if wanted & before:
                    base = pop_frames(frame, parser.rule_length[rule])
                    if base is not None:
                        target = parser.goto[base.state][parser.rule_lhs[rule]]
                        if target >= 0:
                            agenda.append((self._frame(target, base, base.pay), wanted & before))

    def _shift(self, frames: Iterable[Frame], column: int, before: ParserConfiguration, pay: int = -1) -> list[Frame]:
        """The stacks after a column. None are left if there are more than `MAX_STACKS`.

        before : the configuration that is told so then.
        pay : the bytes to pay for each line of the block that an indent opens, or that continues
            after a dedent; -1: what the frame below pays.
        """
        if column < 0:
            return []
        found = {}
        for _, target, below in self._actions(frames, 1 << column):
            frame = self._frame(target, below, below.pay if pay < 0 else pay)
            found[frame.number] = frame
        # the engine gives up if a text has more parses
        if len(found) <= constants.MAX_STACKS:
            return list(found.values())
        before.is_cut = True
        return []

    def _closes(self, ended: ParserConfiguration, before: ParserConfiguration) -> bool:
        """Whether the text may end once its open blocks are closed. before : as of `_shift`."""
        frames: Sequence[Frame] = ended.frames
        for _ in ended.indents[1:]:
            frames = self._shift(frames, self.parser.dedent, before)
        return self._accepts(frames)

    def _accepts(self, frames: Iterable[Frame]) -> bool:
        """Whether the text may end on one of these stacks."""
        return any(True for _ in self._actions(frames, 1 << (self.parser.n_columns - 1)))

    def _emit(self, configuration: ParserConfiguration, output: int, column: Column) -> ParserConfiguration | None:
        """The configuration after emitted terminals; None if the parser refuses them."""
        parser = self.parser
        symbols = self.lexer.outputs[output]
        key = (output, column if parser.newline in symbols and not configuration.depth else None)
        if key in configuration.after:
            return configuration.after[key]
        frames: Sequence[Frame] = configuration.frames
        indents, depth = configuration.indents, configuration.depth
        for symbol in symbols:
            if symbol == parser.newline and depth > 0:
                continue
            frames = self._shift(frames, parser.column_of[symbol], configuration)
            if symbol == parser.newline and parser.layout is not None:
                line = parser.layout.line_at(indents, column)
                for inserted in line.inserted if line else ():
                    is_indent = inserted == parser.layout.indent
                    indents = (*indents, column) if is_indent else indents[:-1]
                    read = parser.indent if is_indent else parser.dedent
                    frames = self._shift(frames, read, configuration, self._pay(self.lexer.indentation(indents[-1])))
                if line is None:
                    frames = []
            else:
                depth = max(0, depth + parser.depth_of[symbol])
            if not frames:
                break
        found = configuration.after[key] = self._configuration(frames, indents, depth) if frames else None
        return found

    def mode_start(self, configuration: ParserConfiguration) -> int:
        """The lexer state in which the next lexeme begins; -1 if the stacks disagree."""
        if len(self.lexer.modes) == 1:
            return 0
        modes = {self.lexer.modes[self.parser.mode_of[frame.state]] for frame in configuration.frames}
        return modes.pop() if len(modes) == 1 else -1

    def after(self, state: State, data: bytes) -> State | None:
        return self._read(*state, data[0])

    def _read(self, configuration: ParserConfiguration, state: int, column: Column, byte: int) -> State | None:
        """The state after a byte; None if it is illegal.

        BOUND: as of the engine's `read_byte`, which gives up where this says illegal. Only a table
        that no compiler wrote gets there.
        """
        lexer = self.lexer
        waiting: list[int] = []
        restarts, first = 0, configuration
        while True:
            if state == 0:
                state = self.mode_start(configuration)
                if state < 0:
                    return None
            klass = lexer.class_of[byte]
            after, output = lexer.next_state[state][klass], lexer.output[state][klass]
            if after == DEAD:
                return None
            if output:
                emitted = self._emit(configuration, output, column)
                if emitted is None:
                    first.is_cut |= configuration.is_cut
                    return None
                configuration = emitted
            if after == RESTART:
                restarts += 1
                waiting.append(byte)
                waiting += reversed(lexer.pending[state])
                if max(restarts, len(waiting)) > lexer.again:
                    return None
                after = 0
            if not lexer.is_newline[after]:
                column = FIRST_COLUMN
            elif self.parser.layout is not None:
                column = column.step(byte, self.parser.layout.tabs, self.parser.layout.tab_length)
            state = after
            if not waiting:
                return configuration, state, column
            byte = waiting.pop()

    def is_cut(self, state: State) -> bool:
        return state[0].is_cut

    def is_end(self, text: State) -> bool:
        configuration, state, column = text
        lexer = self.lexer
        left = lexer.again
        while lexer.end_output[state] == RESTART:
            left -= 1
            read: State | None = None
            ended: ParserConfiguration | None = configuration
            if lexer.fallback[state] >= 0:
                ended = self._emit(configuration, lexer.fallback[state], column)
            if ended is not None and left >= 0:
                read = ended, 0, column
                for byte in lexer.pending[state]:
                    read = read and self._read(*read, byte)
            if read is None:
                return False
            configuration, state, column = read
        if lexer.end_output[state] < 0:
            return False
        ended = self._emit(configuration, lexer.end_output[state], FIRST_COLUMN)
        if ended is None:
            return False
        return self._closes(ended, configuration)

    # --- bounds ---

    def _estimate(self, configuration: ParserConfiguration) -> list[int]:
        """The values of a configuration. Its bounds are computed with them."""
        if configuration.values is not None:
            return configuration.values
        parser, lexer = self.parser, self.lexer
        values = [COSTLY] * (lexer.end + 1)
        self._readings -= len(configuration.frames) - 1
        if self._readings < 0:
            raise LimitError(self._ambiguous)
        for column, target, below in self._actions(configuration.frames, self._text_columns):
            known: dict[int, int] = {}
            for terminal in parser.members[column]:
                before = parser.new_line if terminal == parser.newline else parser.class_of[terminal]
                if lexer.width[terminal] < COSTLY and (terminal != parser.newline or not configuration.depth):
                    if before not in known:
                        known[before] = parser.value(target, below, below.pay, before)
                    values[terminal] = min(values[terminal], known[before])
        if self._closes(configuration, configuration):
            values[lexer.end] = 0
        if configuration.depth and parser.newline >= 0:
            totals = [lexer.width[t] + value for t, value in enumerate(values)]
            values[parser.newline] = max(0, min(totals))
        configuration.bounds = self._bounds(values)
        if not configuration.depth and parser.newline >= 0:
            configuration.bounds_without = self._bounds(
                [*values[: parser.newline], COSTLY, *values[parser.newline + 1 :]]
            )
        configuration.values = values  # last, since it says that all is there: Ctrl-C may come between
        return values

    def _bounds(self, values: list[int]) -> array[int]:
        terminals = [t for t, value in enumerate(values) if value < COSTLY]
        if terminals:
            costs = np.array([values[t] for t in terminals], np.int32)
            least = (self._by_terminal[terminals] + costs[:, None]).min(axis=0)
            least[self._backs_up] = 0
        else:
            least = np.where(self._backs_up, 0, COSTLY)
        # PERF: np.clip looks up the limits of the type each time, which takes longer than this
        return array("i", np.minimum(np.maximum(least, 0), COSTLY).astype(np.intc).tobytes())

    def _newline_options(self, configuration: ParserConfiguration) -> Options:
        """What may follow the newline of a configuration."""
        if configuration.options is not None:
            return configuration.options
        parser, top = self.parser, configuration.indents[-1]
        frames = self._shift(configuration.frames, parser.column_of[parser.newline], configuration)
        inner = self._shift(frames, parser.indent, configuration, self._pay(self.lexer.indentation_inside(top)))
        opened = parser.values(inner, parser.indented)
        options = []
        for column, outer in zip(
            reversed(configuration.indents), [*reversed(configuration.indents[:-1]), FIRST_COLUMN], strict=True
        ):
            options.append((column, parser.values(frames, parser.indented)))
            last = frames
            frames = self._shift(frames, parser.dedent, configuration, self._pay(self.lexer.indentation(outer)))
        configuration.options = options, opened, 0 if self._accepts(last) else COSTLY
        return configuration.options

    def _newline_bound(self, configuration: ParserConfiguration, state: int, column: Column) -> int:
        """A lower bound of the bytes left if the newline under way ends as a newline."""
        lexer = self.lexer
        least = int(lexer.least[state, self.parser.newline])
        if least >= COSTLY:
            return COSTLY
        options, opened, ended = self._newline_options(configuration)
        # at the end of the text a newline has no column
        found = least + ended
        top = configuration.indents[-1]
        here, below = lexer.same_line[state], lexer.next_line[state]
        if opened < COSTLY:
            inner = (
                max(here, lexer.bytes_further_in(column, top)),
                max(below, 1 + lexer.bytes_further_in(FIRST_COLUMN, top)),
            )
            found = min(found, min(inner) + opened)
        for wanted, value in options:
            found = min(found, value + max(below, 1 + lexer.indentation(wanted)))
            found = min(found, value + max(here, lexer.bytes_to(column, wanted)))
        return min(found, COSTLY)

    def _guess(self, configuration: ParserConfiguration, state: int, klass: int, column: Column) -> int:
        """A bound after a move that emits something, without making the configuration after it."""
        emitted = self.lexer.outputs[self.lexer.output[state][klass]]
        # a table that no compiler wrote may emit nothing under another number than 0
        if not emitted or self.lexer.backs_up[state]:
            return 0
        first = emitted[0]
        if first == self.parser.newline and not configuration.depth:
            options, opened, _ = self._newline_options(configuration)
            layout = self.parser.layout
            is_inner = layout is not None and layout.compare(column, configuration.indents[-1]) == 1
            value = opened if is_inner else dict(options).get(column, COSTLY)
        else:
            value = self._estimate(configuration)[first]
        whole = len(emitted) == 1 and self.lexer.next_state[state][klass] == 0 and self.lexer.least[state, first] > 0
        return max(0, value - (not whole))

    def bound(self, text: State) -> int:
        configuration, state, column = text
        if configuration.values is None:
            self._estimate(configuration)
        if self.lexer.is_newline[state] and not configuration.depth and not self.lexer.backs_up[state]:
            return max(0, min(configuration.bounds_without[state], self._newline_bound(configuration, state, column)))
        return configuration.bounds[state]

    def moves(self, text: State) -> list[Move]:
        configuration, state, column = text
        lexer = self.lexer
        here = state or self.mode_start(configuration)
        found: list[Move] = []
        if here < 0:
            return found
        self._estimate(configuration)
        for byte, klass in lexer.moves[here]:
            after = lexer.next_state[here][klass]
            if lexer.output[here][klass]:
                least = self._guess(configuration, here, klass, column)
            elif after < 0 or (lexer.is_newline[after] and not configuration.depth):
                read = self._read(configuration, here, column, byte)
                least = COSTLY if read is None else self.bound(read)
            else:
                least = configuration.bounds[after]
            if least < COSTLY:
                bytes_alike = (byte,) if self.spelling is None else lexer.by_class[klass]
                found += [(ONE_BYTE[each], least) for each in bytes_alike]
        if self.spelling is not None:
            found.sort(key=lambda move: PREFERRED.index(move[0]))
        return found
