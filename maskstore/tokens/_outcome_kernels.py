"""Compiled loops of the longest-match walk: what every token does in every lexer state.

All lexer states are followed at once, and what was done before is looked up: two beginnings of
tokens that do the same everywhere (one *vector*) do the same after the next byte. There are some
thousands of them, where 131,072 tokens are read in 600 states.

Callers own all arrays and have checked them. `w` is a `Walk` and `o` an `Outcomes`, see
`walk_tables`.

PERF: a call copies the hundreds of fields of `w` and `o`, which takes longer than most look-ups. So
what is called often is part of its caller (`forceinline`).
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32, Int32_2D
from maskwright.analysis.jit import kernel
from maskwright.maskstore.tokens import walk_tables
from maskwright.maskstore.tokens._hash_kernels import Keys, number_of_key, number_of_run, slot_of, value_of_key
from maskwright.maskstore.tokens._kernels import SPACE, group_equal, sort_numbers, stable_order
from maskwright.maskstore.tokens._walk_kernels import begin_lexeme, read_byte

NEW_READING = 16
"""Units of work of reading a byte from a configuration. To look up what is known takes one."""


@kernel(forceinline=True)
def read_configuration(number, byte, move, n_found, w, o):  # type: ignore[no-untyped-def]
    """Read one byte from a configuration, and add the configurations after it to o.found.

    Returns the new n_found; and DONE, or the code of what is missing.
    """
    rows, configurations = w.rows, o.configurations
    key = configurations.keys[number]
    rows.text[0, 0] = byte
    rows.length[0] = 1
    rows.reread_end[0] = 0
    rows.next_byte[0] = 0
    rows.state[0] = key & 0xFFFFFFFF
    rows.sequence[0] = key >> 32
    rows.move[0] = move
    n_rows = 1
    while n_rows > 0:
        row = n_rows - 1
        w.cursor[walk_tables.WORK] += NEW_READING
        if rows.next_byte[row] == rows.length[row]:
            if n_found >= o.found.shape[0]:
                return n_found, walk_tables.FULL_FOUND
            after, code = configuration_of(rows.state[row], rows.sequence[row], o)
            if code != walk_tables.DONE:
                return n_found, code
            o.found[n_found] = after
            n_found += 1
            n_rows -= 1
            continue
        if rows.state[row] == 0 and w.contexts.mode_state.shape[0] > 1:
            n_rows, code = begin_lexeme(row, n_rows, w)
        else:
            lives, code = read_byte(row, w)
            n_rows = row + 1 if lives else row
        if code != walk_tables.DONE:
            return n_found, code
    return n_found, walk_tables.DONE


@kernel(forceinline=True)
def configuration_of(state, sequence, o):  # type: ignore[no-untyped-def]
    """The number of a configuration, a new one if it has none; and DONE or FULL_CONFIGURATIONS."""
    number = number_of_key((np.int64(sequence) << 32) | np.int64(state), o.configurations)
    return number, walk_tables.FULL_CONFIGURATIONS if number < 0 else walk_tables.DONE


@kernel(forceinline=True)
def value_of(n, o):  # type: ignore[no-untyped-def]
    """The number of the value of o.found[:n], a new one if it has none; and DONE or FULL_VALUES."""
    if n == 0:
        return np.int64(0), walk_tables.DONE
    values, found = o.values, o.found
    if n > 1:
        sort_numbers(found, n)
        n_distinct = 1
        for i in range(1, n):
            if found[i] != found[n_distinct - 1]:
                found[n_distinct] = found[i]
                n_distinct += 1
        n = n_distinct
    fresh = values.size[0]
    number = number_of_run(found, n, values)
    if number < 0:
        return number, walk_tables.FULL_VALUES
    if number == fresh:
        for i in range(n):
            values.emits[number] |= o.emits[o.configurations.keys[found[i]] & 0xFFFFFFFF]
    return number, walk_tables.DONE


@kernel(forceinline=True)
def value_after(value, byte, klass, move, w, o):  # type: ignore[no-untyped-def]
    """The value after one more byte; and DONE, or the code of what is missing.

    klass : the class of the byte. move : the number of the move before it.
    """
    n_moves = w.tokens.moves.shape[0]
    key = (value * w.lexer.next_state.shape[1] + klass) * (n_moves + 1)
    if o.values.emits[value]:
        key += 1 + move
    after = value_of_key(key, o.readings, -1)
    if after >= 0:
        return after, walk_tables.DONE
    n = np.int64(0)
    for i in range(o.values.start[value], o.values.start[value + 1]):
        n, code = read_configuration(o.values.items[i], byte, move, n, w, o)
        if code != walk_tables.DONE:
            return value, code
    after, code = value_of(n, o)
    if code != walk_tables.DONE:
        return value, code
    row = number_of_key(key, o.readings)
    if row < 0:
        return value, walk_tables.FULL_READINGS
    o.readings.value[row] = after
    return after, walk_tables.DONE


@kernel(forceinline=True)
def vector_of(items, n, o):  # type: ignore[no-untyped-def]
    """The number of a vector, a new one if it has none; and DONE or FULL_VECTORS.

    items : its n components, each with its value.
    """
    if n == 0:
        return np.int64(0), walk_tables.DONE
    vectors = o.vectors
    fresh = vectors.size[0]
    number = number_of_run(items, 2 * n, vectors)
    if number < 0:
        return number, walk_tables.FULL_VECTORS
    if number == fresh:
        for i in range(n):
            vectors.emits[number] |= o.values.emits[items[2 * i + 1]]
    return number, walk_tables.DONE


@kernel
def first_vector(byte, klass, w, o):  # type: ignore[no-untyped-def]
    """The vector of a single byte; and DONE, or the code of what is missing.

    States that do the same are one component of it.
    """
    firsts, cursor = o.firsts, w.cursor
    if firsts.vector[klass] >= 0:
        return np.int64(firsts.vector[klass]), walk_tables.DONE
    n = cursor[walk_tables.N_COMPONENTS]
    for state in range(cursor[walk_tables.STATE], firsts.component.shape[1]):
        cursor[walk_tables.STATE] = state
        firsts.component[klass, state] = -1
        if w.contexts.mode_state.shape[0] > 1:
            # no text is in a mode's own start state: it is in state 0 until a mode is chosen
            is_start = False
            for mode in range(w.contexts.mode_state.shape[0]):
                is_start = is_start or w.contexts.mode_state[mode] == state
            if is_start:
                continue
        number, code = configuration_of(state, 0, o)
        if code != walk_tables.DONE:
            return number, code
        n_found, code = read_configuration(number, byte, 0, 0, w, o)
        if code != walk_tables.DONE:
            return number, code
        value, code = value_of(n_found, o)
        if code != walk_tables.DONE:
            return value, code
        if value == 0:
            continue
        if o.values.first_class[value] != klass + 1:
            o.values.first_class[value] = klass + 1
            o.values.component[value] = firsts.n[0] + n
            firsts.items[2 * n] = firsts.n[0] + n
            firsts.items[2 * n + 1] = value
            n += 1
            cursor[walk_tables.N_COMPONENTS] = n
        firsts.component[klass, state] = o.values.component[value]
    cursor[walk_tables.STATE] = firsts.component.shape[1]
    vector, code = vector_of(firsts.items, n, o)
    if code != walk_tables.DONE:
        return vector, code
    firsts.vector[klass] = vector
    firsts.n[0] += n
    cursor[walk_tables.STATE] = cursor[walk_tables.N_COMPONENTS] = 0
    return vector, walk_tables.DONE


@kernel(forceinline=True)
def new_vector(key, vector, byte, klass, move, w, o):  # type: ignore[no-untyped-def]
    """The vector after one more byte, if it is not known; and DONE, or the code of what is missing.

    key : of `Outcomes.steps`. vector : not 0. klass : the class of the byte. move : the number of
    the move before it.
    """
    n = 0
    begin, end = o.vectors.start[vector], o.vectors.start[vector + 1]
    w.cursor[walk_tables.WORK] += (end - begin) // 2
    for i in range(begin, end, 2):
        value, code = value_after(np.int64(o.vectors.items[i + 1]), byte, klass, move, w, o)
        if code != walk_tables.DONE:
            return vector, code
        if value != 0:
            o.items[2 * n] = o.vectors.items[i]
            o.items[2 * n + 1] = value
            n += 1
    after, code = vector_of(o.items, n, o)
    if code != walk_tables.DONE:
        return vector, code
    row = number_of_key(key, o.steps)
    if row < 0:
        return vector, walk_tables.FULL_STEPS
    o.steps.value[row] = after
    return after, walk_tables.DONE


@kernel(forceinline=True)
def follow_known(begin, depth, size, vector, move, tokens, byte_class, rows, path):  # type: ignore[no-untyped-def]
    """Read a token's bytes as long as `Outcomes.after` knows the vector after each.

    Returns how many bytes are read, their vector, and the move so far.

    PERF: of JSON's tokens nearly all bytes are read here. Unsigned numbers are known not to count
    from the end of an array.
    """
    while depth < size:
        byte = tokens.data[np.uint64(begin + depth)]
        if vector >= rows.shape[0]:
            break
        known = np.int64(rows[np.uint64(vector), byte_class[byte]])
        if known == 0:
            break
        vector = known - 1
        if byte <= SPACE:
            move = np.int64(tokens.moves[move, byte])
        depth += 1
        path.vector[np.uint64(depth)] = vector
        path.move[np.uint64(depth)] = move
        if vector == 0:
            break
    return depth, vector, move


@kernel(entry=True)
def walk_tokens(w: walk_tables.Walk, o: walk_tables.Outcomes, until: int) -> int:
    """Read every token from all lexer states, as far as some parser can read what is emitted.

    Where lexing has modes, each mode that a lexeme may be read in is followed. The sequence says in
    which mode each lexeme was read.

    Written, o.vector_of : the vector of each token.

    Returns DONE, PAUSED (after `until` units of work), or the code of what is missing. The same
    call goes on.
    """
    cursor = w.cursor
    cursor[walk_tables.WORK] = 0
    # PERF: arrays are taken out of their tuples once
    offsets, data, shared, moves = w.tokens.offsets, w.tokens.data, w.tokens.shared, w.tokens.moves
    path_vector, path_move, vector_of_token = o.path.vector, o.path.move, o.vector_of
    keys, slots, after, emits, rows = o.steps.keys, o.steps.slots, o.steps.value, o.vectors.emits, o.after
    byte_class, n_classes, n_keys = w.lexer.byte_class, w.lexer.next_state.shape[1], moves.shape[0] + 1
    n_tokens = offsets.shape[0] - 1
    token = cursor[walk_tables.TOKEN]
    while token < n_tokens:
        cursor[walk_tables.TOKEN] = token
        if cursor[walk_tables.WORK] > until:
            return walk_tables.PAUSED
        begin = offsets[token]
        size = offsets[token + 1] - begin
        depth = np.int64(shared[token])
        move = np.int64(path_move[depth])
        vector = np.int64(path_vector[depth])
        while depth < size:
            depth, vector, move = follow_known(begin, depth, size, vector, move, w.tokens, byte_class, rows, o.path)
            if depth == size or (depth > 0 and vector == 0):
                break
            byte = data[begin + depth]
            klass = byte_class[byte]
            before = vector
            code = walk_tables.DONE
            if depth == 0:
                vector, code = first_vector(byte, klass, w, o)
            else:
                key = (vector * n_classes + klass) * n_keys
                if emits[vector]:
                    key += 1 + move
                known = slots[slot_of(key, keys, slots)]
                if known >= 0:
                    vector = np.int64(after[known])
                else:
                    vector, code = new_vector(key, vector, byte, klass, move, w, o)
            if code != walk_tables.DONE:
                return code
            if before < rows.shape[0] and not emits[before]:
                rows[before, klass] = vector + 1
            if byte <= SPACE:
                move = np.int64(moves[move, byte])
            depth += 1
            path_vector[depth] = vector
            path_move[depth] = move
            if vector == 0:
                break
        vector_of_token[token] = vector
        token += 1
        if vector == 0:
            # no state reads any of the tokens that begin so
            while token < n_tokens and shared[token] >= depth:
                vector_of_token[token] = 0
                token += 1
    cursor[walk_tables.TOKEN] = n_tokens
    return walk_tables.DONE


@kernel(entry=True)
def groups_of_state(
    state: int,
    component: Int32_2D,
    readers: walk_tables.Readers,
    values: walk_tables.Values,
    configurations: Keys,
    ending_of: Int32,
    n_endings: int,
    found: walk_tables.Groups,
) -> None:
    """Group the classes of tokens by what they do in one lexer state, in all ways.

    A way is the sequence emitted * n_endings + the ending. Those of a class are beside each other.

    component : `Firsts.component`.
    readers, values, configurations : see `walk_tables`.
    ending_of : (n_states,) int32; the ending of each lexer state.
    n_endings : how many endings there are.
    found : written.
    """
    n = 0
    for klass in range(component.shape[0]):
        mine = component[klass, state]
        if mine < 0:
            continue
        for i in range(readers.start[mine], readers.start[mine + 1]):
            value = readers.value[i]
            for k in range(values.start[value], values.start[value + 1]):
                key = configurations.keys[values.items[k]]
                found.found_class[n] = readers.class_of[i]
                found.found_key[n] = (key >> 32) * n_endings + ending_of[key & 0xFFFFFFFF]
                n += 1
    size = 16
    while size < 2 * n:
        size *= 2
    slots = found.slots[:size]
    slots[:] = -1
    n_groups = group_equal(found.found_key[:n], found.group, found.firsts, slots)
    starts = found.starts[: n_groups + 1]
    starts[:] = 0
    stable_order(found.group[:n], starts, found.order)
    for i in range(n):
        found.classes[i] = found.found_class[found.order[i]]
    for i in range(n_groups):
        found.keys[i] = found.found_key[found.firsts[i]]
    found.sizes[0] = n
    found.sizes[1] = n_groups
