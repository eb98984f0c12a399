"""Masks: of a thread, made or kept; of a text, the union over its threads."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.schema.spacing import EITHER
from maskwright.decoding.engine.quick import NOT_QUICK
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import has_bit, set_bit
from maskwright.decoding.schema._begin_kernels import begin_thread
from maskwright.decoding.schema._frame_kernels import begin_marks, frame_at, note_mark
from maskwright.decoding.schema._literal_kernels import literal_length, narrow
from maskwright.decoding.schema._memo_kernels import (
    answer,
    ask,
    characters_left,
    find,
    insert,
    keep_room,
    pieces_read,
    write_thread_key,
)
from maskwright.decoding.schema._row_kernels import row_of
from maskwright.decoding.schema._step_kernels import step
from maskwright.decoding.schema._walk_kernels import CHOSEN, LEVEL, note_bytes, read_threads, walk
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, QUOTE

MASK, TAIL = 1, 2
"""What results are kept under a thread's key."""
MOST_LISTED, MOST_BESIDE = 600, 16
"""The most ids of a mask, alone and beside a row; where there are more, all becomes a row."""
UNITED = -6
"""What begins the key of a row that is a union: of rows and ids."""


@kernel
def tails_of(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32) -> int:
    """The tails that the thread of the first level can read, kept or new.

    A tail is what stands in a token behind its first quotation mark. Returns the offset of their
    bits, or -1 - an error. What they depend on is marked.
    """
    at, saved = work[c.LEVELS] + LEVEL, work[c.SAVED]
    link = work[at + c.LINK]
    n = write_thread_key(voc, table, automata, memory, work, at, TAIL)
    found, asked = ask(voc, table, memory, work, link, n)
    if found < 0:
        for k in range(c.N_MARKS):
            work[saved + k] = memory[c.LIMIT + k]
        for k in range(c.THREAD):
            work[saved + c.N_MARKS + k] = work[at + k]
        begin_marks(memory, link)
        n_found = work[c.N_FOUND]
        code = walk(voc, voc[layout.TAILS], table, automata, memory, work)
        wanted = pieces_read(memory)
        for k in range(c.N_MARKS):
            memory[c.LIMIT + k] = work[saved + k]
        if code != c.OK:
            return -1 - code
        found = work[c.DATA_TOP]
        n_words = (voc[layout.N_TAILS] + 31) >> 5
        for k in range(n_words):
            work[found + k] = 0
        for k in range(n_found, work[c.N_FOUND]):
            set_bit(work, found, work[work[c.LIST] + k])
        work[c.N_FOUND] = n_found
        work[c.DATA_TOP] = found + n_words
        if wanted < 0:
            memory[c.IS_DEEP] = 1
            return found
        for k in range(c.THREAD):  # the key again: the walk has overwritten the thread
            work[at + k] = work[saved + c.N_MARKS + k]
        n = write_thread_key(voc, table, automata, memory, work, at, TAIL)
        answer(voc, table, memory, work, link, n, wanted, found)
        asked |= wanted
    while asked != 0:  # for each depth; all of its frames are marked alike
        frame = frame_at(memory, link, 0)
        if asked & 3 != 0:
            note_mark(memory, frame, 2 if asked & 2 else 1)
        link = memory[frame + c.PARENT]
        asked >>= 2
    return found


@kernel
def place_thread(work: Int32, at: int) -> int:
    """Put a thread where a walk begins. Returns its offset there."""
    to = work[c.LEVELS] + LEVEL
    for k in range(c.THREAD):
        work[to + k] = work[at + k]
    return to


@kernel
def tails_behind(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, is_other: bool) -> int:
    """The tails behind a string or key that ends here, or that is no named key.

    Returns their bits' offset; 0 if the key may not end; -1 - an error.
    """
    here, to = work[c.LEVELS] + LEVEL + c.THREAD, work[c.LEVELS] + LEVEL
    for k in range(c.THREAD):
        work[here + k] = work[at + k]
    if is_other:
        work[here + c.IS_OFF] = 1
    if work[at + c.MODE] == c.STRING:
        begin_thread(work, to, work[at + c.LINK], c.AFTER, 0)
    elif step(table, automata, memory, work, here, QUOTE, to) == 0:
        return 0
    return tails_of(voc, table, automata, memory, work)


