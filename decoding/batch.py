"""Several texts: they are read and masked together."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Shared, alone
from maskwright.decoding.engine.arguments import NO_BITMASK, as_int64, as_rollback, check_words, integers
from maskwright.decoding.engines import MOST_TEXTS, Opened, check_tables, open_text, open_texts
from maskwright.decoding.matcher import DEFAULT_ROLLBACK, Matcher

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending

MOST_THREADS = 1024
"""The most threads that a `Batch` takes."""

_T = TypeVar("_T")
_Failure = tuple[int, MaskwrightError]
"""A slot, and what went wrong there."""


class Batch(Shared):
    """Several texts, each in its own slot, read and masked together.

    store : what the masks come from; or a list of stores for one vocabulary, of any kinds, one for
        each slot. Such a batch works one text after the other.
    size : the number of slots, which are numbered from 0; left out where there is a list.
    max_rollback : the number of tokens of each text that `rollback` can take back.
    n_threads : the number of threads that share a `fill`, 1 to `MOST_THREADS`. The result is the
        same. Texts of a schema or pattern have masks of their own for each thread: masks that have
        to be made are made at once, others are looked up in a microsecond each. Texts of a
        composition, or of several stores, are filled by one thread.

    Methods of one text take its slot, and do what those of `Matcher` do. Their errors name the
    slot; one that is out of range is a MaskwrightError.

    Raises: MaskwrightError and LimitError as `Matcher`; MaskwrightError also if size is no integer
    or less than 1, n_threads is out of range, or a list is empty; VocabularyError if its
    vocabularies differ; LimitError for more texts than the engine takes (`engines.ENGINES`).

    Like a `Matcher`, a batch is for one calling thread at a time. Its own threads work on one call.
    """

    _what = "this batch"
    _remedy = "store.batch(size)"

    def __init__(
        self, store: Any, size: int | None = None, max_rollback: int = DEFAULT_ROLLBACK, n_threads: int = 1
    ) -> None:
        max_rollback, n_threads = as_rollback(max_rollback), as_integer("n_threads", n_threads)
        if not 1 <= n_threads <= MOST_THREADS:
            raise MaskwrightError(f"n_threads is {clip(n_threads)}; expected at least 1, and at most {MOST_THREADS}")
        is_mixed = isinstance(store, list | tuple)
        if is_mixed:
            if size is not None:
                raise MaskwrightError("a list of stores says how many texts there are: leave size out")
            check_tables(store)
            if len(store) > MOST_TEXTS:
                raise LimitError(f"a batch of {len(store):,} texts is more than {MOST_TEXTS:,}; make smaller batches")
            states, self.many, n_threads = Opened([open_text(each, max_rollback) for each in store])
        else:
            if size is None:
                raise MaskwrightError(
                    "size is missing; expected an integer, as in mw.Batch(store, 8), or a list of stores, one for each text"
                )
            size = as_integer("size", size)
            if size < 1:
                raise MaskwrightError(f"size is {clip(size)}; expected at least 1")
            states, self.many, n_threads = open_texts(store, size, max_rollback, min(n_threads, size))
        self._states, self._texts = states, [Matcher.of(state) for state in states]
        self.store, self._is_mixed = (store[0] if is_mixed else store), is_mixed
        self.size, self.max_rollback, self._n_threads = len(states), max_rollback, n_threads
        self._cuts = [self.size * i // n_threads for i in range(n_threads + 1)]
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        self._process = os.getpid()
        self._apart: set[int] = set()
        """Slots that may be apart (`TextState.is_apart`)."""
        self._results, self._n_words = np.zeros(self.size, np.int32), self.store.n_words
        self._checked: Any = NO_BITMASK
        self._words = np.zeros((0, 0), np.int32)
        self._rows: list[npt.NDArray[np.int32]] | None = None

    @property
    def stores(self) -> tuple[Any, ...]:
        """The store of each slot."""
        return tuple(text.store for text in self._texts)

    # -- all texts

    def fill(self, bitmasks: Any, slots: Sequence[int] | None = None) -> None:
        """Write the masks of the tokens allowed next, in place.

        bitmasks : (size, ceil(V / 32)) or wider, uint32 or int32; a C-contiguous NumPy array or a
            torch tensor on the CPU. Bit i of word w, the least significant first, is token 32 w +
            i.
        slots : the rows to write; None: all. Rows of texts that have ended become zero.

        Raises: MaskwrightError if the bitmasks have another shape, dtype or device, or a slot is
        out of range; DeadEndError naming the first slot in which nothing can come next; LimitError
        as `Matcher.fill`. All other rows are written.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            if bitmasks is not self._checked:
                self._checked = NO_BITMASK  # an interrupted call leaves none, so the next one checks again
                self._words, self._rows = check_words(bitmasks, (self.size,), self._n_words), None
                self._checked = bitmasks
            chosen = None if slots is None else self._slots(slots)
            left = self._fill_many(chosen) if self.many is not None else range(self.size) if chosen is None else chosen
            if not left:
                return
            # PERF: views that stay the same, since a matcher checks each new one
            self._rows = self._rows or list(self._words)
            if self._pool is None or self.many is not None:
                self._raise([self._fill_each(left, 0, self.size)])
            else:
                self._raise(self._in_threads(partial(self._fill_each, left)))
        finally:
            self._is_busy = False

    def _fill_many(self, chosen: list[int] | None) -> Sequence[int]:
        """Write the rows that the engine can, all at once. Returns the slots of the others."""
        assert self.many is not None
        many, results, words = self.many, self._results, self._words
        results[:] = constants.OK if chosen is None else constants.IDLE
        if chosen is not None:
            results[chosen] = constants.OK
        apart: list[int] = []
        if self._apart:
            apart = [slot for slot in self._held_apart() if results[slot] == constants.OK]
            results[apart] = constants.IDLE
        many.renew()
        if self._pool is None:
            is_done = many.fill_many(words, results, 0, self.size)
        else:
            is_done = all(self._in_threads(partial(many.fill_many, words, results)))
        if is_done:
            return apart
        words[results == constants.AFTER_END] = 0
        failed = (results != constants.OK) & (results != constants.IDLE) & (results != constants.AFTER_END)
        return sorted([*apart, *np.flatnonzero(failed).tolist()])

    def _fill_each(self, slots: Sequence[int], begin: int, end: int) -> _Failure | None:
        """Write rows one after the other, from slot `begin` to `end`. Returns the first failure."""
        assert self._rows is not None
        rows, texts, failure = self._rows, self._texts, None
        for slot in slots:
            if begin <= slot < end:
                try:
                    texts[slot].fill(rows[slot])
                except MaskwrightError as error:
                    failure = failure if failure and failure[0] <= slot else (slot, error)
        return failure

    def _held_apart(self) -> list[int]:
        """The slots that hold names, or middles, in order."""
        if self._apart:
            self._apart = {slot for slot in self._apart if self._texts[slot].text.is_apart}
        return sorted(self._apart)

    def _in_threads(self, work: Callable[[int, int], _T]) -> list[_T]:
        """What some work gives for each run of slots, in threads."""
        assert self._pool is not None
        if self._process != os.getpid():  # a fork has the pool, but not its threads
            self._pool, self._process = ThreadPoolExecutor(self._n_threads), os.getpid()
        try:
            parts = [self._pool.submit(work, begin, end) for begin, end in itertools.pairwise(self._cuts)]
            return [part.result() for part in parts]
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

    @staticmethod
    def _raise(failures: Iterable[_Failure | None]) -> None:
        """Raise the error of the first slot, if there is one."""
        found = min((failure for failure in failures if failure is not None), key=lambda one: one[0], default=None)
        if found is not None:
            _refuse(*found)

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
            left = range(self.size) if self.many is None else self._advance_many(as_int64(array))
            if not left:
                return
            failures: list[_Failure] = []
            wanted = array.tolist()
            for slot in left:
                if (token := wanted[slot]) != -1:
                    try:
                        self._texts[slot].advance(token)
                    except MaskwrightError as error:
                        failures.append((slot, error))
            self._raise(failures)
        finally:
            self._is_busy = False

    def _advance_many(self, tokens: npt.NDArray[np.int64]) -> Sequence[int]:
        """Add the tokens that the engine can, all at once. Returns the slots of the others."""
        assert self.many is not None
        apart, results = self._held_apart() if self._apart else [], self._results
        if apart:
            tokens = tokens.copy()
            tokens[apart] = -1
        results.fill(constants.IDLE)
        if self.many.advance_many(tokens, results):
            return apart
        return sorted([*apart, *np.flatnonzero(results != constants.OK).tolist()])

    def step(self, tokens: Any, bitmasks: Any, slots: Sequence[int] | None = None) -> None:
        """`advance`, then `fill`.

        tokens, bitmasks, slots : as there.

        Raises: as both. If the bitmasks do not fit, nothing has changed; after an error of
        `advance` no mask is written.
        """
        check_words(bitmasks, (self.size,), self._n_words)
        self.advance(tokens)
        self.fill(bitmasks, slots)

    # -- one text

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

    def _do(self, slot: int, method: Callable[..., _T], *arguments: Any) -> _T:
        """What a matcher's method gives for a text. Errors name the slot."""
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            text = self._texts[self._slot(slot)]
            try:
                return method(text, *arguments)
            except MaskwrightError as error:
                _refuse(slot, error)
        finally:
            self._is_busy = False

    def advance_bytes(self, slot: int, data: bytes) -> None:
        """Add bytes to a text, as one token that can be taken back."""
        self._do(slot, Matcher.advance_bytes, data)

    def is_allowed(self, slot: int, token: int) -> bool:
        """Whether a token may come next in a text, without making a mask."""
        return self._do(slot, Matcher.is_allowed, token)

    @overload
    def allowed_tokens(self, slot: int, as_bytes: Literal[False] = False) -> list[int]: ...
    @overload
    def allowed_tokens(self, slot: int, as_bytes: Literal[True]) -> list[bytes]: ...
    def allowed_tokens(self, slot: int, as_bytes: bool = False) -> list[int] | list[bytes]:
        """The tokens allowed next in a text, as `Matcher.allowed_tokens` has them."""
        found: list[int] | list[bytes] = self._do(slot, Matcher.allowed_tokens, as_bytes)
        return found

    def is_accepting(self, slot: int) -> bool:
        """Whether a text is legal as a whole."""
        return self._do(slot, Matcher.is_accepting)

    def is_finished(self, slot: int) -> bool:
        """Whether an end-of-text token has ended a text."""
        return self._do(slot, Matcher.is_finished)

    def rollback(self, slot: int, n: int = 1) -> None:
        """Take back the last n tokens of a text."""
        self._do(slot, Matcher.rollback, n)

    def reset(self, slot: int) -> None:
        """Put a text back to its start: the slot is free for another one."""
        self._do(slot, Matcher.reset)

    @alone
    def copy(self, source: int, target: int) -> None:
        """Make one slot's text, with its history and its store, a copy of another's (beams).

        Raises: as `put`.
        """
        self._put(self._slot(target), self._texts[self._slot(source)])

    @alone
    def put(self, slot: int, matcher: Matcher) -> None:
        """Make a slot's text, with its history, a copy of a matcher's, such as one of a middle.

        Middles are read and masked one after the other, behind the other texts; `reset` puts one
        back to its start.

        Raises: MaskwrightError if the slot is out of range, or the matcher's store is none of the
        batch's; LimitError if the texts take too much memory.
        """
        if not any(matcher.store is store for store in self.stores):
            raise MaskwrightError("a slot takes over texts of the batch's stores, and this matcher is of another one")
        self._put(self._slot(slot), matcher)

    def _put(self, slot: int, other: Matcher) -> None:
        self._apart.add(slot)  # as in `restrict`
        text = self._texts[slot]
        if text.store is not other.store:
            self._texts[slot] = other.fork()
        elif text is not other:
            text._use(self._states[slot])  # what the engine works on, in place of a middle
            text.become(other)

    def restrict(self, slot: int, terminal: str, names: Iterable[str | bytes]) -> None:
        """Hold a terminal of one text to some names, see `Matcher.restrict`.

        `copy` copies what is held, `reset` lets it go. Other texts are as they were. Slots that
        hold something are read and masked one after the other, behind the others.

        Raises: as `Matcher.restrict`; MaskwrightError if the slot is out of range.
        """
        self._apart.add(self._slot(slot))  # first, whoever interrupts; those that hold nothing are left out again
        self._do(slot, Matcher.restrict, terminal, names)

    @property
    def holds_names(self) -> bool:
        """Whether a terminal of some text is held, now or in its history, or it is a middle."""
        return bool(self._held_apart())

    @property
    def n_bytes(self) -> int:
        """The bytes of memory that the texts' states take now, of what the engines count."""
        return self.many.n_bytes if self.many is not None else sum(text.n_bytes for text in self._texts)

    def explain(self, slot: int, token: int) -> str:
        """Why a token may or may not come next in a text, in words."""
        return self._do(slot, Matcher.why, token)

    def shortest_ending(self, slot: int) -> Ending:
        """A shortest legal ending of a text, see `Matcher.shortest_ending`."""
        return self._do(slot, Matcher.shortest_ending)

    def min_bytes_left(self, slot: int) -> int:
        """The length of a text's shortest ending, in bytes, see `Matcher.min_bytes_left`."""
        return self._do(slot, Matcher.min_bytes_left)

    @alone
    def __reduce__(self) -> tuple[Any, ...]:
        of = (list(self.stores), None) if self._is_mixed else (self.store, self.size)
        states = [text.text.dump() for text in self._texts]
        return _restored, (type(self), (*of, self.max_rollback, self._n_threads), states)

    def __repr__(self) -> str:
        ended = sum(text.is_finished() for text in self._texts)
        threads = f", {self._n_threads} threads" if self._n_threads > 1 else ""
        names = ", ".join(dict.fromkeys(store.name for store in self.stores))
        return f"<Batch {names} x {self.store.vocabulary.name}: {self.size} texts, {ended} ended{threads}>"


def _refuse(slot: int, error: MaskwrightError) -> NoReturn:
    raise type(error)(f"slot {slot}: {error}") from error


def _restored(cls: type[Batch], arguments: tuple[Any, ...], states: list[Any]) -> Batch:
    """A pickled batch."""
    batch = cls(*arguments)
    for slot, (text, state) in enumerate(zip(batch._texts, states, strict=True)):
        text._use(text.text.load(state))
        if text.text.is_apart:
            batch._apart.add(slot)
    return batch
