"""Canonical tokens for a text under way: masks narrowed to them, and tokens that need no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.decoding.endings.forced import first_bytes, forced
from maskwright.decoding.generation.forced import ForcedSpellings
from maskwright.decoding.logits import apply_mask
from maskwright.maskstore.vocabulary.masks import n_words

if TYPE_CHECKING:
    from maskwright.decoding.generation.logits import Logits, Sampler
    from maskwright.decoding.matcher import Matcher
    from maskwright.maskstore.canonical import CanonicalTokens

Words = npt.NDArray[np.int32]


class CanonicalGuide:
    """The canonical sequence beside a matcher's text.

    tokens : of the matcher's tokenizer.
    matcher : of the text, which the caller advances.
    before : the prompt's tokens. A special token, or one that is not canonical, begins a text of
        its own.
    """

    def __init__(self, tokens: CanonicalTokens, matcher: Matcher, before: Sequence[int]) -> None:
        self._matcher = matcher
        self._state = tokens.start()
        self._words = np.zeros(n_words(matcher.store.vocabulary.size), np.int32)
        self._first_bytes = first_bytes(matcher.store.vocabulary)
        self._spellings: ForcedSpellings | None = None  # of the forced bytes here, once asked for
        for token in before:
            self.read(token)

    def read(self, token: int) -> bool:
        """Read a token. Returns whether it is canonical."""
        self._spellings = None
        is_canonical = self._state.is_canonical(token)
        if is_canonical:
            self._state.advance(token)
        else:
            self._state.restart()
        return is_canonical

    def take_back(self) -> None:
        """Take back the last token that was read."""
        self._spellings = None
        self._state.rollback(1)

    def _narrowed(self, words: Words) -> Words:
        """The tokens of a mask that are canonical and lead to a canonical token; a new array.

        words : (ceil(V / 32),) int32, the matcher's mask.
        """
        spellings = self._of_forced(words)
        if spellings is not None:
            return spellings.mask().view(np.int32)
        words = words.copy()
        self._state.narrow(words)
        return words

    def choose(self, words: Words, logits: Logits, sampler: Sampler) -> int:
        """Choose a token that canonical ones can follow, and read it, as the matcher does.

        words : (n,) int32, the matcher's mask, maybe with more words behind it; left as it is.
        logits : (N,) float32; left as they are.

        Returns the token; -1 if there is none.
        """
        logits = logits.copy()
        apply_mask(logits, self._narrowed(words[: len(self._words)]))
        while np.isfinite(logits).any():
            token = sampler.choose(logits)
            self._matcher.advance(token)
            if self.try_token(token):
                return token
            self._matcher.rollback(1)
            logits[token] = -np.inf
        return -1

    def forced(self, words: Words) -> list[int]:
        """The tokens that come next whatever the model says. words : as of `choose`."""
        spellings = self._of_forced(words[: len(self._words)])
        return [] if spellings is None else spellings.tokens()

    def _of_forced(self, words: Words) -> ForcedSpellings | None:
        """The spellings of the forced bytes behind the text; None if there are none."""
        if self._matcher.is_accepting() or self._first_bytes.only(words.view(np.uint32)) < 0:
            return None
        if self._spellings is None:
            self._spellings = ForcedSpellings(forced(self._matcher), self._state)
        return self._spellings

    def try_token(self, token: int) -> bool:
        """Read a token that the matcher has just read; False if no canonical one could follow it.

        The matcher then still stands behind the token, and this sequence before it.
        """
        self._state.advance(token)
        self._spellings = None
        matcher = self._matcher
        if matcher.is_finished() or (matcher.is_accepting() and self._state.can_end()):
            return True
        matcher.fill(self._words)
        if self._narrowed(self._words).any():
            return True
        self.take_back()
        return False
