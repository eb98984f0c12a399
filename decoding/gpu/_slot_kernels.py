"""The jitted engine for slots of fixed size: texts whose memory never grows.

So a GPU can read tokens and find masks by itself.

A slot's region is that of the engine (`constants`), with INDENT_ZONE integers in place of a
history, for the numbers of its blocks' frames, and with CAPACITY integers of scratch behind its
arena. The same functions run on the CPU (loops at the end of this file) and, one thread for each
slot, on a GPU (`engine_cuda.py`). They allocate nothing. A text that is too deep for its slot's
own region moves to one of a few larger regions, the *deep* regions.

INVARIANT: a *settled* text has the indent of depth d in the records 2 d and 2 d + 1, and the stack
frame of height h in record INDENT_ZONE + h. So only records above the top of the stack can be
unreachable. `settle` restores this after each token by moving the frames that the token made. They
are few; `collect` would go through all records. A text with several stacks is not settled. Its
records are collected once they have filled the region.

INVARIANT: the integer at offset 2 d behind a settled region's header belongs to the indent of depth
d. It is the number of the frame that was on top when this indent was made, if that frame has been
on the stack ever since; else NO_FRAME. So what a block remembers of its end (`close_blocks`) holds
here too.

The kernels share these arguments, besides those in `constants`:

regions : (n_slots,) int64; the index in memory at which each slot's text has its region.
owners : (n_deep,) int32; the slot that has each deep region, or -1.
results : (n_slots,) int32; OK for a text that is being read, else why it is not.
lengths : (n_slots,) int32; the tokens read in each slot.
tokens : (n_slots,) int64; the tokens to read; -1 for none.
deep_first, deep_stride, deep_capacity : the index in memory at which the deep regions begin, the
    integers of each, and the records that each has room for.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._end_kernels import can_end
from maskwright.decoding.engine._mask_kernels import find_masks, write_collected
from maskwright.decoding.engine._memory_kernels import collect, reset
from maskwright.decoding.engine._stack_kernels import below_of, height_of, narrow_of, record, state_of, wide_of
from maskwright.decoding.engine._text_kernels import read_token
from maskwright.decoding.logits._row_kernels import has_token, take_out_eos
from maskwright.maskstore.table import schema

IS_SETTLED = c.HISTORY_AT
"""1 if the text is settled. A slot has no history, so this field is free."""

FIELDS_OF_TEXT = (c.LEXER, c.COLUMN, c.NARROW, c.DEPTH, c.INDENTS, c.STACKS, c.FINISHED, c.USED)
"""The fields of a region that say where a text is."""

OK_WITHOUT_EOS = 1
"""A result of `find_slot`: OK, but the end-of-text tokens must be taken out of the masks."""


@kernel
def begin_slot(table, memory, region):  # type: ignore[no-untyped-def]
    """Put a slot's region at the start of a text, settled. ARENA and CAPACITY must be set."""
    reset(table, memory, region)
    record(memory, region + np.int64(memory[region + c.ARENA]), c.INDENT_ZONE, 0, c.NO_FRAME, 0)
    memory[region + c.STACKS] = c.INDENT_ZONE
    memory[region + c.USED] = c.INDENT_ZONE + 1
    memory[region + IS_SETTLED] = 1
    memory[region + c.REGION_HEADER] = c.NO_FRAME


