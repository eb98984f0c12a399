"""Whether the engine still follows a reading of a text that the plain interpreter has dropped.

It does where two items were equal in one of several alternatives: it does not compare them. Such a
reading may allow what no other one does.

Both tell readings apart by the objects and arrays around them and by what they stand in. So there
are as many on both sides, or the engine has more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.decoding.reference.json_places import ArrayFrame, Frame, Gap, Quoted, Readings
from maskwright.decoding.reference.json_texts import JsonInterpreter
from maskwright.decoding.schema import constants as c

Array = npt.NDArray[np.int32]


def has_dropped(memory: Array, interpreter: JsonInterpreter, readings: Readings) -> bool:
    """Whether the engine has more readings than the interpreter.

    memory : the engine's, of a text.
    readings : those of the interpreter, of the same text; at least one.

    Cost: O(open objects and arrays) for a text of one reading.
    """
    n = _n_followed(memory)
    return n > 1 and n > _n_different(interpreter, readings)


def is_alike_inside(memory: Array, readings: Readings) -> bool:
    """Whether the engine's readings stand in no other strings and keys than the interpreter's.

    memory, readings : as for `has_dropped`; all stand in strings or keys.
    """
    shapes = {id(reading.place.shape.shape) for reading in readings if isinstance(reading.place, Quoted)}
    return int(memory[memory[c.STATE]]) <= len(shapes)  # the engine has a thread for each


def _n_followed(memory: Array) -> int:
    """The readings of the engine: the ways through the frames and forks of its threads."""
    read = memory.item  # PERF: of one integer it takes less time than an index
    threads = read(c.STATE) + 1
    link = read(threads + c.LINK)
    if read(threads - 1) == 1:  # PERF: as nearly always, where there is no fork either
        while link != c.ROOT_FRAME and read(link + c.SHAPE) != c.FORK_SHAPE:
            link = read(link + c.PARENT)
        if link == c.ROOT_FRAME:
            return 1
    ways: dict[int, int] = {}
    for thread in range(threads, threads + read(threads - 1) * c.THREAD, c.THREAD):
        link = read(thread + c.LINK)
        ways[link] = ways.get(link, 0) + 1
    while c.ROOT_FRAME not in ways:  # all frames of one round have the same level
        links, ways = ways, {}
        for link, n in links.items():
            is_fork = read(link + c.SHAPE) == c.FORK_SHAPE
            frames = range(link + c.FORK, link + c.FORK + read(link)) if is_fork else ()
            for frame in map(read, frames) if is_fork else (link,):
                around = read(frame + c.PARENT)
                ways[around] = ways.get(around, 0) + n
    return ways[c.ROOT_FRAME]


def _n_different(interpreter: JsonInterpreter, readings: Readings) -> int:
    """The readings of the interpreter, as the engine tells them apart."""
    numbers: dict[Any, int] = {}
    found: set[Any] = set()

    def number(frame: Frame | None, more: int) -> int:
        """That of a frame. more : what is added to its contained items."""
        frames = []
        while frame is not None:
            frames.append((id(frame.shape.shape), frame.contained if isinstance(frame, ArrayFrame) else 0))
            frame = frame.parent
        at = 0
        for k in range(len(frames) - 1, -1, -1):
            shape, contained = frames[k]
            at = numbers.setdefault((at, shape, contained if k else contained + more), len(numbers) + 1)
        return at

    for frame, place in readings:
        if not isinstance(place, Gap):
            found.add((number(frame, 0), id(place.shape.shape)))
        elif place.awaited == "item" and isinstance(frame, ArrayFrame):
            # the engine decides behind the comma which of the items the next one is
            for node, role in interpreter.roles(frame):
                found.add((number(frame, role), "value", node))
        else:
            found.add((number(frame, 0), place.awaited, place.node))
    return len(found)
