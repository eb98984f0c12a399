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
from maskwright.decoding.schema._merge_kernels import merge
from maskwright.decoding.schema._row_kernels import row_of
from maskwright.decoding.schema._step_kernels import step
from maskwright.decoding.schema._walk_kernels import CHOSEN, LEVEL, note_bytes, room_for_byte, walk
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
    found, asked, n, _ = ask(voc, table, memory, work, link, n)
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
        # the key again: the walk has overwritten thread and buffer
        for k in range(c.THREAD):
            work[at + k] = work[saved + c.N_MARKS + k]
        n = write_thread_key(voc, table, automata, memory, work, at, TAIL)
        _, asked, n, _ = ask(voc, table, memory, work, link, n)
        if n >= 0:
            answer(voc, table, memory, work, link, n, asked, wanted, found)
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
def list_closers(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int) -> int:
    """List the tokens that end a string of any content. Returns OK or an error."""
    shape, length = work[at + c.SHAPE_OF], work[at + c.LENGTH]
    least, most = table[shape + layout.STRING_LEAST], table[shape + layout.STRING_MOST]
    begin_thread(work, work[c.LEVELS] + LEVEL, work[at + c.LINK], c.AFTER, 0)
    tails = tails_of(voc, table, automata, memory, work)
    if tails < 0:
        return -1 - tails
    n, closer = work[c.N_FOUND], voc[layout.CLOSERS]
    for _ in range(voc[layout.N_CLOSERS]):
        tail = voc[closer + 1]
        if work[tails + (tail >> 5)] >> (tail & 31) & 1 != 0:
            total = length + voc[closer + 2]
            if total >= least and (most < 0 or total <= most):
                work[work[c.LIST] + n] = voc[closer]
                n += 1
        closer += layout.CLOSER
    work[c.N_FOUND] = n
    return c.OK


@kernel
def tails_behind_key(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, is_other: bool
) -> int:
    """The tails behind a key that ends here, or that is no named one. Returns their bits' offset.

    0 if the key may not end; -1 - an error.
    """
    here = work[c.LEVELS] + LEVEL + c.THREAD
    for k in range(c.THREAD):
        work[here + k] = work[at + k]
    if is_other:
        work[here + c.IS_OFF] = 1
    if step(table, automata, memory, work, here, QUOTE, work[c.LEVELS] + LEVEL) == 0:
        return 0
    return tails_of(voc, table, automata, memory, work)


@kernel
def list_key_closers(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int) -> int:
    """List the tokens that end a key that any content may make. Returns OK or an error."""
    shape = work[at + c.SHAPE_OF]
    is_off = work[at + c.IS_OFF] != 0
    here = tails_behind_key(voc, table, automata, memory, work, at, False)
    if here < 0:
        return -1 - here
    other = here
    if not is_off:
        other = tails_behind_key(voc, table, automata, memory, work, at, True)
        if other < 0:
            return -1 - other
    literals, low, high, depth = table[shape + layout.KEYS], work[at + c.LOW], work[at + c.HIGH], work[at + c.DEPTH]
    chosen = work[c.LEVELS] + CHOSEN
    note_bytes(table, literals, low, high, depth, work, chosen)
    n, closer = work[c.N_FOUND], voc[layout.CLOSERS]
    for _ in range(voc[layout.N_CLOSERS]):
        token, tail, size = voc[closer], voc[closer + 1], voc[closer + 3]
        tails = here if size == 0 else other
        data = voc[layout.TOKEN_BYTES] + voc[voc[layout.TOKEN_START] + token]
        if not is_off and size > 0 and has_bit(work, chosen, voc[data]):
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
        is_live = tails > 0 and work[tails + (tail >> 5)] >> (tail & 31) & 1 != 0
        if tails < 0:
            result = can_read(voc, table, automata, memory, work, at, token)
            if result < 0:
                return -1 - result
            is_live = result == 1
        if is_live:
            work[work[c.LIST] + n] = token
            n += 1
        closer += layout.CLOSER
    work[c.N_FOUND] = n
    return c.OK


