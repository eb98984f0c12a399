"""The lexer's step: what a byte emits, and what is read again where the lexer backs up."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.grammar.columns import (
    FORM_FEED,
    LINE_FEED,
    MOST_COLUMN,
    SPACE,
    TAB,
    TAB_STOP,
)
from maskwright.analysis.jit import kernel
from maskwright.analysis.lexing.encoding import DEAD, RESTART
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._draft_kernels import feed, feed_newline, indent
from maskwright.decoding.engine._stack_kernels import (
    first_stack,
    is_error,
    other_stacks,
    reduce_anyway,
    shift,
    state_of,
)
from maskwright.maskstore.table import schema


@kernel
def emit(table, memory, region, begin, end):  # type: ignore[no-untyped-def]
    """Feed emitted terminals, `table[begin:end]`, to the parser and the layout: OK or an error.

    Newlines inside brackets are dropped.
    """
    for i in range(begin, end):
        symbol = table[i]
        is_newline = symbol == table[schema.NEWLINE]
        if is_newline and memory[region + c.DRAFT_DEPTH] > 0:
            continue
        if is_newline:
            code = feed_newline(table, memory, region)
            if code == c.OK:
                wide, narrow = np.int64(memory[region + c.DRAFT_COLUMN]), np.int64(memory[region + c.DRAFT_NARROW])
                code = np.int64(indent(table, memory, region, wide, narrow))
        else:
            code = feed(table, memory, region, np.int64(table[table[schema.SYMBOL_COLUMN] + symbol]))
        if code != c.OK:
            return code
        if not is_newline:
            memory[region + c.DRAFT_DEPTH] = max(
                0, memory[region + c.DRAFT_DEPTH] + table[table[schema.SYMBOL_DEPTH] + symbol]
            )
        memory[region + c.LAST_WAS_NEWLINE] = is_newline
    return np.int64(c.OK)


@kernel(forceinline=True)
def shifts_any(table, state, members):  # type: ignore[no-untyped-def]
    """Whether some terminal of a set is shifted in an LR state, whatever lies below it.

    state : the LR state on top of a stack.
    members : the number of a set of columns (SET_BITS).
    """
    words = table[schema.N_SET_WORDS] & c.NATURAL
    bits = (table[schema.SET_BITS] & c.NATURAL) + members * words
    shifts = (table[schema.SHIFT_BITS] & c.NATURAL) + state * words
    for w in range(words):  # noqa: SIM110
        # PERF: the early return keeps the compiler from vectorising the loop, which would take
        # longer for a few words
        if table[bits + w] & table[shifts + w]:
            return True
    return False


@kernel
def accepts_any(table, memory, region, stacks, used, members):  # type: ignore[no-untyped-def]
    """Whether the parser can take some terminal of a set next: OK, ILLEGAL or an error.

    stacks : the stacks to ask.
    members : the number of a set of columns (SET_BITS).
    """
    arena = region + (memory[region + c.ARENA] & c.NATURAL)
    capacity = memory[region + c.CAPACITY] & c.NATURAL
    if stacks >= 0:
        if shifts_any(table, state_of(memory, arena, stacks), members):
            return np.int64(c.OK)
        stacks = reduce_anyway(table, memory, arena, used, capacity, stacks)
        if stacks < 0:
            return stacks
        used = max(used, stacks + 1)
    member = stacks
    while member != 0:
        if shifts_any(table, state_of(memory, arena, first_stack(memory, arena, member)), members):
            return np.int64(c.OK)
        member = other_stacks(memory, arena, member)
    words = table[schema.N_SET_WORDS] & c.NATURAL
    bits = (table[schema.SET_BITS] & c.NATURAL) + members * words
    for attempt in range(2):
        limit = np.int64(c.FEW_REDUCTIONS if attempt == 0 else c.STRIDE)
        is_too_long = False
        for w in range(words):
            left = (table[bits + w] & c.NATURAL) | (np.int64(table[bits + w] < 0) << 31)
            column = 32 * w
            while left != 0:
                if left & 255 == 0:
                    left >>= 8
                    column += 8
                    continue
                if left & 1:
                    found = shift(table, memory, arena, used, capacity, stacks, column, limit)
                    if not is_error(found) or found == c.ENDED:
                        return np.int64(c.OK)
                    if found == c.TOO_LONG and attempt == 0:
                        is_too_long = True
                    elif found != c.ILLEGAL:
                        return found
                left >>= 1
                column += 1
        if not is_too_long:
            break
    return np.int64(c.ILLEGAL)


@kernel(entry=True)
def mode_state(table: Int32, memory: Int32, arena: int, stacks: int) -> int:
    """The lexer state in which the next lexeme begins, or SPLIT if the stacks disagree.

    Under contextual lexing the LR state on top chooses it. It is 0 if there is one mode only.
    """
    if table[schema.N_MODES] == 1:
        return np.int64(0)
    found = np.int64(-1)
    while stacks != 0:
        mode = table[table[schema.MODE_OF_STATE] + state_of(memory, arena, first_stack(memory, arena, stacks))]
        if found >= 0 and found != mode:
            return np.int64(c.SPLIT)
        found = np.int64(mode)
        stacks = other_stacks(memory, arena, stacks)
    return np.int64(table[table[schema.MODE_STATE] + found])


@kernel(forceinline=True)
def read_byte(table, memory, region, byte):  # type: ignore[no-untyped-def]
    """Feed one byte to the lexer, the layout and the parser: OK or an error.

    A contextual lexer that backs up reads its pending bytes again.
    """
    again = region + (memory[region + c.ARENA] & c.NATURAL) - c.N_BELOW_ARENA - (table[schema.AGAIN] & c.NATURAL)
    classes = table[schema.N_CLASSES] & c.NATURAL
    waiting = 0
    restarts = 0
    while True:
        state = memory[region + c.DRAFT_LEXER] & c.NATURAL
        if state == 0:
            arena = region + np.int64(memory[region + c.ARENA])
            state = mode_state(table, memory, arena, np.int64(memory[region + c.DRAFT_STACKS]))
            if state < 0:
                return state
        offset = state * classes + table[table[schema.BYTE_CLASS] + byte]
        output = np.int64(table[table[schema.OUTPUT] + offset])
        after = np.int64(table[table[schema.NEXT_STATE] + offset])
        if after == DEAD:
            return np.int64(c.ILLEGAL)
        if output != 0:
            symbols = np.int64(table[schema.OUTPUT_SYMBOLS])
            code = emit(
                table,
                memory,
                region,
                symbols + table[table[schema.OUTPUT_START] + output],
                symbols + table[table[schema.OUTPUT_START] + output + 1],
            )
            if code != c.OK:
                return code
        if after == RESTART:
            begin = np.int64(table[table[schema.PENDING_START] + state])
            end = np.int64(table[table[schema.PENDING_START] + state + 1])
            # BOUND: each restart ends a lexeme, so there are fewer restarts than bytes to read
            # again
            restarts += 1
            if waiting + 1 + end - begin > table[schema.AGAIN] or restarts > table[schema.AGAIN]:
                return np.int64(c.TOO_LONG)
            memory[again + waiting] = byte
            waiting += 1
            for i in range(end - 1, begin - 1, -1):
                memory[again + waiting] = table[table[schema.PENDING] + i]
                waiting += 1
            after = np.int64(0)
        elif table[table[schema.STATE_FLAGS] + after] & schema.IS_NEWLINE:
            step_column(table, memory, region, byte)
        memory[region + c.DRAFT_LEXER] = after
        if waiting == 0:
            return np.int64(c.OK)
        waiting -= 1
        byte = np.int64(memory[again + waiting])


@kernel(forceinline=True)
def step_column(table, memory, region, byte):  # type: ignore[no-untyped-def]
    """Update the draft's column after a byte of a newline lexeme."""
    if byte == LINE_FEED:
        memory[region + c.DRAFT_COLUMN] = 0
        memory[region + c.DRAFT_NARROW] = 0
    elif byte == SPACE:
        if memory[region + c.DRAFT_COLUMN] < MOST_COLUMN:
            memory[region + c.DRAFT_COLUMN] += 1
            memory[region + c.DRAFT_NARROW] += 1
    elif byte in (TAB, FORM_FEED):
        step_tab(table, memory, region, byte)


