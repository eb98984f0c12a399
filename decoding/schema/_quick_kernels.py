"""What Python calls most, at the least cost: one array of addresses, and the GIL is not released.

These do what `fill` and `read_token` do, and both, where that takes microseconds. Where a mask
would have to be made, or much be read, they leave it and return `NOT_QUICK`.

INVARIANT: whoever uses the workspace without the GIL sets `BUSY` while he has it. So nobody else
uses it while these run.
"""

from __future__ import annotations

from maskwright.analysis.addresses import int32_at
from maskwright.analysis.arrays import Int64
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema._text_kernels import fill_text, read_token
from maskwright.decoding.schema.constants import BUSY, NOT_QUICK, OK, STATE

MOST_QUICK = 32
"""The most readings of a text that are followed while the GIL is held."""


@kernel(entry=True, holds_gil=True)
def quick_fill(addresses: Int64) -> int:
    """`fill`, of what has been kept. Returns what it does, or NOT_QUICK.

    addresses : those of voc, table, automata, memory, work and words, each with its size.
    """
    work = int32_at(addresses[8], addresses[9])
    if work[BUSY] != 0:
        return NOT_QUICK
    voc, table = int32_at(addresses[0], addresses[1]), int32_at(addresses[2], addresses[3])
    automata, memory = int32_at(addresses[4], addresses[5]), int32_at(addresses[6], addresses[7])
    if memory[memory[STATE]] > MOST_QUICK:
        return NOT_QUICK
    return fill_text(voc, table, automata, memory, work, int32_at(addresses[10], addresses[11]), False)


@kernel(entry=True, holds_gil=True)
def quick_read(addresses: Int64, token: int) -> int:
    """`read_token`, for good. Returns what it does, or NOT_QUICK.

    addresses : as for `quick_fill`.
    """
    work = int32_at(addresses[8], addresses[9])
    if work[BUSY] != 0:
        return NOT_QUICK
    voc, table = int32_at(addresses[0], addresses[1]), int32_at(addresses[2], addresses[3])
    automata, memory = int32_at(addresses[4], addresses[5]), int32_at(addresses[6], addresses[7])
    if memory[memory[STATE]] > MOST_QUICK:
        return NOT_QUICK
    return read_token(voc, table, automata, memory, work, token, True)


@kernel(entry=True, holds_gil=True)
def quick_step(addresses: Int64, token: int) -> int:
    """`quick_read`, then `quick_fill`. addresses : as there.

    Returns twice an error of the first, or 1 + twice that of the second, or 0.
    """
    code = quick_read(addresses, token)
    if code != OK:
        return 2 * code
    code = quick_fill(addresses)
    return 0 if code == OK else 1 + 2 * code
