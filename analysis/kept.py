"""Results that are kept for the whole process, up to a number of bytes.

`functools.lru_cache` counts results; an automaton may have a hundred bytes or twenty million.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

_LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):  # a fork has no other threads, and so nobody who would give the lock back
    os.register_at_fork(after_in_child=_LOCK._at_fork_reinit)  # type: ignore[attr-defined]

MOST_BYTES = 1 << 26
"""BOUND: the bytes of the results of one function, and of the texts that it was given."""

_PLAIN = 200
"""What a result without arrays counts."""


class Kept(Generic[*Arguments, Result]):
    """A function whose results are kept by its arguments, which are hashable and given in order.

    misses : how many results were made.

    Past its limit it forgets the results that it made first. An error is not kept.

    Example:
        >>> squares = Kept(lambda n: n * n)
        >>> squares(3), squares(3), squares.misses
        (9, 9, 1)
    """

    def __init__(self, make: Callable[[Unpack[Arguments]], Result], most_bytes: int = MOST_BYTES) -> None:
        self._make = make
        self._most = most_bytes
        self._kept: dict[Any, Result] = {}
        self._held = 0
        self.misses = 0
        update_wrapper(self, make)

    def __call__(self, *arguments: *Arguments) -> Result:
        """The result of some arguments. Raises: as the function."""
        found = self._kept.get(arguments, self)
        if found is not self:
            return found  # type: ignore[return-value]
        made = self._make(*arguments)
        with _LOCK:
            self.misses += 1
            found = self._kept.setdefault(arguments, made)
            if found is made:
                self._held += size(made) + _written(arguments)
                while self._held > self._most and len(self._kept) > 1:
                    first = next(iter(self._kept))
                    self._held -= size(self._kept.pop(first)) + _written(first)
        return found

    def forget(self) -> None:
        """Forget all results."""
        with _LOCK:
            self._kept.clear()
            self._held = 0


def size(result: Any) -> int:
    """About how many bytes a result holds: those of its arrays, and some."""
    if isinstance(result, tuple):
        return _PLAIN + sum([size(part) for part in result if hasattr(part, "nbytes") or hasattr(part, "next_state")])
    inside = getattr(result, "next_state", result)
    return _PLAIN + int(getattr(inside, "nbytes", 0))


def _written(arguments: Any) -> int:
    """The length of the texts among some arguments, tuples of texts included."""
    if isinstance(arguments, str | bytes):
        return len(arguments)
    return sum(map(_written, arguments)) if type(arguments) is tuple else 0
