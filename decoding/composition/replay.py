"""Tokens added to a text of several languages as long as its masks have them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from maskwright.analysis.errors import IllegalTokenError
from maskwright.decoding.composition.cursor import has
from maskwright.decoding.composition.words import Described, why_not
from maskwright.decoding.engine.arguments import as_int64, integer_row
from maskwright.maskstore.composition.tables import ComposedTables


class Replayed(Described, Protocol):
    """What `replay` needs of a `ComposedMatcher`."""

    def fill(self, bitmask: Any) -> None:
        """Write the mask."""

    def advance(self, token: int) -> None:
        """Add a token."""


def replay(matcher: Replayed, tokens: Any) -> int:
    """Add tokens to a text as long as the masks have them. Returns how many were added.

    tokens : (n,) integers.

    Raises: as `ComposedMatcher.replay`.
    """
    array = integer_row("tokens", tokens)
    ids = as_int64(array)
    wrong = np.flatnonzero((ids < 0) | (ids >= matcher.store.vocabulary.size))
    if len(wrong):
        raise IllegalTokenError(why_not(matcher, int(ids[wrong[0]])))
    words = np.zeros(matcher.store.n_words, np.uint32)
    for n, token in enumerate(ids.tolist()):
        if matcher.is_finished():
            return n
        matcher.fill(words)
        if not has(words, token):
            return n
        matcher.advance(token)
    return len(ids)


class Restored(Protocol):
    """What `restored` needs of a `ComposedMatcher`."""

    def __init__(self, store: ComposedTables, max_rollback: int) -> None: ...

    def read_again(self, said: list[int | bytes], remembered: int) -> None:
        """Add tokens and bytes, and remember so many."""


def restored(
    cls: type[Restored], store: ComposedTables, max_rollback: int, said: list[int | bytes], remembered: int
) -> Restored:
    """A pickled matcher: the text is read again."""
    matcher = cls(store, max_rollback)
    matcher.read_again(said, remembered)
    return matcher
