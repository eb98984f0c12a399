"""From a schema's texts to the arrays that the schema engine reads (`layout`).

PERF: this is on the way to the first mask of each request, so it is plain loops over lists. What
automata and literals need is cached by their content, for all schemas of the process.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import column_classes
from maskwright.analysis.schema.lengths import length_table
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    KeyAutomaton,
    Numbers,
    Objects,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
    Texts,
)
from maskwright.maskstore.schema import layout

Array = npt.NDArray[np.int32]

MOST_INTEGERS = 1 << 28
"""BOUND: the integers of a table and of its automata."""

_FREE_SPACING = [0, 0, 0, 0, 1]
_NO_SPACING = [-1, -1, -1, -1, 1]


class SchemaTable(NamedTuple):
    """A schema as the engine reads it.

    table, automata : (n,), (m,) int32, read-only; see `layout`.
    """

    table: Array
    automata: Array


class _Ids:
    """Content ids: one number for equal keys.

    A key that has been forgotten gets a new number, which only costs what was kept under the old
    one.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._numbers: dict[Any, int] = {}
        self._next = itertools.count(1)
        self._most = most
        self._lock = threading.Lock()

    def of(self, key: Any) -> int:
        """The number of a key."""
        found = self._numbers.get(key)
        if found is None:
            with self._lock:
                if len(self._numbers) >= self._most:
                    self._numbers.clear()
                found = self._numbers.setdefault(key, next(self._next))
        return found

    def new(self) -> int:
        """A number that nothing else has."""
        with self._lock:
            return next(self._next)


_IDS = _Ids()
_ARRAYS: dict[int, tuple[Any, Array]] = {}
"""id of an automaton -> the automaton, so that the id stays its own, and its array."""
_LENGTHS: dict[int, tuple[Any, Array]] = {}
_MOST_KEPT = 4096


def _kept(cache: dict[int, tuple[Any, Array]], key: Any, make: Any) -> Array:
    found = cache.get(id(key))
    if found is None:
        if len(cache) >= _MOST_KEPT:
            cache.clear()
        found = cache[id(key)] = (key, make(key))
    return found[1]


def _automaton_array(automaton: Dfa | KeyAutomaton) -> Array:
    """An automaton as `layout` says, but for its content id."""
    next_state = automaton.next_state
    ends = automaton.is_accepting.astype(np.int32) if isinstance(automaton, Dfa) else automaton.ends + 1
    classes, columns = column_classes(next_state)
    rows = np.zeros((len(next_state) + 1, len(columns)), np.int32)
    rows[1:] = next_state[:, columns] + 1
    array = np.concatenate([[len(rows), len(columns), 0], classes, rows.ravel(), [0], ends]).astype(np.int32)
    array[layout.AUTOMATON_ID] = _IDS.of(("automaton", array.tobytes()))
    return array


def _lengths_array(automaton: Dfa) -> Array:
    found = length_table(automaton)
    rows = np.full((len(found.next_length), automaton.n_states + 1), -1, np.int32)
    rows[:, 1:] = found.next_length
    return np.concatenate([[found.preperiod, found.period], rows.ravel()]).astype(np.int32)


