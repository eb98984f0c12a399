"""Several texts under one store: they are read and masked together."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.allowed import AllowedInSlots
from maskwright.decoding.engine.arguments import as_int64, check_words, integers
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.pickles import restored
from maskwright.decoding.held_slots import HeldSlots
from maskwright.decoding.matcher import DEFAULT_ROLLBACK
from maskwright.decoding.matchers import is_composed
from maskwright.maskstore.schema.compiled import SchemaTables

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending

MOST_THREADS = 1024
"""The most threads that a `Batch` takes."""


class Batch(AllowedInSlots, HeldSlots):
    """Several texts, each in its own slot, read and masked together.

    store : what the masks come from, of any kind: for a schema, a pattern or a composition it is
        what `store.batch` makes, which has the same methods. Or a list of stores, one for each
        slot: that is a `MixedBatch`, which works one text after the other.
    size : the number of slots, which are numbered from 0; left out where there is a list.
    max_rollback : the number of tokens of each text that `rollback` can take back.
    n_threads : the number of threads that share a `fill`, 1 to `MOST_THREADS`. The result is the
        same.

    Raises: MaskwrightError and LimitError as `Matcher`; MaskwrightError also if size is no integer
    or less than 1, or n_threads is out of range.

    Like a `Matcher`, a batch is for one calling thread at a time. Its own threads work on one call.
    """

    _what = "this batch"
    _remedy = "store.batch(size)"

    def __new__(
        cls, store: Any, size: int | None = None, max_rollback: int = DEFAULT_ROLLBACK, n_threads: int = 1
    ) -> Any:
        if isinstance(store, list | tuple):
            from maskwright.decoding.mixed_batch import MixedBatch

            if size is not None:
                raise MaskwrightError("a list of stores says how many texts there are: leave size out")
            return MixedBatch(store, max_rollback)
        if size is None:
            raise MaskwrightError(
                "size is missing; expected an integer, as in mw.Batch(store, 8), or a list of stores, one for each text"
            )
        if isinstance(store, SchemaTables):
            from maskwright.decoding.schema.batch import SchemaBatch

            return SchemaBatch(store, size, max_rollback, n_threads)
        if is_composed(store):
            from maskwright.decoding.composition.batch import ComposedBatch

            return ComposedBatch(store, size, max_rollback)
        return super().__new__(cls)

    @overload
    def __init__(self, store: Sequence[Any], *, max_rollback: int = ..., n_threads: int = ...) -> None: ...
    @overload
    def __init__(self, store: Any, size: int, max_rollback: int = ..., n_threads: int = ...) -> None: ...
    def __init__(self, store: Any, size: int = 0, max_rollback: int = DEFAULT_ROLLBACK, n_threads: int = 1) -> None:
        super().__init__(store, size, max_rollback)
        n_threads = as_integer("n_threads", n_threads)
        if not 1 <= n_threads <= MOST_THREADS:
            raise MaskwrightError(f"n_threads is {clip(n_threads)}; expected at least 1, and at most {MOST_THREADS}")
        self._results = np.zeros(self.size, np.int32)
        self._n_threads = min(n_threads, self.size)
        self._pool = ThreadPoolExecutor(self._n_threads) if self._n_threads > 1 else None
        self._process = os.getpid()
        self._held_slots = {}

    def fill(self, bitmasks: Any, slots: Sequence[int] | None = None) -> None:
        """Write the masks of the tokens allowed next, in place.

        bitmasks : (size, ceil(V / 32)) or wider, uint32 or int32; a C-contiguous NumPy array or a
            torch tensor on the CPU. Bit i of word w, the least significant first, is token 32 w +
            i.
        slots : the rows to write; None: all. Rows of texts that have ended become zero.

        Raises: MaskwrightError if the bitmasks have another shape, dtype or device, or a slot is
        out of range; DeadEndError naming the slot in which nothing can come next; LimitError as
        `Matcher.fill`.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            if bitmasks is not self._checked:
                self._take_bitmask(bitmasks, (self.size,))
            results = self._results
            if slots is None:
                results[:] = constants.OK
            else:
                chosen = self._slots(slots)
                results[:] = constants.IDLE
                results[chosen] = constants.OK
            is_done = self._fill_all(results)
            if self._held_slots:
                self._narrow_all(results)
            elif not is_done:
                for slot in np.flatnonzero((results != constants.OK) & (results != constants.IDLE)).tolist():
                    self._finish_fill(slot, int(results[slot]), self._words[slot])
        finally:
            self._is_busy = False

    def _fill_all(self, results: npt.NDArray[np.int32]) -> bool:
        """`fill_batch`, in threads if there are several. Returns whether all results are OK."""
        arrays = self._table, self._memory, self._regions, self._words, results
        if self._pool is None:
            return bool(entries.fill_batch(*arrays, 0, self.size))
        if self._process != os.getpid():  # a fork has the pool, but not its threads
            self._pool, self._process = ThreadPoolExecutor(self._n_threads), os.getpid()
        cuts = [self.size * i // self._n_threads for i in range(self._n_threads + 1)]
        try:
            parts = [
                self._pool.submit(partial(entries.fill_batch, *arrays, begin, end))
                for begin, end in itertools.pairwise(cuts)
            ]
            return all([part.result() for part in parts])
        except BaseException:
            self._end_threads()
            raise

    def _end_threads(self) -> None:
        """Wait until no thread works in this memory, however often someone interrupts.

        The next call may change the memory.
        """
        assert self._pool is not None
        while True:
            try:
                self._pool.shutdown(wait=True, cancel_futures=True)
                self._pool = ThreadPoolExecutor(self._n_threads)
                return
            except KeyboardInterrupt:
                continue

    def advance(self, tokens: Any) -> None:
        """Add a token to each text.

        tokens : (size,) integers; -1 leaves a text alone.

        Raises: MaskwrightError if the tokens have another shape or dtype; IllegalTokenError naming
        the first slot whose token is not allowed; LimitError as `Matcher.fill`. Texts whose tokens
        are not allowed are unchanged; all others have advanced.
        """
        expected = f"{self.size} integers, -1 for texts to leave alone"
        array = integers("tokens", tokens, expected)
        if array.shape != (self.size,):
            raise MaskwrightError(f"tokens have shape {array.shape} and dtype {array.dtype}; expected {expected}")
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            results = self._results
            results[:] = constants.IDLE
            left = self._without_held(array) if self._held_slots else array
            is_done = entries.advance_batch(self._table, self._memory, self._regions, as_int64(left), results)
            if is_done and not self._held_slots:
                return
            failures = [
                (slot, code)
                for slot in np.flatnonzero(results != constants.OK).tolist()
                if (code := self._retry(slot, self._id(int(left[slot])), int(results[slot]))) != constants.OK
            ]
            failures += self._advance_held_slots(array)
            for slot, code in sorted(failures):
                self._refuse(slot, int(array[slot]), code)
        finally:
            self._is_busy = False

    def step(self, tokens: Any, bitmasks: Any, slots: Sequence[int] | None = None) -> None:
        """`advance`, then `fill`.

        tokens, bitmasks, slots : as there.

        Raises: as both. If the bitmasks do not fit, nothing has changed; after an error of
        `advance` no mask is written.
        """
        check_words(bitmasks, (self.size,), self._n_words)
        self.advance(tokens)
        self.fill(bitmasks, slots)

    def advance_bytes(self, slot: int, data: bytes) -> None:
        """Add bytes to a text, as one token that can be taken back.

        Raises: MaskwrightError if the slot is out of range; else as `Matcher.advance_bytes`.
        """
        self._advance_bytes(slot, data)

    def is_allowed(self, slot: int, token: int) -> bool:
        """Whether a token may come next in a text, without making a mask.

        Raises: MaskwrightError if the slot is out of range; else as `Matcher.is_allowed`.
        """
        return self._is_allowed(slot, token)

    def is_accepting(self, slot: int) -> bool:
        """Whether a text is legal as a whole.

        Raises: MaskwrightError if the slot is out of range; LimitError as `Matcher.fill`.
        """
        return self._is_accepting(slot)

    def is_finished(self, slot: int) -> bool:
        """Whether an end-of-text token has ended a text.

        Raises: MaskwrightError if the slot is out of range.
        """
        return self._is_finished(slot)

    def rollback(self, slot: int, n: int = 1) -> None:
        """Take back the last n tokens of a text.

        Raises: MaskwrightError if fewer are remembered (`max_rollback`), or the slot is out of
        range.
        """
        self._rollback(slot, n)

    def reset(self, slot: int) -> None:
        """Put a text back to its start: the slot is free for another one.

        Raises: MaskwrightError if the slot is out of range.
        """
        self._reset(slot)

    def __repr__(self) -> str:
        ended = int(np.count_nonzero(self._memory[self._regions + constants.FINISHED]))
        threads = f", {self._n_threads} threads" if self._n_threads > 1 else ""
        of = f"{self.store.grammar.name} x {self.store.vocabulary.name}"
        return f"<Batch {of}: {self.size} texts, {ended} ended{threads}>"

    def copy(self, source: int, target: int) -> None:
        """Make one slot's text, with its history, a copy of another's (beams).

        source, target : the slot to copy from, and the slot to overwrite.

        Raises: MaskwrightError if a slot is out of range; LimitError if the texts take too much
        memory.
        """
        self._copy(source, target)

    def restrict(self, slot: int, terminal: str, names: Iterable[str | bytes]) -> None:
        """Hold a terminal of one text to some names, see `Matcher.restrict`.

        `copy` copies what is held, `reset` lets it go. Other texts are as they were. Slots that
        hold something are read and masked one after the other, behind the others.

        Raises: as `Matcher.restrict`; MaskwrightError if the slot is out of range.
        """
        self._restrict(slot, terminal, names)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.store, self.size, self.max_rollback, self._n_threads)
        made = restored, (type(self), arguments, self._state())
        return (*made, {slot: held.to_state() for slot, held in self._held_slots.items()}) if self._held_slots else made

    def explain(self, slot: int, token: int) -> str:
        """Why a token may or may not come next in a text, in words.

        Raises: MaskwrightError if the slot is out of range; else as `Matcher.is_allowed`.
        """
        return self._explain(slot, token)

    def shortest_ending(self, slot: int) -> Ending:
        """A shortest legal ending of a text, see `Matcher.shortest_ending`."""
        from maskwright.decoding.endings.ending import shortest_ending

        slot = self._slot(slot)
        return self._alone(slot).shortest_ending() if slot in self._held_slots else shortest_ending(self, slot)

    def min_bytes_left(self, slot: int) -> int:
        """The length of a text's shortest ending, in bytes, see `Matcher.min_bytes_left`."""
        from maskwright.decoding.endings.ending import min_bytes_left

        slot = self._slot(slot)
        return self._alone(slot).min_bytes_left() if slot in self._held_slots else min_bytes_left(self, slot)
