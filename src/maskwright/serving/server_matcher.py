"""A request's matcher, with the tokens that end the request's text."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.matcher import Matcher

if TYPE_CHECKING:
    from maskwright.serving.requests import RequestStore

_logger = logging.getLogger(__name__)

ROLLBACK = 64
"""How many tokens can be taken back at least."""
SLOW = 0.05
"""CPU seconds of a mask, from which it counts as slow: one that may be, but not often."""
MOST_SLOW = 3.0
"""CPU seconds that the slow masks of one text may take. All requests of a server wait meanwhile."""


class ServerMatcher:
    """The text of one request: masks, tokens, drafts. A server's adapter gives it its own methods.

    store : of the request's constraint.
    ends : ids of the tokens that end the text: those that the server stops at. They are allowed
        where the text is legal as a whole and nowhere else, and never stand for text. None, or
        none: those of the store's vocabulary.
    n_tokens : the number of ids of the model, which may be more than those of the tokenizer.
    max_rollback : how many tokens `rollback` can take back.
    most_slow : CPU seconds that the slow masks of the text may take.
    has_ends : False for a text that no token ends: those of `ends` never come.

    It is for one thread at a time.
    """

    def __init__(
        self,
        store: RequestStore,
        ends: Collection[int] | None,
        n_tokens: int,
        max_rollback: int = ROLLBACK,
        most_slow: float = MOST_SLOW,
        has_ends: bool = True,
    ) -> None:
        own = store.vocabulary.eos
        wanted = sorted({int(token) for token in ends or () if 0 <= token < n_tokens}) or list(own)
        self._ends = wanted if has_ends else []
        self._matcher = Matcher(store, max_rollback)
        self._more = frozenset(self._ends) - frozenset(own)
        self._hidden = frozenset((*own, *wanted)) - frozenset(self._ends)
        # the word and the bit of each end that compiled code does not know, or must not allow
        self._more_bits, self._hidden_bits = _bits(self._more), _bits(self._hidden)
        self._own_end = own[0] if own else None
        n_words = -(-n_tokens // 32)
        if n_words < store.n_words:
            raise MaskwrightError(
                f"the store has {store.vocabulary.size:,} tokens and the model {n_tokens:,}; build it from the model's own tokenizer"
            )
        self._words: npt.NDArray[np.uint32] = np.zeros(n_words, np.uint32)
        self._has_ended = False  # by an end that compiled code does not know
        self._is_finished = False  # by any end. PERF: asked at each mask
        # what is timed: most masks take microseconds, some take what a request makes them take
        self._if_slow = self._matcher.text.if_slow
        self._slow_seconds, self._most_slow = 0.0, most_slow

    def fill(self, row: npt.NDArray[Any]) -> str | None:
        """Write the mask of the tokens allowed next.

        row : (ceil(n_tokens / 32),) uint32 or longer, contiguous or not. What is past the tokens
            is refused.

        After the end of the text the ends are allowed, and nothing else.

        Returns None, or, where no exact mask can be made, the reason: a limit (too many readings,
        slow masks that have taken more than `MOST_SLOW`), a text that no token continues, or one
        that only tokens continue at which the server stops. The mask then allows the ends alone,
        whether or not the text may end here, and `advance` refuses an end where it may not: a
        server that stops at one must not take the text for whole. Where there are no ends it allows
        all.
        """
        words, failed = self._words, None
        try:
            if self._is_finished:
                words[:] = 0
                self._allow_ends()
            else:
                if self._if_slow:
                    self._fill_in_time(words)
                else:
                    self._matcher.fill(words)
                if self._more or self._hidden:
                    self._set_ends()
                    if not words.any():
                        failed = f"the text goes on with nothing but stop tokens: {self._ends}, at which it would end"
                        self._allow_ends()
        except Exception as error:  # a server must go on, whatever one request does
            words[:] = 0
            # behind a whole text that no token goes on with, the ends are the mask
            if not (isinstance(error, DeadEndError) and self._more and self._is_whole()):
                failed = str(error) if isinstance(error, MaskwrightError) else repr(error)
            self._allow_ends()
        row[: len(words)] = words
        row[len(words) :] = 0
        return failed

    def _fill_in_time(self, words: npt.NDArray[np.uint32]) -> None:
        """`Matcher.fill`. Raises: as there; LimitError past `MOST_SLOW`."""
        if self._slow_seconds > self._most_slow:
            raise LimitError(f"the slow masks of this text have taken {self._slow_seconds:.1f} s: {self._if_slow}")
        begin = time.thread_time()
        try:
            self._matcher.fill(words)
        finally:
            spent = time.thread_time() - begin
            if spent > SLOW:
                self._slow_seconds += spent

    def _allow_ends(self) -> None:
        if not self._ends:  # a row of -inf alone has no maximum; `advance` refuses what comes
            self._words[:] = 0xFFFFFFFF
        for token in self._ends:
            self._words[token >> 5] |= np.uint32(1 << (token & 31))

    def _set_ends(self) -> None:
        """Put the request's own ends into the mask, in place of the vocabulary's."""
        words, own = self._words, self._own_end
        is_whole = self._is_whole() if own is None else words[own >> 5] >> np.uint32(own & 31) & 1
        for word, bit in self._hidden_bits:
            words[word] &= ~bit
        for word, bit in self._more_bits:
            if is_whole:
                words[word] |= bit
            else:
                words[word] &= ~bit

    def _is_whole(self) -> bool:
        try:
            return self._matcher.is_accepting()
        except MaskwrightError:
            return False

    def advance(self, token: int) -> bool:
        """Add a token to the text. False if it is not allowed; nothing has changed then."""
        try:
            self.read(token)
        except Exception as error:
            if not isinstance(error, MaskwrightError):
                _logger.exception("token %d cannot be read", token)
            return False
        return True

    def read(self, token: int) -> None:
        """Add a token to the text: `advance` for those who want the reason.

        Raises: IllegalTokenError if it is not allowed; as `Matcher.advance`. Nothing has changed
            then.
        """
        if self._is_finished:
            raise IllegalTokenError(f"token {token} comes after the end of the text")
        if token in self._more:
            if not self._is_whole():
                raise IllegalTokenError(f"token {token} ends texts, but this text is not whole here")
            self._has_ended = self._is_finished = True
            return
        if token in self._hidden:
            raise IllegalTokenError(f"token {token} stands for no text, and ends none here: {self._ends} do")
        self._matcher.advance(token)
        self._is_finished = token in self._ends

    def longest_prefix(self, tokens: Iterable[int]) -> list[int]:
        """The tokens that may come next, one after the other, until the first that may not.

        The text does not change. Nothing comes behind its end.
        """
        wanted, found = list(tokens), list[int]()
        with self.trying(len(wanted)):
            for token in wanted:
                if not (self.may_come(token) and self.advance(token)):
                    break
                found.append(token)
        return found

    @contextmanager
    def trying(self, most: int) -> Iterator[None]:
        """Put the text back behind what follows, which reads `most` tokens or fewer.

        As many tokens can be taken back then as before.
        """
        matcher, before = self._matcher, (self._has_ended, self._is_finished)
        known = matcher.remembered()
        is_copy = known + most > matcher.max_rollback  # it would lose its oldest tokens
        if is_copy:
            self._matcher = matcher.fork()
        try:
            yield
        finally:
            self._matcher, (self._has_ended, self._is_finished) = matcher, before
            if not is_copy:
                matcher.rollback(matcher.remembered() - known)

    def without_ends(self, tokens: Sequence[int]) -> list[int]:
        """`longest_prefix` of tokens that `inner` has read, one after the other, in a copy.

        PERF: only where one of them is an end of the request's own are they read again.
        """
        if self._more.isdisjoint(tokens) and self._hidden.isdisjoint(tokens):
            return list(tokens)
        return self.longest_prefix(tokens)

    def may_come(self, token: int) -> bool:
        """Whether `advance` may take a token; it is asked if this is not certain.

        PERF: a draft is often refused; the error of `advance` takes 0.4 ms to word, this 1 us.
        """
        if self._is_finished or token in self._more:
            return not self._is_finished  # `advance` knows
        try:
            return self._matcher.is_allowed(token)
        except Exception:
            return False  # `advance` will say it, if it comes

    def rollback(self, n: int) -> None:
        """Take back the last n tokens.

        Raises: MaskwrightError if n is negative, or past what is remembered.
        """
        self._matcher.rollback(n - (n > 0 and self._has_ended))
        if n:
            self._has_ended = self._is_finished = False

    @property
    def inner(self) -> Matcher:
        """The matcher of the text, which knows nothing of the request's own ends."""
        return self._matcher

    @property
    def ends(self) -> tuple[int, ...]:
        """The ids of the tokens that end the text."""
        return tuple(self._ends)

    def short_ending(self) -> tuple[int, ...]:
        """Tokens that make the text whole, without the one that ends it: hardly more than must be.

        None of them ends the text for the server, even if it stands for text otherwise.

        Raises: as `Matcher.short_ending`; DeadEndError if other tokens do not spell it, or may not:
            a composition takes some tokens whole.
        """
        found = tuple(self._matcher.short_ending().tokens)
        if self._more.isdisjoint(found):
            return found
        spelled = tuple(
            other for token in found for other in (self._respelled(token) if token in self._more else (token,))
        )
        if not self._is_ending(spelled):
            ends = sorted(self._more.intersection(found))
            raise DeadEndError(
                f"the text ends with tokens at which the server stops, {ends}, and other tokens with their text do not stand for them"
            )
        return spelled

    def _is_ending(self, tokens: Iterable[int]) -> bool:
        copy = self._matcher.fork()
        try:
            for token in tokens:
                copy.advance(token)
        except IllegalTokenError:
            return False
        return copy.is_accepting()

    def _respelled(self, token: int) -> list[int]:
        """The text of an end of the server's own, by the fewest other tokens.

        Raises: DeadEndError if there are none.
        """
        tokens = self._matcher.store.vocabulary.tokens
        data = tokens[token]
        pieces = {each: other for other, each in enumerate(tokens) if each and each in data and other not in self._more}
        best: list[list[int] | None] = [[]]
        for end in range(1, len(data) + 1):
            ways = [
                [*before, pieces[data[begin:end]]]
                for begin, before in enumerate(best)
                if before is not None and data[begin:end] in pieces
            ]
            best.append(min(ways, key=len, default=None))
        if best[-1] is None:
            raise DeadEndError(
                f"the text ends with {data!r}, which only token {token} spells, at which the server stops"
            )
        return best[-1]

    def is_finished(self) -> bool:
        """Whether a token that ends the text has been read."""
        return self._is_finished

    def fork(self) -> ServerMatcher:
        """A second text in the same state."""
        other = copy(self)
        other._matcher, other._words = self._matcher.fork(), self._words.copy()
        return other

    def reset(self) -> None:
        """Put the text back to its start."""
        self._matcher.reset()
        self._has_ended = self._is_finished = False

    def __repr__(self) -> str:
        return f"<ServerMatcher {self._matcher!r}, ends {self._ends}>"


def _bits(tokens: Iterable[int]) -> tuple[tuple[int, np.uint32], ...]:
    return tuple((token >> 5, np.uint32(1 << (token & 31))) for token in sorted(tokens))
