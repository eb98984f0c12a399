"""The memory of the texts of a matcher or a batch, and what is done to one text at a time.

Each text has a region of one flat array (`constants`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip, refuse_argument
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.analysis.grammar.columns import Column
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.arguments import NO_BITMASK, as_id, plain_bytes
from maskwright.decoding.engine.bound import BoundTexts, Words
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.pickles import SOURCE
from maskwright.maskstore.table.compiled import EngineTable

_FIRST_RECORDS = 4096
"""The records of a new text: enough for some 400 tokens; 48 KB."""

LIMITS = (constants.TOO_MANY, constants.SPLIT, constants.TOO_LONG)
"""Results that say nothing about whether the text is legal."""

_EXPLAINED = 1 << 16
"""The greatest offset of a wrong byte for which an error lists the bytes that could stand there.

To find them, all bytes before it are read 256 times.
"""


class Texts(BoundTexts):
    """Some texts under one store, for one thread at a time (`alone`).

    store : the engine's table with its grammar and vocabulary.
    size : the number of texts, which are in slots 0 to size - 1.
    max_rollback : the number of tokens of each text that can be taken back.

    Raises: MaskwrightError if the store is no `EngineTable`, size or max_rollback is no integer,
    size is less than 1, or max_rollback is negative; LimitError if the texts take 2^31 integers or
    more, or more memory than there is.

    INVARIANT: a region of `memory` refers only to itself, by offsets from its own start and numbers
    of its own records, so it can be moved and copied whole. The one exception is its field CACHE.
    """

    def __init__(self, store: EngineTable, size: int, max_rollback: int) -> None:
        if not isinstance(store, EngineTable):
            refuse_argument(
                "the store", store, "a Store, as mw.build_store and mw.load_store return it (not one with lexing 'nfa')"
            )
        size, max_rollback = as_integer("size", size), as_integer("max_rollback", max_rollback)
        if size < 1 or max_rollback < 0:
            raise MaskwrightError(
                f"size is {clip(size)} and max_rollback {clip(max_rollback)}; expected at least 1 and 0"
            )
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
        self._bound = self._bound_to(table, memory, np.zeros(0, np.int32))
        self._checked = NO_BITMASK

    def _state(self) -> tuple[int, Words, npt.NDArray[np.int64]]:
        """The texts as `restored` takes them: the code's checksum, the memory and the regions."""
        with Alone(self):
            return SOURCE, self._memory.copy(), self._regions.copy()

    def _retry(self, slot: int, token: int, code: int) -> int:
        """The result of reading a token, with more room as often as the text needs it."""
        for tries in itertools.count():
            if code != constants.NO_ROOM:
                break
            self._give_room(slot, tries)
            code = entries.read_token(self._table, self._memory, int(self._regions[slot]), token, True)
        return code

    @staticmethod
    def _id(token: object) -> int:
        """A token id that compiled code can take. Raises: as `as_id`."""
        return as_id(token)

    def _is_allowed(self, slot: int, token: int) -> bool:
        """Whether a token may come next, without making a mask.

        Ids that the vocabulary lacks may not.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            return self._may_come(self._slot(slot), self._id(token))
        finally:
            self._is_busy = False

    def _may_come(self, slot: int, token: int) -> bool:
        for tries in itertools.count():
            code = entries.read_token(self._table, self._memory, int(self._regions[slot]), token, False)
            if code != constants.NO_ROOM:
                break
            self._give_room(slot, tries)
        if code in LIMITS:
            self._refuse(slot, token, code)
        return bool(code == constants.OK)

    def _advance_bytes(self, slot: int, data: bytes) -> None:
        """Add bytes to a text, as one token that can be taken back.

        Raises: IllegalTokenError if they are illegal, and the text is unchanged.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            slot = self._slot(slot)
            if data.__class__ is not bytes:
                data = plain_bytes("the text", data)
            if not data:
                return
            code = self._read(slot, data, True)
            if code != constants.OK:
                self._refuse(slot, None, code, data)
        finally:
            self._is_busy = False

    def _read(self, slot: int, data: bytes, commit: bool) -> int:
        """The result of reading some bytes."""
        text = np.frombuffer(data, np.uint8).astype(np.int32)
        for tries in itertools.count():
            region = int(self._regions[slot])
            if self._memory[region + constants.FINISHED]:
                return constants.AFTER_END
            code = entries.read_bytes(self._table, text, False, 0, len(text), self._memory, region, commit)
            if code != constants.NO_ROOM:
                break
            self._give_room(slot, tries)
        return int(code)

    def _is_accepting(self, slot: int) -> bool:
        """Whether a text is legal as a whole."""
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            return self._can_end(self._slot(slot))
        finally:
            self._is_busy = False

    def _can_end(self, slot: int) -> bool:
        """`_is_accepting`, for who holds the texts already."""
        for tries in itertools.count():
            region = int(self._regions[slot])
            if self._memory[region + constants.FINISHED]:
                return True
            code = entries.can_end(self._table, self._memory, region)
            if code != constants.NO_ROOM:
                break
            self._give_room(slot, tries)
        if code in LIMITS:
            self._refuse(slot, None, code)
        return bool(code == constants.OK)

    def _is_finished(self, slot: int) -> bool:
        """Whether an end-of-text token has been read."""
        if self._is_busy:
            self._refuse_sharing()
        return bool(self._memory[self._regions[self._slot(slot)] + constants.FINISHED])

    def _rollback(self, slot: int, n: int = 1) -> None:
        """Take back the last n tokens. Raises: MaskwrightError if fewer are remembered."""
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            region = int(self._regions[self._slot(slot)])
            known = int(self._memory[region + constants.N_HISTORY])
            if n.__class__ is not int:
                n = as_integer("the number of tokens to roll back", n)
            if not 0 <= n <= known:
                raise MaskwrightError(
                    f"cannot roll back {clip(n)} tokens: {known} are remembered (max_rollback is {self.max_rollback})"
                )
            if n:
                entries.rollback(self._table, self._memory, region, n)
        finally:
            self._is_busy = False

    def _reset(self, slot: int) -> None:
        """Put a text back to the start: the slot is free for another one."""
        with Alone(self):
            entries.reset(self._table, self._memory, int(self._regions[self._slot(slot)]))

    def _copy(self, source: int, target: int) -> None:
        """Make one text, with its history, a copy of another."""
        with Alone(self):
            self._copy_text(self._slot(source), self._slot(target))

    def _copy_text(self, source: int, target: int) -> None:
        if source == target:
            return
        begin = int(self._regions[source])
        entries.collect(
            self._table, self._memory, begin, np.empty(int(self._memory[begin + constants.CAPACITY]), np.int32)
        )
        used = int(self._memory[begin + constants.USED])
        capacity = int(self._memory[self._regions[target] + constants.CAPACITY])
        if capacity < 2 * used:
            self._lay_out({target: max(2 * capacity, 2 * used)})
        begin, into = int(self._regions[source]), int(self._regions[target])
        arena = int(self._memory[begin + constants.ARENA])
        keep = self._memory[into : into + constants.REGION_HEADER].copy()
        n = arena + constants.RECORD * used
        self._memory[into : into + n] = self._memory[begin : begin + n]
        for field in (constants.CAPACITY, constants.CACHE):
            self._memory[into + field] = keep[field]
        entries.forget_walks(self._table, self._memory, into, 0)

    def _columns(self, slot: int) -> list[Column]:
        """The columns of a text's open indents, the outermost first."""
        with Alone(self):
            return self._read_columns(slot)

    def _read_columns(self, slot: int) -> list[Column]:
        region = int(self._regions[self._slot(slot)])
        arena = region + int(self._memory[region + constants.ARENA])
        record = int(self._memory[region + constants.INDENTS])
        found = []
        while record >= 0:
            at = arena + constants.RECORD * record
            found.append(Column(int(self._memory[at]), int(self._memory[at + constants.RECORD])))
            record = int(self._memory[at + constants.BELOW_AT])
        return found[::-1]

    def _stacks(self, slot: int) -> list[list[int]]:
        """The LR states on each stack of a text, from the bottom up."""
        with Alone(self):
            return self._read_stacks(slot)

    def _read_stacks(self, slot: int) -> list[list[int]]:
        region = int(self._regions[self._slot(slot)])
        stacks = int(self._memory[region + constants.STACKS])
        tops = [stacks] if stacks >= 0 else self._chain(region, constants.LIST - stacks)
        return [self._chain(region, top)[::-1] for top in tops]

    def _chain(self, region: int, record: int) -> list[int]:
        """The first integers of an arena record and of those below it."""
        arena = region + int(self._memory[region + constants.ARENA])
        found = []
        while record >= 0:
            found.append(int(self._memory[arena + constants.RECORD * record]))
            record = int(self._memory[arena + constants.RECORD * record + constants.BELOW_AT])
        return found

    def _slot(self, slot: int) -> int:
        if slot.__class__ is not int:
            slot = as_integer("a slot", slot)
        if not 0 <= slot < self.size:
            raise MaskwrightError(f"slot {clip(slot)} is out of range: the batch has the slots 0 to {self.size - 1}")
        return slot

    def _slots(self, slots: Sequence[int]) -> list[int]:
        """Slot numbers, checked.

        Raises: MaskwrightError if one is out of range, or `slots` is no list.
        """
        try:
            chosen = list(slots)
        except TypeError:
            raise MaskwrightError(f"slots is {clip(slots)}; expected a list of slot numbers") from None
        return [self._slot(slot) for slot in chosen]

    def _fill(self, slot: int, words: Words) -> None:
        """Write a text's mask. Raises: as `Matcher.fill`."""
        code = entries.fill(self._table, self._memory, int(self._regions[slot]), words)
        if code:
            self._finish_fill(slot, code, words)

    def _finish_fill(self, slot: int, code: int, words: Words) -> None:
        """Do what compiled code left to be done after a `fill`, or raise its error."""
        for tries in itertools.count():
            if code in (constants.OK, constants.IDLE):
                return
            if code == constants.AFTER_END:
                words[:] = 0
                return
            if code == constants.WANTS_CACHE:
                # one new layout serves all the texts that want a cache
                if self._memory[self._regions[slot] + constants.CACHE] < 0:
                    self._lay_out({})
                return
            if code == constants.DEAD_END:
                raise DeadEndError(self._dead_end(slot))
            if code != constants.NO_ROOM:
                self._refuse(slot, None, code)
            self._give_room(slot, tries)
            code = entries.fill(self._table, self._memory, int(self._regions[slot]), words)

    def _give_room(self, slot: int, tries: int) -> None:
        """Make room for a call that had too little.

        tries : how often room was made for this call before. Freed records were too few then, so
            the region is doubled.
        """
        if tries:
            self._lay_out({slot: 2 * int(self._memory[self._regions[slot] + constants.CAPACITY])})
        else:
            self._make_room(slot)

    def _make_room(self, slot: int) -> None:
        """Free the records that nothing needs. Double the region if over half is in use then."""
        region = int(self._regions[slot])
        capacity, used = (int(self._memory[region + field]) for field in (constants.CAPACITY, constants.USED))
        entries.collect(self._table, self._memory, region, np.empty(capacity, np.int32))
        left = int(self._memory[region + constants.USED])
        if 2 * left > capacity or left == used:
            self._lay_out({slot: 2 * capacity})

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
        self._bound, self._regions = self._bound_to(self._table, memory, self._words), begins[:-1].copy()

    @property
    def n_bytes(self) -> int:
        """The bytes of memory that the texts' states take now."""
        return int(self._memory.nbytes)

    def _refuse(self, slot: int, token: int | None, code: int, data: bytes = b"") -> NoReturn:
        """Raise the error that a result of compiled code means."""
        vocabulary, grammar = self.store.vocabulary, self.store.grammar
        where = f" in slot {slot}" if self.size > 1 else ""
        if code == constants.TOO_MANY:
            raise LimitError(
                f"grammar {grammar.name} has more than {constants.MAX_STACKS} readings of the text{where}: their number grows with its "
                "length; load the grammar with conflicts='shift', or make its rules less ambiguous"
            )
        if code == constants.SPLIT:
            raise LimitError(
                f"grammar {grammar.name} has several readings of the text{where} that would lex the next lexeme differently, but one lexer "
                "cannot follow them all; make its rules less ambiguous, or load the grammar with conflicts='shift'"
            )
        if code == constants.TOO_LONG:
            raise LimitError(
                f"grammar {grammar.name}: one token or mask takes too many steps{where}: the text is nested too "
                "deeply, or the store was made to run without end; if the store is not your own, build it from the grammar"
            )
        what = f"bytes {data[:40]!r}" if token is None else f"token {clip(int(token))}"
        if token is not None and 0 <= token < vocabulary.size:
            data = vocabulary.tokens[token]
            what += f" ({data!r})"
        if code == constants.OUT_OF_RANGE:
            raise IllegalTokenError(
                f"{what} is out of range{where}: the vocabulary has the ids 0 to {vocabulary.size - 1}"
            )
        if code == constants.AFTER_END:
            raise IllegalTokenError(f"{what} comes after the end of the text{where}: reset() begins a new one")
        if code == constants.NOT_COMPLETE:
            raise IllegalTokenError(f"{what} ends the text{where}, which is not complete here")
        if code == constants.NO_TEXT:
            raise IllegalTokenError(f"{what} stands for no text, so no grammar can allow it{where}")
        kept = "the state is unchanged" if self.size == 1 else "that text is unchanged"
        raise IllegalTokenError(
            f"{what} is not legal here under grammar {grammar.name}{where}; {kept}. {self._expectation(slot, data)}"
        )

    def _expectation(self, slot: int, data: bytes) -> str:
        """Which of some illegal bytes is the first wrong one, and which could stand there."""
        good = 0
        low, high = 0, len(data) - 1
        # every prefix of a legal prefix is legal, so bisection finds the longest
        while low < high:
            middle = (low + high + 1) // 2
            if self._reads(slot, data[:middle]):
                low = middle
            else:
                high = middle - 1
        good = low
        if good > _EXPLAINED:
            return f"Byte {good} of it, {data[good : good + 1]!r}, cannot come here"
        allowed = bytes(byte for byte in range(256) if self._reads(slot, data[:good] + bytes([byte])))
        shown = ", ".join(repr(allowed[i : i + 1])[1:] for i in range(min(12, len(allowed))))
        more = f" and {len(allowed) - 12} more" if len(allowed) > 12 else ""
        return f"Byte {good} of it, {data[good : good + 1]!r}, cannot come here; allowed: {shown or 'nothing'}{more}"

    def _allows_bytes(self, slot: int, data: bytes) -> bool:
        with Alone(self):
            return self._reads(slot, data)

    def _reads(self, slot: int, data: bytes) -> bool:
        return not data or self._read(slot, data, False) == constants.OK

    def _dead_end(self, slot: int) -> str:
        """Why nothing can come next. `Matcher` and `Batch` define it; they know how texts end."""
        raise NotImplementedError

    def _explain(self, slot: int, token: int) -> str:
        with Alone(self):
            slot, number = self._slot(slot), self._id(token)
            if self._may_come(slot, number):
                return f"token {token} ({self.store.vocabulary.tokens[number]!r}) may come next"
            code = entries.read_token(self._table, self._memory, int(self._regions[slot]), number, False)
            try:
                self._refuse(slot, token, code)
            except IllegalTokenError as error:
                return str(error)


def _zeros(n: int) -> Words:
    try:
        return np.zeros(n, np.int32)
    except MemoryError:
        raise LimitError(
            f"the texts take {4 * n / 1e9:.1f} GB, which is more memory than there is; make smaller batches, or end texts"
        ) from None
