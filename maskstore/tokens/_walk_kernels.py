"""The jitted loops of the longest-match walk: what every token does in a lexer state. Callers own all arrays and have checked them."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.maskstore.tokens._kernels import SPACE

FULL = -1
UNKNOWN = -1
DONE, SEQUENCES, FOUND, ROWS, AFTER, MODES = range(6)
"""What a walk returns: that it is done, or what is in its way."""


@kernel
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


@kernel
def find_after(states, symbol, after_key, after):  # type: ignore[no-untyped-def]
    """The number of the set of the parser's states after a symbol (see `feasible`); UNKNOWN if that has not been worked out."""
    mask = after_key.shape[0] - 1
    key = (np.uint64(states) << np.uint64(32)) | np.uint64(symbol)
    h = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
    while after_key[h] != 0:
        if after_key[h] == key:
            return after[h]
        h = (h + 1) & mask
    return UNKNOWN


@kernel
def set_after(states, symbol, found, after_key, after):  # type: ignore[no-untyped-def]
    """Note what `find_after` is to find. after_key : uint64, a power of two, 0 = free (states are above 0). after : int32."""
    mask = after_key.shape[0] - 1
    key = (np.uint64(states) << np.uint64(32)) | np.uint64(symbol)
    h = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
    while after_key[h] != 0:
        h = (h + 1) & mask
    after_key[h] = key
    after[h] = found


@kernel
def refill_after(old_key, old_after, after_key, after):  # type: ignore[no-untyped-def]
    """Note in larger tables what is in smaller ones (see `set_after`)."""
    for i in range(old_key.shape[0]):
        if old_key[i] != 0:
            set_after(old_key[i] >> np.uint64(32), old_key[i] & np.uint64(0xFFFFFFFF), old_after[i], after_key, after)


@kernel
def walk_longest(  # type: ignore[no-untyped-def]
    start, next_state, output, output_start, output_symbols, byte_class, data, offsets, shared, newline_code, moves,
    states, sequences, moved, end_state, end_sequence, sizes, parent, last, slots, states_of, after_key, after, at,
):  # fmt: skip
    """Read every token from lexer state `start`, as far as some parser can read what the lexer emits.

    data, offsets : the tokens, sorted. shared : (n_tokens,) int32; leading bytes that a token shares with the one before it.
    newline_code : (2,) int32; the layout's newline terminal or -1, and the code of a newline that ends after move 0. moves : see
        `Moves.table`. states_of : (capacity,) int32; after each sequence the set of the parser's states. after_key, after : see
        `set_after`.
    states, sequences, moved : (longest token + 1,) int32, scratch. Written, (n_tokens,) int32: end_state (-1: the lexer or the parser
        refuses the token) and end_sequence. at : (6,) int64, zeros to begin with; where to go on after a return that is not DONE.
    Returns DONE, SEQUENCES if their table must grow, or AFTER: what is after the set at[4] and the symbol at[5] must be worked out.
    """
    states[0] = start
    sequences[0] = 0
    moved[0] = 0
    dead_at = 1 << 30  # the depth at which the token before died
    for token in range(at[0], offsets.shape[0] - 1):
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
                found = find_after(states_of[sequence], symbol, after_key, after)
                if found == UNKNOWN:
                    at[0], at[4], at[5] = token, states_of[sequence], symbol
                    return AFTER
                if found == 0:
                    dead_at = depth
                    break
                sequence = extend_sequence(sequence, symbol, sizes, parent, last, slots)
                if sequence == FULL:
                    at[0] = token
                    return SEQUENCES
                states_of[sequence] = found
            if dead_at == depth:
                break
            if byte <= SPACE:
                move = moves[move, byte]
            states[depth + 1] = state
            sequences[depth + 1] = sequence
            moved[depth + 1] = move
        end_state[token] = state if dead_at == 1 << 30 else -1
        end_sequence[token] = sequence
    return DONE


@kernel
def refill_sequences(n, parent, last, slots):  # type: ignore[no-untyped-def]
    """Fill an empty slot table from the first n sequences; number 0 is the empty sequence and in no slot."""
    mask = slots.shape[0] - 1
    for i in range(1, n):
        key = (np.uint64(parent[i]) << np.uint64(32)) ^ np.uint64(last[i])
        h = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
        while slots[h] >= 0:
            h = (h + 1) & mask
        slots[h] = i


@kernel
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


