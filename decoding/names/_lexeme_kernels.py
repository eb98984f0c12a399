"""A terminal held to names: how the lexemes of a text are read, and which of them is held.

`decoding.engine.constants` describes table and memory, `layout` the other arrays. In
addition:

n : how many bytes of `data` have been read.
floor : where in `data` a lexeme must begin at least, so that it is held.
row : the index in `rows` at which a row begins.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._draft_kernels import (
    begin_draft,
    feed,
    feed_newline,
    indent,
    spend_nothing,
    stacks_after,
)
from maskwright.decoding.engine._lexer_kernels import mode_state, step_column
from maskwright.decoding.engine._stack_kernels import is_error
from maskwright.decoding.names import layout as of
from maskwright.maskstore.table import schema

REGION = np.int64(0)
"""Where the text of a matcher begins in memory."""


@kernel
def save_draft(memory, rows, row):  # type: ignore[no-untyped-def]
    """Copy the engine's draft into a row."""
    for i in range(c.N_DRAFT):
        rows[row + of.DRAFT + i] = memory[REGION + c.DRAFT_LEXER + i]


@kernel
def load_draft(memory, rows, row):  # type: ignore[no-untyped-def]
    """Make the engine's draft that of a row."""
    for i in range(c.N_DRAFT):
        memory[REGION + c.DRAFT_LEXER + i] = rows[row + of.DRAFT + i]


@kernel
def start_of(table, memory, lexer):  # type: ignore[no-untyped-def]
    """The union's state in which the next lexeme behind the draft begins, or SPLIT."""
    arena = REGION + np.int64(memory[REGION + c.ARENA])
    state = np.int64(mode_state(table, memory, arena, np.int64(memory[REGION + c.DRAFT_STACKS])))
    return state if state < 0 else np.int64(lexer[lexer[of.UNDER_WAY] + state])


@kernel
def begin_lexeme(table, memory, lexer, names, rows, row, at):  # type: ignore[no-untyped-def]
    """Let a lexeme begin at an offset of `data`: OK, or SPLIT."""
    start = start_of(table, memory, lexer)
    if start < 0:
        return start
    rows[row + of.STATE] = start
    rows[row + of.BEGIN] = at
    rows[row + of.LAST_END] = at
    rows[row + of.LAST_WINNER] = -1
    rows[row + of.IS_NAME] = 0
    rows[row + of.LOW] = 0
    rows[row + of.HIGH] = names[of.N_NAMES]
    return np.int64(c.OK)


@kernel
def lower_bound(names, low, high, at, byte):  # type: ignore[no-untyped-def]
    """The first of names[low:high] whose byte at an offset is `byte` or more, or `high`.

    The names are equal up to the offset; one that ends there comes first.
    """
    starts = names[of.NAME_START]
    data = names[of.NAME_DATA]
    while low < high:
        middle = (low + high) >> 1
        place = names[starts + middle] + at
        if place >= names[starts + middle + 1] or names[data + place] < byte:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def read_terminal(table, memory, terminal):  # type: ignore[no-untyped-def]
    """Feed the draft a lexeme's terminal, with the layout applied: OK or an error; see `emit`."""
    # `emit` reads symbols of the table, and this terminal may stand nowhere in it
    if terminal == np.int64(table[schema.NEWLINE]):
        code = feed_newline(table, memory, REGION)
        if code == c.OK:
            wide, narrow = np.int64(memory[REGION + c.DRAFT_COLUMN]), np.int64(memory[REGION + c.DRAFT_NARROW])
            code = np.int64(indent(table, memory, REGION, wide, narrow))
        memory[REGION + c.LAST_WAS_NEWLINE] = 1
        return np.int64(code)
    code = feed(table, memory, REGION, np.int64(table[table[schema.SYMBOL_COLUMN] + terminal]))
    memory[REGION + c.DRAFT_DEPTH] = max(
        0, memory[REGION + c.DRAFT_DEPTH] + table[table[schema.SYMBOL_DEPTH] + terminal]
    )
    memory[REGION + c.LAST_WAS_NEWLINE] = 0
    return np.int64(code)


@kernel
def is_dropped(memory, lexer, terminal):  # type: ignore[no-untyped-def]
    """Whether the parser does not see a terminal: an ignored one, a newline inside brackets."""
    kind = lexer[lexer[of.KIND] + terminal]
    return kind == of.IGNORED or (kind == of.NEWLINE_KIND and memory[REGION + c.DRAFT_DEPTH] > 0)