@kernel
def can_read(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, token: int) -> int:
    """1 if a thread can read a token, else 0, or -1 - an error.

    It is for the few tokens that nothing faster answers for.
    """
    top = memory[c.TOP]
    here = work[c.LEVELS] + LEVEL
    there = here + (c.MOST_THREADS + 1) * c.THREAD
    for k in range(c.THREAD):
        work[here + k] = work[at + k]
    n = 1
    for k in range(voc[voc[layout.TOKEN_START] + token], voc[voc[layout.TOKEN_START] + token + 1]):
        if memory[c.TOP] + room_for_byte(table, memory, work, here, n) > len(memory):
            memory[c.TOP] = top
            return -1 - c.NO_ROOM
        found, byte = 0, voc[voc[layout.TOKEN_BYTES] + k]
        for thread in range(n):
            found += step(table, automata, memory, work, here + thread * c.THREAD, byte, there + found * c.THREAD)
            if found > c.MOST_READINGS:
                memory[c.TOP] = top
                return -1 - c.TOO_MANY
        if found == 0:
            memory[c.TOP] = top
            return 0
        n = found
        if found > 1:
            n = merge(table, memory, work, there, found)
            if n < 0:
                memory[c.TOP] = top
                return n
        for word in range(n * c.THREAD):
            work[here + word] = work[there + word]
    memory[c.TOP] = top
    return 1


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
    rows = mask + c.MASK_ROWS
    if mode == c.NUMBER and table[layout.IS_TEXT] != 0:
        row = row_of(
            voc, automata, table[shape + layout.NUMBER_AUTOMATON], -1, work[at + c.AUTOMATON], 0, -1, True, work
        )
        return add_row(work, mask, rows, 1, row)
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
    if mode == c.STRING:
        automaton = table[shape + layout.STRING_AUTOMATON]
        if automaton >= 0:
            least, rest = characters_left(voc, table, automata, work, at)
            lengths = table[shape + layout.STRING_LENGTHS]
            row = row_of(voc, automata, automaton, lengths, work[at + c.AUTOMATON], least, rest, False, work)
            code = add_row(work, mask, rows, 1, row)
            if code != c.OK:
                return code
            place_thread(work, at)
            return walk(voc, voc[layout.SPECIAL], table, automata, memory, work)
        rest = table[shape + layout.STRING_MOST] - work[at + c.LENGTH]
        row = voc[layout.CONTENT_ROW]
        if table[shape + layout.STRING_MOST] >= 0 and rest <= voc[layout.N_LENGTHS]:
            row = voc[voc[layout.LENGTH_ROWS] + rest]
        add_row(work, mask, rows, 0, row)
        return list_closers(voc, table, automata, memory, work, at)
    automaton = table[shape + layout.KEY_AUTOMATON]
    if automaton < 0:
        add_row(work, mask, rows, 0, voc[layout.CONTENT_ROW])
        if (
            table[shape + layout.N_WANTED] == 0 and table[shape + layout.ALTERNATIVES] < 0
        ):  # else several threads stand behind a key
            return list_key_closers(voc, table, automata, memory, work, at)
    elif work[at + c.AUTOMATON] != 0:
        row = row_of(voc, automata, automaton, -1, work[at + c.AUTOMATON], 0, -1, False, work)
        code = add_row(work, mask, rows, 1, row)
        if code != c.OK:
            return code
    place_thread(work, at)
    code = walk(voc, voc[layout.SPECIAL], table, automata, memory, work)
    if code != c.OK or work[at + c.IS_OFF] != 0:
        return code
    # the named keys' own tokens: as if there were no others
    to = place_thread(work, at)
    work[to + c.LENGTH] = 0
    return walk(voc, voc[layout.FULL], table, automata, memory, work)


@kernel
def add_row(work: Int32, mask: int, rows: int, is_kept: int, row: int) -> int:
    """Add a row to a mask. Returns OK, or the error that the row is."""
    if row < 0:
        return -row
    n = work[mask + c.N_MASK_ROWS]
    work[rows + 2 * n] = is_kept
    work[rows + 2 * n + 1] = row
    work[mask + c.N_MASK_ROWS] = n + 1
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
    if n > MOST_LISTED or (n > MOST_BESIDE and work[header + c.N_MASK_ROWS] > 0):
        row = unite_rows(voc, work, header)
        work[header + c.N_MASK_ROWS] = 0
        add_row(work, header, header + c.MASK_ROWS, 1, row)
        n = 0
    work[header + c.N_IDS] = n
    work[header + c.IS_ANY] = 1 if n > 0 else has_any(voc, work, header)
    mask = work[c.DATA_TOP]
    for k in range(c.MASK_HEADER + n):
        work[mask + k] = work[header + k]
    work[c.DATA_TOP] = mask + c.MASK_HEADER + n
    return mask


@kernel
def unite_rows(voc: Int32, work: Int32, mask: int) -> int:
    """The offset of a row, kept or new, with the tokens of a mask's rows and of the list.

    PERF: so a mask is one row, and equal masks are the same one, which is written once.
    """
    key, n_rows, n = work[c.KEY_BUFFER], work[mask + c.N_MASK_ROWS], work[c.N_FOUND]
    size = 1 + 2 * n_rows + n
    is_kept = key + size < work[c.KEY_END]
    slot = 0
    if is_kept:
        work[key] = UNITED
        for k in range(2 * n_rows):
            work[key + 1 + k] = work[mask + c.MASK_ROWS + k]
        for k in range(n):
            work[key + 1 + 2 * n_rows + k] = work[work[c.LIST] + k]
        slot = find(work, size)
        if slot >= 0:
            return work[slot + 2]
    row, n_words = work[c.DATA_TOP], voc[layout.N_ROW_WORDS]
    words = work[row : row + n_words]
    for k in range(n_words):
        words[k] = 0
    for number in range(n_rows):
        is_in_work, at = work[mask + c.MASK_ROWS + 2 * number], work[mask + c.MASK_ROWS + 2 * number + 1]
        bits = work[at : at + n_words] if is_in_work != 0 else voc[at : at + n_words]
        for k in range(n_words):
            words[k] |= bits[k]
    for k in range(n):
        set_bit(work, row, work[work[c.LIST] + k])
    work[c.DATA_TOP] = row + n_words
    if is_kept:
        insert(work, slot, size, row)
    return row


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
    found, asked, n, _ = ask(voc, table, memory, work, link, n)
    if found >= 0:
        return found
    if not may_take_long:
        return -1 - NOT_QUICK
    keep_room(work)
    begin_marks(memory, link)
    work[c.N_MISSES] += 1
    found = make_mask(voc, table, automata, memory, work, at)
    memory[c.LIMIT] = 0
    if found < 0:
        return found
    wanted = pieces_read(memory)
    if wanted >= 0:
        # the key again, since other results have been kept meanwhile
        n = write_thread_key(voc, table, automata, memory, work, at, MASK)
        _, asked, n, _ = ask(voc, table, memory, work, link, n)
        if n >= 0:
            answer(voc, table, memory, work, link, n, asked, wanted, found)
    return found
