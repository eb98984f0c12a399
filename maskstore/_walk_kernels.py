"""The jitted loops of the longest-match walk: what every token does in a lexer state. Callers own all arrays and have checked them."""

from __future__ import annotations

import numpy as np
from numba import njit

from maskwright.maskstore._kernels import SPACE

FULL = -1


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
    start, next_state, output, output_start, output_symbols, byte_class, data, offsets, shared, newline_code, moves, dead,
    states, sequences, moved, end_state, end_sequence, sizes, parent, last, slots,
):  # fmt: skip
    """Read every token from lexer state `start`.

    data, offsets : the tokens, sorted. shared : (n_tokens,) int32; leading bytes that a token shares with the one before it.
    newline_code : (2,) int32; the layout's newline terminal or -1, and the code of a newline that ends after move 0. moves : see
        `Moves.table`. dead : (n,) bool; sequences not to go on with, by number; those from n on are not known yet.
    states, sequences, moved : (longest token + 1,) int32, scratch. Written, (n_tokens,) int32: end_state (-1: the lexer refuses the
        token) and end_sequence. Returns whether the sequence table had room.
    """
    states[0] = start
    sequences[0] = 0
    moved[0] = 0
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
        move = moved[common]
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
                    symbol = newline_code[1] + 2 * move
                sequence = extend_sequence(sequence, symbol, sizes, parent, last, slots)
                if sequence == FULL:
                    return False
            if sequence < dead.shape[0] and dead[sequence]:
                dead_at = depth
                break
            if byte <= SPACE:
                move = moves[move, byte]
            states[depth + 1] = state
            sequences[depth + 1] = sequence
            moved[depth + 1] = move
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


@njit(cache=True, nogil=True)
def walk_contextual(  # type: ignore[no-untyped-def]
    start, next_state, output, output_start, output_symbols, byte_class, mode_state, mode_can_follow, mode_code,
    pending_start, pending, data, offsets, shared, newline_code, moves, dead, text, length, again, place, state, sequence, move,
    found_token, found_state, found_sequence, n_found, sizes, parent, last, slots,
):  # fmt: skip
    """`walk_longest` where the parser's state chooses what competes: every mode is followed wherever a lexeme begins.

    mode_can_follow : (n_terminals, n_modes) bool; the modes that there can be after a terminal. mode_code : the symbol of mode 0; a
    sequence says which mode each of its lexemes was read in. text : (n_rows, width) uint8 and length, again, place, state, sequence,
    move : (n_rows,) int32,
    scratch; the alternatives under way. Written: found_token, found_state, found_sequence : (capacity,) int32, n_found : (1,) int64.
    Returns 0, 1 if the sequence table is full, 2 if `found` is, 3 if there are too many alternatives.
    """
    n_found[0] = 0
    n_modes = mode_state.shape[0]
    # the last byte that a reading of the token before looked at, if none was left; what is read anew is so because of byte again[row]
    deepest = -1
    for token in range(offsets.shape[0] - 1):
        if deepest >= 0 and shared[token] > deepest:
            continue
        deepest = 0
        found_before = n_found[0]
        size = offsets[token + 1] - offsets[token]
        for i in range(size):
            text[0, i] = data[offsets[token] + i]
        length[0] = size
        again[0] = 0
        place[0] = 0
        state[0] = start
        sequence[0] = 0
        move[0] = 0
        rows = 1
        while rows > 0:
            row = rows - 1
            if place[row] == length[row]:
                if n_found[0] >= found_token.shape[0]:
                    return 2
                found_token[n_found[0]] = token
                found_state[n_found[0]] = state[row]
                found_sequence[n_found[0]] = sequence[row]
                n_found[0] += 1
                rows -= 1
                continue
            if state[row] == 0:
                before = last[sequence[row]] if sequence[row] != 0 else -1
                if before >= mode_code:
                    state[row] = mode_state[before - mode_code]
                else:
                    here = sequence[row]
                    first = True
                    if rows + n_modes > text.shape[0]:
                        return 3
                    for mode in range(n_modes):
                        if before >= 0 and before < mode_can_follow.shape[0] and not mode_can_follow[before, mode]:
                            continue
                        if next_state[mode_state[mode], byte_class[text[row, place[row]]]] == -1:
                            continue
                        after = extend_sequence(here, mode_code + mode, sizes, parent, last, slots)
                        if after == FULL:
                            return 1
                        if after < dead.shape[0] and dead[after]:
                            continue
                        target = row
                        if not first:
                            target = rows
                            rows += 1
                            for i in range(length[row]):
                                text[target, i] = text[row, i]
                            length[target] = length[row]
                            again[target] = again[row]
                            place[target] = place[row]
                            move[target] = move[row]
                        first = False
                        sequence[target] = after
                        state[target] = mode_state[mode]
                    if first:
                        deepest = max(deepest, size - length[row] + max(place[row], again[row]))
                        rows -= 1
                    continue
            byte = text[row, place[row]]
            klass = byte_class[byte]
            out = output[state[row], klass]
            after = next_state[state[row], klass]
            if after == -1:
                deepest = max(deepest, size - length[row] + max(place[row], again[row]))
                rows -= 1
                continue
            for i in range(output_start[out], output_start[out + 1]):
                symbol = output_symbols[i]
                if symbol == newline_code[0]:
                    symbol = newline_code[1] + 2 * move[row]
                sequence[row] = extend_sequence(sequence[row], symbol, sizes, parent, last, slots)
                if sequence[row] == FULL:
                    return 1
            if sequence[row] < dead.shape[0] and dead[sequence[row]]:
                deepest = max(deepest, size - length[row] + max(place[row], again[row]))
                rows -= 1
                continue
            if after == -2:
                begin = pending_start[state[row]]
                n = pending_start[state[row] + 1] - begin
                rest = length[row] - place[row]
                if n + rest > text.shape[1]:
                    return 3
                if n >= place[row]:
                    for i in range(rest - 1, -1, -1):
                        text[row, n + i] = text[row, place[row] + i]
                else:
                    for i in range(rest):
                        text[row, n + i] = text[row, place[row] + i]
                for i in range(n):
                    text[row, i] = pending[begin + i]
                again[row] = n + max(0, again[row] - place[row])
                length[row] = n + rest
                place[row] = 0
                state[row] = 0
                continue
            if place[row] >= again[row] and byte <= SPACE:
                move[row] = moves[move[row], byte]
            state[row] = after
            place[row] += 1
        if n_found[0] > found_before:
            deepest = -1
    return 0
