"""Frames: what a walk reads of them, what may still come, and what a member or item changes."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema._literal_kernels import literal_byte
from maskwright.decoding.schema.constants import (
    BASE,
    BITS,
    CELL,
    CELL_SHAPE,
    CHANGED,
    COUNT,
    FORK,
    FORK_SHAPE,
    FRAME,
    HOLDS,
    HOLDS_ANY,
    IS_DEEP,
    LEVEL,
    LIMIT,
    MARKED,
    MISSING,
    MOST_DEPTH,
    N_OTHER,
    N_PLACES,
    OPENED,
    PARENT,
    PARTS,
    RANK,
    REMEMBERED,
    SHAPE,
    TOP,
    WHOLES,
)
from maskwright.maskstore.schema.layout import (
    ARRAYS,
    BY_STATES,
    CONTAINED_ITEMS,
    CONTAINED_LEAST,
    CONTAINED_MOST,
    CONTAINED_PREFIX,
    HAS_CONTAINED,
    ITEM_STATES,
    ITEMS,
    KIND,
    LEAST,
    LITERALS,
    MOST,
    N_KEYS,
    N_NAMES,
    N_OTHERS,
    N_PREFIX,
    N_RANKED,
    N_REQUIRED,
    N_UNIQUE,
    N_WORDS,
    NEXT_REQUIRED,
    NODE_SHAPES,
    NODE_SIZE,
    OBJECTS,
    PREFIX,
    RANKS,
    REQUIRED,
    SPELLINGS,
    TRACKS_ITEMS,
    UNIQUE_NUMBERS,
    VALUES,
)

NO_STRING = -1
"""The second hash of an item that is no string; the first one is its first byte."""


# ---- Links and marks.


@kernel(forceinline=True)
def n_frames(memory: Int32, link: int) -> int:
    """The frames of a link."""
    return memory[link] if memory[link + SHAPE] == FORK_SHAPE else 1


@kernel(forceinline=True)
def frame_at(memory: Int32, link: int, number: int) -> int:
    """A frame of a link."""
    return memory[link + FORK + number] if memory[link + SHAPE] == FORK_SHAPE else link


@kernel(forceinline=True)
def mark(memory: Int32, frame: int, kind: int) -> None:
    """Note that a frame has been read: 1, what it lets follow, or 2, anything else.

    Only frames that were opened before the call count (`LIMIT`).
    """
    if memory[LIMIT] > 0:
        note_mark(memory, frame, kind)


@kernel
def note_mark(memory: Int32, frame: int, kind: int) -> None:
    """`mark`, where a call notes them. A frame that the call has changed tells what it was."""
    limit = memory[LIMIT]
    if memory[frame + OPENED] >= limit:
        return
    depth = memory[BASE] - memory[frame + LEVEL]
    if depth >= MOST_DEPTH:
        memory[IS_DEEP] = 1
    elif kind == 2 or memory[frame + CHANGED] >= limit:
        memory[WHOLES] |= 1 << depth
    else:
        memory[PARTS] |= 1 << depth


@kernel
def begin_marks(memory: Int32, link: int) -> None:
    """Note what is read of frames from here on, by their depth below those of a link."""
    memory[LIMIT] = memory[TOP]
    memory[BASE] = memory[frame_at(memory, link, 0) + LEVEL]
    memory[PARTS] = 0
    memory[WHOLES] = 0
    memory[IS_DEEP] = 0


@kernel(forceinline=True)
def has_bit(array: Int32, at: int, number: int) -> bool:
    """A bit of the words at an offset."""
    return (array[at + (number >> 5)] >> (number & 31)) & 1 != 0


@kernel
def set_bit(array: Int32, at: int, number: int) -> None:
    """Set a bit of the words at an offset."""
    array[np.uint64(at + (number >> 5))] |= np.int32(np.uint32(1) << np.uint32(number & 31))


@kernel
def frame_words(table: Int32, shape: int) -> int:
    """The integers of a frame of a shape."""
    if table[shape + KIND] == OBJECTS:
        return FRAME + table[shape + N_WORDS]
    return FRAME + ((table[shape + N_UNIQUE] + 31) >> 5)


@kernel
def open_frame(table: Int32, memory: Int32, link: int, shape: int) -> int:
    """A new frame of an object or array that begins. link : to what is around it."""
    frame = memory[TOP]
    n = frame_words(table, shape)
    for k in range(n):
        memory[frame + k] = 0
    memory[frame + PARENT] = link
    memory[frame + SHAPE] = shape
    memory[frame + REMEMBERED] = -1
    for k in range(n_frames(memory, link)):
        around = frame_at(memory, link, k)
        memory[frame + HOLDS] |= memory[around + HOLDS]
        memory[frame + LEVEL] = memory[around + LEVEL] + 1
    memory[frame + OPENED] = frame
    memory[frame + CHANGED] = frame
    if table[shape + KIND] == OBJECTS:
        memory[frame + MISSING] = table[shape + N_REQUIRED]
    memory[TOP] = frame + n
    return frame


@kernel
def copy_frame(table: Int32, memory: Int32, frame: int) -> int:
    """A copy of a frame."""
    copy = memory[TOP]
    n = frame_words(table, memory[frame + SHAPE])
    for k in range(n):
        memory[copy + k] = memory[frame + k]
    memory[TOP] = copy + n
    return copy


@kernel
def replace_frame(table: Int32, memory: Int32, frame: int) -> int:
    """A copy of a frame, to be changed."""
    copy = copy_frame(table, memory, frame)
    memory[copy + CHANGED] = copy
    return copy


@kernel
def remember(memory: Int32, frame: int, hash_1: int, hash_2: int, length: int) -> None:
    """Add a key or an item to those that a new frame remembers. length : an item's characters."""
    cell = memory[TOP]
    memory[cell] = memory[frame + REMEMBERED]
    memory[cell + 1] = CELL_SHAPE
    memory[cell + 2] = hash_1
    memory[cell + 3] = hash_2
    memory[cell + 4] = length
    memory[TOP] = cell + CELL
    memory[frame + REMEMBERED] = cell
    memory[frame + HOLDS] |= HOLDS_ANY


