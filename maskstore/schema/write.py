"""From a schema's texts to the arrays that the schema engine reads (`layout`).

PERF: this is on the way to the first mask of each request, so it is plain loops over lists. What
shapes of scalars need is cached, for all schemas of the process (`eras`).
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

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
from maskwright.maskstore.schema.eras import Era, current_era
from maskwright.maskstore.vocabulary import Vocabulary

Array = npt.NDArray[np.int32]

MOST_INTEGERS = 1 << 28
"""BOUND: the integers of a table and of its automata."""

ESCAPES = {"any": layout.ANY_ESCAPES, "minimal": layout.MINIMAL_ESCAPES, "natural": layout.NATURAL_ESCAPES}


class SchemaTable(NamedTuple):
    """A schema as the engine reads it.

    table, automata : (n,), (m,) int32, read-only; see `layout`.
    era : of its content ids, see `eras`.
    """

    table: Array
    automata: Array
    era: int


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
        self.out = _header(texts.spacing, self.era)
        self.out[layout.ESCAPES] = ESCAPES[texts.escapes]
        self.shapes = [_united(shapes) for shapes in self.graph.nodes]
        self.nodes = self._lay_out_nodes()
        self.out[layout.ROOT] = self.nodes[self.graph.root]

    def _lay_out_nodes(self) -> list[int]:
        """The offset of each node, and -1 for `NO_NODE`; their shapes are written later."""
        found, at, out = [], len(self.out), self.out
        for shapes in self.shapes:
            found.append(at)
            n = len(shapes)
            out += (0, n, 0) if n == 1 else (0, n, *[0] * n)
            at += n + layout.NODE_SHAPES
        found.append(-1)
        return found

    def write(self) -> SchemaTable:
        """The arrays. Raises: as `write_schema`."""
        out, most_words = self.out, 16
        placed: dict[int, int] = {}
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
                    words += (16 + out[found + layout.N_WORDS]) * self._most_rules(found)
                elif kind == layout.OBJECTS:
                    words += (12 + out[found + layout.N_WORDS]) * (1 + out[found + layout.N_WANTED])
                elif kind == layout.ARRAYS:
                    words += 12 + (out[found + layout.N_UNIQUE] + 31 >> 5)
                    if isinstance(shape, Arrays) and shape.states:
                        most_words = max(most_words, 4 * self._most_behind(shape, words) + 64)
                else:
                    ids.append(out[found + layout.SHAPE_ID])
            # a node of scalars is the same in all schemas; others name nodes
            out[at] = self.new_id() if words else self.id_of_node("node", ids)
            # a byte may open all of a node's objects and arrays, behind the array's frame around it
            most_words = max(most_words, 4 * words + 64)
            if len(out) > MOST_INTEGERS:
                raise LimitError("the schema's table has more than 2^28 integers; make the schema smaller")
        out[layout.MOST_WORDS] = most_words
        table = np.frombuffer(struct.pack(f"={len(out)}i", *out), np.int32)  # of bytes: read-only
        automata = np.concatenate(self.parts) if self.parts else np.zeros(1, np.int32)
        automata.setflags(write=False)
        return SchemaTable(table, automata, self.era.number)

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

    def _unique_literals(self, shape: StringLiterals | Spellings, numbers: dict[bytes, int]) -> int:
        """The offset of literals that know their numbers among unique items."""
        out, is_string = self.out, isinstance(shape, StringLiterals)
        kind = layout.STRING_LITERALS if is_string else layout.SPELLINGS
        unique = len(out)
        out += [numbers[_unique_key(is_string, text)] for text in shape.texts]
        literals = self.literals(shape.texts)
        at = len(out)
        out += (kind, self.new_id(), literals, unique, -1)
        return at

    def _ranked(self, shape: Objects, ranks: tuple[int, ...]) -> tuple[int, int, int]:
        """Writes the order of an object's keys.

        Returns the offsets of RANKS and NEXT_REQUIRED, and N_RANKED.
        """
        out, n = self.out, len(shape.keys)
        at = len(out)
        # keys that may not be there have no rank
        order = sorted((rank, key) for key, rank in enumerate(ranks) if shape.values[key] != NO_NODE)
        place = {key: rank for rank, (_, key) in enumerate(order)}
        out += [place.get(key, -1) for key in range(n)]
        least = len(order)
        following = [least]
        for _, key in reversed(order):
            least = place[key] if shape.required[key] else least
            following.append(least)
        next_required = len(out)
        out += [*reversed(following), len(order)]
        return at, next_required, len(order)

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
        of_node, are_listed = self.graph.nodes, {StringLiterals, Spellings}.issuperset
        for number, shape in enumerate(shapes):
            for key, node in zip(shape.keys, shape.values, strict=True):
                rules[place[key]].setdefault(node, []).append(number)
            for node in shape.others:
                classes.setdefault(node, []).append(number)
            required = [place[key] for key, is_required in zip(shape.keys, shape.required, strict=True) if is_required]
            each += (min(shape.least, 1 << 30), self._list(required), int(len(shape.others) > 0))
        of_keys = []
        for by_node in rules:
            listed = {node: by_node[node] for node in by_node if node >= 0 and are_listed(map(type, of_node[node]))}
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
        out += (n, len(classes), at_classes, at_rules, *each)
        literals = self.literals(keys)
        at = len(out)
        out += (  # in the order of `layout`
            layout.OBJECTS, self.new_id(), len(keys), literals, (len(keys) + 31 >> 5) + (n + 31 >> 5), 0,
            max(each[::layout.EACH_SIZE]), -1, len(classes), -1, -1, required_bits, -1, -1, -1, 0, int(len(classes) > 0),
            -1 if classes else 0, 0, block,
        )  # fmt: skip
        return at

    def _most_rules(self, at: int) -> int:
        """The most frames that a key's end makes in the object at an offset, of alternatives."""
        out, block = self.out, self.out[at + layout.ALTERNATIVES]
        rules = [out[out[block + layout.RULES] + key] for key in range(out[at + layout.N_KEYS])]
        return 2 + out[block + layout.N_CLASSES_OF_OTHERS] + max([out[one] for one in rules], default=0)

    def _leaving(self, nodes: dict[int, list[int]]) -> int:
        """Writes the node of all literals of some nodes, with what each leaves. Returns its offset.

        nodes : of literals -> the alternatives in which a member is of it.
        """
        out, shapes = self.out, []
        for kind, shape_kind in ((layout.STRING_LITERALS, StringLiterals), (layout.SPELLINGS, Spellings)):
            found: dict[bytes, dict[int, None]] = {}
            for node, numbers in nodes.items():
                for shape in self.graph.nodes[node]:
                    if isinstance(shape, shape_kind):
                        for text in shape.texts:
                            found.setdefault(text, {}).update(dict.fromkeys(numbers))
            if found:
                texts = tuple(sorted(found))
                lists = [self._list(sorted(found[text])) for text in texts]
                leaves = len(out)
                out += lists
                literals = self.literals(texts)
                shapes.append(len(out))
                out += (kind, self.new_id(), literals, -1, leaves)
        at = len(out)
        out += (self.new_id(), len(shapes), *shapes)
        return at

    def _list(self, numbers: list[int]) -> int:
        """Writes a list: its size, and then it."""
        at = len(self.out)
        self.out += (len(numbers), *numbers)
        return at

    def _array(self, shape: Arrays) -> int:
        out, nodes = self.out, self.nodes
        unique = self._unique_numbers(shape)
        node_of: Callable[[int], int] = nodes.__getitem__ if unique is None else self._unique_node(unique)
        prefix_nodes, items = [node_of(node) for node in shape.prefix], node_of(shape.items)
        prefix = len(out)
        out += prefix_nodes
        most = -1 if shape.most is None else min(shape.most, 1 << 30)
        n_unique, tracks = 0 if unique is None else len(unique), 0
        if shape.is_unique and unique is None and not shape.is_deep:
            inside = {*shape.item_nodes} - {NO_NODE}
            shapes = [each for node in inside for each in self.graph.nodes[node]]
            is_limited = any(isinstance(each, Strings) and each.most is not None for each in shapes)
            tracks = 2 if is_limited or any(isinstance(each, Spellings) for each in shapes) else 1
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

    def _most_behind(self, shape: Arrays, n_words: int) -> int:
        """The most integers of frames that one byte opens or replaces behind an array's item.

        n_words : those of the array's frame.
        """

        def opened(node: int) -> int:
            found = 0
            for one in self.graph.nodes[node]:
                if isinstance(one, Objects):
                    found += 13 + (len(one.keys) + 31 >> 5)
                elif isinstance(one, Arrays):
                    unique = self._unique_numbers(one)
                    found += 12 + (len(unique) + 31 >> 5 if unique else 0)
            return found

        return max(sum(12 + n_words + opened(node) for node, _ in state.moves) for state in shape.states)

    def _unique_numbers(self, shape: Arrays) -> dict[bytes, int] | None:
        """A number for each value that unique items may have, where they are finitely many."""
        if not shape.is_unique or shape.is_deep:
            return None
        nodes = {*shape.item_nodes} - {NO_NODE}
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
                shapes = [self._unique_literals(each, numbers) for each in self.graph.nodes[node]]  # type: ignore[arg-type]
                made[node] = len(self.out)
                self.out += [self.new_id(), len(shapes), *shapes]
            return made[node]

        return node_of


def _united(shapes: tuple[Shape, ...]) -> list[Any]:
    """The shapes of a node as they are written: a list of objects is their union."""
    simple = [shape for shape in shapes if isinstance(shape, Objects) and shape.is_simple]
    if len(simple) <= layout.MOST_APART:
        return list(shapes)
    return [*[shape for shape in shapes if not (isinstance(shape, Objects) and shape.is_simple)], simple]


def _unique_key(is_string: bool, text: bytes) -> bytes:
    return b'"' + text if is_string else text


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
    return SchemaTable(table, array, era.number)


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
