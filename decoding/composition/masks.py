"""Masks of texts of several languages: tokens within one, and tokens that cross a border."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from maskwright.decoding.composition.cursor import Cursor, add, has
from maskwright.decoding.composition.cursors import JsonCursor, TagCursor
from maskwright.decoding.composition.exits import Exits
from maskwright.decoding.composition.readings import HOST, Back, Reading, Rules
from maskwright.maskstore.composition.json_places import Place, may_begin_value
from maskwright.maskstore.composition.splits import Split
from maskwright.maskstore.composition.tables import TokenPart
from maskwright.maskstore.vocabulary.masks import words_of

Words = npt.NDArray[np.uint32]


class Masks:
    """Makes the masks of one text.

    rules : those of its composition.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._host_words: Words = np.zeros(-(-rules.tables.host.vocabulary.size // 32), np.uint32)
        self._words: Words = np.zeros(rules.tables.n_words, np.uint32)
        self._token_parts = [
            (number, part.words) for number, part in enumerate(rules.tables.parts) if isinstance(part, TokenPart)
        ]
        self._begins: dict[int, list[Split]] = {}
        ids = rules.tables.host_ids
        self._host_ids = np.zeros(0, np.int32) if ids is None else ids
        self._n_plain = int(np.searchsorted(self._host_ids, rules.tables.vocabulary.size))

    def fill(self, readings: list[Reading], words: Words) -> None:
        """Write the mask of a text.

        readings : the closed ones.
        words : (n_words,) uint32.
        """
        self._write(readings[0], words)
        for reading in readings[1:]:
            self._write(reading, self._words)
            words |= self._words

    def fill_alone(self, reading: Reading, exits: Exits, words: Words) -> bool:
        """`fill` of the only reading of a text, which is in a part. Returns whether it has tokens.

        exits : the tokens that can leave it.

        PERF: for a grammar this is one call of the engine.
        """
        is_whole, has_tokens = reading.cursor.fill_part(words, exits)
        has_tokens = self._add_long(reading, exits.long, words) or has_tokens
        if not is_whole:
            return has_tokens
        if exits.behind is None:
            assert reading.back is not None
            behind = np.zeros_like(self._words)
            for other in reading.back.closed:
                self._write(other, self._words)
                behind |= self._words
            exits.behind = behind
        words |= exits.behind
        return bool(words.any())

    def _write(self, reading: Reading, words: Words) -> None:
        """Write the tokens that come next in a reading; those of a border crossed here are not."""
        if reading.back is None:
            self._write_host(reading.cursor, words)
        else:
            exits = reading.back.exits(reading.part)
            reading.cursor.fill_part(words, exits)
            self._add_long(reading, exits.long, words)

    def _add_long(self, reading: Reading, tokens: Iterable[tuple[bytes, int]], words: Words) -> bool:
        """Add those of some long tokens that may come. Returns whether there are such."""
        missing = [(data, token) for data, token in tokens if not has(words, token)]
        found = list(self._rules.readable(reading, missing)) if missing else []
        for token in found:
            add(words, token)
        return bool(found)

    def _write_host(self, host: Cursor, words: Words) -> None:
        """Write the tokens that begin in the host."""
        if not isinstance(host, TagCursor):
            self._write_filled(host, words)
        else:
            state = self._rules.memo.state(host.key())
            if state.entering is None:
                inside, cuts = host.text.tokens(self._rules.marked)
                state.entering = (*inside, *self._entering(host, cuts))
            words[:] = words_of(state.entering, self._rules.tables.vocabulary.size)
        for number, tokens in self._token_parts:
            if host.reads(self._rules.marks[number]):
                words |= tokens

    def _write_filled(self, host: Cursor, words: Words) -> None:
        """`_write_host` but for tokens taken whole, of a grammar or a schema."""
        rules, inside = self._rules, self._host_words
        size = rules.tables.vocabulary.size
        if not host.fill(inside):
            inside[:] = 0
        if rules.tables.host_ids is not None:
            self._write_numbered(inside, words)
            state = rules.memo.state(host.key())
            if state.entering is None:
                bits = np.unpackbits(inside[self._n_plain >> 5 :].view(np.uint8), bitorder="little")
                found = self._host_ids[self._n_plain + np.flatnonzero(bits[self._n_plain & 31 :])]
                cuts = [rules.splits.cut(number) for number in (found - size).tolist() if number < rules.splits.n_cuts]
                state.entering = self._entering(host, cuts, words)
            for token in state.entering:
                add(words, token)
        else:
            words[:] = inside[: len(words)]
            if any(rules.tables.first):
                for token in rules.marked:
                    words[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)
                cuts = [split for split in self._before_parts(host) if split.token < 0 or has(words, split.token)]
                for token in self._entering(host, cuts, words):
                    add(words, token)

    def _write_numbered(self, inside: Words, words: Words) -> None:
        """Write the tokens of a host's mask. inside : over the host's own tokens."""
        size = self._rules.tables.vocabulary.size
        if self._n_plain == size:
            words[:] = inside[: len(words)]
            if size & 31:
                words[-1] &= np.uint32((1 << (size & 31)) - 1)
            return
        words[:] = 0
        found = np.flatnonzero(np.unpackbits(inside.view(np.uint8), bitorder="little")[: self._n_plain])
        ids = self._host_ids[found]
        np.bitwise_or.at(words, ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))

    def _before_parts(self, host: Cursor) -> list[Split]:
        """The cuts behind which a part may begin, in a host that is a schema."""
        place = host.place if isinstance(host, JsonCursor) else None
        key = -1 if place is None else place.inside
        found = self._begins.get(key)
        if found is None:
            rules = self._rules
            found = self._begins[key] = [
                split
                for byte in sorted(frozenset().union(*rules.tables.first))
                for split in rules.splits.before_byte(byte)
                if place is None or may_begin_value(split.before, Place(place.inside, 0))
            ]
        return found

    def _entering(self, host: Cursor, splits: list[Split], words: Words | None = None) -> tuple[int, ...]:
        """The tokens that begin in the host and enter a part, by where they may do so.

        words : the tokens that stay in the host; None if long tokens are among those of the splits.
        """
        rules = self._rules
        found: set[int] = set()
        for split in splits:
            for number, start in rules.entered(host, split.before):
                first = rules.tables.first[number]
                back = Back(rules, host, split.before + rules.marks[number])
                found.update(
                    token
                    for data, token in split.behind
                    if data[0] in first and token not in found and rules.can_enter(number, start, back, data)
                )
        if words is not None and any(rules.tables.first):
            long = [(data, token) for data, token in rules.splits.long if not has(words, token)]
            found.update(rules.readable(Reading(host, HOST, None), long))
        return tuple(sorted(found))