@kernel
def grow(table, memory, lexer, names, data, floor, rows, row, at):  # type: ignore[no-untyped-def]
    """Read one byte of `data` into the lexeme of a row. Returns whether the lexeme goes on.

    0: the lexeme is over; the byte is not part of it, unless LAST_END is behind it.
    """
    classes = np.int64(lexer[of.N_CLASSES])
    byte = np.int64(data[at])
    after = np.int64(lexer[lexer[of.NEXT] + rows[row + of.STATE] * classes + lexer[lexer[of.CLASS_OF] + byte]])
    if after < 0:
        return False
    begin = np.int64(rows[row + of.BEGIN])
    if begin < floor:
        step_column(table, memory, REGION, byte)
    elif rows[row + of.LOW] < rows[row + of.HIGH]:
        low = lower_bound(names, np.int64(rows[row + of.LOW]), np.int64(rows[row + of.HIGH]), at - begin, byte)
        rows[row + of.HIGH] = lower_bound(names, low, np.int64(rows[row + of.HIGH]), at - begin, byte + 1)
        rows[row + of.LOW] = low
    rows[row + of.STATE] = after
    winner = np.int64(lexer[lexer[of.WINNER] + after])
    if winner >= 0:
        low = np.int64(rows[row + of.LOW])
        rows[row + of.LAST_END] = at + 1
        rows[row + of.LAST_WINNER] = winner
        is_name = begin >= floor and winner == names[of.TERMINAL] and low < rows[row + of.HIGH]
        if is_name:
            starts = np.int64(names[of.NAME_START])
            is_name = names[starts + low + 1] - names[starts + low] == at + 1 - begin
        rows[row + of.IS_NAME] = is_name
    return lexer[lexer[of.GROWS] + after] != 0


@kernel
def end_lexeme(table, memory, lexer, names, rows, row):  # type: ignore[no-untyped-def]
    """End a lexeme that is not held where it could have ended last, and begin the next one there.

    Returns OK, REFUSED or an error.
    """
    terminal = np.int64(rows[row + of.LAST_WINNER])
    if not is_dropped(memory, lexer, terminal):
        code = read_terminal(table, memory, terminal)
        if code != c.OK:
            return np.int64(of.REFUSED) if code == c.ILLEGAL else code
    return begin_lexeme(table, memory, lexer, names, rows, row, np.int64(rows[row + of.LAST_END]))


@kernel
def read_lexemes(table, memory, lexer, names, data, floor, rows, row, at, n):  # type: ignore[no-untyped-def]
    """Read data[at:n] into a row and the draft: UNDECIDED, FREE, REFUSED or an error.

    BOUND: each lexeme that is over begins anew behind the last one, so this comes to an end.
    """
    while at < n:
        if grow(table, memory, lexer, names, data, floor, rows, row, at):
            at += 1
            continue
        terminal = np.int64(rows[row + of.LAST_WINNER])
        if terminal < 0:
            return np.int64(of.REFUSED)  # the engine refuses it too
        if rows[row + of.BEGIN] >= floor and not is_dropped(memory, lexer, terminal):
            return np.int64(of.FREE if terminal != names[of.TERMINAL] or rows[row + of.IS_NAME] else of.REFUSED)
        code = end_lexeme(table, memory, lexer, names, rows, row)
        if code != c.OK:
            return code
        at = np.int64(rows[row + of.BEGIN])
    return np.int64(of.UNDECIDED)


@kernel
def begin_row(  # type: ignore[no-untyped-def]
    table, memory, lexer, names, data, typed, floor, rows
):
    """Make row 0 that of the text: UNDECIDED or an error.

    typed : how many bytes of `data` the text ends with.
    floor : -1 if the lexeme under way may be held, or there is none. Else it began before the names
        were given, or is ignored. Then these bytes are those since it could have ended, those from
        the floor on came behind the names, and rows[LAST_WINNER] holds what won there.
    """
    begin_draft(memory, REGION)
    spend_nothing(memory, REGION)
    if floor < 0 or memory[REGION + c.LEXER] == 0:
        code = begin_lexeme(table, memory, lexer, names, rows, 0, 0)
        if code == c.OK:
            code = read_lexemes(table, memory, lexer, names, data, floor, rows, 0, np.int64(0), typed)
    else:
        winner = rows[of.LAST_WINNER]
        code = begin_lexeme(table, memory, lexer, names, rows, 0, -1)
        rows[of.STATE] = lexer[lexer[of.UNDER_WAY] + memory[REGION + c.LEXER]]
        rows[of.LAST_END] = 0
        rows[of.LAST_WINNER] = winner
        code = np.int64(of.UNDECIDED if code == c.OK else code)
    save_draft(memory, rows, 0)
    return code


@kernel
def accepts(table, memory, terminal):  # type: ignore[no-untyped-def]
    """Whether the parser takes a terminal behind the draft: OK, ILLEGAL or an error."""
    found = stacks_after(table, memory, REGION, np.int64(table[table[schema.SYMBOL_COLUMN] + terminal]))
    return np.int64(c.OK) if not is_error(found) or found == c.ENDED else np.int64(found)


@kernel
def n_possible(names, start, low, high):  # type: ignore[no-untyped-def]
    """How many of names[low:high] are lexemes that begin in a state; -1: unknown."""
    row = np.int64(names[names[of.COUNT_ROW] + start])
    if row < 0:
        return np.int64(-1)
    at = np.int64(names[of.COUNTS]) + row * (names[of.N_NAMES] + 1)
    return np.int64(names[at + high] - names[at + low])
