"""What may follow a draft: whether the lexeme under way can go on or end, and the text can end."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.lexing.encoding import RESTART
from maskwright.decoding.engine._draft_kernels import (
    begin_draft,
    feed,
    feed_newline,
    know_newline,
    spend_nothing,
)
from maskwright.decoding.engine._lexer_kernels import (
    accepts_any,
    back_up,
    emit,
    shifts_any,
)
from maskwright.decoding.engine._stack_kernels import below_of, height_of, is_error, state_of
from maskwright.decoding.engine.constants import (
    ARENA,
    DRAFT_AFTER_NEWLINE,
    DRAFT_COLUMN,
    DRAFT_DEPTH,
    DRAFT_INDENTS,
    DRAFT_LEXER,
    DRAFT_NARROW,
    DRAFT_STACKS,
    DRAFT_USED,
    END_VERDICT,
    ENDED,
    HEIGHT_AT,
    HISTORY_AT,
    ILLEGAL,
    INDENT_ZONE,
    LAST_WAS_NEWLINE,
    LEXER,
    MAX_HISTORY,
    MOST_REMEMBERED,
    N_BELOW_ARENA,
    N_DRAFT,
    NATURAL,
    OK,
    RECORD,
    REGION_HEADER,
    REMEMBERED_BITS,
    TOO_LONG,
)
from maskwright.maskstore.table.schema import (
    AFTER_NEWLINE,
    AGAIN,
    DEDENT,
    DEFAULT,
    END_OUTPUT,
    ENDING_START,
    ENDINGS,
    N_COLUMNS,
    N_MODES,
    NEWLINE,
    OUTPUT_START,
    OUTPUT_SYMBOLS,
    PENDING_START,
    RULE_LENGTH,
)


@kernel
def may_become(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the lexeme under way can become one that the parser accepts: OK, ILLEGAL or an error.

    The draft is left as it was, except that DRAFT_AFTER_NEWLINE may become known.
    """
    state = np.int64(memory[region + DRAFT_LEXER])
    at = np.int64(table[table[ENDING_START] + state])
    last = np.int64(table[table[ENDING_START] + state + 1])
    is_newline = at < last and table[table[ENDINGS] + at + 1] > 0 and table[table[ENDINGS] + at + 2] == table[NEWLINE]
    if is_newline and memory[region + DRAFT_DEPTH] == 0:
        code = know_newline(table, memory, region)
        if code != OK:
            return code
    return becomes_any(table, memory, region, at, last)


@kernel
def becomes_any(table, memory, region, at, last):  # type: ignore[no-untyped-def]
    """Whether the lexeme under way can become, as ENDINGS[at:last] say, what the parser accepts.

    Returns OK, ILLEGAL or an error. The draft is left as it was.
    """
    depth = memory[region + DRAFT_DEPTH]
    indents = memory[region + DRAFT_INDENTS]
    stacks = memory[region + DRAFT_STACKS]
    used = memory[region + DRAFT_USED]
    after = memory[region + DRAFT_AFTER_NEWLINE]
    fresh = memory[region + LAST_WAS_NEWLINE]
    answer = np.int64(ILLEGAL)
    while at < last and answer == ILLEGAL:
        members = np.int64(table[table[ENDINGS] + at])
        n = np.int64(table[table[ENDINGS] + at + 1])
        begin = np.int64(table[ENDINGS]) + at + 2
        at += 2 + n
        answer = np.int64(OK)
        if n > 0:
            answer = emit(table, memory, region, begin, begin + n)
        if answer == OK:
            # ENDINGS holds twice a set's number, plus 1 if the layout's newline is in it. Inside
            # brackets the newline is dropped, so anything may follow.
            if members < 0 or (members & 1 and memory[region + DRAFT_DEPTH] > 0):
                members = np.int64(2 * table[AFTER_NEWLINE] if memory[region + LAST_WAS_NEWLINE] else -1)
            if members >= 0:
                answer = accepts_any(
                    table,
                    memory,
                    region,
                    np.int64(memory[region + DRAFT_STACKS]),
                    np.int64(memory[region + DRAFT_USED]),
                    members >> 1,
                )
        memory[region + DRAFT_DEPTH] = depth
        memory[region + DRAFT_INDENTS] = indents
        memory[region + DRAFT_STACKS] = stacks
        memory[region + DRAFT_USED] = used
        memory[region + DRAFT_AFTER_NEWLINE] = after
        memory[region + LAST_WAS_NEWLINE] = fresh
    return answer


