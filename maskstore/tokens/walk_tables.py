"""What the walk of a vocabulary reads and writes, as tuples of arrays for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

# what a walk returns: that it is done, or what is in its way
DONE, FULL_SEQUENCES, UNKNOWN_AFTER, FULL_FOUND, FULL_ROWS, UNKNOWN_MODES = range(6)

# indices of `Walk.cursor`: where to go on after a return that is not DONE, and what is asked
TOKEN, N_ROWS, DEEPEST, FOUND_BEFORE, SET, SYMBOL = range(6)
"""TOKEN : the first that is not done. N_ROWS : parses of it under way. DEEPEST : see `walk_contextual`. FOUND_BEFORE : outcomes of the
tokens before. SET, SYMBOL : what is after this set and symbol is not known, or the set's modes are not."""


class Lexer(NamedTuple):
    """As `Transducer`; output o emits output_symbols[output_start[o] : output_start[o + 1]]."""

    next_state: Int32
    output: Int32
    output_start: Int32
    output_symbols: Int32
    byte_class: Bytes


class Contexts(NamedTuple):
    """Lexing by context. mode_state : (n_modes,) int32; where a lexeme begins in each. can_follow : (n_terminals, n_modes) bool; the
    modes that there can be after a terminal. code : the symbol of mode 0. pending_start, pending : see `Transducer.pending`."""

    mode_state: Int32
    can_follow: npt.NDArray[np.bool_]
    code: int
    pending_start: Int32
    pending: Bytes


class Tokens(NamedTuple):
    """data, offsets : their bytes, sorted. shared : (n_tokens,) int32; leading bytes that a token shares with the one before it.

    newline : the layout's newline terminal, or -1. after_newline : the code of a newline that ends after move 0. moves : `Moves.table`.
    """

    data: Bytes
    offsets: Int64
    shared: Int32
    newline: int
    after_newline: int
    moves: Int32


class Sequences(NamedTuple):
    """Symbols that have been emitted: sequence s is sequence parent[s] and then the symbol last[s]; number 0 is empty.

    states_of : int32; the set of the parser's states after each (see `feasible`). slots : int32, a power of two and at least twice the
    capacity, -1 = free. sizes : (1,) int64; how many there are.
    """

    parent: Int32
    last: Int32
    states_of: Int32
    slots: Int32
    sizes: Int64


class After(NamedTuple):
    """What is after a set of the parser's states and a symbol. keys : uint64, a power of two, 0 = free (sets are above 0)."""

    keys: npt.NDArray[np.uint64]
    sets: Int32


class ModesOfSets(NamedTuple):
    """begin, end : (n_sets,) int32. mode, left : int32; set s has the modes mode[begin[s] : end[s]], ascending, and in each of them what
    is left of it. begin -1: not worked out."""

    begin: Int32
    end: Int32
    mode: Int32
    left: Int32


class Rows(NamedTuple):
    """Parses of one token that are under way, the last one first. By row: text : (n_rows, width); what is to be read, length bytes, of
    which those before again[row] are read anew. position : the next one. state, sequence, move : where it is."""

    text: Bytes
    length: Int32
    again: Int32
    position: Int32
    state: Int32
    sequence: Int32
    move: Int32


class Prefixes(NamedTuple):
    """Of the token that is read, where the lexer is after each number of its bytes. (longest token + 1,) int32."""

    state: Int32
    sequence: Int32
    move: Int32


class Ends(NamedTuple):
    """By token, int32: the lexer's state behind it, -1 if lexer or parser refuse it, and its sequence."""

    state: Int32
    sequence: Int32


class Found(NamedTuple):
    """Ways to read a token: token, state, sequence : (capacity,) int32. n : (1,) int64; how many."""

    token: Int32
    state: Int32
    sequence: Int32
    n: Int64


class Walk(NamedTuple):
    """What both walks read. cursor : (6,) int64, zeros to begin with."""

    lexer: Lexer
    tokens: Tokens
    sequences: Sequences
    after: After
    cursor: Int64
