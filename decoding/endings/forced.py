"""Forced bytes: what every continuation of a text begins with.

A grammar often leaves no choice for a while: behind `{"na` it may allow nothing but `me":`. Such
bytes need no model. Which tokens spell them is another question (`decoding/generation/forced`).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer
from maskwright.analysis.errors import DeadEndError, MaskwrightError
from maskwright.maskstore.vocabulary.masks import n_words, tokens_of

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary import Vocabulary

Words = npt.NDArray[np.uint32]


MOST_BYTES = 256
"""Forced bytes that are looked for at a time."""


class FirstBytes:
    """Which tokens begin with which byte. `first_bytes` makes one a vocabulary.

    vocabulary : of V tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokens, self._is_complete = vocabulary.tokens, vocabulary.is_byte_complete
        offsets, data = vocabulary.flat
        self._firsts = np.full(vocabulary.size, -1, np.int16)
        ids = vocabulary.text_ids()
        self._firsts[ids] = data[offsets[:-1][ids]]
        self._others: dict[int, Words] = {}

    def only(self, words: Words) -> int:
        """The byte with which all tokens of a mask begin; -1 if they differ, or one has no text.

        words : (ceil(V / 32),) uint32, of which one bit is set at least.
        """
        at = int(np.flatnonzero(words)[0])
        word = int(words[at])
        first = int(self._firsts[32 * at + (word & -word).bit_length() - 1])
        if first < 0:
            return -1
        others = self._others.get(first)
        if others is None:
            bits = np.packbits(self._firsts != first, bitorder="little")
            others = self._others[first] = np.pad(bits, (0, -len(bits) % 4)).view(np.uint32)
        return -1 if (words & others).any() else first

    def common(self, words: Words | None, tails: frozenset[bytes]) -> tuple[bytes, frozenset[bytes]]:
        """The bytes with which all that can come begins, and what tokens add behind them.

        words : the mask; None if no token can begin here.
        tails : what tokens that began before add from here on.

        Where each single byte is a token, the mask has all that can come, and tails are left out.
        """
        if self._is_complete:
            first = -1 if words is None else self.only(words)
            return bytes((first,)) if first >= 0 else b"", frozenset()
        texts = set(tails)
        if words is not None:
            ids = tokens_of(words).tolist()
            texts.update(self._tokens[token] for token in ids)
        if not texts:
            return b"", frozenset()
        least, most = min(texts), max(texts)  # what these two begin with, all begin with
        n = next((n for n, pair in enumerate(zip(least, most, strict=False)) if pair[0] != pair[1]), len(least))
        return least[:n], frozenset(text[n:] for text in texts if len(text) > n)


@lru_cache(maxsize=8)
def first_bytes(vocabulary: Vocabulary) -> FirstBytes:
    """The table of a vocabulary, kept for the last eight."""
    return FirstBytes(vocabulary)


@dataclass
class Forced:
    """The forced bytes behind a text.

    data : bytes with which every continuation begins that tokens can spell; b"" if the text may
        end here, or go on in several ways.
    masks : offset in `data` -> mask, (ceil(V / 32),) uint32, where tokens can begin.
    """

    data: bytes = b""
    masks: dict[int, Words] = field(default_factory=dict)


def forced(matcher: Any, limit: int = MOST_BYTES) -> Forced:
    """The forced bytes behind a matcher's text. The matcher is left as it is.

    matcher : a `Matcher` (which asks this module, so that it is not imported here).
    limit : the most bytes to look for.

    Cost: a mask a byte, or fewer where no token is a single byte.
    """
    vocabulary = matcher.store.vocabulary
    table = first_bytes(vocabulary)
    there = matcher.fork()
    found = Forced()
    tails: frozenset[bytes] = frozenset()
    while not there.is_finished():
        words = np.zeros(n_words(vocabulary.size), np.uint32)
        with contextlib.suppress(DeadEndError):  # tokens that began before may reach past this place
            there.fill(words.view(np.int32))
            found.masks[len(found.data)] = words
        if there.is_accepting() or len(found.data) >= limit or there.text.may_be_whole():
            break
        certain, tails = table.common(found.masks.get(len(found.data)), tails)
        if not certain:
            break
        there.advance_bytes(certain)
        found.data += certain
    return found


def forced_bytes(matcher: Any, limit: int = MOST_BYTES) -> bytes:
    """The longest bytes with which every continuation of a matcher's text begins.

    matcher : left as it is. A vocabulary that cannot spell each byte has fewer continuations: those
        that tokens spell.
    limit : the most bytes to look for.

    Raises: MaskwrightError if `limit` is negative.

    >>> import maskwright as mw
    >>> grammar = mw.parse_grammar('start: "hello" ("!" | "?")')
    >>> forced_bytes(mw.build_store(grammar, "python-tiny").matcher())
    b'hello'
    """
    limit = as_integer("limit", limit)
    if limit < 0:
        raise MaskwrightError(f"limit is {limit}; expected 0 or more")
    return forced(matcher, limit).data[:limit]
