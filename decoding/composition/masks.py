"""Masks of texts of several languages, and the states that are known, with what follows from them.

A mask has tokens within one language, and tokens that cross a border.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import kept_with
from maskwright.analysis.locks import new_rlock
from maskwright.decoding.composition.cursors import Cursor, JsonCursor, TagCursor, add, has, remove
from maskwright.decoding.composition.exits import Exits
from maskwright.decoding.composition.readings import HOST, Back, Known, Reading, Rules
from maskwright.maskstore.composition.json_places import Place, may_begin_value
from maskwright.maskstore.composition.splits import Split, past_a_character
from maskwright.maskstore.composition.tables import ComposedTables
from maskwright.maskstore.vocabulary.masks import few_tokens, flags_of, words_of

Words = npt.NDArray[np.int32]

MOST_KNOWN = 256
"""The most states of texts that are known; when there are more, all are forgotten."""

MOST_READINGS_KNOWN = 8
"""States of more readings than these are not kept: each has a cursor."""

MOST_READ = 256
"""The most tokens of a mask that are read one by one, where parts alone allow all others."""

MOST_SHARED = 4
"""How many values of `max_rollback` there are for which texts share what is known."""


class Masks:
    """Makes the masks of a composition's texts, one at a time.

    rules : how the texts are read.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._host_words: Words = np.zeros(-(-rules.tables.host.vocabulary.size // 32), np.int32)
        self._words: Words = np.zeros(rules.tables.n_words, np.int32)
        self._begins: dict[int, list[Split]] = {}
        ids = rules.tables.host_ids
        self._host_ids = np.zeros(0, np.int32) if ids is None else ids
        self._n_plain = int(np.searchsorted(self._host_ids, rules.tables.vocabulary.size))

    def fill(self, readings: list[Reading], words: Words) -> None:
        """Write the mask of a text.

        readings : the closed ones.
        words : (n_words,) int32.
        """
        if (
            readings[0].left
            and any(one.back is not None and one.back.any_may_follow(one.part) for one in readings)
            and self._fill_by_parts(readings, words)
        ):
            return
        self._write(readings[0], words)
        for reading in readings[1:]:
            self._write(reading, self._words)
            words |= self._words
        if not readings[0].left:
            over = (
                (data, token) for data, token in past_a_character(self._rules.tables.vocabulary) if has(words, token)
            )
            remove(words, [token for data, token in over if not self._rules.can_read(readings, data)])

    def _fill_by_parts(self, readings: list[Reading], words: Words) -> bool:
        """`fill` if the parts take nearly all tokens within them. Returns whether they do.

        PERF: where free texts follow each other, every token can leave each of them at each byte.
        """
        rules, tokens = self._rules, self._rules.tables.vocabulary.tokens
        words[:] = 0
        parts = {(one.part, one.cursor.key()): one.cursor for one in readings if one.back is not None}
        for cursor in parts.values():
            cursor.fill(self._words)
            remove(self._words, cursor.eos)
            words |= self._words
        lacking = rules.splits.text_words & ~words
        few = few_tokens(lacking, MOST_READ)
        if not few and lacking.any():
            return False
        add(words, [token for token in few if rules.can_read(readings, tokens[token])])
        for reading in readings:
            if reading.back is None:
                self._add_whole(reading.cursor, words)
                if reading.cursor.can_end():
                    add(words, rules.tables.vocabulary.eos)
        return True

    def fill_alone(self, reading: Reading, exits: Exits, words: Words) -> bool:
        """`fill` of the only reading of a text, which is in a part. Returns whether it has tokens.

        exits : the tokens that can leave it.

        PERF: for a grammar this is one call of the engine.
        """
        lacks_behind, has_tokens = reading.cursor.fill_part(words, exits)
        if lacks_behind:
            assert reading.back is not None
            behind = np.zeros_like(self._words)
            self.fill(reading.back.closed, behind)
            words |= behind
            exits.behind = behind
            has_tokens = bool(words.any())
        return self._add_long(reading, exits.long, words) or has_tokens

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
        add(words, found)
        return bool(found)

    def _write_host(self, host: Cursor, words: Words) -> None:
        """Write the tokens that begin in the host."""
        rules = self._rules
        if not isinstance(host, TagCursor):
            self._write_filled(host, words)
        else:
            state = rules.host_state(host.key())
            if state.entering is None:
                inside, cuts = host.text.tokens(rules.splits.marked)
                state.entering = (*inside, *self._entering(host, cuts))
            words[:] = 0
            add(words, state.entering)
        self._add_whole(host, words)

    def _add_whole(self, host: Cursor, words: Words) -> None:
        """Add the tokens that parts of the host take whole."""
        for mark, tokens in self._rules.token_parts:
            if host.reads(mark):
                words |= tokens

    def _write_filled(self, host: Cursor, words: Words) -> None:
        """`_write_host` but for tokens taken whole, of a grammar or a schema."""
        rules, inside = self._rules, self._host_words
        size = rules.tables.vocabulary.size
        host.fill(inside)
        if rules.tables.host_ids is not None:
            self._write_numbered(inside, words)
            state = rules.host_state(host.key())
            if state.entering is None:
                found = self._host_ids[self._n_plain :][flags_of(inside)[self._n_plain : len(self._host_ids)]]
                cuts = [rules.splits.cut(number) for number in (found - size).tolist() if number < rules.splits.n_cuts]
                state.entering = self._entering(host, cuts, words)
            add(words, state.entering)
        else:
            words[:] = inside[: len(words)]
            if any(rules.tables.first):
                remove(words, rules.splits.marked)
                cuts = [split for split in self._before_parts(host) if split.token < 0 or has(words, split.token)]
                add(words, self._entering(host, cuts, words))

    def _write_numbered(self, inside: Words, words: Words) -> None:
        """Write the tokens of a host's mask. inside : over the host's own tokens."""
        size = self._rules.tables.vocabulary.size
        if self._n_plain == size:
            words[:] = inside[: len(words)]
            if size & 31:
                words[-1] &= (1 << (size & 31)) - 1
            return
        plain = self._host_ids[: self._n_plain]
        words[:] = words_of(plain[flags_of(inside)[: self._n_plain]], size).view(np.int32)

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


class Shared:
    """What all texts of a composition share that can take back so many tokens.

    rules, masks : how they are read, and what makes their masks.
    lock : whoever reads, or asks a cursor that others may have, has it.
    begin : the state in which a text begins.

    INVARIANT: what is known of a state does not depend on the text that came to it first.
    """

    def __init__(self, tables: ComposedTables, max_rollback: int) -> None:
        self.lock = new_rlock()
        self.rules = Rules(tables, max_rollback)
        self.masks = Masks(self.rules)
        self.begin = Known([Reading(self.rules.host, HOST, None)])
        self._known: dict[object, Known] = {}
        self._n_met, self._keeps = 0, True

    def known(self, readings: list[Reading], *, is_own: bool) -> Known | None:
        """The known state of a text with some readings.

        is_own : whether there is one, whose cursor the text may advance.

        Returns None if there are too many readings, or the texts hardly ever come to a state again.
        """
        if len(readings) > MOST_READINGS_KNOWN or not self._keeps:
            return None
        key = tuple([one.key() for one in readings])
        found = self._known.get(key)
        if found is not None:
            self._n_met += 1
            return found
        if len(self._known) >= MOST_KNOWN:
            self._keeps = self._n_met > MOST_KNOWN
            self.forget()
        if is_own:
            readings = [readings[0]._replace(cursor=readings[0].cursor.copy())]
        found = self._known[key] = Known(readings)
        return found

    def forget(self) -> None:
        """Know no states any more but the first."""
        for each in self._known.values():
            each.after, each.is_current = {}, False
        self.begin.after = {}
        self._known, self._n_met = {}, 0


@kept_with
def _shared(tables: ComposedTables) -> dict[int, Shared]:
    """What a composition's texts share, by the tokens that can be taken back."""
    return {}


def shared_by(tables: ComposedTables, max_rollback: int) -> Shared:
    """What texts share of which so many tokens can be taken back."""
    known = _shared(tables)
    found = known.get(max_rollback)
    if found is None:
        found = Shared(tables, max_rollback)
        if len(known) < MOST_SHARED:
            found = known.setdefault(max_rollback, found)
    return found
