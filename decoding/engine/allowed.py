"""The tokens that a mask allows, as a list: for people, tests and loops that need no speed.

In: anything that fills masks. Out: ids or bytes. Knows nothing of grammars.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from maskwright.maskstore.vocabulary.masks import tokens_of


class AllowedTokens:
    """What a matcher of any kind has beside `fill`."""

    store: Any
    fill: Any

    @overload
    def allowed_tokens(self, as_bytes: Literal[False] = False) -> list[int]: ...
    @overload
    def allowed_tokens(self, as_bytes: Literal[True]) -> list[bytes]: ...
    def allowed_tokens(self, as_bytes: bool = False) -> list[int] | list[bytes]:
        """The tokens allowed next, in the order of their ids; none after the end of the text.

        as_bytes : whether to return what the tokens spell in place of their ids. Tokens that end a
            text are b"" then.

        Raises: as `fill`.
        Cost: that of a mask, and O(V); fast loops pass a bitmask of their own to `fill`.
        """
        words = np.zeros(self.store.n_words, np.uint32)
        self.fill(words)
        return _listed(words, self.store.vocabulary, as_bytes)


class AllowedInSlots:
    """What a batch of any kind has beside `fill`."""

    store: Any
    size: int
    fill: Any

    @overload
    def allowed_tokens(self, slot: int, as_bytes: Literal[False] = False) -> list[int]: ...
    @overload
    def allowed_tokens(self, slot: int, as_bytes: Literal[True]) -> list[bytes]: ...
    def allowed_tokens(self, slot: int, as_bytes: bool = False) -> list[int] | list[bytes]:
        """The tokens allowed next in a slot's text, as `Matcher.allowed_tokens` has them.

        Raises: as `fill`.
        Cost: that of a mask, and O(V * size); fast loops pass bitmasks of their own to `fill`.
        """
        words = np.zeros((self.size, self.store.n_words), np.uint32)
        self.fill(words, [slot])
        return _listed(words[slot], self.store.vocabulary, as_bytes)


def _listed(words: Any, vocabulary: Any, as_bytes: bool) -> list[int] | list[bytes]:
    found: list[int] = tokens_of(words).tolist()
    if not as_bytes:
        return found
    ends = set(vocabulary.eos)
    return [b"" if token in ends else vocabulary.tokens[token] for token in found]
