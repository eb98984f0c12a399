"""Results that are kept: for the whole process, up to a number of bytes, or with their object.

`functools.lru_cache` counts results; an automaton may have a hundred bytes or twenty million.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack

from maskwright.analysis.locks import new_lock

Arguments = TypeVarTuple("Arguments")
Owner = TypeVar("Owner")
Result = TypeVar("Result")

_LOCK = new_lock()

MOST_BYTES = 1 << 26
"""BOUND: the bytes of the results of one function, and of what it was given."""

_PLAIN, _TEXT, _NUMBER = 200, 60, 16
"""The bytes of an object whose size is not known, and of a text and a number, content aside."""

_COUNTED = frozenset((str, bytes, int, bool, float, type(None)))
_MANY = 16


class cached_property(functools.cached_property[Result]):
    """`functools.cached_property` as Python 3.12 has it: without a lock.

    In Python 3.11 a property has one lock for all objects. Two threads that look at two grammars
    would wait for one another, and a fork would wait for ever if another thread was at it. Here
    two threads that ask one object at once may both make the result, and either one is kept. So it
    must not matter which.
    """

    def __init__(self, make: Callable[[Any], Result]) -> None:
        super().__init__(make)
        self.lock = nullcontext()


def kept_with(make: Callable[[Owner], Result]) -> Callable[[Owner], Result]:
    """A function of one object, whose result is kept with the object, and lives as long as it.

    Equal objects share nothing. The object leaves what it keeps out of its pickles, by a
    `__reduce__`. As for `cached_property`, two threads that ask at once may both make the result.
    """
    key = f"{make.__module__}.{make.__qualname__}"

    @functools.wraps(make)
    def find(owner: Owner) -> Result:
        kept = vars(owner)
        found = kept.get(key, find)
        if found is find:
            found = kept.setdefault(key, make(owner))
        return found  # type: ignore[no-any-return]

    return find


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
        self._order: deque[tuple[Any, int]] = deque()  # what it was given, and the bytes of both
        self._held = 0
        self.misses = 0
        functools.update_wrapper(self, make)

    def __call__(self, *arguments: *Arguments) -> Result:
        """The result of some arguments. Raises: as the function."""
        found = self._kept.get(arguments, self)
        if found is not self:
            return found  # type: ignore[return-value]
        made = self._make(*arguments)
        with _LOCK:
            self.misses += 1
            if arguments not in self._kept:  # else another thread was faster
                self._kept[arguments] = made
                n_bytes = size(made) + size(arguments)
                self._order.append((arguments, n_bytes))
                self._held += n_bytes
                while self._held > self._most and len(self._kept) > 1:
                    first, n_bytes = self._order.popleft()
                    del self._kept[first]
                    self._held -= n_bytes
            return self._kept.get(arguments, made)

    def forget(self) -> None:
        """Forget all results."""
        with _LOCK:
            self._kept.clear()
            self._order.clear()
            self._held = 0


def size(value: Any) -> int:
    """About how many bytes a value holds: those of its arrays and texts, and some.

    It looks into tuples and frozensets; other objects say it by `nbytes`, or have `next_state`.
    """
    kind = value.__class__
    if kind in _COUNTED:
        return _TEXT + len(value) if kind is str or kind is bytes else _NUMBER
    if kind is not tuple and kind is not frozenset:
        own = getattr(getattr(value, "next_state", value), "nbytes", None)
        if own is not None or not isinstance(value, tuple | frozenset):
            return _PLAIN + int(own or 0)
    if len(value) > _MANY:  # PERF: texts are mostly among their like
        first = next(iter(value))
        try:
            if first.__class__ is bytes:
                return _PLAIN + _TEXT * len(value) + len(b"".join(value))
            if first.__class__ is str:
                return _PLAIN + _TEXT * len(value) + len("".join(value))
        except TypeError:
            pass  # others are among them
    found = _PLAIN
    for one in value:
        kind = one.__class__
        if kind is str or kind is bytes:
            found += _TEXT + len(one)
        else:
            found += _NUMBER if kind in _COUNTED else size(one)
    return found
