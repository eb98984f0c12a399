"""What may follow a draft: whether the lexeme under way can go on or end, and the text can end."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.lexing.encoding import RESTART
from maskwright.decoding.engine import constants as c
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
from maskwright.maskstore.table import schema


@kernel
def may_become(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the lexeme under way can become one that the parser accepts: OK, ILLEGAL or an error.

    The draft is left as it was, except that DRAFT_AFTER_NEWLINE may become known.
    """
    state = np.int64(memory[region + c.DRAFT_LEXER])
    at = np.int64(table[table[schema.ENDING_START] + state])
    last = np.int64(table[table[schema.ENDING_START] + state + 1])
    is_newline = (
        at < last
        and table[table[schema.ENDINGS] + at + 1] > 0
        and table[table[schema.ENDINGS] + at + 2] == table[schema.NEWLINE]
    )
    if is_newline and memory[region + c.DRAFT_DEPTH] == 0:
        code = know_newline(table, memory, region)
        if code != c.OK:
            return code
    return becomes_any(table, memory, region, at, last)


@kernel
def becomes_any(table, memory, region, at, last):  # type: ignore[no-untyped-def]
    """Whether the lexeme under way can become, as ENDINGS[at:last] say, what the parser accepts.

    Returns OK, ILLEGAL or an error. The draft is left as it was.
    """
    depth = memory[region + c.DRAFT_DEPTH]
    indents = memory[region + c.DRAFT_INDENTS]
    stacks = memory[region + c.DRAFT_STACKS]
    used = memory[region + c.DRAFT_USED]
    after = memory[region + c.DRAFT_AFTER_NEWLINE]
    fresh = memory[region + c.LAST_WAS_NEWLINE]
    answer = np.int64(c.ILLEGAL)
    while at < last and answer == c.ILLEGAL:
        members = np.int64(table[table[schema.ENDINGS] + at])
        n = np.int64(table[table[schema.ENDINGS] + at + 1])
        begin = np.int64(table[schema.ENDINGS]) + at + 2
        at += 2 + n
        answer = np.int64(c.OK)
        if n > 0:
            answer = emit(table, memory, region, begin, begin + n)
        if answer == c.OK:
            # ENDINGS holds twice a set's number, plus 1 if the layout's newline is in it. Inside
            # brackets the newline is dropped, so anything may follow.
            if members < 0 or (members & 1 and memory[region + c.DRAFT_DEPTH] > 0):
                members = np.int64(2 * table[schema.AFTER_NEWLINE] if memory[region + c.LAST_WAS_NEWLINE] else -1)
            if members >= 0:
                answer = accepts_any(
                    table,
                    memory,
                    region,
                    np.int64(memory[region + c.DRAFT_STACKS]),
                    np.int64(memory[region + c.DRAFT_USED]),
                    members >> 1,
                )
        memory[region + c.DRAFT_DEPTH] = depth
        memory[region + c.DRAFT_INDENTS] = indents
        memory[region + c.DRAFT_STACKS] = stacks
        memory[region + c.DRAFT_USED] = used
        memory[region + c.DRAFT_AFTER_NEWLINE] = after
        memory[region + c.LAST_WAS_NEWLINE] = fresh
    return answer


