"""The trie of a vocabulary's tokens, level by level, for loops over arrays."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.vocabulary import Vocabulary

Array = npt.NDArray[np.int32]


class Level(NamedTuple):
    """The nodes of a trie at one depth, in the order of their bytes.

    parents : (n,) int32; the place of each node's parent in the level above.
    data : (n,) uint8; the byte that leads to each node.
    ids : (m,) int32; the tokens that end at this depth.
    ends : (m,) int32; the node at which each of them ends.
    """

    parents: Array
    data: npt.NDArray[np.uint8]
    ids: Array
    ends: Array


@lru_cache(maxsize=8)
def trie_levels(vocabulary: Vocabulary) -> tuple[Level, ...]:
    """The trie of the tokens that stand for text, without its root; the first level has depth 1.

    Cost: O(bytes of the tokens): 60 ms for 131,072 tokens; the last eight are kept.
    """
    texts = vocabulary.sorted_texts
    begins, lengths = texts.offsets[:-1], np.diff(texts.offsets)
    here = np.arange(len(lengths))
    node = np.zeros(len(lengths), np.int32)
    found = []
    depth = 0
    while len(here):
        byte = texts.data[begins[here] + depth]
        # INVARIANT: the texts are sorted, so that those below one node are neighbours
        is_new = np.ones(len(here), np.bool_)
        is_new[1:] = (node[1:] != node[:-1]) | (byte[1:] != byte[:-1])
        parents, data = node[is_new], byte[is_new]
        node = (np.cumsum(is_new) - 1).astype(np.int32)
        depth += 1
        goes_on = lengths[here] > depth
        ids, ends = texts.ids[here[~goes_on]], node[~goes_on]
        found.append(Level(parents, data, ids, ends))
        here, node = here[goes_on], node[goes_on]
    return tuple(found)
