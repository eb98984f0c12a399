"""Which tokens came how often at such a place, and drafts of what is likely to come next.

In: texts as tokens, under masks. Out: for a text under way, a few tokens ahead. The model reads
them in one pass and still chooses each token itself: a draft never makes another text.

A place in a text is known by its mask and the token before it. The mask stands for the states of
lexer and parser: where two places allow the same tokens, they are often the same place of the
grammar. (Counting by the states themselves would tell more places apart, and so need more texts.)

Source: Beurer-Kellner, Fischer and Vechev, "Guiding LLMs The Right Way: Fast, Non-Invasive
Constrained Generation" (Domino, 2024), section 3.6.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip, need_number, need_type
from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError, StoreError, VocabularyError
from maskwright.analysis.nesting import read_json
from maskwright.decoding.engine.arguments import integer_row
from maskwright.decoding.generation.logits import allows
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.file.writing import replace_file
from maskwright.maskstore.vocabulary import Vocabulary

Words = npt.NDArray[np.int32]

MOST_PLACES = 1 << 17
"""BOUND: places that are kept; the oldest goes first."""
MOST_TOKENS = 8
"""BOUND: different tokens that are counted at one place."""
MOST_COUNTED = 1 << 62
"""BOUND: a count in a file."""
FORMAT = 1
DIGEST = 8
"""Bytes that a place is known by, of the digest of its mask and the token before it."""


class TokenCounts:
    """Which token came how often, by place.

    vocabulary : of the texts.
    ahead : tokens of a draft at most.
    share : the least share of a token among those counted at its place, to be drafted.
    least : how often it must have come.

    Raises: MaskwrightError if a parameter is out of range or of another kind.
    """

    def __init__(self, vocabulary: Vocabulary, *, ahead: int = 8, share: float = 0.7, least: int = 2) -> None:
        need_type("vocabulary", vocabulary, Vocabulary, "a Vocabulary")
        for name, value in (("ahead", ahead), ("least", least)):
            if not 1 <= as_integer(name, value) <= 1 << 16:
                raise MaskwrightError(f"{name} is {value}; expected 1 to {1 << 16:,}")
        need_number("share", share)
        if not 0 < share <= 1:
            raise MaskwrightError(f"share is {share}; expected more than 0 and at most 1")
        self.vocabulary = vocabulary
        self.ahead, self.share, self.least = ahead, share, least
        self._counts: dict[bytes, dict[int, int]] = {}

    def __len__(self) -> int:
        """The places that are known."""
        return len(self._counts)

    @staticmethod
    def place(words: Words, before: int) -> bytes:
        """What a place is known by.

        words : (ceil(V / 32),) int32, the mask.
        before : the token before it; -1 at the beginning.
        """
        digest = hashlib.blake2b(words.data, digest_size=DIGEST)
        digest.update(before.to_bytes(4, "little", signed=True))
        return digest.digest()

    def count(self, place: bytes, token: int) -> None:
        """Note that a token came at a place.

        place : what `place` returns.
        """
        found = self._counts.get(place)
        if found is None:
            if len(self._counts) >= MOST_PLACES:
                del self._counts[next(iter(self._counts))]
            found = self._counts[place] = {}
        elif token not in found and len(found) >= MOST_TOKENS:
            del found[min(found, key=found.__getitem__)]
        found[token] = found.get(token, 0) + 1

    def likely(self, place: bytes) -> int:
        """The token that mostly came at a place; -1 if none came often enough."""
        found = self._counts.get(place)
        if found is None:
            return -1
        token = max(found, key=found.__getitem__)
        return token if found[token] >= max(self.least, self.share * sum(found.values())) else -1

    def learn(self, matcher: Matcher, tokens: Sequence[int], before: int = -1) -> int:
        """Count the tokens of a text.

        matcher : at the beginning of the text; it reads the tokens.
        tokens : ids; counted up to the first one that is not legal.
        before : the token before the first one; -1 if it stands for no text, or there is none.

        Returns how many were counted.

        Raises: MaskwrightError if the matcher is none, or the tokens are no integers;
        VocabularyError if the matcher is for another vocabulary; LimitError as `fill`.
        """
        need_type("matcher", matcher, Matcher, "a Matcher")
        self.check_belongs(matcher.store.vocabulary)
        before = as_integer("before", before)
        if not -1 <= before < 1 << 31:
            raise MaskwrightError(f"before is {clip(before)}; expected a token, or -1")
        ids = integer_row("tokens", tokens).tolist()
        words = np.zeros(matcher.store.n_words, np.int32)
        for number, token in enumerate(ids):
            try:
                matcher.fill(words)
            except DeadEndError:
                return number
            if token < 0 or not allows(words, token):
                return number
            self.count(self.place(words, before), token)
            matcher.advance(token)
            before = token
        return len(ids)

    def draft(self, matcher: Matcher, words: Words, before: int) -> list[int]:
        """Tokens that are likely to come, each of them legal behind those before it.

        matcher : of the text; it is left as it is.
        words : (ceil(V / 32),) int32, its mask.
        before : the token before.
        """
        found: list[int] = []
        there: Matcher | None = None
        ends = self.vocabulary.eos
        while len(found) < self.ahead:
            token = self.likely(self.place(words, before))
            if token < 0 or token in ends or not allows(words, token):
                break
            found.append(token)
            if there is None:
                there, words = matcher.fork(), np.zeros_like(words)
            try:
                there.advance(token)
                there.fill(words)
            except (DeadEndError, LimitError):
                break
            before = token
        return found

    def check_belongs(self, vocabulary: Vocabulary) -> None:
        """Check that the counts are of a vocabulary's tokens.

        Raises: VocabularyError if they are not.
        """
        if vocabulary.digest != self.vocabulary.digest:
            raise VocabularyError(
                f"the counts are of vocabulary {self.vocabulary.name}, not of {vocabulary.name}: learn them with this one"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to a JSON file, the whole of it or nothing.

        Raises: StoreError if it cannot be written.
        """
        content = {
            "format": FORMAT,
            "vocabulary": self.vocabulary.digest,
            "counts": {place.hex(): found for place, found in self._counts.items()},
        }
        replace_file(Path(path), json.dumps(content, separators=(",", ":")).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str], vocabulary: Vocabulary, **options: Any) -> Self:
        """The counts in a file that `save` wrote.

        vocabulary : that they were learned with.
        options : as of the class.

        Raises: OSError if the file cannot be read; StoreError if it holds no counts;
        VocabularyError if they are of another vocabulary.
        """
        found = cls(vocabulary, **options)
        try:
            content = read_json(Path(path).read_bytes())
            version, digest = content["format"], content["vocabulary"]
            counts = {
                bytes.fromhex(place): {int(token): as_integer("a count", n) for token, n in tokens.items()}
                for place, tokens in content["counts"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{path} holds no counts of tokens ({type(error).__name__}: {str(error)[:80]})") from None
        if version != FORMAT:
            raise StoreError(
                f"{path} has format {clip(version)} of counts; this version reads {FORMAT}: learn them again"
            )
        if digest != vocabulary.digest:
            raise VocabularyError(
                f"the counts in {path} are of another vocabulary than {vocabulary.name}: learn them with this one"
            )
        for place, tokens in counts.items():
            fine = (0 <= token < vocabulary.size and 1 <= n <= MOST_COUNTED for token, n in tokens.items())
            if not tokens or not all(fine):
                raise StoreError(
                    f"{path} holds no counts of tokens (place {place.hex()} has none, one below 1 or above {MOST_COUNTED:,}, or of an id "
                    "that the vocabulary lacks)"
                )
        for place, tokens in list(counts.items())[-MOST_PLACES:]:
            found._counts[place] = dict(sorted(tokens.items(), key=lambda one: -one[1])[:MOST_TOKENS])
        return found
