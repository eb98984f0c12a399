"""The masks of an engine's table: rows that masks share, and for each mask a row and a few ids.

The masks of a grammar are unions of the same large sets and a few tokens. Such a set is all tokens
that go on with a name, or all that go on with a string. With V = 131,072 tokens, the masks of
python.lark take 47 MB as bitmasks, and 5 MB as rows and ids. This is small enough for a processor's
cache, and reading masks is where the time goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.automaton.closure import Closure
from maskwright.maskstore.table import _table_kernels as kernels

Int32 = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class MaskRows:
    """Masks by number: mask m is a row and some ids.

    It is rows[row[m]], or nothing if row[m] is -1, and ids[begin[m] : begin[m] + count[m]].

    rows : (n_rows, n_words) uint32; bit i of word w, the little end first, is token 32 w + i.
    row, begin, count : (n_masks,) int32.
    ids : (n_ids,) int32, ascending within a mask.
    """

    rows: npt.NDArray[np.uint32]
    row: Int32
    begin: Int32
    count: Int32
    ids: Int32


def most_ids(n_words: int) -> int:
    """The most tokens of a mask without a row.

    So many ids take as long to add as a row: 2 ns for an id, 1 ns for 8 words. n_words : words of a
    row.
    """
    return max(8, n_words // 16)


def most_ids_more(n_words: int) -> int:
    """The most ids that a mask has beside its row. n_words : words of a row."""
    return max(4, n_words // 32)


def share_rows(closure: Closure) -> MaskRows:
    """The masks of a closure as rows and ids.

    The rows are not the fewest possible: each mask joins the row that suits it best, larger masks
    first.

    Cost: O(masks x rows of like size x n_words), 0.3 s for python.lark at V = 131,072.
    """
    n_words = closure.dense.shape[1]
    counts = closure.mask_count
    large = np.flatnonzero((counts < 0) | (counts > most_ids(n_words)))
    words = np.zeros((len(large), n_words), np.uint32)
    kernels.write_rows(counts[large], closure.mask_at[large].astype(np.int64), closure.dense, closure.mask_ids, words)
    sizes = kernels.row_sizes(words)
    order = np.argsort(-sizes, kind="stable")
    row_of = np.full(len(large), -1, np.int32)
    rows = np.zeros((64, n_words), np.uint32)
    kept = np.zeros((64, 2), np.int64)
    n_rows = done = 0
    while True:
        done, n_rows = kernels.share_rows(words, sizes, order, done, row_of, rows, kept, n_rows, most_ids_more(n_words))
        if done == len(large):
            break
        rows, kept = np.concatenate([rows, np.zeros_like(rows)]), np.concatenate([kept, np.zeros_like(kept)])
    rows = rows[:n_rows]
    row = np.full(len(counts), -1, np.int32)
    row[large] = row_of
    lists = [
        closure.mask_ids[at : at + count] for at, count in zip(closure.mask_at.tolist(), counts.tolist(), strict=True)
    ]
    for i, mask in enumerate(large.tolist()):
        bits = np.unpackbits((words[i] & ~rows[row_of[i]]).astype("<u4").view(np.uint8), bitorder="little")
        lists[mask] = np.flatnonzero(bits).astype(np.int32)
    count = np.array([len(ids) for ids in lists], np.int32)
    begin = np.cumsum(count, dtype=np.int64) - count
    ids = np.concatenate([*lists, np.zeros(0, np.int32)])
    return MaskRows(rows, row, begin.astype(np.int32), count, ids)
