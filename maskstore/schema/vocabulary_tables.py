"""A vocabulary's tables for the schema engine: tries of tokens, rows of string content.

They are made once for each vocabulary and way of escaping, in 0.2 s for 32,000 tokens.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.schema.shapes import Escapes
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._trie_kernels import build_trie, find_pure, find_signatures, first_hash
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

Array = npt.NDArray[np.int32]

_CHARACTER = (
    rb"(?:[\x20-\x21\x23-\x5b\x5d-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})"
)
_UNIT = rb"[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
_LOW = rb"[dD][c-fC-F][0-9a-fA-F]{2}"
_PAIR = rb"[dD][89abAB][0-9a-fA-F]{2}\\u" + _LOW
_ESCAPE = rb'(?:\\(?:["\\/bfnrt]|u(?:' + _UNIT + rb"|" + _PAIR + rb")))"
_PARTIAL_CHARACTER = (
    rb"(?:[\xc2-\xf4]|\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]|\xf0[\x90-\xbf][\x80-\xbf]?"
    rb"|[\xf1-\xf3][\x80-\xbf]{1,2}|\xf4[\x80-\x8f][\x80-\xbf]?)"
)
_PARTIAL_ESCAPE = (
    rb"(?:\\(?:u(?:[0-9a-cefA-CEF][0-9a-fA-F]{0,2}|[dD](?:[0-7][0-9a-fA-F]?|[89abAB][0-9a-fA-F]?)?"
    rb"|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?)"
)
_MINIMAL_ESCAPE = rb'(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f])))'
_PARTIAL_MINIMAL_ESCAPE = rb"(?:\\(?:u(?:0(?:0[01]?)?)?)?)"
_NATURAL_UNIT = (
    rb"00(?:0[0-7bBeEfF]|1[0-9a-fA-F]|7[fF]|[89a-fA-F][0-9a-fA-F])|0[1-9a-fA-F][0-9a-fA-F]{2}"
    rb"|[1-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
)
_NATURAL_ESCAPE = rb'(?:\\(?:["\\bfnrt]|u(?:' + _NATURAL_UNIT + rb"|" + _PAIR + rb")))"
_PARTIAL_NATURAL_ESCAPE = (
    rb"(?:\\(?:u(?:0(?:0[0178-9a-fA-F]?|[1-9a-fA-F][0-9a-fA-F]?)?|[1-9a-cefA-CEF][0-9a-fA-F]{0,2}"
    rb"|[dD](?:[0-7][0-9a-fA-F]?|[89abAB][0-9a-fA-F]?)?|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?)"
)


_ESCAPES = {
    "any": (_ESCAPE, _PARTIAL_ESCAPE),
    "natural": (_NATURAL_ESCAPE, _PARTIAL_NATURAL_ESCAPE),
    "minimal": (_MINIMAL_ESCAPE, _PARTIAL_MINIMAL_ESCAPE),
}


@lru_cache(maxsize=3)
def _content(escapes: Escapes) -> re.Pattern[bytes]:
    """What a token that begins inside a string is there: content to an end or a quotation mark."""
    escape, partial = _ESCAPES[escapes]
    return re.compile(
        rb"((?:" + _CHARACTER + rb"|" + escape + rb")*)(?:(" + _PARTIAL_CHARACTER + rb"|" + partial + rb")?\Z|\")"
    )


_PIECES = sorted({word[i:j] for word in (b"true", b"false", b"null", b"E") for i in range(5) for j in range(i + 1, 6)})
_STRUCTURE = re.compile(
    rb"(?:[ \t\n\r{}\[\]:,0-9+\-.]|(?<![a-zA-Z])(?:" + b"|".join(filter(None, _PIECES)) + rb")(?![a-zA-Z]))*(?:\"|\Z)"
)
_STRUCTURAL = b' \t\n\r,:[]{}"'
_CONTINUATION = bytes(range(0x80, 0xC0))
_NOT_CONTENT = 1 << 20
"""The length of a token that is no string content; tokens are shorter."""

_VALUES = re.compile(rb"true|false|null")


def _n_characters(content: bytes) -> int:
    """The number of characters of whole string content."""
    if b"\\" not in content:
        return len(content) if content.isascii() else len(content.translate(None, _CONTINUATION))
    plain = re.sub(rb"\\u(?:" + _PAIR + rb")|\\u[0-9a-fA-F]{4}|\\.", b".", content, flags=re.DOTALL)
    return len(plain.translate(None, _CONTINUATION))


def can_stand_outside(token: bytes) -> bool:
    """Whether a token may begin outside of strings. True for some that may not as well."""
    return _STRUCTURE.match(token) is not None


def can_stand_behind_string(tail: bytes) -> bool:
    """Whether bytes may stand behind a string's end. True for some that may not as well."""
    return tail.lstrip(b" \t\n\r")[:1] in (b"", b",", b":", b"]", b"}") and can_stand_outside(tail)


