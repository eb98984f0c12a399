"""A vocabulary's tables for the schema engine: tries of tokens, rows of string content.

They are made once for each vocabulary and way of escaping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.schema.shapes import Escapes
from maskwright.maskstore.schema import _token_kernels as of
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._trie_kernels import find_below
from maskwright.maskstore.schema.tries import Trie, make_trie, sorted_trie
from maskwright.maskstore.schema.write import ESCAPES
from maskwright.maskstore.vocabulary.sorted_texts import SortedTexts
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

_WORDS = np.frombuffer(b"true false null", np.uint8)
_NOT_CONTENT = 1 << 20
"""The length of a token that is no string content; tokens are shorter."""


class _Writer:
    """Parts of an array end to end."""

    def __init__(self) -> None:
        self.header = np.zeros(layout.VOCABULARY_HEADER, np.int32)
        self.parts: list[Int32] = [self.header]
        self._size = len(self.header)

    def add(self, part: npt.NDArray[np.generic]) -> int:
        """The offset at which a part stands."""
        at = self._size
        flat = np.ascontiguousarray(part, dtype=np.int32).ravel()
        self.parts.append(flat)
        self._size += len(flat)
        return at

    def add_trie(self, trie: Trie) -> int:
        """The offset of a trie: bytes, ends, tokens, ids."""
        return self.add(np.array([len(trie[0]), *map(self.add, trie)]))

    def add_branches(self, byte: Int32, end: Int32) -> int:
        """The offset of the branches near the root of a trie. See `layout.BRANCHES`."""

        def children(node: int) -> list[int]:
            found, child = [], node + 1
            while child < end[node]:
                found.append(child)
                child = int(end[child])
            return found

        first = {int(byte[node]): node for node in children(0)}
        lists = [children(first[value]) if value in first else [] for value in range(256)]
        lists.append(children(0))
        nodes = np.array([node for each in lists for node in each], np.int32)
        at = self.add(np.stack([byte[nodes], nodes], axis=1))
        return self.add(at + 2 * np.cumsum([0, *map(len, lists)]))

    def add_closers(self, tokens: Sequence[bytes], facts: Int32) -> None:
        """The tokens that end a string, and what they say before and behind its end.

        facts : see `_token_kernels`.
        """
        header, numbers = self.header, np.flatnonzero(facts[of.KIND] == of.ENDS)
        found = zip(*facts[:, numbers][[of.IS_HARD, of.N_UNITS, of.CONTENT_END]].tolist(), strict=True)
        # those that say the same before the quotation mark stand side by side, the hard ones last
        said = sorted(
            (is_hard, b"" if is_hard else tokens[number][:end], number, n_units, end, tokens[number][end + 1 :])
            for number, (is_hard, n_units, end) in zip(numbers.tolist(), found, strict=True)
        )
        tails = {tail: number for number, tail in enumerate(sorted({tail for *_, tail in said}))}
        header[layout.TAILS] = self.add_trie(make_trie(tails.items()))
        closers = [(number, tails[tail], n_units, end, is_hard) for is_hard, _, number, n_units, end, tail in said]
        header[layout.CLOSERS] = at = self.add(np.array(closers, np.int32))
        sizes = Counter(content for is_hard, content, *_ in said if not is_hard)
        header[layout.CONTENTS] = self.add(at + layout.CLOSER * np.cumsum([0, *sizes.values()]))
        header[layout.N_CONTENTS], header[layout.N_CLOSERS], header[layout.N_TAILS] = len(sizes), len(said), len(tails)

    def add_lengths(self, lengths: Int32) -> None:
        """The rows of string content. lengths : (32 * n_words,), the characters of each token."""
        longest = int(lengths.max(initial=0, where=lengths < _NOT_CONTENT))
        self.header[layout.CONTENT_ROW] = self.add(bits_where(lengths < _NOT_CONTENT))
        self.header[layout.N_LENGTHS] = longest
        offsets, at = [], 0
        present = set(np.unique(lengths).tolist())
        for length in range(longest + 1):
            if length in present or not length:
                at = self.add(bits_where(lengths <= length))
            offsets.append(at)
        self.header[layout.LENGTH_ROWS] = self.add(np.array(offsets, np.int32))

    def add_groups(self, starts: Int64, data: npt.NDArray[np.uint8], group_of: Int32) -> int:
        """The offset of the rows of the groups. See `layout.GROUP_ROWS`."""
        bits = np.uint32(1) << group_of[data].astype(np.uint32)
        firsts, rests = np.zeros((2, -(-(len(starts) - 1) // 32) * 32), np.uint32)
        present = np.flatnonzero(np.diff(starts) > 0)
        firsts[present] = bits[starts[present]]
        bits[starts[present]] = 0
        if len(present):
            rests[present] = np.bitwise_or.reduceat(bits, starts[present])
        found = np.zeros((32, layout.GROUP_SIZE), np.int32)
        for group in range(32):
            for field, sets in ((layout.GROUP_FIRST, firsts), (layout.GROUP_REST, rests)):
                flags = sets >> np.uint32(group) & 1 != 0
                if flags.any():
                    found[group, field] = self.add(bits_where(flags))
            found[group, layout.GROUP_COUNT] = int(np.count_nonzero(firsts >> np.uint32(group) & 1))
        return self.add(found)


def groups_of_bytes() -> Int32:
    """The group of each byte: (256,) int32, 0 to 31. See `layout.GROUPS`."""
    found = np.full(256, layout.NO_GROUP, np.int32)
    for group, characters in enumerate(layout.GROUPS):
        found[list(characters.encode())] = group
    found[0x7F], found[0x80:] = layout.DELETE_GROUP, layout.WIDE_GROUP
    for group, first_bytes in layout.WIDE_GROUPS:
        found[list(first_bytes)] = group
    return found


def bits_where(flags: npt.NDArray[np.bool_]) -> Int32:
    """A row of bits: (n / 32,) int32. flags : (n,) bool, for n a multiple of 32."""
    return np.packbits(flags, bitorder="little").view(np.int32)


@lru_cache(maxsize=8)
def vocabulary_tables(vocabulary: Vocabulary, escapes: Escapes = "any") -> Int32:
    """The tables of a vocabulary: (n,) int32, read-only, laid out as `layout` says.

    escapes : of the texts that it is for.

    Cost: O(bytes of the tokens); the last eight are kept.
    """
    tokens, (starts, data) = vocabulary.tokens, vocabulary.flat
    facts = np.zeros((of.N_FACTS, len(tokens)), np.int32)
    of.find_facts(data, starts, _WORDS, ESCAPES[escapes], facts)
    writer = _Writer()
    header = writer.header
    n_words = -(-len(tokens) // 32)
    header[layout.N_TOKENS], header[layout.N_ROW_WORDS] = len(tokens), n_words
    header[layout.N_EOS] = len(vocabulary.eos)
    header[layout.EOS] = writer.add(np.array(vocabulary.eos, np.int32))
    in_order = vocabulary.sorted_texts
    full = _some(in_order, np.ones(len(tokens), np.bool_))
    header[layout.FULL] = writer.add_trie(full)
    group_of = groups_of_bytes()
    signatures, pure = np.zeros(len(full[0]), np.int32), np.zeros(len(full[0]), np.int32)
    find_below(full[0], full[1], group_of, signatures, pure)
    writer.add(group_of)  # stands before the signatures
    header[layout.SIGNATURES], header[layout.PURE] = writer.add(signatures), writer.add(pure)
    header[layout.BRANCHES] = writer.add_branches(full[0], full[1])
    is_text, is_outside, n_quotes = np.diff(starts) > 0, facts[of.IS_OUTSIDE] != 0, facts[of.N_QUOTES]
    header[layout.STRUCTURE] = writer.add_trie(_some(in_order, is_outside))
    behind_space = make_trie(
        (tokens[number].lstrip(b" \t\n\r"), number) for number in np.flatnonzero(is_outside & is_text).tolist()
    )
    header[layout.BEHIND_SPACE] = writer.add_trie(behind_space)
    special = (n_quotes > 0) | (facts[of.HAS_ESCAPE] != 0)
    header[layout.SPECIAL] = writer.add_trie(_some(in_order, special))
    quoted = np.flatnonzero(is_outside & (n_quotes > 1))
    manifold = np.flatnonzero((n_quotes > 2) | (facts[of.N_WORDS] > 1))
    openers = np.flatnonzero(facts[of.OPENS])
    for field, listed in (
        (layout.QUOTED, np.stack([quoted, facts[of.HASH, quoted]], axis=1)),
        (layout.MANIFOLD, manifold),
        (layout.OPENERS, openers),
    ):
        header[field], header[field + 1] = writer.add(listed), len(listed)
    writer.add_closers(tokens, facts)
    lengths = np.full(32 * n_words, _NOT_CONTENT, np.int32)
    kind = facts[of.KIND]
    is_content = ((kind == of.WHOLE) | (kind == of.PARTIAL)) & is_text
    lengths[: len(tokens)][is_content] = (facts[of.N_UNITS] + (kind == of.PARTIAL))[is_content]
    writer.add_lengths(lengths)
    lengths[: len(tokens)][facts[of.HAS_ESCAPE] != 0] = _NOT_CONTENT
    header[layout.PLAIN_ROW] = writer.add(bits_where(lengths < _NOT_CONTENT))
    header[layout.GROUP_ROWS] = writer.add_groups(starts, data, group_of)
    header[layout.TOKEN_START], header[layout.TOKEN_BYTES] = writer.add(starts), writer.add(data)
    header[layout.MOST_BYTES] = in_order.longest
    found = np.concatenate(writer.parts)
    found.setflags(write=False)
    return found


def _some(texts: SortedTexts, kept: npt.NDArray[np.bool_]) -> Trie:
    """The trie of some tokens. kept : by id, whether it has them."""
    at = np.flatnonzero(kept[texts.ids])
    return sorted_trie(texts.data, texts.offsets[at], texts.offsets[at + 1], texts.ids[at])
