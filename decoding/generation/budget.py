"""A budget of tokens that is kept: behind each token, some ending still fits into what is left.

In: a matcher, and the number of tokens that may still come. Out: whether the text can end in time.

INVARIANT: `ending` completes the text as it stands. A token fits if the text behind it has an
ending of at most as many tokens as are left then. The first token of `ending` always fits, so a
budget that holds an ending of the prompt holds a whole text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.decoding.endings.ending_spelling import spelling_of

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.matcher import Matcher

MOST_STARTS = 8
"""Ends of an ending that are tried before another one is searched for."""


class Budget:
    """What keeps a budget: an ending of a text under way. `Generation` counts the tokens.

    matcher : of the text, which the caller advances.
    to_spell : bytes that the next tokens must spell first (see `Healing`); `ending` comes behind.
    has_names : whether a token may be followed by less than before, since a terminal is held.

    first : the ending of the prompt.
    ending : ids that complete the text. They need not be as few as possible.
    is_searched : whether a search was made here, so that another one finds none that is better.
    seconds : spent here.

    Raises: DeadEndError if no tokens complete the text; LimitError if no ending is found.
    """

    def __init__(self, matcher: Matcher, to_spell: bytes, has_names: bool = False) -> None:
        self._has_names = has_names
        self._matcher = matcher
        self._tokens = matcher.store.vocabulary.tokens
        self._is_of_bytes = not (has_names or matcher.text.takes_whole)  # whichever tokens spell them
        self._spelling = spelling_of(matcher.store.vocabulary)
        self.seconds = 0.0
        there = matcher
        if to_spell:
            there = matcher.fork()
            there.advance_bytes(to_spell)
        self.first = self._search(there)
        self.ending, self.is_searched = self.first.tokens, True

    def leaves_choice(self, left: int) -> bool:
        """Whether fewer than `left` tokens complete the text, so that the model may choose one.

        Nothing may be left to spell.
        """
        if len(self.ending) >= left and not self.is_searched:
            found = self._found()
            self.is_searched = True
            self.ending = min(self.ending, self.ending if found is None else found, key=len)
        return len(self.ending) < left

    def take(self, token: int, left: int) -> bool:
        """Whether the text can still end within `left` tokens, once the matcher has read a token.

        token : what it has read; -1 if it was partly spelled before, as while healing.

        If it cannot, `ending` is still the one of the text before, and the caller takes the token
        back.
        """
        if self.ending and self.ending[0] == token and len(self.ending) <= left + 1:
            rest = self.ending[1:]
            if not self._has_names or self._completes(rest):
                self.ending = rest
                return True
        data = b"" if token < 0 else self._tokens[token]
        kept = self._kept_part(data)
        if kept is not None and len(kept) <= left:
            self.ending, self.is_searched = kept, False
            return True
        found = self._found()
        if found is None or len(found) > left:
            return False
        self.ending, self.is_searched = found, True
        return True

    def _kept_part(self, read: bytes) -> tuple[int, ...] | None:
        """Tokens of an end of the ending that completes the text as it stands; None if none is.

        PERF: it saves most searches. Within a string, a number or a name all of the ending mostly
        does; where the text has gone on as the ending would, or to another place that the ending
        passes, what is behind that place does.

        read : the bytes that the text has got.
        """
        begin = time.perf_counter()
        try:
            if self._completes(self.ending):
                return self.ending
            ending = self._spelled(self.ending)
            if ending is None:
                return None
            there = self._matcher.fork()
            for start in _starts(ending, read):
                data = ending[start:]
                if not there.try_bytes(data):
                    continue
                if there.is_accepting():
                    tokens = self._spelling.fewest_tokens(data)
                    if tokens is not None and (self._is_of_bytes or self._completes(tokens)):
                        return tokens
                there = self._matcher.fork()
        except LimitError:
            pass
        finally:
            self.seconds += time.perf_counter() - begin
        return None

    def _completes(self, tokens: tuple[int, ...]) -> bool:
        """Whether tokens complete the text as it stands.

        Their bytes may complete it though they do not, where a part may take so many tokens only.
        PERF: where that cannot be, all bytes are read in one call.
        """
        there = self._matcher.fork()
        if self._is_of_bytes and (data := self._spelled(tokens)) is not None:
            return there.try_bytes(data) and there.is_accepting()
        for token in tokens:
            if not there.is_allowed(token):
                return False
            there.advance(token)
        return there.is_accepting()

    def _spelled(self, tokens: tuple[int, ...]) -> bytes | None:
        """The bytes of tokens; None if one stands for no bytes, as special tokens do."""
        pieces = [self._tokens[token] for token in tokens]
        return b"".join(pieces) if all(pieces) else None

    def new_ending(self) -> tuple[int, ...]:
        """A short ending of the text as it stands, where it has gone back."""
        return self._search(self._matcher).tokens

    def _found(self) -> tuple[int, ...] | None:
        """A short ending of the text as it stands; None if none is found or spelled."""
        try:
            return self._search(self._matcher).tokens
        except (DeadEndError, LimitError):
            return None

    def _search(self, matcher: Matcher) -> Ending:
        begin = time.perf_counter()
        try:
            return matcher.short_ending()
        finally:
            self.seconds += time.perf_counter() - begin


def _starts(ending: bytes, read: bytes) -> Iterator[int]:
    """Where the end of an ending may begin that still completes the text; not at its own beginning.

    read : what the text has got since the ending was found.
    """
    if not read:
        return
    if ending.startswith(read):
        yield len(read)
    at = -1
    for _ in range(MOST_STARTS):
        at = ending.find(read[-1:], at + 1)
        if at < 0:
            return
        yield at + 1
