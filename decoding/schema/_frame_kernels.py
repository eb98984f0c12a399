"""Frames: what a walk reads of them, what may still come, and what a member or item changes."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import (
    are_others_left,
    can_one_close,
    has_bit,
    is_any_left,
    is_key_left,
    leave_listed,
    out_bits,
    set_bit,
)
from maskwright.decoding.schema._literal_kernels import literal_byte
from maskwright.maskstore.schema import layout

NO_STRING = -1
"""The second hash of an item that is no string; the first one is its first byte."""


# ---- Links and marks.


@kernel(forceinline=True)
def n_frames(memory: Int32, link: int) -> int:
    """The frames of a link."""
    return memory[link] if memory[link + c.SHAPE] == c.FORK_SHAPE else 1


@kernel(forceinline=True)
def frame_at(memory: Int32, link: int, number: int) -> int:
    """A frame of a link."""
    return memory[link + c.FORK + number] if memory[link + c.SHAPE] == c.FORK_SHAPE else link


@kernel(forceinline=True)
def mark(memory: Int32, frame: int, kind: int) -> None:
    """Note that a frame has been read: 1, what it lets follow, or 2, anything else.

    Only frames that were opened before the call count (`LIMIT`).
    """
    if memory[c.LIMIT] > 0:
        note_mark(memory, frame, kind)


@kernel
def note_mark(memory: Int32, frame: int, kind: int) -> None:
    """`mark`, where a call notes them. A frame that the call has changed tells what it was."""
    limit = memory[c.LIMIT]
    if memory[frame + c.OPENED] >= limit:
        return
    depth = memory[c.BASE] - memory[frame + c.LEVEL]
    if depth >= c.MOST_DEPTH:
        memory[c.IS_DEEP] = 1
    elif kind == 2 or memory[frame + c.CHANGED] >= limit:
        memory[c.WHOLES] |= 1 << depth
    else:
        memory[c.PARTS] |= 1 << depth


@kernel
def begin_marks(memory: Int32, link: int) -> None:
    """Note what is read of frames from here on, by their depth below those of a link."""
    memory[c.LIMIT] = memory[c.TOP]
    memory[c.BASE] = memory[frame_at(memory, link, 0) + c.LEVEL]
    memory[c.PARTS] = 0
    memory[c.WHOLES] = 0
    memory[c.IS_DEEP] = 0


@kernel
def frame_words(table: Int32, shape: int) -> int:
    """The integers of a frame of a shape."""
    if table[shape + layout.KIND] == layout.OBJECTS:
        return c.FRAME + table[shape + layout.N_WORDS]
    return c.FRAME + ((table[shape + layout.N_UNIQUE] + 31) >> 5)


@kernel
def open_frame(table: Int32, memory: Int32, link: int, shape: int) -> int:
    """A new frame of an object or array that begins. link : to what is around it."""
    frame = memory[c.TOP]
    n = frame_words(table, shape)
    for k in range(n):
        memory[frame + k] = 0
    memory[frame + c.PARENT] = link
    memory[frame + c.SHAPE] = shape
    memory[frame + c.REMEMBERED] = -1
    for k in range(n_frames(memory, link)):
        around = frame_at(memory, link, k)
        memory[frame + c.HOLDS] |= memory[around + c.HOLDS]
        memory[frame + c.LEVEL] = memory[around + c.LEVEL] + 1
    memory[frame + c.OPENED] = frame
    memory[frame + c.CHANGED] = frame
    if table[shape + layout.KIND] == layout.OBJECTS:
        memory[frame + c.MISSING] = table[shape + layout.N_REQUIRED]
    memory[c.TOP] = frame + n
    return frame


@kernel
def copy_frame(table: Int32, memory: Int32, frame: int) -> int:
    """A copy of a frame."""
    copy = memory[c.TOP]
    n = frame_words(table, memory[frame + c.SHAPE])
    for k in range(n):
        memory[copy + k] = memory[frame + k]
    memory[c.TOP] = copy + n
    return copy


@kernel
def replace_frame(table: Int32, memory: Int32, frame: int) -> int:
    """A copy of a frame, to be changed."""
    copy = copy_frame(table, memory, frame)
    memory[copy + c.CHANGED] = copy
    return copy


@kernel
def remember(memory: Int32, frame: int, hash_1: int, hash_2: int, length: int) -> None:
    """Add a key or an item to those that a new frame remembers. length : an item's characters."""
    cell = memory[c.TOP]
    memory[cell] = memory[frame + c.REMEMBERED]
    memory[cell + 1] = c.CELL_SHAPE
    memory[cell + 2] = hash_1
    memory[cell + 3] = hash_2
    memory[cell + 4] = length
    memory[c.TOP] = cell + c.CELL
    memory[frame + c.REMEMBERED] = cell
    memory[frame + c.HOLDS] |= c.HOLDS_ANY


