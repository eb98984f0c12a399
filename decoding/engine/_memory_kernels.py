"""A region's memory: its beginning, its history, and how records of a full arena are freed."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._stack_kernels import end_of, record
from maskwright.maskstore.table import schema


@kernel(entry=True)
def reset(table: Int32, memory: Int32, region: int) -> None:
    """Put a region back to the start of the text. CAPACITY, MAX_HISTORY and ARENA must be set."""
    memory[region + c.LEXER] = 0
    memory[region + c.COLUMN] = 0
    memory[region + c.NARROW] = 0
    memory[region + c.DEPTH] = 0
    memory[region + c.INDENTS] = 0
    memory[region + c.STACKS] = 2
    memory[region + c.FINISHED] = 0
    memory[region + c.USED] = 3
    memory[region + c.AFTER_NEWLINE_STACKS] = 0
    memory[region + c.END_VERDICT] = 0
    memory[region + c.N_HISTORY] = 0
    memory[region + c.HISTORY_AT] = 0
    forget_walks(table, memory, region, 0)
    arena = region + np.int64(memory[region + c.ARENA])
    # records 0 and 1: the indent of column 0; record 2: the frame of the start state
    record(memory, arena, 0, 0, c.NO_FRAME, 0)
    record(memory, arena, 1, 0, c.NO_FRAME, 0)
    record(memory, arena, 2, 0, c.NO_FRAME, 0)


@kernel(forceinline=True)
def remember(memory, region):  # type: ignore[no-untyped-def]
    """Add the state to the history, so that a rollback can restore it.

    The history holds the last MAX_HISTORY tokens.
    """
    longest = memory[region + c.MAX_HISTORY]
    if longest == 0:
        return
    at = np.int64(memory[region + c.HISTORY_AT])
    for i in range(c.SAVED):
        memory[region + c.REGION_HEADER + at * c.SAVED + i] = memory[region + i]
    memory[region + c.HISTORY_AT] = at + 1 if at + 1 < longest else 0
    if memory[region + c.N_HISTORY] < longest:
        memory[region + c.N_HISTORY] += 1


@kernel(entry=True)
def rollback(table: Int32, memory: Int32, region: int, n: int) -> None:
    """Take back the last n tokens, 1 <= n <= N_HISTORY."""
    longest = memory[region + c.MAX_HISTORY]
    at = (memory[region + c.HISTORY_AT] - n) % longest
    for i in range(c.SAVED):
        memory[region + i] = memory[region + c.REGION_HEADER + at * c.SAVED + i]
    memory[region + c.AFTER_NEWLINE_STACKS] = 0
    memory[region + c.END_VERDICT] = 0
    memory[region + c.HISTORY_AT] = at
    memory[region + c.N_HISTORY] -= n
    forget_walks(table, memory, region, memory[region + c.USED])


@kernel(entry=True)
def forget_walks(table: Int32, memory: Int32, region: int, first: int) -> None:
    """Drop the cached walks from records numbered `first` or more, which are about to change."""
    if memory[region + c.CACHE] > 0:
        for slot in range(c.CACHED_WALKS):
            at = memory[region + c.CACHE] + 1 + slot * (2 + np.int64(table[schema.N_WORDS]))
            if memory[at] >= first:
                memory[at] = -1


@kernel(entry=True)
def collect(table: Int32, memory: Int32, region: int, moved: Int32) -> None:
    """Free the arena records that neither the text nor its history needs, and renumber the others.

    moved : (capacity,) int32; scratch.

    INVARIANT: a record refers to earlier records only. The one exception is an indent's narrow
    column, in the next record, which refers to none. So one pass from the newest record to the
    oldest marks all that are needed, indents by 1 and the others by 0. One pass from the oldest to
    the newest then moves them.
    """
    arena = region + np.int64(memory[region + c.ARENA])
    used = np.int64(memory[region + c.USED])
    moved[:used] = -1
    longest = memory[region + c.MAX_HISTORY]
    for back in range(memory[region + c.N_HISTORY] + 1):
        at = region
        if back > 0:
            at = region + c.REGION_HEADER + ((memory[region + c.HISTORY_AT] - back) % longest) * c.SAVED
        moved[memory[at + c.INDENTS]] = 1
        moved[end_of(np.int64(memory[at + c.STACKS])) - 1] = 0
    for number in range(used - 1, -1, -1):
        if moved[number] < 0:
            continue
        at = arena + c.RECORD * number
        if memory[at + c.BELOW_AT] >= 0:
            moved[memory[at + c.BELOW_AT]] = moved[number]
        if moved[number] == 1:
            moved[number + 1] = 0  # the record of its narrow column
        if memory[at + c.HEIGHT_AT] < 0:
            moved[memory[at]] = 0
    kept = 0
    for number in range(used):
        if moved[number] < 0:
            continue
        at = arena + c.RECORD * number
        second = memory[at + c.BELOW_AT]
        # what an indent remembers (`close_blocks`) was true of the old numbers only
        third = 0 if moved[number] == 1 else memory[at + c.HEIGHT_AT]
        first = moved[memory[at]] if third < 0 else memory[at]
        record(
            memory, arena, kept, np.int64(first), np.int64(moved[second] if second >= 0 else second), np.int64(third)
        )
        moved[number] = kept
        kept += 1
    for back in range(memory[region + c.N_HISTORY] + 1):
        at = region
        if back > 0:
            at = region + c.REGION_HEADER + ((memory[region + c.HISTORY_AT] - back) % longest) * c.SAVED
        memory[at + c.INDENTS] = moved[memory[at + c.INDENTS]]
        stacks = memory[at + c.STACKS]
        memory[at + c.STACKS] = moved[stacks] if stacks >= 0 else c.LIST - moved[c.LIST - stacks]
    memory[region + c.USED] = kept
    memory[region + c.AFTER_NEWLINE_STACKS] = 0
    memory[region + c.END_VERDICT] = 0
    forget_walks(table, memory, region, 0)


@kernel(allocates=True)
def make_room(table, memory, region):  # type: ignore[no-untyped-def]
    """Free the records that nothing needs. Returns whether at least half of the arena is free now.

    If so, the arena need not grow.
    """
    collect(table, memory, region, np.empty(memory[region + c.CAPACITY], np.int32))
    return 2 * memory[region + c.USED] <= memory[region + c.CAPACITY]
