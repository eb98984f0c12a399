"""Locks that another thread held when a process forked are free in the fork."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from maskwright.analysis.kept import cached_property
from maskwright.analysis.locks import new_lock, new_rlock

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@contextmanager
def another_thread(run: Callable[[threading.Event, threading.Event], None]) -> Iterator[None]:
    """While the block runs another thread is within `run`, which sets the first event there, and waits for the second one."""
    is_within, can_end = threading.Event(), threading.Event()
    other = threading.Thread(target=run, args=(is_within, can_end))
    other.start()
    is_within.wait()
    try:
        yield
    finally:
        can_end.set()
        other.join()


def said_in_fork(ask: Callable[[], bool]) -> bool:
    """What `ask` says in a fork, within seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks of processes with threads
        child = os.fork()
    if child == 0:
        said = False
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # where a lock is waited for, nothing else ends the fork
            signal.alarm(5)
            said = ask()
        finally:
            os._exit(0 if said else 1)
    return os.waitpid(child, 0)[1] == 0


@needs_fork
@pytest.mark.parametrize("make", [new_lock, new_rlock])
def test_a_fork_finds_locks_free(make: type[threading.Lock]) -> None:
    lock = make()

    def hold(is_within: threading.Event, can_end: threading.Event) -> None:
        with lock:
            is_within.set()
            can_end.wait()

    with another_thread(hold):
        assert not lock.acquire(timeout=0.01)
        assert said_in_fork(lambda: lock.acquire(timeout=5))
    assert lock.acquire(timeout=5)


class Slow:
    """Its result waits where the events are given."""

    events: tuple[threading.Event, threading.Event] | None = None

    def ask(self, is_within: threading.Event, can_end: threading.Event) -> None:
        self.events = is_within, can_end
        assert self.result == 1

    @cached_property
    def result(self) -> int:
        if self.events is not None:
            self.events[0].set()
            self.events[1].wait()
        return 1


@needs_fork
def test_a_fork_asks_what_another_thread_is_at() -> None:
    """With the property of `functools` it would wait in Python 3.11."""

    with another_thread(Slow().ask):
        assert said_in_fork(lambda: Slow().result == 1)


def test_threads_do_not_wait_for_one_another() -> None:
    slow = Slow()
    with another_thread(slow.ask):
        assert Slow().result == 1
    assert vars(slow)["result"] == 1


def test_results_are_made_once() -> None:
    one = Slow()
    assert one.result == 1 and vars(one)["result"] == 1
    vars(one)["result"] = 2
    assert one.result == 2
