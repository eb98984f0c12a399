"""Tables that grow, and whose rows are found by what they hold: by a key, or by a run of numbers.

A *table* is a NamedTuple of columns. Its last two are alike in all of them:

slots : int32; -1 where free, else a row. Hashing is with linear probing. The length is a power of
    two, and at least twice the capacity.
size : (2,) int64; how many rows are in use, and the first of them that is in a slot.

Kernels add rows while there is room, and Python makes larger tables between two calls (`grown`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int64, Int64_2D
from maskwright.analysis.jit import kernel

Table = TypeVar("Table", bound=Any)


class Keys(NamedTuple):
    """Keys by number. keys : (capacity,) int64."""

    keys: Int64
    slots: Int32
    size: Int64


class Map(NamedTuple):
    """A value for each key.

    keys, value : (capacity,) int64, int32.
    """

    keys: Int64
    value: Int32
    slots: Int32
    size: Int64


class Runs(NamedTuple):
    """Runs of numbers by number: run i is items[start[i] : start[i + 1]].

    hashes : (capacity,) int64; of a run's numbers.
    start, items : (capacity + 1,) int64, (n,) int32.
    """

    hashes: Int64
    start: Int64
    items: Int32
    slots: Int32
    size: Int64


def no_rows(capacity: int, first: int = 0) -> tuple[Int32, Int64]:
    """The columns `slots` and `size` of a table whose rows before `first` are in no slot.

    capacity : a power of two.
    """
    return np.full(2 * capacity, -1, np.int32), np.array([first, first], np.int64)


def no_keys(capacity: int) -> Keys:
    """An empty table. capacity : a power of two."""
    return Keys(np.zeros(capacity, np.int64), *no_rows(capacity))


def no_values(capacity: int) -> Map:
    """An empty table. capacity : a power of two."""
    return Map(np.zeros(capacity, np.int64), np.zeros(capacity, np.int32), *no_rows(capacity))


def no_runs(capacity: int, n_items: int, first: int = 0) -> Runs:
    """A table of empty runs, `first` of them, which no search finds.

    capacity : a power of two. n_items : numbers that there is room for.
    """
    columns = np.zeros(capacity, np.int64), np.zeros(capacity + 1, np.int64), np.zeros(n_items, np.int32)
    return Runs(*columns, *no_rows(capacity, first))


def doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, followed by as many rows of zeros."""
    # PERF: the operating system provides pages of zeros when they are first used
    larger = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def grown(table: Table) -> Table:
    """A copy of a table, with room for twice as many rows. Both have the same `size`."""
    *columns, slots, size = table
    larger: Table = type(table)(*map(doubled, columns), np.full(2 * len(slots), -1, np.int32), size)
    enter_rows = add_keys if table._fields[0] == "keys" else add_hashed
    enter_rows(table[0], int(size[1]), int(size[0]), larger.slots)
    return larger


def with_room(table: Table, n: int) -> Table:
    """The table, or a larger copy if it has no room for n more rows."""
    while table.size[0] + n > len(table[0]):
        table = grown(table)
    return table


@kernel
def slot_of(key, keys, slots):  # type: ignore[no-untyped-def]
    """The index h at which an int64 key is or belongs: slots[h] is its row, or -1."""
    mask = slots.shape[0] - 1
    h = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
    while slots[h] >= 0 and keys[slots[h]] != key:
        h = (h + 1) & mask
    return h


@kernel(forceinline=True)
def number_of_key(key, table):  # type: ignore[no-untyped-def]
    """The row of a key, a new one if it has none; -1 if there is no room."""
    slot = slot_of(key, table.keys, table.slots)
    row = np.int64(table.slots[slot])
    if row < 0 and table.size[0] < table.keys.shape[0]:
        row = table.size[0]
        table.keys[row] = key
        table.slots[slot] = row
        table.size[0] = row + 1
    return row


@kernel(forceinline=True)
def value_of_key(key, table, otherwise):  # type: ignore[no-untyped-def]
    """The value of a key in a `Map`, or `otherwise` if it has none."""
    row = table.slots[slot_of(key, table.keys, table.slots)]
    return np.int64(table.value[row]) if row >= 0 else np.int64(otherwise)


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
    table : `Runs`, of int32 or others.
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


@kernel(entry=True)
def number_of_run(items: Int32, n: int, table: Runs) -> int:
    """The row of items[:n], a new one if they have none; -1 if there is no room.

    table : `Runs`, of int32 or others.
    """
    key = hash_of_run(items, n)
    at = slot_of_run(key, items, n, table)
    if table.slots[at] >= 0:
        return np.int64(table.slots[at])
    row = table.size[0]
    begin = table.start[row]
    if row == table.hashes.shape[0] or begin + n > table.items.shape[0]:
        return np.int64(-1)
    for i in range(n):
        table.items[begin + i] = items[i]
    table.slots[at] = row
    table.hashes[row] = key
    table.start[row + 1] = begin + n
    table.size[0] = row + 1
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
    h = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
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
