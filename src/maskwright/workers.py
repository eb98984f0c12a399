"""Processes that work for another one, which alone is told of Ctrl-C, and ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess


@contextmanager
def blocked_interrupts() -> Iterator[None]:
    """Keep the signal of Ctrl-C from processes that are started inside, from their first moment on.

    A worker that is still importing would print where it was interrupted.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerProcess(SpawnProcess):
    """A process that starts anew, with `blocked_interrupts`.

    Parameters are those of `multiprocessing.Process`.
    """

    def start(self) -> None:
        """Start the process. Raises: as `multiprocessing.Process.start`."""
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # which `start` would do, and then let the signal through again
        with blocked_interrupts():
            super().start()