@kernel
def is_remembered(memory: Int32, frame: int, hash_1: int, hash_2: int) -> bool:
    """Whether a key or item has been there."""
    cell = memory[frame + c.REMEMBERED]
    while cell >= 0:
        if memory[cell + 2] == hash_1 and memory[cell + 3] == hash_2:
            return True
        cell = memory[cell]
    return False


@kernel
def has_remembered_length(memory: Int32, frame: int, length: int) -> bool:
    """Whether an item of so many characters has been there."""
    cell = memory[frame + c.REMEMBERED]
    while cell >= 0:
        if memory[cell + 4] == length:
            return True
        cell = memory[cell]
    return False


@kernel
def frames_around(memory: Int32, work: Int32, link: int) -> int:
    """List the frames of a link, and around it, that hold something, each once: in FRONT_1.

    Returns how many there are, or -1 if they are too many.
    """
    frames, n, done = work[c.FRONT_1], 0, 0
    while True:
        for k in range(n_frames(memory, link)):
            frame, number = frame_at(memory, link, k), done
            if memory[frame + c.HOLDS] == 0:
                continue
            while number < n and work[frames + number] != frame:  # those before are further in
                number += 1
            if number == c.N_PLACES:
                return -1
            if number == n:
                work[frames + n] = frame
                n += 1
        if done == n:
            return n
        link = memory[work[frames + done] + c.PARENT]
        done += 1


@kernel
def is_tracked(table: Int32, memory: Int32, frame: int) -> bool:
    """Whether values here are items that must differ from those that are remembered.

    Never for a fork: such values stand in one frame.
    """
    shape = memory[frame + c.SHAPE]
    return shape >= 0 and table[shape + layout.KIND] == layout.ARRAYS and table[shape + layout.TRACKS_ITEMS] != 0


# ---- Objects.


