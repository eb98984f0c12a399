"""Masks as sets of ids, and against what is said of each token alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def ids(words: Sequence[int] | np.ndarray) -> set[int]:
    """The ids whose bits are set, the little end first."""
    bits = np.unpackbits(np.asarray(words).view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def row(matcher: Any) -> set[int]:
    """The ids that a matcher's mask allows."""
    words = np.full(matcher.store.n_words, 0xDEADBEEF, np.uint32)  # what was there before does not matter
    matcher.fill(words)
    return ids(words)


def mask_of(matcher: Any) -> set[int]:
    """The same, but none at a dead end."""
    words = np.full(matcher.store.n_words, 0xDEADBEEF, np.uint32)
    matcher.try_fill(words)
    return ids(words)


def check_mask(matcher: Any) -> None:
    """The mask has the tokens that can be read, and no others."""
    tokens, found = matcher.store.vocabulary.tokens, row(matcher)
    wrong = [token for token in range(len(tokens)) if (token in found) != matcher.is_allowed(token)]
    assert not wrong, (matcher, [(token, tokens[token]) for token in wrong[:8]])
