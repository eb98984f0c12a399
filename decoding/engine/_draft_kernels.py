"""The draft of a text: terminals, newlines and indentation that are read before all of it is known to be legal."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.grammar.columns import MOST_COLUMN
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine._stack_kernels import (
    below_of,
    end_of,
    is_error,
    narrow_of,
    record,
    shift_all,
    shift_one,
    state_of,
    wide_of,
)
from maskwright.decoding.engine.constants import (
    AFTER_NEWLINE_STACKS,
    ARENA,
    CAPACITY,
    DRAFT_AFTER_NEWLINE,
    DRAFT_INDENTS,
    DRAFT_LEXER,
    DRAFT_STACKS,
    DRAFT_USED,
    ILLEGAL,
    LAST_WAS_NEWLINE,
    LEXER,
    MOST_SPENT,
    N_STATE,
    NATURAL,
    NO_FRAME,
    NO_ROOM,
    OK,
    SPENT,
    STRIDE,
    TOO_LONG,
    TOO_MANY,
    USED,
)
from maskwright.maskstore.table.schema import (
    ACTION,
    DEDENT,
    INDENT,
    N_COLUMNS,
    NEWLINE,
    SYMBOL_COLUMN,
)


@kernel(forceinline=True)
def begin_draft(memory, region):  # type: ignore[no-untyped-def]
    """The draft becomes the state of the text."""
    for i in range(N_STATE):
        memory[region + DRAFT_LEXER + i] = memory[region + LEXER + i]
    memory[region + DRAFT_USED] = memory[region + USED]
    memory[region + DRAFT_AFTER_NEWLINE] = memory[region + AFTER_NEWLINE_STACKS]
    memory[region + LAST_WAS_NEWLINE] = 0


@kernel(forceinline=True)
def spend_nothing(memory, region):  # type: ignore[no-untyped-def]
    """Begin to count steps, see BELOW."""
    memory[region + (memory[region + ARENA] & NATURAL) - SPENT] = 0


@kernel
def has_spent(memory, region, steps):  # type: ignore[no-untyped-def]
    """Pay for steps; whether they were too many."""
    at = region + np.int64(memory[region + ARENA]) - SPENT
    memory[at] = min(memory[at] + steps, np.int64(MOST_SPENT + 1))
    return memory[at] > MOST_SPENT


@kernel
def stacks_after(table, memory, region, column):  # type: ignore[no-untyped-def]
    """The stacks under way after a terminal, or what came in place of them."""
    if column < 0:
        return np.int64(ILLEGAL)
    arena = region + (memory[region + ARENA] & NATURAL)
    used = memory[region + DRAFT_USED] & NATURAL
    capacity = memory[region + CAPACITY] & NATURAL
    stacks = np.int64(memory[region + DRAFT_STACKS])
    # PERF: `shift`, which would be one more call on the way
    if stacks >= 0:
        found = np.int64(shift_one(table, memory, arena, used, capacity, stacks, np.int64(column), np.int64(STRIDE)))
        if found != TOO_MANY:
            return found
    return np.int64(shift_all(table, memory, arena, used, capacity, stacks, np.int64(column)))


@kernel
def feed(table, memory, region, column):  # type: ignore[no-untyped-def]
    """Feed the parser a terminal: OK, or what came in place of stacks."""
    stacks = stacks_after(table, memory, region, column)
    if is_error(stacks):
        return stacks
    memory[region + DRAFT_STACKS] = stacks
    memory[region + DRAFT_USED] = end_of(stacks)
    memory[region + DRAFT_AFTER_NEWLINE] = 0
    return np.int64(OK)


@kernel
def know_newline(table, memory, region):  # type: ignore[no-untyped-def]
    """DRAFT_AFTER_NEWLINE becomes known. OK, NO_ROOM or TOO_LONG: what a call has spent says nothing of the text, so it is not kept."""
    if memory[region + DRAFT_AFTER_NEWLINE] == 0:
        stacks = stacks_after(table, memory, region, np.int64(table[table[SYMBOL_COLUMN] + table[NEWLINE]]))
        if stacks in (NO_ROOM, TOO_LONG):
            return np.int64(stacks)
        memory[region + DRAFT_AFTER_NEWLINE] = stacks
        if not is_error(stacks):
            memory[region + DRAFT_USED] = end_of(stacks)
    return np.int64(OK)


@kernel
def feed_newline(table, memory, region):  # type: ignore[no-untyped-def]
    """`feed` of the newline."""
    code = know_newline(table, memory, region)
    if code != OK:
        return code
    stacks = np.int64(memory[region + DRAFT_AFTER_NEWLINE])
    if is_error(stacks):
        return stacks
    memory[region + DRAFT_STACKS] = stacks
    memory[region + DRAFT_AFTER_NEWLINE] = 0
    return np.int64(OK)


@kernel
def indent(table, memory, region, wide, narrow):  # type: ignore[no-untyped-def]
    """After a newline that ended at a column: one indent, nothing, or dedents down to a column that is open. OK or an error."""
    arena = region + np.int64(memory[region + ARENA])
    indents = np.int64(memory[region + DRAFT_INDENTS])
    top = wide_of(memory, arena, indents)
    if wide > top:
        if narrow <= narrow_of(memory, arena, indents) or wide >= MOST_COLUMN:
            return np.int64(ILLEGAL)
        stacks = np.int64(memory[region + DRAFT_STACKS])
        if stacks >= 0:
            # PERF: asked at each line's end; where a state has no action, no reduction would help
            state = state_of(memory, arena, stacks)
            if table[table[ACTION] + state * table[N_COLUMNS] + table[INDENT]] == 0:
                return np.int64(ILLEGAL)
        code = feed(table, memory, region, np.int64(table[INDENT]))
        if code != OK:
            return code
        used = np.int64(memory[region + DRAFT_USED])
        if used + 1 >= memory[region + CAPACITY]:
            return NO_ROOM
        record(memory, arena, used, np.int64(wide), indents, 0)
        record(memory, arena, used + 1, np.int64(narrow), NO_FRAME, 0)
        memory[region + DRAFT_INDENTS] = used
        memory[region + DRAFT_USED] = used + 2
        return OK
    # PERF: most columns asked for are no open indent's
    below = np.int64(indents)
    while wide < top:
        below = below_of(memory, arena, below)
        top = wide_of(memory, arena, below)
    if wide != top or narrow != narrow_of(memory, arena, below):
        return np.int64(ILLEGAL)
    while indents != below:
        code = feed(table, memory, region, np.int64(table[DEDENT]))
        if code != OK:
            return code
        indents = below_of(memory, arena, indents)
    memory[region + DRAFT_INDENTS] = indents
    return np.int64(OK)