@kernel(forceinline=True)
def can_go_on(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether `may_become` holds for the lexeme under way, or once the lexer has backed up over it.

    Returns OK, ILLEGAL or an error. The draft is left as by `may_become`.
    """
    # PERF: the answer that `may_become` would find first, where it is enough to look at one set
    at = (table[ENDINGS] & NATURAL) + (
        table[(table[ENDING_START] & NATURAL) + (memory[region + DRAFT_LEXER] & NATURAL)] & NATURAL
    )
    stacks = np.int64(memory[region + DRAFT_STACKS])
    if table[at + 1] == 0 and memory[region + LAST_WAS_NEWLINE] == 0:
        members = np.int64(table[at])
        if members < 0 or (members & 1 and memory[region + DRAFT_DEPTH] > 0):
            return np.int64(OK)
        arena = region + (memory[region + ARENA] & NATURAL)
        if stacks >= 0 and shifts_any(table, state_of(memory, arena, stacks), members >> 1):
            return np.int64(OK)
        if members & 1:
            # PERF: most often a newline follows, and the stacks after it are kept; else
            # `may_become` tries all terminals
            code = know_newline(table, memory, region)
            if code != OK or not is_error(memory[region + DRAFT_AFTER_NEWLINE]):
                return code
    answer = may_become(table, memory, region)
    if table[N_MODES] == 1 or answer != ILLEGAL:
        return answer
    kept = region + np.int64(memory[region + ARENA]) - N_BELOW_ARENA
    # BOUND: each round ends a lexeme of pending bytes
    left = np.int64(table[AGAIN])
    for i in range(N_DRAFT):
        memory[kept + i] = memory[region + DRAFT_LEXER + i]
    while answer == ILLEGAL:
        state = np.int64(memory[region + DRAFT_LEXER])
        if table[table[PENDING_START] + state] == table[table[PENDING_START] + state + 1]:
            break
        left -= 1
        answer = back_up(table, memory, region) if left >= 0 else np.int64(TOO_LONG)
        if answer == OK:
            answer = may_become(table, memory, region)
        else:
            break
    for i in range(N_DRAFT):
        memory[region + DRAFT_LEXER + i] = memory[kept + i]
    return answer


@kernel(entry=True)
def can_end(table: Int32, memory: Int32, region: int) -> int:
    """Whether the text so far is legal as a whole: OK, ILLEGAL or an error.

    PERF: this is asked for each mask behind a newline. So the answer is kept until the stacks
    change, and each open block remembers the answer to closing it (`close_blocks`).
    """
    kept = np.int64(table[(table[END_OUTPUT] & NATURAL) + (memory[region + LEXER] & NATURAL)])
    if kept >= 0 and (memory[region + END_VERDICT] - 1) >> 1 == kept:
        return np.int64(ILLEGAL if memory[region + END_VERDICT] & 1 else OK)
    begin_draft(memory, region)
    spend_nothing(memory, region)
    code = end_draft(table, memory, region)
    if kept >= 0 and ILLEGAL <= code <= OK:
        memory[region + END_VERDICT] = 1 + 2 * kept + (code == OK)
    return code


@kernel
def end_draft(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the draft is legal as a whole: OK, ILLEGAL or an error. The draft changes."""
    left = np.int64(table[AGAIN])
    while table[(table[END_OUTPUT] & NATURAL) + (memory[region + DRAFT_LEXER] & NATURAL)] == RESTART:
        left -= 1
        code = back_up(table, memory, region) if left >= 0 else np.int64(TOO_LONG)
        if code != OK:
            return np.int64(code)
    output = np.int64(table[(table[END_OUTPUT] & NATURAL) + (memory[region + DRAFT_LEXER] & NATURAL)])
    if output < 0:
        return np.int64(ILLEGAL)
    # a newline that ends the text ends the last line; the blanks behind it make no column
    memory[region + DRAFT_COLUMN] = 0
    memory[region + DRAFT_NARROW] = 0
    symbols = table[OUTPUT_SYMBOLS] & NATURAL
    starts = (table[OUTPUT_START] & NATURAL) + output
    begin = symbols + (table[starts] & NATURAL)
    end = symbols + (table[starts + 1] & NATURAL)
    has_newline = end > begin and table[end - 1] == table[NEWLINE]
    code = np.int64(OK)
    if end - has_newline > begin:
        code = emit(table, memory, region, begin, end - has_newline)
    if code == OK and has_newline and memory[region + DRAFT_DEPTH] == 0:
        code = feed_newline(table, memory, region)
    if code == OK:
        code = np.int64(close_blocks(table, memory, region))
    return code


@kernel(forceinline=True)
def frame_of_block(memory, region, indents):  # type: ignore[no-untyped-def]
    """The frame of a block's indent terminal; NO_FRAME if a settled slot has lost it.

    Outside settled slots its record is the one before the indent's.

    INVARIANT: if MAX_HISTORY is 0, HISTORY_AT is 0 too, except in a settled slot.
    """
    if memory[region + MAX_HISTORY] == 0 and memory[region + HISTORY_AT] != 0 and indents < INDENT_ZONE:
        return np.int64(memory[region + REGION_HEADER + indents])
    return np.int64(indents - 1)


@kernel
def close_blocks(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the draft may end the text once dedents have closed all blocks.

    Returns OK, ILLEGAL or an error. The draft's stacks change.

    Most often the record before an indent's is the frame of the indent terminal, and the dedent
    completes a rule that reaches back to that frame. What follows then depends only on the LR state
    after the dedent. So the indent's record keeps the answer as its third integer, encoded as
    `2 * state + may_end + 1`. It keeps the answers for the last two such states, because a block
    may end behind a newline or, at the end of the text, without one. Frames of a settled slot move,
    so `frame_of_block` looks the frame up.
    """
    arena = region + (memory[region + ARENA] & NATURAL)
    indents = memory[region + DRAFT_INDENTS] & NATURAL
    asked = np.int64(-1)  # the first indent whose answer is not known
    key = np.int64(0)
    answer = np.int64(OK)
    while answer == OK and below_of(memory, arena, indents) >= 0:
        answer = np.int64(feed(table, memory, region, np.int64(table[DEDENT])))
        if answer != OK:
            break
        stacks = np.int64(memory[region + DRAFT_STACKS])
        if asked < 0 and stacks >= 0:
            state = state_of(memory, arena, stacks)
            rule = np.int64(table[(table[DEFAULT] & NATURAL) + state])
            left = np.int64(table[(table[RULE_LENGTH] & NATURAL) + rule]) if rule >= 0 else np.int64(0)
            frame = stacks
            opened = frame_of_block(memory, region, indents)
            while left > 0 and frame > opened:
                frame = below_of(memory, arena, frame)
                left -= 1
            if frame == opened and opened >= 0:
                key = 1 + 2 * state
                known = height_of(memory, arena, indents) & NATURAL
                for _ in range(2):
                    if known & MOST_REMEMBERED == key or known & MOST_REMEMBERED == key + 1:
                        return np.int64(ILLEGAL if known & 1 else OK)
                    known >>= REMEMBERED_BITS
                if key < MOST_REMEMBERED:
                    asked = indents
        indents = below_of(memory, arena, indents) & NATURAL
    if answer == OK:
        answer = np.int64(feed(table, memory, region, np.int64(table[N_COLUMNS]) - 1))
        if answer == ENDED:
            answer = np.int64(OK)
        elif answer == OK:
            answer = np.int64(ILLEGAL)
    if asked >= 0 and ILLEGAL <= answer <= OK:
        known = (height_of(memory, arena, asked) & NATURAL) & MOST_REMEMBERED
        memory[arena + RECORD * asked + HEIGHT_AT] = (known << REMEMBERED_BITS) + key + (answer == OK)
    return answer
