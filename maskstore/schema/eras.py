"""Content ids, and what tables need of shapes of scalars: shared by all schemas of a process.

An *era* has its own numbers. Tables hold int32, and each build takes new ids; before they are used
up another era begins, which counts from 1 again. What is kept under content ids is kept for tables
of one era: those that were made before go on beside the new ones (`decoding.schema.workspace`).

PERF: this is on the way to the first mask of each request.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import Cache
from maskwright.analysis.locks import new_lock
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import column_classes
from maskwright.analysis.schema.lengths import least_left, length_table, strings_left
from maskwright.analysis.schema.shapes import KeyAutomaton, Numbers, Shape, Spellings, StringLiterals, Strings
from maskwright.maskstore.schema import layout

Array = npt.NDArray[np.int32]

MOST_IDS = 1 << 30
"""BOUND: the content ids of an era; as many again are left for the tables that are being made."""
MOST_SPACINGS = 1 << 24
"""BOUND: the ids of an era's white spaces, which the engine shifts by six bits."""
KINDS: dict[type[Shape], int] = {StringLiterals: layout.STRING_LITERALS, Spellings: layout.SPELLINGS}
"""The kinds of literals."""
_SHORT, _EACH = 8, 60
"""As many numbers or texts are a key as they are; what a text takes, its length aside."""


class Ids:
    """Content ids: one number for equal keys.

    last : the greatest number of a key.

    A key that has been forgotten gets a new number, which only costs what was kept under the old
    one.
    """

    def __init__(self, most: int = 1 << 14) -> None:
        self._numbers: dict[Any, int] = {}
        self._next = itertools.count(1)
        self._most = most
        self._lock = new_lock()
        self.last = 0

    def of(self, key: Any) -> int:
        """The number of a key. Keys are short: of long content, its `digest`."""
        found = self._numbers.get(key)
        if found is None:
            with self._lock:
                if len(self._numbers) >= self._most:
                    self._numbers.clear()
                found = self._numbers.setdefault(key, next(self._next))
                self.last = max(self.last, found)
        return found

    def of_numbers(self, kind: str, numbers: list[int]) -> int:
        """The number of some integers. kind : what they are of."""
        if len(numbers) <= _SHORT:
            return self.of((kind, *numbers))
        return self.of((kind, hashlib.sha256(struct.pack(f"={len(numbers)}i", *numbers)).digest()))

    def new(self) -> int:
        """A number that nothing else has. A count needs no lock: its step is not divided."""
        return next(self._next)


def digest(texts: tuple[bytes, ...]) -> bytes:
    """What texts that are not the same do not share."""
    lengths = struct.pack(f"={len(texts)}q", *map(len, texts))
    return hashlib.sha256(lengths + b"".join(texts)).digest()


class Leaf(NamedTuple):
    """What a table needs of a shape of scalars, for all schemas.

    shape : whose it is; it is held, so that its id stays its own.
    row : the shape's integers, but for offsets.
    automaton, lengths : the arrays whose offsets are missing, or None.
    texts : the literals whose offset is missing, or None.
    """

    shape: Shape
    row: list[int]
    automaton: Array | None
    lengths: Array | None
    texts: tuple[bytes, ...] | None


class Era:
    """The content ids of some tables, and what was made with them.

    number : its own; tables and what is kept for them name it.
    ids, spacings : the content ids of all else, and those of white space.
    leaves : id of a shape of scalars -> what tables need of it.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.ids, self.spacings = Ids(), Ids()
        self.leaves: Cache[int, Leaf] = Cache()
        # id of an automaton -> the automaton, so that the id stays its own, and its array
        self._arrays: Cache[int, tuple[Any, Array]] = Cache()
        self._lengths: Cache[int, tuple[Any, Array]] = Cache()

    def is_over(self) -> bool:
        """Whether its ids come to an end. It takes one of them."""
        return self.ids.new() > MOST_IDS or self.spacings.last > MOST_SPACINGS

    def _kept(self, cache: Cache[int, tuple[Any, Array]], key: Any, make: Any) -> Array:
        found: tuple[Any, Array] | None = cache.get(id(key))
        if found is None:
            array = make(key)
            array.setflags(write=False)
            found = cache.put(id(key), (key, array))
        return found[1]

    def automaton(self, automaton: Dfa | KeyAutomaton) -> Array:
        """An automaton as `layout` says."""
        return self._kept(self._arrays, automaton, self._automaton_array)

    def _automaton_array(self, automaton: Dfa | KeyAutomaton) -> Array:
        next_state = automaton.next_state
        ends = automaton.is_accepting.astype(np.int32) if isinstance(automaton, Dfa) else automaton.ends + 1
        classes, columns = column_classes(next_state)
        rows = np.zeros((len(next_state) + 1, len(columns)), np.int32)
        rows[1:] = next_state[:, columns] + 1
        head = np.array([len(rows), len(columns), 0])
        parts = [head, classes, rows.ravel(), np.zeros(1, np.int32), ends]
        if isinstance(automaton, KeyAutomaton):
            keys = Dfa(next_state, ends > 0)
            least = least_left(keys, left := strings_left(keys))
            parts += [np.zeros(1, np.int32), least, np.zeros(1, np.int32), left]
        array: Array = np.concatenate(parts).astype(np.int32)
        array[layout.AUTOMATON_ID] = self.ids.of(("automaton", hashlib.sha256(array.tobytes()).digest()))
        return array

    def leaf_of(self, shape: Strings | Numbers | StringLiterals | Spellings) -> Leaf:
        """What tables need of a shape of scalars. Raises: LimitError, as `length_table`."""
        of, automaton, lengths, texts = self.ids.of, None, None, None
        if isinstance(shape, StringLiterals | Spellings):
            kind, texts = KINDS[type(shape)], shape.texts
            is_short = len(texts) <= _SHORT and sum(map(len, texts)) <= _SHORT * _EACH
            row = [kind, of((kind, is_short, texts if is_short else digest(texts))), -1, -1, -1]
        elif isinstance(shape, Numbers):
            automaton = self.automaton(shape.automaton)
            row = [layout.NUMBERS, of(("numbers", int(automaton[layout.AUTOMATON_ID]))), -1]
        else:
            least, most = min(shape.least, 1 << 30), -1 if shape.most is None else min(shape.most, 1 << 30)
            content = -1
            if shape.automaton is not None:
                automaton = self.automaton(shape.automaton)
                content = int(automaton[layout.AUTOMATON_ID])
                if least > 0 or most >= 0:
                    lengths = self._kept(self._lengths, shape.automaton, _lengths_array)
            row = [layout.STRINGS, of(("string", least, most, content)), -1, least, most, -1]
        return self.leaves.put(id(shape), Leaf(shape, row, automaton, lengths, texts))


def _lengths_array(automaton: Dfa) -> Array:
    found = length_table(automaton)
    rows = np.full((len(found.next_length), automaton.n_states + 1), -1, np.int32)
    rows[:, 1:] = found.next_length
    return np.concatenate([[found.preperiod, found.period], rows.ravel()]).astype(np.int32)


_now = [Era(0)]
_LOCK = new_lock()


def current_era() -> Era:
    """The era of a table that is made now; whoever makes it keeps to this one."""
    era = _now[0]
    if era.is_over():
        with _LOCK:
            if _now[0] is era:
                _now[0] = Era(era.number + 1)
    return _now[0]
