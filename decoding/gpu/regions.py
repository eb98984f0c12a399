"""Regions of slots on the host: their size, and texts and messages as arrays to be copied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine import constants as c
from maskwright.decoding.gpu import _slot_kernels as slot_kernels


def message_of(slots: Sequence[int], images: Sequence[npt.NDArray[np.int32] | None]) -> npt.NDArray[np.int32]:
    """What `begin_slots` (its first n integers) and `load_slots` need to know, as one array.

    So one copy to a device is enough.

    slots : n slot numbers.
    images : for each slot an image as of `image_of`, or None.

    Returns (m,) int32: the slots; the index at which each one's image begins, 0 if it has none; the
    index at which it ends; the images.
    """
    sizes = [0 if image is None else len(image) for image in images]
    ends = 3 * len(slots) + np.cumsum(sizes, dtype=np.int64)
    begins = [0 if image is None else end - len(image) for image, end in zip(images, ends.tolist(), strict=True)]
    parts = [np.array([*slots, *begins, *ends.tolist()], np.int32), *(image for image in images if image is not None)]
    return np.concatenate(parts)


def image_of(table: npt.NDArray[np.int32], memory: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The text of a matcher as a region without history and scratch.

    It is settled if the text has one stack and few indents.

    table : (n,) int32; the engine's table.
    memory : (m,) int32; the matcher's memory.

    Returns (REGION_HEADER + INDENT_ZONE + RECORD * used,) int32: the header, the numbers of the
    blocks' frames, the records in use.
    """
    used, begin = int(memory[c.USED]), int(memory[c.ARENA])
    scratch, capacity = c.scratch_size(table), used + 2 * c.INDENT_ZONE
    image = np.zeros(region_size(scratch, capacity), np.int32)
    image[: c.REGION_HEADER] = new_header(scratch, capacity)
    for field in slot_kernels.FIELDS_OF_TEXT:
        image[field] = memory[field]
    arena = int(image[c.ARENA])
    image[arena : arena + c.RECORD * used] = memory[begin : begin + c.RECORD * used]
    slot_kernels.free_unused_records(table, image, 0)
    return np.concatenate(
        [image[: c.REGION_HEADER + c.INDENT_ZONE], image[arena : arena + c.RECORD * int(image[c.USED])]]
    )


def new_header(scratch: int, capacity: int) -> npt.NDArray[np.int32]:
    """A region's header with the fields that `begin_slot` expects, ARENA and CAPACITY; else zeros.

    scratch : integers of scratch (`constants.scratch_size`).
    capacity : records that the arena has room for.

    Returns (REGION_HEADER,) int32.
    """
    header = np.zeros(c.REGION_HEADER, np.int32)
    header[c.ARENA] = arena_offset(scratch)
    header[c.CAPACITY] = capacity
    return header


def arena_offset(scratch: int) -> int:
    """The offset of the arena from the region's start.

    The header, the numbers of the blocks' frames and the scratch come before it.

    scratch : integers of scratch (`constants.scratch_size`).
    """
    return c.REGION_HEADER + c.INDENT_ZONE + scratch


def region_size(scratch: int, capacity: int) -> int:
    """The number of integers of a region. scratch, capacity : as of `new_header`.

    A record takes 4 of them: RECORD for itself, and one of scratch behind the arena.
    """
    return arena_offset(scratch) + 4 * capacity