@kernel
def is_remembered(memory: Int32, frame: int, hash_1: int, hash_2: int) -> bool:
    """Whether a key or item has been there."""
    cell = memory[frame + REMEMBERED]
    while cell >= 0:
        if memory[cell + 2] == hash_1 and memory[cell + 3] == hash_2:
            return True
        cell = memory[cell]
    return False


@kernel
def has_remembered_length(memory: Int32, frame: int, length: int) -> bool:
    """Whether an item of so many characters has been there."""
    cell = memory[frame + REMEMBERED]
    while cell >= 0:
        if memory[cell + 4] == length:
            return True
        cell = memory[cell]
    return False


@kernel
def add_frames(memory: Int32, work: Int32, frames: int, n: int, link: int) -> int:
    """Add the frames of a link that hold something to a list of n, each once.

    Returns how many there are now, or -1 if they are too many, or were.
    """
    for k in range(n_frames(memory, link)):
        frame, number = frame_at(memory, link, k), 0
        if memory[frame + HOLDS] == 0 or n < 0:
            continue
        while number < n and work[frames + number] != frame:
            number += 1
        if number == N_PLACES:
            return -1
        if number == n:
            work[frames + n] = frame
            n += 1
    return n


@kernel
def is_tracked(table: Int32, memory: Int32, frame: int) -> bool:
    """Whether values here are items that must differ from those that are remembered.

    Never for a fork: such values stand in one frame.
    """
    shape = memory[frame + SHAPE]
    return shape >= 0 and table[shape + KIND] == ARRAYS and table[shape + TRACKS_ITEMS] != 0


# ---- Objects.