@kernel
def list_closers(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int) -> int:
    """List the tokens that end a string or key of any content. Returns OK or an error."""
    shape, length, is_value = work[at + c.SHAPE_OF], work[at + c.LENGTH], work[at + c.MODE] == c.STRING
    least, most = (
        table[shape + layout.STRING_LEAST] if is_value else 0,
        table[shape + layout.STRING_MOST] if is_value else -1,
    )
    is_named = not is_value and work[at + c.IS_OFF] == 0
    here = tails_behind(voc, table, automata, memory, work, at, False)
    other = tails_behind(voc, table, automata, memory, work, at, True) if is_named and here >= 0 else here
    if other < 0:
        return -1 - other
    literals, chosen = table[shape + layout.KEYS], work[c.LEVELS] + CHOSEN
    if is_named:
        note_bytes(table, literals, work[at + c.LOW], work[at + c.HIGH], work[at + c.DEPTH], work, chosen)
    n, closer = work[c.N_FOUND], voc[layout.CLOSERS] - layout.CLOSER
    for _ in range(voc[layout.N_CLOSERS]):
        closer += layout.CLOSER
        token, total, size = voc[closer], length + voc[closer + 2], voc[closer + 3]
        if total < least or 0 <= most < total:
            continue
        tails = here if size == 0 else other
        data = voc[layout.TOKEN_BYTES] + voc[voc[layout.TOKEN_START] + token]
        if is_named and size > 0 and has_bit(work, chosen, voc[data]):
            # a token that comes to a named key, or that has escapes, is looked at below
            low, high, depth = work[at + c.LOW], work[at + c.HIGH], work[at + c.DEPTH]
            for k in range(size):
                byte = voc[data + k]
                if byte == BACKSLASH:
                    tails = -1
                    break
                low, high = narrow(table, literals, low, high, depth, byte)
                if low >= high:
                    break
                depth += 1
            if low < high and literal_length(table, literals, low) == depth:
                tails = -1
        result = 1 if tails > 0 and has_bit(work, tails, voc[closer + 1]) else 0
        if tails < 0:
            result = can_read(voc, table, automata, memory, work, at, token)
        if result < 0:
            return -1 - result
        if result != 0:
            work[work[c.LIST] + n] = token
            n += 1
    work[c.N_FOUND] = n
    return c.OK


@kernel
def can_read(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, token: int) -> int:
    """1 if a thread can read a token, else 0, or -1 - an error.

    It is for the few tokens that nothing faster answers for.
    """
    top, here, data = memory[c.TOP], place_thread(work, at), voc[layout.TOKEN_BYTES]
    there = here + (c.MOST_THREADS + 1) * c.THREAD
    start, end = data + voc[voc[layout.TOKEN_START] + token], data + voc[voc[layout.TOKEN_START] + token + 1]
    n = read_threads(table, automata, memory, work, here, 1, there, voc, start, end)
    memory[c.TOP] = top
    return 1 if n > 0 else 0 if n == -1 - c.ILLEGAL else n


@kernel
def is_spacing_free(table: Int32) -> bool:
    """Whether any white space may stand between tokens of JSON, and none need stand."""
    row = table[layout.SPACING]
    for column in range(4):
        if table[row + column] != 0:
            return False
    return table[row + 4] == EITHER


