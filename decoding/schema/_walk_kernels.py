"""Tries of tokens: which tokens a thread can read.

A *level* is a node of the trie on the way to where the walk is: `LEVEL` integers, then its threads.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import has_bit, set_bit
from maskwright.decoding.schema._frame_kernels import mark, n_frames
from maskwright.decoding.schema._literal_kernels import literal_byte, literal_length
from maskwright.decoding.schema._merge_kernels import merge
from maskwright.decoding.schema._step_kernels import step
from maskwright.decoding.schema._string_kernels import is_free
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, QUOTE

LEVEL_END, LEVEL_TOP, LEVEL_ROOM, LEVEL_SIZE, LEVEL_BEFORE, BRANCH, BRANCH_END, IS_CHOSEN, CHOSEN = range(9)
LEVEL = 16
"""A level: the node behind its subtree; the text's top with its threads; what a byte may add to it;
the number of threads; the level before; where its next branch stands, -1 if it has none, and their
end; whether only some bytes can go on; these, as 256 bits."""


@kernel
def take_tokens(voc: Int32, trie: int, begin: int, end: int, work: Int32) -> None:
    """Add the tokens of the nodes `begin` to `end` - 1 to the list."""
    n = work[c.N_FOUND]
    tokens, ids = voc[trie + layout.TRIE_TOKENS], voc[trie + layout.TRIE_IDS]
    for k in range(voc[tokens + begin], voc[tokens + end]):
        work[work[c.LIST] + n] = voc[ids + k]
        n += 1
    work[c.N_FOUND] = n


@kernel
def begin_level(
    voc: Int32, table: Int32, memory: Int32, work: Int32, level: int, end: int, n: int, before: int, branches: int
) -> None:
    """Write a level, whose n threads stand there. end, before : LEVEL_END and LEVEL_BEFORE.

    Where it has one thread, within a literal or a named key, the bytes that can go on are noted:
    those of the literals, a quotation mark and a backslash.

    branches : the number of its branches, as of `layout.BRANCHES`; -1 for none.
    """
    work[level + LEVEL_END], work[level + LEVEL_TOP] = end, memory[c.TOP]
    work[level + LEVEL_ROOM] = room_for_byte(table, memory, work, level + LEVEL, n)
    work[level + LEVEL_SIZE], work[level + LEVEL_BEFORE], work[level + BRANCH] = n, before, -1
    if branches >= 0:
        at = voc[layout.BRANCHES] + branches
        work[level + BRANCH], work[level + BRANCH_END] = voc[at], voc[at + 1]
    work[level + IS_CHOSEN] = 0
    at = level + LEVEL
    mode, shape = work[at + c.MODE], work[at + c.SHAPE_OF]
    if work[level + LEVEL_SIZE] != 1 or work[at + c.ESCAPE] != c.NO_ESCAPE:
        return
    literals = -1
    if mode == c.STRING and table[shape + layout.KIND] == layout.STRING_LITERALS:
        literals = table[shape + layout.LITERALS]
    elif mode == c.KEY_STRING and work[at + c.LENGTH] == 0:
        mark(memory, work[at + c.LINK], 2)
        literals = table[shape + layout.KEYS]
    if literals < 0:
        return
    work[level + IS_CHOSEN] = 1
    note_bytes(table, literals, work[at + c.LOW], work[at + c.HIGH], work[at + c.DEPTH], work, level + CHOSEN)


@kernel
def note_bytes(table: Int32, literals: int, low: int, high: int, depth: int, work: Int32, to: int) -> None:
    """Write, as 256 bits at an offset of `work`, the bytes with which literals may go on.

    They are a quotation mark and a backslash, too. low, high, depth : as of a thread.
    """
    for k in range(8):
        work[to + k] = 0
    set_bit(work, to, QUOTE)
    set_bit(work, to, BACKSLASH)
    while low < high:
        if literal_length(table, literals, low) <= depth:
            low += 1
            continue
        byte = literal_byte(table, literals, low, depth)
        set_bit(work, to, byte)
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


@kernel
def next_chosen(voc: Int32, bytes_: int, ends: int, work: Int32, level: int, node: int) -> int:
    """The first child of a level, from a node on, whose byte can go on. The level's end if none is.

    PERF: near the root, where nodes have many children, these stand side by side in branches.
    """
    branch, last = work[level + BRANCH], work[level + LEVEL_END]
    if branch < 0:
        while node < last and not has_bit(work, level + CHOSEN, voc[bytes_ + node]):
            node = voc[ends + node]
        return node
    end = work[level + BRANCH_END]
    while branch < end and not has_bit(work, level + CHOSEN, voc[branch]):
        branch += 2
    work[level + BRANCH] = branch + 2
    return voc[branch + 1] if branch < end else last


@kernel
def room_for_byte(table: Int32, memory: Int32, work: Int32, at: int, n: int) -> int:
    """The most integers that a byte adds to a text's memory, before threads are merged.

    at, n : the first thread, and their number.
    """
    frames, words = 1, 0
    for k in range(n):
        thread = at + k * c.THREAD
        frames += n_frames(memory, work[thread + c.LINK])
        shape = work[thread + c.SHAPE_OF]
        if work[thread + c.MODE] == c.KEY_STRING and table[shape + layout.ALTERNATIVES] >= 0:
            words += table[table[shape + layout.ALTERNATIVES] + layout.MOST_ADDED]
    return words + frames * table[layout.MOST_WORDS]


@kernel
def step_threads(table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, n: int, byte: int, to: int) -> int:
    """Write the threads that n threads become at a byte. Returns their number, or -1 - TOO_MANY."""
    found = 0
    for k in range(n):
        found += step(table, automata, memory, work, at + k * c.THREAD, byte, to + found * c.THREAD)
        if found > c.MOST_READINGS:
            return -1 - c.TOO_MANY
    return found


@kernel
def read_threads(
    table: Int32,
    automata: Int32,
    memory: Int32,
    work: Int32,
    at: int,
    n: int,
    to: int,
    data: Int32,
    start: int,
    end: int,
) -> int:
    """Let n threads read the integers `start` to `end` - 1 of `data`, which are bytes.

    Returns the number of threads then, or -1 - an error, ILLEGAL too. They stand at `at` if the
    bytes are an even number, else at `to`.
    """
    for position in range(start, end):
        if memory[c.TOP] + room_for_byte(table, memory, work, at, n) > len(memory):
            return -1 - c.NO_ROOM
        n = step_threads(table, automata, memory, work, at, n, data[position], to)
        if n == 0:
            return -1 - c.ILLEGAL
        if n > 1:
            n = merge(table, memory, work, to, n)
        if n < 0:
            return n
        at, to = to, at
    return n


@kernel
def walk(voc: Int32, trie: int, table: Int32, automata: Int32, memory: Int32, work: Int32) -> int:
    """Add to the list the tokens of a trie that the thread of the first level can read.

    The caller has written that thread at LEVELS + LEVEL. Returns OK, NO_ROOM or TOO_MANY.
    """
    level = work[c.LEVELS]
    size = voc[trie + layout.TRIE_SIZE]
    ends, bytes_ = voc[trie + layout.TRIE_END], voc[trie + layout.TRIE_BYTE]
    is_full = trie == voc[layout.FULL]
    begin_level(voc, table, memory, work, level, size, 1, -1, 256 if is_full else -1)
    take_tokens(voc, trie, 0, 1, work)
    node = 1
    while node < size:
        while node >= work[level + LEVEL_END]:
            level = work[level + LEVEL_BEFORE]
        if work[level + IS_CHOSEN] != 0:
            node = next_chosen(voc, bytes_, ends, work, level, node)
            if node == work[level + LEVEL_END]:
                continue
        byte = voc[bytes_ + node]
        end = voc[ends + node]
        n = work[level + LEVEL_SIZE]
        above = level + LEVEL + n * c.THREAD
        memory[c.TOP] = work[level + LEVEL_TOP]
        if memory[c.TOP] + work[level + LEVEL_ROOM] > len(memory):
            return c.NO_ROOM
        if above + LEVEL + (c.MOST_THREADS + 1) * c.THREAD > work[c.LEVELS_END]:
            return c.TOO_MANY
        found = step_threads(table, automata, memory, work, level + LEVEL, n, byte, above + LEVEL)
        if found < 0:
            return -1 - found
        if found == 0:
            node = end
            continue
        is_all = end == node + 1 or (is_full and takes_pure(voc, table, work, above + LEVEL, found, node))
        take_tokens(voc, trie, node, end if is_all else node + 1, work)
        if is_all:
            node = end
            continue
        if found > 1:
            found = merge(table, memory, work, above + LEVEL, found)
            if found < 0:
                return -1 - found
        branches = byte if is_full and work[level + LEVEL_BEFORE] < 0 else -1
        begin_level(voc, table, memory, work, above, end, found, level, branches)
        level = above
        node += 1
    memory[c.TOP] = work[work[c.LEVELS] + LEVEL_TOP]
    return c.OK


@kernel
def takes_pure(voc: Int32, table: Int32, work: Int32, at: int, n: int, node: int) -> bool:
    """Whether a thread takes any string content, and all below a node of the full trie is such."""
    pure = voc[voc[layout.PURE] + node]
    for k in range(n):
        thread = at + k * c.THREAD
        mode = work[thread + c.MODE]
        if mode not in (c.STRING, c.KEY_STRING) or work[thread + c.ESCAPE] != c.NO_ESCAPE:
            continue
        is_limited = mode == c.STRING and table[work[thread + c.SHAPE_OF] + layout.STRING_MOST] >= 0
        if not is_limited and is_free(table, work, thread) and (pure >> work[thread + c.UTF8]) & 1 != 0:
            return True
    return False
