"""Work that may take so much CPU time, and looks at the clock itself.

Who gives work a limit says `with time_limit(seconds, what)`. Loops that can be long call `look`. No
thread is stopped from outside. The clock is the CPU time of the thread, so that it does not matter
what else the machine does.

Between two looks work goes on: a single long call of somebody else's code is only ended with its
process (`maskwright.worker`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from maskwright.analysis.errors import LimitError

Result = TypeVar("Result")


class OutOfTimeError(LimitError):
    """Work took more CPU time than it may, and was given up."""


class _OutOfTime(BaseException):
    """Unwinds work whose time is up. No `except Exception` on the way takes it for its own.

    end : the time that is over.
    """

    def __init__(self, end: float) -> None:
        super().__init__("the time is up")
        self.end = end


class _UnwantedError(BaseException):
    """Unwinds work that nobody waits for any more."""


class _Clock(threading.local):
    """Of one thread.

    elsewhere : the CPU time that other threads have spent on its work (`HandedOver`).
    end : its CPU time, with that of the others, at which its work ends.
    asked : called at each look; it may raise.
    """

    elsewhere = 0.0
    end = math.inf
    asked: Callable[[], None] | None = None


_clock = _Clock()


def _now() -> float:
    return time.thread_time() + _clock.elsewhere


def look() -> None:
    """Unwind this thread's work up to its `time_limit` if the time is up.

    Cost: 0.1 us where there is no limit, else 0.5.
    """
    end = _clock.end
    if end != math.inf and _now() > end:
        raise _OutOfTime(end)
    if _clock.asked is not None:
        _clock.asked()


def look_at(name: str, done: int, total: int) -> None:
    """`look`, as the `Progress` of a builder."""
    look()


@contextmanager
def time_limit(seconds: float, what: str, asked: Callable[[], None] | None = None) -> Iterator[None]:
    """Give what is inside so much CPU time of this thread; of two limits the sooner end counts.

    what : the work, for the message.
    asked : called at each look; what it raises ends the work, too.

    Raises: OutOfTimeError if a `look` inside comes after the end.
    """
    before, asked_before = _clock.end, _clock.asked
    mine = _now() + seconds
    all_asked = [each for each in (asked, asked_before) if each is not None]

    def ask() -> None:
        for each in all_asked:
            each()

    _clock.end, _clock.asked = min(before, mine), ask if all_asked else None
    try:
        yield
    except _OutOfTime as error:
        if error.end != mine:
            raise
        raise out_of_time(seconds, what) from None
    finally:
        _clock.end, _clock.asked = before, asked_before


class HandedOver(Generic[Result]):
    """Work of this thread that another one does, under what is left of this thread's limit.

    work : the other thread calls this object to do it. This one waits, and then calls `charge`.
    """

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work, self._end, self._asked = work, _clock.end, _clock.asked
        self._left = _clock.end - _now()
        self._spent = 0.0
        self.is_unwanted = False
        """Whether the next look is to end the work, since nobody waits for it any more."""

    def __call__(self) -> Result:
        begin = time.thread_time()
        _clock.end = begin + self._left
        _clock.asked = self._watch
        try:
            return self._work()
        except _OutOfTime:
            raise _OutOfTime(self._end) from None
        finally:
            self._spent = time.thread_time() - begin

    def _watch(self) -> None:
        if self.is_unwanted:
            raise _UnwantedError
        if self._asked is not None:
            self._asked()

    def charge(self) -> None:
        """Let the CPU time that the work took count as this thread's."""
        _clock.elsewhere += self._spent


def out_of_time(seconds: float, what: str) -> OutOfTimeError:
    """The error for work that took longer than so many CPU seconds."""
    return OutOfTimeError(
        f"{what} took more than {seconds:g} s of CPU time and was given up; ask for something smaller"
    )
