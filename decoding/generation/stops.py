"""Stop strings: a text ends before the first of them.

The model writes tokens, and a stop string may begin in the middle of one. So the text goes back to
the token before, and reads the bytes of that token that stand before the stop string.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from maskwright.analysis.errors import DeadEndError, LimitError

if TYPE_CHECKING:
    from maskwright.decoding.matchers import AnyMatcher
    from maskwright.maskstore.vocabulary import Vocabulary


class Stops:
    """The stop strings of one completion.

    strings : bytes, none of them empty.
    """

    def __init__(self, strings: Sequence[bytes], vocabulary: Vocabulary, tail: bytes) -> None:
        self._strings = tuple(strings)
        self._pieces = vocabulary.tokens
        self._tail = tail  # of the prompt, which healed tokens spell again before the text

    def place(self, text: bytes, since: int) -> int:
        """Where the first stop string begins in a text; -1 if none is there.

        since : none begins before this offset.
        """
        return min((at for stop in self._strings if (at := text.find(stop, since)) >= 0), default=-1)

    def n_certain(self, text: bytes) -> int:
        """The length of the part of a text that no stop string can take back."""
        open_ends = (
            n for stop in self._strings for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])
        )
        return len(text) - max(open_ends, default=0)

    def go_back(self, matcher: AnyMatcher, tokens: Sequence[int], text: bytes, at: int) -> None:
        """Let a matcher, which has read tokens and so a text, go back to an offset of the text."""
        kept, back = len(text), 0
        while kept > at:
            back += 1
            kept -= len(self._pieces[tokens[-back]])
        matcher.rollback(back)
        healed = len(self._tail)  # a negative offset lies in the healed end of the prompt
        matcher.advance_bytes((self._tail + text)[healed + kept : healed + at])

    def closes(self, matcher: AnyMatcher, tokens: Sequence[int], text: bytes, at: int, left: int) -> bool:
        """Whether the text before an offset has an ending of at most so many tokens.

        The matcher stays where it is.
        """
        there = matcher.fork()
        self.go_back(there, tokens, text, at)
        try:
            return there.is_accepting() or len(there.short_ending().tokens) <= left
        except (DeadEndError, LimitError):
            return False


__all__ = ["Stops"]
