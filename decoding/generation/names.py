"""Names that are asked for along a text: which ones a terminal is held to where a name may begin.

A token may end one lexeme and begin a name, as `.path` does behind `os`. What names there are is
known only behind the point. So a token that the model has chosen is read again in pieces, and is
taken back if what begins within it is none of the names there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from maskwright.analysis.arguments import refuse_argument
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.matcher import Matcher

NameSource: TypeAlias = Callable[[bytes], tuple[str, Iterable[str | bytes]] | None]
"""From the text that the model has written so far to a terminal and the names that it is held to
behind it; None where nothing is known of names."""
_WORD = re.compile(rb"(?<![\w\x80-\xff])[\w\x80-\xff]")
"""A letter behind what is none, where a word may begin."""


class NameGuide:
    """What a source of names says along the text of a matcher.

    source : is asked about the bytes that were read since the guide was made.
    matcher : of the text, which the caller advances.
    to_spell : bytes that come first (`Healing`). A name that begins in them is held only if they
        can begin one.

    Raises: MaskwrightError if the matcher cannot be held to names, or cannot take back a token.
    """

    def __init__(self, source: NameSource, matcher: Matcher, to_spell: bytes) -> None:
        if not matcher.text.can_hold_names:
            raise MaskwrightError(
                "names need the matcher of a grammar's store; one of a schema, a pattern or a composition cannot be held to them"
            )
        if matcher.max_rollback < 1:
            raise MaskwrightError(
                "names need a matcher that can take back a token: max_rollback is 0, expected 1 or more"
            )
        self._source, self._matcher = source, matcher
        self._to_spell = to_spell
        self._text = b""
        self._hold(matcher, b"")

    def try_token(self, data: bytes) -> bool:
        """Count a token that the matcher has just read; False if a name in it is not there.

        The matcher takes the token back then.
        """
        if not self._reads(data):
            self._matcher.rollback(1)
            return False
        self._text += data
        self._hold(self._matcher, self._text)
        return True

    def read_again(self, matcher: Matcher, text: bytes, data: bytes) -> None:
        """Let a matcher read bytes behind a text, which a token had, held to the names in them."""
        at = 0
        for begin in self._begins(text, data):
            matcher.advance_bytes(data[at:begin])
            self._hold(matcher, text + data[:begin])
            at = begin
        matcher.advance_bytes(data[at:])
        self._hold(matcher, text + data)

    def _begins(self, text: bytes, data: bytes) -> Iterator[int]:
        """Where a name begins within the bytes behind a text of which the source knows."""
        for found in _WORD.finditer(data, 1):
            if self._source(text + data[: found.start()]) is not None:
                yield found.start()

    def _reads(self, data: bytes) -> bool:
        """Whether the names in a token are there. The matcher is then held to the last of them."""
        text, there, at = self._text, self._matcher, 0
        for begin in self._begins(text, data):
            if there is self._matcher:
                there = self._matcher.fork()
                there.rollback(1)
            if not there.try_bytes(data[at:begin]):
                return False
            at = begin
            self._hold(there, text + data[:begin])
        if there is not self._matcher:
            if not there.try_bytes(data[at:]):
                return False
            self._matcher.hold_as(there)
        return True

    def take_back(self, data: bytes) -> None:
        """Forget the last token, which the matcher takes back."""
        self._text = self._text[: len(self._text) - len(data)]

    def _hold(self, matcher: Matcher, text: bytes) -> None:
        """Hold a matcher behind a text to what the source says."""
        found = self._source(text)
        if found is None:
            return
        if not isinstance(found, tuple | list) or len(found) != 2:
            refuse_argument("what the source of names gave", found, "a terminal and its names, or None")
        left = self._to_spell[len(text) :] if self._to_spell.startswith(text) else b""
        if left:
            there = matcher.fork()
            there.restrict(*found)
            if not there.try_bytes(left):
                return
        matcher.restrict(*found)
