"""Stacks in the arena, and the LALR parser's step: the stacks after one more terminal.

`constants` describes records, stacks and the arguments that all kernels share.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.decoding.engine import constants as c
from maskwright.maskstore.table import schema

# ---- The integers of an arena record, see `constants`. Each function takes the record's number.


@kernel(forceinline=True)
def state_of(memory, arena, frame):  # type: ignore[no-untyped-def]
    """The LR state of a frame."""
    return memory[arena + c.RECORD * frame] & c.NATURAL


@kernel(forceinline=True)
def below_of(memory, arena, number):  # type: ignore[no-untyped-def]
    """The frame below a frame, the indent below an indent, or the next member of a list.

    Returns NO_FRAME if there is none.
    """
    return np.int64(memory[arena + c.RECORD * number + c.BELOW_AT])


@kernel(forceinline=True)
def height_of(memory, arena, frame):  # type: ignore[no-untyped-def]
    """The number of frames below a frame."""
    return np.int64(memory[arena + c.RECORD * frame + c.HEIGHT_AT])


@kernel(forceinline=True)
def wide_of(memory, arena, indent):  # type: ignore[no-untyped-def]
    """The wide column of an open indent."""
    return np.int64(memory[arena + c.RECORD * indent])


@kernel(forceinline=True)
def narrow_of(memory, arena, indent):  # type: ignore[no-untyped-def]
    """The narrow column of an open indent. The record behind the indent's own holds it."""
    return np.int64(memory[arena + c.RECORD * (indent + 1)])


@kernel
def record(memory, arena, number, first, second, third):  # type: ignore[no-untyped-def]
    """Write the three integers of an arena record."""
    at = arena + c.RECORD * number
    memory[at] = first
    memory[at + c.BELOW_AT] = second
    memory[at + c.HEIGHT_AT] = third


@kernel
def push(memory, arena, number, state, frame):  # type: ignore[no-untyped-def]
    """Make record `number` a frame: an LR state on top of a frame."""
    at = arena + c.RECORD * number
    memory[at] = state
    memory[at + c.BELOW_AT] = frame
    memory[at + c.HEIGHT_AT] = height_of(memory, arena, frame) + 1


@kernel(entry=True)
def first_stack(memory: Int32, arena: int, stacks: int) -> int:
    """The top frame of the first of some stacks."""
    return stacks if stacks >= 0 else np.int64(memory[arena + c.RECORD * (c.LIST - stacks)])


@kernel
def other_stacks(memory, arena, stacks):  # type: ignore[no-untyped-def]
    """The stacks without the first one, or 0 if there was only one.

    0 is free for this meaning, because record 0 is an indent.
    """
    if stacks >= 0:
        return np.int64(0)
    after = below_of(memory, arena, c.LIST - stacks)
    return np.int64(0) if after < 0 else c.LIST - after


@kernel
def end_of(stacks):  # type: ignore[no-untyped-def]
    """The number of records in use once these stacks are made: one more than their own number."""
    return (stacks if stacks >= 0 else c.LIST - stacks) + 1


@kernel
def is_error(stacks):  # type: ignore[no-untyped-def]
    """Whether the integer is a result and not stacks."""
    return c.LIST < stacks < 0


@kernel
def same_stack(memory, arena, a, b):  # type: ignore[no-untyped-def]
    """Whether two top frames are of equal stacks. Cost: O(the frames that they do not share)."""
    while a != b:
        if (
            a < 0
            or b < 0
            or state_of(memory, arena, a) != state_of(memory, arena, b)
            or height_of(memory, arena, a) != height_of(memory, arena, b)
        ):
            return False
        a = below_of(memory, arena, a)
        b = below_of(memory, arena, b)
    return True


@kernel
def is_endless(memory, arena, frame, strides):  # type: ignore[no-untyped-def]
    """Whether the parser must give up reducing. It is asked after every STRIDE reductions.

    True after more than MOST_SINCE strides without a new lowest height, or more than MOST_SPENT
    units.

    frame : the top frame now.
    strides : how often the caller asked this before; 0 begins the count of strides anew.
    """
    height = height_of(memory, arena, frame)
    if strides == 0 or height < memory[arena - c.LOWEST]:
        memory[arena - c.LOWEST] = height
        memory[arena - c.SINCE] = 0
    memory[arena - c.SINCE] += 1
    memory[arena - c.SPENT] += 1
    return memory[arena - c.SINCE] > c.MOST_SINCE or memory[arena - c.SPENT] > c.MOST_SPENT


