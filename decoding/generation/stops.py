"""Stop strings: a text ends before the first of them.

The model writes tokens, and a stop string may begin in the middle of one. So the text goes back to
the token before, and reads the bytes of that token that stand before the stop string. Where they
cannot be read, since a composition takes that token whole, the text ends before the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.matcher import Matcher

if TYPE_CHECKING:
    from maskwright.decoding.generation.names import NameGuide
    from maskwright.maskstore.vocabulary import Vocabulary


class Stops:
    """The stop strings of one completion.

    strings : bytes, none of them empty.
    matcher : of the text; None if there is none.
    tail : of the prompt, which healed tokens spell again before the text.
    names : that the text is held to.

    Raises: MaskwrightError if the matcher cannot take back as many tokens as may spell a string.
    """

    def __init__(
        self,
        strings: Sequence[bytes],
        vocabulary: Vocabulary,
        matcher: Matcher | None,
        tail: bytes,
        names: NameGuide | None,
    ) -> None:
        self._strings = tuple(strings)
        self._pieces = vocabulary.tokens
        self._tail, self._names = tail, names
        self._may_be_whole = matcher is not None and matcher.text.takes_whole
        longest = max(strings, key=len, default=b"")
        if matcher is not None and len(longest) > matcher.max_rollback:
            raise MaskwrightError(
                f"the stop string {longest[:40]!r} has {len(longest)} bytes, so the text may go back as many tokens, and the matcher "
                f"can take back {matcher.max_rollback} (max_rollback); make it with store.matcher(max_rollback={len(longest)})"
            )

    def place(self, text: bytes, since: int) -> int:
        """Where the first stop string begins in a text; -1 if none is there.

        since : none begins before this offset.
        """
        return min((at for stop in self._strings if (at := text.find(stop, since)) >= 0), default=-1)

    def n_certain(self, text: bytes, tokens: Sequence[int]) -> int:
        """The length of the part of a text that no stop string can take back.

        tokens : of the text.
        """
        open_ends = (
            n for stop in self._strings for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])
        )
        certain = len(text) - max(open_ends, default=0)
        return max(0, self._token_at(text, tokens, certain)[0]) if self._may_be_whole else certain

    def go_back(self, matcher: Matcher, tokens: Sequence[int], text: bytes, at: int) -> int:
        """Let a matcher, which has read tokens and so a text, go back to an offset of the text.

        Returns the offset where it stands then: that one, or the beginning of the token there, if
        the token is one that is taken whole.
        """
        kept, back = self._token_at(text, tokens, at)
        matcher.rollback(back)
        try:
            self._read(matcher, text, kept, at)
        except IllegalTokenError:
            at = max(kept, 0)
            self._read(matcher, text, kept, at)
        return at

    def _read(self, matcher: Matcher, text: bytes, begin: int, end: int) -> None:
        healed = len(self._tail)  # a negative offset lies in the healed end of the prompt
        text = self._tail + text
        before, data = text[: healed + begin], text[healed + begin : healed + end]
        if self._names is None:
            matcher.advance_bytes(data)
        else:
            self._names.read_again(matcher, before, data)

    def _token_at(self, text: bytes, tokens: Sequence[int], at: int) -> tuple[int, int]:
        """Where the token begins that an offset lies in, and how many tokens end behind it."""
        kept, back = len(text), 0
        while kept > at:
            back += 1
            kept -= len(self._pieces[tokens[-back]])
        return kept, back

    def closes(self, matcher: Matcher, tokens: Sequence[int], text: bytes, at: int, left: int) -> bool:
        """Whether the text before an offset has an ending of at most so many tokens.

        The matcher stays where it is.
        """
        there = matcher.fork()
        self.go_back(there, tokens, text, at)
        try:
            return there.is_accepting() or len(there.short_ending().tokens) <= left
        except (DeadEndError, LimitError):
            return False
