"""A request's matcher, with the tokens that end the request's text."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import few_tokens, n_words

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.endings.ending_spelling import Spelling
    from maskwright.serving.requests import RequestStore

_logger = logging.getLogger(__name__)

ROLLBACK = 64
"""How many tokens can be taken back at least."""
SLOW = 0.05
"""CPU seconds of a mask, from which it counts as slow: one that may be, but not often."""
MOST_SLOW = 3.0
"""CPU seconds that the slow masks of one text may take. All requests of a server wait meanwhile."""


class ServerMatcher(Matcher):
    """The text of one request: a `Matcher` with the server's ends, and within limits.

    store : of the request's constraint.
    ends : ids of the tokens that end the text: those that the server stops at. They are allowed
        where the text is legal as a whole and nowhere else, and never stand for text. None, or
        none: those of the store's vocabulary.
    n_tokens : the number of ids of the model, which may be more than those of the tokenizer.
    max_rollback : how many tokens `rollback` can take back.
    most_slow : CPU seconds that the slow masks of the text may take.
    has_ends : False for a text that no token ends: those of `ends` never come.

    `step`, `replay` and `advance_bytes` are those of `Matcher`: they know the vocabulary's ends
    alone.
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
        super().__init__(store, max_rollback)
        own = store.vocabulary.eos
        wanted = tuple(sorted({int(token) for token in ends or () if 0 <= token < n_tokens})) or own
        self.ends = wanted if has_ends else ()
        self._more = frozenset(self.ends).difference(own)
        self._hidden = frozenset((*own, *wanted)).difference(self.ends)
        self._special = self._more | self._hidden
        """What the engine does not know: that those of `_more` are ends, and the rest none."""
        self._own_end = own[0] if own else None
        self._has_ended = False  # by one of `_more`
        self._row: npt.NDArray[np.uint32] = np.zeros(n_words(n_tokens), np.uint32)
        if len(self._row) < store.n_words:
            raise MaskwrightError(
                f"the store has {store.vocabulary.size:,} tokens and the model {n_tokens:,}; build it from the model's own tokenizer"
            )
        # what is timed: most masks take microseconds, some take what a request makes them take
        self._slow_seconds, self._most_slow = 0.0, most_slow

    def fill_row(self, row: npt.NDArray[Any]) -> str | None:
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
        words, failed = self._row, None
        try:
            if self.is_finished():
                self._allow_ends()
            elif self.text.if_slow:
                self._fill_in_time(words)
            else:
                self.fill(words)
        except Exception as error:  # a server must go on, whatever one request does
            failed = str(error) if isinstance(error, MaskwrightError) else repr(error)
            self._allow_ends()
        row[: len(words)] = words
        row[len(words) :] = 0
        return failed

    def _fill_in_time(self, words: npt.NDArray[np.uint32]) -> None:
        """As `fill`. Raises: as there; LimitError past `MOST_SLOW`."""
        if self._slow_seconds > self._most_slow:
            raise LimitError(f"the slow masks of this text have taken {self._slow_seconds:.1f} s: {self.text.if_slow}")
        begin = time.thread_time()
        try:
            self.fill(words)
        finally:
            spent = time.thread_time() - begin
            if spent > SLOW:
                self._slow_seconds += spent

    def _allow_ends(self) -> None:
        # a row of -inf alone has no maximum; `advance` refuses what comes
        self._row[:] = 0 if self.ends else 0xFFFFFFFF
        for token in self.ends:
            self._row[token >> 5] |= np.uint32(1 << (token & 31))

    def try_advance(self, token: int) -> bool:
        """Add a token to the text. False if it is not allowed; nothing has changed then.

        PERF: a draft is often refused. It takes 0.4 ms to word an error, and 1 us to ask.
        """
        try:
            if not self.is_allowed(token):
                return False
            self.advance(token)
        except Exception as error:
            if not isinstance(error, MaskwrightError):
                _logger.exception("token %d cannot be read", token)
            return False
        return True

    def longest_prefix(self, tokens: Iterable[int]) -> list[int]:
        """The tokens that may come next, one after the other, until the first that may not.

        The text does not change. Nothing comes behind its end.
        """
        wanted, found = list(tokens), list[int]()
        with self.trying(len(wanted)):
            for token in wanted:
                if not self.try_advance(token):
                    break
                found.append(token)
        return found

    @contextmanager
    def trying(self, most: int) -> Iterator[None]:
        """Put the text back behind what follows, which reads `most` tokens or fewer.

        As many tokens can be taken back then as before.
        """
        text, known, has_ended = self.text, self.remembered(), self._has_ended
        is_copy = known + most > self.max_rollback  # it would lose its oldest tokens
        if is_copy:
            self._use(text.copy())
        try:
            yield
        finally:
            if is_copy:
                self._use(text)
                self._has_ended = has_ended
            else:
                self.rollback(self.remembered() - known)

    # -- what `Matcher` has, with the request's own ends

    def fill(self, bitmask: Any) -> None:
        """As `Matcher.fill`, of an array. An end that is past the bitmask is left out."""
        if not self._special:
            return super().fill(bitmask)
        try:
            super().fill(bitmask)
        except DeadEndError:
            if not (self._more and self.is_accepting()):
                raise
            bitmask[:] = 0
        words, own = bitmask.view(np.uint32), self._own_end
        is_whole = self.is_accepting() if own is None else words[own >> 5] >> np.uint32(own & 31) & 1
        for token in self._special:
            if (at := token >> 5) < len(words):
                bit = np.uint32(1 << (token & 31))
                words[at] = words[at] | bit if is_whole and token in self._more else words[at] & ~bit
        if self._has_ended:
            words[:] = 0
        elif not words.any():
            raise DeadEndError(
                f"the text goes on with nothing but stop tokens: {list(self.ends)}, at which it would end"
            )

    def is_allowed(self, token: int) -> bool:
        if self._has_ended or token in self._special:
            return token in self._more and not self.is_finished() and self.is_accepting()
        return super().is_allowed(token)

    def advance(self, token: int) -> None:
        if not (self._has_ended or token in self._special):
            return super().advance(token)
        if self.is_finished():
            raise IllegalTokenError(f"token {token} comes after the end of the text")
        if token in self._hidden:
            raise IllegalTokenError(f"token {token} stands for no text, and ends none here: {list(self.ends)} do")
        if not self.is_accepting():
            raise IllegalTokenError(f"token {token} ends texts, but this text is not whole here")
        self._has_ended = True

    def is_finished(self) -> bool:
        return self._has_ended or super().is_finished()

    def remembered(self) -> int:
        return super().remembered() + self._has_ended

    def rollback(self, n: int = 1) -> None:
        super().rollback(n - (n > 0 and self._has_ended))
        self._has_ended = self._has_ended and not n

    def reset(self) -> None:
        super().reset()
        self._has_ended = False

    def fork(self) -> Self:
        other: Any = super().fork()
        vars(other).update(vars(self) | vars(other))
        other._row = self._row.copy()
        return other  # type: ignore[no-any-return]

    __copy__ = fork

    def __reduce__(self) -> tuple[Any, ...]:
        own = vars(self).keys() - vars(Matcher.of(self.text)).keys()
        return (*super().__reduce__(), {name: vars(self)[name] for name in own})

    def short_ending(self) -> Ending:
        """As `Matcher.short_ending`, with no token that ends the text, though it stands for text.

        Raises: as there; DeadEndError if other tokens do not spell it, or may not: a composition
            takes some tokens whole.
        """
        ending, vocabulary, found = super().short_ending(), self.store.vocabulary, list[int]()
        if self._more.isdisjoint(ending.tokens):
            return ending
        for token in ending.tokens:
            data = vocabulary.tokens[token]
            other = _spelling_without(vocabulary, self._more).fewest_tokens(data) if token in self._more else (token,)
            if other is None:
                raise DeadEndError(
                    f"the text ends with {data!r}, which only token {token} spells, at which the server stops"
                )
            found += other
        with self.trying(len(found)):
            if not (all(map(self.try_advance, found)) and self.is_accepting()):
                ends = sorted(self._more.intersection(ending.tokens))
                raise DeadEndError(
                    f"the text ends with tokens at which the server stops, {ends}, and other tokens with their text do not stand for them"
                )
        return replace(ending, tokens=tuple(found))


