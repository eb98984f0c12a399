"""Matchers: the state of one text, or of a batch of texts, and the masks of the tokens allowed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.dead_end_texts import DeadEndTexts
from maskwright.decoding.endings.ending import (
    Ending,
    min_bytes_left,
    short_ending,
    shortest_ending,
)
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.arguments import as_int64, check_words, integers
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.spelling import Question
from maskwright.decoding.engine.texts import Words, restored
from maskwright.decoding.explain import Explanation, explain_next
from maskwright.maskstore.table.compiled import EngineTable

DEFAULT_ROLLBACK = 256
"""The number of tokens that can be taken back, unless the caller says otherwise."""

MOST_THREADS = 1024
"""The most threads that a `Batch` takes."""


class Matcher(DeadEndTexts):
    """One text under a store: fill a bitmask, advance by a token, and so on.

    `store.matcher()` makes one.

    store : what the masks come from.
    max_rollback : the number of tokens that `rollback` can take back.

    Raises: MaskwrightError if the store is no `Store` of lexing `contextual` or `longest`, or
    max_rollback is no integer or negative; LimitError if so much history takes too much memory.

    A matcher is for one thread at a time. A call while another has not returned is a
    MaskwrightError and changes nothing. (Compiled code lets other threads run, and two calls in one
    text's memory would ruin it.) Threads that take turns may share a matcher; otherwise give each
    thread its own.
    """

    _what = "this matcher"
    _remedy = "store.matcher() or fork()"

    def __init__(self, store: EngineTable, max_rollback: int = DEFAULT_ROLLBACK) -> None:
        super().__init__(store, 1, max_rollback)
        self._words: Words = np.zeros(0, np.int32)

    def fill(self, bitmask: Any) -> None:
        """Write the mask of the tokens allowed next, in place: zero after the end of the text.

        bitmask : (ceil(V / 32),) or longer (padded vocabularies), uint32 or int32; a contiguous
            NumPy array or a torch tensor on the CPU. Bit i of word w, the least significant first,
            is token 32 w + i. End-of-text tokens are allowed if the text is legal as a whole.

        Raises: MaskwrightError if the bitmask has another shape, dtype or device; DeadEndError if
        nothing can come next; LimitError if the text has too many parses, is nested too deeply or
        takes too much memory.
        """
        # PERF: this method and `advance` do themselves what `Alone` does
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            # PERF: an array is checked only when it is new, since a decoder passes the same one at
            # each step
            if bitmask is not self._checked:
                self._words = check_words(bitmask, (), self._n_words)
                self._checked = bitmask
            code = entries.fill(self._table, self._memory, 0, self._words)
            if code:
                self._finish_fill(0, code, self._words)
        finally:
            self._is_busy = False

    def advance(self, token: int) -> None:
        """Add a token to the text.

        token : an id; an end-of-text token ends the text.

        Raises: IllegalTokenError if the token is not allowed or no integer; LimitError as `fill`.
        The state is unchanged then.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            number = token if token.__class__ is int and -1 <= token < 1 << 31 else self._id(token)
            code = entries.read_token(self._table, self._memory, 0, number, True)
            if code:
                code = self._retry(0, number, code)
                if code:
                    self._refuse(0, token, code)
        finally:
            self._is_busy = False

    def step(self, token: int, bitmask: Any) -> None:
        """`advance`, then `fill`, in one call. token, bitmask : as there.

        Raises: as both. After an error of `advance` nothing has changed; after one of `fill` the
        token has been added.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            if bitmask is not self._checked:
                self._words = check_words(bitmask, (), self._n_words)
                self._checked = bitmask
            number = token if token.__class__ is int and -1 <= token < 1 << 31 else self._id(token)
            code = entries.step(self._table, self._memory, 0, number, self._words)
            if code:
                self._finish_step(token, number, code)
        finally:
            self._is_busy = False

    def _finish_step(self, token: int, number: int, code: int) -> None:
        """Do what compiled code left to be done in a `step`, or raise its error."""
        was_fill, code = code & 1, code >> 1
        if not was_fill:
            code = self._retry(0, number, code)
            if code:
                self._refuse(0, token, code)
            self._fill(0, self._words)
        else:
            self._finish_fill(0, code, self._words)

    def replay(self, tokens: Any) -> int:
        """Add tokens to the text as long as the masks have them. Returns how many were added.

        This is what a decoder would do, in one compiled call: at each token the whole mask is
        written, and the token is looked up in it. It stops at the first token that the mask lacks,
        or once the text has ended.

        tokens : (n,) integers.

        Raises: MaskwrightError if the tokens have another shape or dtype; IllegalTokenError if the
        vocabulary lacks one of them (nothing is read then); DeadEndError if nothing can come next;
        LimitError as `fill`. After the last two errors the tokens before stay added.
        """
        array = integers("tokens", tokens, "(n,) integers")
        if array.ndim != 1:
            raise MaskwrightError(f"tokens have shape {array.shape} and dtype {array.dtype}; expected (n,) integers")
        with Alone(self):
            return self._replay(array)

    def _replay(self, array: npt.NDArray[Any]) -> int:
        ids = as_int64(array)
        wrong = np.flatnonzero((ids < 0) | (ids >= self.store.vocabulary.size))
        if len(wrong):
            self._refuse(0, int(array[wrong[0]]), constants.OUT_OF_RANGE)
        words = np.zeros(self._n_words, np.int32)
        result = np.zeros(2, np.int64)
        at = 0
        while True:
            at = int(entries.replay(self._table, self._memory, ids, at, words, result))
            code, was_fill = result.tolist()
            if code in (constants.OK, constants.ILLEGAL):
                return at
            if was_fill:
                if code == constants.AFTER_END:
                    return at
                self._finish_fill(0, code, words)
            else:
                code = self._retry(0, int(ids[at]), code)
                if code != constants.OK:
                    self._refuse(0, int(ids[at]), code)
                at += 1

    def advance_bytes(self, data: bytes) -> None:
        """Add bytes to the text, as one token that can be taken back.

        data : any bytes; empty bytes change nothing.

        Raises: MaskwrightError if they are no bytes; IllegalTokenError if they are illegal here;
        LimitError as `fill`. The state is unchanged then.
        """
        self._advance_bytes(0, data)

    def is_allowed(self, token: int) -> bool:
        """Whether a token may come next, without making a mask.

        token : an id. Ids that the vocabulary lacks may not come.

        Raises: IllegalTokenError if it is no integer; LimitError as `fill`.
        """
        return self._is_allowed(0, token)

    def is_accepting(self) -> bool:
        """Whether the text is legal as a whole. Raises: LimitError as `fill`."""
        return self._is_accepting(0)

    def is_finished(self) -> bool:
        """Whether an end-of-text token has been read."""
        return self._is_finished(0)

    if not TYPE_CHECKING:
        # `is_finished` was a property in the past
        is_finished = Question(is_finished)

    def rollback(self, n: int = 1) -> None:
        """Take back the last n tokens.

        Raises: MaskwrightError if n is no integer or negative, or fewer tokens are remembered
        (`max_rollback`).
        """
        self._rollback(0, n)

    def reset(self) -> None:
        """Put the text back to its start, with no history."""
        self._reset(0)

    def __repr__(self) -> str:
        kept = int(self._memory[constants.N_HISTORY])
        state = "ended" if self._memory[self._regions[0] + constants.FINISHED] else "open"
        of = f"{self.store.grammar.name} x {self.store.vocabulary.name}"
        return f"<Matcher {of}: {state}, {kept} of {self.max_rollback} tokens to roll back>"

    def fork(self) -> Matcher:
        """A second matcher in the same state, with the same history.

        Cost: O(the memory of the text: its stack, its history, and room for more of both).
        """
        other = Matcher(self.store, self.max_rollback)
        with Alone(self):
            entries.collect(self._table, self._memory, 0, np.empty(int(self._memory[constants.CAPACITY]), np.int32))
            other._memory = self._memory.copy()
            other._regions = self._regions.copy()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), (self.store, self.max_rollback), self._state())

    __copy__ = fork

    def explain(self, token: int) -> Explanation:
        """Why a token may or may not come next, in words, for people.

        Raises: as `explain.explain_next`.

        Cost: slow; 2 s for the first call.
        """
        return explain_next(self, token)

    def shortest_ending(self) -> Ending:
        """A shortest legal ending of the text so far, as bytes and as tokens.

        The end-of-text token is not among them.

        Raises: DeadEndError if the vocabulary cannot spell any ending; LimitError if the text is
        too ambiguous, or the search would take too long or too much memory. `short_ending` is for
        such texts.
        """
        return shortest_ending(self)

    def short_ending(self) -> Ending:
        """A shortest ending if it is found soon, else one that is hardly longer.

        It is for callers that need some ending in time. `Ending.is_shortest` says which it is.

        Raises: DeadEndError if the vocabulary cannot spell any ending; LimitError if none is found.
        """
        return short_ending(self)

    def min_bytes_left(self) -> int:
        """The length of the shortest ending, in bytes: what a completion budget must leave.

        Raises: DeadEndError if no bytes complete the text; LimitError as `shortest_ending`.
        """
        return min_bytes_left(self)


class Batch(DeadEndTexts):
    """Several texts, each in its own slot, read and masked together.

    store : what the masks come from.
    size : the number of slots, which are numbered from 0.
    max_rollback : the number of tokens of each text that `rollback` can take back.
    n_threads : the number of threads that share a `fill`, 1 to `MOST_THREADS`. The result is the
        same.

    Raises: MaskwrightError and LimitError as `Matcher`; MaskwrightError also if size is no integer
    or less than 1, or n_threads is out of range.

    Like a `Matcher`, a batch is for one calling thread at a time. Its own threads work on one call.
    """

    _what = "this batch"
    _remedy = "store.batch(size)"

    def __init__(self, store: EngineTable, size: int, max_rollback: int = DEFAULT_ROLLBACK, n_threads: int = 1) -> None:
        super().__init__(store, size, max_rollback)
        n_threads = as_integer("n_threads", n_threads)
        if not 1 <= n_threads <= MOST_THREADS:
            raise MaskwrightError(f"n_threads is {clip(n_threads)}; expected at least 1, and at most {MOST_THREADS}")
        self._results = np.zeros(self.size, np.int32)
        self._words: Words = np.zeros((0, 0), np.int32)
        self._n_threads = min(n_threads, self.size)
        self._pool = ThreadPoolExecutor(self._n_threads) if self._n_threads > 1 else None
        self._process = os.getpid()

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
                self._words = check_words(bitmasks, (self.size,), self._n_words)
                self._checked = bitmasks
            results = self._results
            if slots is None:
                results[:] = constants.OK
            else:
                chosen = self._slots(slots)
                results[:] = constants.IDLE
                results[chosen] = constants.OK
            if not self._fill_all(results):
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
            if entries.advance_batch(self._table, self._memory, self._regions, as_int64(array), results):
                return
            failures = [
                (slot, code)
                for slot in np.flatnonzero(results != constants.OK).tolist()
                if (code := self._retry(slot, self._id(int(array[slot])), int(results[slot]))) != constants.OK
            ]
            for slot, code in failures:
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

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.store, self.size, self.max_rollback, self._n_threads)
        return restored, (type(self), arguments, self._state())

    def explain(self, slot: int, token: int) -> str:
        """Why a token may or may not come next in a text, in words.

        Raises: MaskwrightError if the slot is out of range; else as `Matcher.is_allowed`.
        """
        return self._explain(slot, token)

    def shortest_ending(self, slot: int) -> Ending:
        """A shortest legal ending of a text, see `Matcher.shortest_ending`."""
        return shortest_ending(self, self._slot(slot))

    def min_bytes_left(self, slot: int) -> int:
        """The length of a text's shortest ending, in bytes, see `Matcher.min_bytes_left`."""
        return min_bytes_left(self, self._slot(slot))
