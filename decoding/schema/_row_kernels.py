"""Rows of automata: the tokens that keep a string, or a text, within an automaton."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema._automaton_kernels import can_have_length, next_state
from maskwright.decoding.schema._base_kernels import FIRST_LEAD, FIRST_WIDE, loop_groups, write_bases
from maskwright.decoding.schema._frame_kernels import set_bit
from maskwright.decoding.schema._memo_kernels import ROW, find, insert
from maskwright.decoding.schema.constants import (
    BASES,
    DATA_TOP,
    KEY_BUFFER,
    LEADS,
    LEVELS,
    LEVELS_END,
    LOOPS,
    N_LOOPS,
    N_ROWS,
    TOO_MANY,
)
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, QUOTE, SPACE
from maskwright.maskstore.schema.layout import (
    ANY_WIDE,
    AUTOMATON_HEADER,
    AUTOMATON_ID,
    CLASS_OF,
    FULL,
    LENGTH_ROWS,
    LENGTHS_HEADER,
    N_CLASSES,
    N_LENGTHS,
    N_ROW_WORDS,
    N_STATES,
    PURE,
    SIGNATURES,
    TRIE_BYTE,
    TRIE_END,
    TRIE_IDS,
    TRIE_SIZE,
    TRIE_TOKENS,
)

UNKNOWN = -1
"""What LOOPS has for a state that was not looked at."""

ROW_KEY = 6
"""The integers of a row's key."""

LEVEL_END, LEVEL_STATE, LEVEL_LENGTH, LEVEL_BASE = range(4)
LEVEL = 4
"""A level: the node behind the subtree; the state; the characters; the group of the base that knows
what is below it, -1 for none."""


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
    trie, row = voc[FULL], work[DATA_TOP]
    ends, bytes_ = voc[trie + TRIE_END], voc[trie + TRIE_BYTE]
    n_states = automata[automaton + N_STATES]
    has_loops = lengths < 0 and n_states <= work[N_LOOPS]
    has_bases = lengths < 0 and not is_text
    if has_bases:
        write_bases(voc, automata, automaton, start, work, row)
    else:
        for k in range(voc[N_ROW_WORDS]):
            work[row + k] = 0
    if has_loops:
        for k in range(n_states):
            work[work[LOOPS] + k] = UNKNOWN
    level = work[LEVELS]
    size = voc[trie + TRIE_SIZE]
    work[level + LEVEL_END] = size
    work[level + LEVEL_STATE] = start
    work[level + LEVEL_LENGTH] = 0
    node = 1
    rows, n_classes, classes = automaton + AUTOMATON_HEADER, automata[automaton + N_CLASSES], automaton + CLASS_OF
    while node < size:
        while node >= work[level + LEVEL_END]:
            level -= LEVEL
        byte = voc[bytes_ + node]
        end = voc[ends + node]
        if not is_text and (byte in (QUOTE, BACKSLASH) or byte < SPACE):
            node = end
            continue
        state = automata[rows + work[level + LEVEL_STATE] * n_classes + automata[classes + byte]]
        length = work[level + LEVEL_LENGTH] + (1 if byte < 0x80 or byte >= 0xC0 else 0)
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
        base = base_of(voc, work, level, byte, state) if has_bases else -1
        signature = int(voc[voc[SIGNATURES] + node]) & 0xFFFFFFFF
        if base >= 0 and signature & int(work[work[BASES] + 2 * base + 1]) == 0:
            node = end  # the base has all of them that may come
            continue
        if has_loops and end > node + 1 and stays(voc, automata, automaton, state, work, node, signature):
            write_bits(voc, trie, node, end, work, row)
            node = end
            continue
        write_bits(voc, trie, node, node + 1, work, row)
        node += 1
        if end > node:
            level += LEVEL
            if level + LEVEL > work[LEVELS_END]:
                return -TOO_MANY
            work[level + LEVEL_END] = end
            work[level + LEVEL_STATE] = state
            work[level + LEVEL_LENGTH] = length
            work[level + LEVEL_BASE] = base
    work[N_ROWS] += 1
    work[DATA_TOP] = row + voc[N_ROW_WORDS]
    return row


