"""Keys that run short: tokens behind which all keys that begin so have been there.

A state of an automaton is *scarce* if no more keys go on from it than have been there. Which tokens
come to such a state depends on the state before and on that number: rows of them are kept. They are
few, and are read for good.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.schema.lengths import ENDLESS, FOR_EVER
from maskwright.decoding.engine.quick import NOT_QUICK
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import has_bit, set_bit
from maskwright.decoding.schema._automaton_kernels import end_of, least_left, n_left, next_state
from maskwright.decoding.schema._frame_kernels import frames_around
from maskwright.decoding.schema._left_kernels import is_key_left
from maskwright.decoding.schema._literal_kernels import byte_of, n_behind_first
from maskwright.decoding.schema._memo_kernels import find, insert, keep_room
from maskwright.decoding.schema._read_kernels import clear_if_refused, refuse_trie
from maskwright.decoding.schema._string_kernels import FIRST_SURROGATE, LAST_SURROGATE, hex_digit, unescaped_letter
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._hash_kernels import HASH_FACTOR_1, HASH_FACTOR_2, next_hash
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, QUOTE, SPACE

SCARCE = -8
"""What begins the key of a row of tokens that come to a scarce state."""
BITS_OF_HASH = 1 << 12
"""The bits in which hashes are looked up first."""

LETTER_U = 117

LEVEL_END, LEVEL_STATE = 0, 1
LEVEL = 2
"""A level: the node behind the subtree; the state."""


@kernel
def refuse_scarce(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, may_take_long: bool
) -> int:
    """Take out of a mask the tokens behind which all keys that begin so have been there.

    may_take_long : whether rows may be made, and many tokens read; if not, that is NOT_QUICK.

    Returns OK or an error.
    """
    state, n_rows = memory[c.STATE], 0
    for k in range((voc[layout.N_OPENERS] + 31) >> 5):
        work[work[c.LEVELS] + k] = 0
    for k in range(memory[state]):
        link = memory[state + 1 + k * c.THREAD + c.LINK]
        n = note_openers(voc, table, automata, memory, work, link, may_take_long)
        if n < 0:
            return -n
        n_rows += n
    for number in range(voc[layout.N_OPENERS] if n_rows > 0 else 0):
        if has_bit(work, work[c.LEVELS], number):
            code = clear_if_refused(voc, table, automata, memory, work, words, voc[voc[layout.OPENERS] + number])
            if code != c.OK:
                return code
    for k in range(memory[state]):
        at = state + 1 + k * c.THREAD
        frame = memory[at + c.LINK]
        if memory[at + c.MODE] != c.KEY_STRING or memory[at + c.LENGTH] == 0 or memory[frame + c.N_SCARCE] == 0:
            continue
        automaton, start = table[memory[at + c.SHAPE_OF] + layout.KEY_AUTOMATON], memory[at + c.AUTOMATON]
        if start == 0 or n_left(automata, automaton, start) == FOR_EVER:
            continue
        if memory[at + c.ESCAPE] != c.NO_ESCAPE:  # then the mask has few tokens
            code = NOT_QUICK
            if may_take_long:
                code = refuse_trie(voc, voc[layout.FULL], table, automata, memory, work, words)
            if code != c.OK:
                return code
            continue
        row = scarce_row(voc, automata, automaton, start, memory[frame + c.N_SCARCE], work, may_take_long)
        if row < 0:
            return -row
        for word in range(voc[layout.N_ROW_WORDS]):
            bits, token = (int(words[word]) & int(work[row + word])) & 0xFFFFFFFF, 32 * word
            while bits != 0:
                if bits & 1 != 0 and may_be_used_up(voc, automata, automaton, memory, work, at, token):
                    code = clear_if_refused(voc, table, automata, memory, work, words, token)
                    if code != c.OK:
                        return code
                bits >>= 1
                token += 1
    return c.OK


@kernel
def may_be_used_up(
    voc: Int32, automata: Int32, automaton: int, memory: Int32, work: Int32, at: int, token: int
) -> bool:
    """Whether all keys may have been there that begin as a token says behind a thread's key.

    True for tokens with a quotation mark or an escape as well. LOOPS has what is remembered.
    """
    frame, state = memory[at + c.LINK], memory[at + c.AUTOMATON]
    first, second = int(memory[at + c.HASH_1]), int(memory[at + c.HASH_2])
    for k in range(voc[voc[layout.TOKEN_START] + token], voc[voc[layout.TOKEN_START] + token + 1]):
        byte = voc[voc[layout.TOKEN_BYTES] + k]
        if byte in (QUOTE, BACKSLASH):
            return True
        state = next_state(automata, automaton, state, byte)
        if state == 0:
            return False
        first, second = next_hash(first, HASH_FACTOR_1, int(byte)), next_hash(second, HASH_FACTOR_2, int(byte))
        left = n_left(automata, automaton, state)
        # PERF: where one key is left it mostly ends here
        is_new = (
            left == 1
            and end_of(automata, automaton, state) != 0
            and not has_bit(work, work[c.LOOPS], first & (BITS_OF_HASH - 1))
        )
        if is_new or left > memory[frame + c.N_OTHER]:
            continue
        if not is_key_left(automata, automaton, state, memory, frame, first, second):
            return True
    return False


@kernel
def note_openers(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, link: int, may_take_long: bool
) -> int:
    """Add to the bits at LEVELS the openers to be read, for the frames of a link and around it.

    Returns the number of rows of which there were some, or minus an error.
    """
    size = frames_around(memory, work, link)
    n_rows = 0 if size >= 0 else add_bits(voc, work, 0)  # more frames than fit: any opener may be refused
    for number in range(size):
        frame = work[work[c.FRONT_1] + number]
        if memory[frame + c.N_SCARCE] > 0:
            automaton = table[memory[frame + c.SHAPE] + layout.KEY_AUTOMATON]
            row = scarce_row(voc, automata, automaton, 0, memory[frame + c.N_SCARCE], work, may_take_long)
            if row < 0:
                return row
            n_rows += add_bits(voc, work, row)
    return n_rows


@kernel
def add_bits(voc: Int32, work: Int32, row: int) -> int:
    """`note_openers` of a row of openers; 0 for all. Returns 1, or 0 if it has none."""
    if row > 0 and work[row] == 0:
        return 0
    for k in range((voc[layout.N_OPENERS] + 31) >> 5):
        work[work[c.LEVELS] + k] |= work[row + 1 + k] if row > 0 else -1
    return 1


@kernel
def scarce_row(
    voc: Int32, automata: Int32, automaton: int, start: int, n: int, work: Int32, may_take_long: bool
) -> int:
    """The offset of a row, kept or new, of the tokens that come to a state from which n keys go on.

    start : the state before the tokens; 0 for a row of openers: whether there are any, and their
        bits.

    So do some more. Returns minus an error if there is none.
    """
    most = 1
    while most < n:
        most *= 2
    key = work[c.KEY_BUFFER]
    work[key], work[key + 1] = SCARCE, automata[automaton + layout.AUTOMATON_ID]
    work[key + 2], work[key + 3] = start, most
    slot = find(work, 4)
    if slot >= 0:
        return work[slot + 2]
    if not may_take_long:
        return -NOT_QUICK
    keep_room(work)
    if start == 0:
        row = write_opener_row(voc, automata, automaton, most, work)
    else:
        row = write_scarce_row(voc, automata, automaton, start, most, work)
    if row > 0:
        insert(work, find(work, 4), 4, row)
    return row


@kernel
def write_opener_row(voc: Int32, automata: Int32, automaton: int, most: int, work: Int32) -> int:
    """Write a row of openers at the end of the kept data. Returns its offset."""
    row = work[c.DATA_TOP]
    n_words = (voc[layout.N_OPENERS] + 31) >> 5
    for k in range(1 + n_words):
        work[row + k] = 0
    for number in range(voc[layout.N_OPENERS]):
        token = voc[voc[layout.OPENERS] + number]
        state, left, has_escape = 0, ENDLESS, False
        for k in range(voc[voc[layout.TOKEN_START] + token], voc[voc[layout.TOKEN_START] + token + 1]):
            byte = voc[voc[layout.TOKEN_BYTES] + k]
            has_escape = has_escape or byte == BACKSLASH
            if byte == QUOTE:
                state, left = 1, ENDLESS
            elif state != 0:
                state = next_state(automata, automaton, state, byte)
                left = min(left, n_left(automata, automaton, state)) if state != 0 else left
        if has_escape or left <= most:
            set_bit(work, row + 1, number)
            work[row] = 1
    work[c.DATA_TOP] = row + 1 + n_words
    return row


@kernel
def comes_near(voc: Int32, automata: Int32, automaton: int, start: int, most: int, token: int) -> bool:
    """Whether a token comes from a state to one from which at most so many keys go on.

    True for some that do not: for those that end within an escape, or have a pair of them.
    """
    state = start
    at, end = voc[voc[layout.TOKEN_START] + token], voc[voc[layout.TOKEN_START] + token + 1]
    at, end = at + voc[layout.TOKEN_BYTES], end + voc[layout.TOKEN_BYTES]
    while at < end:
        code = int(voc[at])
        if code == QUOTE:
            return False
        size = 1
        if code == BACKSLASH:
            size = 6 if at + 1 < end and voc[at + 1] == LETTER_U else 2
            if at + size > end:
                return least_left(automata, automaton, state) <= most
            code = unescaped(voc, at, size)
            if code < 0 or FIRST_SURROGATE <= code <= LAST_SURROGATE:
                return code >= 0 and least_left(automata, automaton, state) <= most
        n = 0 if size == 1 else n_behind_first(code)
        for k in range(n, -1, -1):
            state = next_state(automata, automaton, state, byte_of(code, n, k))
        if state == 0:
            return False
        if n_left(automata, automaton, state) <= most:
            return True
        at += size
    return False


@kernel
def unescaped(voc: Int32, at: int, size: int) -> int:
    """The unit that an escape of so many bytes spells; -1 if it is none."""
    if size == 2:
        return unescaped_letter(int(voc[at + 1]))
    code = 0
    for k in range(2, 6):
        digit = hex_digit(int(voc[at + k]))
        if digit < 0:
            return -1
        code = code << 4 | digit
    return code


@kernel
def write_scarce_row(voc: Int32, automata: Int32, automaton: int, start: int, most: int, work: Int32) -> int:
    """Write the row of the tokens that `scarce_row` tells at the end of the kept data.

    most : of the keys that go on from a state that may be scarce.

    Returns its offset, or -TOO_MANY.
    """
    trie, row, n_words = voc[layout.FULL], work[c.DATA_TOP], voc[layout.N_ROW_WORDS]
    ends, bytes_ = voc[trie + layout.TRIE_END], voc[trie + layout.TRIE_BYTE]
    tokens, ids = voc[trie + layout.TRIE_TOKENS], voc[trie + layout.TRIE_IDS]
    for k in range(n_words):
        work[row + k] = 0
    level, size, node = work[c.LEVELS], voc[trie + layout.TRIE_SIZE], 1
    work[level + LEVEL_END] = size
    work[level + LEVEL_STATE] = start
    while node < size:
        while node >= work[level + LEVEL_END]:
            level -= LEVEL
        byte, end = voc[bytes_ + node], voc[ends + node]
        state = 0
        if byte != QUOTE and byte != BACKSLASH and byte >= SPACE:
            state = next_state(automata, automaton, work[level + LEVEL_STATE], byte)
        left = FOR_EVER if state == 0 else n_left(automata, automaton, state)
        if byte == BACKSLASH or left <= most:
            for k in range(voc[tokens + node], voc[tokens + end]):
                if byte != BACKSLASH or comes_near(voc, automata, automaton, start, most, voc[ids + k]):
                    set_bit(work, row, voc[ids + k])
        if state == 0 or left <= most or left == FOR_EVER:
            node = end
            continue
        node += 1
        if end > node:
            level += LEVEL
            if level + LEVEL > work[c.LEVELS_END]:
                return -c.TOO_MANY
            work[level + LEVEL_END] = end
            work[level + LEVEL_STATE] = state
    work[c.DATA_TOP] = row + n_words
    return row
