"""Hash tables that grow: from keys to row numbers, with linear probing, at most half full.

A table's `slots` hold row numbers; -1 is a free slot. The length of `slots` is a power of two. The
table of steps alone holds its keys and results in the slots.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int64, Int64_2D
from maskwright.analysis.jit import kernel

Table = TypeVar("Table", bound=Any)


def free_slots(capacity: int) -> Int32:
    """The slots of an empty table: (2 * capacity,) int32, all -1. capacity : a power of two."""
    return np.full(2 * capacity, -1, np.int32)


def doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, followed by as many rows of zeros."""
    # PERF: the operating system provides pages of zeros when they are first used
    larger = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def grown(table: Table, n: int, first: int = 0) -> Table:
    """A copy of a table, with room for twice as many rows.

    table : a NamedTuple of columns. If it has a column `slots`, its first column is `keys` or
        `hashes`, by which the rows are found.
    n : how many rows are in use.
    first : the first row that is in a slot.
    """
    columns = {name: doubled(column) for name, column in zip(table._fields, table, strict=True) if name != "slots"}
    if "slots" in table._fields:
        columns["slots"] = slots = free_slots(2 * len(table[0]))
        if table._fields[0] == "keys":
            add_keys(table[0], first, n, slots)
        else:
            add_hashed(table[0], first, n, slots)
    larger: Table = table._replace(**columns)
    return larger


@kernel
def slot_of(key, keys, slots):  # type: ignore[no-untyped-def]
    """The index h at which an int64 key is or belongs: slots[h] is its row, or -1."""
    mask = slots.shape[0] - 1
    h = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while slots[h] >= 0 and keys[slots[h]] != key:
        h = (h + 1) & mask
    return h


@kernel(entry=True)
def add_keys(keys: Int64, begin: int, end: int, slots: Int32) -> None:
    """Enter the rows begin to end - 1 by their keys. Of rows with equal keys the last one stays."""
    for i in range(begin, end):
        slots[slot_of(keys[i], keys, slots)] = i


@kernel
def mix(h, value):  # type: ignore[no-untyped-def]
    """A 64-bit hash with one more value mixed in."""
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@kernel
def first_slot(hashed, slots):  # type: ignore[no-untyped-def]
    """The index at which the search for a row with this 63-bit hash begins."""
    return (np.int64(hashed) >> np.int64(23)) & (slots.shape[0] - 1)


@kernel(forceinline=True)
def hash_of_run(items, n):  # type: ignore[no-untyped-def]
    """A 63-bit hash of items[:n]."""
    h = np.uint64(88172645463325252)
    for i in range(n):
        h = mix(h, items[i])
    return np.int64(h >> np.uint64(1))


@kernel(forceinline=True)
def slot_of_run(key, items, n, table):  # type: ignore[no-untyped-def]
    """The index h at which items[:n] are or belong: table.slots[h] is their row, or -1.

    key : their hash.
    table : has `hashes`; and `start` and `items`, the numbers of row i being items[start[i] :
        start[i + 1]].
    """
    hashes, start, stored, slots = table.hashes, table.start, table.items, table.slots
    at = first_slot(key, slots)
    while slots[at] >= 0:
        known = np.int64(slots[at])
        begin = start[known]
        if hashes[known] == key and start[known + 1] - begin == n:
            same = True
            for i in range(n):
                if stored[begin + i] != items[i]:
                    same = False
                    break
            if same:
                break
        at = (at + 1) & (slots.shape[0] - 1)
    return at


@kernel
def number_of_run(items, n, table, n_rows):  # type: ignore[no-untyped-def]
    """The number of items[:n], a new one if they have none; -1 if there is no room.

    table : as of `slot_of_run`.
    n_rows : (1,) int64; how many rows it has. Changed.
    """
    key = hash_of_run(items, n)
    at = slot_of_run(key, items, n, table)
    if table.slots[at] >= 0:
        return np.int64(table.slots[at])
    row = n_rows[0]
    begin = table.start[row]
    if row == table.hashes.shape[0] or begin + n > table.items.shape[0]:
        return np.int64(-1)
    for i in range(n):
        table.items[begin + i] = items[i]
    table.slots[at] = row
    table.hashes[row] = key
    table.start[row + 1] = begin + n
    n_rows[0] = row + 1
    return row


@kernel(entry=True)
def add_hashed(hashes: Int64, begin: int, end: int, slots: Int32) -> None:
    """Enter the rows begin to end - 1, which are distinct, by their 63-bit hashes."""
    for i in range(begin, end):
        at = first_slot(hashes[i], slots)
        while slots[at] >= 0:
            at = (at + 1) & (slots.shape[0] - 1)
        slots[at] = i


@kernel
def slot_of_step(key, slots):  # type: ignore[no-untyped-def]
    """The index at which a key is or belongs. slots : (n_slots, 2) int64; keys, 0 where free."""
    mask = slots.shape[0] - 1
    h = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while slots[h, 0] != 0 and slots[h, 0] != key:
        h = (h + 1) & mask
    return h


@kernel(entry=True)
def add_steps(old: Int64_2D, slots: Int64_2D) -> None:
    """Enter all rows of a table of keys and results into a larger, empty one."""
    for i in range(old.shape[0]):
        if old[i, 0] != 0:
            h = slot_of_step(old[i, 0], slots)
            slots[h, 0] = old[i, 0]
            slots[h, 1] = old[i, 1]
