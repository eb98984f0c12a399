"""Bytes of a text: what its threads become, and what is remembered to go back to."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema._frame_kernels import has_bit
from maskwright.decoding.schema._merge_kernels import merge
from maskwright.decoding.schema._step_kernels import step
from maskwright.decoding.schema._walk_kernels import room_for_byte
from maskwright.decoding.schema.constants import (
    HISTORY,
    ILLEGAL,
    MAX_HISTORY,
    MOST_READINGS,
    N_HISTORY,
    N_SAID,
    NEXT,
    NO_ROOM,
    OK,
    STATE,
    THREAD,
    THREADS_1,
    THREADS_2,
    TOO_MANY,
    TOP,
)
from maskwright.maskstore.schema.layout import TOKEN_BYTES, TOKEN_START


@kernel
def keep_state(memory: Int32, work: Int32, at: int, n: int) -> None:
    """Write the text's new state: n threads."""
    state = memory[TOP]
    memory[state] = n
    for k in range(n * THREAD):
        memory[state + 1 + k] = work[at + k]
    memory[TOP] = state + 1 + n * THREAD
    memory[STATE] = state


@kernel
def note_history(memory: Int32, state: int) -> None:
    """Remember a state, the last one, to go back to it."""
    memory[N_SAID] += 1
    most = memory[MAX_HISTORY]
    if most == 0:
        return
    memory[HISTORY + memory[NEXT]] = state
    memory[NEXT] = memory[NEXT] + 1 if memory[NEXT] + 1 < most else 0
    if memory[N_HISTORY] < most:
        memory[N_HISTORY] += 1


@kernel
def read(
    table: Int32, automata: Int32, memory: Int32, work: Int32, data: Int32, start: int, end: int, commit: bool
) -> int:
    """Read bytes: OK or an error. The text changes only if they are legal and `commit` is true.

    data : its integers `start` to `end` - 1 are the bytes.
    """
    state, top = memory[STATE], memory[TOP]
    n = memory[state]
    at, to = work[THREADS_1], work[THREADS_2]
    for k in range(n * THREAD):
        work[at + k] = memory[state + 1 + k]
    for position in range(start, end):
        if memory[TOP] + room_for_byte(table, memory, work, at, n) > len(memory):
            memory[TOP] = top
            return NO_ROOM
        found = 0
        for k in range(n):
            found += step(table, automata, memory, work, at + k * THREAD, data[position], to + found * THREAD)
            if found > MOST_READINGS:
                memory[TOP] = top
                return TOO_MANY
        if found == 0:
            memory[TOP] = top
            return ILLEGAL
        n = found
        if found > 1:
            n = merge(table, memory, work, to, found)
            if n < 0:
                memory[TOP] = top
                return -1 - n
        at, to = to, at
    if memory[TOP] + 1 + n * THREAD > len(memory):
        memory[TOP] = top
        return NO_ROOM
    if commit:
        note_history(memory, state)
        keep_state(memory, work, at, n)
    else:
        memory[TOP] = top
    return OK


@kernel
def clear_if_refused(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, token: int
) -> int:
    """Take a token out of a mask if the text cannot read it. Returns OK or an error."""
    if not has_bit(words, 0, token):
        return OK
    start, end = voc[voc[TOKEN_START] + token], voc[voc[TOKEN_START] + token + 1]
    code = read(table, automata, memory, work, voc, voc[TOKEN_BYTES] + start, voc[TOKEN_BYTES] + end, False)
    if code == ILLEGAL:
        word = (int(words[token >> 5]) & 0xFFFFFFFF) & ~(1 << int(token & 31))
        words[token >> 5] = word if word < 1 << 31 else word - (1 << 32)
        return OK
    return code
