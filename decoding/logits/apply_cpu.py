"""Masks on logits in the CPU's memory, compiled.

All arguments are arrays. Logits are given as integers of their size, so that a kept logit keeps
every bit. `apply.py` checks and casts what users pass.

logits : (n,) int16, int32 or int64; flat. Row r begins at r * stride and has `columns` values.
row_ids : (B,) int32; row r gets mask rows[row_ids[r]]. -1 leaves the row as it is.
rows : (R, W) int32; bit i of word w is column 32 w + i.
minus_infinity : the bits of -inf as such an integer.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int32_2D, Int64, Int64_2D, Integers, UInt8
from maskwright.analysis.jit import kernel


def apply(logits: Integers, stride: int, columns: int, row_ids: Int32, rows: Int32, minus_infinity: Any) -> None:
    """Write -inf where the bit of rows[row_ids[r]] is 0, or there is no bit."""
    has_lanes = logits.itemsize == 2 and stride % 4 == columns % 4 == 0 and logits.ctypes.data % 8 == 0
    if has_lanes:
        four = np.full(4, minus_infinity).view(np.int64)[0]
        mask_lanes(logits.view(np.int64), stride // 4, columns // 4, row_ids, rows, _lanes(), four)
    else:
        mask_each(logits, stride, columns, row_ids, rows, minus_infinity)


@cache
def _lanes() -> npt.NDArray[np.int64]:
    """table[byte] : (2,) int64; for each bit of the byte 16 bits, all ones if the bit is 1."""
    ones = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    table = (-ones.astype(np.int16)).view(np.int64)
    table.setflags(write=False)
    return table


@kernel(entry=True)
def mask_each(logits: Integers, stride: int, columns: int, row_ids: Int32, rows: Int32_2D, minus_infinity: int) -> None:
    """`apply`, a word at a time.

    PERF: the inner loop is a selection, which compiles to vector instructions. A conditional store
    took three times as long, and a table of bools with masked_fill_ fifteen times (32,000 float32
    logits, Numba 0.68, x86-64).
    """
    bits = logits.dtype.type(minus_infinity)
    for row in range(row_ids.shape[0]):
        if row_ids[row] < 0:
            continue
        words = rows[row_ids[row]]
        here = logits[row * stride : row * stride + columns]
        whole = min(words.shape[0], columns >> 5)
        for w in range(whole):
            word = words[w]
            begin = w << 5
            if word == -1:
                continue
            if word == 0:
                for j in range(32):
                    here[begin + j] = bits
            else:
                for j in range(32):
                    allowed = (word >> np.int32(j)) & 1
                    here[begin + j] = here[begin + j] if allowed else bits
        for i in range(whole << 5, columns):
            w = i >> 5
            if w >= words.shape[0] or (words[w] >> np.int32(i & 31)) & 1 == 0:
                here[i] = bits


@kernel(entry=True)
def mask_lanes(
    lanes: Int64, stride: int, columns: int, row_ids: Int32, rows: Int32_2D, table: Int64_2D, minus_infinity: int
) -> None:
    """`mask_each` of 16-bit logits, four a lane: x = (x and ones) or (-inf and not ones).

    lanes : (n,) int64; four logits each. stride and columns count lanes.
    table : (256, 2) int64; see `_lanes`.
    minus_infinity : int64; four times the bits of -inf.

    PERF: a fifth of the time of `mask_each`, because a selection of 16-bit values does not compile
    to vector instructions.
    """
    for row in range(row_ids.shape[0]):
        if row_ids[row] < 0:
            continue
        words = rows[row_ids[row]]
        here = lanes[row * stride : row * stride + columns]
        whole = min(words.shape[0], columns >> 3)
        for w in range(whole):
            word = words[w]
            begin = w << 3
            if word == -1:
                continue
            if word == 0:
                for j in range(8):
                    here[begin + j] = minus_infinity
            else:
                for k in range(4):
                    byte = (word >> np.int32(8 * k)) & 255
                    for j in range(2):
                        ones = table[byte, j]
                        at = begin + 2 * k + j
                        here[at] = (here[at] & ones) | (minus_infinity & ~ones)
        for at in range(whole << 3, columns):
            w = at >> 3
            byte = (words[w] >> np.int32(8 * ((at >> 1) & 3))) & 255 if w < words.shape[0] else 0
            ones = table[byte, at & 1]
            here[at] = (here[at] & ones) | (minus_infinity & ~ones)


@kernel(entry=True)
def is_outside(row_ids: Int32, limit: int) -> bool:
    """Whether a number is below -1, or is the limit or above."""
    found = False
    for row in range(row_ids.shape[0]):
        found = found or row_ids[row] < -1 or row_ids[row] >= limit
    return found


@kernel(entry=True)
def mend_each(
    logits: Integers, stride: int, columns: int, row_ids: Int32, rows: Int32_2D, is_dead: UInt8, exponent: int
) -> None:
    """Set the allowed logits of a row to 0, and is_dead[r] to 1, if none of them is finite.

    Rows that allow nothing, and idle ones, are left as they are.

    is_dead : (B,) uint8; written, 0 or 1 for each row.
    exponent : the bits of the exponent, all of which are 1 in a number that is not finite.

    Cost: up to the first finite logit of each row.
    """
    ones = logits.dtype.type(exponent)
    for row in range(row_ids.shape[0]):
        is_dead[row] = 0
        if row_ids[row] < 0:
            continue
        words = rows[row_ids[row]]
        here = logits[row * stride : row * stride + columns]
        n_words = min(words.shape[0], (columns + 31) >> 5)
        is_alive = False
        is_empty = True
        for w in range(n_words):
            if words[w] == 0:
                continue
            for i in range(32 * w, min(32 * w + 32, columns)):
                if (words[w] >> np.int32(i & 31)) & 1:
                    is_empty = False
                    if here[i] & ones != ones:
                        is_alive = True
                        break
            if is_alive:
                break
        if is_alive or is_empty:
            continue
        is_dead[row] = 1
        for i in range(min(32 * n_words, columns)):
            if (words[i >> 5] >> np.int32(i & 31)) & 1:
                here[i] = 0
