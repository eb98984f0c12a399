"""Work that may not take longer than a given time."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from maskwright.analysis.errors import LimitError
from maskwright.analysis.locks import new_lock

Result = TypeVar("Result")

MOST_ABANDONED = 8
"""How many threads may go on, at most, after their time was up. Then no work is taken on."""


class OutOfTimeError(LimitError):
    """Work took longer than it may, and is given up."""


class _StopWork(SystemExit):
    """Ends a thread whose time is up, without a word: nobody waits for it any more."""


class _Work(Generic[Result]):
    """Some work in a thread of its own, and what came of it."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self.result: list[Result] = []
        self.error: BaseException | None = None
        self.has_ended = threading.Event()
        self._work = work
        self.thread = threading.Thread(target=self._run, name="maskwright-request", daemon=True)

    def _run(self) -> None:
        try:
            self.result.append(self._work())
        except BaseException as error:
            self.error = error
        finally:
            self.has_ended.set()

    def stop(self) -> None:
        """Raise `_StopWork` in the thread, at the next line of Python that it comes to."""
        if self.thread.ident is not None and not self.has_ended.is_set():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread.ident), ctypes.py_object(_StopWork))


_abandoned: list[threading.Thread] = []
_lock = new_lock()


def within(seconds: float, what: str, work: Callable[[], Result]) -> Result:
    """What `work()` returns, if it does so in time.

    seconds : the time. what : the work, for the message.

    Raises: OutOfTimeError if it does not: the work is then stopped at the next line of Python that
        it comes to. Also if too many others are still on the way there, as in a long call of
        compiled code. Else what `work` raises.
    """
    with _lock:
        _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
        if len(_abandoned) >= MOST_ABANDONED:
            raise OutOfTimeError(
                f"{what} was not begun: {len(_abandoned)} others that took too long have not come to an end yet; try again later"
            )
    running = _Work(work)
    running.thread.start()
    if not running.has_ended.wait(seconds):
        running.stop()
        with _lock:
            _abandoned.append(running.thread)
        raise OutOfTimeError(f"{what} took longer than {seconds:g} s and was given up; ask for something smaller")
    if running.error is not None:
        raise running.error
    return running.result[0]


def deadline(seconds: float, what: str) -> Callable[[str, int, int], None]:
    """A `Progress` for builders that raises OutOfTimeError once the time is up."""
    end = time.monotonic() + seconds

    def look(name: str, done: int, total: int) -> None:
        if time.monotonic() > end:
            raise OutOfTimeError(f"{what} took longer than {seconds:g} s and was given up; ask for something smaller")

    return look
