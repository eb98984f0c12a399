"""Several texts under one schema or pattern: they are read and masked together."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from maskwright.analysis.arguments import as_integer, clip
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.decoding.engine.allowed import AllowedInSlots
from maskwright.decoding.engine.alone import Alone, Shared
from maskwright.decoding.engine.arguments import NO_BITMASK, as_int64, check_words, integers
from maskwright.decoding.names.refused import NoNamesInSchemas
from maskwright.decoding.schema.matcher import DEFAULT_ROLLBACK, SchemaMatcher
from maskwright.decoding.schema.workspace import make_workspace, shared_workspace
from maskwright.maskstore.schema.compiled import SchemaTables

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending

MOST_TEXTS = 1 << 16
"""The most texts of a batch; each takes 49 kB or more."""
MOST_THREADS = 1024
"""The most threads that a batch takes."""


class SchemaBatch(AllowedInSlots, NoNamesInSchemas, Shared):
    """Several texts under a schema or pattern, each in its own slot. It has the methods of `Batch`.

    store : what the masks come from.
    size : the number of slots, which are numbered from 0.
    max_rollback : the number of tokens of each text that `rollback` can take back.
    n_threads : the number of threads that share a `fill`, 1 to `MOST_THREADS`. Each has its own
        workspace, and keeps its own masks: the result is the same. Masks that have to be made are
        made at once; others are looked up one after the other, in a microsecond each.

    Raises: MaskwrightError and LimitError as `SchemaMatcher`; MaskwrightError also if size is no
    integer or less than 1, or n_threads is out of range.
    """

    _what = "this batch"
    _remedy = "store.batch(size)"

    def __init__(
        self, store: SchemaTables, size: int, max_rollback: int = DEFAULT_ROLLBACK, n_threads: int = 1
    ) -> None:
        size, n_threads = as_integer("size", size), as_integer("n_threads", n_threads)
        if size < 1:
            raise MaskwrightError(f"size is {clip(size)}; expected at least 1")
        if size > MOST_TEXTS:
            raise LimitError(
                f"a batch of {clip(size)} texts takes more than {MOST_TEXTS * 49 // 1000:,} MB; make smaller batches"
            )
        if not 1 <= n_threads <= MOST_THREADS:
            raise MaskwrightError(f"n_threads is {clip(n_threads)}; expected at least 1, and at most {MOST_THREADS}")
        self.store, self.size, self.max_rollback = store, size, max_rollback
        self._n_threads = min(n_threads, size)
        first = SchemaMatcher(store, max_rollback)
        shared = shared_workspace(store.vocabulary, store.escapes, store.era)
        spaces = [shared, *(make_workspace(shared.voc) for _ in range(self._n_threads - 1))]
        self._cuts = [size * i // self._n_threads for i in range(self._n_threads + 1)]
        self._texts = [
            SchemaMatcher(store, max_rollback, space)
            for space, (begin, end) in zip(spaces, itertools.pairwise(self._cuts), strict=True)
            for _ in range(begin, end)
        ]
        self._texts[0] = first
        self._pool = ThreadPoolExecutor(self._n_threads) if self._n_threads > 1 else None
        self._process = os.getpid()
        self._checked = NO_BITMASK
        self._rows: list[Any] = []

    def fill(self, bitmasks: Any, slots: Sequence[int] | None = None) -> None:
        """Write the masks of the tokens allowed next, in place.

        bitmasks : (size, ceil(V / 32)) or wider, uint32 or int32; a C-contiguous NumPy array or a
            torch tensor on the CPU.
        slots : the rows to write; None: all. Rows of texts that have ended become zero.

        Raises: MaskwrightError if the bitmasks have another shape, dtype or device, or a slot is
        out of range; DeadEndError where nothing can come next; LimitError as `SchemaMatcher.fill`.
        """
        with Alone(self):
            chosen = range(self.size) if slots is None else self._slots(slots)
            if bitmasks is not self._checked:
                self._rows = list(check_words(bitmasks, (self.size,), self.store.n_words))
                self._checked = bitmasks
            if self._pool is None:
                self._fill_some(chosen)
                return
            if self._process != os.getpid():  # a fork has the pool, but not its threads
                self._pool, self._process = ThreadPoolExecutor(self._n_threads), os.getpid()
            parts = [
                self._pool.submit(self._fill_some, [slot for slot in chosen if begin <= slot < end])
                for begin, end in itertools.pairwise(self._cuts)
            ]
            errors = [error for part in parts if (error := part.exception()) is not None]
            if errors:
                raise errors[0]

    def _fill_some(self, slots: Sequence[int]) -> None:
        rows, texts = self._rows, self._texts
        for slot in slots:
            texts[slot].fill(rows[slot])

    def _slot(self, slot: int) -> int:
        slot = as_integer("a slot", slot)
        if not 0 <= slot < self.size:
            raise MaskwrightError(f"slot {clip(slot)} is out of range: the batch has the slots 0 to {self.size - 1}")
        return slot

    def _slots(self, slots: Sequence[int]) -> list[int]:
        try:
            chosen = list(slots)
        except TypeError:
            raise MaskwrightError(f"slots is {clip(slots)}; expected a list of slot numbers") from None
        return [self._slot(slot) for slot in chosen]

    def advance(self, tokens: Any) -> None:
        """Add a token to each text.

        tokens : (size,) integers; -1 leaves a text alone.

        Raises: MaskwrightError if the tokens have another shape or dtype; IllegalTokenError for the
        first slot whose token is not allowed; LimitError as `SchemaMatcher.fill`. Texts
        whose tokens are not allowed are unchanged; all others have advanced.
        """
        expected = f"{self.size} integers, -1 for texts to leave alone"
        array = integers("tokens", tokens, expected)
        if array.shape != (self.size,):
            raise MaskwrightError(f"tokens have shape {array.shape} and dtype {array.dtype}; expected {expected}")
        with Alone(self):
            wrong: MaskwrightError | None = None
            for slot, token in enumerate(as_int64(array).tolist()):
                if token == -1:
                    continue
                try:
                    self._texts[slot].advance(token)
                except MaskwrightError as error:
                    wrong = wrong or type(error)(f"slot {slot}: {error}")
            if wrong is not None:
                raise wrong

    def step(self, tokens: Any, bitmasks: Any, slots: Sequence[int] | None = None) -> None:
        """`advance`, then `fill`. tokens, bitmasks, slots : as there.

        Raises: as both. If the bitmasks do not fit, nothing has changed.
        """
        check_words(bitmasks, (self.size,), self.store.n_words)
        self.advance(tokens)
        self.fill(bitmasks, slots)

    def advance_bytes(self, slot: int, data: bytes) -> None:
        """Add bytes to a text. Raises: as `SchemaMatcher.advance_bytes`; see `Batch`."""
        self._texts[self._slot(slot)].advance_bytes(data)

    def is_allowed(self, slot: int, token: int) -> bool:
        """Whether a token may come next in a text. Raises: as `SchemaMatcher.is_allowed`."""
        return self._texts[self._slot(slot)].is_allowed(token)

    def is_accepting(self, slot: int) -> bool:
        """Whether a text is legal as a whole."""
        return self._texts[self._slot(slot)].is_accepting()

    def is_finished(self, slot: int) -> bool:
        """Whether an end-of-text token has ended a text."""
        return self._texts[self._slot(slot)].is_finished()

    def rollback(self, slot: int, n: int = 1) -> None:
        """Take back the last n tokens of a text. Raises: as `SchemaMatcher.rollback`."""
        self._texts[self._slot(slot)].rollback(n)

    def reset(self, slot: int) -> None:
        """Put a text back to its start: the slot is free for another one."""
        self._texts[self._slot(slot)].reset()

    def copy(self, source: int, target: int) -> None:
        """Make one slot's text, with its history, a copy of another's (beams).

        Raises: MaskwrightError if a slot is out of range.
        """
        with Alone(self):
            source, target = self._slot(source), self._slot(target)
            if source != target:
                self._texts[target].become(self._texts[source])

    def explain(self, slot: int, token: int) -> str:
        """Why a token may or may not come next in a text, in words."""
        return self._texts[self._slot(slot)].why(token)

    def shortest_ending(self, slot: int) -> Ending:
        """A shortest legal ending of a text, see `SchemaMatcher.shortest_ending`."""
        return self._texts[self._slot(slot)].shortest_ending()

    def min_bytes_left(self, slot: int) -> int:
        """The length of a text's shortest ending, in bytes."""
        return self._texts[self._slot(slot)].min_bytes_left()

    def __reduce__(self) -> tuple[Any, ...]:
        with Alone(self):
            said = [(text.said_so_far(), text.remembered()) for text in self._texts]
            return _restored, (type(self), (self.store, self.size, self.max_rollback, self._n_threads), said)

    def __repr__(self) -> str:
        ended = sum(text.is_finished() for text in self._texts)
        threads = f", {self._n_threads} threads" if self._n_threads > 1 else ""
        return f"<Batch {self.store.name} x {self.store.vocabulary.name}: {self.size} texts, {ended} ended{threads}>"


def _restored(
    cls: type[SchemaBatch], arguments: tuple[Any, ...], said: list[tuple[list[int | bytes], int]]
) -> SchemaBatch:
    """A pickled batch: the texts are read again."""
    batch = cls(*arguments)
    for text, (each, remembered) in zip(batch._texts, said, strict=True):
        text.read_again(each, remembered)
    return batch
