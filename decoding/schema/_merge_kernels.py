"""Merging: threads that differ in their links alone become one, and so do frames.

So a text has as many threads as there are places of the schema where it may stand, whatever is
around them: alternatives inside one another do not multiply.

Source: M. Tomita, An efficient context-free parsing algorithm for natural languages, 1985
(graph-structured stacks). Here all stacks have the same depth, since brackets are brackets in each
reading, so frames are compared within one level alone.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import unite_left
from maskwright.decoding.schema._frame_kernels import copy_frame, frame_at, frame_words, n_frames, told_apart
from maskwright.maskstore.schema import layout

CLASS_LINK, CLASS_NEXT, CLASS_LAST = 0, 1, 2
"""Of a thread that is merged: its link; the next thread that is equal, or -1; of the first of such
threads, the last."""


@kernel
def next_stamp(work: Int32) -> int:
    """A stamp that no place has."""
    if work[c.STAMP] == 1 << 30:
        for k in range(2 * c.N_PLACES):
            work[work[c.PLACES] + k] = 0
        work[c.STAMP] = 0
    work[c.STAMP] += 1
    return work[c.STAMP]


@kernel
def find_equal(work: Int32, stamp: int, to: int, at: int, new: int) -> int:
    """The number of a thread from `to` on that is equal to that at `at` but for its link.

    If there is none, -1; then that thread is noted under the number `new`.
    """
    mixed = int(work[at + c.SHAPE_OF]) * 0x9E3779B1 ^ int(work[at + c.AUTOMATON]) * 0x85EBCA6B
    mixed = (
        mixed ^ int(work[at + c.LOW]) * 0xC2B2AE35 ^ int(work[at + c.IS_OFF]) * 31 ^ int(work[at + c.MODE])
    ) & 0xFFFFFFFF
    place = (mixed ^ mixed >> 15) & (c.N_PLACES - 1)
    places = work[c.PLACES]
    while work[places + 2 * place] == stamp:
        number = work[places + 2 * place + 1]
        other = to + number * c.THREAD
        k = c.LINK + 1
        while k < c.THREAD and work[other + k] == work[at + k]:
            k += 1
        if k == c.THREAD:
            return number
        place = (place + 1) & (c.N_PLACES - 1)
    work[places + 2 * place] = stamp
    work[places + 2 * place + 1] = new
    return -1


@kernel
def new_fork(memory: Int32, n: int) -> int:
    """A fork of n frames, which the caller writes; or -1 - an error."""
    link = memory[c.TOP]
    if n > c.MOST_READINGS:
        return -1 - c.TOO_MANY
    if link + c.FORK + n > len(memory):
        return -1 - c.NO_ROOM
    memory[link], memory[link + c.SHAPE], memory[c.TOP] = n, c.FORK_SHAPE, link + c.FORK + n
    return link


@kernel
def merge(table: Int32, memory: Int32, work: Int32, to: int, n: int) -> int:
    """Make one thread of those that differ in their links alone.

    Returns how many are left, or -1 - an error.
    """
    classes, top = work[c.CLASSES], memory[c.TOP]
    stamp = next_stamp(work)
    kept = 0
    for k in range(n):
        at = to + k * c.THREAD
        here = classes + c.CLASS * k
        work[here + CLASS_LINK] = work[at + c.LINK]
        work[here + CLASS_NEXT] = -1
        number = find_equal(work, stamp, to, at, kept)
        if number >= 0:
            first = work[to + number * c.THREAD + c.LINK]  # that of a thread that is kept: its class
            last = work[classes + c.CLASS * first + CLASS_LAST]
            work[classes + c.CLASS * last + CLASS_NEXT] = k
            work[classes + c.CLASS * first + CLASS_LAST] = k
            continue
        work[here + CLASS_LAST] = k
        if kept != k:
            for word in range(c.THREAD):
                work[to + kept * c.THREAD + word] = work[at + word]
        work[to + kept * c.THREAD + c.LINK] = k
        kept += 1
    for number in range(kept):
        thread = to + number * c.THREAD
        first = work[thread + c.LINK]
        if work[classes + c.CLASS * first + CLASS_NEXT] < 0:
            work[thread + c.LINK] = work[classes + c.CLASS * first + CLASS_LINK]
            continue
        link = unite_class(table, memory, work, first, top)
        if link < 0:
            return link
        work[thread + c.LINK] = link
    return kept


@kernel
def unite_class(table: Int32, memory: Int32, work: Int32, first: int, top: int) -> int:
    """The link of all frames of equal threads, or -1 - an error.

    first : the first of these threads.
    top : frames from here on are new, so that they may be changed.
    """
    frames = work[c.FRONT_1]
    stamp = next_stamp(work)
    n, thread = 0, first
    while thread >= 0:
        here = work[c.CLASSES] + c.CLASS * thread
        link = work[here + CLASS_LINK]
        for k in range(n_frames(memory, link)):
            n = add_frame(table, memory, work, stamp, n, frame_at(memory, link, k), top)
            if n < 0:
                return n
        thread = work[here + CLASS_NEXT]
    if n == 1:
        return work[frames]
    link = new_fork(memory, n)
    for k in range(n if link >= 0 else 0):
        memory[link + c.FORK + k] = work[frames + k]
    return link


@kernel
def add_frame(table: Int32, memory: Int32, work: Int32, stamp: int, n: int, frame: int, top: int) -> int:
    """Add a frame to the n frames of FRONT_1, or to one of them that agrees with it.

    Returns how many there are now, or -1 - an error.
    """
    frames, places = work[c.FRONT_1], work[c.PLACES]
    shape, marked = memory[frame + c.SHAPE], told_apart(table, memory, frame)
    mixed = (int(shape) * 0x9E3779B1 ^ int(marked) * 0x85EBCA6B) & 0xFFFFFFFF
    place = (mixed ^ mixed >> 15) & (c.N_PLACES - 1)
    while work[places + 2 * place] == stamp:
        number = work[places + 2 * place + 1]
        other = work[frames + number]
        if other == frame:
            return n
        if memory[other + c.SHAPE] == shape and told_apart(table, memory, other) == marked:
            parent = unite_links(memory, memory[other + c.PARENT], memory[frame + c.PARENT])
            if parent < 0:
                return parent
            is_wide = (
                shape >= 0 and table[shape + layout.KIND] == layout.OBJECTS and table[shape + layout.ALTERNATIVES] >= 0
            )
            if (is_wide or parent != memory[other + c.PARENT]) and other < top:
                if memory[c.TOP] + frame_words(table, shape) > len(memory):
                    return -1 - c.NO_ROOM
                other = copy_frame(table, memory, other)
                work[frames + number] = other
            memory[other + c.PARENT] = parent
            memory[other + c.HOLDS] |= memory[frame + c.HOLDS]
            if is_wide:
                unite_left(table, memory, shape, other, frame)
            return n
        place = (place + 1) & (c.N_PLACES - 1)
    if n == c.MOST_READINGS:
        return -1 - c.TOO_MANY
    work[places + 2 * place] = stamp
    work[places + 2 * place + 1] = n
    work[frames + n] = frame
    return n + 1


@kernel
def has_frame(memory: Int32, link: int, frame: int) -> bool:
    """Whether a link has a frame."""
    for k in range(n_frames(memory, link)):  # noqa: SIM110 (for compiled code)
        if frame_at(memory, link, k) == frame:
            return True
    return False


@kernel
def unite_links(memory: Int32, link: int, other: int) -> int:
    """The link with the frames of two, or -1 - an error.

    They are not compared but by their numbers: that is done when the text comes back to them.
    """
    new = 0
    for k in range(n_frames(memory, other)):
        if not has_frame(memory, link, frame_at(memory, other, k)):
            new += 1
    n = n_frames(memory, link)
    if new == 0:
        return link
    found = new_fork(memory, n + new)
    if found < 0:
        return found
    for k in range(n):
        memory[found + c.FORK + k] = frame_at(memory, link, k)
    for k in range(n_frames(memory, other)):
        frame = frame_at(memory, other, k)
        if not has_frame(memory, link, frame):
            memory[found + c.FORK + n] = frame
            n += 1
    return found
