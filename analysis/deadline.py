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

from maskwright.analysis.errors import LimitError


class OutOfTimeError(LimitError):
    """Work took more CPU time than it may, and was given up."""


class _OutOfTime(BaseException):
    """Unwinds work whose time is up. No `except Exception` on the way takes it for its own.

    end : the time that is over.
    """

    def __init__(self, end: float) -> None:
        super().__init__("the time is up")
        self.end = end


class _Clock(threading.local):
    """Of one thread.

    end : its CPU time at which its work ends.
    asked : called at each look; it may raise.
    """

    end = math.inf
    asked: Callable[[], None] | None = None


_clock = _Clock()


def look() -> None:
    """Unwind this thread's work up to its `time_limit` if the time is up.

    Cost: 0.1 us where there is no limit, else 0.5.
    """
    end = _clock.end
    if end != math.inf:
        if time.thread_time() > end:
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
    mine = time.thread_time() + seconds
    _clock.end, _clock.asked = min(before, mine), asked or asked_before
    try:
        yield
    except _OutOfTime as error:
        if error.end != mine:
            raise
        raise out_of_time(seconds, what) from None
    finally:
        _clock.end, _clock.asked = before, asked_before


def out_of_time(seconds: float, what: str) -> OutOfTimeError:
    """The error for work that took longer than so many CPU seconds."""
    return OutOfTimeError(
        f"{what} took more than {seconds:g} s of CPU time and was given up; ask for something smaller"
    )


__all__ = ["OutOfTimeError", "look", "look_at", "out_of_time", "time_limit"]
