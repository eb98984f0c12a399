"""Where a text stands in one language, a host's or a part's, as all engines can tell it.

`cursors` has the same for each kind of language, with what is faster there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.marks import MARK
from maskwright.decoding.composition.exits import NO_EXITS, Exit, Exits
from maskwright.decoding.engine.state import TextState

Words = npt.NDArray[np.uint32]


class Cursor:
    """A text of one language.

    text : its state. A cursor that several readings share is never advanced.
    eos : the end-of-text tokens of the vocabulary.

    The classes of `cursors` do the same as this one.
    """

    __slots__ = ("_key", "eos", "text")
    has_short_key = False
    """Whether `key` is found in no time, and is that of many texts."""

    def __init__(self, text: TextState, eos: tuple[int, ...]) -> None:
        self.text, self.eos = text, eos
        self._key: object = None

    def reads(self, data: bytes) -> bool:
        """Whether bytes, all of them of this language, may come next."""
        return self.text.allows(data)

    def try_bytes(self, data: bytes) -> bool:
        """Add bytes if `reads`."""
        self._key = None
        return self.text.try_read(data)

    def try_token(self, token: int, data: bytes) -> bool:
        """Add a token if all of it is of this language, and may come.

        token, data : its id in the whole text's vocabulary, and its bytes.
        """
        return self.try_bytes(data)

    def may_come(self, token: int, data: bytes) -> bool:
        """Whether a token, all of whose bytes are of this language, may come next."""
        return self.reads(data)

    def may_leave(self, data: bytes) -> bool:
        """Whether the text may be whole behind some, not all, of some bytes, as far as is known."""
        return len(data) > 1

    def quick_read(self, token: int, data: bytes) -> bool:
        """Add a token, all of whose bytes are of this language, if that is quick, and it may come.

        Returns whether it was added. If not, nothing has changed.
        """
        return False

    def quick_fill(self, words: npt.NDArray[np.int32], exits: Exits) -> bool:
        """Write the mask of a text whose only reading this is, if that is quick.

        Returns whether it was done, and there are tokens. If not, the words may be spoilt.
        """
        return False

    def keep_mask(self, words: npt.NDArray[np.int32], exits: Exits) -> None:
        """Keep the whole text's mask for `quick_fill`, if that can be told from few states."""

    def is_at_end(self) -> bool:
        """Whether the text may be whole, where few states are; False if nobody knows."""
        return False

    def rollback(self) -> None:
        """Take back what the last successful `try_bytes` or `try_token` has added."""
        self._key = None
        self.text.undo(1)

    def next_bytes(self) -> Iterable[int]:
        """The bytes of this language that may come next."""
        return (byte for byte in range(MARK) if self.reads(bytes((byte,))))

    def parts_behind(self, data: bytes, marks: Sequence[bytes]) -> Iterable[int]:
        """Of a host: the parts that may begin behind some bytes. marks : those of all parts."""
        is_any = self.reads(data + bytes((MARK,)))
        return (number for number, each in enumerate(marks) if is_any and self.reads(data + each))

    def accepts(self) -> bool:
        """Whether the text is legal as a whole."""
        return self.text.can_end()

    def accepts_after(self, data: bytes) -> bool:
        """Whether the text is legal as a whole with more bytes."""
        if not data:
            return self.accepts()
        if not self.reads(data):
            return False
        # other texts may have this cursor, so that it is not moved, if only for a moment
        other = self.fork()
        other.try_bytes(data)
        return other.accepts()

    def fill(self, words: Words) -> bool:
        """Write the mask of the tokens that stay in this language. Returns whether there is one.

        words : as many as the language's own vocabulary has.
        """
        return self.text.try_fill(words.view(np.int32))

    def fill_part(self, words: Words, exits: Exits = NO_EXITS) -> tuple[bool, bool]:
        """Write the mask of the tokens that begin in this language: of a part, not of a host.

        words : (n_words,) uint32.
        exits : the tokens that can leave it.

        Returns whether the text is legal as a whole, and whether the mask has tokens.
        """
        self._fill_inside(words)
        self._add_exits(words, exits.entries)
        return self.accepts(), bool(words.any())

    def _fill_inside(self, words: Words) -> None:
        if not self.fill(words):
            words[:] = 0
        for token in self.eos:
            words[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)

    def _add_exits(self, words: Words, entries: Iterable[Exit]) -> None:
        for before, number, tokens in entries:
            if number >= 0 and not has(words, number):
                continue  # the bytes are a token that may not come
            if not all(has(words, token) for token in tokens) and self.accepts_after(before):
                for token in tokens:
                    add(words, token)

    def ending(self) -> bytes:
        """Bytes that complete the text."""
        return bytes(self.text.short_ending().data)

    def key(self) -> object:
        """Texts of a language with equal keys have the same future."""
        if self._key is None:
            self._key = self._find_key()
        return self._key

    def _find_key(self) -> object:
        return self.text.key()

    def fork(self) -> Self:
        """A second cursor in the same state."""
        return type(self)(self.text.copy(), self.eos)


def has(words: Words, token: int) -> bool:
    """Whether a token is in a mask."""
    return bool(words[token >> 5] >> np.uint32(token & 31) & 1)


def add(words: Words, token: int) -> None:
    """Add a token to a mask."""
    words[token >> 5] |= np.uint32(1 << (token & 31))
