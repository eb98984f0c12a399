"""Tokens cut in two: those that begin in one language and go on in another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import cached_property, kept_with
from maskwright.analysis.marks import MARK, MOST_PARTS, mark
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import words_of
from maskwright.maskstore.vocabulary.sorted_texts import flatten

Int32 = npt.NDArray[np.int32]

LONG = 32
"""A token of more bytes is *long*: its cuts, which would take the square of its length, are not
listed. Of 131,072 tokens of tekken 56 are long."""


class Split(NamedTuple):
    """The tokens that begin with the same bytes, and what each has behind them.

    before : the first bytes; not empty.
    token : the id of a token of these bytes alone, or -1.
    behind : (the other bytes, not empty; the token's id), sorted.
    """

    before: bytes
    token: int
    behind: tuple[tuple[bytes, int], ...]


class Splits:
    """The cuts of a vocabulary's tokens that are not long.

    marked : the tokens with a byte of a mark. They are no text, and never allowed; all else here is
        about the others.
    long : the long tokens: their bytes and ids, sorted.

    n_cuts : the number of beginnings.

    A *beginning* is a byte string, not empty, behind which some token goes on. They are sorted, and
    have numbers.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._size, every = vocabulary.size, vocabulary.sorted_texts
        size = np.diff(every.offsets)
        # a token with text has a byte, so that no run is empty
        has_mark = np.maximum.reduceat(every.data, every.offsets[:-1]) >= MARK if len(size) else np.zeros(0, bool)
        self.marked = frozenset(every.ids[has_mark].tolist())
        self.long = tuple(
            (every.texts[at], int(every.ids[at])) for at in np.flatnonzero(~has_mark & (size > LONG)).tolist()
        )
        kept = np.flatnonzero(~has_mark & (size <= LONG))
        self._texts = [every.texts[at] for at in kept.tolist()]
        self._ids = every.ids[kept]
        self._offsets, self._data = flatten(self._texts)
        self._before_byte: dict[int, tuple[Split, ...]] = {}
        if not len(kept):
            self._in_text = self._length = np.zeros(0, np.int32)
            self.n_cuts = 0
            return
        # what a text shares with the one before it that is kept, it shares with all between them
        shared = np.minimum.reduceat(every.shared[: kept[-1] + 1], np.append(0, kept[:-1] + 1))
        size = size[kept]
        first = np.flatnonzero(shared < size)  # of equal texts one
        size, shared = size[first], shared[first]
        goes_on = np.append(shared[1:] >= size[:-1], False)
        number = size - shared - ~goes_on
        starts = np.cumsum(number) - number
        self._in_text = np.repeat(first, number).astype(np.int32)
        within = np.arange(len(self._in_text)) - np.repeat(starts, number)
        self._length = (np.repeat(shared, number) + within + 1).astype(np.int32)
        self.n_cuts = len(self._length)

    def beginnings(self) -> list[bytes]:
        """All beginnings, by number."""
        return [
            self._texts[at][:length] for at, length in zip(self._in_text.tolist(), self._length.tolist(), strict=True)
        ]

    def cut(self, number: int) -> Split:
        """The cut behind a beginning. Cost: O(the tokens that begin so)."""
        length, begin = int(self._length[number]), int(self._in_text[number])
        before = self._texts[begin][:length]
        end = bisect_right(self._texts, before, begin, key=lambda text: text[:length])
        token = self.id_of(before)
        behind = zip(self._texts[begin:end], self._ids[begin:end].tolist(), strict=True)
        return Split(before, token, tuple((text[length:], each) for text, each in behind if len(text) > length))

    def before_byte(self, byte: int) -> tuple[Split, ...]:
        """The cuts before a byte, sorted by what stands before it; of each token those behind it.

        Cost: O(total bytes) for the first call with a byte.
        """
        if byte not in self._before_byte:
            places = np.flatnonzero(self._data == byte)
            texts = np.searchsorted(self._offsets, places, side="right") - 1
            found: dict[bytes, list[tuple[bytes, int]]] = {}
            for at, length in zip(texts.tolist(), (places - self._offsets[texts]).tolist(), strict=True):
                if length:
                    text = self._texts[at]
                    found.setdefault(text[:length], []).append((text[length:], int(self._ids[at])))
            self._before_byte[byte] = tuple(
                Split(before, self.id_of(before), tuple(behind)) for before, behind in sorted(found.items())
            )
        return self._before_byte[byte]

    def starting_with(self, byte: int) -> tuple[int, ...]:
        """The ids of the tokens that begin with a byte, ascending."""
        begin = bisect_left(self._texts, bytes((byte,)))
        end = bisect_right(self._texts, byte, begin, key=lambda text: text[0])
        return tuple(sorted([*self._ids[begin:end].tolist(), *(token for data, token in self.long if data[0] == byte)]))

    @cached_property
    def text_words(self) -> Int32:
        """(n_words,) int32: the mask of all tokens with text and without a mark."""
        return words_of([*self._ids.tolist(), *(token for _, token in self.long)], self._size).view(np.int32)

    def id_of(self, data: bytes) -> int:
        """The first id of a token of some bytes, at most LONG; -1 if there is none."""
        at = bisect_left(self._texts, data)
        return int(self._ids[at]) if at < len(self._texts) and self._texts[at] == data else -1


@kept_with
def splits_of(vocabulary: Vocabulary) -> Splits:
    """The cuts of a vocabulary's tokens. Cost: O(total bytes) and a sort, once."""
    return Splits(vocabulary)


_CONTINUING = bytes(range(0x80, 0xC0))
"""The bytes behind the first one of a character in UTF-8."""


def rest_of_character(data: bytes) -> int:
    """How many bytes before others continue a character; 0 if there are none, or no others."""
    n = len(data) - len(data.lstrip(_CONTINUING))
    return n if n < len(data) else 0


@kept_with
def past_a_character(vocabulary: Vocabulary) -> tuple[tuple[bytes, int], ...]:
    """The tokens that begin within a character and go on behind it: their bytes and ids."""
    every = zip(vocabulary.sorted_texts.texts, vocabulary.sorted_texts.ids.tolist(), strict=True)
    return tuple((data, token) for data, token in every if rest_of_character(data))


@kept_with
def marked_vocabulary(vocabulary: Vocabulary) -> Vocabulary:
    """What hosts of a vocabulary read: its tokens, beginnings of tokens before a part, and marks.

    The ids of the tokens are theirs; those with a byte of a mark have no text. Behind them comes
    each beginning (`Splits`) with the first byte of a mark: where it is allowed a part may begin
    inside a token. The last ones are the marks, so that tokens can spell a host's texts.

    Cost: 0.5 s at V = 131,072, once.
    """
    splits = splits_of(vocabulary)
    tokens = [b"" if number in splits.marked else data for number, data in enumerate(vocabulary.tokens)]
    first = bytes((MARK,))
    beginnings = [before + first for before in splits.beginnings()]
    return Vocabulary(
        f"{vocabulary.name} with marks",
        (*tokens, *beginnings, *map(mark, range(MOST_PARTS))),
        dict(vocabulary.special),
        vocabulary.eos,
    )


def host_vocabulary(marked: Vocabulary, ids: npt.NDArray[np.int32]) -> Vocabulary:
    """Some tokens of a marked vocabulary. ids : (n,) int32, ascending; all that end a text too."""
    if len(ids) == marked.size:
        return marked
    tokens = tuple(marked.tokens[token] for token in ids.tolist())
    eos = tuple(np.searchsorted(ids, marked.eos).tolist())
    special = {at: marked.special[token] for at, token in zip(eos, marked.eos, strict=True)}
    return Vocabulary(marked.name, tokens, special, eos)