class _Writer:
    """A schema's arrays in the making."""

    def __init__(self, texts: Texts) -> None:
        self.graph = texts.graph
        self.out: list[int] = [0] * layout.TABLE_HEADER
        self.parts: list[Array] = []
        self.size = 0
        self._places: dict[int, int] = {}
        self._literals: dict[tuple[bytes, ...], int] = {}
        self._shapes: dict[int, int] = {}
        self._plain: dict[int, int] = {}  # shape -> its content id, for shapes that name no nodes
        self.words = 16
        self.out[layout.SPACING] = len(self.out)
        rows = _FREE_SPACING if texts.spacing is None else _spacing_rows(texts.spacing)
        self.out += rows
        self.out[layout.SPACING_ID] = _IDS.of(("spacing", *rows))
        self.nodes = self._lay_out_nodes()
        self.out[layout.ROOT] = self.nodes[self.graph.root]

    def _lay_out_nodes(self) -> list[int]:
        """The offset of each node; its shapes are written later."""
        found = []
        for shapes in self.graph.nodes:
            found.append(len(self.out))
            self.out += [0, len(shapes), *[0] * len(shapes)]
        return found

    def write(self) -> SchemaTable:
        out = self.out
        for offset, shapes in zip(self.nodes, self.graph.nodes, strict=True):
            self._write_node(offset, shapes)
            if len(out) > MOST_INTEGERS:
                raise LimitError("the schema's table has more than 2^28 integers; make the schema smaller")
        out[layout.MOST_WORDS] = self.words
        table = np.array(out, np.int32)
        table.setflags(write=False)
        automata = np.concatenate(self.parts) if self.parts else np.zeros(1, np.int32)
        automata.setflags(write=False)
        return SchemaTable(table, automata)

    def _write_node(self, offset: int, shapes: tuple[Shape, ...]) -> None:
        out, ids, words = self.out, [], 0
        for k, shape in enumerate(shapes):
            found = self._shapes.get(id(shape))
            if found is None:
                found = self._shapes[id(shape)] = self._write_shape(shape)
            out[offset + layout.NODE_SHAPES + k] = found
            ids.append(self._plain.get(found, 0))
            if isinstance(shape, Objects):
                words += 8 + out[found + layout.N_WORDS]
            elif isinstance(shape, Arrays):
                words += 8 + (out[found + layout.N_UNIQUE] + 31 >> 5)
        out[offset] = _IDS.of(("node", *ids)) if all(ids) else _IDS.new()
        # a byte may open all of a node's objects or arrays, behind the frames of the array around
        self.words = max(self.words, 4 * words + 64)

    def _write_shape(self, shape: Shape) -> int:
        if isinstance(shape, Strings):
            return self._string(shape)
        if isinstance(shape, Numbers):
            automaton = self.place(shape.automaton)
            return self._emit([layout.NUMBERS, 0, automaton], ("numbers", self._id_of(automaton)))
        if isinstance(shape, StringLiterals | Spellings):
            return self._literal_shape(shape, None)
        if isinstance(shape, Objects):
            return self._object(shape)
        return self._array(shape)

    def _emit(self, values: list[int], content: tuple[Any, ...] | None) -> int:
        at = len(self.out)
        if content is None:
            values[layout.SHAPE_ID] = _IDS.new()
        else:
            values[layout.SHAPE_ID] = self._plain[at] = _IDS.of(content)
        self.out += values
        return at

    def place(self, automaton: Dfa | KeyAutomaton) -> int:
        """The offset of an automaton."""
        return self._place(automaton, _kept(_ARRAYS, automaton, _automaton_array))

    def _place(self, key: Any, array: Array) -> int:
        found = self._places.get(id(array))
        if found is None:
            found = self._places[id(array)] = self.size
            self.parts.append(array)
            self.size += len(array)
            if self.size > MOST_INTEGERS:
                raise LimitError("the schema's patterns have more than 2^28 integers of automata; make them simpler")
        return found

    def _id_of(self, offset: int) -> int:
        """The content id of the automaton at an offset."""
        at = 0
        for part in self.parts:
            if at == offset:
                return int(part[layout.AUTOMATON_ID])
            at += len(part)
        raise KeyError(offset)

    def literals(self, texts: tuple[bytes, ...]) -> int:
        """The offset of sorted literals."""
        found = self._literals.get(texts)
        if found is None:
            found = self._literals[texts] = len(self.out)
            starts = list(itertools.accumulate(map(len, texts), initial=0))
            self.out += [len(texts), *starts, *b"".join(texts)]
        return found

    def _literal_shape(self, shape: StringLiterals | Spellings, numbers: dict[bytes, int] | None) -> int:
        is_string = isinstance(shape, StringLiterals)
        kind = layout.STRING_LITERALS if is_string else layout.SPELLINGS
        unique = -1
        if numbers is not None:
            unique = len(self.out)
            self.out += [numbers[_unique_key(is_string, text)] for text in shape.texts]
        literals = self.literals(shape.texts)
        return self._emit([kind, 0, literals, unique], (kind, *shape.texts) if numbers is None else None)

    def _string(self, shape: Strings) -> int:
        most = -1 if shape.most is None else min(shape.most, 1 << 30)
        least = min(shape.least, 1 << 30)
        if shape.automaton is None:
            return self._emit([layout.STRINGS, 0, -1, least, most, -1], ("string", least, most))
        automaton = self.place(shape.automaton)
        lengths = -1
        if least > 0 or most >= 0:
            lengths = self._place(shape.automaton, _kept(_LENGTHS, shape.automaton, _lengths_array))
        content = ("string", least, most, self._id_of(automaton))
        return self._emit([layout.STRINGS, 0, automaton, least, most, lengths], content)

    def _node(self, node: int) -> int:
        return -1 if node == NO_NODE else self.nodes[node]

    def _object(self, shape: Objects) -> int:
        out, n = self.out, len(shape.keys)
        n_words = 0 if shape.ranks is not None else n + 31 >> 5
        values = len(out)
        out += [self._node(node) for node in shape.values]
        others = len(out)
        out += [self._node(node) for node in shape.others]
        required = len(out)
        out += _bits(shape.required)
        ranks, next_required, n_ranked = -1, -1, 0
        if shape.ranks is not None:
            ranks = len(out)
            # keys that may not be there have no rank
            order = sorted((rank, key) for key, rank in enumerate(shape.ranks) if shape.values[key] != NO_NODE)
            place = {key: rank for rank, (_, key) in enumerate(order)}
            out += [place.get(key, -1) for key in range(n)]
            next_required, least, n_ranked = len(out), len(order), len(order)
            following = [least]
            for _, key in reversed(order):
                least = place[key] if shape.required[key] else least
                following.append(least)
            out += [*reversed(following), len(order)]
        automaton = -1 if shape.key_automaton is None else self.place(shape.key_automaton)
        keys = self.literals(shape.keys)
        values_ = [0] * layout.OBJECT_SIZE
        values_[layout.KIND] = layout.OBJECTS
        values_[layout.N_KEYS], values_[layout.KEYS], values_[layout.N_WORDS] = n, keys, n_words
        values_[layout.N_REQUIRED] = sum(shape.required)
        values_[layout.LEAST] = min(shape.least, 1 << 30)
        values_[layout.MOST] = -1 if shape.most is None else min(shape.most, 1 << 30)
        values_[layout.N_OTHERS], values_[layout.OTHERS] = len(shape.others), others
        values_[layout.KEY_AUTOMATON], values_[layout.REQUIRED] = automaton, required
        values_[layout.VALUES], values_[layout.RANKS] = values, ranks
        values_[layout.NEXT_REQUIRED], values_[layout.N_RANKED] = next_required, n_ranked
        values_[layout.TRACKS_KEYS] = int(bool(shape.others))
        return self._emit(values_, None)

    def _array(self, shape: Arrays) -> int:
        unique = self._unique_numbers(shape)
        node_of = (lambda node: self._node(node)) if unique is None else self._unique_node(unique)
        prefix_nodes, items = [node_of(node) for node in shape.prefix], node_of(shape.items)
        values = [0] * layout.ARRAY_SIZE
        values[layout.KIND] = layout.ARRAYS
        values[layout.N_PREFIX], values[layout.PREFIX], values[layout.ITEMS] = len(prefix_nodes), len(self.out), items
        self.out += prefix_nodes
        values[layout.LEAST] = min(shape.least, 1 << 30)
        values[layout.MOST] = -1 if shape.most is None else min(shape.most, 1 << 30)
        values[layout.N_UNIQUE] = 0 if unique is None else len(unique)
        if shape.is_unique and unique is None:
            nodes = {*shape.prefix, shape.items} - {NO_NODE}
            has_words = any(isinstance(each, Spellings) for node in nodes for each in self.graph.nodes[node])
            values[layout.TRACKS_ITEMS] = 2 if has_words else 1
        if shape.contained is not None:
            values[layout.HAS_CONTAINED] = 1
            values[layout.CONTAINED_LEAST] = min(shape.contained.least, 1 << 30)
            most = shape.contained.most
            values[layout.CONTAINED_MOST] = -1 if most is None else min(most, 1 << 30)
            values[layout.CONTAINED_PREFIX] = len(self.out)
            self.out += [self._node(node) for node in shape.contained.prefix]
            values[layout.CONTAINED_ITEMS] = self._node(shape.contained.items)
        return self._emit(values, None)

    def _unique_numbers(self, shape: Arrays) -> dict[bytes, int] | None:
        """A number for each value that unique items may have, where they are finitely many."""
        if not shape.is_unique:
            return None
        nodes = {*shape.prefix, shape.items} - {NO_NODE}
        shapes = [each for node in sorted(nodes) for each in self.graph.nodes[node]]
        if not all(isinstance(each, StringLiterals | Spellings) for each in shapes):
            return None
        texts = {
            _unique_key(isinstance(each, StringLiterals), text)
            for each in shapes
            if isinstance(each, StringLiterals | Spellings)
            for text in each.texts
        }
        return {text: number for number, text in enumerate(sorted(texts))}

    def _unique_node(self, numbers: dict[bytes, int]) -> Any:
        """What writes a node whose literals know their numbers, once for each node."""
        made: dict[int, int] = {NO_NODE: -1}

        def node_of(node: int) -> int:
            if node not in made:
                shapes = [self._literal_shape(each, numbers) for each in self.graph.nodes[node]]  # type: ignore[arg-type]
                made[node] = len(self.out)
                self.out += [_IDS.new(), len(shapes), *shapes]
            return made[node]

        return node_of


