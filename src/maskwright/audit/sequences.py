"""Which terminals each token spells in a lexer state.

The tokens run through the lexer in plain code (`decoding.reference.machine`). A token's *sequence*
is what the lexer emits over its bytes, from the lexeme under way on, and what is begun at its end.
The sequence and the terminal before it tell in which part of the grammar two engines differ,
whatever names and numbers the text has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.lexing.encoding import DEAD, START_STATE
from maskwright.decoding.engine import constants
from maskwright.decoding.reference.machine import machine_of
from maskwright.stores.store import Store

Int32 = npt.NDArray[np.int32]

END_OF_TEXT = -1
"""The number of the sequence of end-of-text tokens."""

_KEPT = 256
"""Lexer states whose sequences are kept."""


class TokenSequences:
    """The sequences of a store's tokens, by number.

    store : of a grammar.

    Raises: StoreError if the store's lexer is not the one that is built for its grammar now.
    """

    def __init__(self, store: Store) -> None:
        self.grammar, self._tokens = store.grammar, store.vocabulary.tokens
        self._names = [store.grammar.display_name(terminal) for terminal in range(store.grammar.n_terminals)]
        machine = self._machine = machine_of(store.grammar)
        machine.check_lexer(store.table)
        self._number: dict[str, int] = {}
        self._known: dict[int, Int32] = {}
        # merged state of the parser -> the terminals whose shift leads to it
        self._led_by: dict[int, set[int]] = {}
        for state, symbol in zip(machine.class_of, machine.automaton.accessing, strict=True):
            if 0 <= symbol < self.grammar.n_terminals:
                self._led_by.setdefault(state, set()).add(symbol)

    def numbers(self, matcher: Any) -> Int32:
        """(V,) int32: for each token the number of its sequence, where a matcher stands.

        If it has several stacks, that of the first.

        Cost: O(bytes of the vocabulary) for a new lexer state.
        """
        machine, state = self._machine, int(matcher.text.memory[constants.LEXER])
        if state == START_STATE:
            state = machine.mode_state[machine.modes.of_state[_top(matcher)]]
        found = self._known.get(state)
        if found is None:
            if len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            # PERF: takes no longer than all tokens in step, in arrays (10 to 200 ms of a CPU for
            # 32,768 to 131,072 tokens)
            number = self._number
            words = (" ".join(self._sequence(state, token)) or "ignored text" for token in self._tokens)
            numbers = [number.setdefault(each, len(number)) for each in words]
            found = self._known[state] = np.array(numbers, np.int32)
        return found

    def _sequence(self, state: int, token: bytes) -> tuple[str, ...]:
        """The sequence of a token in a lexer state, in words.

        A lexeme that could end where the token ends counts as what it is now. Otherwise it is only
        begun.
        """
        machine, outputs, has_modes = self._machine, self._machine.transducer.outputs, len(self._machine.mode_state) > 1
        found: list[str] = []
        for at, byte in enumerate(token, start=1):
            klass = machine.byte_class[byte]
            found += map(self._names.__getitem__, outputs[machine.output[state][klass]])
            after = machine.next_state[state][klass]
            if after == DEAD:
                return (*found, *self._ended(state), "then nothing that is a terminal")
            # Where the parser chooses what competes next, the bytes alone do not tell.
            if after < 0 or (has_modes and after == START_STATE and at < len(token)):
                return (*found, "...")
            state = after
        if not token or state == START_STATE:
            return tuple(found)
        if machine.transducer.end_output[state] >= 0:
            return (*found, *self._ended(state))
        live = [t for t in machine.transducer.live[state] if t not in self.grammar.ignored]
        return (*found, f"{self._one_of(live)} (begun)" if live else "(begun)")

    def _ended(self, state: int) -> list[str]:
        """What the end of the text emits in a state; nothing if it cannot end there."""
        output = int(self._machine.transducer.end_output[state])
        return [self._names[t] for t in self._machine.transducer.outputs[output]] if output >= 0 else []

    def describe(self, number: int) -> str:
        """A sequence in words."""
        return "end of text" if number == END_OF_TEXT else [*self._number][number]

    def before(self, matcher: Any) -> str:
        """The terminal before, in words: what leads to the state of the parser."""
        terminals = sorted(self._led_by.get(self._machine.origin[_top(matcher)], ()))
        return self._one_of(terminals) if terminals else "the start"

    def _one_of(self, terminals: Sequence[int]) -> str:
        """Names of up to three terminals."""
        return " or ".join(self._names[terminal] for terminal in terminals[:3]) + " or ..." * (len(terminals) > 3)


def _top(matcher: Any) -> int:
    """The parser's state after the last terminal; of several stacks, that of the first."""
    return int(matcher.text.stacks()[0][-1])