@kernel
def settle(memory, region):  # type: ignore[no-untyped-def]
    """Restore the invariants after a token. Cost: O(frames and indents that it made).

    A text with several stacks, or with too many indents for INDENT_ZONE, is no longer settled.

    BOUND: a new frame of height h has a number of at least INDENT_ZONE + h, since it was made
    behind a stack that was settled. Frames are moved from the lowest up, so none is overwritten
    before it has been moved.
    """
    memory[region + c.AFTER_NEWLINE_STACKS] = 0
    if memory[region + IS_SETTLED] == 0:
        return
    stacks = np.int64(memory[region + c.STACKS])
    if stacks < 0:
        memory[region + IS_SETTLED] = 0
        return
    arena = region + np.int64(memory[region + c.ARENA])
    frame_of = region + c.REGION_HEADER
    indent = np.int64(memory[region + c.INDENTS])
    depth = np.int64(0)
    while indent >= c.INDENT_ZONE:
        indent = below_of(memory, arena, indent)
        depth += 1
    into = indent + 2 * depth
    if into >= c.INDENT_ZONE:
        memory[region + IS_SETTLED] = 0
        return
    block = into
    indent = np.int64(memory[region + c.INDENTS])
    memory[region + c.INDENTS] = into
    while indent >= c.INDENT_ZONE:
        below = below_of(memory, arena, indent)
        record(memory, arena, into, wide_of(memory, arena, indent), into - 2, 0)
        record(memory, arena, into + 1, narrow_of(memory, arena, indent), c.NO_FRAME, 0)
        memory[frame_of + into] = indent - 1  # the number of its frame, before that moves
        indent = below
        into -= 2
    # go down to a frame that need not move, reversing the links; then go up again
    frame = stacks
    above = np.int64(c.NO_FRAME)
    while frame != c.INDENT_ZONE + height_of(memory, arena, frame):
        while block > into and memory[frame_of + block] > frame:
            memory[frame_of + block] = c.NO_FRAME
            block -= 2
        if block > into and memory[frame_of + block] == frame:
            memory[frame_of + block] = c.INDENT_ZONE + height_of(memory, arena, frame)
            block -= 2
        below = below_of(memory, arena, frame)
        memory[arena + c.RECORD * frame + c.BELOW_AT] = above
        above = frame
        frame = below
    # BOUND: from here down all frames are where they were, so a block's frame above this one was
    # popped. The numbers of the blocks' frames ascend with their depth.
    while block >= 0 and (memory[frame_of + block] > frame or memory[frame_of + block] < 0):
        memory[frame_of + block] = c.NO_FRAME
        block -= 2
    while above >= 0:
        further = below_of(memory, arena, above)
        record(memory, arena, frame + 1, state_of(memory, arena, above), frame, frame + 1 - c.INDENT_ZONE)
        frame += 1
        above = further
    memory[region + c.STACKS] = frame
    memory[region + c.USED] = frame + 1


@kernel
def settle_all(memory, region):  # type: ignore[no-untyped-def]
    """Settle a text whose records have just been collected, if it has one stack and few indents.

    BOUND: collected records are numbered without gaps, so the frame of height h has a number of at
    most h + INDENT_ZONE. Frames are moved from the top down, so none is overwritten before it has
    been moved. The indents wait in the scratch behind the arena, which has at least 2 INDENT_ZONE
    integers.
    """
    memory[region + IS_SETTLED] = 0
    stacks = np.int64(memory[region + c.STACKS])
    if stacks < 0:
        return
    arena = region + np.int64(memory[region + c.ARENA])
    capacity = np.int64(memory[region + c.CAPACITY])
    height = height_of(memory, arena, stacks)
    columns = arena + c.RECORD * capacity
    frames = columns + c.INDENT_ZONE
    n = np.int64(0)
    indent = np.int64(memory[region + c.INDENTS])
    while indent >= 0 and 2 * n < c.INDENT_ZONE:
        memory[columns + 2 * n] = wide_of(memory, arena, indent)
        memory[columns + 2 * n + 1] = narrow_of(memory, arena, indent)
        memory[frames + n] = indent - 1
        indent = below_of(memory, arena, indent)
        n += 1
    if indent >= 0 or c.INDENT_ZONE + height >= capacity:
        return
    # block 0 is the innermost
    block = np.int64(0)
    frame = stacks
    while frame >= 0:
        at = arena + c.RECORD * frame
        state, below, h = np.int64(memory[at]), np.int64(memory[at + c.BELOW_AT]), np.int64(memory[at + c.HEIGHT_AT])
        while block < n and memory[frames + block] > frame:
            memory[frames + block] = c.NO_FRAME
            block += 1
        if block < n and memory[frames + block] == frame:
            memory[frames + block] = c.INDENT_ZONE + h
            block += 1
        record(memory, arena, c.INDENT_ZONE + h, state, c.INDENT_ZONE + h - 1 if h > 0 else c.NO_FRAME, h)
        frame = below
    while block < n:
        memory[frames + block] = c.NO_FRAME
        block += 1
    for d in range(n):
        at = columns + 2 * (n - 1 - d)
        record(memory, arena, 2 * d, np.int64(memory[at]), 2 * d - 2 if d > 0 else c.NO_FRAME, 0)
        record(memory, arena, 2 * d + 1, np.int64(memory[at + 1]), c.NO_FRAME, 0)
        memory[region + c.REGION_HEADER + 2 * d] = memory[frames + n - 1 - d]
    memory[region + c.INDENTS] = 2 * n - 2
    memory[region + c.STACKS] = c.INDENT_ZONE + height
    memory[region + c.USED] = c.INDENT_ZONE + height + 1
    memory[region + IS_SETTLED] = 1


