"""Written masks: of one thread, and of several, whose union is kept as a row.

PERF: a text inside alternatives has several threads, each with rows of its own. When the same masks
have come together `TIMES` times, their union becomes a row. From then on one row is written.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._mask_kernels import mask_of, write_mask, write_row_of_mask
from maskwright.decoding.schema._memo_kernels import find, insert
from maskwright.maskstore.schema import layout

TOGETHER = -7
"""What begins the key of a row that is a union of masks.

Until it is the row's offset, the value of the key is minus how often the masks came together.
"""
TIMES = 6


@kernel(forceinline=True)
def mask_of_thread(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, number: int, may_take_long: bool
) -> int:
    """The mask of a text's thread. Returns its offset, or -1 - an error.

    may_take_long : see `mask_of`.
    """
    at, thread = work[c.THREADS_1], memory[c.STATE] + 1 + number * c.THREAD
    for k in range(c.THREAD):
        work[at + k] = memory[thread + k]
    return mask_of(voc, table, automata, memory, work, at, may_take_long)


@kernel
def write_masks(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, may_take_long: bool
) -> int:
    """Write the union of the masks of a text's threads. may_take_long : see `mask_of`.

    Returns 1 if it has a token, 0 if it has none, or -1 - an error.
    """
    n, masks, resets = memory[memory[c.STATE]], work[c.MASKS], work[c.N_RESETS]
    is_any = False
    n_written, last = 0, -1
    for thread in range(n):
        mask = mask_of_thread(voc, table, automata, memory, work, thread, may_take_long)
        if mask < 0:
            return mask
        is_any = is_any or work[mask + c.IS_ANY] != 0
        work[masks + thread] = mask
        for number in range(work[mask + c.N_MASK_ROWS]):
            row = 2 * work[mask + c.MASK_ROWS + 2 * number + 1] + work[mask + c.MASK_ROWS + 2 * number]
            n_written += 1 if row != last else 0
            last = row
    is_gone = work[c.N_RESETS] != resets  # the first masks, so each is written before the next one
    row = union_row(voc, work, n) if n > 1 and n_written > 1 and not is_gone else 0
    if row > 0:
        write_row_of_mask(voc, work, words, True, row, False)
        return 1 if is_any else 0
    last = -1
    for thread in range(n):
        mask = work[masks + thread]
        if is_gone:
            mask = mask_of_thread(voc, table, automata, memory, work, thread, may_take_long)
        if mask < 0:
            return mask
        last = write_mask(voc, work, words, mask, thread > 0, last)
    return 1 if is_any else 0


@kernel
def union_row(voc: Int32, work: Int32, n: int) -> int:
    """The offset of the row that is the union of n masks; 0 if they rarely come together.

    Where there is no room, it is 0, too.
    """
    key, masks, n_words = work[c.KEY_BUFFER], work[c.MASKS], voc[layout.N_ROW_WORDS]
    if key + 1 + n > work[c.KEY_END]:
        return 0
    work[key] = TOGETHER
    for k in range(n):
        work[key + 1 + k] = work[masks + k]
    slot = find(work, 1 + n)
    if slot < 0:
        insert(work, slot, 1 + n, -1)
        return 0
    row = work[slot + 2]
    if row > 0:
        return row
    work[slot + 2] = max(row - 1, -TIMES)
    row = work[c.DATA_TOP]
    if work[slot + 2] > -TIMES or row + n_words + work[c.RESERVE] > work[c.DATA_END]:
        return 0
    words, last = work[row : row + n_words], -1
    for k in range(n):
        last = write_mask(voc, work, words, work[masks + k], k > 0, last)
    work[c.DATA_TOP] = row + n_words
    work[slot + 2] = row
    return row
