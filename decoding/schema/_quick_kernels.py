"""What Python calls most, at the least cost: one array of addresses, and the GIL is not released.

These do what `fill` and `read_token` do, and both, where that takes microseconds. Where a mask
would have to be made, or much be read, they leave it and return `NOT_QUICK`.

INVARIANT: these keep the GIL, and whoever uses the workspace without it sets `BUSY` while he has it
still. So nobody else uses the workspace while these run. (A fork forgets without `BUSY`; it has one
thread.)
"""

from __future__ import annotations

from maskwright.analysis.addresses import int32_at
from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine.quick import NOT_QUICK
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._text_kernels import fill_text, read_token

MOST_QUICK = 16
"""The most readings of a text that are followed while the GIL is held."""


@kernel(entry=True)
def note_addresses(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, addresses: Int64
) -> int:
    """Write what the others take. Returns OK. They need the arrays, which must be kept alive."""
    addresses[c.VOC_AT], addresses[c.VOC_AT + 1] = voc.ctypes.data, len(voc)
    addresses[c.TABLE_AT], addresses[c.TABLE_AT + 1] = table.ctypes.data, len(table)
    addresses[c.AUTOMATA_AT], addresses[c.AUTOMATA_AT + 1] = automata.ctypes.data, len(automata)
    addresses[c.MEMORY_AT], addresses[c.MEMORY_AT + 1] = memory.ctypes.data, len(memory)
    addresses[c.WORK_AT], addresses[c.WORK_AT + 1] = work.ctypes.data, len(work)
    addresses[c.WORDS_AT], addresses[c.WORDS_AT + 1] = words.ctypes.data, len(words)
    return c.OK


@kernel(forceinline=True)
def read_and_fill(addresses: Int64, token: int, is_read: bool, is_filled: bool) -> int:
    """Read a token, write a mask, or both.

    Returns twice an error of the first, or 1 + twice that of the second, or 0. Each may be
    NOT_QUICK.
    """
    work = int32_at(addresses[c.WORK_AT], addresses[c.WORK_AT + 1])
    if work[c.BUSY] != 0:
        return 2 * NOT_QUICK
    voc = int32_at(addresses[c.VOC_AT], addresses[c.VOC_AT + 1])
    table = int32_at(addresses[c.TABLE_AT], addresses[c.TABLE_AT + 1])
    automata = int32_at(addresses[c.AUTOMATA_AT], addresses[c.AUTOMATA_AT + 1])
    memory = int32_at(addresses[c.MEMORY_AT], addresses[c.MEMORY_AT + 1])
    if is_read:
        is_long = memory[memory[c.STATE]] > MOST_QUICK
        code = NOT_QUICK if is_long else read_token(voc, table, automata, memory, work, token, True)
        if code != c.OK:
            return 2 * code
    if is_filled:
        words = int32_at(addresses[c.WORDS_AT], addresses[c.WORDS_AT + 1])
        is_long = memory[memory[c.STATE]] > MOST_QUICK
        code = NOT_QUICK if is_long else fill_text(voc, table, automata, memory, work, words, False)
        if code != c.OK:
            return 1 + 2 * code
    return 0


@kernel(entry=True, holds_gil=True)
def quick_fill(addresses: Int64) -> int:
    """`fill`, of what has been kept. Returns what it does, or NOT_QUICK.

    addresses : see `note_addresses`.
    """
    return read_and_fill(addresses, 0, False, True) >> 1


@kernel(entry=True, holds_gil=True)
def quick_read(addresses: Int64, token: int) -> int:
    """`read_token`, for good. Returns what it does, or NOT_QUICK.

    addresses : as for `quick_fill`.
    """
    return read_and_fill(addresses, token, True, False) >> 1


@kernel(entry=True, holds_gil=True)
def quick_step(addresses: Int64, token: int) -> int:
    """`quick_read`, then `quick_fill`. addresses : as there. Returns: see `read_and_fill`."""
    return read_and_fill(addresses, token, True, True)