@kernel
def free_records(table, memory, region):  # type: ignore[no-untyped-def]
    """Free the records that a text does not need."""
    if memory[region + IS_SETTLED]:
        settle(memory, region)  # frees what `find_slot` left above the top
        return
    capacity = np.int64(memory[region + c.CAPACITY])
    scratch = region + np.int64(memory[region + c.ARENA]) + c.RECORD * capacity
    collect(table, memory, region, memory[scratch : scratch + capacity])
    settle_all(memory, region)


@kernel
def move_slot(memory, region, into, capacity):  # type: ignore[no-untyped-def]
    """Copy a text into a region of another capacity. into : the index in memory of that region."""
    n = np.int64(memory[region + c.ARENA]) + c.RECORD * np.int64(memory[region + c.USED])
    for i in range(n):
        memory[into + i] = memory[region + i]
    memory[into + c.CAPACITY] = capacity


@kernel
def advance_slot(table, memory, regions, results, lengths, slot, token):  # type: ignore[no-untyped-def]
    """Read a token in a slot. results[slot] says what came of it.

    Returns whether the slot needs a larger region. The text is unchanged then.
    """
    region = np.int64(regions[slot])
    code = np.int64(c.NO_ROOM)
    for attempt in range(2):
        if attempt > 0:
            free_records(table, memory, region)
        code = np.int64(read_token(table, memory, region, token, True))
        if code != c.NO_ROOM:
            break
    if code == c.OK:
        settle(memory, region)
        lengths[slot] += 1
        if memory[region + c.FINISHED]:
            code = np.int64(c.AFTER_END)
    results[slot] = code
    return code == c.NO_ROOM


@kernel
def find_slot(table, memory, regions, results, slot, words):  # type: ignore[no-untyped-def]
    """Note the masks of a slot's text.

    Returns OK, OK_WITHOUT_EOS, NO_ROOM (the slot needs a larger region), or an error. results[slot]
    is the same, except that OK_WITHOUT_EOS leaves it alone.

    words : (>= n_words,) int32; written to only if there is no room for another note.
    """
    region = np.int64(regions[slot])
    code = np.int64(c.NO_ROOM)
    for attempt in range(2):
        if attempt > 0:
            free_records(table, memory, region)
        code = np.int64(find_masks(table, memory, region, words))
        is_open = code == c.OK and table[schema.EOS_IN_MASKS] == 0 and table[schema.N_EOS] > 0
        if is_open and has_token(table, memory, region, np.int64(table[table[schema.EOS]]), words):
            # as in `finish_mask`: the masks say only that the text or a block may end
            code = np.int64(can_end(table, memory, region))
            if code == c.ILLEGAL:
                code = np.int64(OK_WITHOUT_EOS)
        if code != c.NO_ROOM:
            break
    if code == c.OK and memory[region + c.WRITTEN] == 0 and memory[region + c.N_COLLECTED] == 0:
        code = np.int64(c.DEAD_END)
    if code != OK_WITHOUT_EOS:
        results[slot] = code
    return code


@kernel
def begin_text(table, memory, regions, owners, results, lengths, tokens, slot, region, result):  # type: ignore[no-untyped-def]
    """Begin a new text in a slot, in the slot's own region again.

    Deep regions of the slot become free. tokens[slot] becomes -1, so a token sampled for the text
    before is not read.

    region : where the slot's own region begins.
    result : what results[slot] becomes.
    """
    for deep in range(owners.shape[0]):
        if owners[deep] == slot:
            owners[deep] = -1
    regions[slot] = region
    begin_slot(table, memory, region)
    lengths[slot] = 0
    tokens[slot] = -1
    results[slot] = result


@kernel
def fits(memory, region, image):  # type: ignore[no-untyped-def]
    """Whether an image leaves half of a region free. image : as of `image_of`."""
    return 2 * np.int64(image[c.USED]) <= np.int64(memory[region + c.CAPACITY])


@kernel
def copy_image(memory, region, image, begin, step):  # type: ignore[no-untyped-def]
    """Copy every step-th integer of an image, from `begin` on, into a region.

    ARENA and CAPACITY of the region must be set; they keep their values. image : as of `image_of`.
    """
    for i in range(begin, image.shape[0], step):
        if i < c.REGION_HEADER + c.INDENT_ZONE:
            if i != c.ARENA and i != c.CAPACITY:
                memory[region + i] = image[i]
        else:
            memory[region + np.int64(memory[region + c.ARENA]) + i - c.REGION_HEADER - c.INDENT_ZONE] = image[i]