@kernel
def shift_one(table, memory, arena, used, capacity, frame, column, limit):  # type: ignore[no-untyped-def]
    """The stack after a terminal, as the number of its top frame.

    The new frames are records from `used` on. Other results: ILLEGAL; NO_ROOM; TOO_MANY if there is
    a conflict; ENDED if the parser accepts the text; TOO_LONG after more than `limit` reductions.

    frame : the top frame.
    limit : FEW_REDUCTIONS; or STRIDE, which does not limit a parse that ends.
    """
    columns = table[schema.N_COLUMNS] & c.NATURAL
    nonterminals = table[schema.N_NONTERMINALS] & c.NATURAL
    defaults = table[schema.DEFAULT] & c.NATURAL
    actions = table[schema.ACTION] & c.NATURAL
    gotos = table[schema.GOTO] & c.NATURAL
    lengths = table[schema.RULE_LENGTH] & c.NATURAL
    symbols = table[schema.RULE_LHS] & c.NATURAL
    begin = used
    strides = 0
    is_few = limit < c.STRIDE
    state = state_of(memory, arena, frame)
    while used < capacity:
        rule = np.int64(table[defaults + state])
        if rule < 0:
            action = np.int64(table[actions + state * columns + column])
            if action > 0:
                if action >= ACCEPT:
                    return c.ENDED if action == ACCEPT else c.TOO_MANY
                push(memory, arena, used, action - 1, frame)
                return used
            if action == 0:
                return c.ILLEGAL
            rule = -action - 1
        limit -= 1
        if limit < 0:
            if is_few or is_endless(memory, arena, frame, strides):
                return c.TOO_LONG
            strides += 1
            limit = c.STRIDE
        for _ in range(table[lengths + rule]):
            frame = below_of(memory, arena, frame)
        state = (
            table[gotos + state_of(memory, arena, frame) * nonterminals + (table[symbols + rule] & c.NATURAL)]
            & c.NATURAL
        )
        # this call may have made the frames that the reduction pops: their records are free again
        used = max(begin, frame + 1)
        if used >= capacity:
            break
        push(memory, arena, used, state, frame)
        frame = used
        used += 1
    return c.NO_ROOM


