"""Tries of tokens: which tokens a thread can read.

A *level* is a node of the trie on the way to where the walk is: `LEVEL` integers, then its threads.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema._frame_kernels import frame_words, has_bit, mark, remembers_same, set_bit
from maskwright.decoding.schema._literal_kernels import literal_byte, literal_length
from maskwright.decoding.schema._step_kernels import step
from maskwright.decoding.schema.constants import (
    BITS,
    COUNT,
    DEPTH,
    ESCAPE,
    FRAME_OF,
    HIGH,
    KEY_STRING,
    LENGTH,
    LEVELS,
    LEVELS_END,
    LIST,
    LOW,
    MODE,
    MOST_READINGS,
    MOST_THREADS,
    N_FOUND,
    NO_ESCAPE,
    NO_ROOM,
    OK,
    PARENT,
    REMEMBERED,
    SHAPE,
    SHAPE_OF,
    STRING,
    THREAD,
    TOO_MANY,
    TOP,
    UTF8,
)
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, QUOTE
from maskwright.maskstore.schema.layout import (
    FULL,
    KEY_AUTOMATON,
    KEYS,
    KIND,
    LITERALS,
    MOST_WORDS,
    PURE,
    STRING_AUTOMATON,
    STRING_LITERALS,
    STRING_MOST,
    TRIE_BYTE,
    TRIE_END,
    TRIE_IDS,
    TRIE_SIZE,
    TRIE_TOKENS,
)

LEVEL_END, LEVEL_TOP, LEVEL_SIZE, LEVEL_BEFORE, IS_CHOSEN, CHOSEN = 0, 1, 2, 3, 4, 5
LEVEL = 13
"""A level: the node behind its subtree; the text's top with its threads; their number; the level
before; whether only some bytes can go on; these, as 256 bits."""


@kernel
def take_tokens(voc: Int32, trie: int, begin: int, end: int, work: Int32) -> None:
    """Add the tokens of the nodes `begin` to `end` - 1 to the list."""
    n = work[N_FOUND]
    tokens, ids = voc[trie + TRIE_TOKENS], voc[trie + TRIE_IDS]
    for k in range(voc[tokens + begin], voc[tokens + end]):
        work[work[LIST] + n] = voc[ids + k]
        n += 1
    work[N_FOUND] = n


@kernel
def choose_bytes(table: Int32, memory: Int32, work: Int32, level: int) -> None:
    """Where a level has one thread, within a literal or a named key: note the bytes that can go on.

    They are those of the literals, a quotation mark and a backslash.
    """
    work[level + IS_CHOSEN] = 0
    at = level + LEVEL
    mode, shape = work[at + MODE], work[at + SHAPE_OF]
    if work[level + LEVEL_SIZE] != 1 or work[at + ESCAPE] != NO_ESCAPE:
        return
    literals = -1
    if mode == STRING and table[shape + KIND] == STRING_LITERALS:
        literals = table[shape + LITERALS]
    elif mode == KEY_STRING and work[at + LENGTH] == 0:
        mark(memory, work[at + FRAME_OF], 2)
        literals = table[shape + KEYS]
    if literals < 0:
        return
    work[level + IS_CHOSEN] = 1
    for k in range(8):
        work[level + CHOSEN + k] = 0
    set_bit(work, level + CHOSEN, QUOTE)
    set_bit(work, level + CHOSEN, BACKSLASH)
    depth, low, high = work[at + DEPTH], work[at + LOW], work[at + HIGH]
    while low < high:
        if literal_length(table, literals, low) <= depth:
            low += 1
            continue
        byte = literal_byte(table, literals, low, depth)
        set_bit(work, level + CHOSEN, byte)
        # on to the first literal with a greater byte: sorted literals that agree so far
        step_size = 1
        while low + step_size < high and literal_byte(table, literals, low + step_size, depth) == byte:
            step_size *= 2
        begin, end = low + step_size // 2, min(low + step_size, high)
        while begin + 1 < end:
            middle = (begin + end) >> 1
            if literal_byte(table, literals, middle, depth) == byte:
                begin = middle
            else:
                end = middle
        low = end


@kernel(forceinline=True)
def takes_content(table: Int32, work: Int32, at: int) -> bool:
    """Whether a thread can read any string content, however much of it."""
    mode, shape = work[at + MODE], work[at + SHAPE_OF]
    if work[at + ESCAPE] != NO_ESCAPE:
        return False
    if mode == STRING:
        if table[shape + KIND] == STRING_LITERALS:
            return False
        return table[shape + STRING_AUTOMATON] < 0 and table[shape + STRING_MOST] < 0
    return mode == KEY_STRING and work[at + LENGTH] != 0 and table[shape + KEY_AUTOMATON] < 0


@kernel
def are_same(table: Int32, memory: Int32, work: Int32, first: int, second: int) -> bool:
    """Whether two threads are in the same state: equal but for the numbers of their frames."""
    for k in range(THREAD):
        if k != FRAME_OF and work[first + k] != work[second + k]:
            return False
    frame, other = work[first + FRAME_OF], work[second + FRAME_OF]
    while frame != other:
        if memory[frame + SHAPE] != memory[other + SHAPE]:
            return False
        for k in range(COUNT, BITS - 1):
            if k != REMEMBERED and memory[frame + k] != memory[other + k]:
                return False
        if not remembers_same(memory, frame, other):
            return False
        n = 0
        if memory[frame + SHAPE] >= 0:
            n = frame_words(table, memory[frame + SHAPE]) - BITS
        for k in range(n):
            if memory[frame + BITS + k] != memory[other + BITS + k]:
                return False
        frame, other = memory[frame + PARENT], memory[other + PARENT]
        if frame < 0 or other < 0:
            return frame == other
    return True


@kernel
def merge(table: Int32, memory: Int32, work: Int32, to: int, n: int) -> int:
    """Leave out threads that are there twice. Returns how many are left."""
    kept = 0
    for k in range(n):
        is_new = True
        for other in range(kept):
            if are_same(table, memory, work, to + other * THREAD, to + k * THREAD):
                is_new = False
                break
        if is_new:
            if kept != k:
                for word in range(THREAD):
                    work[to + kept * THREAD + word] = work[to + k * THREAD + word]
            kept += 1
    return kept


@kernel
def walk(voc: Int32, trie: int, table: Int32, automata: Int32, memory: Int32, work: Int32) -> int:
    """Add to the list the tokens of a trie that the thread of the first level can read.

    The caller has written that thread at LEVELS + LEVEL. Returns OK, NO_ROOM or TOO_MANY.
    """
    level = work[LEVELS]
    size = voc[trie + TRIE_SIZE]
    ends, bytes_ = voc[trie + TRIE_END], voc[trie + TRIE_BYTE]
    is_full = trie == voc[FULL]
    room = table[MOST_WORDS]
    work[level + LEVEL_END] = size
    work[level + LEVEL_TOP] = memory[TOP]
    work[level + LEVEL_SIZE] = 1
    work[level + LEVEL_BEFORE] = -1
    choose_bytes(table, memory, work, level)
    take_tokens(voc, trie, 0, 1, work)
    node = 1
    while node < size:
        while node >= work[level + LEVEL_END]:
            level = work[level + LEVEL_BEFORE]
        byte = voc[bytes_ + node]
        end = voc[ends + node]
        if work[level + IS_CHOSEN] != 0 and not has_bit(work, level + CHOSEN, byte):
            node = end
            continue
        n = work[level + LEVEL_SIZE]
        above = level + LEVEL + n * THREAD
        memory[TOP] = work[level + LEVEL_TOP]
        if memory[TOP] + (n + 1) * room > len(memory):
            return NO_ROOM
        if above + LEVEL + (MOST_THREADS + 1) * THREAD > work[LEVELS_END]:
            return TOO_MANY
        found = 0
        for k in range(n):
            found += step(
                table, automata, memory, work, level + LEVEL + k * THREAD, byte, above + LEVEL + found * THREAD
            )
            if found > MOST_READINGS:
                return TOO_MANY
        if found == 0:
            node = end
            continue
        take_tokens(voc, trie, node, node + 1, work)
        if end == node + 1:
            node = end
            continue
        if is_full and takes_pure(voc, table, work, above + LEVEL, found, node):
            take_tokens(voc, trie, node + 1, end, work)
            node = end
            continue
        work[above + LEVEL_END] = end
        work[above + LEVEL_TOP] = memory[TOP]
        work[above + LEVEL_SIZE] = found if found == 1 else merge(table, memory, work, above + LEVEL, found)
        work[above + LEVEL_BEFORE] = level
        level = above
        choose_bytes(table, memory, work, level)
        node += 1
    memory[TOP] = work[work[LEVELS] + LEVEL_TOP]
    return OK


@kernel
def takes_pure(voc: Int32, table: Int32, work: Int32, at: int, n: int, node: int) -> bool:
    """Whether a thread takes any string content, and all below a node of the full trie is such."""
    pure = voc[voc[PURE] + node]
    for k in range(n):
        thread = at + k * THREAD
        if takes_content(table, work, thread) and (pure >> work[thread + UTF8]) & 1 != 0:
            return True
    return False
