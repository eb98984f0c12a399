"""Kept results: found by all that they depend on, which is asked for piece by piece.

A mask depends on a thread and on what its tokens read of the frames around it. What that is, is
known once a mask has been made (`mark`). So a key leads to a result, or to a *question*: the number
of a piece of the frames. With that piece it makes the next key, and so on, until there is a result:
a decision tree that grows with what is met. Whole keys are compared, so no result is ever taken for
another's.

A piece is 2 * depth for what the frames at that depth let follow, or 2 * depth + 1 for all of them.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._frame_kernels import are_others_open, can_close, can_go_on, frame_at, n_frames
from maskwright.decoding.schema._space_kernels import known_space
from maskwright.maskstore.schema import layout

OPEN_END, QUESTION, ROW, SEVERAL = -1, -2, -3, -5
"""What begins a key, or a piece: the frame below all; a key that goes on; a row of an automaton;
several frames. (-4: an array that any number of items may follow.)"""


@kernel
def reset_memo(work: Int32) -> None:
    """Forget all that was kept."""
    for k in range(c.SLOT * work[c.N_SLOTS]):
        work[work[c.SLOTS] + k] = 0
    work[c.DATA_TOP] = work[c.DATA]
    work[c.N_USED] = 0
    work[c.N_RESETS] += 1


@kernel
def keep_room(work: Int32) -> None:
    """Forget all if there is not room for what one mask may add."""
    if 2 * work[c.N_USED] > work[c.N_SLOTS] - 1024 or work[c.DATA_TOP] + 2 * work[c.RESERVE] > work[c.DATA_END]:
        reset_memo(work)


@kernel
def find(work: Int32, n: int) -> int:
    """The slot of the key of n integers in KEY_BUFFER, or -1 - the slot that is free for it."""
    key = work[c.KEY_BUFFER]
    mixed = 0x2545F491
    for k in range(n):
        mixed = ((mixed ^ (int(work[key + k]) & 0xFFFFFFFF)) * 0x9E3779B1) & 0xFFFFFFFFFFFF
        mixed ^= mixed >> 15
    hashed = (mixed ^ (mixed >> 21)) & 0x7FFFFFFF | 1
    mask = int(work[c.N_SLOTS]) - 1
    place = (mixed >> 7) & mask
    while True:
        slot = work[c.SLOTS] + c.SLOT * place
        if work[slot] == 0:
            work[key - 1] = hashed  # for `insert`
            return -1 - slot
        if work[slot] == hashed:
            stored = work[slot + 1]
            if work[stored] == n:
                k = 0
                while k < n and work[stored + 1 + k] == work[key + k]:
                    k += 1
                if k == n:
                    return slot
        place = (place + 1) & mask


@kernel
def insert(work: Int32, free: int, n: int, value: int) -> int:
    """Keep a value under the key in KEY_BUFFER, of which `find` has just said where.

    Returns its slot, or -1 where keys have no more room: then nothing is kept.
    """
    slot = -1 - free
    key = work[c.KEY_BUFFER]
    at = work[c.DATA_TOP]
    if at + 1 + n + work[c.RESERVE] > work[c.DATA_END] or 4 * work[c.N_USED] > 3 * work[c.N_SLOTS]:
        return -1
    work[at] = n
    for k in range(n):
        work[at + 1 + k] = work[key + k]
    work[c.DATA_TOP] = at + 1 + n
    work[slot] = work[key - 1]
    work[slot + 1] = at
    work[slot + 2] = value
    work[c.N_USED] += 1
    return slot


@kernel
def write_piece(voc: Int32, table: Int32, memory: Int32, work: Int32, slot: int, link: int, piece: int) -> int:
    """Write the key that goes on from a slot's question with a piece of the frames.

    link : to the frames of depth 0.

    Returns its size, -1 if it is too long to be kept.
    """
    key = work[c.KEY_BUFFER]
    work[key] = QUESTION
    work[key + 1] = work[slot + 1]
    depth = piece >> 1
    while depth > 0 and memory[link + c.SHAPE] != c.FORK_SHAPE:
        link = memory[link + c.PARENT]
        depth -= 1
    if memory[link + c.SHAPE] != c.FORK_SHAPE:
        n = write_frame(voc, table, memory, work, key + 2, link, piece & 1)
    else:
        n = write_frames(voc, table, memory, work, key + 2, link, depth, piece & 1)
    return n - key if n >= 0 else -1


@kernel
def write_frames(voc: Int32, table: Int32, memory: Int32, work: Int32, n: int, link: int, depth: int, kind: int) -> int:
    """`write_frame` of all frames at a depth below those of a fork, each with its size before it.

    Before them stands which of them each frame above is in. Returns the end, or -1.
    """
    above, here = work[c.FRONT_1], work[c.FRONT_2]
    size = n_frames(memory, link)
    for k in range(size):
        work[here + k] = frame_at(memory, link, k)
    for level in range(depth):
        above, here = here, above
        below = 0
        for k in range(size):
            parents = memory[work[above + k] + c.PARENT]
            many = n_frames(memory, parents)
            if n + many + 64 > work[c.KEY_END] or below + many > c.N_PLACES:
                return -1
            if level == depth - 1:
                work[n] = many
                n += 1
            for parent in range(many):
                frame, number = frame_at(memory, parents, parent), 0
                while number < below and work[here + number] != frame:
                    number += 1
                if number == below:
                    work[here + below] = frame
                    below += 1
                if level == depth - 1:
                    work[n] = number
                    n += 1
        size = below
    if n + 64 > work[c.KEY_END]:
        return -1
    work[n] = SEVERAL
    work[n + 1] = size
    n += 2
    for k in range(size):
        end = write_frame(voc, table, memory, work, n + 1, work[here + k], kind)
        if end < 0:
            return -1
        work[n] = end - n
        n = end
    return n


@kernel
def write_frame(voc: Int32, table: Int32, memory: Int32, work: Int32, n: int, frame: int, kind: int) -> int:
    """Write a piece of a frame at an offset of `work`, within KEY_BUFFER.

    kind : 0 for what it lets follow, 1 for all of it.

    Returns the end, or -1 if there is no room.
    """
    shape = memory[frame + c.SHAPE]
    if n + 64 > work[c.KEY_END]:
        return -1
    if shape < 0:
        work[n] = OPEN_END
        return n + 1
    if table[shape + layout.KIND] != layout.OBJECTS:
        return write_array(voc, table, memory, work, n, frame)
    if kind == 0:
        flags = 4 if are_others_open(table, memory, frame, shape) else 0
        flags |= 2 if can_go_on(table, memory, frame, shape) else 0
        work[n] = flags | (1 if can_close(table, memory, frame, shape) else 0)
        # a named key marks all of the frame as it is read; another one needs the shape alone
        work[n + 1] = table[shape + layout.SHAPE_ID] if flags & 4 else 0
        return n + 2
    words = table[shape + layout.N_WORDS]
    if n + words + 64 > work[c.KEY_END]:
        return -1
    counts = table[shape + layout.LEAST] > 0 or table[shape + layout.MOST] >= 0
    work[n] = table[shape + layout.SHAPE_ID]
    work[n + 1] = memory[frame + c.MISSING]
    work[n + 2] = memory[frame + c.RANK]
    work[n + 3] = memory[frame + c.COUNT] if counts else 0
    left = table[shape + layout.N_NAMES]
    if left >= 0:  # what no token can use up is said alike
        left -= memory[frame + c.N_OTHER]
        left = left if counts else min(left, voc[layout.MOST_BYTES] + 1)
    work[n + 4] = left
    for k in range(words):
        work[n + 5 + k] = memory[frame + c.BITS + k]
    return n + 5 + words


@kernel
def write_array(voc: Int32, table: Int32, memory: Int32, work: Int32, n: int, frame: int) -> int:
    """`write_frame` of an array: what it lets follow is all of it."""
    shape = memory[frame + c.SHAPE]
    count, least, most = memory[frame + c.COUNT], table[shape + layout.LEAST], table[shape + layout.MOST]
    n_unique = table[shape + layout.N_UNIQUE]
    is_plain = table[shape + layout.HAS_CONTAINED] == 0 and n_unique == 0 and count >= table[shape + layout.N_PREFIX]
    if is_plain and count >= least and (most < 0 or most - count > voc[layout.MOST_BYTES]):
        items = table[shape + layout.ITEMS]
        work[n] = -4
        work[n + 1] = table[items + layout.NODE_ID] if items >= 0 else -1
        return n + 2
    words = (n_unique + 31) >> 5
    if n + words + 64 > work[c.KEY_END]:
        return -1
    if most < 0:
        count = min(count, max(max(least, table[shape + layout.N_PREFIX]), 1))
    work[n] = table[shape + layout.SHAPE_ID]
    work[n + 1] = count
    work[n + 2] = memory[frame + c.MARKED]
    for k in range(words):
        work[n + 3 + k] = memory[frame + c.BITS + k]
    return n + 3 + words


@kernel
def pieces_read(memory: Int32) -> int:
    """The pieces that have been marked, as bits; -1 if some are too deep."""
    if memory[c.IS_DEEP] != 0:
        return -1
    parts, wholes = int(memory[c.PARTS]), int(memory[c.WHOLES])
    found, depth = 0, 0
    while (parts | wholes) >> depth != 0:
        found |= (parts >> depth & 1 | (wholes >> depth & 1) << 1) << 2 * depth
        depth += 1
    return found


@kernel
def next_question(asked: int, wanted: int) -> int:
    """The first piece that is wanted and has not been asked for; -1 if there is none."""
    for depth in range(c.MOST_DEPTH):
        part, whole = 1 << 2 * depth, 2 << 2 * depth
        if wanted & whole != 0:
            if asked & whole == 0:
                return 2 * depth + 1
        elif wanted & part != 0 and asked & (part | whole) == 0:
            return 2 * depth
    return -1


@kernel
def ask(voc: Int32, table: Int32, memory: Int32, work: Int32, link: int, n: int) -> tuple[int, int]:
    """Follow the questions from the key of n integers in KEY_BUFFER.

    link : to the frames of depth 0.

    Returns a result's offset or -1, and the pieces that were asked for, as bits.
    """
    asked = 0
    while n >= 0:
        slot = find(work, n)
        if slot < 0:
            break
        value = int(work[slot + 2])
        if value >= 0:
            return value, asked
        asked |= 1 << -1 - value
        n = write_piece(voc, table, memory, work, slot, link, -1 - value)
    return -1, asked


@kernel
def answer(voc: Int32, table: Int32, memory: Int32, work: Int32, link: int, n: int, wanted: int, result: int) -> None:
    """Keep a result under the key of n integers in KEY_BUFFER, and the pieces that it depends on.

    wanted : these pieces, as bits; -1 if they are too deep, so that nothing is kept.
    """
    asked = 0
    while n >= 0 and wanted >= 0:
        slot = find(work, n)
        piece = next_question(asked, wanted)
        if slot >= 0:
            piece = -1 - int(work[slot + 2])
        else:
            slot = insert(work, slot, n, result if piece < 0 else -1 - piece)
        if slot < 0 or piece < 0:
            return
        asked |= 1 << piece
        n = write_piece(voc, table, memory, work, slot, link, piece)


@kernel
def write_thread_key(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, purpose: int
) -> int:
    """Write the key of a thread, without its frames, to KEY_BUFFER. Returns its size.

    purpose : what is kept under it: a number that no other kind of result has.
    """
    mode, shape = work[at + c.MODE], work[at + c.SHAPE_OF]
    n = work[c.KEY_BUFFER] + 1
    work[n - 1] = table[layout.SPACING_ID] << 6 | purpose << 4 | mode
    # the level says how far a line is indented
    work[n] = memory[frame_at(memory, work[at + c.LINK], 0) + c.LEVEL] if table[layout.INDENT] > 0 else 0
    if mode < c.STRING:
        work[n + 1] = known_space(table, work[at + c.AUTOMATON], voc[layout.MOST_BYTES])
        if mode not in (c.VALUE, c.COLON):
            return 3
        work[n + 2] = table[shape + layout.NODE_ID]
        return 4
    work[n + 2] = work[at + c.AUTOMATON]
    if mode == c.NUMBER:
        work[n + 1] = automata[table[shape + layout.NUMBER_AUTOMATON] + layout.AUTOMATON_ID]
        return 4
    work[n + 1] = table[shape + layout.SHAPE_ID]
    work[n + 3] = work[at + c.ESCAPE]
    work[n + 4] = work[at + c.CODE]
    work[n + 5] = work[at + c.UTF8]
    if mode == c.STRING and table[shape + layout.KIND] != layout.STRING_LITERALS:
        automaton = table[shape + layout.STRING_AUTOMATON]
        work[n + 1] = -1 if automaton < 0 else automata[automaton + layout.AUTOMATON_ID]
        work[n + 6], work[n + 7] = characters_left(voc, table, automata, work, at)
        return 9
    work[n + 6] = work[at + c.LOW]
    work[n + 7] = work[at + c.HIGH]
    work[n + 8] = work[at + c.DEPTH]
    if mode != c.KEY_STRING:
        return 10
    work[n + 9] = work[at + c.IS_OFF]
    work[n + 10] = work[at + c.LENGTH]
    return 12


@kernel
def characters_left(voc: Int32, table: Int32, automata: Int32, work: Int32, at: int) -> tuple[int, int]:
    """The least number of characters that a string of STRINGS lacks, and the greatest.

    -1 for as many as a token can have. What no token can reach is said alike.
    """
    shape = work[at + c.SHAPE_OF]
    most, length, longest = table[shape + layout.STRING_MOST], work[at + c.LENGTH], voc[layout.MOST_BYTES]
    least = max(table[shape + layout.STRING_LEAST] - length, 0)
    rest = most - length if most >= 0 else -1
    lengths = table[shape + layout.STRING_LENGTHS]
    if lengths < 0:
        return min(least, longest + 1), rest if rest <= longest else -1
    reach = longest + automata[lengths] + automata[lengths + 1]
    if rest > reach + least:  # however a token goes on, an end is near enough
        rest = -1
    if rest < 0 and least > reach:
        least = reach + (least - reach) % automata[lengths + 1]
    return least, rest
