"""Worker processes, and who asks them. A worker that takes too long, or dies, is replaced.

Only the process that asks is told of Ctrl-C, and ends them.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Pipe
from multiprocessing.spawn import get_executable
from typing import Any

from maskwright.analysis.deadline import out_of_time
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.worker import ANSWER, ERROR, STOPPED, Question, Setup

LOOK = 0.05
"""Seconds between two looks at whether somebody still wants the answer."""
GRACE = 1.0
"""Seconds that a worker may go on with what nobody wants any more, before it is ended."""
CLOSING = 0.3
"""Seconds that an idle worker has to end by itself."""
_PASSING = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What is wrong for a while only."""
SLEEP, SLEEPS = 60.0, 20.0
"""Seconds of wall time that any question may take, and for each of its CPU seconds."""

_PROGRAM = """
import sys
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[1]))
sys.path[:] = connection.recv()
from maskwright.worker import work
work(connection)
"""
"""Not `multiprocessing.Process`, which reads the program's main file again, and which processes of
servers that are daemons may not start."""


class BusyError(LimitError):
    """No worker was free in time, or could be started for now: the work is not done."""


class CancelledError(MaskwrightError):
    """Nobody wants the answer any more."""


class WorkerError(LimitError):
    """A worker took too long, or died."""


class NoProcessError(WorkerError):
    """No worker process can be started here."""


