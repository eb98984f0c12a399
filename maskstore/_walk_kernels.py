"""The jitted loops of the longest-match walk: what every token does in a lexer state. Callers own all arrays and have checked them."""

from __future__ import annotations

import numpy as np
from numba import njit

from maskwright.maskstore._kernels import LINE_FEED, SPACE, TAB

FULL = -1

ABSOLUTE = 1 << 20
"""Added to a column counted from a line feed inside the token; without it the column is relative to where the token began."""


@njit(cache=True, nogil=True)
def extend_sequence(sequence, symbol, sizes, parent, last, slots):  # type: ignore[no-untyped-def]
    """The number of a sequence with one more symbol; FULL if the table must grow.

    sizes : (1,) int64, sequences so far. parent, last : (capacity,) int32. slots : int32, a power of two and at least twice the capacity,
    -1 = free.
    """
    mask = slots.shape[0] - 1
    key = (np.uint64(sequence) << np.uint64(32)) ^ np.uint64(symbol)
    h = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
    while slots[h] >= 0:
        found = slots[h]
        if parent[found] == sequence and last[found] == symbol:
            return found
        h = (h + 1) & mask
    number = sizes[0]
    if number >= parent.shape[0]:
        return FULL
    parent[number] = sequence
    last[number] = symbol
    slots[h] = number
    sizes[0] = number + 1
    return number


@njit(cache=True, nogil=True)
def walk_longest(  # type: ignore[no-untyped-def]
    start, next_state, output, output_start, output_symbols, byte_class, data, offsets, shared, newline_code, tab_length,
    states, sequences, columns, end_state, end_sequence, sizes, parent, last, slots,
):  # fmt: skip
    """Read every token from lexer state `start`.

    data, offsets : the tokens, sorted. shared : (n_tokens,) int32; leading bytes that a token shares with the one before it.
    newline_code : (3,) int32; the layout's newline terminal or -1, the code of column 0 after a line feed in the token, and the code of
        no further columns without one. tab_length : columns of a tab.
    states, sequences, columns : (longest token + 1,) int32, scratch. Written, (n_tokens,) int32: end_state (-1: the lexer refuses the
        token) and end_sequence. Returns whether the sequence table had room.
    """
    states[0] = start
    sequences[0] = 0
    columns[0] = 0
    dead_at = 1 << 30  # the depth at which the token before died
    for token in range(offsets.shape[0] - 1):
        common = shared[token]
        if common > dead_at:
            end_state[token] = -1
            continue
        dead_at = 1 << 30
        begin = offsets[token]
        length = offsets[token + 1] - begin
        state = states[common]
        sequence = sequences[common]
        column = columns[common]
        for depth in range(common, length):
            byte = data[begin + depth]
            klass = byte_class[byte]
            out = output[state, klass]
            state = next_state[state, klass]
            if state < 0:
                dead_at = depth
                break
            for i in range(output_start[out], output_start[out + 1]):
                symbol = output_symbols[i]
                if symbol == newline_code[0]:
                    if column >= ABSOLUTE:
                        symbol = newline_code[1] + column - ABSOLUTE
                    else:
                        symbol = newline_code[2] + column
                sequence = extend_sequence(sequence, symbol, sizes, parent, last, slots)
                if sequence == FULL:
                    return False
            if byte == LINE_FEED:
                column = ABSOLUTE
            elif byte == SPACE:
                column += 1
            elif byte == TAB:
                column += tab_length
            states[depth + 1] = state
            sequences[depth + 1] = sequence
            columns[depth + 1] = column
        end_state[token] = state if dead_at == 1 << 30 else -1
        end_sequence[token] = sequence
    return True


@njit(cache=True, nogil=True)
def refill_sequences(n, parent, last, slots):  # type: ignore[no-untyped-def]
    """Fill an empty slot table from the first n sequences; number 0 is the empty sequence and in no slot."""
    mask = slots.shape[0] - 1
    for i in range(1, n):
        key = (np.uint64(parent[i]) << np.uint64(32)) ^ np.uint64(last[i])
        h = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
        while slots[h] >= 0:
            h = (h + 1) & mask
        slots[h] = i


@njit(cache=True, nogil=True)
def shared_bytes(data, offsets, shared):  # type: ignore[no-untyped-def]
    """For each token the leading bytes that it shares with the one before it. shared : (n_tokens,) int32, zero before."""
    for token in range(1, offsets.shape[0] - 1):
        before = offsets[token - 1]
        begin = offsets[token]
        width = min(begin - before, offsets[token + 1] - begin)
        n = 0
        while n < width and data[before + n] == data[begin + n]:
            n += 1
        shared[token] = n
