"""From a schema's texts to the arrays that the schema engine reads (`layout`).

PERF: this is on the way to the first mask of each request, so it is plain loops over lists. What
shapes of scalars need is cached, for all schemas of the process (`eras`).
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import DeadEndError, LimitError, VocabularyError
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.lengths import ENDLESS
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Numbers,
    Objects,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
    Texts,
)
from maskwright.analysis.schema.spacing import NOTHING, Spacing
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.eras import KINDS, Era, current_era
from maskwright.maskstore.vocabulary import Vocabulary

Array = npt.NDArray[np.int32]

MOST_INTEGERS = 1 << 28
"""BOUND: the integers of a table and of its automata."""

ESCAPES = {"any": layout.ANY_ESCAPES, "minimal": layout.MINIMAL_ESCAPES, "natural": layout.NATURAL_ESCAPES}


SchemaTable = tuple[Array, Array, int]
"""A schema as the engine reads it: `table` and `automata` of `SchemaTables`, and their era."""

_Literal = tuple[int, bytes]
"""A kind of literals, and the text of one of them."""

_TEXTS: dict[tuple[bytes, ...], list[int]] = {}
"""Literals -> their integers, where these are few."""
_MOST_TEXTS, _FEW = 4096, 256


def _literals_of(texts: tuple[bytes, ...]) -> list[int]:
    """The integers of sorted literals."""
    made = [len(texts), *itertools.accumulate(map(len, texts), initial=0), *b"".join(texts)]
    if len(made) <= _FEW:
        if len(_TEXTS) >= _MOST_TEXTS:
            _TEXTS.clear()
        _TEXTS[texts] = made
    return made


class _Writer:
    """A schema's arrays in the making."""

    def __init__(self, texts: Texts) -> None:
        self.graph = texts.graph
        self.era = current_era()
        self.new_id, self.id_of_node = self.era.ids.new, self.era.ids.of_numbers
        self.parts: list[Array] = []
        self.size = 0
        self._places: dict[int, int] = {}
        self._literals: dict[tuple[bytes, ...], int] = {}
        self.out = out = _header(texts.spacing, self.era)
        out[layout.ESCAPES] = ESCAPES[texts.escapes]
        self.shapes = [one if len(one) <= layout.MOST_APART else _united(one) for one in self.graph.nodes]
        self.nodes = nodes = list[int]()  # the offset of each, whose shapes are written later; -1 for `NO_NODE`
        for shapes in self.shapes:
            nodes.append(len(out))
            out += (0, 1, 0) if len(shapes) == 1 else (0, len(shapes), *[0] * len(shapes))
        nodes.append(-1)
        out[layout.ROOT] = nodes[self.graph.root]

    def write(self) -> SchemaTable:
        """The arrays. Raises: as `write_schema`."""
        out, most_words = self.out, 16
        placed: dict[int, int] = {}
        words_of: list[int] = []  # by node, as many as its objects and arrays take when they begin
        counted: list[tuple[Arrays, int]] = []
        for node, shapes in enumerate(self.shapes):
            look()
            at, words = self.nodes[node], 0
            ids: list[int] = []
            for k, shape in enumerate(shapes, at + layout.NODE_SHAPES):
                found = placed.get(id(shape), -1)
                if found < 0:
                    found = placed[id(shape)] = self._shape(shape)
                out[k] = found
                kind = out[found]
                if shape.__class__ is list:
                    words += 16 + out[found + layout.N_WORDS]
                elif kind == layout.OBJECTS:
                    words += (12 + out[found + layout.N_WORDS]) * (1 + out[found + layout.N_WANTED])
                elif kind == layout.ARRAYS:
                    words += 12 + (out[found + layout.N_UNIQUE] + 31 >> 5)
                    if isinstance(shape, Arrays) and shape.states:
                        counted.append((shape, words))
                else:
                    ids.append(out[found + layout.SHAPE_ID])
            # a node of scalars is the same in all schemas; others name nodes
            out[at] = self.new_id() if words else self.id_of_node("node", ids)
            # a byte may open all of a node's objects and arrays, behind the array's frame around it
            most_words = max(most_words, 4 * words + 64)
            words_of.append(words)
            if len(out) > MOST_INTEGERS:
                raise LimitError("the schema's table has more than 2^28 integers; make the schema smaller")
        for shape, words in counted:  # all ways of an item at once: each with a frame of the array
            ways = (sum([12 + words + words_of[node] for node, _ in state.moves]) for state in shape.states)
            most_words = max(most_words, 4 * max(ways) + 64)
        out[layout.MOST_WORDS] = most_words
        table = np.frombuffer(struct.pack(f"={len(out)}i", *out), np.int32)  # of bytes: read-only
        automata = np.concatenate(self.parts) if self.parts else np.zeros(1, np.int32)
        automata.setflags(write=False)
        return table, automata, self.era.number

    def _shape(self, shape: Shape | list[Objects]) -> int:
        if isinstance(shape, list):
            return self._alternatives(shape)
        if isinstance(shape, Objects):
            return self._object(shape)
        return self._array(shape) if isinstance(shape, Arrays) else self._leaf(shape)

    def place(self, array: Array) -> int:
        """The offset of an automaton's array, or of that of its lengths."""
        found = self._places.get(id(array))
        if found is None:
            found = self._places[id(array)] = self.size
            self.parts.append(array)
            self.size += len(array)
            if self.size > MOST_INTEGERS:
                raise LimitError("the schema's patterns have more than 2^28 integers of automata; make them simpler")
        return found

    def literals(self, texts: tuple[bytes, ...]) -> int:
        """The offset of sorted literals."""
        found = self._literals.get(texts)
        if found is None:
            found = self._literals[texts] = len(self.out)
            self.out += _TEXTS.get(texts) or _literals_of(texts)
        return found

    def _leaf(self, shape: Strings | Numbers | StringLiterals | Spellings) -> int:
        _, row, automaton, lengths, texts = self.era.leaves.get(id(shape)) or self.era.leaf_of(shape)
        out = self.out
        literals = -1 if texts is None else self.literals(texts)
        at = len(out)
        out += row
        if texts is not None:
            out[at + layout.LITERALS] = literals
        elif automaton is not None:
            out[at + layout.STRING_AUTOMATON] = self.place(automaton)  # that of numbers stands there too
            if lengths is not None:
                out[at + layout.STRING_LENGTHS] = self.place(lengths)
        return at

    def _told(self, numbers: dict[_Literal, int], field: int) -> int:
        """Writes the node of some literals, with a number for each. Returns its offset.

        field : where the numbers' offset stands: `layout.UNIQUE_NUMBERS`, or LEAVES.
        """
        out, shapes = self.out, []
        for kind in KINDS.values():
            texts = tuple(sorted([text for of, text in numbers if of == kind]))
            if texts:
                literals, listed = self.literals(texts), len(out)
                out += [numbers[kind, text] for text in texts]
                shapes.append(len(out))
                out += (kind, self.new_id(), literals, -1, -1)
                out[shapes[-1] + field] = listed
        at = len(out)
        out += (self.new_id(), len(shapes), *shapes)
        return at

    def _ranked(self, shape: Objects, ranks: tuple[int, ...]) -> tuple[int, int, int]:
        """Writes the order of an object's keys.

        Returns the offsets of RANKS and NEXT_REQUIRED, and N_RANKED.
        """
        at, n = len(self.out), len(ranks)
        # keys that may not be there have no rank
        order = sorted((rank, key) for key, rank in enumerate(ranks) if shape.values[key] != NO_NODE)
        place = {key: rank for rank, (_, key) in enumerate(order)}
        following = [len(order)] * 2
        for _, key in reversed(order):
            following.append(place[key] if shape.required[key] else following[-1])
        self.out += [*[place.get(key, -1) for key in range(n)], *reversed(following)]
        return at, at + n, len(order)

    def _object(self, shape: Objects) -> int:
        out, nodes, n = self.out, self.nodes, len(shape.keys)
        values = len(out)
        out += [nodes[node] for node in shape.values]
        others = len(out)
        out += [nodes[node] for row in (shape.others, *shape.wanted) for node in row]
        required = len(out)
        out += _bits(shape.required)
        n_words, ranks, next_required, n_ranked = n + 31 >> 5, -1, -1, 0
        if shape.ranks is not None:
            n_words = 0
            ranks, next_required, n_ranked = self._ranked(shape, shape.ranks)
        automaton, n_names = -1, -1 if shape.others else 0
        if shape.key_automaton is not None:
            array = self.era.automaton(shape.key_automaton)
            automaton = self.place(array)
            left = int(array[1 - array[layout.N_STATES]])  # of the initial state: those of all stand last
            n_names = left if left < ENDLESS else -1
        keys = self.literals(shape.keys)
        most = -1 if shape.most is None else min(shape.most, 1 << 30)
        n_wanted, n_others = len(shape.wanted), len(shape.others)
        n_words, n_required = n_words + (n_wanted > 0), shape.required.count(True) + n_wanted
        at = len(out)
        out += (  # in the order of `layout`
            layout.OBJECTS, self.new_id(), n, keys, n_words, n_required, min(shape.least, 1 << 30), most,
            n_others, others, automaton, required, values, ranks, next_required, n_ranked, int(n_others > 0), n_names,
            n_wanted, -1,
        )  # fmt: skip
        return at

    def _alternatives(self, shapes: list[Objects]) -> int:
        """Writes the union of some objects (`layout.ALTERNATIVES`)."""
        out, nodes, n = self.out, self.nodes, len(shapes)
        keys = tuple(sorted({key for shape in shapes for key in shape.keys}))
        place = {key: number for number, key in enumerate(keys)}
        rules: list[dict[int, list[int]]] = [{} for _ in keys]
        classes: dict[int, list[int]] = {}
        each: list[int] = []
        for number, shape in enumerate(shapes):
            for key, node in zip(shape.keys, shape.values, strict=True):
                rules[place[key]].setdefault(node, []).append(number)
            for node in shape.others:
                classes.setdefault(node, []).append(number)
            required = [place[key] for key, is_required in zip(shape.keys, shape.required, strict=True) if is_required]
            each += (min(shape.least, 1 << 30), self._list(required), int(len(shape.others) > 0))
        of_keys = []
        for by_node in rules:
            listed = {node: by_node[node] for node in by_node if node >= 0 and _are_listed(self.graph.nodes[node])}
            listed = listed if len(listed) > 1 else {}
            written = [(nodes[node], numbers) for node, numbers in by_node.items() if node not in listed]
            if listed:
                written.append((self._leaving(listed), sorted({*itertools.chain(*listed.values())})))
            parts = [part for node, numbers in written for part in (node, self._list(numbers))]
            of_keys.append(len(out))
            out += (len(written), *parts)
        at_rules, at_classes = len(out), len(out) + len(of_keys)
        out += of_keys
        for node, numbers in classes.items():
            out += (nodes[node], *_bits(tuple(map(set(numbers).__contains__, range(n)))))
        required_bits = len(out)
        out += _bits((False,) * len(keys))
        block = len(out)
        n_words = (len(keys) + 31 >> 5) + (n + 31 >> 5)
        most_frames = 2 + len(classes) + max(map(len, rules), default=0)
        out += (n, len(classes), at_classes, at_rules, 4 * most_frames * (16 + n_words), *each)
        literals = self.literals(keys)
        at = len(out)
        out += (  # in the order of `layout`
            layout.OBJECTS, self.new_id(), len(keys), literals, n_words, 0,
            max(each[::layout.EACH_SIZE]), -1, len(classes), -1, -1, required_bits, -1, -1, -1, 0, int(len(classes) > 0),
            -1 if classes else 0, 0, block,
        )  # fmt: skip
        return at

    def _leaving(self, nodes: dict[int, list[int]]) -> int:
        """Writes the node of all literals of some nodes, with what each leaves. Returns its offset.

        nodes : of literals -> the alternatives in which a member is of it.
        """
        found: dict[_Literal, dict[int, None]] = {}
        for node, numbers in nodes.items():
            for literal in _literals_in(self.graph.nodes[node]):
                found.setdefault(literal, {}).update(dict.fromkeys(numbers))
        return self._told({literal: self._list(sorted(some)) for literal, some in found.items()}, layout.LEAVES)

    def _list(self, numbers: list[int]) -> int:
        """Writes a list: its size, and then it."""
        at = len(self.out)
        self.out += (len(numbers), *numbers)
        return at

    def _array(self, shape: Arrays) -> int:
        out, nodes = self.out, self.nodes
        node_of: Callable[[int], int] = nodes.__getitem__
        n_unique, tracks = 0, 0
        if shape.is_unique and not shape.is_deep:
            inside = [each for node in {*shape.item_nodes} - {NO_NODE} for each in self.graph.nodes[node]]
            if _are_listed(inside):
                numbers = {literal: number for number, literal in enumerate(sorted({*_literals_in(inside)}))}
                made = {NO_NODE: -1}
                for node in {*shape.item_nodes} - {NO_NODE}:
                    literals = _literals_in(self.graph.nodes[node])
                    made[node] = self._told({literal: numbers[literal] for literal in literals}, layout.UNIQUE_NUMBERS)
                n_unique, node_of = len(numbers), made.__getitem__
            else:
                is_limited = [isinstance(each, Strings) and each.most is not None for each in inside]
                tracks = 2 if any(is_limited) or Spellings in map(type, inside) else 1
        prefix_nodes, items = [node_of(node) for node in shape.prefix], node_of(shape.items)
        prefix = len(out)
        out += prefix_nodes
        most = -1 if shape.most is None else min(shape.most, 1 << 30)
        contained = [0] * 5
        if shape.states:
            contained = [layout.BY_STATES, 0, -1, self._states(shape, node_of), -1]
        elif shape.contained is not None:
            limit = shape.contained.most
            contained[:3] = 1, min(shape.contained.least, 1 << 30), -1 if limit is None else min(limit, 1 << 30)
            contained[3:] = len(out), nodes[shape.contained.items]
            out += [nodes[node] for node in shape.contained.prefix]
        at = len(out)
        out += (  # in the order of `layout`
            layout.ARRAYS, self.new_id(), len(prefix_nodes), prefix, items, n_unique, min(shape.least, 1 << 30), most,
            *contained, tracks,
        )  # fmt: skip
        return at

    def _states(self, shape: Arrays, node_of: Callable[[int], int]) -> int:
        """Writes the states of an array's items. Returns the offset of their offsets.

        Raises: LimitError if an item has more shapes than the engine has room for.
        """
        out, places, sizes = self.out, [], self.shapes
        for state in shape.states:
            nodes = [node_of(node) for node, _ in state.moves]  # written before the state
            if sum([len(sizes[node]) for node, _ in state.moves]) > 2 * layout.MOST_SHAPES:
                raise LimitError(
                    f"the items of an array have more than {2 * layout.MOST_SHAPES} shapes in one place: use fewer `contains`, or fewer "
                    "alternatives in its items"
                )
            places.append(len(out))
            out += (int(state.is_end), len(nodes))
            for node, (_, after) in zip(nodes, state.moves, strict=True):
                out += (node, after)
        at = len(out)
        out += places
        return at


