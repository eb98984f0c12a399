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
def choose_bytes(table: Int32, memory: Int32, work: Int32, level: int) -> None:
    """Where a level has one thread, within a literal or a named key: note the bytes that can go on.

    They are those of the literals, a quotation mark and a backslash.
    """
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
def note_branches(voc: Int32, work: Int32, level: int, number: int) -> None:
    """Note a level's branches, by number as of `layout.BRANCHES`."""
    work[level + BRANCH] = voc[voc[layout.BRANCHES] + number]
    work[level + BRANCH_END] = voc[voc[layout.BRANCHES] + number + 1]


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


@kernel(forceinline=True)
def takes_content(table: Int32, work: Int32, at: int) -> bool:
    """Whether a thread can read any string content, however much of it."""
    mode, shape = work[at + c.MODE], work[at + c.SHAPE_OF]
    if work[at + c.ESCAPE] != c.NO_ESCAPE:
        return False
    if mode == c.STRING:
        if table[shape + layout.KIND] == layout.STRING_LITERALS:
            return False
        return table[shape + layout.STRING_AUTOMATON] < 0 and table[shape + layout.STRING_MOST] < 0
    return mode == c.KEY_STRING and work[at + c.LENGTH] != 0 and table[shape + layout.KEY_AUTOMATON] < 0


@kernel
def room_for_byte(table: Int32, memory: Int32, work: Int32, at: int, n: int) -> int:
    """The most integers that a byte adds to a text's memory, before threads are merged.

    at, n : the first thread, and their number.
    """
    frames = 1
    for k in range(n):
        frames += n_frames(memory, work[at + k * c.THREAD + c.LINK])
    return frames * table[layout.MOST_WORDS]


@kernel
def walk(voc: Int32, trie: int, table: Int32, automata: Int32, memory: Int32, work: Int32) -> int:
    """Add to the list the tokens of a trie that the thread of the first level can read.

    The caller has written that thread at LEVELS + LEVEL. Returns OK, NO_ROOM or TOO_MANY.
    """
    level = work[c.LEVELS]
    size = voc[trie + layout.TRIE_SIZE]
    ends, bytes_ = voc[trie + layout.TRIE_END], voc[trie + layout.TRIE_BYTE]
    is_full = trie == voc[layout.FULL]
    work[level + LEVEL_END] = size
    work[level + LEVEL_TOP] = memory[c.TOP]
    work[level + LEVEL_ROOM] = room_for_byte(table, memory, work, level + LEVEL, 1)
    work[level + LEVEL_SIZE] = 1
    work[level + LEVEL_BEFORE] = -1
    work[level + BRANCH] = -1
    if is_full:
        note_branches(voc, work, level, 256)
    choose_bytes(table, memory, work, level)
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
        found = 0
        for k in range(n):
            found += step(
                table, automata, memory, work, level + LEVEL + k * c.THREAD, byte, above + LEVEL + found * c.THREAD
            )
            if found > c.MOST_READINGS:
                return c.TOO_MANY
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
        if found > 1:
            found = merge(table, memory, work, above + LEVEL, found)
            if found < 0:
                return -1 - found
        work[above + LEVEL_END] = end
        work[above + LEVEL_TOP] = memory[c.TOP]
        work[above + LEVEL_ROOM] = room_for_byte(table, memory, work, above + LEVEL, found)
        work[above + LEVEL_SIZE] = found
        work[above + LEVEL_BEFORE] = level
        work[above + BRANCH] = -1
        if is_full and work[level + LEVEL_BEFORE] < 0:
            note_branches(voc, work, above, byte)
        level = above
        choose_bytes(table, memory, work, level)
        node += 1
    memory[c.TOP] = work[work[c.LEVELS] + LEVEL_TOP]
    return c.OK


@kernel
def takes_pure(voc: Int32, table: Int32, work: Int32, at: int, n: int, node: int) -> bool:
    """Whether a thread takes any string content, and all below a node of the full trie is such."""
    pure = voc[voc[layout.PURE] + node]
    for k in range(n):
        thread = at + k * c.THREAD
        if takes_content(table, work, thread) and (pure >> work[thread + c.UTF8]) & 1 != 0:
            return True
    return False
