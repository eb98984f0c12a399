"""Processes that work for another one, which alone is told of Ctrl-C, and ends them."""

from __future__ import annotations

import signal
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess


class WorkerProcess(SpawnProcess):
    """A process that starts anew; the signal of Ctrl-C is blocked in it from its first moment on.

    A worker that is still importing would print where it was interrupted. Parameters are those of
    `multiprocessing.Process`.
    """

    def start(self) -> None:
        """Start the process. Raises: as `multiprocessing.Process.start`."""
        if not hasattr(signal, "pthread_sigmask"):
            super().start()
            return
        resource_tracker.ensure_running()  # which `start` would do, and then let the signal through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
