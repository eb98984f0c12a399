"""The pool of token masks: each distinct mask once, as a bitmask or, if smaller, a list of ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BITS = 32


def n_words(n_tokens: int) -> int:
    """Words of a bitmask over n_tokens ids: ceil(n_tokens / 32)."""
    return -(-n_tokens // BITS)


def words_of(tokens: Iterable[int] | npt.NDArray[np.integer], n_tokens: int) -> npt.NDArray[np.uint32]:
    """The bitmask of some tokens: (n_words,) uint32.

    tokens : ids.
    n_tokens : V, the size of the vocabulary.
    """
    flags = np.zeros(n_tokens, np.bool_)
    flags[tokens if isinstance(tokens, np.ndarray) else list(tokens)] = True
    return packed(flags)


def packed(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """The bitmask, (n_words,) uint32, of tokens whose flags are set. flags : (n_tokens,) bool."""
    data = np.packbits(flags, bitorder="little")
    return np.pad(data, (0, -len(data) % 4)).view(np.uint32)


def flags_of(words: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """For each bit of a bitmask whether it is set. words : (n_words,) uint32 or int32."""
    return np.unpackbits(words.astype("<i4").view(np.uint8), bitorder="little").view(np.bool_)


def tokens_of(words: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
    """The tokens of a bitmask, ascending. words : (n_words,) uint32 or int32."""
    return np.flatnonzero(flags_of(words))


def few_tokens(words: npt.NDArray[np.integer], most: int) -> list[int]:
    """The tokens of a bitmask, ascending; none if there are more than `most`.

    words : (n_words,) uint32 or int32.
    """
    places = np.flatnonzero(words)
    if len(places) > most:
        return []
    found = [BITS * place + bit for place in places.tolist() for bit in range(BITS) if int(words[place]) >> bit & 1]
    return found if len(found) <= most else []


@dataclass(frozen=True)
class MaskPool:
    """Token masks by number.

    dense : (n_dense, n_words) uint32; row m is mask m < n_dense. Bit i of word w, counted from the
        lowest, is token 32 w + i.
    sparse_start : (n_sparse + 1,) int64; mask n_dense + k is sparse_ids[sparse_start[k] :
        sparse_start[k + 1]].
    sparse_ids : (n_ids,) int32; token ids, ascending within a mask.
    n_tokens : V, the size of the vocabulary.

    INVARIANT: no mask is empty, and no two are equal.
    """

    dense: npt.NDArray[np.uint32]
    sparse_start: npt.NDArray[np.int64]
    sparse_ids: npt.NDArray[np.int32]
    n_tokens: int

    def __len__(self) -> int:
        return len(self.dense) + len(self.sparse_start) - 1

    def ids(self, mask: int) -> npt.NDArray[np.int32]:
        """The token ids of a mask: (n,) int32, ascending."""
        if mask >= len(self.dense):
            k = mask - len(self.dense)
            return self.sparse_ids[self.sparse_start[k] : self.sparse_start[k + 1]]
        return tokens_of(self.dense[mask]).astype(np.int32)

    def or_into(self, words: npt.NDArray[np.uint32], mask: int) -> None:
        """Add the tokens of a mask to a bitmask.

        words : (n_words,) uint32, changed.
        mask : number of the mask.
        """
        if mask < len(self.dense):
            np.bitwise_or(words, self.dense[mask], out=words)
        else:
            ids = self.ids(mask)
            np.bitwise_or.at(words, ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays together."""
        return self.dense.nbytes + self.sparse_ids.nbytes + self.sparse_start.nbytes


class MaskPoolBuilder:
    """Collects masks. `add` numbers them provisionally, and `build` gives the final numbers.

    n_tokens : V, the size of the vocabulary.
    """

    def __init__(self, n_tokens: int) -> None:
        self.n_tokens = n_tokens
        self._number: dict[bytes, int] = {}
        self._counts: list[int] = []

    def add(self, words: npt.NDArray[np.uint32], count: int) -> int:
        """The provisional number of a mask. Equal masks get the same number.

        words : (n_words,) uint32.
        count : the number of bits set in `words`, at least one.
        """
        content = words.tobytes()
        number = self._number.setdefault(content, len(self._counts))
        if number == len(self._counts):
            self._counts.append(count)
        return number

    def build(self) -> tuple[MaskPool, npt.NDArray[np.int32]]:
        """The pool, and the final number of each provisional one: (n_masks,) int32.

        A mask becomes a list of ids if that is not longer than its bitmask: n tokens take 4 n
        bytes, a bitmask V / 8. Bitmasks come first, then lists; within each the order of `add` is
        kept.
        """
        contents = list(self._number)
        is_dense = np.array(self._counts, np.int64) * BITS > self.n_tokens
        order = np.concatenate([np.flatnonzero(is_dense), np.flatnonzero(~is_dense)]).astype(np.int64)
        final = np.empty(len(order), np.int32)
        final[order] = np.arange(len(order), dtype=np.int32)
        n_dense = int(is_dense.sum())
        dense = np.zeros((n_dense, n_words(self.n_tokens)), np.uint32)
        for row, number in enumerate(order[:n_dense].tolist()):
            dense[row] = np.frombuffer(contents[number], np.uint32)
        lists = [tokens_of(np.frombuffer(contents[number], np.uint32)) for number in order[n_dense:].tolist()]
        starts = np.concatenate([[0], np.cumsum([len(ids) for ids in lists])]).astype(np.int64)
        ids = np.concatenate([np.zeros(0, np.int64), *lists]).astype(np.int32)
        return MaskPool(dense, starts, ids, self.n_tokens), final
