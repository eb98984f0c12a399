"""Tokens in the order of their bytes, in which tokens with a common beginning are neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.columns import FORM_FEED, LINE_FEED, SPACE, TAB
from maskwright.analysis.kept import cached_property

_OTHERS = bytes(set(range(256)) - {LINE_FEED, SPACE, TAB, FORM_FEED})


@dataclass(frozen=True, eq=False)
class SortedTexts:
    """Tokens sorted by their bytes; those with equal bytes by their ids.

    What depends on the tokens alone is worked out once, for all grammars.

    texts : the bytes of each.
    ids : (n,) int32.
    by_id : (n,) int64; the order in which the ids ascend.
    offsets, data : (n + 1,) int64, (n_bytes,) uint8; the bytes end to end. Token i is
        data[offsets[i] : offsets[i + 1]].
    """

    texts: list[bytes]
    ids: npt.NDArray[np.int32]
    by_id: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]

    @cached_property
    def shared(self) -> npt.NDArray[np.int32]:
        """(n,) int32; how many leading bytes each token shares with the one before it."""
        sizes = np.diff(self.offsets)
        shared = np.zeros(len(sizes), np.int32)
        most = np.minimum(sizes[1:], sizes[:-1])
        at = np.flatnonzero(most) + 1
        n = 0
        while len(at):
            at = at[self.data[self.offsets[at] + n] == self.data[self.offsets[at - 1] + n]]
            n += 1
            shared[at] = n
            at = at[most[at - 1] > n]
        return shared

    @cached_property
    def ascending(self) -> npt.NDArray[np.int32]:
        """The ids, ascending: (n,) int32."""
        return self.ids[self.by_id]

    @cached_property
    def longest(self) -> int:
        """The most bytes of a token; 0 if there is none."""
        return int(np.diff(self.offsets).max(initial=0))

    @cached_property
    def newline_pieces(self) -> tuple[bytes, ...]:
        """What is left of the tokens without the bytes that move no column, each text once."""
        return tuple(sorted({text.translate(None, _OTHERS) for text in self.texts}))


def sorted_texts(texts: Sequence[bytes], ids: npt.NDArray[np.int32]) -> SortedTexts:
    """Sort tokens by their bytes.

    texts : the bytes of each token.
    ids : (n,) int32; their ids, ascending.
    """
    order = sorted(range(len(texts)), key=texts.__getitem__)
    found = [texts[i] for i in order]
    by_id = np.empty(len(order), np.int64)
    by_id[order] = np.arange(len(order))
    return SortedTexts(found, ids[np.array(order, np.int64)], by_id, *flatten(found))


def flatten(strings: Iterable[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Texts end to end: where each begins, (n + 1,) int64; and their bytes, uint8."""
    strings = list(strings)
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offsets[1:])
    return offsets, np.frombuffer(b"".join(strings), dtype=np.uint8)


def fewest_tokens(data: bytes, id_of: Mapping[bytes, int], lengths: Callable[..., Iterable[int]]) -> list[int] | None:
    """The fewest tokens that spell some bytes, as ids; None if no tokens spell them.

    Of several such spellings it is the one whose tokens are longer from the left.

    id_of : bytes of a token -> its id.
    lengths : of the bytes and an offset, the lengths of tokens that may stand there, and perhaps
        others; longest first.
    """
    n = len(data)
    counts = [n + 1] * n + [0]  # for each offset the tokens from there on
    ends = [0] * n
    for begin in range(n - 1, -1, -1):
        for length in lengths(data, begin):
            end = begin + length
            if end <= n and counts[end] + 1 < counts[begin] and data[begin:end] in id_of:
                counts[begin], ends[begin] = counts[end] + 1, end
    if counts[0] > n:
        return None
    begins = [0]
    while begins[-1] < n:
        begins.append(ends[begins[-1]])
    return [id_of[data[begin:end]] for begin, end in pairwise(begins)]
