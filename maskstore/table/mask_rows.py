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

from maskwright.analysis.arrays import Int32, Int64
from maskwright.maskstore.automaton.closure import Closure
from maskwright.maskstore.table import _table_kernels as kernels
from maskwright.maskstore.tokens.classes import TokenClasses


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


def share_rows(closure: Closure, classes: TokenClasses, n_words: int) -> MaskRows:
    """The masks of a closure as rows and ids.

    The rows are not the fewest possible: each mask joins the row that suits it best, larger masks
    first. The choice is made over classes of tokens, each of which counts as its tokens.

    closure, classes : its masks are sets of these classes.
    n_words : words of a row.

    Cost: O(masks x rows of like size x words of classes), 0.1 s for python.lark at V = 131,072.
    """
    counts, at = closure.mask_count, closure.mask_at
    weights = _weights(classes.sizes, closure.dense.shape[1])
    sizes = np.zeros(len(counts), np.int64)
    kernels.mask_sizes(counts, at, closure.dense, closure.mask_ids, classes.sizes, weights, sizes)
    large = np.flatnonzero(sizes > most_ids(n_words))
    words = np.zeros((len(large), closure.dense.shape[1]), np.uint32)
    kernels.write_rows(counts[large], at[large], closure.dense, closure.mask_ids, words)
    order = np.argsort(-sizes[large], kind="stable")
    row_of = np.full(len(large), -1, np.int32)
    rows = np.zeros((64, words.shape[1]), np.uint32)
    kept = np.zeros((64, 2), np.int64)
    n_rows = done = 0
    while True:
        done, n_rows = kernels.share_rows(
            words, sizes[large], order, done, row_of, rows, kept, n_rows, most_ids_more(n_words), weights
        )
        if done == len(large):
            break
        rows, kept = np.concatenate([rows, np.zeros_like(rows)]), np.concatenate([kept, np.zeros_like(kept)])
    rows = rows[:n_rows]
    row = np.full(len(counts), -1, np.int32)
    row[large] = row_of
    words &= ~rows[row_of]
    beside_of = np.full(len(counts), -1, np.int64)
    beside_of[large] = np.arange(len(large))
    start, none = np.zeros(len(counts) + 1, np.int64), np.zeros(0, np.int32)
    kernels.list_classes(counts, at, closure.dense, closure.mask_ids, beside_of, words, start, none)
    listed = np.zeros(int(start[-1]), np.int32)
    kernels.list_classes(counts, at, closure.dense, closure.mask_ids, beside_of, words, start, listed)
    ids, begin = classes.tokens(listed, start)
    return MaskRows(classes.rows(rows, n_words), row, begin[:-1].astype(np.int32), np.diff(begin).astype(np.int32), ids)


def _weights(sizes: Int64, n_words: int) -> npt.NDArray[np.int32]:
    """The numbers of tokens of four classes at a time: (8 n_words, 16) int32.

    sizes : (n_classes,) int64; the number of tokens of each class.
    n_words : words of a bitmask of classes.

    Row n has classes 4 n to 4 n + 3, of which bits 4 n mod 32 and so on of a word tell. Column b is
    for those with the bits of b.
    """
    padded = np.zeros(32 * n_words, np.int64)
    padded[: len(sizes)] = sizes
    bits = np.arange(16)[None, :] >> np.arange(4)[:, None] & 1
    return (padded.reshape(-1, 4) @ bits).astype(np.int32)
