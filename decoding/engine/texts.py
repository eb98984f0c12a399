"""The memory of the texts of a matcher or a batch: regions of one flat array (`constants`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.kernel_sources import checksum
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.quick import quick_calls
from maskwright.maskstore.table.compiled import EngineTable

Words = npt.NDArray[np.int32]

Bound = tuple[Any, Words, Words, Words]
"""What quick calls take; the table; the memory; the bitmask."""

_FIRST_RECORDS = 4096
"""The records of a new text: enough for some 400 tokens; 48 KB."""

SPARE = 512
"""The free records of a text that was taken out of its memory: enough for some 50 tokens."""

SOURCE = checksum(str(Path(__file__).with_name("_text_kernels.py")))
"""A checksum of the code that lays out a text's memory."""

_QUICK = quick_calls(entries)


class Texts:
    """The memory of some texts under one store.

    store : the engine's table with its grammar and vocabulary.
    size : the number of texts, which are in slots 0 to size - 1.
    max_rollback : the number of tokens of each text that can be taken back.

    Raises: LimitError if the texts take 2^31 integers or more, or more memory than there is.

    INVARIANT: a region of `memory` refers only to itself, by offsets from its own start and numbers
    of its own records, so it can be moved and copied whole. The one exception is its field CACHE.

    INVARIANT: the arrays, and their addresses in what quick calls take, are replaced together,
    whoever interrupts: by one assignment.
    """

    quick_fill, quick_read, quick_step = map(staticmethod, (_QUICK.quick_fill, _QUICK.quick_read, _QUICK.quick_step))
    """Of the text in slot 0."""

    def __init__(self, store: EngineTable, size: int, max_rollback: int) -> None:
        self.store = store
        self.size = size
        self.max_rollback = max_rollback
        table, self._is_provisional = self._newest_table()
        self._n_words = store.n_words
        arena = constants.REGION_HEADER + max_rollback * constants.SAVED + constants.scratch_size(table)
        width = arena + constants.RECORD * _FIRST_RECORDS
        if size * width >= 1 << 31:
            raise LimitError(
                f"{clip(size)} texts that remember {clip(max_rollback)} tokens each are more than can be numbered in 31 bits; make several "
                "batches, or give a smaller max_rollback"
            )
        memory = _zeros(size * width)
        self._regions = np.arange(size, dtype=np.int64) * width
        for region in self._regions.tolist():
            memory[region + constants.MAX_HISTORY] = max_rollback
            memory[region + constants.ARENA] = arena
            memory[region + constants.CAPACITY] = _FIRST_RECORDS
            entries.reset(table, memory, region)
        self.bound = self._bound_to(table, memory, np.zeros(0, np.int32))

    # -- the arrays

    @staticmethod
    def _bound_to(table: Words, memory: Words, words: Words) -> Bound:
        """What `bound` is with some arrays."""
        addresses = np.zeros(constants.N_ADDRESSES, np.int64)
        if _QUICK is entries:
            entries.note_addresses(table, memory, words, addresses)
        return addresses, table, memory, words

    @property
    def _table(self) -> Words:
        return self.bound[1]

    @property
    def _memory(self) -> Words:
        return self.bound[2]

    def _newest_table(self) -> tuple[Words, bool]:
        """The store's table, and whether it may be replaced (`EngineTable.is_final`)."""
        # in this order: a table that is taken too early is taken again
        is_provisional = not self.store.is_final
        # PERF: compiled code is specialised on whether an array is read-only. A mapped file is, so
        # all tables are.
        table = self.store.table.view()
        table.setflags(write=False)
        return table, is_provisional

    def bind(self, words: Words) -> bool:
        """Read the store's newest table, and write to this bitmask, from now on.

        Returns whether the table is not replaced any more. States and records mean the same under
        both tables. (Walks would not, but none is cached while the parser is asked.)
        """
        table, is_provisional = self._newest_table() if self._is_provisional else (self._table, False)
        self.bound, self._is_provisional = self._bound_to(table, self._memory, words), is_provisional
        return not is_provisional

    def renew(self) -> None:
        """Read the store's newest table from now on, if it may be another one."""
        if self._is_provisional:
            self.bind(self.bound[3])

    # -- all texts at once

    def fill_many(self, words: Words, results: Words, begin: int, end: int) -> bool:
        """Write the masks of the texts in slots begin to end - 1, as far as one compiled call can.

        words : (size, >= n_words) int32. results : (size,) int32; OK for texts to write, or IDLE;
            the result of `fill` then. Returns whether all are OK.
        """
        _, table, memory, _ = self.bound
        return bool(entries.fill_batch(table, memory, self._regions, words, results, begin, end))

    def advance_many(self, tokens: npt.NDArray[np.int64], results: Words) -> bool:
        """Add a token to each text, as far as one compiled call can.

        tokens : (size,) int64; -1 for texts to leave alone. results : (size,) int32, IDLE; the
            results of `read_token` then. Returns whether all are OK.
        """
        _, table, memory, _ = self.bound
        return bool(entries.advance_batch(table, memory, self._regions, tokens, results))

    # -- the memory of one text

    def take_out(self, slot: int) -> Words:
        """A text's region alone, without the records that nothing needs: (n,) int32."""
        begin = int(self._regions[slot])
        self._collect(begin)
        arena, used = (int(self._memory[begin + field]) for field in (constants.ARENA, constants.USED))
        return self._memory[begin : begin + arena + constants.RECORD * used].copy()

    def put_in(self, slot: int, region: Words) -> None:
        """Put a text, with its history, into a slot. region : as `take_out` gives it.

        Raises: MaskwrightError if it is of texts that are laid out in another way.
        """
        used, arena = int(region[constants.USED]), int(region[constants.ARENA])
        into = int(self._regions[slot])
        if arena != self._memory[into + constants.ARENA]:
            raise MaskwrightError(
                f"a text that remembers {int(region[constants.MAX_HISTORY])} tokens cannot take the place of one that remembers "
                f"{self.max_rollback}; make both alike"
            )
        capacity = int(self._memory[into + constants.CAPACITY])
        if capacity < 2 * used:
            self._lay_out({slot: max(2 * capacity, 2 * used)})
            into = int(self._regions[slot])
        region = region.copy()
        for field in (constants.CAPACITY, constants.CACHE):
            region[field] = self._memory[into + field]
        # INVARIANT: at once, whoever interrupts: a region says only what room it has
        self._memory[into : into + len(region)] = region
        entries.forget_walks(self._table, self._memory, into, 0)

    def alone(self) -> Self:
        """The only text, in as little memory as may be, without the walks that are cached."""
        region = self.take_out(0)
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        used = int(region[constants.USED])
        memory = _zeros(len(region) + constants.RECORD * SPARE)
        memory[: len(region)] = region
        memory[constants.CAPACITY], memory[constants.CACHE] = used + SPARE, 0
        other.bound = other._bound_to(self._table, memory, np.zeros(0, np.int32))
        return other

    def copy(self) -> Self:
        """The same texts in memory of their own, with the walks that are cached."""
        other = object.__new__(type(self))
        other.store, other.size, other.max_rollback = self.store, self.size, self.max_rollback
        other._n_words, other._regions = self._n_words, self._regions.copy()
        for region in self._regions.tolist():
            self._collect(region)
        table, other._is_provisional = other._newest_table()
        other.bound = other._bound_to(table, self._memory.copy(), np.zeros(0, np.int32))
        return other

    def _collect(self, region: int) -> None:
        """Free the records that nothing needs."""
        room = np.empty(int(self._memory[region + constants.CAPACITY]), np.int32)
        entries.collect(self._table, self._memory, region, room)

    # -- room

    def _give_room(self, slot: int, tries: int) -> None:
        """Make room for a call that had too little.

        tries : how often room was made for this call before. At first the records that nothing
            needs are freed, and the region is doubled if over half is in use then, else it is.
        """
        region = int(self._regions[slot])
        capacity, used = (int(self._memory[region + field]) for field in (constants.CAPACITY, constants.USED))
        if not tries:
            self._collect(region)
        left = int(self._memory[region + constants.USED])
        if tries or 2 * left > capacity or left == used:
            self._lay_out({slot: 2 * capacity})

    def give_caches(self, slot: int) -> None:
        """Make the cache of walks that a text wants, and those that others want."""
        # one new layout serves all the texts that want a cache
        if self._memory[self._regions[slot] + constants.CACHE] < 0:
            self._lay_out({})

    def _lay_out(self, capacities: dict[int, int]) -> None:
        """Move all texts to new memory.

        The regions come first, in order; then the caches of those that have or want one. The caches
        begin empty. Slot 0's region is always at 0.

        capacities : the new capacities by slot; the others keep theirs.
        """
        old, regions = self._memory, self._regions.tolist()
        sizes = [
            int(old[region + constants.ARENA])
            + constants.RECORD * capacities.get(slot, int(old[region + constants.CAPACITY]))
            for slot, region in enumerate(regions)
        ]
        has_cache = [int(old[region + constants.CACHE]) != 0 for region in regions]
        width = 1 + constants.CACHED_WALKS * (2 + self._n_words)
        begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        total = int(begins[-1]) + width * sum(has_cache)
        if total >= 1 << 31:
            raise LimitError(
                "the texts together are too long or nested too deeply: their stacks cannot be numbered in 31 bits"
            )
        memory = _zeros(total)
        cache = int(begins[-1])
        memory[cache:] = -1
        for slot, region in enumerate(regions):
            n = int(old[region + constants.ARENA]) + constants.RECORD * int(old[region + constants.USED])
            into = int(begins[slot])
            memory[into : into + n] = old[region : region + n]
            memory[into + constants.CAPACITY] = capacities.get(slot, int(old[region + constants.CAPACITY]))
            memory[into + constants.CACHE] = cache if has_cache[slot] else 0
            cache += width * has_cache[slot]
        self.bound, self._regions = self._bound_to(self._table, memory, self.bound[3]), begins[:-1].copy()

    @property
    def n_bytes(self) -> int:
        """The bytes of memory that the texts' states take now."""
        return int(self._memory.nbytes)

    def limit(self, code: int) -> LimitError:
        """The error for a result of `state.LIMITS`."""
        name = self.store.grammar.name
        if code == constants.TOO_MANY:
            return LimitError(
                f"grammar {name} has more than {constants.MAX_STACKS} readings of the text: their number grows with its length; load the "
                "grammar with conflicts='shift', or make its rules less ambiguous"
            )
        if code == constants.SPLIT:
            return LimitError(
                f"grammar {name} has several readings of the text that would lex the next lexeme differently, but one lexer cannot follow "
                "them all; make its rules less ambiguous, or load the grammar with conflicts='shift'"
            )
        return LimitError(
            f"grammar {name}: one token or mask takes too many steps: the text is nested too deeply, or the store was made to run without "
            "end; if the store is not your own, build it from the grammar"
        )


def _zeros(n: int) -> Words:
    try:
        return np.zeros(n, np.int32)
    except MemoryError:
        raise LimitError(
            f"the texts take {4 * n / 1e9:.1f} GB, which is more memory than there is; make smaller batches, or end texts"
        ) from None