def _are_listed(shapes: Iterable[Shape]) -> bool:
    """Whether all values of some shapes are literals."""
    return KINDS.keys() >= {*map(type, shapes)}


def _literals_in(shapes: Iterable[Shape]) -> Iterator[_Literal]:
    """The literals of some shapes."""
    for shape in shapes:
        if isinstance(shape, StringLiterals | Spellings):
            yield from ((KINDS[type(shape)], text) for text in shape.texts)


def _united(shapes: tuple[Shape, ...]) -> tuple[Any, ...]:
    """The shapes of a node as they are written: a list of objects is their union."""
    simple = [shape for shape in shapes if isinstance(shape, Objects) and shape.is_simple]
    if len(simple) <= layout.MOST_APART:
        return shapes
    return *[shape for shape in shapes if not (isinstance(shape, Objects) and shape.is_simple)], simple


def _header(spacing: Spacing, era: Era) -> list[int]:
    """The header of a table, and behind it the rows of the white space."""
    out = [0] * layout.TABLE_HEADER
    opened, comma = spacing.opened, spacing.behind_comma
    out[layout.SPACING], out[layout.N_SPACES], out[layout.INDENT] = len(out), len(spacing.rows), spacing.indent
    out[layout.SPACE_STARTS :] = (spacing.behind_colon, 0, opened, comma, spacing.before_colon, opened, spacing.outer)
    for row in spacing.rows:
        out += row
    out[layout.SPACING_ID] = era.spacings.of_numbers("spacing", out)
    return out