@kernel
def claim_plain(owners, slot):  # type: ignore[no-untyped-def]
    """Claim a deep region that no slot has: its number, or -1. For a single thread only."""
    for deep in range(owners.shape[0]):
        if owners[deep] < 0:
            owners[deep] = slot
            return np.int64(deep)
    return np.int64(-1)


@kernel
def to_deep(memory, regions, owners, slot, deep, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """Move a slot's text into a deep region."""
    into = deep_first + deep * deep_stride
    move_slot(memory, np.int64(regions[slot]), into, deep_capacity)
    regions[slot] = into


@kernel
def advance_slots(table, memory, regions, owners, results, lengths, tokens, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """`advance_slot` for all slots that are OK and have a token to read.

    The kernel of the same name does this on a GPU.
    """
    for slot in range(regions.shape[0]):
        if results[slot] != c.OK or tokens[slot] == -1:
            continue
        while advance_slot(table, memory, regions, results, lengths, slot, tokens[slot]):
            deep = claim_plain(owners, slot) if regions[slot] < deep_first else np.int64(-1)
            if deep < 0:
                break
            to_deep(memory, regions, owners, slot, deep, deep_first, deep_stride, deep_capacity)


@kernel
def find_slots(table, memory, regions, owners, results, found, words, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """`find_slot` for all slots that are OK.

    found : (n_slots,) int32, written; what `find_slot` returned, IDLE for the other slots.
    words : (n_slots, >= n_words) int32; as of `find_slot`, a row for each slot.
    """
    for slot in range(regions.shape[0]):
        found[slot] = c.IDLE
        if results[slot] != c.OK:
            continue
        while True:
            found[slot] = find_slot(table, memory, regions, results, slot, words[slot])
            if found[slot] != c.NO_ROOM:
                break
            deep = claim_plain(owners, slot) if regions[slot] < deep_first else np.int64(-1)
            if deep < 0:
                break
            to_deep(memory, regions, owners, slot, deep, deep_first, deep_stride, deep_capacity)


@kernel
def write_slots(table, memory, regions, results, found, words, held, row_ids):  # type: ignore[no-untyped-def]
    """Write the rows of the masks that `find_slots` noted.

    The row of a slot that is not OK has the held tokens and nothing else.

    found : (n_slots,) int32; as `find_slots` wrote it.
    words : (n_slots, >= n_words) int32, written.
    held : (n,) int32; ids.
    row_ids : (n_slots,) int32, written; each slot's own number, -1 if it is idle.
    """
    for slot in range(regions.shape[0]):
        row_ids[slot] = -1 if results[slot] == c.IDLE else slot
        row = words[slot]
        is_live = found[slot] == c.OK or found[slot] == OK_WITHOUT_EOS
        if is_live:
            write_collected(table, memory, np.int64(regions[slot]), row)
            if found[slot] == OK_WITHOUT_EOS and not take_out_eos(table, row):
                is_live = False
                results[slot] = c.DEAD_END
        if not is_live:
            row[:] = 0
            for i in range(held.shape[0]):
                row[held[i] >> 5] |= np.int32(1) << np.int32(held[i] & 31)


@kernel
def begin_slots(table, memory, regions, owners, results, lengths, tokens, chosen, stride, result):  # type: ignore[no-untyped-def]
    """Begin new texts in some slots, in the slots' own regions again.

    chosen : (n,) int32; the slots. stride : the region of a slot begins at `slot * stride`.
    result : what the slots' results become.
    """
    for i in range(chosen.shape[0]):
        slot = np.int64(chosen[i])
        begin_text(table, memory, regions, owners, results, lengths, tokens, slot, slot * stride, result)


@kernel
def load_slots(memory, regions, owners, results, message, n, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """Put the images of a message into slots that have just begun.

    The result of a slot is NO_ROOM if no region holds its image.

    message, n : as `regions.message_of` makes it, and the number of its slots.
    """
    for i in range(n):
        if message[n + i] == 0:
            continue
        slot = np.int64(message[i])
        image = message[message[n + i] : message[2 * n + i]]
        region = np.int64(regions[slot])
        if not fits(memory, region, image):
            deep = claim_plain(owners, slot) if np.int64(image[c.USED]) < deep_capacity else np.int64(-1)
            if deep < 0:
                results[slot] = c.NO_ROOM
                continue
            region = deep_first + deep * deep_stride
            regions[slot] = region
        copy_image(memory, region, image, 0, 1)
        results[slot] = c.AFTER_END if memory[region + c.FINISHED] else c.OK


@kernel
def free_unused_records(table, memory, region):  # type: ignore[no-untyped-def]
    """`free_records`, for calls from Python."""
    free_records(table, memory, region)
