"""Locks that are free in a fork.

A fork has no other threads than the one that forked. So a lock that another thread held would never
be given back there. The thread that forks must hold none of them.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_ALL: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """A `threading.Lock` that is free in each fork of this process."""
    lock = threading.Lock()
    _ALL.add(lock)
    return lock


def new_rlock() -> threading.RLock:
    """A `threading.RLock` that is free in each fork of this process."""
    lock = threading.RLock()
    _ALL.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_ALL):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
