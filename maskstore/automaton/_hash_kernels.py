"""Open-addressed tables that grow: numbers by their keys, linear probing, at most half full. -1 is a free slot."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from maskwright.analysis.jit import kernel

Int32 = npt.NDArray[np.int32]
Table = TypeVar("Table", bound=Any)


def free_slots(capacity: int) -> Int32:
    """The slots of an empty table for so many keys, a power of two."""
    return np.full(2 * capacity, -1, np.int32)


def doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array and as much of zeros."""
    return np.concatenate([array, np.zeros_like(array)])


def grown(table: Table, n: int, first: int = 0) -> Table:
    """A table with room for twice as many rows.

    table : a NamedTuple of columns. With a column `slots`, its first column is `keys` or `hashes`, by which the slots are found.
    n : how many rows are in use. first : the first row that has a slot.
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
    """Where an int64 key is or belongs: slots[result] is its number or -1."""
    mask = slots.shape[0] - 1
    h = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while slots[h] >= 0 and keys[slots[h]] != key:
        h = (h + 1) & mask
    return h


@kernel
def add_keys(keys, begin, end, slots):  # type: ignore[no-untyped-def]
    """Enter the keys begin .. end - 1; of equal ones the last."""
    for i in range(begin, end):
        slots[slot_of(keys[i], keys, slots)] = i


@kernel
def mix(h, value):  # type: ignore[no-untyped-def]
    """One more value into a 64-bit hash."""
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@kernel
def first_slot(hashed, slots):  # type: ignore[no-untyped-def]
    """Where the search for something with a 63-bit hash begins."""
    return (np.int64(hashed) >> np.int64(23)) & (slots.shape[0] - 1)


@kernel
def add_hashed(hashes, begin, end, slots):  # type: ignore[no-untyped-def]
    """Enter distinct things by their stored 63-bit hashes."""
    for i in range(begin, end):
        at = first_slot(hashes[i], slots)
        while slots[at] >= 0:
            at = (at + 1) & (slots.shape[0] - 1)
        slots[at] = i
