"""The jitted engine for slots of fixed size: texts whose memory never grows, so that a GPU can read tokens and find masks by itself.

A slot's region is that of the engine (`constants`), with INDENT_ZONE integers for its history, and with CAPACITY integers of
scratch behind its arena. The same functions run on the CPU (loops at the end of this file) and, one thread a slot, on a
GPU (`engine_cuda.py`). They allocate nothing.

INVARIANT: a *settled* text has the indent of depth d in the records 2 d and 2 d + 1, and the stack frame of height h in
record INDENT_ZONE + h. So only records above the top of the stack can be unreachable. `settle` restores this after each
token by moving the frames that the token made. They are few; `collect` would go through all records. A text with several
stacks is not settled; its records are collected when they have filled the region.

INVARIANT: place 2 d behind a settled region's header is the number of the frame that was on top when the indent of depth d was made, if
that frame has been on the stack ever since, else NO_FRAME. So what a block remembers of its end (`close_blocks`) holds here too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maskwright.analysis.jit import kernel
from maskwright.decoding.engine._end_kernels import can_end
from maskwright.decoding.engine._mask_kernels import find_masks, write_collected
from maskwright.decoding.engine._memory_kernels import collect, reset
from maskwright.decoding.engine._stack_kernels import below_of, height_of, narrow_of, record, state_of, wide_of
from maskwright.decoding.engine._text_kernels import read_token
from maskwright.decoding.engine.constants import (
    AFTER_END,
    AFTER_NEWLINE_STACKS,
    ARENA,
    BELOW_AT,
    CAPACITY,
    COLLECTED,
    COLUMN,
    DEAD_END,
    DEPTH,
    FINISHED,
    HEIGHT_AT,
    HISTORY_AT,
    IDLE,
    ILLEGAL,
    INDENT_ZONE,
    INDENTS,
    LEXER,
    N_COLLECTED,
    NARROW,
    NO_FRAME,
    NO_ROOM,
    OK,
    RECORD,
    REGION_HEADER,
    STACKS,
    USED,
    WRITTEN,
    scratch_size,
)
from maskwright.maskstore.table.schema import EOS, EOS_IN_MASKS, MASK_IDS, MASKS, N_EOS, N_WORDS, ROWS

IS_SETTLED = HISTORY_AT
"""This place of a region has no use where there is no history."""

FIELDS_OF_TEXT = (LEXER, COLUMN, NARROW, DEPTH, INDENTS, STACKS, FINISHED, USED)
"""The places of a region that say where a text is."""

WITHOUT_END = 1
"""A result of `find_slot`: OK, but the end-of-text tokens that the masks hold are to be taken out."""


@kernel
def begin_slot(table, memory, region):  # type: ignore[no-untyped-def]
    """The start of a text, settled. ARENA and CAPACITY are set."""
    reset(table, memory, region)
    record(memory, region + np.int64(memory[region + ARENA]), INDENT_ZONE, 0, NO_FRAME, 0)
    memory[region + STACKS] = INDENT_ZONE
    memory[region + USED] = INDENT_ZONE + 1
    memory[region + IS_SETTLED] = 1
    memory[region + REGION_HEADER] = NO_FRAME


@kernel
def settle(memory, region):  # type: ignore[no-untyped-def]
    """Restore the invariants after a token. Cost: O(frames and indents that it made).

    BOUND: a new frame of height h has a number of at least INDENT_ZONE + h, since it was made behind a stack that was settled; so, from
    the lowest up, none is written over before it has been moved.
    """
    memory[region + AFTER_NEWLINE_STACKS] = 0
    if memory[region + IS_SETTLED] == 0:
        return
    stacks = np.int64(memory[region + STACKS])
    if stacks < 0:
        memory[region + IS_SETTLED] = 0
        return
    arena = region + np.int64(memory[region + ARENA])
    frame_of = region + REGION_HEADER
    indent = np.int64(memory[region + INDENTS])
    depth = np.int64(0)
    while indent >= INDENT_ZONE:
        indent = below_of(memory, arena, indent)
        depth += 1
    into = indent + 2 * depth
    if into >= INDENT_ZONE:
        memory[region + IS_SETTLED] = 0
        return
    block = into
    indent = np.int64(memory[region + INDENTS])
    memory[region + INDENTS] = into
    while indent >= INDENT_ZONE:
        below = below_of(memory, arena, indent)
        record(memory, arena, into, wide_of(memory, arena, indent), into - 2, 0)
        record(memory, arena, into + 1, narrow_of(memory, arena, indent), NO_FRAME, 0)
        memory[frame_of + into] = indent - 1  # its number before it moves
        indent = below
        into -= 2
    # down to a frame that is in its place, turning the links round; then up again
    frame = stacks
    above = np.int64(NO_FRAME)
    while frame != INDENT_ZONE + height_of(memory, arena, frame):
        while block > into and memory[frame_of + block] > frame:
            memory[frame_of + block] = NO_FRAME
            block -= 2
        if block > into and memory[frame_of + block] == frame:
            memory[frame_of + block] = INDENT_ZONE + height_of(memory, arena, frame)
            block -= 2
        below = below_of(memory, arena, frame)
        memory[arena + RECORD * frame + BELOW_AT] = above
        above = frame
        frame = below
    # BOUND: from here down all frames are where they were, so what is above was popped; blocks' frames ascend with their depth
    while block >= 0 and (memory[frame_of + block] > frame or memory[frame_of + block] < 0):
        memory[frame_of + block] = NO_FRAME
        block -= 2
    while above >= 0:
        further = below_of(memory, arena, above)
        record(memory, arena, frame + 1, state_of(memory, arena, above), frame, frame + 1 - INDENT_ZONE)
        frame += 1
        above = further
    memory[region + STACKS] = frame
    memory[region + USED] = frame + 1


@kernel
def settle_all(memory, region):  # type: ignore[no-untyped-def]
    """Settle a text whose records have just been collected, if it has one stack and few indents.

    BOUND: collected records are numbered without gaps, so the frame of height h has a number of at most h + INDENT_ZONE: from the top
    down, none is written over before it has been moved. The indents wait in the scratch behind the arena, which has 2 INDENT_ZONE places.
    """
    memory[region + IS_SETTLED] = 0
    stacks = np.int64(memory[region + STACKS])
    if stacks < 0:
        return
    arena = region + np.int64(memory[region + ARENA])
    capacity = np.int64(memory[region + CAPACITY])
    height = height_of(memory, arena, stacks)
    columns = arena + RECORD * capacity
    frames = columns + INDENT_ZONE
    n = np.int64(0)
    indent = np.int64(memory[region + INDENTS])
    while indent >= 0 and 2 * n < INDENT_ZONE:
        memory[columns + 2 * n] = wide_of(memory, arena, indent)
        memory[columns + 2 * n + 1] = narrow_of(memory, arena, indent)
        memory[frames + n] = indent - 1
        indent = below_of(memory, arena, indent)
        n += 1
    if indent >= 0 or INDENT_ZONE + height >= capacity:
        return
    # the innermost block is the first
    block = np.int64(0)
    frame = stacks
    while frame >= 0:
        at = arena + RECORD * frame
        state, below, h = np.int64(memory[at]), np.int64(memory[at + BELOW_AT]), np.int64(memory[at + HEIGHT_AT])
        while block < n and memory[frames + block] > frame:
            memory[frames + block] = NO_FRAME
            block += 1
        if block < n and memory[frames + block] == frame:
            memory[frames + block] = INDENT_ZONE + h
            block += 1
        record(memory, arena, INDENT_ZONE + h, state, INDENT_ZONE + h - 1 if h > 0 else NO_FRAME, h)
        frame = below
    while block < n:
        memory[frames + block] = NO_FRAME
        block += 1
    for d in range(n):
        at = columns + 2 * (n - 1 - d)
        record(memory, arena, 2 * d, np.int64(memory[at]), 2 * d - 2 if d > 0 else NO_FRAME, 0)
        record(memory, arena, 2 * d + 1, np.int64(memory[at + 1]), NO_FRAME, 0)
        memory[region + REGION_HEADER + 2 * d] = memory[frames + n - 1 - d]
    memory[region + INDENTS] = 2 * n - 2
    memory[region + STACKS] = INDENT_ZONE + height
    memory[region + USED] = INDENT_ZONE + height + 1
    memory[region + IS_SETTLED] = 1


@kernel
def free_records(table, memory, region):  # type: ignore[no-untyped-def]
    """Free the records that a text does not need."""
    if memory[region + IS_SETTLED]:
        settle(memory, region)  # what `find_slot` left behind the top
        return
    capacity = np.int64(memory[region + CAPACITY])
    scratch = region + np.int64(memory[region + ARENA]) + RECORD * capacity
    collect(table, memory, region, memory[scratch : scratch + capacity])
    settle_all(memory, region)


@kernel
def move_slot(memory, region, into, capacity):  # type: ignore[no-untyped-def]
    """Copy a text into a region of another capacity."""
    n = np.int64(memory[region + ARENA]) + RECORD * np.int64(memory[region + USED])
    for i in range(n):
        memory[into + i] = memory[region + i]
    memory[into + CAPACITY] = capacity


@kernel
def advance_slot(table, memory, regions, results, lengths, slot, token):  # type: ignore[no-untyped-def]
    """Read a token: results[slot] says what came of it. True if the slot needs a larger region, the text being as it was."""
    region = np.int64(regions[slot])
    code = np.int64(NO_ROOM)
    for attempt in range(2):
        if attempt > 0:
            free_records(table, memory, region)
        code = np.int64(read_token(table, memory, region, token, True))
        if code != NO_ROOM:
            break
    if code == OK:
        settle(memory, region)
        lengths[slot] += 1
        if memory[region + FINISHED]:
            code = np.int64(AFTER_END)
    results[slot] = code
    return code == NO_ROOM


@kernel
def has_token(table, memory, region, token, words):  # type: ignore[no-untyped-def]
    """Whether a token is in a mask that is marked, or in what has been written."""
    bit = np.int32(1) << np.int32(token & 31)
    if memory[region + WRITTEN] and words[token >> 5] & bit:
        return True
    for i in range(memory[region + N_COLLECTED]):
        offset = np.int64(table[MASKS]) + 3 * np.int64(memory[region + COLLECTED + i])
        row = np.int64(table[offset])
        if row >= 0 and table[table[ROWS] + row * table[N_WORDS] + (token >> 5)] & bit:
            return True
        begin = np.int64(table[MASK_IDS]) + table[offset + 1]
        for at in range(begin, begin + table[offset + 2]):
            if table[at] == token:
                return True
    return False


@kernel
def find_slot(table, memory, regions, results, slot, words):  # type: ignore[no-untyped-def]
    """Mark the masks of a slot's text: OK, WITHOUT_END, NO_ROOM (it needs a larger region), or an error. results[slot] says which
    unless it is one of the first two. words : (>= n_words,) int32, written to when there is no room for more marks."""
    region = np.int64(regions[slot])
    code = np.int64(NO_ROOM)
    for attempt in range(2):
        if attempt > 0:
            free_records(table, memory, region)
        code = np.int64(find_masks(table, memory, region, words))
        is_open = code == OK and table[EOS_IN_MASKS] == 0 and table[N_EOS] > 0
        if is_open and has_token(table, memory, region, np.int64(table[table[EOS]]), words):
            # as in `fill`: the masks say only that the text or a block may end
            code = np.int64(can_end(table, memory, region))
            if code == ILLEGAL:
                code = np.int64(WITHOUT_END)
        if code != NO_ROOM:
            break
    if code == OK and memory[region + WRITTEN] == 0 and memory[region + N_COLLECTED] == 0:
        code = np.int64(DEAD_END)
    if code != WITHOUT_END:
        results[slot] = code
    return code


@kernel
def take_out_end(table, words):  # type: ignore[no-untyped-def]
    """Clear the bits of the end-of-text tokens."""
    for i in range(table[N_EOS]):
        token = np.int64(table[table[EOS] + i])
        words[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))


@kernel
def begin_text(table, memory, regions, owners, results, lengths, tokens, slot, region, result):  # type: ignore[no-untyped-def]
    """A new text in a slot, in its own region again; its result is `result`, and what was sampled for the text before is not read."""
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
    return 2 * np.int64(image[USED]) <= np.int64(memory[region + CAPACITY])


@kernel
def copy_image(memory, region, image, begin, step):  # type: ignore[no-untyped-def]
    """Put every step-th place of an image, from `begin` on, into a region of which ARENA and CAPACITY are set."""
    for i in range(begin, image.shape[0], step):
        if i < REGION_HEADER + INDENT_ZONE:
            if i != ARENA and i != CAPACITY:
                memory[region + i] = image[i]
        else:
            memory[region + np.int64(memory[region + ARENA]) + i - REGION_HEADER - INDENT_ZONE] = image[i]


@kernel
def claim_plain(owners, slot):  # type: ignore[no-untyped-def]
    """A deep region that no slot has, or -1. Where one thread runs."""
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
    """`advance_slot` for all slots that are OK; token -1 = nothing to read. What the kernel of this name does on a GPU."""
    for slot in range(regions.shape[0]):
        if results[slot] != OK or tokens[slot] == -1:
            continue
        while advance_slot(table, memory, regions, results, lengths, slot, tokens[slot]):
            deep = claim_plain(owners, slot) if regions[slot] < deep_first else np.int64(-1)
            if deep < 0:
                break
            to_deep(memory, regions, owners, slot, deep, deep_first, deep_stride, deep_capacity)


@kernel
def find_slots(table, memory, regions, owners, results, found, words, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """`find_slot` for all slots that are OK; found[slot] is what it returned, IDLE for the others."""
    for slot in range(regions.shape[0]):
        found[slot] = IDLE
        if results[slot] != OK:
            continue
        while True:
            found[slot] = find_slot(table, memory, regions, results, slot, words[slot])
            if found[slot] != NO_ROOM:
                break
            deep = claim_plain(owners, slot) if regions[slot] < deep_first else np.int64(-1)
            if deep < 0:
                break
            to_deep(memory, regions, owners, slot, deep, deep_first, deep_stride, deep_capacity)


@kernel
def write_slots(table, memory, regions, results, found, words, held, row_ids):  # type: ignore[no-untyped-def]
    """The rows of what `find_slots` marked. A slot that is not OK gets the held tokens, and nothing else.

    words : (n_slots, >= n_words) int32. held : (n,) int32 ids. row_ids : (n_slots,) int32, each slot's own number, -1 if it is idle.
    """
    for slot in range(regions.shape[0]):
        row_ids[slot] = -1 if results[slot] == IDLE else slot
        row = words[slot]
        is_live = found[slot] == OK or found[slot] == WITHOUT_END
        if is_live:
            write_collected(table, memory, np.int64(regions[slot]), row)
            if found[slot] == WITHOUT_END:
                take_out_end(table, row)
                is_live = False
                for w in range(row.shape[0]):
                    if row[w] != 0:
                        is_live = True
                        break
                if not is_live:
                    results[slot] = DEAD_END
        if not is_live:
            row[:] = 0
            for i in range(held.shape[0]):
                row[held[i] >> 5] |= np.int32(1) << np.int32(held[i] & 31)


@kernel
def begin_slots(table, memory, regions, owners, results, lengths, tokens, message, n, first, stride, result):  # type: ignore[no-untyped-def]
    """New texts in some slots, whose regions are first + slot * stride again. message : as `message_of` makes it, of n slots."""
    for i in range(n):
        slot = np.int64(message[i])
        region = first + slot * stride
        begin_text(table, memory, regions, owners, results, lengths, tokens, slot, region, result)


@kernel
def load_slots(memory, regions, owners, results, message, n, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """Put the images of a message into slots that have just begun; NO_ROOM where no region holds one."""
    for i in range(n):
        if message[n + i] == 0:
            continue
        slot = np.int64(message[i])
        image = message[message[n + i] : message[2 * n + i]]
        region = np.int64(regions[slot])
        if not fits(memory, region, image):
            deep = claim_plain(owners, slot) if np.int64(image[USED]) < deep_capacity else np.int64(-1)
            if deep < 0:
                results[slot] = NO_ROOM
                continue
            region = deep_first + deep * deep_stride
            regions[slot] = region
        copy_image(memory, region, image, 0, 1)
        results[slot] = AFTER_END if memory[region + FINISHED] else OK


@kernel
def tidy(table, memory, region):  # type: ignore[no-untyped-def]
    """`free_records`."""
    free_records(table, memory, region)


def message_of(slots: Sequence[int], images: Sequence[npt.NDArray[np.int32] | None]) -> npt.NDArray[np.int32]:
    """What `begin_slots` and `load_slots` are told, in one array, so that it is one copy to a device.

    The slots; where each one's image begins, 0 if it has none; where it ends; the images. image : as of `image_of`.
    """
    sizes = [0 if image is None else len(image) for image in images]
    ends = 3 * len(slots) + np.cumsum(sizes, dtype=np.int64)
    begins = [0 if image is None else end - len(image) for image, end in zip(images, ends.tolist(), strict=True)]
    parts = [np.array([*slots, *begins, *ends.tolist()], np.int32), *(image for image in images if image is not None)]
    return np.concatenate(parts)


def image_of(table: npt.NDArray[np.int32], memory: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The text of a matcher as a region without a history and without scratch: header, frames of blocks, the records in use; settled."""
    used, begin = int(memory[USED]), int(memory[ARENA])
    scratch, capacity = scratch_size(table), used + 2 * INDENT_ZONE
    image = np.zeros(region_size(scratch, capacity), np.int32)
    image[:REGION_HEADER] = new_header(scratch, capacity)
    for field in FIELDS_OF_TEXT:
        image[field] = memory[field]
    arena = int(image[ARENA])
    image[arena : arena + RECORD * used] = memory[begin : begin + RECORD * used]
    tidy(table, image, 0)
    return np.concatenate([image[: REGION_HEADER + INDENT_ZONE], image[arena : arena + RECORD * int(image[USED])]])


def new_header(scratch: int, capacity: int) -> npt.NDArray[np.int32]:
    """The places of a region's header that `begin_slot` leaves alone. scratch : `constants.scratch_size`."""
    header = np.zeros(REGION_HEADER, np.int32)
    header[ARENA] = arena_offset(scratch)
    header[CAPACITY] = capacity
    return header


def arena_offset(scratch: int) -> int:
    """Where a region's arena begins: behind the header, the numbers of blocks' frames and the scratch."""
    return REGION_HEADER + INDENT_ZONE + scratch


def region_size(scratch: int, capacity: int) -> int:
    """Places of a region."""
    return arena_offset(scratch) + 4 * capacity