def _unique_key(is_string: bool, text: bytes) -> bytes:
    return b'"' + text if is_string else text


def _spacing_rows(spacing: Dfa) -> list[int]:
    """The rows of a white space's automaton, see `layout.SPACING_ROW`."""
    found: list[int] = []
    for row, ends in zip(spacing.next_state[:, [32, 9, 10, 13]].tolist(), spacing.is_accepting.tolist(), strict=True):
        found += [*row, int(ends)]
    return found


def _bits(flags: tuple[bool, ...]) -> list[int]:
    """Flags as words of 32 bits, the least significant first, in the range of int32."""
    words = [0] * (len(flags) + 31 >> 5)
    for number, flag in enumerate(flags):
        if flag:
            words[number >> 5] |= 1 << (number & 31)
    return [word - (1 << 32) if word >> 31 else word for word in words]


def write_schema(texts: Texts) -> SchemaTable:
    """The arrays of a schema's texts.

    Raises: LimitError if they would have more than `MOST_INTEGERS` integers, or as `length_table`.
    Cost: O(the schema's size); 10 us for each node.
    """
    return _Writer(texts).write()


def write_text(automaton: Dfa) -> SchemaTable:
    """The arrays of all texts of an automaton over bytes: no JSON, no white space around it."""
    out = [0] * layout.TABLE_HEADER
    out[layout.SPACING] = len(out)
    out += _NO_SPACING
    out[layout.SPACING_ID] = _IDS.of(("spacing", *_NO_SPACING))
    shape = len(out)
    array = _kept(_ARRAYS, automaton, _automaton_array)
    out += [layout.NUMBERS, _IDS.of(("text", int(array[layout.AUTOMATON_ID]))), 0]
    out[layout.ROOT] = len(out)
    out += [_IDS.new(), 1, shape]
    out[layout.IS_TEXT], out[layout.MOST_WORDS] = 1, 16
    return SchemaTable(np.array(out, np.int32), array)
