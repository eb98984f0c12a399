"""The memory of the texts that a matcher or a batch reads: regions of one flat array, and all that is done to one text at a time."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.analysis.grammar.columns import Column
from maskwright.decoding import _kernels as kernels

if TYPE_CHECKING:
    from maskwright.maskstore.automaton_store import AutomatonStore

Words = npt.NDArray[np.int32]

_FIRST_RECORDS = 4096
"""Some 400 tokens' worth; 48 KB."""


class Texts:
    """Some texts under one store.

    INVARIANT: a region of `memory` refers to itself only, by numbers from its own start, so it can be moved and copied whole.
    """

    def __init__(self, store: AutomatonStore, size: int, max_rollback: int) -> None:
        if size < 1 or max_rollback < 0:
            raise MaskwrightError(f"size is {size} and max_rollback {max_rollback}; expected at least 1 and 0")
        self.store = store
        self.size = size
        self.max_rollback = max_rollback
        # PERF: compiled code is specialised on read-only or not; a mapped file is read-only, so all are
        self._table = store.table.view()
        self._table.setflags(write=False)
        self._n_words = store.n_words
        arena = kernels.REGION_HEADER + max_rollback * kernels.SAVED + kernels.scratch_size(self._table)
        places = arena + 3 * _FIRST_RECORDS
        self._memory = np.zeros(size * places, np.int32)
        self._regions = np.arange(size, dtype=np.int64) * places
        for region in self._regions.tolist():
            self._memory[region + kernels.MAX_HISTORY] = max_rollback
            self._memory[region + kernels.ARENA] = arena
            self._memory[region + kernels.CAPACITY] = _FIRST_RECORDS
            kernels.reset(self._table, self._memory, region)
        self._checked: object = self  # no bitmask of a caller's

    def _retry(self, slot: int, token: int, code: int) -> int:
        while code == kernels.NO_ROOM:
            self._make_room(slot)
            code = kernels.read_token(self._table, self._memory, int(self._regions[slot]), token, True)
        return code

    def _id(self, token: object) -> int:
        """A token id that compiled code can take."""
        try:
            found = operator.index(token)  # type: ignore[arg-type]
        except TypeError:
            raise IllegalTokenError(
                f"token {token!r} is no id but a {type(token).__name__}; expected an integer"
            ) from None
        return found if -1 <= found < 1 << 31 else -1

    def _is_allowed(self, slot: int, token: int) -> bool:
        """Whether a token may come next, without a mask. Ids that the vocabulary lacks may not."""
        slot = self._slot(slot)
        while True:
            code = kernels.read_token(self._table, self._memory, int(self._regions[slot]), self._id(token), False)
            if code != kernels.NO_ROOM:
                break
            self._make_room(slot)
        if code in (kernels.TOO_MANY, kernels.SPLIT):
            self._refuse(slot, token, code)
        return bool(code == kernels.OK)

    def _advance_bytes(self, slot: int, data: bytes) -> None:
        """Add bytes to a text, as one token that may be rolled back. Raises IllegalTokenError, the text being as it was."""
        slot = self._slot(slot)
        if not data:
            return
        region = int(self._regions[slot])
        if self._memory[region + kernels.FINISHED]:
            self._refuse(slot, None, kernels.AFTER_END, data)
        text = np.frombuffer(data, np.uint8).astype(np.int32)
        while True:
            code = kernels.read_bytes(
                self._table, text, False, 0, len(text), self._memory, int(self._regions[slot]), True
            )
            if code != kernels.NO_ROOM:
                break
            self._make_room(slot)
        if code != kernels.OK:
            self._refuse(slot, None, code, data)

    def _is_accepting(self, slot: int) -> bool:
        """Whether a text is legal as it stands."""
        slot = self._slot(slot)
        while True:
            region = int(self._regions[slot])
            if self._memory[region + kernels.FINISHED]:
                return True
            code = kernels.can_end(self._table, self._memory, region)
            if code != kernels.NO_ROOM:
                break
            self._make_room(slot)
        if code in (kernels.TOO_MANY, kernels.SPLIT):
            self._refuse(slot, None, code)
        return bool(code == kernels.OK)

    def _is_finished(self, slot: int) -> bool:
        """Whether an end-of-text token has been read."""
        return bool(self._memory[self._regions[self._slot(slot)] + kernels.FINISHED])

    def _rollback(self, slot: int, n: int = 1) -> None:
        """Take back the last n tokens. Raises MaskwrightError if so many are not remembered."""
        region = int(self._regions[self._slot(slot)])
        known = int(self._memory[region + kernels.N_HISTORY])
        if not 0 <= n <= known:
            raise MaskwrightError(
                f"cannot roll back {n} tokens: {known} are remembered (max_rollback is {self.max_rollback})"
            )
        if n:
            kernels.rollback(self._table, self._memory, region, n)

    def _reset(self, slot: int) -> None:
        """Back to the start of the text: the slot is free for another one."""
        kernels.reset(self._table, self._memory, int(self._regions[self._slot(slot)]))

    def _copy(self, source: int, target: int) -> None:
        """Make one text, its history included, a copy of another."""
        source, target = self._slot(source), self._slot(target)
        if source == target:
            return
        begin = int(self._regions[source])
        kernels.collect(
            self._table, self._memory, begin, np.empty(int(self._memory[begin + kernels.CAPACITY]), np.int32)
        )
        used = int(self._memory[begin + kernels.USED])
        capacity = int(self._memory[self._regions[target] + kernels.CAPACITY])
        if capacity < 2 * used:
            self._lay_out({target: max(2 * capacity, 2 * used)})
        begin, into = int(self._regions[source]), int(self._regions[target])
        arena = int(self._memory[begin + kernels.ARENA])
        keep = self._memory[into : into + kernels.REGION_HEADER].copy()
        n = arena + 3 * used
        self._memory[into : into + n] = self._memory[begin : begin + n]
        for place in (kernels.CAPACITY, kernels.CACHE):
            self._memory[into + place] = keep[place]
        kernels.forget_runs(self._table, self._memory, into, 0)

    def _columns(self, slot: int) -> list[Column]:
        """The columns of the open indents of a text, from the first."""
        region = int(self._regions[self._slot(slot)])
        arena = region + int(self._memory[region + kernels.ARENA])
        record = int(self._memory[region + kernels.INDENTS])
        found = []
        while record >= 0:
            at = arena + 3 * record
            found.append(Column(int(self._memory[at]), int(self._memory[at + 3])))
            record = int(self._memory[at + 1])
        return found[::-1]

    def _stacks(self, slot: int) -> list[list[int]]:
        """The LR states on each stack of a text, from the bottom."""
        region = int(self._regions[self._slot(slot)])
        stacks = int(self._memory[region + kernels.STACKS])
        tops = [stacks] if stacks >= 0 else self._chain(region, kernels.LIST - stacks)
        return [self._chain(region, top)[::-1] for top in tops]

    def _chain(self, region: int, record: int) -> list[int]:
        """The first places of an arena record and of those it leads to."""
        arena = region + int(self._memory[region + kernels.ARENA])
        found = []
        while record >= 0:
            found.append(int(self._memory[arena + 3 * record]))
            record = int(self._memory[arena + 3 * record + 1])
        return found

    def _slot(self, slot: int) -> int:
        if not 0 <= slot < self.size:
            raise MaskwrightError(f"slot {slot} is out of range: the batch has the slots 0 to {self.size - 1}")
        return slot

    def _finish_fill(self, slot: int, code: int, words: Words) -> None:
        """What compiled code left to be done, or an error."""
        while True:
            if code in (kernels.OK, kernels.IDLE):
                return
            if code == kernels.AFTER_END:
                words[:] = 0
                return
            if code == kernels.WANTS_CACHE:
                # laid out once for all the texts that want one
                if self._memory[self._regions[slot] + kernels.CACHE] < 0:
                    self._lay_out({})
                return
            if code == kernels.DEAD_END:
                raise DeadEndError(self._dead_end(slot))
            if code != kernels.NO_ROOM:
                self._refuse(slot, None, code)
            self._make_room(slot)
            code = kernels.fill(self._table, self._memory, int(self._regions[slot]), words)

    def _make_room(self, slot: int) -> None:
        """Free records that nothing needs, or double the region."""
        region = int(self._regions[slot])
        capacity, used = (int(self._memory[region + place]) for place in (kernels.CAPACITY, kernels.USED))
        kernels.collect(self._table, self._memory, region, np.empty(capacity, np.int32))
        left = int(self._memory[region + kernels.USED])
        if 2 * left > capacity or left == used:
            self._lay_out({slot: 2 * capacity})

    def _lay_out(self, capacities: dict[int, int]) -> None:
        """New memory: regions in order, with other capacities where given; then the caches of those that have or want one.

        Caches begin empty. Slot 0's region is always at 0.
        """
        old, regions = self._memory, self._regions.tolist()
        sizes = [
            int(old[region + kernels.ARENA]) + 3 * capacities.get(slot, int(old[region + kernels.CAPACITY]))
            for slot, region in enumerate(regions)
        ]
        has_cache = [int(old[region + kernels.CACHE]) != 0 for region in regions]
        width = 1 + kernels.CACHED_RUNS * (2 + self._n_words)
        begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        total = int(begins[-1]) + width * sum(has_cache)
        if total >= 1 << 31:
            raise LimitError("the texts are too long or too deeply nested together to number their stacks in 31 bits")
        memory = np.zeros(total, np.int32)
        cache = int(begins[-1])
        memory[cache:] = -1
        for slot, region in enumerate(regions):
            n = int(old[region + kernels.ARENA]) + 3 * int(old[region + kernels.USED])
            into = int(begins[slot])
            memory[into : into + n] = old[region : region + n]
            memory[into + kernels.CAPACITY] = capacities.get(slot, int(old[region + kernels.CAPACITY]))
            memory[into + kernels.CACHE] = cache if has_cache[slot] else 0
            cache += width * has_cache[slot]
        self._memory, self._regions = memory, begins[:-1].copy()

    @property
    def n_bytes(self) -> int:
        """Bytes that the texts' states take now."""
        return int(self._memory.nbytes)

    def _refuse(self, slot: int, token: int | None, code: int, data: bytes = b"") -> NoReturn:
        """Raise what a result of compiled code means."""
        vocabulary, grammar = self.store.vocabulary, self.store.grammar
        where = f" in slot {slot}" if self.size > 1 else ""
        if code == kernels.TOO_MANY:
            raise LimitError(
                f"grammar {grammar.name} has more than {kernels.MAX_STACKS} readings of the text{where}: their number grows with it; "
                "load the grammar with conflicts='shift', or make its rules less ambiguous"
            )
        if code == kernels.SPLIT:
            raise LimitError(
                f"grammar {grammar.name} has several readings of the text{where} in which the next lexeme would be read differently, which "
                "one lexer cannot follow; make its rules less ambiguous, or load the grammar with conflicts='shift'"
            )
        what = f"bytes {data[:40]!r}" if token is None else f"token {token}"
        if token is not None and 0 <= token < vocabulary.size:
            data = vocabulary.tokens[token]
            what += f" ({data!r})"
        if code == kernels.OUT_OF_RANGE:
            raise IllegalTokenError(
                f"{what} is out of range{where}: the vocabulary has the ids 0 to {vocabulary.size - 1}"
            )
        if code == kernels.AFTER_END:
            raise IllegalTokenError(f"{what} after the end of the text{where}: reset() begins a new one")
        if code == kernels.NOT_COMPLETE:
            raise IllegalTokenError(f"{what} ends the text{where}, which is not complete here")
        if code == kernels.NO_TEXT:
            raise IllegalTokenError(f"{what} stands for no text, so no grammar can allow it{where}")
        raise IllegalTokenError(
            f"{what} is not legal here under grammar {grammar.name}{where}; the state is unchanged. {self._expectation(slot, data)}"
        )

    def _expectation(self, slot: int, data: bytes) -> str:
        """Where some bytes stop being legal, and what could stand there."""
        good = 0
        low, high = 0, len(data) - 1
        while low < high:  # every prefix of a legal prefix is one, so bisection finds the last
            middle = (low + high + 1) // 2
            if self._allows_bytes(slot, data[:middle]):
                low = middle
            else:
                high = middle - 1
        good = low
        allowed = bytes(byte for byte in range(256) if self._allows_bytes(slot, data[:good] + bytes([byte])))
        shown = ", ".join(repr(allowed[i : i + 1])[1:] for i in range(min(12, len(allowed))))
        more = f" and {len(allowed) - 12} more" if len(allowed) > 12 else ""
        return f"Byte {good} of it, {data[good : good + 1]!r}, cannot come; what can: {shown or 'nothing'}{more}"

    def _allows_bytes(self, slot: int, data: bytes) -> bool:
        if not data:
            return True
        text = np.frombuffer(data, np.uint8).astype(np.int32)
        while True:
            code = kernels.read_bytes(
                self._table, text, False, 0, len(text), self._memory, int(self._regions[slot]), False
            )
            if code != kernels.NO_ROOM:
                return bool(code == kernels.OK)
            self._make_room(slot)

    def _dead_end(self, slot: int) -> str:
        where = f" in slot {slot}" if self.size > 1 else ""
        allowed = bytes(byte for byte in range(256) if self._allows_bytes(slot, bytes([byte])))
        return (
            f"no token of vocabulary {self.store.vocabulary.name} can come next{where}, and the text is not complete under grammar "
            f"{self.store.grammar.name}. The grammar goes on with the bytes {allowed[:20]!r}, which no token begins with such that the "
            "rest fits too: use a vocabulary that has them, or a grammar that does not need them"
        )

    def _explain(self, slot: int, token: int) -> str:
        token = self._id(token)
        vocabulary = self.store.vocabulary
        if self._is_allowed(slot, token):
            return f"token {token} ({vocabulary.tokens[token]!r}) may come next"
        code = kernels.read_token(self._table, self._memory, int(self._regions[slot]), token, False)
        try:
            self._refuse(slot, token, code)
        except IllegalTokenError as error:
            return str(error)
