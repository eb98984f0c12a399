"""A process that answers questions, one at a time: what a `Pool` starts.

In: questions on a socket. Out: answers on the same. It ends when the other end is closed, also in
the middle of an answer. What comes over the socket is pickled: both ends are this program, and
nobody else has the socket.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from maskwright.analysis.deadline import time_limit
from maskwright.analysis.errors import MaskwrightError

READY, ANSWER, ERROR, STOPPED = "ready", "answer", "error", "stopped"
"""What a worker says: first, and of each question."""
_SLACK, _MORE = 1.1, 0.5
"""After so many times the CPU seconds of a question, and so many more, the system ends a worker."""


class Setup(NamedTuple):
    """What a worker is told as it starts.

    make : the function, as ``module:name``, that makes what answers questions, a function of one.
    arguments : of `make`.
    most_memory : bytes that the work on one question may ask for, where the platform can limit it.
    """

    make: str
    arguments: tuple[Any, ...]
    most_memory: int


class Question(NamedTuple):
    """One question.

    asked : for what answers.
    seconds : of CPU time that the answer may take. what : the work, for messages.
    n_shares : how many times `Setup.most_memory` it may ask for.
    """

    asked: Any
    seconds: float
    what: str
    n_shares: int = 1


class StoppedError(BaseException):
    """The other end asks to leave a question that can wait."""


class Worker:
    """What runs in the process. connection : to the `Pool`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._said: queue.SimpleQueue[Question | None] = queue.SimpleQueue()

    def run(self, setup: Setup) -> None:
        """Answer questions until the connection is closed."""
        module, _, name = setup.make.partition(":")
        try:
            answer: Callable[..., Any] = getattr(importlib.import_module(module), name)(*setup.arguments)
        except Exception as error:
            self.connection.send((ERROR, f"{type(error).__name__}: {error}", True))
            return
        threading.Thread(target=self._listen, daemon=True).start()
        self.connection.send((READY, None, False))
        used_up = _memory() + setup.most_memory // 2
        while True:
            question = self._said.get()
            if question is not None:  # else it was to stop what has ended by itself
                kind, value, is_last = self._answer(answer, question, setup.most_memory)
                if not is_last and _memory() > used_up:
                    gc.collect()
                    is_last = _memory() > used_up
                self.connection.send((kind, value, is_last))

    def _listen(self) -> None:
        """Take what is said. Ends the process, whatever it does, when the other end is closed."""
        try:
            while True:
                self._said.put(self.connection.recv())
        finally:  # also where a message cannot be read: a process that hears nothing is of no use
            os._exit(0)

    def _stop_if_asked(self) -> None:
        """Leave a question for a more urgent one."""
        if not self._said.empty():
            raise StoppedError

    def _answer(self, answer: Callable[..., Any], question: Question, most_memory: int) -> tuple[str, Any, bool]:
        """What comes of a question: its kind, itself, and whether the process is used up."""
        _limit_memory(question.n_shares * most_memory)
        signal.setitimer(signal.ITIMER_PROF, _SLACK * question.seconds + _MORE)
        try:
            with time_limit(question.seconds, question.what, self._stop_if_asked):
                return ANSWER, answer(question.asked), False
        except StoppedError:
            return STOPPED, None, False
        except MaskwrightError as error:
            return ERROR, _portable(error), isinstance(error.__cause__, MemoryError)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            _limit_memory(0)


def _portable(error: MaskwrightError) -> MaskwrightError:
    """The error, if it can be sent; else one of its nearest kind that can."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return MaskwrightError(str(error))
    return error


def _memory(column: int = 1) -> int:
    """Bytes that the process has, or another column of `statm` in proc(5); 0 if unknown."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[column]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _limit_memory(most: int) -> None:
    """Let the process ask for so many bytes more, where that can be said. 0: for any number."""
    if sys.platform == "linux":
        import resource

        held = _memory(5)
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = held + most if most and held else hard
        resource.setrlimit(resource.RLIMIT_DATA, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def work(connection: Connection) -> None:
    """Be a worker; the process runs this first."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    with suppress(EOFError, OSError):
        Worker(connection).run(connection.recv())
