"""Locks that another thread held when a process forked are free in the fork."""

from __future__ import annotations

import os
import threading
import warnings

import pytest

from maskwright.analysis.locks import new_lock, new_rlock


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("make", [new_lock, new_rlock])
def test_a_fork_finds_locks_free(make: type[threading.Lock]) -> None:
    lock, is_held, can_end = make(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            can_end.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    assert not lock.acquire(timeout=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks of processes with threads
        child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(timeout=5) else 1)
    _, status = os.waitpid(child, 0)
    can_end.set()
    holder.join()
    assert status == 0
    assert lock.acquire(timeout=5)
