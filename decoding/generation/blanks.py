"""White space at the start and in a row: lost models write it, and most grammars let them."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.decoding.generation.logits import Logits
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import words_of

MOST_BLANKS = 128
"""The bytes of white space behind which no token that is all white space is taken."""
MOST_LINES = 4
"""The line feeds of such a run behind which no token of white space with another one is taken."""


class Blanks:
    """The tokens of a vocabulary that are all white space."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def _ids_of_lines(self) -> npt.NDArray[np.int64]:
        return np.array(
            [i for i in _ids_of(self._vocabulary).tolist() if b"\n" in self._vocabulary.tokens[i]], np.int64
        )

    @cached_property
    def words(self) -> npt.NDArray[np.int32]:
        """(ceil(V / 32),) int32: the mask of these tokens and the end-of-text tokens."""
        return words_of([*_ids_of(self._vocabulary).tolist(), *self._vocabulary.eos], self._vocabulary.size).view(
            np.int32
        )

    def too_many(self, text: bytes) -> npt.NDArray[np.int64] | None:
        """The ids that would go on with a text's last white space, where there is much; or None."""
        if not text[-MOST_LINES:].isspace():
            return None
        last = text[-MOST_BLANKS:]
        n_blanks = len(last) - len(last.rstrip())
        if n_blanks == MOST_BLANKS:
            return _ids_of(self._vocabulary)
        return self._ids_of_lines if last.count(b"\n", len(last) - n_blanks) >= MOST_LINES else None

    def at_start(self, matcher: Matcher, before: int) -> npt.NDArray[np.int64] | None:
        """The ids that begin a text with white space that changes nothing; or None.

        before : the prompt's last token, -1 without text; behind other text all may come.
        """
        follows = before >= 0 and not self._vocabulary.tokens[before][-1:].isspace()
        if follows or matcher.remembered() or not matcher.max_rollback:
            return None
        begun = _begun_by(self._vocabulary)
        ignored = matcher.text.ignored_at_start()
        found = [begun[bytes([space])] for space in ignored if matcher.fork().try_bytes(bytes([space]))]
        return np.concatenate(found) if found else None

    def leave_out(self, ids: npt.NDArray[np.int64], logits: Logits, words: npt.NDArray[np.int32]) -> None:
        """Make some tokens impossible, if words, the mask (int32), allows any other one."""
        some = words_of(ids.tolist(), self._vocabulary.size).view(np.int32)
        if (words & ~some).any():
            logits[ids] = -np.inf


@lru_cache(maxsize=8)
def _ids_of(vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
    """The tokens that are all white space. PERF: O(V) in Python, once for each vocabulary."""
    return np.array([i for i, data in enumerate(vocabulary.tokens) if data.isspace()], np.int64)


@lru_cache(maxsize=8)
def _begun_by(vocabulary: Vocabulary) -> dict[bytes, npt.NDArray[np.int64]]:
    """The tokens that each byte of white space begins. PERF: as `_ids_of`."""
    spaces = np.array([ord(data[:1]) if data[:1].isspace() else -1 for data in vocabulary.tokens])
    return {bytes([space]): np.flatnonzero(spaces == space) for space in b" \t\n\r\v\f"}