@kernel
def reduce_anyway(table, memory, arena, used, capacity, frame):  # type: ignore[no-untyped-def]
    """The top frame of a stack after all reductions that do not depend on the next terminal.

    The new frames are records from `used` on. Other results: NO_ROOM, TOO_LONG.
    """
    begin = used
    n = 0
    state = state_of(memory, arena, frame)
    rule = np.int64(table[(table[schema.DEFAULT] & c.NATURAL) + state])
    while rule >= 0:
        n += 1
        if n % c.STRIDE == 0 and is_endless(memory, arena, frame, n // c.STRIDE - 1):
            return np.int64(c.TOO_LONG)
        for _ in range(table[(table[schema.RULE_LENGTH] & c.NATURAL) + rule]):
            frame = below_of(memory, arena, frame)
        state = state_of(memory, arena, frame) * (table[schema.N_NONTERMINALS] & c.NATURAL) + (
            table[(table[schema.RULE_LHS] & c.NATURAL) + rule] & c.NATURAL
        )
        state = table[(table[schema.GOTO] & c.NATURAL) + state] & c.NATURAL
        used = max(begin, frame + 1)
        if used >= capacity:
            return np.int64(c.NO_ROOM)
        push(memory, arena, used, state, frame)
        frame = used
        rule = np.int64(table[(table[schema.DEFAULT] & c.NATURAL) + state])
    return np.int64(frame)


@kernel
def is_new(memory, arena, found_at, n_found, frame):  # type: ignore[no-untyped-def]
    """Whether a frame's stack equals none of those of memory[found_at : found_at + n_found]."""
    for k in range(n_found):  # noqa: SIM110, as kernels have no generators
        if same_stack(memory, arena, np.int64(memory[found_at + k]), frame):
            return False
    return True


@kernel
def list_of(memory, arena, used, capacity, found_at, n_found):  # type: ignore[no-untyped-def]
    """A list of the stacks memory[found_at : found_at + n_found]; or NO_ROOM.

    It is made of records from `used` on.
    """
    if used + n_found > capacity:
        return c.NO_ROOM
    head = c.NO_FRAME
    for k in range(n_found - 1, -1, -1):
        record(memory, arena, used, np.int64(memory[found_at + k]), head, -1 - (n_found - k))
        head = used
        used += 1
    return c.LIST - head


@kernel
def shift_all(table, memory, arena, used, capacity, stacks, column):  # type: ignore[no-untyped-def]
    """`shift_one` for some stacks, following all actions of conflicts.

    Of equal stacks one is kept. Returns stacks (a list if there are several), or ILLEGAL, NO_ROOM,
    ENDED, TOO_LONG, or TOO_MANY if more than MAX_STACKS stacks are found, or too many steps are
    needed.
    """
    agenda = arena - c.N_BELOW_ARENA - np.int64(table[schema.AGAIN]) - 5 * c.MAX_STACKS
    found_at = agenda + 4 * c.MAX_STACKS
    n_found = 0
    columns = table[schema.N_COLUMNS]
    steps = 0
    unpaid = 0
    if memory[arena - c.SPENT] > c.MOST_SPENT:
        return c.TOO_LONG
    while stacks != 0:
        memory[agenda] = first_stack(memory, arena, stacks)
        stacks = other_stacks(memory, arena, stacks)
        n = 1
        while n > 0:
            n -= 1
            frame = np.int64(memory[agenda + n])
            steps += 1
            unpaid += 1
            if n + 16 > 4 * c.MAX_STACKS or steps > 64 * c.MAX_STACKS:
                return c.TOO_MANY
            state = state_of(memory, arena, frame)
            rule = table[table[schema.DEFAULT] + state]
            first = 0
            count = 1
            action = -(rule + 1)
            if rule < 0:
                action = table[table[schema.ACTION] + state * columns + column]
                if action == 0:
                    continue
                if action >= CONFLICT:
                    first = table[schema.ALTERNATIVES] + action - CONFLICT + 1
                    count = table[first - 1]
                    if n + count > 4 * c.MAX_STACKS:
                        return c.TOO_MANY
            for i in range(count):
                each = action if first == 0 else table[first + i]
                if each == ACCEPT:
                    return c.ENDED
                if used + 1 > capacity:
                    return c.NO_ROOM
                if each > 0:
                    push(memory, arena, used, np.int64(each - 1), frame)
                    unpaid += n_found >> 4
                    if is_new(memory, arena, found_at, n_found, used):
                        if n_found + 1 > c.MAX_STACKS:
                            return c.TOO_MANY
                        memory[found_at + n_found] = used
                        n_found += 1
                        used += 1
                    continue
                below = frame
                length = table[table[schema.RULE_LENGTH] - each - 1]
                unpaid += length
                if unpaid > 16 * c.STRIDE:
                    # many stacks may pop long rules, and are compared with one another
                    memory[arena - c.SPENT] += unpaid // 16
                    unpaid = 0
                    if memory[arena - c.SPENT] > c.MOST_SPENT:
                        return c.TOO_LONG
                for _ in range(length):
                    below = below_of(memory, arena, below)
                state = state_of(memory, arena, below)
                target = table[
                    table[schema.GOTO] + state * table[schema.N_NONTERMINALS] + table[table[schema.RULE_LHS] - each - 1]
                ]
                push(memory, arena, used, np.int64(target), below)
                memory[agenda + n] = used
                n += 1
                used += 1
    memory[arena - c.SPENT] += unpaid // 16
    if n_found == 0:
        return c.ILLEGAL
    if n_found == 1:
        return np.int64(memory[found_at])
    return list_of(memory, arena, used, capacity, found_at, n_found)


@kernel
def shift(table, memory, arena, used, capacity, stacks, column, limit):  # type: ignore[no-untyped-def]
    """The stacks after a terminal, in records from `used` on; or a result as of `shift_one`.

    limit : as of `shift_one`; it holds for a single stack only. If there are several stacks, or a
        conflict, `shift_all` reads the terminal.
    """
    if column < 0:
        return c.ILLEGAL
    if stacks >= 0:
        found = shift_one(table, memory, arena, used, capacity, stacks, column, limit)
        if found != c.TOO_MANY:
            return found
    return shift_all(table, memory, arena, used, capacity, stacks, column)
