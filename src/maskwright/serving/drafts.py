"""Drafts of tokens that a constraint itself makes likely, for a server's speculative decoding.

In: a request's text under its constraint. Out: a few tokens ahead, which the model reads in one
pass and accepts or not: where only one token can come, it; else the one that mostly came at such a
place in the texts of this server; else tokens that spell the bytes that must come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.endings.ending_spelling import spelling_of
from maskwright.decoding.generation import TokenCounts
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import few_tokens

if TYPE_CHECKING:
    from maskwright.decoding.matcher import Matcher

MOST_FORCED = 64
"""BOUND: bytes that must come, of which a draft is spelled; each costs a mask."""


class Drafts:
    """What came where in the texts of a server, and what is likely to come next.

    vocabulary : of the texts. most : tokens of a draft at most.

    All requests share it, in one thread. A draft never makes another text.
    """

    def __init__(self, vocabulary: Vocabulary, most: int) -> None:
        self.counts = TokenCounts(vocabulary, ahead=most)
        self._spelling = spelling_of(vocabulary)
        self._most = most

    def learn(self, matcher: Matcher, tokens: Sequence[int], before: int) -> None:
        """Count the last tokens of a text.

        matcher : has read the tokens; it is left as it is.
        tokens : no more than it can take back.
        before : the token before them; -1 if there is none.
        """
        words = np.zeros(matcher.store.n_words, np.int32)
        try:
            matcher.rollback(len(tokens))
        except MaskwrightError:
            return  # too far back, and nothing has changed
        for token in tokens:
            try:
                matcher.fill(words)
            except MaskwrightError:
                pass  # no mask can be made there
            else:
                self.counts.count(TokenCounts.place(words, before), token)
            before = token
            matcher.advance(token)

    def next(self, matcher: Matcher, before: int, most: int) -> list[int]:
        """Tokens that are likely to come, each of them legal behind those before it.

        matcher : of the text; it is left as it is.
        before : the token before. most : how many.
        """
        most = min(most, self._most)
        there, found = matcher.fork(), list[int]()
        words = np.zeros(matcher.store.n_words, np.int32)
        try:
            while len(found) < most and not there.is_finished():
                there.fill(words)
                more = self._one(words, before) or self._forced(there)
                if not more:
                    break
                for token in more[: most - len(found)]:
                    there.advance(token)
                    found.append(token)
                before = found[-1]
        except MaskwrightError:
            pass  # what was found until then is legal
        return found

    def _one(self, words: np.ndarray[tuple[int], np.dtype[np.int32]], before: int) -> tuple[int, ...]:
        """The only token of a mask, or that which mostly came there."""
        if alone := few_tokens(words, 1):
            return tuple(alone)
        token = self.counts.likely(TokenCounts.place(words, before))
        return (token,) if token >= 0 and words[token >> 5] >> (token & 31) & 1 else ()

    def _forced(self, matcher: Matcher) -> tuple[int, ...]:
        """Tokens that spell the bytes which must come."""
        data = matcher.forced_bytes(MOST_FORCED)
        return (self._spelling.fewest_tokens(data) or ()) if data else ()