class _Process:
    """A worker as seen from here.

    is_ready : it has said so; before that it starts.
    is_patient : it is at a question that can wait. is_leaving : it was asked to leave such a one.
    key : of what it was asked last.
    """

    def __init__(self, setup: Setup) -> None:
        """Begin to start it. Raises: BusyError where that may pass; NoProcessError."""
        self.is_ready = self.is_patient = self.is_leaving = False
        self.key: object = None
        self._telling = threading.Lock()
        program = get_executable()
        if os.name != "posix" or getattr(sys, "frozen", False) or not program:
            raise NoProcessError("no worker process can be started: there is no Python for it on this platform")
        try:
            self.connection, theirs = Pipe()
            with theirs:
                self.process = subprocess.Popen(
                    [os.fsdecode(program), "-P", "-c", _PROGRAM, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # what libraries have to say is not for a server's terminal
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,  # a terminal's Ctrl-C is not for it: it would print where it was
                )
            threading.Thread(target=self._tell, args=(setup,), daemon=True).start()  # it waits until somebody listens
        except (OSError, ValueError, RuntimeError) as error:
            if hasattr(self, "process"):  # but there is no thread for it
                self.process.kill()
                self.process.wait()
            passes = isinstance(error, RuntimeError) or getattr(error, "errno", None) in _PASSING
            raise (BusyError if passes else NoProcessError)(
                f"no worker process can be started: {error}; try again later"
            ) from error

    def _tell(self, setup: Setup) -> None:
        with self._telling, suppress(OSError):  # receiving says what is wrong
            self.connection.send([each for each in sys.path if isinstance(each, str)])
            self.connection.send(setup)

    def end(self) -> None:
        """End it, whatever it does."""
        with suppress(OSError, ValueError):
            self.process.kill()
        with self._telling:  # or it would write to whatever file has the connection's number next
            self.connection.close()
        self.process.wait()


class Pool:
    """Some worker processes, for threads to share. Each starts when it is needed, or by `start`.

    setup : of each worker.
    size : how many there are at most.
    starting_seconds : how long a worker may take to start. The first one on a machine may have to
        compile kernels.

    A worker ends when it is closed, or garbage, or this process ends in whatever way. A fork has no
    workers at first.
    """

    def __init__(self, setup: Setup, size: int = 2, starting_seconds: float = 180.0) -> None:
        self.setup, self.size, self._starting = setup, size, starting_seconds
        self._free = threading.Condition()
        self._workers: list[_Process] = []
        self._idle: list[_Process] = []
        self._n_waiting = 0
        self._is_closed = False
        _POOLS.add(self)
        weakref.finalize(self, _end_all, self._workers)

    def start(self) -> None:
        """Begin to start all workers. Raises: BusyError, NoProcessError."""
        with self._free:
            while len(self._workers) < self.size and not self._is_closed:
                self._begin()

    def _begin(self) -> None:
        """Begin to start a worker, which is idle. The lock is held. Raises: as `start`."""
        new = _Process(self.setup)
        self._workers.append(new)
        self._idle.append(new)
        self._free.notify()

    def ask(
        self,
        asked: Any,
        seconds: float,
        what: str,
        *,
        key: object = None,
        waiting: float | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        is_patient: bool = False,
        n_shares: int = 1,
    ) -> Any:
        """The answer of a worker.

        asked : for what `Setup.make` made.
        seconds : of CPU time that the answer may take. what : the work, for messages.
        key : a worker that was last asked about an equal key is preferred.
        waiting : seconds that a worker may be waited for; None for as long as a question may take.
        is_cancelled : called now and then; once it is true, a worker that does not come to its end
            soon is ended. It may raise.
        is_patient : whether others go before, also when a worker is at it already. It begins anew
            then.
        n_shares : see `Question`.

        Raises: OutOfTimeError; BusyError, CancelledError, WorkerError; NoProcessError; the
            MaskwrightError that answering raised; what `is_cancelled` raises.
        """
        question = Question(asked, seconds, what, n_shares)
        longest = SLEEP + SLEEPS * seconds
        while True:
            worker = self._take(key, longest if waiting is None else waiting, is_cancelled, is_patient)
            is_sound = False
            try:
                if not self._has_started(worker, is_cancelled):
                    is_sound = True  # it goes on starting, for the next question
                    raise CancelledError("the request was cancelled")
                kind, value, is_last = self._answer(worker, question, longest, is_cancelled, is_patient)
                worker.key = key
                is_sound = not is_last
            finally:
                self._put(worker, is_sound)
            if kind == STOPPED:
                continue
            if is_cancelled():
                raise CancelledError("the request was cancelled")
            if kind == ERROR:
                raise value
            assert kind == ANSWER
            return value

    def _take(self, key: object, seconds: float, is_cancelled: Callable[[], bool], is_patient: bool) -> _Process:
        end = time.monotonic() + seconds
        with self._free:
            self._n_waiting += not is_patient
            try:
                while True:
                    if self._is_closed or is_cancelled():
                        raise CancelledError("the server ends" if self._is_closed else "the request was cancelled")
                    self._drop_dead()
                    if not (is_patient and self._n_waiting):
                        if not self._idle and len(self._workers) < self.size:
                            try:
                                self._begin()
                            except BusyError:
                                if not self._workers:  # else one of them will be free
                                    raise
                        if self._idle:
                            return self._chosen(key)
                        self._hurry()
                    if time.monotonic() > end and not is_patient:
                        raise BusyError(f"all {self.size} workers are busy; try again later")
                    self._free.wait(LOOK)
            finally:
                self._n_waiting -= not is_patient

    def _chosen(self, key: object) -> _Process:
        found = next((each for each in self._idle if key is not None and each.key == key), None)
        if found is None:
            found = min(self._idle, key=lambda each: not each.is_ready)
        self._idle.remove(found)
        return found

    def _drop_dead(self) -> None:
        """Forget idle workers that have died, and nobody's question with them. The lock is held."""
        for worker in [each for each in self._idle if each.is_ready and each.process.poll() is not None]:
            self._idle.remove(worker)
            self._workers.remove(worker)
            worker.end()

    def _hurry(self) -> None:
        """Let as many workers as are waited for leave what can wait. The lock is held."""
        n = self._n_waiting - sum(worker.is_leaving for worker in self._workers)
        for worker in [each for each in self._workers if each.is_patient][: max(n, 0)]:
            worker.is_patient, worker.is_leaving = False, True
            with suppress(OSError):
                worker.connection.send(None)

    def _put(self, worker: _Process, is_sound: bool) -> None:
        """Give a worker back. One that is not sound is replaced, now or when one is needed."""
        with self._free:
            worker.is_patient = worker.is_leaving = False
            if is_sound and not self._is_closed:
                self._idle.append(worker)
                self._free.notify()
                return
        worker.end()
        with self._free:
            if worker in self._workers:  # not so if a fork has begun since
                self._workers.remove(worker)
                with suppress(BusyError, NoProcessError):
                    if not self._is_closed:
                        self._begin()
                self._free.notify()

    def _has_started(self, worker: _Process, is_cancelled: Callable[[], bool]) -> bool:
        """Wait until a worker has started. False if nobody wants it before that."""
        end = time.monotonic() + self._starting
        while not worker.is_ready:
            if is_cancelled():
                return False
            if time.monotonic() > end:
                raise NoProcessError(f"a worker process did not start within {self._starting:g} s")
            try:
                if worker.connection.poll(LOOK):
                    kind, said, _ = worker.connection.recv()
                    if kind == ERROR:
                        raise NoProcessError(f"no worker process can be started: {said}")
                    worker.is_ready = True
            except (EOFError, OSError) as error:
                if self._is_closed:
                    raise CancelledError("the server ends") from error
                raise NoProcessError("a worker process ended while it started; try again later") from error
        return True

    def _answer(
        self, worker: _Process, question: Question, seconds: float, is_cancelled: Callable[[], bool], is_patient: bool
    ) -> tuple[str, Any, bool]:
        """What a worker says. Raises: as `ask`: the worker is to be ended."""
        end = time.monotonic() + seconds
        is_wanted = True
        try:
            worker.connection.send(question)
            with self._free:
                worker.is_patient = is_patient  # from now on it can be asked to stop
            while not worker.connection.poll(LOOK):
                now = time.monotonic()
                if is_wanted and is_cancelled():
                    is_wanted, end = False, min(end, now + GRACE)
                if now > end:
                    if not is_wanted:
                        raise CancelledError("the request was cancelled")
                    raise WorkerError(f"{question.what} took longer than {seconds:g} s and was given up")
            return worker.connection.recv()  # type: ignore[no-any-return]
        except (EOFError, OSError) as error:
            if self._is_closed:
                raise CancelledError("the server ends") from error
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(GRACE)
            if worker.process.returncode == -signal.SIGPROF:
                raise out_of_time(question.seconds, question.what) from None
            raise WorkerError(
                f"{question.what} was given up: the worker process has died, perhaps for lack of memory; it is started anew"
            ) from error

    def close(self) -> None:
        """End all workers, whatever they do."""
        with self._free:
            self._is_closed = True
            idle = [worker for worker in self._idle if worker.is_ready]
            for worker in idle:
                worker.connection.close()  # it ends by itself
            for worker in self._workers:
                if worker in idle:
                    with suppress(subprocess.TimeoutExpired):
                        worker.process.wait(CLOSING)
                worker.end()
            self._idle.clear()
            self._free.notify_all()

    def __repr__(self) -> str:
        return f"<Pool: {len(self._workers)} of {self.size} workers, {len(self._idle)} idle>"


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


def _end_all(workers: list[_Process]) -> None:
    """End the workers of a pool that nobody has any more."""
    for worker in workers:
        worker.end()
    workers.clear()


def _after_fork() -> None:
    """A fork lets go of the workers, which are its parent's, and has none yet."""
    for pool in list(_POOLS):
        for worker in pool._workers:
            worker.connection.close()
            worker.process.returncode = 0  # nobody here waits for it
        pool._free = threading.Condition()
        pool._workers.clear()
        pool._idle.clear()
        pool._n_waiting = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
