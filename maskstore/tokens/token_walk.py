"""The walk of a vocabulary under longest-match lexing.

In: the lexer and the tokens. Out: for each lexer state the terminals that each token makes the
lexer emit, and the state in which it leaves the lexer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lexing.transducer import Transducer
from maskwright.maskstore.tokens import _kernels, _walk_kernels, walk_tables
from maskwright.maskstore.tokens.events import EventCodes
from maskwright.maskstore.tokens.feasible import ANYWHERE, Feasible

Int32 = npt.NDArray[np.int32]

MOST_ROWS = 1 << 14
"""A token that needs more rows, parses followed at once, is read in too many ways."""
FIRST_CAPACITY = 1 << 17
"""Sequences that there is room for at first."""


class TokenWalk:
    """Walks the vocabulary from one lexer state after the other.

    A *sequence* is what a token makes the lexer emit, with the modes of its lexemes. It has a
    number only if some parser can read it, as far as `feasible` knows. Most ways to read a token
    lead nowhere, and under lexing with modes there would be very many of them.

    sequences : the sequences met so far.
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
        """Prepare the tables of the walk.

        name : the grammar's, for errors.
        codes, feasible : the symbols of sequences, and the states that a parser can be in after
            them.
        newline : the layout's newline terminal, below 0 if there is no layout.
        tokens, ids : the bytes of the tokens, sorted; and their ids, (n_tokens,) int32.
        """
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
        newlines = (newline, codes.newline_at(0)) if newline >= 0 else (-1, -1)
        self._lexer = walk_tables.Lexer(
            transducer.next_state, transducer.output, output_start, output_symbols, transducer.byte_class
        )
        self._tokens = walk_tables.Tokens(data, offsets, shared, *newlines, codes.moves.table())
        parent, last = np.full((2, FIRST_CAPACITY), -1, np.int32)
        states_of = np.full(FIRST_CAPACITY, ANYWHERE, np.int32)
        slots = np.full(2 * FIRST_CAPACITY, -1, np.int32)
        self.sequences = walk_tables.Sequences(parent, last, states_of, slots, np.ones(1, np.int64))
        if transducer.n_modes == 1:
            self._prefixes = walk_tables.Prefixes(*np.zeros((3, longest + 1), np.int32))
            self._ends = walk_tables.Ends(*np.zeros((2, len(tokens)), np.int32))
        else:
            n_rows = 16 + 8 * transducer.n_modes
            text = np.zeros((n_rows, longest + 4 * (transducer.longest_pending + 2)), np.uint8)
            self._rows = walk_tables.Rows(text, *np.zeros((6, n_rows), np.int32))
            token, ended, sequence = np.zeros((3, 1 << 16), np.int32)
            self._found = walk_tables.Found(token, ended, sequence, np.zeros(1, np.int64))
            pending_start, pending = flat(transducer.pending)
            self._contexts = walk_tables.Contexts(
                transducer.mode_state, modes.may_follow, codes.n_symbols, pending_start, pending.astype(np.uint8)
            )

    @property
    def n_sequences(self) -> int:
        """The number of sequences met so far. Sequence 0 is empty."""
        return int(self.sequences.sizes[0])

    def outcomes(self, state: int) -> tuple[Int32, Int32, Int32]:
        """The ways to read tokens from a lexer state.

        Returns three arrays (n,) int32: token ids, ascending; the state that each way leads to; and
        the sequence emitted. With several modes a token may be there more than once.

        Raises: LimitError for a token that can be read in too many ways.
        """
        if self._transducer.n_modes == 1:
            self._walk(lambda walk: _walk_kernels.walk_longest(state, self._prefixes, self._ends, walk))
            end_state, end_sequence = self._ends
            read = self._by_id[end_state[self._by_id] >= 0]
            return self._ids[read], end_state[read], end_sequence[read]
        self._found.n[0] = 0
        # no text is in a mode's own start state: it is in START_STATE until a mode is chosen
        if state not in self._transducer.mode_state:
            self._walk(
                lambda walk: _walk_kernels.walk_contextual(
                    state, self._rows, self._found, self._contexts, self._feasible.modes_of_sets, walk
                )
            )
        token, end_state, end_sequence = (array[: self._found.n[0]] for array in self._found[:3])
        order = np.empty(len(token), np.int64)
        _kernels.stable_order(self._rank[token], np.zeros(len(self._ids) + 1, np.int64), order)
        return self._ids[token[order]], end_state[order], end_sequence[order]

    def _walk(self, read_tokens: Callable[[walk_tables.Walk], int]) -> None:
        """Call a kernel until it is done, and make the room, or learn the facts, that it lacks."""
        cursor = np.zeros(6, np.int64)
        while True:
            walk = walk_tables.Walk(self._lexer, self._tokens, self.sequences, self._feasible.sets_after, cursor)
            code = read_tokens(walk)
            if code == walk_tables.DONE:
                return
            if code == walk_tables.UNKNOWN_AFTER:
                self._feasible.learn(int(cursor[walk_tables.SET]), int(cursor[walk_tables.SYMBOL]))
            elif code == walk_tables.UNKNOWN_MODES:
                self._feasible.learn_modes(int(cursor[walk_tables.SET]))
            elif code == walk_tables.FULL_SEQUENCES:
                self._make_room()
            elif code == walk_tables.FULL_FOUND:
                token, ended, sequence = (np.concatenate([array, array]) for array in self._found[:3])
                self._found = walk_tables.Found(token, ended, sequence, self._found.n)
            else:
                assert code == walk_tables.FULL_ROWS
                if len(self._rows.text) > MOST_ROWS:
                    raise LimitError(
                        f"grammar {self._name}: some token can be read in too many ways under contextual lexing; load the "
                        "grammar with lexing='longest'"
                    )
                self._rows = walk_tables.Rows(*(np.concatenate([array, array]) for array in self._rows))

    def _make_room(self) -> None:
        """Make room for twice as many sequences."""
        parent, last, states_of = (np.concatenate([array, np.full_like(array, -1)]) for array in self.sequences[:3])
        slots = np.full(2 * len(self.sequences.slots), -1, np.int32)
        self.sequences = walk_tables.Sequences(parent, last, states_of, slots, self.sequences.sizes)
        _walk_kernels.refill_sequences(self.sequences)


def flat(sequences: Sequence[Sequence[int]]) -> tuple[Int32, Int32]:
    """Sequences end to end: where each begins, (n + 1,) int32, and the members, int32."""
    starts = np.concatenate([[0], np.cumsum([len(one) for one in sequences])]).astype(np.int32)
    return starts, np.array([member for one in sequences for member in one], np.int32)
