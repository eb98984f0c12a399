"""Masks of texts of several languages: tokens within one, and tokens that cross a border."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.decoding.composition.cursor import Cursor
from maskwright.decoding.composition.readings import Back, Reading, Rules
from maskwright.maskstore.composition.tables import TokenPart

Words = npt.NDArray[np.uint32]


class Masks:
    """Makes the masks of one text.

    rules : those of its composition.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._host_words: Words = np.zeros(-(-rules.tables.host.vocabulary.size // 32), np.uint32)
        self._part_words: Words = np.zeros(rules.tables.n_words, np.uint32)

    def add(self, reading: Reading, words: Words) -> None:
        """Add the tokens that may come next in a reading; those of a border crossed here are not.

        words : (n_words,) uint32.
        """
        if reading.back is None:
            self._add_host(reading.cursor, words)
        else:
            self._add_part(reading, reading.back, words)

    def _add_host(self, host: Cursor, words: Words) -> None:
        """Add the tokens that begin in the host."""
        rules = self._rules
        store = rules.tables
        inside = self._host_words
        inside[:] = 0
        size = store.vocabulary.size
        if host.fill(inside):
            words |= inside[: len(words)]
            if size & 31:
                words[-1] &= np.uint32((1 << (size & 31)) - 1)
        if store.beginnings:
            bits = np.unpackbits(inside.view(np.uint8), bitorder="little")[size : size + len(store.beginnings)]
            for at in np.flatnonzero(bits).tolist():
                split = store.beginnings[at]
                self._add_entering(host, split.before, split.behind, words)
        elif any(store.first):
            for token in rules.marked:
                words[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)
            for byte in sorted(frozenset().union(*store.first)):
                for split in rules.splits.before_byte(byte):
                    if split.token < 0 or has(words, split.token):
                        self._add_entering(host, split.before, split.behind, words)
        for number, part in enumerate(store.parts):
            if isinstance(part, TokenPart) and host.reads(rules.marks[number]):
                add(words, part.token)

    def _add_entering(self, host: Cursor, before: bytes, behind: tuple[tuple[bytes, int], ...], words: Words) -> None:
        """Add the tokens that enter a part behind some bytes."""
        rules = self._rules
        for number, start in rules.entered(host, before):
            first = self._rules.tables.first[number]
            back = Back(rules, host, before + rules.marks[number])
            for data, token in behind:
                if data[0] in first and not has(words, token) and rules.can_enter(number, start, back, data):
                    add(words, token)

    def _add_part(self, reading: Reading, back: Back, words: Words) -> None:
        """Add the tokens that begin in a part."""
        rules, cursor = self._rules, reading.cursor
        inside = self._part_words
        inside[:] = 0
        if cursor.fill(inside):
            for token in self._rules.tables.vocabulary.eos:
                inside[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)
            words |= inside
        for before, number, tokens in back.exits(rules.tables.parts[reading.part]):
            if number >= 0 and not has(inside, number):
                continue
            if not all(has(words, token) for token in tokens) and cursor.accepts_after(before):
                for token in tokens:
                    add(words, token)


def has(words: Words, token: int) -> bool:
    """Whether a token is in a mask."""
    return bool(words[token >> 5] >> np.uint32(token & 31) & 1)


def add(words: Words, token: int) -> None:
    """Add a token to a mask."""
    words[token >> 5] |= np.uint32(1 << (token & 31))
