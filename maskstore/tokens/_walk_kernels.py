"""Compiled loops that read one byte: what it makes the lexer emit, as far as a parser can read it.

Callers own all arrays and have checked them. `w` is a `Walk`, see `walk_tables`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.maskstore.tokens import walk_tables
from maskwright.maskstore.tokens._feasible_kernels import UNKNOWN, find_set_after, key_of, learn_after
from maskwright.maskstore.tokens._hash_kernels import number_of_key
from maskwright.maskstore.tokens._kernels import SPACE

FULL = -1
"""Instead of a sequence: the table has no room for it."""
NOT_READ = -2
"""Instead of a sequence: no parser reads it."""


@kernel(forceinline=True)
def emit(out, sequence, move, w):  # type: ignore[no-untyped-def]
    """Add to a sequence the terminals that the lexer emits.

    out : the number of the output. move : the number of the move so far, for a newline.

    Returns the new sequence, or NOT_READ; and DONE, or the code of what is missing.
    """
    sequences = w.sequences
    for i in range(w.lexer.output_start[out], w.lexer.output_start[out + 1]):
        symbol = np.int64(w.lexer.output_symbols[i])
        if symbol == w.tokens.newline:
            symbol = w.tokens.after_newline + 2 * np.int64(move)
        states = sequences.value[sequence]
        found = find_set_after(states, symbol, w.feasible.after)
        if found == UNKNOWN:
            found = learn_after(states, symbol, w.feasible)
        if found == UNKNOWN:
            w.cursor[walk_tables.SET], w.cursor[walk_tables.SYMBOL] = states, symbol
            return sequence, walk_tables.UNKNOWN_AFTER
        if found == 0:
            return np.int64(NOT_READ), walk_tables.DONE
        sequence = number_of_key(key_of(sequence, symbol), sequences)
        if sequence == FULL:
            return sequence, walk_tables.FULL_SEQUENCES
        sequences.value[sequence] = found
    return sequence, walk_tables.DONE


@kernel(forceinline=True)
def begin_lexeme(row, n_rows, w):  # type: ignore[no-untyped-def]
    """Follow each mode in which a lexeme may be read: the first in the row, the others in new rows.

    Returns the new number of rows, which is n_rows - 1 if there is no mode; and DONE, or the code
    of what is missing.
    """
    sequences, rows, contexts, sets = w.sequences, w.rows, w.contexts, w.sets
    here = rows.sequence[row]
    before = sequences.keys[here] & 0xFFFFFFFF if here != 0 else -1
    if before >= contexts.code:
        rows.state[row] = contexts.mode_state[before - contexts.code]
        return n_rows, walk_tables.DONE
    members = sequences.value[here]
    if sets.begin[members] < 0:
        w.cursor[walk_tables.SET] = members
        return n_rows, walk_tables.UNKNOWN_MODES
    n_modes = sets.end[members] - sets.begin[members]
    if n_rows + n_modes > rows.text.shape[0]:
        return n_rows, walk_tables.FULL_ROWS
    if sequences.size[0] + n_modes > sequences.keys.shape[0]:
        return n_rows, walk_tables.FULL_SEQUENCES
    klass = w.lexer.byte_class[rows.text[row, rows.next_byte[row]]]
    is_first = True
    for i in range(sets.begin[members], sets.end[members]):
        mode = sets.mode[i]
        if 0 <= before < contexts.may_follow.shape[0] and not contexts.may_follow[before, mode]:
            continue
        if w.lexer.next_state[contexts.mode_state[mode], klass] == -1:
            continue
        target = row
        if not is_first:
            target = n_rows
            n_rows += 1
            for j in range(rows.length[row]):
                rows.text[target, j] = rows.text[row, j]
            rows.length[target] = rows.length[row]
            rows.reread_end[target] = rows.reread_end[row]
            rows.next_byte[target] = rows.next_byte[row]
            rows.move[target] = rows.move[row]
        is_first = False
        sequence = number_of_key(key_of(here, contexts.code + mode), sequences)
        sequences.value[sequence] = sets.subset[i]
        rows.sequence[target] = sequence
        rows.state[target] = contexts.mode_state[mode]
    return n_rows - 1 if is_first else n_rows, walk_tables.DONE


@kernel(forceinline=True)
def back_up(row, rows, contexts):  # type: ignore[no-untyped-def]
    """Put the bytes behind a lexeme's last end before those that are not read yet.

    Returns whether there was room.
    """
    begin = contexts.pending_start[rows.state[row]]
    n = contexts.pending_start[rows.state[row] + 1] - begin
    next_byte = rows.next_byte[row]
    left = rows.length[row] - next_byte
    text = rows.text
    if n + left > text.shape[1]:
        return False
    if n >= next_byte:
        for i in range(left - 1, -1, -1):
            text[row, n + i] = text[row, next_byte + i]
    else:
        for i in range(left):
            text[row, n + i] = text[row, next_byte + i]
    for i in range(n):
        text[row, i] = contexts.pending[begin + i]
    rows.reread_end[row] = n + max(0, rows.reread_end[row] - next_byte)
    rows.length[row] = n + left
    rows.next_byte[row] = 0
    rows.state[row] = 0
    return True


@kernel(forceinline=True)
def read_byte(row, w):  # type: ignore[no-untyped-def]
    """Read one byte in a row.

    Returns whether the row lives on; and DONE, or the code of what is missing.
    """
    rows = w.rows
    byte = rows.text[row, rows.next_byte[row]]
    klass = w.lexer.byte_class[byte]
    target = w.lexer.next_state[rows.state[row], klass]
    if target == -1:
        return False, walk_tables.DONE
    sequence, code = emit(w.lexer.output[rows.state[row], klass], np.int64(rows.sequence[row]), rows.move[row], w)
    if code != walk_tables.DONE:
        return True, code
    if sequence == NOT_READ:
        return False, walk_tables.DONE
    if target == -2:
        if not back_up(row, rows, w.contexts):
            return True, walk_tables.FULL_ROWS
        rows.sequence[row] = sequence
        return True, walk_tables.DONE
    if rows.next_byte[row] >= rows.reread_end[row] and byte <= SPACE:
        rows.move[row] = w.tokens.moves[rows.move[row], byte]
    rows.state[row] = target
    rows.sequence[row] = sequence
    rows.next_byte[row] += 1
    return True, walk_tables.DONE
