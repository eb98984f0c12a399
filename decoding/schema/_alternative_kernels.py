"""Objects of many alternatives in one frame: which of them the members so far have left.

A shape of OBJECTS may be the union of many (ALTERNATIVES in `layout`). Behind the bits of its keys
a frame has then a bit for each alternative that is *out*. All alternatives have read the same
members, so frames of one such shape and level differ in these bits alone, and become one when
threads are merged: what is left in either is left.

PERF: thousands of shapes would be as many threads. Here a member makes one for each different node
of its value, and one for all that are literals: these say which alternatives they leave.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.maskstore.schema import layout


@kernel(forceinline=True)
def has_bit(array: Int32, at: int, number: int) -> bool:
    """A bit of the words at an offset."""
    return (array[at + (number >> 5)] >> (number & 31)) & 1 != 0


@kernel
def set_bit(array: Int32, at: int, number: int) -> None:
    """Set a bit of the words at an offset."""
    array[np.uint64(at + (number >> 5))] |= np.int32(np.uint32(1) << np.uint32(number & 31))


@kernel(forceinline=True)
def out_bits(table: Int32, frame: int, shape: int) -> int:
    """The offset of the bits of a frame for the alternatives that are out."""
    return frame + c.BITS + (table[shape + layout.N_KEYS] + 31 >> 5)


@kernel(forceinline=True)
def out_words(table: Int32, shape: int) -> int:
    """The words of these bits."""
    return table[table[shape + layout.ALTERNATIVES]] + 31 >> 5


@kernel
def is_any_left(table: Int32, memory: Int32, out: int, listed: int) -> bool:
    """Whether one of some listed alternatives is left. listed : the offset of their number."""
    for k in range(table[listed]):  # noqa: SIM110 (for compiled code)
        if not has_bit(memory, out, table[listed + 1 + k]):
            return True
    return False


@kernel
def are_others_left(table: Int32, memory: Int32, frame: int, shape: int, key: int) -> bool:
    """Whether an alternative is left that has no rule for a key and in which others may come.

    key : a named key; -1 for one that no alternative names.
    """
    block, out, n_words = table[shape + layout.ALTERNATIVES], out_bits(table, frame, shape), out_words(table, shape)
    n_left, at = 0, table[block + layout.CLASSES]
    for _ in range(table[block + layout.N_CLASSES_OF_OTHERS]):
        for word in range(n_words):
            left = int(table[at + 1 + word] & ~memory[out + word]) & 0xFFFFFFFF
            if left != 0 and key < 0:
                return True
            while left != 0:
                n_left += 1
                left &= left - 1
        at += 1 + n_words
    if key < 0 or n_left == 0:
        return False
    rule = table[table[block + layout.RULES] + key]
    for _ in range(table[rule]):
        rule += 1
        listed = table[rule + 1]
        for k in range(table[listed]):
            number = table[listed + 1 + k]
            if table[block + layout.EACH + layout.EACH_SIZE * number + 2] != 0 and not has_bit(memory, out, number):
                n_left -= 1
        rule += 1
    return n_left > 0


@kernel
def is_key_left(table: Int32, memory: Int32, frame: int, shape: int, key: int) -> bool:
    """Whether a named key may still come to an object of alternatives."""
    if has_bit(memory, frame + c.BITS, key):
        return False
    out = out_bits(table, frame, shape)
    rules = table[table[table[shape + layout.ALTERNATIVES] + layout.RULES] + key]
    for number in range(table[rules]):
        rule = rules + 1 + 2 * number
        if table[rule] >= 0 and is_any_left(table, memory, out, table[rule + 1]):
            return True
    return are_others_left(table, memory, frame, shape, key)


@kernel
def can_one_close(table: Int32, memory: Int32, frame: int, shape: int) -> bool:
    """Whether an object may end, as one of the alternatives that are left."""
    block, out = table[shape + layout.ALTERNATIVES], out_bits(table, frame, shape)
    for number in range(table[block]):
        each = block + layout.EACH + layout.EACH_SIZE * number
        if has_bit(memory, out, number) or memory[frame + c.COUNT] < table[each]:
            continue
        required = table[each + 1]
        k = table[required]
        while k > 0 and has_bit(memory, frame + c.BITS, table[required + k]):
            k -= 1
        if k == 0:
            return True
    return False


@kernel
def leave_listed(table: Int32, memory: Int32, frame: int, shape: int, to: int, listed: int) -> bool:
    """Take all alternatives out of a frame but those of a list that are left in another one.

    to : the frame that is written. Returns whether one is left.
    """
    before, out, is_any = out_bits(table, frame, shape), out_bits(table, to, shape), False
    for word in range(out_words(table, shape)):
        memory[out + word] = -1
    for k in range(table[listed]):
        number = table[listed + 1 + k]
        if not has_bit(memory, before, number):
            memory[np.uint64(out + (number >> 5))] &= ~np.int32(np.uint32(1) << np.uint32(number & 31))
            is_any = True
    return is_any


@kernel
def leave_others(table: Int32, memory: Int32, shape: int, to: int, key: int, at: int) -> bool:
    """Take all alternatives out of a frame but those of a class of others without a rule for a key.

    at : the offset of the class. Returns whether one is left.
    """
    block, out, is_any = table[shape + layout.ALTERNATIVES], out_bits(table, to, shape), False
    for word in range(out_words(table, shape)):
        memory[out + word] |= ~table[at + 1 + word]
    rules = table[table[block + layout.RULES] + key] if key >= 0 else -1
    for number in range(table[rules] if key >= 0 else 0):
        listed = table[rules + 2 + 2 * number]
        for k in range(table[listed]):
            set_bit(memory, out, table[listed + 1 + k])
    for word in range(out_words(table, shape)):
        is_any = is_any or memory[out + word] != -1
    return is_any


@kernel
def unite_left(table: Int32, memory: Int32, shape: int, to: int, frame: int) -> None:
    """Leave in a frame what is left in either of two that have read the same."""
    into, out = out_bits(table, to, shape), out_bits(table, frame, shape)
    for word in range(out_words(table, shape)):
        memory[into + word] &= memory[out + word]
    memory[to + c.CHANGED] = to