@kernel(forceinline=True)
def is_full(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether only required members may still come to an object."""
    most = table[shape + MOST]
    return most >= 0 and memory[frame + COUNT] + memory[frame + MISSING] >= most


@kernel
def is_open(table: Int32, memory: Int32, frame: int, shape: int, key: int) -> bool:
    """Whether a named key may still come to an object."""
    if table[table[shape + VALUES] + key] < 0:
        return False
    is_required = has_bit(table, table[shape + REQUIRED], key)
    if not is_required and is_full(table, memory, frame, shape):
        return False
    ranks = table[shape + RANKS]
    if ranks < 0:
        return not has_bit(memory, frame + BITS, key)
    rank, here = table[ranks + key], memory[frame + RANK]
    if rank < here or rank > table[table[shape + NEXT_REQUIRED] + here]:
        return False
    return can_be_enough(table, memory, frame, shape, table[shape + N_RANKED] - rank)


@kernel
def can_be_enough(table: Int32, memory: Int32, frame: int, shape: int, n_named: int) -> bool:
    """Whether an object comes to LEAST members by so many named keys, and all others left."""
    n_names = table[shape + N_NAMES]
    if n_names < 0:
        return True
    return memory[frame + COUNT] + n_named + n_names - memory[frame + N_OTHER] >= table[shape + LEAST]


@kernel
def is_any_open(table: Int32, memory: Int32, frame: int, shape: int, low: int, high: int) -> bool:
    """Whether one of the named keys `low` to `high` may still come."""
    for key in range(low, high):  # noqa: SIM110 (for compiled code)
        if is_open(table, memory, frame, shape, key):
            return True
    return False


@kernel
def are_others_open(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether a key that is not named may still come."""
    if table[shape + N_OTHERS] == 0 or is_full(table, memory, frame, shape):
        return False
    if memory[frame + N_OTHER] == table[shape + N_NAMES]:
        return False  # all of them have been there
    if table[shape + RANKS] < 0:
        return True
    if table[table[shape + NEXT_REQUIRED] + memory[frame + RANK]] != table[shape + N_RANKED]:
        return False
    return can_be_enough(table, memory, frame, shape, 0)


@kernel
def can_go_on(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether one more member may come."""
    return are_others_open(table, memory, frame, shape) or is_any_open(
        table, memory, frame, shape, 0, table[shape + N_KEYS]
    )


@kernel(forceinline=True)
def can_close(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether an object may end."""
    return memory[frame + MISSING] == 0 and memory[frame + COUNT] >= table[shape + LEAST]


@kernel
def add_member(table: Int32, memory: Int32, frame: int, shape: int, key: int) -> int:
    """The frame of an object with one more member. key : the named key; -1 for another one."""
    found = replace_frame(table, memory, frame)
    memory[found + COUNT] += 1
    ranks = table[shape + RANKS]
    if key < 0:
        memory[found + N_OTHER] += 1
        if ranks >= 0:
            memory[found + RANK] = table[shape + N_RANKED]
        return found
    if ranks >= 0:
        memory[found + RANK] = table[ranks + key] + 1
    else:
        set_bit(memory, found + BITS, key)
    if has_bit(table, table[shape + REQUIRED], key):
        memory[found + MISSING] -= 1
    return found


# ---- Arrays.


@kernel
def item_node(table: Int32, shape: int, number: int) -> int:
    """The node of an item that is not contained, or -1."""
    if number < table[shape + N_PREFIX]:
        return table[table[shape + PREFIX] + number]
    return table[shape + ITEMS]


@kernel
def contained_node(table: Int32, shape: int, number: int) -> int:
    """The node of an item that is contained, or -1."""
    if table[shape + HAS_CONTAINED] == 0:
        return -1
    if number < table[shape + N_PREFIX]:
        return table[table[shape + CONTAINED_PREFIX] + number]
    return table[shape + CONTAINED_ITEMS]


@kernel
def can_end_with(table: Int32, shape: int, count: int, marked: int) -> bool:
    """Whether some items complete an array of `count` items, of which `marked` are contained."""
    most = table[shape + MOST]
    if 0 <= most < count:
        return False
    if table[shape + HAS_CONTAINED] == 0:
        return True
    least, wanted, allowed = table[shape + LEAST], table[shape + CONTAINED_LEAST], table[shape + CONTAINED_MOST]
    possible = marked
    # one item more, as long as they are too few: the fewest items force the fewest to be contained
    while count < least or possible < wanted:
        if most >= 0 and count >= most:
            return False
        plain, contained = item_node(table, shape, count), contained_node(table, shape, count)
        if plain < 0 and contained < 0:
            return False
        n = 1
        if count >= table[shape + N_PREFIX]:
            if contained < 0 and possible < wanted:
                return False
            n = max(least - count, wanted - possible if contained >= 0 else 0, 1)
            if most >= 0 and count + n > most:
                return False
        count += n
        if plain < 0:
            marked += n
        if contained >= 0:
            possible += n
    return allowed < 0 or marked <= allowed


@kernel
def item_state(table: Int32, memory: Int32, frame: int, shape: int) -> int:
    """The offset of the state of an array whose items have states."""
    return table[table[shape + ITEM_STATES] + memory[frame + MARKED]]


@kernel
def can_frame_end(table: Int32, memory: Int32, frame: int) -> bool:
    """Whether an object or array may end."""
    shape = memory[frame + SHAPE]
    if table[shape + KIND] == OBJECTS:
        return can_close(table, memory, frame, shape)
    if memory[frame + COUNT] < table[shape + LEAST]:
        return False
    if table[shape + HAS_CONTAINED] == 0:
        return True
    if table[shape + HAS_CONTAINED] == BY_STATES:
        return table[item_state(table, memory, frame, shape)] != 0
    marked, most = memory[frame + MARKED], table[shape + CONTAINED_MOST]
    return marked >= table[shape + CONTAINED_LEAST] and (most < 0 or marked <= most)


@kernel
def can_be_item(table: Int32, memory: Int32, frame: int, shape: int, node: int) -> bool:
    """Whether a node has an item that has not been there, where they are few and differ."""
    if node < 0:
        return False
    if table[shape + N_UNIQUE] == 0:
        return True
    for k in range(table[node + NODE_SIZE]):
        literals = table[node + NODE_SHAPES + k]
        for number in range(table[table[literals + LITERALS]]):
            if not has_bit(memory, frame + BITS, table[table[literals + UNIQUE_NUMBERS] + number]):
                return True
    return False


@kernel
def add_item(table: Int32, memory: Int32, frame: int, marked: int) -> int:
    """The frame of an array with one more item.

    marked : 1 if the item is contained, else 0; or what is added to the number of the state.
    """
    found = replace_frame(table, memory, frame)
    memory[found + COUNT] += 1
    memory[found + MARKED] += marked
    return found


@kernel
def is_literal_open(table: Int32, memory: Int32, frame: int, shape: int, number: int) -> bool:
    """Whether a literal may stand here: it may not where it is an item that has been there."""
    numbers = table[shape + UNIQUE_NUMBERS]
    if numbers < 0:
        return True
    mark(memory, frame, 2)
    return not has_bit(memory, frame + BITS, table[numbers + number])


@kernel
def is_any_literal_open(table: Int32, memory: Int32, frame: int, shape: int, low: int, high: int) -> bool:
    """Whether one of the literals `low` to `high` may stand here."""
    if low >= high:
        return False
    if memory[LIMIT] == 0 and table[shape + KIND] == SPELLINGS and is_tracked(table, memory, frame):
        literals = table[shape + LITERALS]
        for number in range(low, high):  # noqa: SIM110 (for compiled code)
            if not is_remembered(memory, frame, literal_byte(table, literals, number, 0), NO_STRING):
                return True
        return False
    if table[shape + UNIQUE_NUMBERS] < 0:
        return True
    mark(memory, frame, 2)
    for number in range(low, high):  # noqa: SIM110 (for compiled code)
        if is_literal_open(table, memory, frame, shape, number):
            return True
    return False


@kernel
def use_literal(table: Int32, memory: Int32, frame: int, shape: int, number: int) -> int:
    """The frame around a literal that has ended."""
    numbers = table[shape + UNIQUE_NUMBERS]
    if numbers < 0:
        return frame
    mark(memory, frame, 2)
    found = replace_frame(table, memory, frame)
    set_bit(memory, found + BITS, table[numbers + number])
    return found