class _Writer:
    """Parts of an array end to end."""

    def __init__(self) -> None:
        self.header = np.zeros(layout.VOCABULARY_HEADER, np.int32)
        self._parts: list[Array] = [self.header]
        self._size = len(self.header)

    def add(self, part: npt.NDArray[np.generic]) -> int:
        """The offset at which a part stands."""
        at = self._size
        flat = np.ascontiguousarray(part, dtype=np.int32).ravel()
        self._parts.append(flat)
        self._size += len(flat)
        return at

    def add_trie(self, trie: tuple[Array, Array, Array, Array]) -> int:
        """The offset of a trie: bytes, ends, tokens, ids."""
        header = np.zeros(layout.TRIE_HEADER, np.int32)
        at = self.add(header)
        self._parts[-1] = header  # `add` may have copied it
        header[layout.TRIE_SIZE] = len(trie[0])
        for field, column in enumerate(trie, layout.TRIE_BYTE):
            header[field] = self.add(column)
        return at

    def add_branches(self, byte: Array, end: Array) -> int:
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

    def add_groups(self, tokens: Sequence[bytes], group_of: Array) -> int:
        """The offset of the rows of the groups. See `layout.GROUP_ROWS`."""
        starts = np.zeros(len(tokens) + 1, np.int64)
        np.cumsum([len(text) for text in tokens], out=starts[1:])
        bits = np.uint32(1) << group_of[np.frombuffer(b"".join(tokens), np.uint8)].astype(np.uint32)
        firsts, rests = np.zeros((2, -(-len(tokens) // 32) * 32), np.uint32)
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

    def finish(self) -> Array:
        found = np.concatenate(self._parts)
        found.setflags(write=False)
        return found


def make_trie(texts: Iterable[tuple[bytes, int]]) -> tuple[Array, Array, Array, Array]:
    """The trie of some texts, in preorder: bytes, ends, tokens, ids (see `layout`).

    texts : each with its number.

    PERF: texts that are sorted already are sorted in a tenth of the time.
    """
    pairs = sorted(texts)
    data = np.frombuffer(b"".join(text for text, _ in pairs), np.uint8)
    starts = np.zeros(len(pairs) + 1, np.int64)
    np.cumsum([len(text) for text, _ in pairs], out=starts[1:])
    longest = max((len(text) for text, _ in pairs), default=0)
    room = len(data) + 1
    byte, end, tokens = (np.zeros(room + extra, np.int32) for extra in (0, 0, 1))
    n = build_trie(data, starts, byte, end, tokens, np.zeros(longest + 1, np.int32))
    return byte[:n], end[:n], tokens[: n + 1], np.array([number for _, number in pairs], np.int32)


def groups_of_bytes() -> Array:
    """The group of each byte: (256,) int32, 0 to 31. See `layout.GROUPS`."""
    found = np.full(256, layout.NO_GROUP, np.int32)
    for group, characters in enumerate(layout.GROUPS):
        found[list(characters.encode())] = group
    found[0x7F], found[0x80:] = layout.DELETE_GROUP, layout.WIDE_GROUP
    for group, first_bytes in layout.WIDE_GROUPS:
        found[list(first_bytes)] = group
    return found


def bits_where(flags: npt.NDArray[np.bool_]) -> Array:
    """A row of bits: (n / 32,) int32. flags : (n,) bool, for n a multiple of 32."""
    return np.packbits(flags, bitorder="little").view(np.int32)


@lru_cache(maxsize=8)
def vocabulary_tables(vocabulary: Vocabulary, escapes: Escapes = "any") -> Array:
    """The tables of a vocabulary: (n,) int32, read-only, laid out as `layout` says.

    escapes : of the texts that it is for.

    Cost: O(bytes of the tokens); the last eight are kept.
    """
    tokens = vocabulary.tokens
    texts = [(text, number) for number, text in enumerate(tokens) if text]
    writer = _Writer()
    header = writer.header
    n_words = -(-len(tokens) // 32)
    header[layout.N_TOKENS], header[layout.N_ROW_WORDS] = len(tokens), n_words
    header[layout.N_EOS] = len(vocabulary.eos)
    header[layout.EOS] = writer.add(np.array(vocabulary.eos, np.int32))
    in_order = vocabulary.sorted_texts
    full = make_trie(zip(in_order.texts, in_order.ids.tolist(), strict=True))
    header[layout.FULL] = writer.add_trie(full)
    group_of = groups_of_bytes()
    signatures, pure = np.zeros(len(full[0]), np.int32), np.zeros(len(full[0]), np.int32)
    find_signatures(full[0], full[1], group_of, signatures)
    find_pure(full[0], full[1], pure)
    writer.add(group_of)  # stands before the signatures
    header[layout.SIGNATURES], header[layout.PURE] = writer.add(signatures), writer.add(pure)
    header[layout.BRANCHES] = writer.add_branches(full[0], full[1])
    outside = [pair for pair in texts if can_stand_outside(pair[0])]
    header[layout.STRUCTURE] = writer.add_trie(make_trie(outside))
    behind_space = make_trie((text.lstrip(b" \t\n\r"), number) for text, number in outside)
    header[layout.BEHIND_SPACE] = writer.add_trie(behind_space)
    quoted = [(number, _first_hash(text)) for text, number in outside if text.count(b'"') > 1]
    manifold = [
        number for text, number in texts if text.count(b'"') > 2 or (len(text) > 7 and len(_VALUES.findall(text)) > 1)
    ]
    header[layout.MANIFOLD], header[layout.N_MANIFOLD] = writer.add(np.array(manifold, np.int32)), len(manifold)
    header[layout.QUOTED], header[layout.N_QUOTED] = writer.add(np.array(quoted, np.int32)), len(quoted)
    openers = [number for text, number in texts if _may_open(text)]
    header[layout.OPENERS], header[layout.N_OPENERS] = writer.add(np.array(openers, np.int32)), len(openers)
    begins = _content(escapes).match
    content = [(text, number, match) for text, number in texts if (match := begins(text))]
    # a match that is longer than whole content ends with a quotation mark or something partial
    closing = [
        (text, number, match.end(1))
        for text, number, match in content
        if match.end() > match.end(1) and match[2] is None
    ]
    closing = [one for one in closing if can_stand_behind_string(one[0][one[2] + 1 :])]
    header[layout.SPECIAL] = writer.add_trie(make_trie(pair for pair in texts if b'"' in pair[0] or b"\\" in pair[0]))
    tails = sorted({text[at + 1 :] for text, _, at in closing})
    header[layout.TAILS] = writer.add_trie(make_trie((tail, number) for number, tail in enumerate(tails)))
    number_of = {tail: number for number, tail in enumerate(tails)}
    closers = [
        (number, number_of[text[at + 1 :]], _n_characters(text[:at]), at, _is_hard(text, at))
        for text, number, at in closing
    ]
    # those that say the same before the quotation mark stand side by side, the hard ones last
    closers.sort(key=lambda one: (one[4], tokens[one[0]][: one[3]] if not one[4] else b"", one[0]))
    header[layout.CLOSERS] = at = writer.add(np.array(closers, np.int32))
    kinds = itertools.groupby([one for one in closers if not one[4]], lambda one: tokens[one[0]][: one[3]])
    sizes = [len(list(some)) for _, some in kinds]
    header[layout.CONTENTS] = writer.add(at + layout.CLOSER * np.cumsum([0, *sizes]))
    header[layout.N_CONTENTS] = len(sizes)
    header[layout.N_CLOSERS], header[layout.N_TAILS] = len(closers), len(tails)
    lengths = _content_lengths(content, 32 * n_words)
    header[layout.CONTENT_ROW] = writer.add(bits_where(lengths < _NOT_CONTENT))
    has_escape = np.zeros(32 * n_words, np.bool_)
    has_escape[: len(tokens)] = [b"\\" in text for text in tokens]
    header[layout.PLAIN_ROW] = writer.add(bits_where((lengths < _NOT_CONTENT) & ~has_escape))
    header[layout.GROUP_ROWS] = writer.add_groups(tokens, group_of)
    longest = int(lengths.max(initial=0, where=lengths < _NOT_CONTENT))
    header[layout.N_LENGTHS] = longest
    offsets, at = [], 0
    present = set(np.unique(lengths).tolist())
    for length in range(longest + 1):
        if length in present or not length:
            at = writer.add(bits_where(lengths <= length))
        offsets.append(at)
    header[layout.LENGTH_ROWS] = writer.add(np.array(offsets, np.int32))
    starts = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum([len(text) for text in tokens], out=starts[1:])
    header[layout.TOKEN_START] = writer.add(starts)
    header[layout.TOKEN_BYTES] = writer.add(np.frombuffer(b"".join(tokens), np.uint8))
    header[layout.MOST_BYTES] = max((len(text) for text, _ in texts), default=0)
    return writer.finish()


def _content_lengths(content: Iterable[tuple[bytes, int, re.Match[bytes]]], n: int) -> Array:
    """Characters of each token that is content to its end, else `_NOT_CONTENT`: (n,) int32."""
    lengths = np.full(n, _NOT_CONTENT, np.int32)
    for text, number, match in content:
        if match[2] is not None:
            lengths[number] = _n_characters(match[1]) + 1
        elif match.end() == match.end(1):
            lengths[number] = _n_characters(text)
    return lengths


def _first_hash(text: bytes) -> int:
    """The first hash of what a token's first string says, -1 if that has an escape."""
    content = text.split(b'"')[1]
    return -1 if b"\\" in content else first_hash(np.frombuffer(content, np.uint8))


def _may_open(text: bytes) -> bool:
    """Whether a token may begin a key without ending it: see `layout.OPENERS`."""
    if text.endswith(b'"'):
        return False
    n_quotes = text.count(b'"')
    return (n_quotes == 1 and can_stand_outside(text)) or (
        n_quotes == 2 and (can_stand_outside(text) or can_stand_behind_string(text.partition(b'"')[2]))
    )


def _is_hard(text: bytes, at: int) -> bool:
    """Whether the hash of a token's first bytes does not say all: see `layout.CLOSER`.

    at : the offset of its first quotation mark.
    """
    return b"\\" in text[:at] or bool(text[at + 1 :].strip(_STRUCTURAL))