@lru_cache(maxsize=8)
def _spelling_without(vocabulary: Vocabulary, ends: frozenset[int]) -> Spelling:
    """What spells bytes in other tokens than these."""
    from maskwright.decoding.endings.ending_spelling import Spelling

    tokens = [b"" if token in ends else data for token, data in enumerate(vocabulary.tokens)]
    return Spelling(Vocabulary.from_tokens(tokens, eos=vocabulary.eos))


FEW = 16
"""Of how many tokens each is tried, at most: some hundred microseconds each."""
_UNKNOWN: tuple[tuple[int, ...] | None, int, int] = (None, -1, -1)
WINDOW = 8
"""From how many reserves before the end."""


class TokenBudget:
    """Closes the text of a request of vLLM in time.

    matcher : the text's.
    reserve : how many tokens before the last moment the text is closed, at least 1.
    request : vLLM's `Request`.
    longest : the most tokens of prompt and answer that the model takes.

    From where no more than `reserve` tokens are left beside a short ending, the mask allows the
    next token of that ending alone. Before, where few tokens may come, those are taken out behind
    which no ending would fit. A backend does not see which token the model would choose, and cannot
    take one back. So where one of many tokens opens more than what is left then, the text is cut
    off as without a budget, and the log says so.

    vLLM adds tokens to the request before it hands them to the grammar; drafts it hands to the
    grammar alone, and takes them back.

    INVARIANT: the last of `_known` holds of the text as it stands, those before of what it was:
    an ending that completes it, or None; the tokens left at the last search, and at the next one.
    """

    def __init__(self, matcher: ServerMatcher, reserve: int, request: Any, longest: int) -> None:
        self._matcher, self._reserve, self._request = matcher, reserve, request
        self._most = min(int(request.max_tokens), longest - int(request.num_prompt_tokens))
        self.reset()

    def reset(self) -> None:
        """Go back to the start of the text."""
        self._known = [_UNKNOWN]
        self._has_said = False
        self._n_written, self._n_drafts = -1, 0

    @property
    def left(self) -> int:
        """How many tokens may still come, that which ends the text included."""
        return max(0, self._most - int(self._request.num_output_tokens) - self._n_drafts)

    def restrict(self, row: npt.NDArray[np.uint32]) -> None:
        """Take out of a mask what does not close the text, where it must be closed.

        row : (words,) uint32: the text's mask, as `ServerMatcher.fill_row` has written it.
        """
        if not self._n_drafts:  # all tokens are written
            self._n_written = int(self._request.num_output_tokens)
        left = self.left
        few = few_tokens(row, FEW) if left <= WINDOW * self._reserve else []
        known, searched, due = self._known[-1]
        is_known = not few and due < left < searched
        if self._matcher.is_finished() or is_known or len(few) == 1:  # nothing can be taken out
            return
        if known is not None and left - len(known) - 1 <= self._reserve:
            _only(known[:1] or self._matcher.ends, row)
            return
        try:
            found, why = self._matcher.short_ending().tokens, ""
            ending = found if known is None else min(known, found, key=len)
        except MaskwrightError as error:
            ending, why = (), str(error)
        spare = left - len(ending) - 1
        is_lost = bool(why) or spare < 0
        # PERF: the next search is due when a quarter of the tokens that can be spared are gone:
        # there are few, and a text that needs three more to end with each token is still closed
        due = left - max(1, (left if is_lost else spare - self._reserve) // 4)
        self._known[-1] = (known if why else ending, left, due)
        if is_lost:
            self._say(why or f"its shortest ending takes {len(ending)} tokens and one to end, and {left} are left")
        elif spare <= self._reserve:
            _only(ending[:1] or self._matcher.ends, row)
        elif few:
            kept = [token for token in few if token in ending[:1] or self._fits(token, left - 1)]
            _only(tuple(kept), row)

    def _fits(self, token: int, left: int) -> bool:
        """Whether some ending fits into what is left behind a token."""
        matcher = self._matcher
        with matcher.trying(1):
            try:
                return matcher.try_advance(token) and (
                    matcher.is_finished() or len(matcher.short_ending().tokens) < left
                )
            except MaskwrightError:
                return False

    def _say(self, why: str) -> None:
        """Log that the text is cut off, once; not of a draft, which may yet be taken back."""
        if not (self._n_drafts or self._has_said):
            self._has_said = True
            _logger.warning("a text will be cut off by its budget of tokens: %s", why)

    def read(self, tokens: Sequence[int]) -> None:
        """The matcher has read tokens, in one call of the grammar."""
        n_written = int(self._request.num_output_tokens)
        self._n_drafts = self._n_drafts + len(tokens) if n_written == self._n_written else 0
        self._n_written = n_written
        for token in tokens:
            ending, searched, due = self._known[-1]
            self._known.append((ending[1:] if ending and ending[0] == token else None, searched, due))
        if len(self._known) > 4 * ROLLBACK:
            del self._known[: -2 * ROLLBACK]

    def rollback(self, n: int) -> None:
        """The matcher has taken back the last n tokens."""
        self._n_drafts = max(0, self._n_drafts - n)
        del self._known[max(1, len(self._known) - n) :]
        if len(self._known) == 1:
            self._known = [_UNKNOWN]


def _only(tokens: tuple[int, ...], row: npt.NDArray[np.uint32]) -> None:
    """Take all other tokens out of a mask, if it has one of these."""
    kept = [(token >> 5, row[token >> 5] & np.uint32(1 << (token & 31))) for token in tokens]
    if any(bits for _, bits in kept):
        row[:] = 0
        for word, bits in kept:
            row[word] |= bits
