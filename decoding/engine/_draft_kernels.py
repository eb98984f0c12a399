"""The draft of a text: terminals, newlines and columns read before they are known to be legal."""

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
    N_STATE_FIELDS,
    NATURAL,
    NO_FRAME,
    NO_ROOM,
    OK,
    SPENT,
    SPENT_BEFORE,
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
    """Make the draft a copy of the text's state."""
    for i in range(N_STATE_FIELDS):
        memory[region + DRAFT_LEXER + i] = memory[region + LEXER + i]
    memory[region + DRAFT_USED] = memory[region + USED]
    memory[region + DRAFT_AFTER_NEWLINE] = memory[region + AFTER_NEWLINE_STACKS]
    memory[region + LAST_WAS_NEWLINE] = 0


@kernel(forceinline=True)
def spend_nothing(memory, region):  # type: ignore[no-untyped-def]
    """Begin to count steps, see N_BELOW_ARENA."""
    memory[region + (memory[region + ARENA] & NATURAL) - SPENT] = memory[region + SPENT_BEFORE]


@kernel
def has_spent(memory, region, steps):  # type: ignore[no-untyped-def]
    """Pay for some steps. Returns whether the call has now spent more than MOST_SPENT."""
    at = region + np.int64(memory[region + ARENA]) - SPENT
    memory[at] = min(memory[at] + steps, np.int64(MOST_SPENT + 1))
    return memory[at] > MOST_SPENT


@kernel
def stacks_after(table, memory, region, column):  # type: ignore[no-untyped-def]
    """The draft's stacks after a terminal, or a result as of `shift`. The draft is not changed."""
    if column < 0:
        return np.int64(ILLEGAL)
    arena = region + (memory[region + ARENA] & NATURAL)
    used = memory[region + DRAFT_USED] & NATURAL
    capacity = memory[region + CAPACITY] & NATURAL
    stacks = np.int64(memory[region + DRAFT_STACKS])
    # PERF: the body of `shift`, to save a call
    if stacks >= 0:
        found = np.int64(shift_one(table, memory, arena, used, capacity, stacks, np.int64(column), np.int64(STRIDE)))
        if found != TOO_MANY:
            return found
    return np.int64(shift_all(table, memory, arena, used, capacity, stacks, np.int64(column)))


@kernel
def feed(table, memory, region, column):  # type: ignore[no-untyped-def]
    """Feed the parser a terminal: OK, or a result as of `shift`."""
    stacks = stacks_after(table, memory, region, column)
    if is_error(stacks):
        return stacks
    memory[region + DRAFT_STACKS] = stacks
    memory[region + DRAFT_USED] = end_of(stacks)
    memory[region + DRAFT_AFTER_NEWLINE] = 0
    return np.int64(OK)


@kernel
def know_newline(table, memory, region):  # type: ignore[no-untyped-def]
    """Compute DRAFT_AFTER_NEWLINE if it is not known: OK, NO_ROOM or TOO_LONG.

    OK means that DRAFT_AFTER_NEWLINE holds stacks or an error, such as ILLEGAL. NO_ROOM and
    TOO_LONG are not kept there: they depend on the memory and on what the call has spent, not on
    the text.
    """
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
    """Feed the parser the layout's newline: OK, or an error as of `feed`."""
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
    """Obey the column at which a newline ended: OK or an error.

    A deeper column is one indent, an equal one is nothing. A column further out means dedents down
    to the open indent of exactly that column. ILLEGAL if there is none, if the wide and the
    narrow columns do not compare alike, or if a deeper column is MOST_COLUMN or more.

    wide, narrow : the two columns at which the newline ended.
    """
    arena = region + np.int64(memory[region + ARENA])
    indents = np.int64(memory[region + DRAFT_INDENTS])
    top = wide_of(memory, arena, indents)
    if wide > top:
        if narrow <= narrow_of(memory, arena, indents) or wide >= MOST_COLUMN:
            return np.int64(ILLEGAL)
        stacks = np.int64(memory[region + DRAFT_STACKS])
        if stacks >= 0:
            # PERF: this is asked at the end of each line. Where a state has no action on the
            # indent, no reduction would help.
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
    # PERF: look for the open indent before feeding dedents, since most columns asked about match
    # none
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
