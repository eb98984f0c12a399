"""A terminal held to names: can a text under way still spell one, and which tokens do?

Arguments are as in `_lexeme_kernels`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._draft_kernels import (
    begin_draft,
    feed,
    feed_newline,
)
from maskwright.decoding.engine._end_kernels import can_go_on, close_blocks, end_draft
from maskwright.decoding.engine._lexer_kernels import read_byte
from maskwright.decoding.engine._stack_kernels import below_of
from maskwright.decoding.names import layout as of
from maskwright.decoding.names._lexeme_kernels import (
    REGION,
    accepts,
    begin_row,
    end_lexeme,
    is_dropped,
    load_draft,
    n_possible,
    read_lexemes,
    read_terminal,
    save_draft,
    start_of,
)
from maskwright.maskstore.table import schema


@kernel
def can_come(table, memory, lexer, names, rows):  # type: ignore[no-untyped-def]
    """Whether a name, another terminal, or the end of the text can come behind the draft.

    Returns OK, ILLEGAL, WANTS_COUNTS or an error.
    """
    start = start_of(table, memory, lexer)
    if start < 0:
        return start
    lives = np.int64(lexer[of.LIVE])
    for i in range(lexer[lexer[of.LIVE_START] + start], lexer[lexer[of.LIVE_START] + start + 1]):
        terminal = np.int64(lexer[lives + i])
        if is_dropped(memory, lexer, terminal):
            continue
        if terminal == names[of.TERMINAL]:
            possible = n_possible(names, start, np.int64(0), np.int64(names[of.N_NAMES]))
            if possible < 0:
                rows[0] = start
                return np.int64(of.WANTS_COUNTS)
            if possible == 0:
                continue
        code = accepts(table, memory, terminal)
        if code != c.ILLEGAL:
            return code
    used = memory[REGION + c.DRAFT_USED]
    stacks = memory[REGION + c.DRAFT_STACKS]
    code = np.int64(close_blocks(table, memory, REGION))
    memory[REGION + c.DRAFT_USED] = used
    memory[REGION + c.DRAFT_STACKS] = stacks
    return code


@kernel
def can_come_on_a_line(table, memory, lexer, names, rows, spare):  # type: ignore[no-untyped-def]
    """`can_come` behind the layout's newline, which may come to any column. Changes the draft.

    spare : the index of a row to write to.
    """
    code = feed_newline(table, memory, REGION)
    if code != c.OK:
        return code
    save_draft(memory, rows, spare)
    code = feed(table, memory, REGION, np.int64(table[schema.INDENT]))
    if code == c.OK:
        code = can_come(table, memory, lexer, names, rows)
    load_draft(memory, rows, spare)
    arena = REGION + np.int64(memory[REGION + c.ARENA])
    indents = np.int64(memory[REGION + c.DRAFT_INDENTS])
    while code == c.ILLEGAL:
        code = can_come(table, memory, lexer, names, rows)
        indents = below_of(memory, arena, indents)
        if code != c.ILLEGAL or indents < 0:
            break
        code = feed(table, memory, REGION, np.int64(table[schema.DEDENT]))
        if code != c.OK:
            return code
        memory[REGION + c.DRAFT_INDENTS] = indents
        code = np.int64(c.ILLEGAL)
    return code


@kernel
def can_come_behind(table, memory, lexer, names, rows, row, spare):  # type: ignore[no-untyped-def]
    """`can_come` once a lexeme that is not held, and is under way, has become one of its terminals.

    spare : the index of the first of two rows to write to.
    """
    state = np.int64(rows[row + of.STATE])
    save_draft(memory, rows, spare)
    answer = np.int64(c.ILLEGAL)
    first = np.int64(lexer[lexer[of.LIVE_START] + state])
    last = np.int64(lexer[lexer[of.LIVE_START] + state + 1])
    for i in range(first, last):
        terminal = np.int64(lexer[lexer[of.LIVE] + i])
        is_dropped_now = is_dropped(memory, lexer, terminal)
        if not is_dropped_now and lexer[lexer[of.KIND] + terminal] == of.NEWLINE_KIND:
            answer = can_come_on_a_line(table, memory, lexer, names, rows, spare + of.ROW_SIZE)
        elif not is_dropped_now:
            answer = read_terminal(table, memory, terminal)
            if answer == c.OK:
                answer = can_come(table, memory, lexer, names, rows)
        else:
            answer = can_come(table, memory, lexer, names, rows)
        load_draft(memory, rows, spare)
        if answer != c.ILLEGAL:
            break
    return answer


@kernel
def grown(table, memory, lexer, names, rows, row):  # type: ignore[no-untyped-def]
    """Whether the lexeme of a row, which is held, may become a name or another terminal.

    Returns OK, ILLEGAL, WANTS_COUNTS or an error.
    """
    state = np.int64(rows[row + of.STATE])
    lives = np.int64(lexer[of.LIVE])
    for i in range(lexer[lexer[of.LIVE_START] + state], lexer[lexer[of.LIVE_START] + state + 1]):
        terminal = np.int64(lexer[lives + i])
        if is_dropped(memory, lexer, terminal):
            code = can_come(table, memory, lexer, names, rows)
        elif terminal != names[of.TERMINAL]:
            code = accepts(table, memory, terminal)
        elif rows[row + of.LOW] == rows[row + of.HIGH]:
            continue
        else:
            start = start_of(table, memory, lexer)
            if start < 0:
                return start
            possible = n_possible(names, start, np.int64(rows[row + of.LOW]), np.int64(rows[row + of.HIGH]))
            if possible < 0:
                rows[0] = start
                return np.int64(of.WANTS_COUNTS)
            code = accepts(table, memory, terminal) if possible else np.int64(c.ILLEGAL)
        if code != c.ILLEGAL:
            return code
    return np.int64(c.ILLEGAL)


@kernel
def can_end_here(table, memory, data, typed, n, rows, spare):  # type: ignore[no-untyped-def]
    """Whether the text may end behind data[typed:n]: OK, ILLEGAL or an error.

    spare : the index of a row to write to.
    """
    save_draft(memory, rows, spare)
    begin_draft(memory, REGION)
    code = np.int64(c.OK)
    for at in range(typed, n):
        code = np.int64(read_byte(table, memory, REGION, np.int64(data[at])))
        if code != c.OK:
            break
    if code == c.OK:
        code = np.int64(end_draft(table, memory, REGION))
    load_draft(memory, rows, spare)
    return code


@kernel
def can_back_up(table, memory, lexer, data, n, rows, row, spare):  # type: ignore[no-untyped-def]
    """Whether the text goes on if the lexeme under way fails: the parser is asked, not the names.

    Returns OK, ILLEGAL or an error.

    spare : the index of a row to write to.
    """
    save_draft(memory, rows, spare)
    terminal = np.int64(rows[row + of.LAST_WINNER])
    code = np.int64(c.OK)
    if not is_dropped(memory, lexer, terminal):
        code = read_terminal(table, memory, terminal)
    memory[REGION + c.DRAFT_LEXER] = 0
    for at in range(rows[row + of.LAST_END], n):
        if code != c.OK:
            break
        code = np.int64(read_byte(table, memory, REGION, np.int64(data[at])))
    if code == c.OK:
        code = np.int64(can_go_on(table, memory, REGION))
    load_draft(memory, rows, spare)
    return code


@kernel
def read_again(table, memory, lexer, names, data, floor, rows, row, n):  # type: ignore[no-untyped-def]
    """End a lexeme that is not held where it could have ended last, and read what is behind it.

    Returns UNDECIDED, FREE, REFUSED or an error.
    """
    code = end_lexeme(table, memory, lexer, names, rows, row)
    if code != c.OK:
        return code
    return read_lexemes(table, memory, lexer, names, data, floor, rows, row, np.int64(rows[row + of.BEGIN]), n)


@kernel
def goes_on(  # type: ignore[no-untyped-def]
    table, memory, lexer, names, data, typed, floor, n, rows, row
):
    """Whether some continuation makes an undecided held lexeme a name, or another terminal.

    Rows behind `row` are written to. Returns OK, ILLEGAL, WANTS_COUNTS or an error.
    """
    spare = row + of.ROW_SIZE
    is_sure = (
        lexer[of.HAS_MODES] == 0 and n_possible(names, np.int64(lexer[lexer[of.UNDER_WAY]]), 0, names[of.N_NAMES]) > 0
    )
    while True:
        begin = np.int64(rows[row + of.BEGIN])
        winner = np.int64(rows[row + of.LAST_WINNER])
        can_fail = begin < n and winner >= 0 and rows[row + of.LAST_END] < n
        if begin < floor or begin == n:
            # the held lexeme begins behind data[:n], unless bytes from `floor` on are read again
            if is_sure and not (can_fail and floor < n):
                return np.int64(c.OK)
            if not can_fail:
                code = can_end_here(table, memory, data, typed, n, rows, spare)
                if code != c.ILLEGAL:
                    return code
            if begin == n:
                return can_come(table, memory, lexer, names, rows)
            code = can_come_behind(table, memory, lexer, names, rows, row, spare)
        else:
            code = grown(table, memory, lexer, names, rows, row)
        if code != c.ILLEGAL or not can_fail:
            return code
        if row + 4 * of.ROW_SIZE > rows.shape[0]:
            return np.int64(c.TOO_LONG)
        is_held = begin >= floor and not is_dropped(memory, lexer, winner)
        if is_held and winner == names[of.TERMINAL] and not rows[row + of.IS_NAME]:
            return np.int64(c.ILLEGAL)
        code = can_back_up(table, memory, lexer, data, n, rows, row, spare)
        if code != c.OK or is_held:
            return code
        # the held lexeme begins in what is read again, or behind it
        for i in range(of.ROW_SIZE):
            rows[spare + i] = rows[row + i]
        row, spare = spare, spare + of.ROW_SIZE
        code = read_again(table, memory, lexer, names, data, floor, rows, row, n)
        if code != of.UNDECIDED:
            return np.int64(c.OK if code == of.FREE else c.ILLEGAL if code == of.REFUSED else code)


@kernel(entry=True)
def read_held(
    table: Int32,
    memory: Int32,
    lexer: Int32,
    names: Int32,
    data: Int32,
    typed: int,
    floor: int,
    rows: Int32,
) -> int:
    """Read data[typed:], which the engine takes, behind a text whose terminal is held to names.

    Returns UNDECIDED, FREE, REFUSED, WANTS_COUNTS or an error. If UNDECIDED, the first row says
    which lexeme is under way then.

    typed, floor : as of `begin_row`.
    rows : (> 4 * ROW_SIZE,) int32; written.
    """
    n = np.int64(data.shape[0])
    code = begin_row(table, memory, lexer, names, data, np.int64(typed), np.int64(floor), rows)
    if code != of.UNDECIDED:
        return code
    code = read_lexemes(table, memory, lexer, names, data, np.int64(floor), rows, 0, np.int64(typed), n)
    if code != of.UNDECIDED:
        return code
    code = goes_on(table, memory, lexer, names, data, np.int64(typed), np.int64(floor), n, rows, 0)
    return np.int64(of.UNDECIDED if code == c.OK else of.REFUSED if code == c.ILLEGAL else code)


@kernel(entry=True)
def ends_held(
    table: Int32,
    memory: Int32,
    lexer: Int32,
    names: Int32,
    data: Int32,
    typed: int,
    floor: int,
    rows: Int32,
) -> int:
    """Whether a text may end as far as its held lexeme goes: OK, ILLEGAL or an error.

    The engine must say that it may end. Arguments as of `read_held`; `data` has `typed` bytes.
    """
    n = np.int64(data.shape[0])
    code = begin_row(table, memory, lexer, names, data, np.int64(typed), np.int64(floor), rows)
    while code == of.UNDECIDED:
        winner = np.int64(rows[of.LAST_WINNER])
        if rows[of.BEGIN] == n or winner < 0:
            return np.int64(c.OK)
        if rows[of.BEGIN] >= floor and not is_dropped(memory, lexer, winner):
            return np.int64(c.OK if winner != names[of.TERMINAL] or rows[of.IS_NAME] else c.ILLEGAL)
        if rows[of.LAST_END] == n:
            return np.int64(c.OK)
        code = read_again(table, memory, lexer, names, data, np.int64(floor), rows, 0, n)
    return np.int64(c.OK if code == of.FREE else c.ILLEGAL if code == of.REFUSED else code)


@kernel
def add_range(trie, words, first, last):  # type: ignore[no-untyped-def]
    """Set the bits of the tokens first to last - 1, in the order of their bytes."""
    ids = np.int64(trie[of.TRIE_IDS])
    for i in range(first, last):
        token = np.uint32(trie[ids + i])
        words[np.uint64(token >> np.uint32(5))] |= np.int32(np.uint32(1) << (token & np.uint32(31)))


@kernel
def is_hopeless(lexer, names, floor, rows, row):  # type: ignore[no-untyped-def]
    """Whether nothing behind a row is a name, or another terminal. False proves nothing."""
    if rows[row + of.BEGIN] < floor or rows[row + of.LOW] < rows[row + of.HIGH] or rows[row + of.IS_NAME]:
        return False
    if rows[row + of.LAST_WINNER] != names[of.TERMINAL] and rows[row + of.LAST_WINNER] >= 0:
        return False
    at = np.int64(lexer[of.LIVE_START]) + rows[row + of.STATE]
    return lexer[at + 1] - lexer[at] == 1 and lexer[lexer[of.LIVE] + lexer[at]] == names[of.TERMINAL]


@kernel(entry=True)
def narrow(
    table: Int32,
    memory: Int32,
    lexer: Int32,
    names: Int32,
    trie: Int32,
    data: Int32,
    typed: int,
    floor: int,
    rows: Int32,
    words: Int32,
) -> int:
    """Write the tokens that spell a name, or what is no name, whatever the grammar says of them.

    Returns OK, WANTS_COUNTS or an error. Tokens that the engine refuses may be among them. No token
    without bytes is.

    data : (typed + the bytes of the longest token,) int32; its first `typed` bytes are read.
    typed, floor : as of `begin_row`.
    rows : (ROW_SIZE * (the bytes of the longest token + 6),) int32; written.
    words : (n_words,) int32; written.
    """
    for w in range(words.shape[0]):
        words[w] = 0
    code = begin_row(table, memory, lexer, names, data, np.int64(typed), np.int64(floor), rows)
    if code != of.UNDECIDED:
        return code
    ends, firsts = np.int64(trie[of.TRIE_END]), np.int64(trie[of.TRIE_FIRST])
    rows[of.ENDS] = trie[of.N_NODES]
    row = np.int64(0)
    n = np.int64(typed)
    node = np.int64(1)
    is_changed = False  # whether the draft may be another one than the row's
    while node < trie[of.N_NODES]:
        while node >= rows[row + of.ENDS]:
            row -= of.ROW_SIZE
            n -= 1
            is_changed = True
        end = np.int64(trie[ends + node])
        here = row + of.ROW_SIZE
        for i in range(of.ROW):
            rows[here + i] = rows[row + i]
        if is_changed:
            load_draft(memory, rows, row)
        # PERF: a held lexeme that goes on leaves the draft as it is
        is_changed = rows[row + of.BEGIN] < floor
        data[n] = trie[trie[of.TRIE_BYTE] + node]
        code = read_lexemes(table, memory, lexer, names, data, np.int64(floor), rows, here, n, n + 1)
        if code == of.FREE:
            add_range(trie, words, trie[firsts + node], trie[firsts + end])
        elif code == of.UNDECIDED and not is_hopeless(lexer, names, floor, rows, here):
            if is_changed:
                save_draft(memory, rows, here)
            first, last = np.int64(trie[firsts + node]), np.int64(trie[firsts + node + 1])
            if first < last:
                code = goes_on(table, memory, lexer, names, data, np.int64(typed), np.int64(floor), n + 1, rows, here)
                if code == c.OK:
                    add_range(trie, words, first, last)
                elif code != c.ILLEGAL:
                    return code
            rows[here + of.ENDS] = end
            row = here
            n += 1
            node += 1
            continue
        elif code != of.UNDECIDED and code != of.REFUSED:
            return code
        node = end
    return np.int64(c.OK)
