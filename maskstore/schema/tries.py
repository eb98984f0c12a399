"""Tries of sorted texts, as arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from maskwright.analysis.arrays import Int32, Int64, UInt8
from maskwright.maskstore.schema._trie_kernels import build_trie
from maskwright.maskstore.vocabulary.sorted_texts import flatten

Trie = tuple[Int32, Int32, Int32, Int32]


def make_trie(texts: Iterable[tuple[bytes, int]]) -> Trie:
    """The trie of some texts: see `sorted_trie`. texts : each with its number."""
    pairs = sorted(texts)
    offsets, data = flatten(text for text, _ in pairs)
    return sorted_trie(data, offsets[:-1], offsets[1:], np.array([number for _, number in pairs], np.int32))


def sorted_trie(data: UInt8, starts: Int64, ends: Int64, ids: Int32) -> Trie:
    """The trie of sorted texts, in preorder: bytes, ends, tokens, ids (see `layout`).

    data, starts, ends, ids : bytes; (n,), where each text begins in them and ends, and its number.
    """
    lengths = ends - starts
    room = int(lengths.sum()) + 1
    byte, end, tokens = (np.zeros(room + extra, np.int32) for extra in (0, 0, 1))
    n = build_trie(data, starts, ends, byte, end, tokens, np.zeros(int(lengths.max(initial=0)) + 1, np.int32))
    return byte[:n], end[:n], tokens[: n + 1], ids
