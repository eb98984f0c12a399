"""A text that ends within its budget of tokens, in a server to which masks are all that we can say.

In: a request, its matcher, and a mask. Out: the mask; near the end of the budget one that closes
the text with a short ending.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError
from maskwright.maskstore.vocabulary.masks import few_tokens
from maskwright.serving.server_matcher import ROLLBACK, ServerMatcher

FEW = 16
"""Of how many tokens each is tried, at most: some hundred microseconds each."""
WINDOW = 8
"""From how many reserves before the end."""

_logger = logging.getLogger(__name__)


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

    INVARIANT: the last of `_endings` completes the text as it stands, or is None.
    """

    def __init__(self, matcher: ServerMatcher, reserve: int, request: Any, longest: int) -> None:
        self._matcher, self._reserve, self._request = matcher, reserve, request
        self._most = min(int(request.max_tokens), longest - int(request.num_prompt_tokens))
        self.reset()

    def reset(self) -> None:
        """Go back to the start of the text."""
        self._endings: list[tuple[int, ...] | None] = [None]
        # tokens left at a search, and at the next one: a stack, so that what was searched for a
        # draft is forgotten with it
        self._due: list[tuple[int, int]] = []
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
        while self._due and self._due[-1][0] <= left:
            self._due.pop()  # of a text that was taken back, or of this one
        few = few_tokens(row, FEW) if left <= WINDOW * self._reserve else []
        if self._matcher.is_finished() or (not few and self._due and left > self._due[-1][1]):
            return
        if len(few) == 1:
            return  # nothing can be taken out
        known = self._endings[-1]
        if known is not None and left - len(known) - 1 <= self._reserve:
            _only(known[:1] or self._matcher.ends, row)
            return
        try:
            ending = self._ending()
        except MaskwrightError as error:
            self._wait(left, left // 4)
            self._say(str(error))
            return
        spare = left - len(ending) - 1
        if spare < 0:
            self._wait(left, left // 4)
            self._say(f"its shortest ending takes {len(ending)} tokens and one to end, and {left} are left")
            return
        # PERF: the next search is due when a quarter of the tokens that can be spared are gone:
        # there are few, and a text that needs three more to end with each token is still closed
        self._wait(left, (spare - self._reserve) // 4)
        if spare <= self._reserve:
            _only(ending[:1] or self._matcher.ends, row)
        elif few:
            kept = [token for token in few if token in ending[:1] or self._fits(token, left - 1)]
            _only(tuple(kept), row)

    def _wait(self, left: int, n: int) -> None:
        self._due.append((left, left - max(1, n)))

    def _ending(self) -> tuple[int, ...]:
        """The tokens of a short ending, no longer than what is left of the one before."""
        found, known = self._matcher.short_ending().tokens, self._endings[-1]
        if known is None or len(found) < len(known):
            self._endings[-1] = known = found
        return known

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
            known = self._endings[-1]
            self._endings.append(known[1:] if known and known[0] == token else None)
        if len(self._endings) > 4 * ROLLBACK:
            del self._endings[: -2 * ROLLBACK]

    def rollback(self, n: int) -> None:
        """The matcher has taken back the last n tokens."""
        self._n_drafts = max(0, self._n_drafts - n)
        del self._endings[max(1, len(self._endings) - n) :]
        if len(self._endings) == 1:
            self._endings = [None]


def _only(tokens: tuple[int, ...], row: npt.NDArray[np.uint32]) -> None:
    """Take all other tokens out of a mask, if it has one of these."""
    kept = [(token >> 5, row[token >> 5] & np.uint32(1 << (token & 31))) for token in tokens]
    if any(bits for _, bits in kept):
        row[:] = 0
        for word, bits in kept:
            row[word] |= bits
