"""Results that are kept: for the whole process, up to a number of bytes, or with their object.

`functools.lru_cache` counts results; an automaton may have a hundred bytes or twenty million. All
that is kept here shares one number of bytes (`SHARED`), so that a server's memory stops growing,
whatever its requests are made of.
"""

from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack

from maskwright.analysis.locks import new_lock

Arguments = TypeVarTuple("Arguments")
Key = TypeVar("Key")
Owner = TypeVar("Owner")
Result = TypeVar("Result")

_LOCK = new_lock()

MOST_BYTES = 1 << 27
"""BOUND: the bytes of all that is kept for the process, and of what it was made of.

The table of an automaton counts once, however many results hold it.
"""

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


class _Entry:
    """A result that is kept.

    tables : bytes by id, of the tables of automata that it holds. n_bytes : those of all else.
    was_asked : whether it was asked for since it came to its place.
    """

    __slots__ = ("key", "n_bytes", "of", "tables", "value", "was_asked")

    def __init__(self, of: Cache[Any, Any], key: Any, value: Any) -> None:
        self.of, self.key, self.value, self.was_asked = of, key, value, False
        self.tables: dict[int, int] = {}
        self.n_bytes = _size(value, self.tables) + _size(key, self.tables)


class Budget:
    """The bytes that some caches may hold together.

    most : how many.
    held : how many they hold, about.

    Past the limit, what was not asked for since its last turn goes first (the "second chance"
    algorithm): it comes near to "least recently used", and a look-up needs no lock.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most, self.held = most, 0
        self.entries: deque[_Entry] = deque()
        self._holders: Counter[int] = Counter()  # id of a table -> the entries that hold it, and so its id

    def add(self, entry: _Entry) -> None:
        """Keep one more, and others no longer if there is no room. The lock is held."""
        self._count(entry)
        while self.entries and self.held > self.most:
            first = self.entries.popleft()
            if first.was_asked:
                first.was_asked = False
                self.entries.append(first)
            else:
                first.of.drop(first.key)
                self._count(first, -1)
        self.entries.append(entry)

    def remove(self, of: Cache[Any, Any]) -> None:
        """Keep nothing of a cache. The lock is held."""
        for entry in self.entries:
            if entry.of is of:
                self._count(entry, -1)
        self.entries = deque([entry for entry in self.entries if entry.of is not of])

    def _count(self, entry: _Entry, times: int = 1) -> None:
        self.held += times * entry.n_bytes
        for table, n_bytes in entry.tables.items():
            before = self._holders[table]
            after = self._holders[table] = before + times
            self.held += n_bytes * ((after > 0) - (before > 0))
            if not after:
                del self._holders[table]


SHARED = Budget()
"""That of all caches which do not say otherwise."""


class Cache(Generic[Key, Result]):
    """Results by keys, within a budget. The last one is kept in any case."""

    def __init__(self, budget: Budget = SHARED) -> None:
        self._budget = budget
        self._entries: dict[Key, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key, default: Any = None) -> Any:
        """What is kept for a key, or `default`."""
        found = self._entries.get(key)
        if found is None:
            return default
        found.was_asked = True
        return found.value

    def put(self, key: Key, value: Result) -> Result:
        """Keep the result for a key. Returns the one that is kept: another thread may be faster."""
        entry = _Entry(self, key, value)
        with _LOCK:
            found = self._entries.setdefault(key, entry)
            if found is entry:
                self._budget.add(entry)
            return found.value  # type: ignore[no-any-return]

    def drop(self, key: Key) -> None:
        """Forget a key, whose bytes the caller counts."""
        del self._entries[key]

    def forget(self) -> None:
        """Forget all results. Cost: O(all that its budget holds)."""
        with _LOCK:
            self._entries.clear()
            self._budget.remove(self)


class Kept(Generic[*Arguments, Result]):
    """A function whose results are kept by its arguments, which are hashable and given in order.

    An error is not kept. Arguments that are equal have equal results: 1, 1.0 and True are one key.

    Example:
        >>> squares = Kept(lambda n: n * n)
        >>> squares(3), squares(3), len(squares.cache)
        (9, 9, 1)
    """

    def __init__(self, make: Callable[[Unpack[Arguments]], Result], budget: Budget = SHARED) -> None:
        self._make = make
        self.cache: Cache[Any, Result] = Cache(budget)
        functools.update_wrapper(self, make)

    def __call__(self, *arguments: *Arguments) -> Result:
        """The result of some arguments. Raises: as the function."""
        found = self.cache.get(arguments, self)
        if found is not self:
            return found  # type: ignore[no-any-return]
        made: Result = self.cache.put(arguments, self._make(*arguments))
        return made

    def forget(self) -> None:
        """Forget all results."""
        self.cache.forget()


def size(value: Any) -> int:
    """About how many bytes a value holds: those of its arrays and texts, and some.

    It looks into tuples and frozensets; other objects say it by `nbytes`. What has `next_state` is
    an automaton; what holds some lists them as `automata`. An automaton counts once.
    """
    tables: dict[int, int] = {}
    return _size(value, tables) + sum(tables.values())


def _size(value: Any, tables: dict[int, int]) -> int:
    """`size`, but the tables of automata are put into `tables`: the bytes of each by its id."""
    kind = value.__class__
    if kind in _COUNTED:
        return _TEXT + len(value) if kind is str or kind is bytes else _NUMBER
    if kind is not tuple and kind is not frozenset:
        table = getattr(value, "next_state", None)
        if table is not None:
            tables[id(table)] = table.nbytes
            return _PLAIN
        for automaton in getattr(value, "automata", ()):
            tables[id(automaton.next_state)] = automaton.next_state.nbytes
        own = getattr(value, "nbytes", None)
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
            found += _NUMBER if kind in _COUNTED else _size(one, tables)
    return found
