"""The walk of a vocabulary under longest-match lexing: which terminals each token makes the lexer emit, and where it leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lexing.transducer import Transducer
from maskwright.maskstore.tokens import _kernels, _walk_kernels
from maskwright.maskstore.tokens._walk_kernels import AFTER, DONE, FOUND, MODES, ROWS, SEQUENCES
from maskwright.maskstore.tokens.events import EventCodes
from maskwright.maskstore.tokens.feasible import ANYWHERE, Feasible

_compiled: Any = _walk_kernels
"""The same for calls with unpacked arguments, which numba's stubs do not describe."""

Int32 = npt.NDArray[np.int32]

MOST_ROWS = 1 << 14


class TokenWalk:
    """Walks from one lexer state after another.

    sizes[0] sequences have been met, as `parent` and `last` symbol; number 0 is empty. Only those that some parser can read are numbered,
    as far as `feasible` knows: most ways to read a token lead nowhere, and there would be very many of them where lexing has modes.
    """

    def __init__(
        self,
        name: str,
        transducer: Transducer,
        modes: Modes,
        codes: EventCodes,
        feasible: Feasible,
        newline: int,
        tokens: Sequence[bytes],
        ids: Int32,
    ) -> None:
        """name : the grammar's. newline : the layout's terminal, below 0 if there is none. tokens : sorted; ids : theirs."""
        self._name = name
        self._transducer = transducer
        self._modes = modes
        self._feasible = feasible
        self._ids = ids
        self._by_id = np.argsort(ids, kind="stable")
        self._rank = np.empty(len(ids), np.int32)
        self._rank[self._by_id] = np.arange(len(ids), dtype=np.int32)
        data = np.frombuffer(b"".join(tokens), np.uint8)
        offsets = np.concatenate([[0], np.cumsum([len(token) for token in tokens])]).astype(np.int64)
        shared = np.zeros(len(tokens), np.int32)
        _walk_kernels.shared_bytes(data, offsets, shared)
        longest = max(map(len, tokens), default=0)
        output_start, output_symbols = flat(transducer.outputs)
        newline_code = np.array([newline, codes.newline_at(0)] if newline >= 0 else [-1, -1], np.int32)
        self._lexer = transducer.next_state, transducer.output, output_start, output_symbols, transducer.byte_class
        self._tokens = data, offsets, shared, newline_code, codes.moves.table()
        self.sizes = np.ones(1, np.int64)
        self.parent, self.last = np.full((2, 1 << 17), -1, np.int32)
        self._slots = np.full(2 * len(self.parent), -1, np.int32)
        self._states_of = np.full(len(self.parent), ANYWHERE, np.int32)
        if transducer.n_modes == 1:
            self._places = [np.zeros(longest + 1, np.int32) for _ in range(3)]
            self._ends = [np.zeros(len(tokens), np.int32) for _ in range(2)]
        else:
            rows = 16 + 8 * transducer.n_modes
            self._text = np.zeros((rows, longest + 4 * (transducer.longest_pending + 2)), np.uint8)
            self._rows = [np.zeros(rows, np.int32) for _ in range(6)]
            self._found = [np.zeros(1 << 16, np.int32) for _ in range(3)]
            self._n_found = np.zeros(1, np.int64)
            pending_start, pending = flat(transducer.pending)
            mode_code = np.int64(codes.n_symbols)
            self._mode_facts = (
                transducer.mode_state,
                modes.may_follow,
                mode_code,
                pending_start,
                pending.astype(np.uint8),
            )

    def outcomes(self, state: int) -> tuple[Int32, Int32, Int32]:
        """What can be read from a lexer state: token ids, ascending; the states that they lead to; the sequences emitted on the way.

        Raises LimitError for a token that can be read in too many ways.
        """
        if self._transducer.n_modes == 1:
            self._walk(state, self._longest)
            end_state, end_sequence = self._ends
            read = self._by_id[end_state[self._by_id] >= 0]
            return self._ids[read], end_state[read], end_sequence[read]
        self._n_found[0] = 0
        if state not in self._transducer.mode_state:  # no text stands there: it has been read from START, mode and all
            self._walk(state, self._contextual)
        token, end_state, end_sequence = (array[: self._n_found[0]] for array in self._found)
        order = np.empty(len(token), np.int64)
        _kernels.stable_order(self._rank[token], np.zeros(len(self._ids) + 1, np.int64), order)
        return self._ids[token[order]], end_state[order], end_sequence[order]

    def _longest(self, state: int, at: npt.NDArray[np.int64]) -> int:
        return int(
            _compiled.walk_longest(
                state, *self._lexer, *self._tokens, *self._places, *self._ends, *self._sequences, *self._feasible.after_table, at
            )
        )  # fmt: skip

    def _contextual(self, state: int, at: npt.NDArray[np.int64]) -> int:
        return int(
            _compiled.walk_contextual(
                state, *self._lexer, *self._mode_facts, *self._tokens, self._text, *self._rows, *self._found, self._n_found,
                *self._sequences, *self._feasible.after_table, *self._feasible.mode_table, at,
            )
        )  # fmt: skip

    @property
    def _sequences(self) -> tuple[npt.NDArray[Any], ...]:
        return self.sizes, self.parent, self.last, self._slots, self._states_of

    def _walk(self, state: int, go_on: Any) -> None:
        at = np.zeros(6, np.int64)
        while (code := go_on(state, at)) != DONE:
            if code == AFTER:
                self._feasible.learn(int(at[4]), int(at[5]))
            elif code == MODES:
                self._feasible.learn_modes(int(at[4]))
            elif code == SEQUENCES:
                self.parent, self.last, self._states_of = (
                    np.concatenate([array, np.full_like(array, -1)])
                    for array in (self.parent, self.last, self._states_of)
                )
                self._slots = np.full(2 * len(self.parent), -1, np.int32)
                _walk_kernels.refill_sequences(int(self.sizes[0]), self.parent, self.last, self._slots)
            elif code == FOUND:
                self._found = [np.concatenate([array, array]) for array in self._found]
            else:
                assert code == ROWS
                if len(self._text) > MOST_ROWS:
                    raise LimitError(
                        f"grammar {self._name}: some token can be read in too many ways under contextual lexing; load the "
                        "grammar with lexing='longest'"
                    )
                self._text = np.concatenate([self._text, self._text])
                self._rows = [np.concatenate([array, array]) for array in self._rows]


def flat(sequences: Sequence[Sequence[int]]) -> tuple[Int32, Int32]:
    """Sequences end to end: (n + 1,) starts and the members."""
    starts = np.concatenate([[0], np.cumsum([len(one) for one in sequences])]).astype(np.int32)
    return starts, np.array([member for one in sequences for member in one], np.int32)
