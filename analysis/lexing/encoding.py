"""The lexer as tables: what a transducer is; `transducer` makes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

START_STATE = 0
"""The transducer's state at the start of the text and wherever no lexeme is under way."""

DEAD = -1
"""In `Transducer.next_state`: no terminal sequence fits the bytes read."""
RESTART = -2
"""In `Transducer.next_state`: emit the output, then read the pending bytes and this byte anew."""

Output = tuple[int, ...]
"""The terminals emitted, in order; ignored terminals are left out."""
Reread = tuple[Output, int]
"""What pending bytes become when they are read again: the terminals emitted, and the state."""

MAX_PENDING = 64
"""The most bytes that a lexer of several modes may have to read anew."""


class State(NamedTuple):
    """What a state of the transducer records while it is built.

    under_way : the union automaton's state, -1 where no lexeme is under way.
    winner : the terminal that won at the last position where the lexeme could have ended, or -1.
    reread : None at that position; past it what the bytes read since then become when they are read
        again. One mode only.
    pending : those bytes, or others that do the same when they are read again. Several modes only.
    begins : whether a mode starts here and nothing has been read. This keeps the start apart from
        the middle of a lexeme: with `(ab)*c` the union automaton comes back to its start after
        ``ab``.
    otherwise : where the lexeme could have ended just here, the state that holds instead if what
        comes next refuses the winner: that of the next terminal that ends here, which may have one
        in its turn, or last that of the unfinished lexeme. -1 if nothing refuses the winner.
    """

    under_way: int
    winner: int = -1
    reread: Reread | None = None
    pending: bytes = b""
    begins: bool = False
    otherwise: int = -1

    @property
    def backs_up(self) -> bool:
        """Whether bytes have been read since the lexeme could have ended."""
        return self.reread is not None or bool(self.pending)


@dataclass(frozen=True)
class Transducer:
    """The lexer of `longest` and `contextual` lexing. All arrays are read-only.

    byte_class : (256,) uint8; the class of each byte. Bytes of one class have the same transitions.
    next_state : (n_states, n_classes) int32; the state after the byte, DEAD, or RESTART.
    output : (n_states, n_classes) int32; index in `outputs` of the terminals emitted on the
        transition. With RESTART: those emitted before the pending bytes are read anew.
    outputs : the sequences of terminals emitted, without ignored ones; the first is empty.
    end_output : (n_states,) int32; index in `outputs` of what is emitted if the text ends here. -1
        if it cannot. RESTART if `fallback` must be emitted and `pending` be read again.
    live : for each state the terminals that the lexeme under way may still become, ascending; ()
        without one.
    lookahead : for each state the lookahead set: unless the lexer backs up, the text can go on only
        if the parser can take one of these terminals. The number `n_terminals` in it stands for the
        end of the text. None: no restriction. See `Lexemes.lookahead`.
    fallback : for each state the terminal that is emitted if the lexeme fails, where bytes have
        been read since it could have ended; else -1.
    reread, pending : for each state with a fallback, of those bytes, as in `State`.
    otherwise : for each state the one that holds instead if what comes next refuses the terminal
        that has won: the transitions are that state's there; -1 if nothing refuses it.
    may_end_newline : (n_states,) bool; whether the layout's newline may end exactly here, so that
        its column is the one reached here.
    is_newline : (n_states,) bool; whether the lexeme under way may become the layout's newline, or
        the newline has won so far.
    mode_state : (n_modes,) int32; the state in which a lexeme begins, by mode. With one mode it is
        START_STATE.
    """

    byte_class: npt.NDArray[np.uint8]
    next_state: npt.NDArray[np.int32]
    output: npt.NDArray[np.int32]
    outputs: tuple[Output, ...]
    end_output: npt.NDArray[np.int32]
    live: tuple[tuple[int, ...], ...]
    lookahead: tuple[frozenset[int] | None, ...]
    fallback: tuple[int, ...]
    reread: tuple[Reread | None, ...]
    pending: tuple[bytes, ...]
    otherwise: tuple[int, ...]
    may_end_newline: npt.NDArray[np.bool_]
    is_newline: npt.NDArray[np.bool_]
    mode_state: npt.NDArray[np.int32]

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.live)

    @property
    def n_modes(self) -> int:
        """The number of modes; 1 where all terminals compete everywhere."""
        return len(self.mode_state)

    @property
    def longest_pending(self) -> int:
        """The most bytes that the lexer reads anew; 0 with one mode."""
        return max(map(len, self.pending))
