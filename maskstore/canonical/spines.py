"""Which two tokens may be neighbours: those that a BPE does not join, or cut otherwise.

A *symbol* is the bytes of a token. A byte-pair encoding (BPE) begins with the single bytes, or
characters, of a text, and joins the neighbours whose merge has the lowest rank, the leftmost of
several, until no merge is left. The symbols that are left are the tokens.

A sequence of tokens is what a BPE makes of its bytes iff that holds for every two neighbours. For
think of the first merge across a border between two tokens: up to it each token's own bytes were
merged as if the token stood alone, in the same order. So the merge comes in the two tokens alone
as well, and the other way round.

Of two neighbours only the symbols at the border count. The last symbol of the left one grows by
its merges, and so does the first symbol of the right one (its *right spine*, and *left spine*).
A merge across the border comes iff two of these symbols stand side by side while the rank of
their merge is lower than those of the merges that would take one of them away.

Source: Vieira et al., Language models over canonical byte-pair encodings (ICML 2025); Berglund,
Martens and van der Merwe, Constructing a BPE tokenization DFA (2024).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import VocabularyError
from maskwright.analysis.kept import cached_property
from maskwright.maskstore.vocabulary.masks import packed

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


BEFORE = -1
"""The rank at which the symbols come that a text begins with."""

Bits = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint32]

KEPT_ROWS = 1_024
"""Left tokens whose neighbours are remembered: 16 kB each at V = 131,072."""


@dataclass(frozen=True, slots=True)
class Span:
    """A symbol at the border of a token, from the merge that makes it to the one that takes it.

    made, taken : ranks of the two merges; `BEFORE` for a symbol that a text begins with,
        `NO_MERGE` for the token itself.
    """

    symbol: bytes
    made: int
    taken: int


def spines(merges: Merges, data: bytes) -> tuple[list[Span], list[Span]] | None:
    """The symbols at a token's left border and at its right border, in the order of their merges.

    None if the BPE does not make the token of its own bytes, so that it is in no canonical text.

    Raises: VocabularyError if a merge has a lower rank than one before it.

    >>> merges = Merges({b"a": 0, b"b": 1, b"ab": 2}, {b"a": 0, b"b": 1, b"ab": 2})
    >>> spines(merges, b"ab")[0]
    [Span(symbol=b'a', made=-1, taken=2), Span(symbol=b'ab', made=2, taken=4611686018427387904)]
    """
    parts = merges.symbols(data)
    first, last = parts[0], parts[-1]
    left: list[Span] = []
    right: list[Span] = []
    made_left = made_right = before = BEFORE
    for rank, at, parts in merges.steps(data):
        if rank < before:
            raise VocabularyError(
                f"the merges that make {data!r} do not come in the order of their ranks, so which tokens may stand side by side "
                "cannot be said of pairs"
            )
        before = rank
        if at == 0:
            left.append(Span(first, made_left, rank))
            first, made_left = parts[0], rank
        if at == len(parts) - 1:
            right.append(Span(last, made_right, rank))
            last, made_right = parts[-1], rank
    if len(parts) != 1 or data not in merges.ids:
        return None
    return [*left, Span(first, made_left, NO_MERGE)], [*right, Span(last, made_right, NO_MERGE)]


class Neighbours:
    """Which tokens may follow each token inside one piece of the pre-tokenizer.

    size : V.

    Attribute: made, (V,) bool; the tokens that the BPE makes of their own bytes. Others are in no
    canonical text.

    Cost: some 25 us a token at first; then 20 us to some milliseconds for a left token seen first.
    """

    def __init__(self, merges: Merges, size: int) -> None:
        self._merges = merges
        self._texts = {token: data for data, token in merges.ids.items()}
        self.made: Bits = np.zeros(size, np.bool_)
        rows: dict[bytes, list[tuple[int, int, int]]] = {}
        for token, data in self._texts.items():
            found = spines(merges, data)
            if found is None:
                continue
            self.made[token] = True
            for span in found[0]:
                rows.setdefault(span.symbol, []).append((token, span.made, span.taken))
        # The tokens that begin with each symbol at some time, one symbol after the other.
        self._numbers = {symbol: number for number, symbol in enumerate(rows)}
        self._begins = np.cumsum([0, *map(len, rows.values())])
        flat = [row for found in rows.values() for row in found]
        self._ids, self._made, self._taken = np.array(flat, np.int64).reshape(-1, 3).T
        self._partners: dict[bytes, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
        self._rows: OrderedDict[int, Words] = OrderedDict()

    def after(self, token: int) -> Words:
        """(ceil(V / 32),) uint32, read-only: what may stand behind a token in the same piece."""
        row = self._rows.get(token)
        if row is None:
            row = as_words(self._row(token))
            self._rows[token] = row
            if len(self._rows) > KEPT_ROWS:
                self._rows.popitem(last=False)
        return row

    def _row(self, token: int) -> Bits:
        row = self.made.copy()
        found = spines(self._merges, self._texts[token]) if token in self._texts else None
        if found is None:
            return row & False
        for span in found[1]:
            places, ranks = self._joined(span.symbol)
            made, taken = self._made[places], self._taken[places]
            # At equal ranks the merge further left comes first: the left token's own, then the one
            # across the border, then the right token's.
            joins = (ranks < span.taken) & (ranks <= taken) & (span.made <= taken) & (made < span.taken)
            row[self._ids[places[joins]]] = False
        return row

    def _joined(self, symbol: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Places of `_ids` whose symbols merge with one before them, and the merges' ranks."""
        found = self._partners.get(symbol)
        if found is None:
            known = [
                (self._numbers[right], rank) for right, rank in self._merges.partners(symbol) if right in self._numbers
            ]
            numbers, ranks = np.array(known, np.int64).reshape(-1, 2).T
            counts = self._begins[numbers + 1] - self._begins[numbers]
            firsts = np.repeat(self._begins[numbers] - (np.cumsum(counts) - counts), counts)
            found = self._partners[symbol] = firsts + np.arange(len(firsts)), np.repeat(ranks, counts)
        return found


def as_words(bits: Bits) -> Words:
    """A set of tokens as words, bit i of word w for token 32 w + i: (ceil(V / 32),), read-only."""
    words = packed(bits)
    words.setflags(write=False)
    return words
