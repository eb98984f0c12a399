"""The classes of characters, spelled out in UTF-8 bytes.

All characters are cut into blocks of 64, the span of a last byte. Equal blocks are one node. Then
blocks of 64 nodes are merged in the same way, and so on. This gives at most three levels, which all
states with the same successors share. (Rust's utf8-ranges splits each range into byte sequences
instead.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.charset import LAST
from maskwright.analysis.regex.minimise import number_rows

Array = npt.NDArray[np.int64]


class Blocks(NamedTuple):
    """A partition of the characters from U+0080 on, as a trie over UTF-8 bytes.

    one_left : (n, 64) int64; a class for each last byte 0x80..0xBF, -1 for no character.
    two_left : (n, 64) int64; a row of `one_left` for each byte 0x80..0xBF.
    three_left : (n, 64) int64; a row of `two_left` for each byte 0x80..0xBF.
    leads_c2_to_df : (30,) int64; rows of `one_left`.
    leads_e0_to_ef : (16,) int64; rows of `two_left`.

    The leads 0xF0..0xF4 are the rows of `three_left`.
    """

    one_left: Array
    two_left: Array
    three_left: Array
    leads_c2_to_df: Array
    leads_e0_to_ef: Array


@Kept
def trie(bounds: bytes, class_of: bytes) -> Blocks:
    """The trie of a partition.

    bounds, class_of : int64 arrays as bytes, as in `ClassRows`; the first bound is 128.

    Cost: O(number of intervals), cached.
    """
    starts, classes = np.frombuffer(bounds, dtype=np.int64), np.frombuffer(class_of, dtype=np.int64)
    starts, classes = np.append(starts, LAST + 1), np.append(classes, -1)
    blocks = starts >> 6
    # a block of one class has that class's row; those in which an interval begins are looked at
    mixed = np.unique(blocks[starts & 63 != 0])
    characters = (mixed[:, np.newaxis] << 6) + np.arange(64)
    rows = classes[np.searchsorted(starts, characters, side="right") - 1]
    one_class = np.arange(-1, int(classes.max()) + 1)
    whole = np.repeat(one_class, 64).reshape(-1, 64)
    number, one_left = _distinct(np.vstack([whole, rows]))
    one_of = np.zeros(5 << 12, np.int64)  # the row for class -1
    first = (starts + 63) >> 6  # the first whole block of each interval
    lengths = np.diff(np.append(first, len(one_of)))
    one_of[first[0] :] = np.repeat(classes + 1, lengths)
    one_of[mixed] = number[len(whole) :]
    nothing = one_of[0]  # the ASCII block, empty here
    leads_c2_to_df = one_of[2:32].copy()
    one_of[:32] = nothing  # no overlong form: two bytes spell these characters
    two_of, two_left = _distinct(one_of.reshape(-1, 64))
    leads_e0_to_ef = two_of[:16]
    two_of = two_of.copy()
    two_of[:16] = two_of[-1]  # no overlong form here either; the last block, above U+10FFFF, is empty
    return Blocks(one_left, two_left, two_of.reshape(-1, 64), leads_c2_to_df, leads_e0_to_ef)


def _distinct(rows: npt.NDArray[np.generic]) -> tuple[Array, Array]:
    """The number of each row among the distinct rows, and the distinct rows."""
    number = number_rows(rows).astype(np.int64)
    return number, rows[np.unique(number, return_index=True)[1]].astype(np.int64)