def _bits(flags: tuple[bool, ...]) -> list[int]:
    """Flags as words of 32 bits, the least significant first, in the range of int32."""
    words = [0] * (len(flags) + 31 >> 5)
    if True not in flags:
        return words
    for number, flag in enumerate(flags):
        if flag:
            words[number >> 5] |= 1 << (number & 31)
    return [word - (1 << 32) if word >> 31 else word for word in words]


def write_schema(texts: Texts) -> SchemaTable:
    """The arrays of a schema's texts.

    Raises: LimitError if they would have more than `MOST_INTEGERS` integers, a node has more than
    `layout.MOST_SHAPES` shapes beside those that are one, or as `length_table`.
    Cost: O(the schema's size); 3 us for each node.
    """
    writer = _Writer(texts)
    most = max(map(len, writer.shapes))
    if most > layout.MOST_SHAPES:
        raise LimitError(
            f"the values of a subschema have {most:,} shapes, and {layout.MOST_SHAPES} can be told apart: use fewer alternatives (anyOf, "
            "oneOf, if, dependencies) in one place"
        )
    return writer.write()


def write_text(automaton: Dfa) -> SchemaTable:
    """The arrays of all texts of an automaton over bytes: no JSON, no white space around it."""
    era = current_era()
    out = _header(NOTHING, era)
    out[layout.SPACING_ID] = era.spacings.of("a text that is no JSON")
    shape = len(out)
    array = era.automaton(automaton)
    out += [layout.NUMBERS, era.ids.of(("text", int(array[layout.AUTOMATON_ID]))), 0]
    out[layout.ROOT] = len(out)
    out += [era.ids.new(), 1, shape]
    out[layout.IS_TEXT], out[layout.MOST_WORDS] = 1, 16
    table = np.array(out, np.int32)
    table.setflags(write=False)
    return table, array, era.number


def tables_of(constraint: JsonSchema | Regex, vocabulary: Vocabulary) -> SchemaTables:
    """The tables of a JSON schema or a regular expression, for a vocabulary.

    Raises: VocabularyError if no token stands for text; LimitError if the tables grow past their
    limits; DeadEndError if nothing matches the expression.
    Cost: 10 us for each node of the schema.
    """
    if not len(vocabulary.text_ids()):
        raise VocabularyError(f"vocabulary {vocabulary.name} has no token that stands for text")
    if isinstance(constraint, Regex):
        if constraint.automaton.is_empty:
            raise DeadEndError(f"no text matches {constraint.name}, so no store is made")
        automaton = constraint.automaton
        return SchemaTables(constraint.name, automaton, vocabulary, *write_text(automaton), constraint)
    return SchemaTables(constraint.name, constraint.texts, vocabulary, *write_schema(constraint.texts), constraint)
