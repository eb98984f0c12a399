"""Rows of automata: the tokens that keep a string, or a text, within an automaton."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema._automaton_kernels import can_have_length
from maskwright.decoding.schema._frame_kernels import set_bit
from maskwright.decoding.schema._memo_kernels import ROW, find, insert
from maskwright.decoding.schema.constants import (
    DATA_TOP,
    KEY_BUFFER,
    LEVELS,
    LEVELS_END,
    LOOPS,
    N_LOOPS,
    N_ROWS,
    TOO_MANY,
)
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, QUOTE, SPACE
from maskwright.maskstore.schema.layout import (
    AUTOMATON_HEADER,
    AUTOMATON_ID,
    CLASS_OF,
    FULL,
    N_CLASSES,
    N_ROW_WORDS,
    N_STATES,
    SIGNATURES,
    TRIE_BYTE,
    TRIE_END,
    TRIE_IDS,
    TRIE_SIZE,
    TRIE_TOKENS,
)

UNKNOWN = 0
"""What LOOPS has for a state that was not looked at."""

FIRST_PRINTABLE, LAST_PRINTABLE = 32, 127


@kernel
def loop_groups(voc: Int32, automata: Int32, automaton: int, state: int, group_of_byte: int) -> int:
    """The groups of characters on all of which a state stays where it is, as bits; not group 31."""
    found = 0x7FFFFFFF
    row = automaton + AUTOMATON_HEADER + state * automata[automaton + N_CLASSES]
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE):
        if automata[row + automata[automaton + CLASS_OF + byte]] != state:
            found &= ~(1 << int(voc[group_of_byte + byte]))
    return found


@kernel
def write_bits(voc: Int32, trie: int, begin: int, end: int, work: Int32, row: int) -> None:
    """Set the bits of the tokens of the nodes `begin` to `end` - 1."""
    tokens, ids = voc[trie + TRIE_TOKENS], voc[trie + TRIE_IDS]
    for k in range(voc[tokens + begin], voc[tokens + end]):
        set_bit(work, row, voc[ids + k])


@kernel
def write_row(
    voc: Int32,
    automata: Int32,
    automaton: int,
    lengths: int,
    start: int,
    least: int,
    rest: int,
    is_text: bool,
    work: Int32,
) -> int:
    """Write the row of a state at the end of the kept data. Returns its offset, or -TOO_MANY.

    lengths, least, rest : where the length of strings matters: see `can_have_length`; lengths -1
        elsewhere.
    is_text : whether quotation marks, backslashes and control characters stand for themselves.
    """
    trie = voc[FULL]
    row = work[DATA_TOP]
    words = work[row : row + voc[N_ROW_WORDS]]
    for k in range(len(words)):
        words[k] = 0
    ends, bytes_ = voc[trie + TRIE_END], voc[trie + TRIE_BYTE]
    n_states = automata[automaton + N_STATES]
    has_loops = lengths < 0 and n_states <= work[N_LOOPS]
    if has_loops:
        for k in range(n_states):
            work[work[LOOPS] + k] = UNKNOWN
    level = work[LEVELS]  # of three: the node behind the subtree, the state, the characters
    size = voc[trie + TRIE_SIZE]
    work[level] = size
    work[level + 1] = start
    work[level + 2] = 0
    node = 1
    rows, n_classes, classes = automaton + AUTOMATON_HEADER, automata[automaton + N_CLASSES], automaton + CLASS_OF
    while node < size:
        while node >= work[level]:
            level -= 3
        byte = voc[bytes_ + node]
        end = voc[ends + node]
        if not is_text and (byte in (QUOTE, BACKSLASH) or byte < SPACE):
            node = end
            continue
        state = automata[rows + work[level + 1] * n_classes + automata[classes + byte]]
        length = work[level + 2] + (1 if byte < 0x80 or byte >= 0xC0 else 0)
        if state == 0 or (
            lengths >= 0
            and (
                0 <= rest < length
                or not can_have_length(
                    automata, automaton, lengths, state, max(least - length, 0), rest - length if rest >= 0 else -1
                )
            )
        ):
            node = end
            continue
        write_bits(voc, trie, node, node + 1, work, row)
        if has_loops and end > node + 1:
            loops = work[work[LOOPS] + state]
            if loops == UNKNOWN:
                loops = loop_groups(voc, automata, automaton, state, voc[SIGNATURES] - 256) | 1 << 30
                work[work[LOOPS] + state] = loops
            signature = int(voc[voc[SIGNATURES] + node]) & 0xFFFFFFFF
            if signature & ~(int(loops) & 0x3FFFFFFF) == 0:
                write_bits(voc, trie, node + 1, end, work, row)
                node = end
                continue
        node += 1
        if end > node:
            level += 3
            if level + 3 > work[LEVELS_END]:
                return -TOO_MANY
            work[level] = end
            work[level + 1] = state
            work[level + 2] = length
    work[N_ROWS] += 1
    work[DATA_TOP] = row + voc[N_ROW_WORDS]
    return row


@kernel
def row_of(
    voc: Int32,
    automata: Int32,
    automaton: int,
    lengths: int,
    state: int,
    least: int,
    rest: int,
    is_text: bool,
    work: Int32,
) -> int:
    """The offset of a state's row, kept or new, or -TOO_MANY. See `write_row`."""
    key = work[KEY_BUFFER]
    work[key] = ROW
    work[key + 1] = automata[automaton + AUTOMATON_ID]
    work[key + 2] = state
    work[key + 3] = least
    work[key + 4] = rest
    work[key + 5] = 1 if is_text else 0
    slot = find(work, 6)
    if slot >= 0:
        return work[slot + 2]
    row = write_row(voc, automata, automaton, lengths, state, least, rest, is_text, work)
    if row >= 0:
        insert(work, slot, 6, row)
    return row