@kernel
def step_tab(table, memory, region, byte):  # type: ignore[no-untyped-def]
    """`step_column` for a tab and a form feed.

    BOUND: the wide column stops at MOST_COLUMN, and the narrow one is never greater.
    """
    wide = np.int64(memory[region + c.DRAFT_COLUMN])
    if table[schema.TABS] == schema.LARK_TABS:
        if byte == TAB:
            wide = min(wide + table[schema.TAB_LENGTH], np.int64(MOST_COLUMN))
            memory[region + c.DRAFT_COLUMN] = wide
            memory[region + c.DRAFT_NARROW] = wide
    elif byte == FORM_FEED:
        memory[region + c.DRAFT_COLUMN] = 0
        memory[region + c.DRAFT_NARROW] = 0
    elif wide < MOST_COLUMN:
        memory[region + c.DRAFT_COLUMN] = min((wide // TAB_STOP + 1) * TAB_STOP, np.int64(MOST_COLUMN))
        memory[region + c.DRAFT_NARROW] += 1


@kernel
def back_up(table, memory, region):  # type: ignore[no-untyped-def]
    """End the lexeme under way at its last possible end, and read its pending bytes.

    Returns OK or an error. Only a contextual lexer has pending bytes.
    """
    state = np.int64(memory[region + c.DRAFT_LEXER])
    terminal = np.int64(table[table[schema.FALLBACK] + state])
    if terminal >= 0:
        offset = np.int64(table[schema.OUTPUT_SYMBOLS]) + terminal
        code = emit(table, memory, region, offset, offset + 1)
        if code != c.OK:
            return code
    memory[region + c.DRAFT_LEXER] = 0
    for i in range(table[table[schema.PENDING_START] + state], table[table[schema.PENDING_START] + state + 1]):
        code = read_byte(table, memory, region, np.int64(table[table[schema.PENDING] + i]))
        if code != c.OK:
            return code
    return np.int64(c.OK)