@kernel(forceinline=True)
def is_full(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether only required members may still come to an object."""
    most = table[shape + layout.MOST]
    return most >= 0 and memory[frame + c.COUNT] + memory[frame + c.MISSING] >= most


@kernel
def is_open(table: Int32, memory: Int32, frame: int, shape: int, key: int) -> bool:
    """Whether a named key may still come to an object."""
    if table[shape + layout.ALTERNATIVES] >= 0:
        return is_key_left(table, memory, frame, shape, key)
    if table[table[shape + layout.VALUES] + key] < 0:
        return False
    is_required = has_bit(table, table[shape + layout.REQUIRED], key)
    if not is_required and is_full(table, memory, frame, shape):
        return False
    ranks = table[shape + layout.RANKS]
    if ranks < 0:
        return not has_bit(memory, frame + c.BITS, key)
    rank, here = table[ranks + key], memory[frame + c.RANK]
    if rank < here or rank > table[table[shape + layout.NEXT_REQUIRED] + here]:
        return False
    return can_be_enough(table, memory, frame, shape, table[shape + layout.N_RANKED] - rank)


@kernel
def can_be_enough(table: Int32, memory: Int32, frame: int, shape: int, n_named: int) -> bool:
    """Whether an object comes to LEAST members by so many named keys, and all others left."""
    n_names = table[shape + layout.N_NAMES]
    if n_names < 0:
        return True
    return memory[frame + c.COUNT] + n_named + n_names - memory[frame + c.N_OTHER] >= table[shape + layout.LEAST]


@kernel
def is_any_open(table: Int32, memory: Int32, frame: int, shape: int, low: int, high: int) -> bool:
    """Whether one of the named keys `low` to `high` may still come."""
    for key in range(low, high):  # noqa: SIM110 (for compiled code)
        if is_open(table, memory, frame, shape, key):
            return True
    return False


@kernel
def told_apart(table: Int32, memory: Int32, frame: int) -> int:
    """The items that are contained, or what is wanted and has been there, as bits.

    Frames of one shape that have read the same text differ in nothing else.
    """
    shape = memory[frame + c.SHAPE]
    if shape < 0:
        return 0
    if table[shape + layout.KIND] == layout.ARRAYS:
        return memory[frame + c.MARKED]
    return memory[frame + c.BITS + table[shape + layout.N_WORDS] - 1] if table[shape + layout.N_WANTED] > 0 else 0


@kernel
def are_others_open(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether a key that is not named may still come."""
    if table[shape + layout.N_OTHERS] == 0:
        return False
    if table[shape + layout.ALTERNATIVES] >= 0:
        return are_others_left(table, memory, frame, shape, -1)
    is_wanted = told_apart(table, memory, frame) + 1 < 1 << table[shape + layout.N_WANTED]
    if not is_wanted and is_full(table, memory, frame, shape):
        return False
    if memory[frame + c.N_OTHER] == table[shape + layout.N_NAMES]:
        return False  # all of them have been there
    if table[shape + layout.RANKS] < 0:
        return True
    if table[table[shape + layout.NEXT_REQUIRED] + memory[frame + c.RANK]] != table[shape + layout.N_RANKED]:
        return False
    return can_be_enough(table, memory, frame, shape, 0)


@kernel
def can_go_on(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether one more member may come."""
    return are_others_open(table, memory, frame, shape) or is_any_open(
        table, memory, frame, shape, 0, table[shape + layout.N_KEYS]
    )


@kernel(forceinline=True)
def can_close(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether an object may end."""
    if table[shape + layout.ALTERNATIVES] >= 0:
        return can_one_close(table, memory, frame, shape)
    return memory[frame + c.MISSING] == 0 and memory[frame + c.COUNT] >= table[shape + layout.LEAST]


@kernel
def add_member(table: Int32, memory: Int32, frame: int, shape: int, key: int) -> int:
    """The frame of an object with one more member.

    key : the named key; -1 for another one, -2 - n if it is the one with number n that is wanted.
    """
    found = replace_frame(table, memory, frame)
    memory[found + c.COUNT] += 1
    ranks = table[shape + layout.RANKS]
    if key < 0:
        memory[found + c.N_OTHER] += 1
        if ranks >= 0:
            memory[found + c.RANK] = table[shape + layout.N_RANKED]
        if key < -1:
            memory[found + c.MISSING] -= 1
            set_bit(memory, found + c.BITS + table[shape + layout.N_WORDS] - 1, -2 - key)
        return found
    if ranks >= 0:
        memory[found + c.RANK] = table[ranks + key] + 1
    else:
        set_bit(memory, found + c.BITS, key)
    if has_bit(table, table[shape + layout.REQUIRED], key):
        memory[found + c.MISSING] -= 1
    return found


# ---- Arrays.


@kernel
def item_node(table: Int32, shape: int, number: int, contained: int) -> int:
    """The node of an item, or -1. contained : 1 for one that is contained, else 0."""
    if contained != 0 and table[shape + layout.HAS_CONTAINED] == 0:
        return -1
    if number < table[shape + layout.N_PREFIX]:
        return table[table[shape + (layout.CONTAINED_PREFIX if contained else layout.PREFIX)] + number]
    return table[shape + (layout.CONTAINED_ITEMS if contained else layout.ITEMS)]


@kernel
def can_end_with(table: Int32, shape: int, count: int, marked: int) -> bool:
    """Whether some items complete an array of `count` items, of which `marked` are contained."""
    most = table[shape + layout.MOST]
    if 0 <= most < count:
        return False
    if table[shape + layout.HAS_CONTAINED] == 0:
        return True
    least, wanted, possible = table[shape + layout.LEAST], table[shape + layout.CONTAINED_LEAST], marked
    # one item more, as long as they are too few: the fewest items force the fewest to be contained
    while count < least or possible < wanted:
        if most >= 0 and count >= most:
            return False
        plain, contained = item_node(table, shape, count, 0), item_node(table, shape, count, 1)
        if plain < 0 and contained < 0:
            return False
        n = 1
        if count >= table[shape + layout.N_PREFIX]:
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
    return table[shape + layout.CONTAINED_MOST] < 0 or marked <= table[shape + layout.CONTAINED_MOST]


@kernel
def item_state(table: Int32, memory: Int32, frame: int, shape: int) -> int:
    """The offset of the state of an array whose items have states."""
    return table[table[shape + layout.ITEM_STATES] + memory[frame + c.MARKED]]


@kernel
def can_frame_end(table: Int32, memory: Int32, frame: int) -> bool:
    """Whether an object or array may end."""
    shape = memory[frame + c.SHAPE]
    if table[shape + layout.KIND] == layout.OBJECTS:
        return can_close(table, memory, frame, shape)
    if memory[frame + c.COUNT] < table[shape + layout.LEAST]:
        return False
    if table[shape + layout.HAS_CONTAINED] == 0:
        return True
    if table[shape + layout.HAS_CONTAINED] == layout.BY_STATES:
        return table[item_state(table, memory, frame, shape)] != 0
    marked, most = memory[frame + c.MARKED], table[shape + layout.CONTAINED_MOST]
    return marked >= table[shape + layout.CONTAINED_LEAST] and (most < 0 or marked <= most)


@kernel
def can_be_item(table: Int32, memory: Int32, frame: int, shape: int, node: int) -> bool:
    """Whether a node has an item that has not been there, where they are few and differ."""
    if node < 0:
        return False
    if table[shape + layout.N_UNIQUE] == 0:
        return True
    for k in range(table[node + layout.NODE_SIZE]):
        literals = table[node + layout.NODE_SHAPES + k]
        for number in range(table[table[literals + layout.LITERALS]]):
            if not has_bit(memory, frame + c.BITS, table[table[literals + layout.UNIQUE_NUMBERS] + number]):
                return True
    return False


@kernel
def add_item(table: Int32, memory: Int32, frame: int, marked: int) -> int:
    """The frame of an array with one more item.

    marked : 1 if the item is contained, else 0; or what is added to the number of the state.
    """
    found = replace_frame(table, memory, frame)
    memory[found + c.COUNT] += 1
    memory[found + c.MARKED] += marked
    return found


@kernel
def is_literal_open(table: Int32, memory: Int32, frame: int, shape: int, number: int) -> bool:
    """Whether a literal may stand here: it may not where it is an item that has been there."""
    if memory[c.LIMIT] == 0 and table[shape + layout.KIND] == layout.SPELLINGS and is_tracked(table, memory, frame):
        return not is_remembered(
            memory, frame, literal_byte(table, table[shape + layout.LITERALS], number, 0), NO_STRING
        )
    numbers, leaves = table[shape + layout.UNIQUE_NUMBERS], table[shape + layout.LEAVES]
    if numbers < 0 and leaves < 0:
        return True
    mark(memory, frame, 2)
    if leaves >= 0:
        return is_any_left(table, memory, out_bits(table, frame, memory[frame + c.SHAPE]), table[leaves + number])
    return not has_bit(memory, frame + c.BITS, table[numbers + number])


@kernel
def is_any_literal_open(table: Int32, memory: Int32, frame: int, shape: int, low: int, high: int) -> bool:
    """Whether one of the literals `low` to `high` may stand here."""
    for number in range(low, high):  # noqa: SIM110 (for compiled code)
        if is_literal_open(table, memory, frame, shape, number):
            return True
    return False


@kernel
def use_literal(table: Int32, memory: Int32, frame: int, shape: int, number: int) -> int:
    """The frame around a literal that has ended."""
    numbers, leaves = table[shape + layout.UNIQUE_NUMBERS], table[shape + layout.LEAVES]
    if numbers < 0 and leaves < 0:
        return frame
    mark(memory, frame, 2)
    found = replace_frame(table, memory, frame)
    if leaves >= 0:
        leave_listed(table, memory, frame, memory[frame + c.SHAPE], found, table[leaves + number])
        return found
    set_bit(memory, found + c.BITS, table[numbers + number])
    return found
