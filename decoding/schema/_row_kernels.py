"""Rows of automata: the tokens that keep a string, or a text, within an automaton."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import set_bit
from maskwright.decoding.schema._automaton_kernels import can_have_length, next_state
from maskwright.decoding.schema._base_kernels import FIRST_LEAD, FIRST_WIDE, loop_groups, write_bases
from maskwright.decoding.schema._memo_kernels import ROW, find, insert
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, QUOTE, SPACE

Row = tuple[int, int, int, int, int, bool]
"""What a row is of: the automaton; where the length of strings matters the offset of its lengths,
else -1; the state; the least and the greatest length, as in `can_have_length`; whether quotation
marks, backslashes and control characters stand for themselves."""
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
    tokens, ids = voc[trie + layout.TRIE_TOKENS], voc[trie + layout.TRIE_IDS]
    for k in range(voc[tokens + begin], voc[tokens + end]):
        set_bit(work, row, voc[ids + k])


@kernel
def write_row(voc: Int32, automata: Int32, what: Row, work: Int32) -> int:
    """Write the row of a state at the end of the kept data. Returns its offset, or -TOO_MANY."""
    automaton, lengths, start, least, rest, is_text = what
    trie, row = voc[layout.FULL], work[c.DATA_TOP]
    ends, bytes_ = voc[trie + layout.TRIE_END], voc[trie + layout.TRIE_BYTE]
    n_states = automata[automaton + layout.N_STATES]
    has_loops = lengths < 0 and n_states <= work[c.N_LOOPS]
    has_bases = lengths < 0 and not is_text
    if has_bases:
        write_bases(voc, automata, automaton, start, work, row)
    else:
        for k in range(voc[layout.N_ROW_WORDS]):
            work[row + k] = 0
    if has_loops:
        for k in range(n_states):
            work[work[c.LOOPS] + k] = UNKNOWN
    level = work[c.LEVELS]
    size = voc[trie + layout.TRIE_SIZE]
    work[level + LEVEL_END] = size
    work[level + LEVEL_STATE] = start
    work[level + LEVEL_LENGTH] = 0
    node = 1
    while node < size:
        while node >= work[level + LEVEL_END]:
            level -= LEVEL
        byte = voc[bytes_ + node]
        end = voc[ends + node]
        if not is_text and (byte in (QUOTE, BACKSLASH) or byte < SPACE):
            node = end
            continue
        state = next_state(automata, automaton, work[level + LEVEL_STATE], byte)
        length = work[level + LEVEL_LENGTH] + (1 if byte < 0x80 or byte >= 0xC0 else 0)
        if state == 0 or not can_have_length(automata, automaton, lengths, state, least, rest, length):
            node = end
            continue
        base = base_of(voc, work, level, byte, state) if has_bases else -1
        signature = int(voc[voc[layout.SIGNATURES] + node]) & 0xFFFFFFFF
        if base >= 0 and signature & int(work[work[c.BASES] + 2 * base + 1]) == 0:
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
            if level + LEVEL > work[c.LEVELS_END]:
                return -c.TOO_MANY
            work[level + LEVEL_END] = end
            work[level + LEVEL_STATE] = state
            work[level + LEVEL_LENGTH] = length
            work[level + LEVEL_BASE] = base
    work[c.N_ROWS] += 1
    work[c.DATA_TOP] = row + voc[layout.N_ROW_WORDS]
    return row


@kernel(forceinline=True)
def base_of(voc: Int32, work: Int32, level: int, byte: int, state: int) -> int:
    """The group whose base knows what the byte behind a level leads to; -1 if none does.

    That is the group of a token's first byte, as long as all other bytes are of its loops.

    state : the one behind the byte.
    """
    group = voc[voc[layout.SIGNATURES] - 256 + byte]
    if level == work[c.LEVELS]:
        lead = work[work[c.LEADS] + group]
        return group if lead > 0 and (lead == state or byte >= FIRST_WIDE) else -1
    base = work[level + LEVEL_BASE]
    return base if base >= 0 and (int(work[work[c.BASES] + 2 * base]) >> group) & 1 != 0 else -1


@kernel
def stays(voc: Int32, automata: Int32, automaton: int, state: int, work: Int32, node: int, signature: int) -> bool:
    """Whether a state stays where it is, whatever comes below a node, all of which may come.

    signature : the groups of what is below the node.
    """
    loops = int(work[work[c.LOOPS] + state])
    if loops == UNKNOWN:
        loops = loop_groups(voc, automata, automaton, state, work)
        work[work[c.LOOPS] + state] = loops
    if signature & ~loops != 0:
        return False
    # a state that takes all characters beyond ASCII is between two; PURE tells of those below it
    return signature & layout.ANY_WIDE == 0 or voc[voc[layout.PURE] + node] & 1 != 0


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
    for state in range(1, automata[automaton + layout.N_STATES]):  # noqa: SIM110 (for compiled code)
        if automata[lengths + layout.LENGTHS_HEADER + state] != 0:
            return False
    return True


@kernel
def row_of(voc: Int32, automata: Int32, what: Row, work: Int32) -> int:
    """The offset of a state's row, kept or new, or -TOO_MANY."""
    automaton, lengths, state, _, rest, is_text = what
    if lengths < 0 or not counts_alone(automata, automaton, lengths, state):
        return kept_row(voc, automata, what, work)
    # only the tokens' own lengths matter
    row = kept_row(voc, automata, (automaton, -1, state, 0, -1, is_text), work)
    if row < 0 or rest < 0 or rest > voc[layout.N_LENGTHS]:
        return row
    slot = find(work, row_key(automata, (automaton, -1, state, 0, rest, is_text), work))
    if slot >= 0:
        return work[slot + 2]
    n_words, short, limited = voc[layout.N_ROW_WORDS], voc[voc[layout.LENGTH_ROWS] + rest], work[c.DATA_TOP]
    words, limits, found = work[row : row + n_words], voc[short : short + n_words], work[limited : limited + n_words]
    for k in range(n_words):
        found[k] = words[k] & limits[k]
    work[c.DATA_TOP] = limited + n_words
    insert(work, slot, ROW_KEY, limited)
    return limited


@kernel
def row_key(automata: Int32, what: Row, work: Int32) -> int:
    """Write the key of a row to KEY_BUFFER. Returns its size."""
    automaton, _, state, least, rest, is_text = what
    key = work[c.KEY_BUFFER]
    work[key], work[key + 1] = ROW, automata[automaton + layout.AUTOMATON_ID]
    work[key + 2], work[key + 3], work[key + 4], work[key + 5] = state, least, rest, 1 if is_text else 0
    return ROW_KEY


@kernel
def kept_row(voc: Int32, automata: Int32, what: Row, work: Int32) -> int:
    """`write_row`, kept or new."""
    slot = find(work, row_key(automata, what, work))
    if slot >= 0:
        return work[slot + 2]
    row = write_row(voc, automata, what, work)
    if row >= 0:
        insert(work, slot, ROW_KEY, row)
    return row
