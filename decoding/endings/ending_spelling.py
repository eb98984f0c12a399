"""Bytes as tokens: the fewest tokens that spell some bytes, and which bytes no tokens spell."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from maskwright.maskstore.vocabulary.sorted_texts import fewest_tokens

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

PREFERRED = bytes([*range(0x20, 0x7F), *range(0x20), *range(0x7F, 0x100)])
"""All bytes in the order of preference: printable ASCII first."""
ONE_BYTE = tuple(bytes([byte]) for byte in range(256))
"""Each byte as a byte string."""


class Spelling:
    """The vocabulary's tokens as an automaton: which bytes tokens spell one after the other.

    A state is a number. It stands for a set of prefixes of tokens, those that may be under way; the
    empty prefix is in it if a token may have just ended. State 0 is the start. Example: with the
    tokens `a` and `ab`, the state after `a` stands for the prefixes `a` and the empty one.

    vocabulary : the tokens.

    Attributes:

    alphabet : the bytes that occur in tokens, in the order of preference.
    id_of : the first id of each token's bytes.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.name = vocabulary.name
        self.id_of = vocabulary.id_of_text
        self._lengths, self.alphabet = _lengths_and_alphabet(vocabulary)
        self._prefixes: set[bytes] | None = None
        self._states: list[frozenset[bytes]] = [frozenset([b""])]
        self._number = {self._states[0]: 0}

    def fewest_tokens(self, data: bytes) -> tuple[int, ...] | None:
        """The fewest tokens that spell some bytes, as ids; None if no tokens spell them.

        Of several such spellings it is the one whose tokens are longer from the left.

        Cost: O(bytes times distinct lengths of tokens that begin alike).
        """
        found = fewest_tokens(data, self.id_of, self.lengths_at)
        return None if found is None else tuple(found)

    def lengths_at(self, data: bytes, begin: int) -> tuple[int, ...]:
        """The lengths of tokens that may stand at an offset, longest first, and more."""
        return self._lengths.get(data[begin : begin + 2], (1,))

    def after(self, state: int, byte: int) -> int:
        """The state after a byte; -1 if no token continues with it here."""
        if self._prefixes is None:
            self._prefixes = {token[:end] for token in self.id_of for end in range(1, len(token) + 1)}
        longer = {prefix + bytes([byte]) for prefix in self._states[state]} & self._prefixes
        if any(prefix in self.id_of for prefix in longer):
            longer.add(b"")
        found = frozenset(longer)
        if not found:
            return -1
        number = self._number.get(found)
        if number is None:
            number = len(self._states)
            self._states.append(found)  # first: Ctrl-C may come between
            self._number[found] = number
        return number

    def after_all(self, state: int, data: bytes) -> int:
        """The state after several bytes; -1 if no tokens spell them."""
        for byte in data:
            state = self.after(state, byte) if state >= 0 else state
        return state

    def is_whole(self, state: int) -> bool:
        """Whether a token may have just ended in a state."""
        return b"" in self._states[state]

    def explanation(self, data: bytes) -> str:
        """Why the vocabulary cannot spell any ending of a text, in words.

        data : an ending, found without regard to the vocabulary.
        """
        lacking = bytes(dict.fromkeys(byte for byte in data if byte not in self.alphabet))
        why = (
            f"no token contains the bytes {lacking!r}"
            if lacking
            else "its tokens do not spell it, nor any other ending"
        )
        return f"the text can be completed with {data[:40]!r}, but not under vocabulary {self.name}: {why}; use one with all bytes"


@lru_cache(maxsize=8)
def _lengths_and_alphabet(vocabulary: Vocabulary) -> tuple[dict[bytes, tuple[int, ...]], bytes]:
    """The lengths of tokens that begin with two bytes, and 1, longest first; the bytes of tokens.

    The bytes are in the order of preference.
    """
    offsets, data = vocabulary.flat
    long = np.flatnonzero(np.diff(offsets) > 1)
    begin = offsets[long]
    pairs = data[begin].astype(np.int64) << 8 | data[begin + 1]
    known = np.unique((pairs << 32) + (offsets[long + 1] - begin))
    lengths: dict[bytes, list[int]] = {}
    for pair, length in zip((known >> 32).tolist(), (known & 0xFFFFFFFF).tolist(), strict=True):
        lengths.setdefault(pair.to_bytes(2, "big"), [1]).append(length)
    is_used = np.bincount(data, minlength=256)
    found = {pair: tuple(some[::-1]) for pair, some in lengths.items()}
    return found, bytes(byte for byte in PREFERRED if is_used[byte])


@lru_cache(maxsize=8)
def spelling_of(vocabulary: Vocabulary) -> Spelling:
    """The spelling of a vocabulary, kept for the last eight.

    It is shared: `fewest_tokens` and `explanation` may be asked by several threads at once, the
    automaton's states may not.
    """
    return Spelling(vocabulary)