@kernel(forceinline=True)
def can_go_on(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether `may_become` holds for the lexeme under way, or once the lexer has backed up over it.

    Returns OK, ILLEGAL or an error. The draft is left as by `may_become`.
    """
    # PERF: the answer that `may_become` would find first, where it is enough to look at one set
    at = (table[schema.ENDINGS] & c.NATURAL) + (
        table[(table[schema.ENDING_START] & c.NATURAL) + (memory[region + c.DRAFT_LEXER] & c.NATURAL)] & c.NATURAL
    )
    stacks = np.int64(memory[region + c.DRAFT_STACKS])
    if table[at + 1] == 0 and memory[region + c.LAST_WAS_NEWLINE] == 0:
        members = np.int64(table[at])
        if members < 0 or (members & 1 and memory[region + c.DRAFT_DEPTH] > 0):
            return np.int64(c.OK)
        arena = region + (memory[region + c.ARENA] & c.NATURAL)
        if stacks >= 0 and shifts_any(table, state_of(memory, arena, stacks), members >> 1):
            return np.int64(c.OK)
        if members & 1:
            # PERF: most often a newline follows, and the stacks after it are kept; else
            # `may_become` tries all terminals
            code = know_newline(table, memory, region)
            if code != c.OK or not is_error(memory[region + c.DRAFT_AFTER_NEWLINE]):
                return code
    answer = may_become(table, memory, region)
    if table[schema.N_MODES] == 1 or answer != c.ILLEGAL:
        return answer
    kept = region + np.int64(memory[region + c.ARENA]) - c.N_BELOW_ARENA
    # BOUND: each round ends a lexeme of pending bytes
    left = np.int64(table[schema.AGAIN])
    for i in range(c.N_DRAFT):
        memory[kept + i] = memory[region + c.DRAFT_LEXER + i]
    while answer == c.ILLEGAL:
        state = np.int64(memory[region + c.DRAFT_LEXER])
        if table[table[schema.PENDING_START] + state] == table[table[schema.PENDING_START] + state + 1]:
            break
        left -= 1
        answer = back_up(table, memory, region) if left >= 0 else np.int64(c.TOO_LONG)
        if answer == c.OK:
            answer = may_become(table, memory, region)
        else:
            break
    for i in range(c.N_DRAFT):
        memory[region + c.DRAFT_LEXER + i] = memory[kept + i]
    return answer


@kernel(entry=True)
def can_end(table: Int32, memory: Int32, region: int) -> int:
    """Whether the text so far is legal as a whole: OK, ILLEGAL or an error.

    PERF: this is asked for each mask behind a newline. So the answer is kept until the stacks
    change, and each open block remembers the answer to closing it (`close_blocks`).
    """
    kept = np.int64(table[(table[schema.END_OUTPUT] & c.NATURAL) + (memory[region + c.LEXER] & c.NATURAL)])
    if kept >= 0 and (memory[region + c.END_VERDICT] - 1) >> 1 == kept:
        return np.int64(c.ILLEGAL if memory[region + c.END_VERDICT] & 1 else c.OK)
    begin_draft(memory, region)
    spend_nothing(memory, region)
    code = end_draft(table, memory, region)
    if kept >= 0 and c.ILLEGAL <= code <= c.OK:
        memory[region + c.END_VERDICT] = 1 + 2 * kept + (code == c.OK)
    return code


@kernel
def end_draft(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the draft is legal as a whole: OK, ILLEGAL or an error. The draft changes."""
    left = np.int64(table[schema.AGAIN])
    while table[(table[schema.END_OUTPUT] & c.NATURAL) + (memory[region + c.DRAFT_LEXER] & c.NATURAL)] == RESTART:
        left -= 1
        code = back_up(table, memory, region) if left >= 0 else np.int64(c.TOO_LONG)
        if code != c.OK:
            return np.int64(code)
    output = np.int64(table[(table[schema.END_OUTPUT] & c.NATURAL) + (memory[region + c.DRAFT_LEXER] & c.NATURAL)])
    if output < 0:
        return np.int64(c.ILLEGAL)
    # a newline that ends the text ends the last line; the blanks behind it make no column
    memory[region + c.DRAFT_COLUMN] = 0
    memory[region + c.DRAFT_NARROW] = 0
    symbols = table[schema.OUTPUT_SYMBOLS] & c.NATURAL
    starts = (table[schema.OUTPUT_START] & c.NATURAL) + output
    begin = symbols + (table[starts] & c.NATURAL)
    end = symbols + (table[starts + 1] & c.NATURAL)
    has_newline = end > begin and table[end - 1] == table[schema.NEWLINE]
    code = np.int64(c.OK)
    if end - has_newline > begin:
        code = emit(table, memory, region, begin, end - has_newline)
    if code == c.OK and has_newline and memory[region + c.DRAFT_DEPTH] == 0:
        code = feed_newline(table, memory, region)
    if code == c.OK:
        code = np.int64(close_blocks(table, memory, region))
    return code


@kernel(forceinline=True)
def frame_of_block(memory, region, indents):  # type: ignore[no-untyped-def]
    """The frame of a block's indent terminal; NO_FRAME if a settled slot has lost it.

    Outside settled slots its record is the one before the indent's.

    INVARIANT: if MAX_HISTORY is 0, HISTORY_AT is 0 too, except in a settled slot.
    """
    if memory[region + c.MAX_HISTORY] == 0 and memory[region + c.HISTORY_AT] != 0 and indents < c.INDENT_ZONE:
        return np.int64(memory[region + c.REGION_HEADER + indents])
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
    arena = region + (memory[region + c.ARENA] & c.NATURAL)
    indents = memory[region + c.DRAFT_INDENTS] & c.NATURAL
    asked = np.int64(-1)  # the first indent whose answer is not known
    key = np.int64(0)
    answer = np.int64(c.OK)
    while answer == c.OK and below_of(memory, arena, indents) >= 0:
        answer = np.int64(feed(table, memory, region, np.int64(table[schema.DEDENT])))
        if answer != c.OK:
            break
        stacks = np.int64(memory[region + c.DRAFT_STACKS])
        if asked < 0 and stacks >= 0:
            state = state_of(memory, arena, stacks)
            rule = np.int64(table[(table[schema.DEFAULT] & c.NATURAL) + state])
            left = np.int64(table[(table[schema.RULE_LENGTH] & c.NATURAL) + rule]) if rule >= 0 else np.int64(0)
            frame = stacks
            opened = frame_of_block(memory, region, indents)
            while left > 0 and frame > opened:
                frame = below_of(memory, arena, frame)
                left -= 1
            if frame == opened and opened >= 0:
                key = 1 + 2 * state
                known = height_of(memory, arena, indents) & c.NATURAL
                for _ in range(2):
                    if known & c.MOST_REMEMBERED == key or known & c.MOST_REMEMBERED == key + 1:
                        return np.int64(c.ILLEGAL if known & 1 else c.OK)
                    known >>= c.REMEMBERED_BITS
                if key < c.MOST_REMEMBERED:
                    asked = indents
        indents = below_of(memory, arena, indents) & c.NATURAL
    if answer == c.OK:
        answer = np.int64(feed(table, memory, region, np.int64(table[schema.N_COLUMNS]) - 1))
        if answer == c.ENDED:
            answer = np.int64(c.OK)
        elif answer == c.OK:
            answer = np.int64(c.ILLEGAL)
    if asked >= 0 and c.ILLEGAL <= answer <= c.OK:
        known = (height_of(memory, arena, asked) & c.NATURAL) & c.MOST_REMEMBERED
        memory[arena + c.RECORD * asked + c.HEIGHT_AT] = (known << c.REMEMBERED_BITS) + key + (answer == c.OK)
    return answer
