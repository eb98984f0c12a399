"""Which terminals each token spells in a lexer state, for all tokens of a vocabulary at once.

The tokens run through the lexer of a store's table. A token's *sequence* is what the lexer emits
over its bytes, from the lexeme under way on, and what is begun at its end. The sequence and the
terminal before it tell in which part of the grammar two engines differ, whatever names and numbers
the text has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.lexing.encoding import DEAD
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

_CUT, _NOTHING, _BEGUN = 1 << 20, 1 << 21, 1 << 22
"""Steps that are no emission.

_CUT: the parser would have to choose what comes next. _NOTHING + state: the lexer refuses a byte
there. _BEGUN + state: the token ends inside a lexeme there.
"""
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

    A sequence is kept as numbers of terminals and marks below 0. Marks say, for example, what a
    lexeme that is begun may become.

    store : its table has the lexer.
    """

    def __init__(self, store: Store) -> None:
        table, vocabulary = store.table, store.vocabulary
        self.grammar = store.grammar
        n, classes = int(table[schema.N_LEXER_STATES]), int(table[schema.N_CLASSES])
        self._byte_class = part_of(table, schema.BYTE_CLASS, 256)
        self._next = part_of(table, schema.NEXT_STATE, n, classes)
        self._output = part_of(table, schema.OUTPUT, n, classes)
        self._end = part_of(table, schema.END_OUTPUT, n)
        self._table = table
        self._has_modes = int(table[schema.N_MODES]) > 1
        self._starts = np.concatenate([[0], np.cumsum([len(token) for token in vocabulary.tokens])])
        self._bytes = np.frombuffer(b"".join(vocabulary.tokens), np.uint8)
        self._lengths = np.diff(self._starts)
        self._number: dict[tuple[int, ...], int] = {(): 0}
        self._steps: list[tuple[int, ...]] = [()]
        self._known: dict[int, Int32] = {}
        columns = part_of(table, schema.SYMBOL_COLUMN, self.grammar.n_terminals).tolist()
        # Terminals that the parser treats alike share a column.
        self._of_column = {
            column: [terminal for terminal, other in enumerate(columns) if other == column]
            for column in sorted(set(columns))
            if column >= 0
        }
        self._begun: dict[tuple[int, ...], int] = {}
        self._begun_in: dict[int, int] = {}
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
            found = self._known[configuration.lexer] = self._walk(configuration.lexer)
        return found

    def _walk(self, state: int) -> Int32:
        """(V,) int32: for each token the number of its sequence.

        All tokens run through the lexer in step.
        """
        size = len(self._lengths)
        number = np.zeros(size, np.int32)
        states = np.full(size, state, np.int64)
        alive = np.flatnonzero(self._lengths)
        at = 0
        while len(alive):
            classes = self._byte_class[self._bytes[self._starts[alive] + at]]
            now = states[alive]
            after, output = self._next[now, classes], self._output[now, classes]
            self._add(number, alive, output, output != 0)
            self._add(number, alive, _NOTHING + now, after == DEAD)
            # Where the parser chooses what competes next, the bytes alone do not tell.
            is_cut = (after < 0) & (after != DEAD)
            if self._has_modes:
                is_cut |= (after == 0) & (self._lengths[alive] > at + 1)
            self._add(number, alive, np.full(len(alive), _CUT), is_cut)
            states[alive] = after
            at += 1
            goes_on = (after >= 0) & ~is_cut
            is_last = self._lengths[alive] == at
            ended = alive[goes_on & is_last]
            self._add(number, ended, _BEGUN + states[ended], states[ended] != 0)
            alive = alive[goes_on & ~is_last]
        return number

    def _add(
        self, number: Int32, tokens: npt.NDArray[Any], step: npt.NDArray[Any], where: npt.NDArray[np.bool_]
    ) -> None:
        """Append a step to the sequences of some tokens."""
        tokens, step = tokens[where], step[where].astype(np.int64)
        if not len(tokens):
            return
        pairs, which = np.unique(np.stack([number[tokens], step]), axis=1, return_inverse=True)
        grown = []
        for old, one in pairs.T.tolist():
            steps = (*self._steps[old], *self._of_step(one))
            found = self._number.get(steps)
            if found is None:
                found = self._number[steps] = len(self._steps)
                self._steps.append(steps)
            grown.append(found)
        number[tokens] = np.array(grown, np.int32)[which.reshape(-1)]

    def _of_step(self, step: int) -> tuple[int, ...]:
        """The terminals of a step, or its mark.

        A lexeme that could end where the token ends counts as what it is now. Otherwise it is only
        begun.
        """
        if step < _CUT:
            return self._outputs(step)
        if step < _NOTHING:
            return (-_CUT,)
        state = step - (_NOTHING if step < _BEGUN else _BEGUN)
        end = int(self._end[state])
        ended = self._outputs(end) if end >= 0 else ()
        if step < _BEGUN:
            return (*ended, -_NOTHING)
        if end >= 0:
            return ended
        begun = self._begun_in.get(state)
        if begun is None:
            terminals = self._may_become(state)
            begun = self._begun_in[state] = self._begun.setdefault(terminals, len(self._begun))
        return (-_BEGUN - begun,)

    def _outputs(self, number: int) -> tuple[int, ...]:
        """The terminals of an output."""
        begin, end = part_of(self._table, schema.OUTPUT_START, number + 2)[number:].tolist()
        symbols = int(self._table[schema.OUTPUT_SYMBOLS])
        return tuple(self._table[symbols + begin : symbols + end].tolist())

    def describe(self, number: int) -> str:
        """A sequence in words."""
        if number == END_OF_TEXT:
            return "end of text"
        words = []
        for step in self._steps[number]:
            if step >= 0:
                words.append(self.grammar.display_name(step))
            elif step == -_NOTHING:
                words.append("then nothing that is a terminal")
            elif step == -_CUT:
                words.append("...")
            else:
                begun = list(self._begun)[-step - _BEGUN]
                words.append(f"{_names(self.grammar, begun)} (begun)" if begun else "(begun)")
        return " ".join(words) or "ignored text"

    def _may_become(self, state: int) -> tuple[int, ...]:
        """The terminals that may be emitted first from a lexer state on; () for ignored ones."""
        found: set[int] = set()
        seen, agenda = {state}, [state]
        while agenda:
            now = agenda.pop()
            quiet = self._output[now] == 0
            outputs = [*np.unique(self._output[now][~quiet]).tolist(), int(self._end[now])]
            found.update(symbols[0] for number in outputs if number > 0 and (symbols := self._outputs(number)))
            for after in np.unique(self._next[now][quiet]).tolist():
                if after > 0 and after not in seen:
                    seen.add(after)
                    agenda.append(after)
        return tuple(sorted(found))

    def before(self, state: int) -> str:
        """The terminal that leads to a state of the parser, in words."""
        return _names(self.grammar, self._led_by.get(state, ()))


def _names(grammar: Any, terminals: Sequence[int]) -> str:
    """Names of up to three terminals; "the start" for none."""
    if not terminals:
        return "the start"
    shown = " or ".join(grammar.display_name(terminal) for terminal in terminals[:3])
    return shown + " or ..." * (len(terminals) > 3)
