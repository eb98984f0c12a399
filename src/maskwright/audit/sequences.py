"""Which terminals each token spells in a lexer state.

The tokens run through the lexer of a store's table, in plain code. A token's *sequence* is what the
lexer emits over its bytes, from the lexeme under way on, and what is begun at its end. The sequence
and the terminal before it tell in which part of the grammar two engines differ, whatever names and
numbers the text has.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.lexing.encoding import DEAD, START_STATE
from maskwright.analysis.lr.encoding import CONFLICT
from maskwright.decoding.endings.ending_lexer import part_of
from maskwright.decoding.engine import _lexer_kernels as lexer_kernels
from maskwright.decoding.engine import _stack_kernels as stack_kernels
from maskwright.decoding.engine import constants
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.schema import ACTION, ALTERNATIVES, N_COLUMNS, N_STATES
from maskwright.stores.store import Store

Int32 = npt.NDArray[np.int32]

END_OF_TEXT = -1
"""The number of the sequence of end-of-text tokens."""

_CUT = "..."
"""In a sequence: the parser would have to choose what comes next."""
_NOTHING = "then nothing that is a terminal"
"""In a sequence: the lexer refuses a byte."""
Sequence = tuple[int | str | tuple[int, ...], ...]
"""Numbers of terminals, `_CUT` and `_NOTHING`; last, what a lexeme that is begun may become."""
_KEPT = 256
"""Lexer states whose sequences are kept."""


class Configuration(NamedTuple):
    """The state of a text.

    lexer : state of the lexer, with the lexeme under way.
    parser_state : state of the parser, which the last terminal led to.
    """

    lexer: int
    parser_state: int


class TokenSequences:
    """The sequences of a store's tokens, by number.

    store : its table has the lexer.
    """

    def __init__(self, store: Store) -> None:
        table = self._table = store.table
        self.grammar, self._tokens = store.grammar, store.vocabulary.tokens
        n, classes = int(table[schema.N_LEXER_STATES]), int(table[schema.N_CLASSES])
        self._class_of: list[int] = part_of(table, schema.BYTE_CLASS, 256).tolist()
        self._next: list[list[int]] = part_of(table, schema.NEXT_STATE, n, classes).tolist()
        self._output: list[list[int]] = part_of(table, schema.OUTPUT, n, classes).tolist()
        self._end: list[int] = part_of(table, schema.END_OUTPUT, n).tolist()
        starts = part_of(table, schema.OUTPUT_START, max(map(max, [*self._output, self._end])) + 2).tolist()
        symbols = part_of(table, schema.OUTPUT_SYMBOLS, starts[-1]).tolist()
        self._outputs = [tuple(symbols[begin:end]) for begin, end in pairwise(starts)]
        self._has_modes = int(table[schema.N_MODES]) > 1
        self._number: dict[Sequence, int] = {}
        self._known: dict[int, Int32] = {}
        columns = part_of(table, schema.SYMBOL_COLUMN, self.grammar.n_terminals).tolist()
        # Terminals that the parser treats alike share a column.
        self._of_column = {
            column: [terminal for terminal, other in enumerate(columns) if other == column]
            for column in sorted(set(columns))
            if column >= 0
        }
        self._begun: dict[int, tuple[int, ...]] = {}
        self._led_by = self._terminals_before()

    def _terminals_before(self) -> dict[int, tuple[int, ...]]:
        """State of the parser -> the terminals whose shift leads to it."""
        table = self._table
        states, columns = int(table[N_STATES]), int(table[N_COLUMNS])
        found: dict[int, set[int]] = {}
        actions = part_of(table, ACTION, states, columns)
        for state, column in zip(*(part.tolist() for part in np.nonzero(actions > 0)), strict=True):
            action = int(actions[state, column])
            several = [action]
            if action >= CONFLICT:
                first = int(table[ALTERNATIVES]) + action - CONFLICT
                several = table[first + 1 : first + 1 + int(table[first])].tolist()
            for each in several:
                if 0 < each <= states:
                    found.setdefault(each - 1, set()).update(self._of_column.get(column, ()))
        return {state: tuple(sorted(terminals)) for state, terminals in found.items()}

    def configuration(self, matcher: Any) -> Configuration:
        """The configuration of a matcher. If it has several stacks, that of the first."""
        memory = matcher.text.memory
        arena, stacks, lexer = (int(memory[field]) for field in (constants.ARENA, constants.STACKS, constants.LEXER))
        top = int(memory[arena + 3 * stack_kernels.first_stack(memory, arena, stacks)])
        if lexer == 0 and self._has_modes:
            lexer = max(0, int(lexer_kernels.mode_state(self._table, memory, arena, stacks)))
        return Configuration(lexer, top)

    def numbers(self, configuration: Configuration) -> Int32:
        """(V,) int32: for each token the number of its sequence.

        Cost: O(bytes of the vocabulary) for a new lexer state.
        """
        found = self._known.get(configuration.lexer)
        if found is None:
            if len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            # PERF: takes no longer than all tokens in step, in arrays (10 to 200 ms of a CPU for
            # 32,768 to 131,072 tokens)
            number, state = self._number, configuration.lexer
            numbers = [number.setdefault(self._sequence(state, token), len(number)) for token in self._tokens]
            found = self._known[state] = np.array(numbers, np.int32)
        return found

    def _sequence(self, state: int, token: bytes) -> Sequence:
        """The sequence of a token in a lexer state.

        A lexeme that could end where the token ends counts as what it is now. Otherwise it is only
        begun.
        """
        found: list[int] = []
        for at, byte in enumerate(token, start=1):
            klass = self._class_of[byte]
            output, after = self._output[state][klass], self._next[state][klass]
            if output:
                found += self._outputs[output]
            if after == DEAD:
                return (*found, *self._ended(state), _NOTHING)
            # Where the parser chooses what competes next, the bytes alone do not tell.
            if after < 0 or (self._has_modes and after == START_STATE and at < len(token)):
                return (*found, _CUT)
            state = after
        if not token or state == START_STATE:
            return tuple(found)
        if self._end[state] >= 0:
            return (*found, *self._ended(state))
        if state not in self._begun:
            self._begun[state] = self._may_become(state)
        return (*found, self._begun[state])

    def _ended(self, state: int) -> tuple[int, ...]:
        """The terminals that the end of the text emits in a state; () if it cannot end there."""
        return self._outputs[self._end[state]] if self._end[state] >= 0 else ()

    def describe(self, number: int) -> str:
        """A sequence in words."""
        if number == END_OF_TEXT:
            return "end of text"
        words = []
        for step in list(self._number)[number]:
            if isinstance(step, int):
                words.append(self.grammar.display_name(step))
            elif isinstance(step, str):
                words.append(step)
            else:
                words.append(f"{_names(self.grammar, step)} (begun)" if step else "(begun)")
        return " ".join(words) or "ignored text"

    def _may_become(self, state: int) -> tuple[int, ...]:
        """The terminals that may be emitted first from a lexer state on; () for ignored ones."""
        found: set[int] = set()
        seen, agenda = {state}, [state]
        while agenda:
            now = agenda.pop()
            outputs = {*self._output[now], self._end[now]}
            found.update(symbols[0] for number in outputs if number > 0 and (symbols := self._outputs[number]))
            for after, output in zip(self._next[now], self._output[now], strict=True):
                if not output and after > START_STATE and after not in seen:
                    seen.add(after)
                    agenda.append(after)
        return tuple(sorted(found))

    def before(self, state: int) -> str:
        """The terminal that leads to a state of the parser, in words."""
        return _names(self.grammar, self._led_by.get(state, ()))


def _names(grammar: Any, terminals: tuple[int, ...]) -> str:
    """Names of up to three terminals; "the start" for none."""
    if not terminals:
        return "the start"
    shown = " or ".join(grammar.display_name(terminal) for terminal in terminals[:3])
    return shown + " or ..." * (len(terminals) > 3)
