"""Closing a store's automaton in the background, while the store is in use.

The store begins with the table of the open automaton, whose masks are the same and take longer. A
thread closes the automaton. Then the store has the closed table, and matchers take it up at their
next mask.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from maskwright.analysis.errors import LimitError
from maskwright.analysis.locks import new_lock

if TYPE_CHECKING:
    from maskwright.maskstore.table.compiled import EngineTable, Progress
    from maskwright.stores.base import FiledStore

    Close: TypeAlias = Callable[[Progress], EngineTable]
    """What closes an automaton, see `prepare_engine_table`."""
    Keep: TypeAlias = Callable[[EngineTable | FiledStore], None]
    """What is to be done with a finished store, as to write it to a file."""

_logger = logging.getLogger(__name__)


class _AbandonedError(Exception):
    """Nobody needs the table any more."""


class Closing:
    """One store's closing: a thread that makes the closed table and hands it to the store.

    is_done : whether the store has its table for good. It may yet have to be kept.
    """

    def __init__(self, store: Any, close: Close, keep: Keep | None = None) -> None:
        """Begin.

        store : a `Store`. If nobody refers to it any more, the work is given up.
        close : makes the table. It must not refer to the store.
        keep : called in the thread with the closed table.
        """
        self.is_done = False
        self._error: BaseException | None = None
        self._is_abandoned = False
        self._step: tuple[str, int, int] | None = None
        self._store = weakref.ref(store)
        self._close: Close | None = close
        self._keep = keep
        self._process = -1
        # no Thread.join: in some versions of Python an interrupted one takes the thread for ended
        self._has_ended = threading.Event()
        try:
            self._begin()
        except RuntimeError as error:  # the process has as many threads as it may
            _logger.warning("the store is open until close() is called: %s", error)

    def _begin(self) -> None:
        """Start the thread in this process."""
        has_ended = threading.Event()
        threading.Thread(target=self._run, args=(has_ended,), name="maskwright-closing", daemon=True).start()
        # in this order: who finds the process finds the thread's event
        self._has_ended, self._process = has_ended, os.getpid()
        _closings.add(self)

    @property
    def is_at_work(self) -> bool:
        """Whether this process has a thread that has not come to the store's table for good."""
        return not self.is_done and self._process == os.getpid()

    def wait(self, progress: Progress | None = None) -> None:
        """Wait until the store has its table for good, and it was kept.

        progress : called in this thread with what the closing is at.

        Raises: what the closing raised, as MemoryError. The store stays open then.
        """
        if self._process != os.getpid():
            with _begin_lock:
                if self._process != os.getpid() and not self.is_done:
                    self._begin()  # a fork has what the thread left, but not the thread
            if self._process != os.getpid():
                return
        while not self._has_ended.wait(0.1):
            if progress is not None and self._step is not None:
                progress(*self._step)
        if self._error is not None:
            raise self._error.with_traceback(None)

    def _run(self, has_ended: threading.Event) -> None:
        close = self._close
        try:
            if close is None:
                return  # another thread of a fork has done it
            found = close(self._note)
            store = self._store()
            if store is not None:
                store._replace_table(found)
                del store
            self.is_done = True
            if self._keep is not None:
                self._keep(found)
        except (_AbandonedError, LimitError):
            pass  # an automaton past a limit stays open
        except BaseException as error:
            # without its traceback, which would hold all tables that the closing had
            self._error = error.with_traceback(None)
            _logger.warning("a store could not be closed and stays open: %r", error)
        finally:
            self.is_done = True
            self._close = None
            has_ended.set()

    def _note(self, name: str, done: int, total: int) -> None:
        """The progress of the closing."""
        if self._is_abandoned or self._store() is None:
            raise _AbandonedError
        self._step = name, done, total

    def abandon(self) -> None:
        """End the thread soon. The store stays open."""
        self._is_abandoned = True


_begin_lock = new_lock()
"""Held while a fork begins a closing again, so that its threads begin one."""

_closings: weakref.WeakSet[Closing] = weakref.WeakSet()


@atexit.register
def _abandon_all() -> None:
    """End all threads before the interpreter does, which must not find them in its memory."""
    closings = list(_closings)
    for closing in closings:
        closing.abandon()
    for closing in closings:
        if closing._process == os.getpid():
            closing._has_ended.wait(10)
