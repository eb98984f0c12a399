"""A budget of tokens that is kept: behind each token, some ending still fits into what is left.

In: a matcher, and the number of tokens that may still come. Out: whether the text can end in time.

INVARIANT: `ending` completes the text as it stands. A token fits if the text behind it has an
ending of at most as many tokens as are left then. The first token of `ending` always fits, so a
budget that holds an ending of the prompt holds a whole text.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from maskwright.analysis.errors import LimitError

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.matchers import AnyMatcher

MOST_TRIES = 64
"""Tokens that may be chosen at one place although they do not fit; then the text is closed."""


class Budget:
    """An ending of a text under way, kept up to date.

    matcher : of the text, which the caller advances.
    to_spell : bytes that the next tokens must spell first (see `Healing`); `ending` comes behind.

    ending : ids that complete the text. They need not be as few as possible.
    is_shortest : whether no ending of fewer bytes is known.
    seconds : spent here.

    Raises: DeadEndError if no tokens complete the text; LimitError if no ending is found.
    """

    def __init__(self, matcher: AnyMatcher, to_spell: bytes) -> None:
        self._matcher = matcher
        self.seconds = 0.0
        there = matcher
        if to_spell:
            there = matcher.fork()
            there.advance_bytes(to_spell)
        self.first = self._search(there)
        self.ending, self.is_shortest = self.first.tokens, True

    def leaves_choice(self, left: int) -> bool:
        """Whether fewer than `left` tokens complete the text, so that the model may choose one.

        Nothing may be left to spell.
        """
        if len(self.ending) >= left and not self.is_shortest:
            try:
                found = self._search(self._matcher).tokens
            except LimitError:
                return False
            self.is_shortest = True
            if len(found) < len(self.ending):
                self.ending = found
        return len(self.ending) < left

    def take(self, token: int, left: int) -> bool:
        """Whether the text can still end within `left` tokens, once the matcher has read a token.

        token : what it has read; -1 if it was partly spelled before, as while healing.

        If it cannot, `ending` is still the one of the text before, and the caller takes the token
        back.
        """
        if self.ending and self.ending[0] == token and len(self.ending) <= left + 1:
            self.ending = self.ending[1:]
            return True
        # Within a string, a number or a name, an ending often goes on to complete the text.
        if len(self.ending) <= left and self._completes():
            self.is_shortest = False
            return True
        try:
            found = self._search(self._matcher).tokens
        except LimitError:  # too many readings: the text is closed before it gets there
            return False
        if len(found) > left:
            return False
        self.ending, self.is_shortest = found, True
        return True

    def _completes(self) -> bool:
        """Whether the ending completes the text as it stands."""
        begin = time.perf_counter()
        try:
            there = self._matcher.fork()
            for token in self.ending:
                if not there.is_allowed(token):
                    return False
                there.advance(token)
            return there.is_accepting()
        except LimitError:
            return False
        finally:
            self.seconds += time.perf_counter() - begin

    def _search(self, matcher: AnyMatcher) -> Ending:
        begin = time.perf_counter()
        try:
            return matcher.short_ending()
        finally:
            self.seconds += time.perf_counter() - begin
