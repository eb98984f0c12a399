"""Worker processes, and who asks them. A worker that takes too long, or dies, is replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.playground.worker import WorkerSettings, work
from maskwright.workers import WorkerProcess

LOOK = 0.05
"""Seconds between two looks at whether somebody still wants the answer."""
GRACE = 1.0
"""Seconds that a worker may go on with what nobody wants any more, before it is ended."""
CLOSING = 0.3
"""Seconds that an idle worker has to end by itself."""
MARGIN = 2.0
"""Seconds that a worker has beyond its own limit, before it is ended."""


class BusyError(LimitError):
    """No worker was free in time."""


class CancelledError(MaskwrightError):
    """Nobody wants the answer any more."""


class WorkerError(LimitError):
    """A worker took too long, or died."""


class _Worker:
    """A process, its connection, whether it has said that it is ready, and whether it was ended."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.connection, theirs = get_context("spawn").Pipe()
        self.process = WorkerProcess(target=work, args=(theirs, settings), name="maskwright-playground", daemon=True)
        self.is_ready = self.is_killed = False
        self.key: object = None  # of the constraint that it was asked about last
        self.process.start()
        theirs.close()

    def kill(self) -> None:
        self.is_killed, self.is_ready, self.key = True, False, None
        with suppress(OSError, ValueError):
            self.process.kill()
        self.connection.close()


class Pool:
    """Some workers, for threads to share.

    settings : of each worker.
    size : how many there are.
    starting_seconds : how long a worker may take to start. The first one on a machine may have to
        compile kernels.
    """

    def __init__(self, settings: WorkerSettings, size: int = 2, starting_seconds: float = 180.0) -> None:
        self.settings, self._starting = settings, starting_seconds
        self._free = threading.Condition()
        self._workers = [_Worker(settings) for _ in range(size)]
        self._idle = list(self._workers)
        self._is_closed = False

    def ask(self, question: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """The answer of a worker.

        question : as for `Answers.answer`. A worker that knows its constraint is preferred.
        is_cancelled : called now and then; once it is true, a worker that does not come to its end
            soon is ended.

        Raises: BusyError, CancelledError, WorkerError; MaskwrightError if workers cannot start.
        """
        key = question.get("kind"), question.get("constraint")
        worker = self._take(key, is_cancelled)
        is_sound = False
        try:
            worker = self._started_anew(worker)
            if not self._has_started(worker, is_cancelled):
                is_sound = True  # it goes on starting, for the next question
                raise CancelledError("the request was cancelled")
            answer = self._answer(worker, question, is_cancelled)
            worker.key = key
            # what was given up may go on in the worker, in a call that cannot be stopped
            is_sound = not answer.get("error", {}).get("is_late")
        finally:
            self._put(worker, is_sound)
        if is_cancelled():
            raise CancelledError("the request was cancelled")
        return answer

    def _take(self, key: object, is_cancelled: Callable[[], bool]) -> _Worker:
        end = time.monotonic() + self.settings.seconds
        with self._free:
            while not self._idle:
                if self._is_closed or is_cancelled():
                    raise CancelledError("the request was cancelled")
                if time.monotonic() > end:
                    raise BusyError(f"all {len(self._workers)} workers are busy; try again later")
                self._free.wait(LOOK)
            if self._is_closed:
                raise CancelledError("the server ends")
            found = next((each for each in self._idle if each.key == key), None)
            if found is None:
                found = min(self._idle, key=lambda each: (each.is_killed, not each.is_ready))
            self._idle.remove(found)
            return found

    def _put(self, worker: _Worker, is_sound: bool) -> None:
        """Give a worker back. One that is not sound is replaced, now or where it is taken again."""
        try:
            if not is_sound:
                worker.kill()
                with suppress(WorkerError, CancelledError):
                    worker = self._started_anew(worker)
        finally:
            with self._free:
                if not self._is_closed:
                    self._idle.append(worker)
                    self._free.notify()

    def _started_anew(self, worker: _Worker) -> _Worker:
        """A worker that was not ended, in the place of one that was.

        Raises: WorkerError if no process can be started; the place stays.
        """
        if not worker.is_killed:
            return worker
        if self._is_closed:
            raise CancelledError("the server ends")
        try:
            new = _Worker(self.settings)
        except Exception as error:  # a place must not be lost, whatever the system lacks
            raise WorkerError(f"no worker process can be started: {error}; try again later") from error
        with self._free:
            if self._is_closed:
                new.kill()
                raise CancelledError("the server ends")
            self._workers[self._workers.index(worker)] = new
        return new

    def _has_started(self, worker: _Worker, is_cancelled: Callable[[], bool]) -> bool:
        """Wait until a worker has started. False if nobody wants it before that."""
        end = time.monotonic() + self._starting
        while not worker.is_ready:
            if is_cancelled():
                return False
            if time.monotonic() > end:
                raise WorkerError(f"a worker process did not start within {self._starting:g} s")
            if worker.connection.poll(LOOK):
                self._receive(worker)
                worker.is_ready = True
        return True

    def _answer(self, worker: _Worker, question: Mapping[str, Any], is_cancelled: Callable[[], bool]) -> dict[str, Any]:
        """The answer. Raises: WorkerError, CancelledError: the worker is to be ended."""
        seconds = self.settings.seconds + MARGIN
        end = time.monotonic() + seconds
        with suppress(OSError):  # receiving says what is wrong
            worker.connection.send(dict(question))
        is_wanted = True
        while not worker.connection.poll(LOOK):
            now = time.monotonic()
            if is_wanted and is_cancelled():
                is_wanted, end = False, min(end, now + GRACE)
            if now > end:
                if not is_wanted:
                    raise CancelledError("the request was cancelled")
                raise WorkerError(f"the answer took longer than {seconds:g} s and was given up")
        return self._receive(worker)

    def _receive(self, worker: _Worker) -> dict[str, Any]:
        try:
            found: dict[str, Any] = worker.connection.recv()
        except (EOFError, OSError) as error:
            if self._is_closed:
                raise CancelledError("the server ends") from error
            raise WorkerError("the worker process has died, perhaps for lack of memory; it is started anew") from error
        return found

    def close(self) -> None:
        """End all workers, whatever they do."""
        with self._free:
            self._is_closed = True
            for worker in self._idle:
                worker.connection.close()  # it ends by itself, and cleans up
            for worker in self._workers:
                if worker in self._idle and worker.is_ready:
                    worker.process.join(CLOSING)
                with suppress(OSError, ValueError):
                    worker.process.kill()
            self._idle.clear()
            self._free.notify_all()

    def __repr__(self) -> str:
        return f"<Pool: {len(self._workers)} workers, {len(self._idle)} idle>"


__all__ = ["BusyError", "CancelledError", "Pool", "WorkerError"]