@kernel
def list_tokens(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, mask: int) -> int:
    """Make the mask of a thread: its rows at an offset of `work`, its ids in the list.

    Returns OK or an error.
    """
    mode, shape = work[at + c.MODE], work[at + c.SHAPE_OF]
    if mode == c.NUMBER and table[layout.IS_TEXT] != 0:
        text = (table[shape + layout.NUMBER_AUTOMATON], -1, work[at + c.AUTOMATON], 0, -1, True)
        return add_row(work, mask, 1, row_of(voc, automata, text, work))
    if mode != c.STRING and mode != c.KEY_STRING:
        place_thread(work, at)
        # PERF: white space leaves such a thread as it is, so what stands behind it is walked once
        is_behind = mode < c.STRING and is_spacing_free(table)
        return walk(voc, voc[layout.BEHIND_SPACE if is_behind else layout.STRUCTURE], table, automata, memory, work)
    is_literal = mode == c.STRING and table[shape + layout.KIND] == layout.STRING_LITERALS
    is_plain = work[at + c.ESCAPE] == c.NO_ESCAPE and work[at + c.UTF8] == 0
    if not is_plain or is_literal or (mode == c.KEY_STRING and work[at + c.LENGTH] == 0):
        place_thread(work, at)
        return walk(voc, voc[layout.FULL], table, automata, memory, work)
    is_value, least, rest, lengths = mode == c.STRING, 0, -1, -1
    automaton = table[shape + (layout.STRING_AUTOMATON if is_value else layout.KEY_AUTOMATON)]
    if is_value:
        least, rest = characters_left(voc, table, automata, work, at)
        lengths = table[shape + layout.STRING_LENGTHS]
    if automaton < 0:
        is_short = 0 <= rest <= voc[layout.N_LENGTHS]
        add_row(work, mask, 0, voc[voc[layout.LENGTH_ROWS] + rest] if is_short else voc[layout.CONTENT_ROW])
        if is_value or (table[shape + layout.N_WANTED] == 0 and table[shape + layout.ALTERNATIVES] < 0):
            return list_closers(voc, table, automata, memory, work, at)  # else several threads stand behind a key
    elif work[at + c.AUTOMATON] != 0:
        what = (automaton, lengths, work[at + c.AUTOMATON], least, rest, False)
        code = add_row(work, mask, 1, row_of(voc, automata, what, work))
        if code != c.OK:
            return code
    place_thread(work, at)
    code = walk(voc, voc[layout.SPECIAL], table, automata, memory, work)
    if code != c.OK or is_value or work[at + c.IS_OFF] != 0:
        return code
    # the named keys' own tokens: as if there were no others
    to = place_thread(work, at)
    work[to + c.LENGTH] = 0
    return walk(voc, voc[layout.FULL], table, automata, memory, work)


@kernel
def add_row(work: Int32, mask: int, is_kept: int, row: int) -> int:
    """Add a row to a mask. Returns OK, or the error that the row is."""
    if row < 0:
        return -row
    at = mask + c.MASK_ROWS + 2 * work[mask + c.N_MASK_ROWS]
    work[at], work[at + 1] = is_kept, row
    work[mask + c.N_MASK_ROWS] += 1
    return c.OK


@kernel
def make_mask(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int) -> int:
    """The mask of a thread, newly made. Returns its offset, or -1 - an error."""
    header = work[c.LIST] - c.MASK_HEADER  # the header in the making stands before the list
    for k in range(c.MASK_HEADER):
        work[header + k] = 0
    work[c.N_FOUND] = 0
    top = memory[c.TOP]
    code = list_tokens(voc, table, automata, memory, work, at, header)
    memory[c.TOP] = top
    if code != c.OK:
        return -1 - code
    n = work[c.N_FOUND]
    work[header + c.N_IDS] = n
    if n > MOST_LISTED or (n > MOST_BESIDE and work[header + c.N_MASK_ROWS] > 0):
        row = unite_rows(voc, work, header)
        work[header + c.N_MASK_ROWS] = 0
        add_row(work, header, 1, row)
        work[header + c.N_IDS], n = 0, 0
    work[header + c.IS_ANY] = 1 if n > 0 else has_any(voc, work, header)
    mask = work[c.DATA_TOP]
    for k in range(c.MASK_HEADER + n):
        work[mask + k] = work[header + k]
    work[c.DATA_TOP] = mask + c.MASK_HEADER + n
    return mask


