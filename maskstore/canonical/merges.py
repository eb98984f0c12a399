"""The merges of a byte-pair encoding: which two neighbouring symbols are joined, and in what order.

A *symbol* is the bytes of a token. A BPE begins with the single bytes, or characters, of a text,
and joins the neighbours whose merge has the lowest rank, the leftmost of several, until no merge
is left. The symbols that are left are the tokens.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from maskwright.analysis.kept import cached_property

NO_MERGE = 1 << 62
"""The rank of two symbols that are never joined."""


@dataclass(frozen=True)
class Merges:
    """The merges of a tokenizer.

    ids : symbol -> token id, of the tokens that merges make or begin with.
    ranks : joined symbol -> rank, if any two symbols merge whose joined bytes are a token, as in
        SentencePiece and tiktoken. None if `pairs` says which do.
    pairs : (left, right) -> rank, as in the merges of a `tokenizer.json`.
    characters : whether a text begins as characters; else it begins as bytes.

    >>> Merges({b"a": 0, b"b": 1, b"ab": 2}, {b"a": 0, b"b": 1, b"ab": 2}).encode(b"abb")
    [b'ab', b'b']
    """

    ids: Mapping[bytes, int]
    ranks: Mapping[bytes, int] | None = None
    pairs: Mapping[tuple[bytes, bytes], int] | None = None
    characters: bool = False

    def rank(self, left: bytes, right: bytes) -> int:
        """The rank of joining two symbols; `NO_MERGE` if they are never joined."""
        if self.ranks is not None:
            return self.ranks.get(left + right, NO_MERGE)
        assert self.pairs is not None
        return self.pairs.get((left, right), NO_MERGE)

    def symbols(self, data: bytes) -> list[bytes]:
        """What a text begins as: its characters, or its bytes.

        Bytes that are no UTF-8 are symbols of their own.
        """
        if self.characters:
            try:
                return [character.encode() for character in data.decode()]
            except UnicodeDecodeError:
                pass
        return [data[at : at + 1] for at in range(len(data))]

    def steps(self, data: bytes) -> Iterator[tuple[int, int, list[bytes]]]:
        """The merges of a text in their order: (rank, index of the left symbol, symbols after it).

        The list is one and the same, changed from step to step.
        """
        parts = self.symbols(data)
        costs = [self.rank(left, right) for left, right in itertools.pairwise(parts)]
        while costs:
            best = min(costs)
            if best == NO_MERGE:
                return
            at = costs.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            del costs[at]
            if at:
                costs[at - 1] = self.rank(parts[at - 1], parts[at])
            if at < len(costs):
                costs[at] = self.rank(parts[at], parts[at + 1])
            yield best, at, parts

    def encode(self, data: bytes) -> list[bytes]:
        """The symbols that are left of a text after all merges. O(length squared)."""
        parts = self.symbols(data)
        for _, _, after in self.steps(data):
            parts = after
        return parts

    def partners(self, left: bytes) -> list[tuple[bytes, int]]:
        """The symbols that merge with `left` before them, and the rank of each merge."""
        if self.pairs is not None:
            return self._partners.get(left, [])
        assert self.ranks is not None
        found = []
        texts, size = self._sorted, len(left)
        for at in range(bisect_left(texts, left), len(texts)):
            text = texts[at]
            if not text.startswith(left):
                break
            right = text[size:]
            if right in self.ids:
                found.append((right, self.ranks[text]))
        return found

    @cached_property
    def _sorted(self) -> list[bytes]:
        assert self.ranks is not None
        return sorted(self.ranks)

    @cached_property
    def _partners(self) -> dict[bytes, list[tuple[bytes, int]]]:
        found: dict[bytes, list[tuple[bytes, int]]] = {}
        for (left, right), rank in (self.pairs or {}).items():
            found.setdefault(left, []).append((right, rank))
        return found
