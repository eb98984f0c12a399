"""A process that answers questions, one at a time.

In: questions on a connection. Out: answers on the same. It ends when the connection is closed.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

READY = {"ready": True}
"""What a worker says first, once it can answer."""


class WorkerSettings(NamedTuple):
    """What a worker is told as it starts.

    tokenizer : as for `load_vocabulary`.
    seconds : what one answer may take.
    most_memory : bytes of memory that it may ask for, where the platform can limit it.
    """

    tokenizer: str
    seconds: float
    most_memory: int


def work(connection: Connection, settings: WorkerSettings) -> None:
    """Answer questions until the connection is closed; the worker process runs this.

    What the vocabulary needs is made before the first question.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    _limit_memory(settings.most_memory)
    with suppress(OSError):  # what libraries have to say is not for the terminal of the server
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.playground.answers import Answers

    answers = Answers(load_vocabulary(settings.tokenizer), settings.seconds)
    for constraint in ('{"type": "object"}', 'start: "a" start?'):
        answers.answer({"ask": "mask", "constraint": constraint})
    with suppress(EOFError, OSError):
        connection.send(READY)
        while True:
            connection.send(answers.answer(connection.recv()))


def _limit_memory(most: int) -> None:
    """Let the process have so many bytes at most, where that can be said."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard == resource.RLIM_INFINITY or hard > most:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


__all__ = ["READY", "WorkerSettings", "work"]
