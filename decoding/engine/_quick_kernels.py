"""What Python calls most, at the least cost: one array of addresses, and the GIL is not released.

These do what `fill`, `read_token` and both do to the text of a matcher, where that takes
microseconds. Else the result is NOT_QUICK, and the state and the history are as they were.

PERF: releasing the GIL and taking it again takes 40 ns.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.addresses import int32_at
from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._mask_kernels import fill
from maskwright.decoding.engine._stack_kernels import height_of
from maskwright.decoding.engine._text_kernels import read_token
from maskwright.decoding.engine.quick import NOT_QUICK
from maskwright.maskstore.table import schema


@kernel(entry=True)
def note_addresses(table: Int32, memory: Int32, words: Int32, addresses: Int64) -> int:
    """Write what the others take. Returns OK. They need the arrays, which must be kept alive.

    Nothing is quick if the parser is asked about tokens at each mask (`EngineTable.is_closed`).

    addresses : (N_ADDRESSES,) int64, all 0.
    """
    if table[schema.OPEN_ITEMS] - table[schema.OPEN_START] == 1:
        addresses[c.TABLE_AT], addresses[c.TABLE_AT + 1] = table.ctypes.data, len(table)
        addresses[c.MEMORY_AT], addresses[c.MEMORY_AT + 1] = memory.ctypes.data, len(memory)
        addresses[c.WORDS_AT], addresses[c.WORDS_AT + 1] = words.ctypes.data, len(words)
    return c.OK


@kernel(forceinline=True)
def is_shallow(memory: Int32) -> bool:
    """Whether the text has one stack, of few frames."""
    stacks = memory[c.STACKS]
    return stacks > c.LIST and height_of(memory, memory[c.ARENA], stacks) <= c.MOST_QUICK_FRAMES


@kernel(forceinline=True)
def is_short(table: Int32, token: int) -> bool:
    """Whether a token has few bytes, or the vocabulary lacks it."""
    if token < 0 or token >= table[schema.N_TOKENS]:
        return True
    start = np.int64(table[schema.TOKEN_START])
    return table[start + token + 1] - table[start + token] <= c.MOST_QUICK_BYTES


@kernel(forceinline=True)
def read_and_fill(addresses: Int64, token: int, is_read: bool, is_filled: bool) -> int:
    """Read a token, write a mask, or both.

    Returns 0 if that is done; twice the result of `read_token` if that is not OK; else 1 + twice
    that of `fill`. Each may be NOT_QUICK.
    """
    if addresses[c.TABLE_AT] == 0:
        return 2 * NOT_QUICK
    table = int32_at(addresses[c.TABLE_AT], addresses[c.TABLE_AT + 1])
    memory = int32_at(addresses[c.MEMORY_AT], addresses[c.MEMORY_AT + 1])
    code = np.int64(c.OK)
    # INVARIANT: nobody else sees this value, and TOO_LONG is kept nowhere (`know_newline`)
    memory[c.SPENT_BEFORE] = c.MOST_SPENT - c.MOST_QUICK_SPENT
    if is_read:
        code = np.int64(c.TOO_LONG)
        if is_shallow(memory) and is_short(table, token):
            code = read_token(table, memory, np.int64(0), token, True)
        code = 2 * (NOT_QUICK if code == c.TOO_LONG else code)
    if is_filled and code == c.OK:
        code = np.int64(c.TOO_LONG)
        if is_shallow(memory):
            words = int32_at(addresses[c.WORDS_AT], addresses[c.WORDS_AT + 1])
            code = fill(table, memory, np.int64(0), words)
        if code != c.OK:
            code = 1 + 2 * (NOT_QUICK if code == c.TOO_LONG else code)
    memory[c.SPENT_BEFORE] = 0
    return code


@kernel(entry=True, holds_gil=True)
def quick_fill(addresses: Int64) -> int:
    """Write the mask. Returns what `fill` does, or NOT_QUICK.

    addresses : (N_ADDRESSES,) int64; see there.
    """
    return read_and_fill(addresses, 0, False, True) >> 1


@kernel(entry=True, holds_gil=True)
def quick_read(addresses: Int64, token: int) -> int:
    """Read a token, for good. Returns what `read_token` does, or NOT_QUICK.

    addresses : as for `quick_fill`.
    """
    return read_and_fill(addresses, token, True, False) >> 1


@kernel(entry=True, holds_gil=True)
def quick_step(addresses: Int64, token: int) -> int:
    """`quick_read`, then `quick_fill`. addresses : as there. Returns: see `read_and_fill`."""
    return read_and_fill(addresses, token, True, True)