@kernel
def unite_rows(voc: Int32, work: Int32, mask: int) -> int:
    """The offset of a row, kept or new, with the tokens of a mask's rows and ids.

    PERF: so a mask is one row, and equal masks are the same one, which is written once.
    """
    key, size, slot = work[c.KEY_BUFFER], 1 + c.MASK_HEADER + work[mask + c.N_IDS], 0
    is_kept = key + size < work[c.KEY_END]
    if is_kept:
        work[key] = UNITED
        for k in range(size - 1):
            work[key + 1 + k] = work[mask + k]
        slot = find(work, size)
        if slot >= 0:
            return work[slot + 2]
    row, n_words = work[c.DATA_TOP], voc[layout.N_ROW_WORDS]
    write_mask(voc, work, work[row : row + n_words], mask, False, -1)
    work[c.DATA_TOP] = row + n_words
    if is_kept:
        insert(work, slot, size, row)
    return row


@kernel
def write_row_of_mask(voc: Int32, work: Int32, words: Int32, is_kept: bool, row: int, is_added: bool) -> None:
    """Write a row of bits, or add it to what is written. is_kept : whether it is in `work`.

    PERF: over views the compiler vectorises the loops. With offsets in the indices it does not.
    """
    n_words = voc[layout.N_ROW_WORDS]
    bits = work[row : row + n_words] if is_kept else voc[row : row + n_words]
    target = words[:n_words]
    if is_added:
        for k in range(n_words):
            target[k] |= bits[k]
    else:
        for k in range(n_words):
            target[k] = bits[k]


@kernel
def write_mask(voc: Int32, work: Int32, words: Int32, mask: int, is_added: bool, last: int) -> int:
    """Write a mask, or add it to what is written. Returns what stands for the row written last.

    last : that of before; -1 for none. Many threads have the same row.
    """
    n_rows = work[mask + c.N_MASK_ROWS]
    if n_rows == 0 and not is_added:
        for k in range(voc[layout.N_ROW_WORDS]):
            words[k] = 0
    for number in range(n_rows):
        is_kept, row = work[mask + c.MASK_ROWS + 2 * number], work[mask + c.MASK_ROWS + 2 * number + 1]
        if 2 * row + is_kept != last:
            last = 2 * row + is_kept
            write_row_of_mask(voc, work, words, is_kept != 0, row, is_added or number > 0)
    ids = mask + c.MASK_HEADER
    for k in range(work[mask + c.N_IDS]):
        set_bit(words, 0, work[ids + k])
    return last


@kernel
def has_any(voc: Int32, work: Int32, mask: int) -> int:
    """1 if a row of a mask has a token, else 0."""
    for k in range(work[mask + c.N_MASK_ROWS]):
        is_kept, row = work[mask + c.MASK_ROWS + 2 * k], work[mask + c.MASK_ROWS + 2 * k + 1]
        for word in range(voc[layout.N_ROW_WORDS]):
            if (work[row + word] if is_kept else voc[row + word]) != 0:
                return 1
    return 0


@kernel
def mask_of(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, may_take_long: bool) -> int:
    """The mask of a thread, kept or new. Returns its offset, or -1 - an error.

    may_take_long : whether a new one may be made; NOT_QUICK is the error where not.
    """
    link = work[at + c.LINK]
    n = write_thread_key(voc, table, automata, memory, work, at, MASK)
    found, _ = ask(voc, table, memory, work, link, n)
    if found >= 0:
        return found
    if not may_take_long:
        return -1 - NOT_QUICK
    keep_room(work)
    begin_marks(memory, link)
    work[c.N_MISSES] += 1
    found = make_mask(voc, table, automata, memory, work, at)
    memory[c.LIMIT] = 0
    if found >= 0:
        # the key again, since other results have been kept meanwhile
        n = write_thread_key(voc, table, automata, memory, work, at, MASK)
        answer(voc, table, memory, work, link, n, pieces_read(memory), found)
    return found
