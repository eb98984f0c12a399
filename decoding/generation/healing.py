"""Token healing: take back the prompt's last tokens, so that the model may spell them otherwise.

A prompt may end in the middle of what the tokenizer knows as one token, as "http:" does before
"//". The model has hardly ever seen such an end. So we take the end of the prompt off, and the
first new tokens must spell it again or go past it.

Source: Lundberg, "The Art of Prompt Design: Prompt Boundaries and Token Healing" (2023).
PAPER: ours takes back as many tokens as a longer one could replace, and never chooses a token after
which the remaining bytes cannot be spelled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError
from maskwright.maskstore.vocabulary.masks import words_of

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary import Vocabulary


class Healing:
    """The bytes that the first new tokens must spell.

    tail : bytes taken back from the prompt.
    to_spell : the end of them that new tokens must still spell.
    """

    def __init__(self, vocabulary: Vocabulary, tail: bytes) -> None:
        self.tail = self.to_spell = tail
        self._vocabulary = vocabulary
        self._can_spell: list[bool] = []
        if tail:
            known = set(vocabulary.tokens) - {b""}
            self._can_spell = [False] * len(tail) + [True]
            for begin in range(len(tail) - 1, -1, -1):
                self._can_spell[begin] = any(
                    self._can_spell[end] and tail[begin:end] in known for end in range(begin + 1, len(tail) + 1)
                )

    def words(self, allowed: npt.NDArray[np.int32] | None = None) -> npt.NDArray[np.int32]:
        """The mask of the tokens that may come while healing: (ceil(V / 32),) int32.

        allowed : a mask of the same size, of which one must be.

        These are tokens that begin with all of `to_spell`, and tokens that `to_spell` begins with,
        if the bytes after them can be spelled too.

        Raises: DeadEndError if none of `allowed` is.
        Cost: O(V).
        """
        to_spell, offset = self.to_spell, len(self.tail) - len(self.to_spell)
        spelling = [
            token
            for token, data in enumerate(self._vocabulary.tokens)
            if data.startswith(to_spell) or (data and to_spell.startswith(data) and self._can_spell[offset + len(data)])
        ]
        words = words_of(spelling, self._vocabulary.size).view(np.int32)
        if allowed is not None and not (words & allowed).any():
            raise DeadEndError(
                f"no token that can come next spells {to_spell[:40]!r}, the healed end of the prompt; heal less of it"
            )
        return words

    def take(self, data: bytes) -> bytes:
        """Count a token's bytes as read, and return those that go past the healed end."""
        n = min(len(self.to_spell), len(data))
        self.to_spell = self.to_spell[n:]
        return data[n:]


def split_for_healing(vocabulary: Vocabulary, tokens: Sequence[int]) -> tuple[list[int], bytes]:
    """The tokens of a prompt to keep, and the bytes of those to take back.

    The longest sequence of last tokens is taken back whose bytes are a proper prefix of some token.
    The first token is always kept.

    tokens : ids of the prompt.

    Returns the ids kept, and bytes; b"" if nothing is taken back.
    Cost: O(V log V).

    >>> from maskwright.maskstore.vocabulary import Vocabulary
    >>> split_for_healing(Vocabulary("v", (b"http", b":", b"://"), {}, ()), [0, 1])
    ([0], b':')
    """
    ordered = sorted({token for token in vocabulary.tokens if token})
    longest = max(map(len, ordered), default=0)
    best, tail = len(tokens), b""
    data = b""
    for begin in range(len(tokens) - 1, 0, -1):
        token = tokens[begin]
        piece = vocabulary.tokens[token] if token < vocabulary.size else b""
        data = piece + data
        if not piece or len(data) >= longest:
            break
        at = bisect_left(ordered, data + b"\0")
        if at < len(ordered) and ordered[at].startswith(data):
            best, tail = begin, data
    return list(tokens[:best]), tail


def heal_prompt(vocabulary: Vocabulary, tokens: list[int], prompt: bytes) -> tuple[list[int], bytes]:
    """As `split_for_healing`, but that what is no part of the prompt is not taken back.

    tokens : what the model reads, which ends with the prompt: a tokenizer may put a blank before
        it, or an instruction stands there.
    """
    kept, tail = split_for_healing(vocabulary, tokens)
    return (kept, tail) if tail and prompt.endswith(tail) and kept else (tokens, b"")