@kernel
def walk_contextual(  # type: ignore[no-untyped-def]
    start, next_state, output, output_start, output_symbols, byte_class, mode_state, mode_can_follow, mode_code,
    pending_start, pending, data, offsets, shared, newline_code, moves, text, length, again, place, state, sequence, move,
    found_token, found_state, found_sequence, n_found, sizes, parent, last, slots, states_of, after_key, after,
    modes_begin, modes_end, mode_of, after_mode, at,
):  # fmt: skip
    """`walk_longest` where the parser's state chooses what competes: wherever a lexeme begins, each mode is followed that it may be in.

    mode_can_follow : (n_terminals, n_modes) bool; the modes that there can be after a terminal. mode_code : the symbol of mode 0; a
    sequence says which mode each of its lexemes was read in. text : (n_rows, width) uint8 and length, again, place, state, sequence,
    move : (n_rows,) int32,
    scratch; the alternatives under way. Written: found_token, found_state, found_sequence : (capacity,) int32, n_found : (1,) int64.
    modes_begin, modes_end : (n_sets,) int32; mode_of, after_mode : int32; the modes of a set of the parser's states are
        mode_of[modes_begin[set] : modes_end[set]], ascending, beside what is left of the set in each. modes_begin -1: not worked out.
    Also returns FOUND if those arrays are full, ROWS if there are too many alternatives, MODES: those of set at[4] must be worked out.
    """
    # INVARIANT: a row changes only when nothing is in the way of its next step any more, so a walk goes on where it has stopped
    rows = at[1]
    # the last byte that a reading of the token before looked at, if none was left; what is read anew is so because of byte again[row]
    deepest = at[2] if rows > 0 else -1
    found_before = at[3]
    code = DONE
    for token in range(at[0], offsets.shape[0] - 1):
        size = offsets[token + 1] - offsets[token]
        if rows == 0:
            if deepest >= 0 and shared[token] > deepest:
                continue
            deepest = 0
            found_before = n_found[0]
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
                    code = FOUND
                    break
                found_token[n_found[0]] = token
                found_state[n_found[0]] = state[row]
                found_sequence[n_found[0]] = sequence[row]
                n_found[0] += 1
                rows -= 1
                continue
            here = sequence[row]
            if state[row] == 0:
                before = last[here] if here != 0 else -1
                if before >= mode_code:
                    state[row] = mode_state[before - mode_code]
                    continue
                members = states_of[here]
                if modes_begin[members] < 0:
                    at[4] = members
                    code = MODES
                    break
                n_modes = modes_end[members] - modes_begin[members]
                if rows + n_modes > text.shape[0]:
                    code = ROWS
                    break
                if sizes[0] + n_modes > parent.shape[0]:
                    code = SEQUENCES
                    break
                klass = byte_class[text[row, place[row]]]
                first = True
                for i in range(modes_begin[members], modes_end[members]):
                    mode = mode_of[i]
                    if before >= 0 and before < mode_can_follow.shape[0] and not mode_can_follow[before, mode]:
                        continue
                    if next_state[mode_state[mode], klass] == -1:
                        continue
                    target = row
                    if not first:
                        target = rows
                        rows += 1
                        for j in range(length[row]):
                            text[target, j] = text[row, j]
                        length[target] = length[row]
                        again[target] = again[row]
                        place[target] = place[row]
                        move[target] = move[row]
                    first = False
                    sequence[target] = extend_sequence(here, mode_code + mode, sizes, parent, last, slots)
                    states_of[sequence[target]] = after_mode[i]
                    state[target] = mode_state[mode]
                if first:
                    deepest = max(deepest, size - length[row] + max(place[row], again[row]))
                    rows -= 1
                continue
            byte = text[row, place[row]]
            klass = byte_class[byte]
            out = output[state[row], klass]
            target = next_state[state[row], klass]
            if target != -1:
                for i in range(output_start[out], output_start[out + 1]):
                    symbol = output_symbols[i]
                    if symbol == newline_code[0]:
                        symbol = newline_code[1] + 2 * move[row]
                    found = find_after(states_of[here], symbol, after_key, after)
                    if found == UNKNOWN:
                        at[4], at[5] = states_of[here], symbol
                        code = AFTER
                        break
                    if found == 0:
                        target = -1
                        break
                    here = extend_sequence(here, symbol, sizes, parent, last, slots)
                    if here == FULL:
                        code = SEQUENCES
                        break
                    states_of[here] = found
                if code != DONE:
                    break
            if target == -1:
                deepest = max(deepest, size - length[row] + max(place[row], again[row]))
                rows -= 1
                continue
            if target == -2:
                begin = pending_start[state[row]]
                n = pending_start[state[row] + 1] - begin
                rest = length[row] - place[row]
                if n + rest > text.shape[1]:
                    code = ROWS
                    break
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
                sequence[row] = here
                continue
            if place[row] >= again[row] and byte <= SPACE:
                move[row] = moves[move[row], byte]
            state[row] = target
            sequence[row] = here
            place[row] += 1
        if code != DONE:
            at[0], at[1], at[2], at[3] = token, rows, deepest, found_before
            return code
        if n_found[0] > found_before:
            deepest = -1
    return DONE
