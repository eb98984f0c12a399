"""Bytes of a text: what its threads become, and what is remembered to go back to."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import has_bit
from maskwright.decoding.schema._walk_kernels import read_threads
from maskwright.maskstore.schema import layout


@kernel
def keep_state(memory: Int32, work: Int32, at: int, n: int) -> None:
    """Write the text's new state: n threads."""
    state = memory[c.TOP]
    memory[state] = n
    for k in range(n * c.THREAD):
        memory[state + 1 + k] = work[at + k]
    memory[c.TOP] = state + 1 + n * c.THREAD
    memory[c.STATE] = state


@kernel
def note_history(memory: Int32, state: int) -> None:
    """Remember a state, the last one, to go back to it."""
    memory[c.N_SAID] += 1
    most = memory[c.MAX_HISTORY]
    if most == 0:
        return
    memory[c.HISTORY + memory[c.NEXT]] = state
    memory[c.NEXT] = memory[c.NEXT] + 1 if memory[c.NEXT] + 1 < most else 0
    if memory[c.N_HISTORY] < most:
        memory[c.N_HISTORY] += 1


@kernel
def read(
    table: Int32, automata: Int32, memory: Int32, work: Int32, data: Int32, start: int, end: int, commit: bool
) -> int:
    """Read bytes: OK or an error. The text changes only if they are legal and `commit` is true.

    data : its integers `start` to `end` - 1 are the bytes.
    """
    state, top = memory[c.STATE], memory[c.TOP]
    at, to = work[c.THREADS_1], work[c.THREADS_2]
    for k in range(memory[state] * c.THREAD):
        work[at + k] = memory[state + 1 + k]
    n = read_threads(table, automata, memory, work, at, memory[state], to, data, start, end)
    if memory[c.TOP] + 1 + n * c.THREAD > len(memory):
        n = -1 - c.NO_ROOM
    if n < 0 or not commit:
        memory[c.TOP] = top
        return c.OK if n > 0 else -1 - n
    note_history(memory, state)
    keep_state(memory, work, to if (end - start) & 1 else at, n)
    return c.OK


@kernel
def clear_if_refused(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, token: int
) -> int:
    """Take a token out of a mask if the text cannot read it. Returns OK or an error."""
    if not has_bit(words, 0, token):
        return c.OK
    start, end = voc[voc[layout.TOKEN_START] + token], voc[voc[layout.TOKEN_START] + token + 1]
    code = read(
        table, automata, memory, work, voc, voc[layout.TOKEN_BYTES] + start, voc[layout.TOKEN_BYTES] + end, False
    )
    if code == c.ILLEGAL:
        word = (int(words[token >> 5]) & 0xFFFFFFFF) & ~(1 << int(token & 31))
        words[token >> 5] = word if word < 1 << 31 else word - (1 << 32)
        return c.OK
    return code


@kernel
def refuse(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, begin: int, end: int, size: int
) -> int:
    """`clear_if_refused` of the tokens voc[begin:end:size]. Returns OK or an error."""
    for at in range(begin, end, size):
        code = clear_if_refused(voc, table, automata, memory, work, words, voc[at])
        if code != c.OK:
            return code
    return c.OK


@kernel
def refuse_trie(voc: Int32, trie: int, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32) -> int:
    """`clear_if_refused` of all tokens of a trie. Returns OK or an error."""
    ids = voc[trie + layout.TRIE_IDS]
    n = voc[voc[trie + layout.TRIE_TOKENS] + voc[trie + layout.TRIE_SIZE]]
    return refuse(voc, table, automata, memory, work, words, ids, ids + n, 1)
