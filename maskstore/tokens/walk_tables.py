"""The tables of the walk of a vocabulary, as tuples of arrays for kernels."""

from __future__ import annotations

from typing import NamedTuple

from maskwright.analysis.arrays import Bool_2D, Int32, Int32_2D, Int64, UInt8, UInt8_2D, UInt64

# codes that a walk returns: it is done, or what it lacks before it can go on
DONE, FULL_SEQUENCES, UNKNOWN_AFTER, FULL_FOUND, FULL_ROWS, UNKNOWN_MODES = range(6)

# indices of `Walk.cursor`: where to go on after a return that is not DONE, and what is to learn
TOKEN, N_ROWS, DEEPEST, FOUND_BEFORE, SET, SYMBOL = range(6)
"""What each entry of the cursor is.

TOKEN : the first token that is not done.
N_ROWS : parses of that token that are in progress.
DEEPEST : see `walk_contextual`.
FOUND_BEFORE : rows of `Found` before that token.
SET, SYMBOL : with UNKNOWN_AFTER, the set of states and the symbol after which the next set is not
    known. With UNKNOWN_MODES, the set whose modes are not known.
"""


class Lexer(NamedTuple):
    """The transducer. Output o emits output_symbols[output_start[o] : output_start[o + 1]].

    next_state, output, byte_class : see `Transducer`.
    output_start, output_symbols : (n_outputs + 1,), (n,) int32.
    """

    next_state: Int32_2D
    output: Int32_2D
    output_start: Int32
    output_symbols: Int32
    byte_class: UInt8


class Contexts(NamedTuple):
    """Lexing with several modes.

    mode_state : (n_modes,) int32; the state in which a lexeme begins, by mode.
    may_follow : (n_terminals, n_modes) bool; whether the lexeme after a terminal may be read in a
        mode.
    code : the symbol of mode 0.
    pending_start, pending : (n_states + 1,) int32, (n,) uint8; see `Transducer.pending`.
    """

    mode_state: Int32
    may_follow: Bool_2D
    code: int
    pending_start: Int32
    pending: UInt8


class Tokens(NamedTuple):
    """The vocabulary.

    data, offsets : (n_bytes,) uint8, (n_tokens + 1,) int64; the sorted tokens end to end. Token i
        is data[offsets[i] : offsets[i + 1]].
    shared : (n_tokens,) int32; the leading bytes that a token shares with the one before it.
    newline : the layout's newline terminal, or -1.
    after_newline : the symbol of a newline that ends after move 0, or -1.
    moves : (n_moves, 33) int32; `Moves.table`.
    """

    data: UInt8
    offsets: Int64
    shared: Int32
    newline: int
    after_newline: int
    moves: Int32_2D


class Sequences(NamedTuple):
    """Sequences of symbols by number: parent[s], then the symbol last[s]. Sequence 0 is empty.

    parent, last : (capacity,) int32.
    states_of : (capacity,) int32; the set of the parser's states after each (see `feasible`).
    slots : (n_slots,) int32; the hash table, a power of two and at least twice the capacity, -1
        where free.
    sizes : (1,) int64; how many sequences there are.
    """

    parent: Int32
    last: Int32
    states_of: Int32
    slots: Int32
    sizes: Int64


class SetsAfter(NamedTuple):
    """Hash table: a set of the parser's states, and a symbol -> the set after the symbol.

    keys : (n,) uint64; n is a power of two, 0 is free (no key has set 0).
    sets : (n,) int32.
    """

    keys: UInt64
    sets: Int32


class ModesOfSets(NamedTuple):
    """The modes of each set of the parser's states.

    The modes of set s are mode[begin[s] : end[s]], ascending. subset[i] is the set of those states
    of s whose mode is mode[i].

    begin, end : (n_sets,) int32; begin is -1 where not worked out yet.
    mode, subset : (capacity,) int32.
    """

    begin: Int32
    end: Int32
    mode: Int32
    subset: Int32


class Rows(NamedTuple):
    """The parses of one token that are in progress, one per row. The last row is followed first.

    text : (n_rows, width) uint8; the bytes to read: the first `length` of a row.
    length : (n_rows,) int32.
    reread_end : (n_rows,) int32; the bytes before this index are read anew after backing up.
    next_byte : (n_rows,) int32; the index of the next byte.
    state, sequence, move : (n_rows,) int32; the lexer's state, what was emitted, and the move so
        far.
    """

    text: UInt8_2D
    length: Int32
    reread_end: Int32
    next_byte: Int32
    state: Int32
    sequence: Int32
    move: Int32


class Prefixes(NamedTuple):
    """Where the lexer is after each number of bytes of the token that is read.

    state, sequence, move : (longest token + 1,) int32; the lexer's state, what was emitted, and the
        move so far.
    """

    state: Int32
    sequence: Int32
    move: Int32


class Ends(NamedTuple):
    """Where each token leaves the lexer.

    state : (n_tokens,) int32; the lexer's state, -1 if lexer or parser refuse the token.
    sequence : (n_tokens,) int32; what the lexer emitted.
    """

    state: Int32
    sequence: Int32


class Found(NamedTuple):
    """The ways to read tokens.

    token, state, sequence : (capacity,) int32; the token's index, the lexer's state after it, and
        what the lexer emitted.
    n : (1,) int64; how many there are.
    """

    token: Int32
    state: Int32
    sequence: Int32
    n: Int64


class Walk(NamedTuple):
    """What both walks read.

    cursor : (6,) int64, all 0 at first; see the indices above.
    """

    lexer: Lexer
    tokens: Tokens
    sequences: Sequences
    sets_after: SetsAfter
    cursor: Int64
