"""Tokens cut in two: those that begin in one language and go on in another."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from maskwright.analysis.marks import MARK
from maskwright.maskstore.vocabulary import Vocabulary


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
    """The cuts of a vocabulary's tokens.

    vocabulary : the tokens.

    marked : the tokens with a byte of a mark.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.marked = frozenset(number for number, data in enumerate(vocabulary.tokens) if data and max(data) >= MARK)
        # a token with a byte of a mark is no text, and is never allowed
        self._tokens = [(data, number) for number, data in enumerate(vocabulary.tokens) if data and max(data) < MARK]
        self._number: dict[bytes, int] = {}
        for data, number in self._tokens:
            self._number.setdefault(data, number)
        self._at: dict[int, tuple[Split, ...]] = {}
        self._first: dict[int, tuple[int, ...]] | None = None

    def before_byte(self, byte: int) -> tuple[Split, ...]:
        """The cuts before a byte, sorted by what stands before it.

        Cost: O(total bytes) for the first call with a byte.
        """
        if byte not in self._at:
            found: dict[bytes, list[tuple[bytes, int]]] = {}
            wanted = bytes((byte,))
            for data, number in self._tokens:
                at = data.find(wanted, 1)
                while at > 0:
                    found.setdefault(data[:at], []).append((data[at:], number))
                    at = data.find(wanted, at + 1)
            self._at[byte] = tuple(
                Split(before, self._number.get(before, -1), tuple(sorted(behind)))
                for before, behind in sorted(found.items())
            )
        return self._at[byte]

    def starting_with(self, byte: int) -> tuple[int, ...]:
        """The ids of the tokens that begin with a byte, ascending."""
        if self._first is None:
            first: dict[int, list[int]] = {}
            for data, number in self._tokens:
                first.setdefault(data[0], []).append(number)
            self._first = {each: tuple(numbers) for each, numbers in first.items()}
        return self._first.get(byte, ())


@lru_cache(maxsize=8)
def splits_of(vocabulary: Vocabulary) -> Splits:
    """The cuts of a vocabulary's tokens, which are kept. Cost: O(V), once."""
    return Splits(vocabulary)
