"""The draft of a text: terminals, newlines and columns read before they are known to be legal."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.grammar.columns import MOST_COLUMN
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
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
from maskwright.maskstore.table import schema


@kernel(forceinline=True)
def begin_draft(memory, region):  # type: ignore[no-untyped-def]
    """Make the draft a copy of the text's state."""
    for i in range(c.N_STATE_FIELDS):
        memory[region + c.DRAFT_LEXER + i] = memory[region + c.LEXER + i]
    memory[region + c.DRAFT_USED] = memory[region + c.USED]
    memory[region + c.DRAFT_AFTER_NEWLINE] = memory[region + c.AFTER_NEWLINE_STACKS]
    memory[region + c.LAST_WAS_NEWLINE] = 0


@kernel(forceinline=True)
def spend_nothing(memory, region):  # type: ignore[no-untyped-def]
    """Begin to count steps, see N_BELOW_ARENA."""
    memory[region + (memory[region + c.ARENA] & c.NATURAL) - c.SPENT] = memory[region + c.SPENT_BEFORE]


@kernel
def has_spent(memory, region, steps):  # type: ignore[no-untyped-def]
    """Pay for some steps. Returns whether the call has now spent more than MOST_SPENT."""
    at = region + np.int64(memory[region + c.ARENA]) - c.SPENT
    memory[at] = min(memory[at] + steps, np.int64(c.MOST_SPENT + 1))
    return memory[at] > c.MOST_SPENT


@kernel
def stacks_after(table, memory, region, column):  # type: ignore[no-untyped-def]
    """The draft's stacks after a terminal, or a result as of `shift`. The draft is not changed."""
    if column < 0:
        return np.int64(c.ILLEGAL)
    arena = region + (memory[region + c.ARENA] & c.NATURAL)
    used = memory[region + c.DRAFT_USED] & c.NATURAL
    capacity = memory[region + c.CAPACITY] & c.NATURAL
    stacks = np.int64(memory[region + c.DRAFT_STACKS])
    # PERF: the body of `shift`, to save a call
    if stacks >= 0:
        found = np.int64(shift_one(table, memory, arena, used, capacity, stacks, np.int64(column), np.int64(c.STRIDE)))
        if found != c.TOO_MANY:
            return found
    return np.int64(shift_all(table, memory, arena, used, capacity, stacks, np.int64(column)))


@kernel
def feed(table, memory, region, column):  # type: ignore[no-untyped-def]
    """Feed the parser a terminal: OK, or a result as of `shift`."""
    stacks = stacks_after(table, memory, region, column)
    if is_error(stacks):
        return stacks
    memory[region + c.DRAFT_STACKS] = stacks
    memory[region + c.DRAFT_USED] = end_of(stacks)
    memory[region + c.DRAFT_AFTER_NEWLINE] = 0
    return np.int64(c.OK)


@kernel
def know_newline(table, memory, region):  # type: ignore[no-untyped-def]
    """Compute DRAFT_AFTER_NEWLINE if it is not known: OK, NO_ROOM or TOO_LONG.

    OK means that DRAFT_AFTER_NEWLINE holds stacks or an error, such as ILLEGAL. NO_ROOM and
    TOO_LONG are not kept there: they depend on the memory and on what the call has spent, not on
    the text.
    """
    if memory[region + c.DRAFT_AFTER_NEWLINE] == 0:
        stacks = stacks_after(
            table, memory, region, np.int64(table[table[schema.SYMBOL_COLUMN] + table[schema.NEWLINE]])
        )
        if stacks in (c.NO_ROOM, c.TOO_LONG):
            return np.int64(stacks)
        memory[region + c.DRAFT_AFTER_NEWLINE] = stacks
        if not is_error(stacks):
            memory[region + c.DRAFT_USED] = end_of(stacks)
    return np.int64(c.OK)


@kernel
def feed_newline(table, memory, region):  # type: ignore[no-untyped-def]
    """Feed the parser the layout's newline: OK, or an error as of `feed`."""
    code = know_newline(table, memory, region)
    if code != c.OK:
        return code
    stacks = np.int64(memory[region + c.DRAFT_AFTER_NEWLINE])
    if is_error(stacks):
        return stacks
    memory[region + c.DRAFT_STACKS] = stacks
    memory[region + c.DRAFT_AFTER_NEWLINE] = 0
    return np.int64(c.OK)


@kernel
def indent(table, memory, region, wide, narrow):  # type: ignore[no-untyped-def]
    """Obey the column at which a newline ended: OK or an error.

    A deeper column is one indent, an equal one is nothing. A column further out means dedents down
    to the open indent of exactly that column. ILLEGAL if there is none, if the wide and the
    narrow columns do not compare alike, or if a deeper column is MOST_COLUMN or more.

    wide, narrow : the two columns at which the newline ended.
    """
    arena = region + np.int64(memory[region + c.ARENA])
    indents = np.int64(memory[region + c.DRAFT_INDENTS])
    top = wide_of(memory, arena, indents)
    if wide > top:
        if narrow <= narrow_of(memory, arena, indents) or wide >= MOST_COLUMN:
            return np.int64(c.ILLEGAL)
        stacks = np.int64(memory[region + c.DRAFT_STACKS])
        if stacks >= 0:
            # PERF: this is asked at the end of each line. Where a state has no action on the
            # indent, no reduction would help.
            state = state_of(memory, arena, stacks)
            if table[table[schema.ACTION] + state * table[schema.N_COLUMNS] + table[schema.INDENT]] == 0:
                return np.int64(c.ILLEGAL)
        code = feed(table, memory, region, np.int64(table[schema.INDENT]))
        if code != c.OK:
            return code
        used = np.int64(memory[region + c.DRAFT_USED])
        if used + 1 >= memory[region + c.CAPACITY]:
            return c.NO_ROOM
        record(memory, arena, used, np.int64(wide), indents, 0)
        record(memory, arena, used + 1, np.int64(narrow), c.NO_FRAME, 0)
        memory[region + c.DRAFT_INDENTS] = used
        memory[region + c.DRAFT_USED] = used + 2
        return c.OK
    # PERF: look for the open indent before feeding dedents, since most columns asked about match
    # none
    below = np.int64(indents)
    while wide < top:
        below = below_of(memory, arena, below)
        top = wide_of(memory, arena, below)
    if wide != top or narrow != narrow_of(memory, arena, below):
        return np.int64(c.ILLEGAL)
    while indents != below:
        code = feed(table, memory, region, np.int64(table[schema.DEDENT]))
        if code != c.OK:
            return code
        indents = below_of(memory, arena, indents)
    memory[region + c.DRAFT_INDENTS] = indents
    return np.int64(c.OK)