@kernel(forceinline=True)
def base_of(voc: Int32, work: Int32, level: int, byte: int, state: int) -> int:
    """The group whose base knows what the byte behind a level leads to; -1 if none does.

    That is the group of a token's first byte, as long as all other bytes are of its loops.

    state : the one behind the byte.
    """
    group = voc[voc[SIGNATURES] - 256 + byte]
    if level == work[LEVELS]:
        lead = work[work[LEADS] + group]
        return group if lead > 0 and (lead == state or byte >= FIRST_WIDE) else -1
    base = work[level + LEVEL_BASE]
    return base if base >= 0 and (int(work[work[BASES] + 2 * base]) >> group) & 1 != 0 else -1


@kernel
def stays(voc: Int32, automata: Int32, automaton: int, state: int, work: Int32, node: int, signature: int) -> bool:
    """Whether a state stays where it is, whatever comes below a node, all of which may come.

    signature : the groups of what is below the node.
    """
    loops = int(work[work[LOOPS] + state])
    if loops == UNKNOWN:
        loops = loop_groups(voc, automata, automaton, state, work)
        work[work[LOOPS] + state] = loops
    if signature & ~loops != 0:
        return False
    # a state that takes all characters beyond ASCII is between two; PURE tells of those below it
    return signature & ANY_WIDE == 0 or voc[voc[PURE] + node] & 1 != 0


@kernel
def counts_alone(automata: Int32, automaton: int, lengths: int, start: int) -> bool:
    """Whether it is the number of characters alone by which lengths limit the row of a state.

    So it is between two characters, where strings of all lengths can end from each state.
    """
    if automata[lengths] != 0 or automata[lengths + 1] != 1:
        return False
    for byte in range(FIRST_WIDE, FIRST_LEAD):
        if next_state(automata, automaton, start, byte) != 0:
            return False
    for state in range(1, automata[automaton + N_STATES]):  # noqa: SIM110 (for compiled code)
        if automata[lengths + LENGTHS_HEADER + state] != 0:
            return False
    return True


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
    if lengths < 0 or not counts_alone(automata, automaton, lengths, state):
        return kept_row(voc, automata, automaton, lengths, state, least, rest, is_text, work)
    # only the tokens' own lengths matter
    row = kept_row(voc, automata, automaton, -1, state, 0, -1, is_text, work)
    if row < 0 or rest < 0 or rest > voc[N_LENGTHS]:
        return row
    slot = find(work, row_key(automata, automaton, state, 0, rest, is_text, work))
    if slot >= 0:
        return work[slot + 2]
    n_words, short, limited = voc[N_ROW_WORDS], voc[voc[LENGTH_ROWS] + rest], work[DATA_TOP]
    words, limits, found = work[row : row + n_words], voc[short : short + n_words], work[limited : limited + n_words]
    for k in range(n_words):
        found[k] = words[k] & limits[k]
    work[DATA_TOP] = limited + n_words
    insert(work, slot, ROW_KEY, limited)
    return limited


@kernel
def row_key(automata: Int32, automaton: int, state: int, least: int, rest: int, is_text: bool, work: Int32) -> int:
    """Write the key of a row to KEY_BUFFER. Returns its size."""
    key = work[KEY_BUFFER]
    work[key] = ROW
    work[key + 1] = automata[automaton + AUTOMATON_ID]
    work[key + 2] = state
    work[key + 3] = least
    work[key + 4] = rest
    work[key + 5] = 1 if is_text else 0
    return ROW_KEY


@kernel
def kept_row(
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
    """`write_row`, kept or new."""
    slot = find(work, row_key(automata, automaton, state, least, rest, is_text, work))
    if slot >= 0:
        return work[slot + 2]
    row = write_row(voc, automata, automaton, lengths, state, least, rest, is_text, work)
    if row >= 0:
        insert(work, slot, ROW_KEY, row)
    return row
