"""A table without the tokens that none of its masks has.

A host of a composition reads a few hundred of a vocabulary's tokens. Its table need not hold the
others, nor room for them in its masks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.write import TableWriter, part_of
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import flags_of, n_words, packed


def used_tokens(table: Int32) -> Int32:
    """The tokens that a mask of a table has, and those that end a text: (n,) int32, ascending."""
    is_used = np.zeros(32 * int(table[schema.N_WORDS]), bool)
    rows = _rows(table)
    if len(rows):
        is_used |= flags_of(np.bitwise_or.reduce(rows, axis=0))
    is_used[part_of(table, schema.MASK_IDS)] = True
    is_used[part_of(table, schema.EOS)] = True
    return np.flatnonzero(is_used).astype(np.int32)


def with_tokens(table: Int32, ids: Int32, vocabulary: Vocabulary) -> Int32:
    """A table with some of its tokens, numbered anew.

    ids : (n,) int32, ascending; the tokens, `used_tokens` among them.
    vocabulary : token i is what ids[i] was.

    The masks are the same, but for the numbers of their tokens.
    """
    words = n_words(len(ids))
    rows = np.zeros((len(_rows(table)), words), np.uint32)
    for old, new in zip(_rows(table), rows, strict=True):
        new[:] = packed(flags_of(old)[ids])
    offsets, data = vocabulary.flat_words
    changed: dict[int, npt.ArrayLike] = {
        schema.ROWS: rows.view(np.int32),
        schema.MASK_IDS: np.searchsorted(ids, part_of(table, schema.MASK_IDS)),
        schema.TOKEN_START: offsets,
        schema.TOKEN_BYTES: data,
        schema.EOS: np.array(vocabulary.eos, np.int32),
    }
    writer = TableWriter()
    writer.header[:] = table[: schema.HEADER]
    writer.header[schema.N_TOKENS], writer.header[schema.N_WORDS] = len(ids), words
    for offset in schema.PARTS:
        writer.add(offset, changed.get(offset, part_of(table, offset)))
    return writer.done()


def _rows(table: Int32) -> npt.NDArray[np.uint32]:
    """The rows of masks: (n_rows, n_words) uint32."""
    return part_of(table, schema.ROWS).view(np.uint32).reshape(-1, int(table[schema.N_WORDS]))
