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
from typing import TYPE_CHECKING

import numpy as np

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending_machine import EndingMachine, Options, ParserConfiguration, State
from maskwright.decoding.endings.ending_parser import uncounted
from maskwright.decoding.endings.ending_search import Move, States
from maskwright.decoding.endings.ending_spelling import ONE_BYTE, PREFERRED, Spelling
from maskwright.maskstore.table import schema

if TYPE_CHECKING:
    from maskwright.maskstore.table.compiled import EngineTable

MAX_READINGS = 50_000
"""Stacks beyond the first, in all states looked at: how ambiguous a text may be."""


class GrammarStates(EndingMachine):
    """The states of a grammar's texts, with their bounds.

    store, spelling : as of `EndingMachine`.
    """

    def __init__(self, store: EngineTable, spelling: Spelling | None = None) -> None:
        super().__init__(store, spelling)
        self._store = store
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

    def spelled_by(self, spelling: Spelling) -> States:
        return GrammarStates(self._store, spelling)

    def why_none(self) -> str:
        return uncounted(self._store.grammar, self.lexer.width)

    def begin(self, times: int = 1) -> None:
        self._readings = times * MAX_READINGS

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
        here = state or self._mode_start(configuration)
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
