"""JSON texts of a graph of shapes from their definition: a judge of whole texts, and all small texts.

Written from the docstrings of `analysis/schema/shapes.py` alone, over Python's own `json`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise, permutations
from typing import Any, NamedTuple

from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Numbers,
    Objects,
    SchemaGraph,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
    Texts,
)
from maskwright.analysis.schema.spacing import spacing_of

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u....|u....|[^u])")
PRINTABLE = {chr(code) for code in range(0x20, 0x7F)}
NEEDED = {'\\"', "\\\\"}
SHORT = {"\b", "\t", "\n", "\f", "\r"}


class Number(NamedTuple):
    text: str


class Object(NamedTuple):
    members: tuple[tuple[str, Any], ...]


def refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text: str, list, None, bool, `Number` or `Object`. Raises: ValueError."""
    return json.loads(
        text if isinstance(text, str) else text.decode(),
        object_pairs_hook=lambda pairs: Object(tuple(pairs)),
        parse_int=Number,
        parse_float=Number,
        parse_constant=refuse,
    )


def is_legal(texts: Texts, text: bytes) -> bool:
    """Whether a text is one of the texts."""
    return is_text_of(texts.graph, text) and has_spacing(texts, text) and has_escapes(texts, text)


def is_text_of(graph: SchemaGraph, text: str | bytes) -> bool:
    """Whether a JSON text has a value of the graph, in whatever white space. Texts with the same key twice have not."""
    try:
        value = parsed(text)
    except ValueError:
        return False
    return Judge(graph).is_value(graph.root, value)


def is_instance(graph: SchemaGraph, value: Any) -> bool:
    """Whether a value is one of the graph, as `json.dumps` writes it."""
    return is_text_of(graph, json.dumps(value))


def has_spacing(texts: Texts, text: bytes) -> bool:
    """Whether the white space before, between and behind the tokens of a JSON text is as it may be."""
    name = name_of(texts)
    if name is None:
        spaces = texts.spacing.language(0)
        return all(spaces.matches(space) for _, space, _, _ in spaced(text))
    return all(
        re.fullmatch(space_between(name, before, after, level), space) for before, space, after, level in spaced(text)
    )


def spaced(text: bytes) -> Iterator[tuple[bytes, bytes, bytes, int]]:
    """The white space of a JSON text, with the tokens before and behind it and the number of open brackets there.

    b"" stands for the text's ends.
    """
    level, at, before = 0, 0, b""
    for match in TOKEN.finditer(text):
        yield before, text[at : match.start()], match[0], level
        before, at = match[0], match.end()
        level += (before in (b"{", b"[")) - (before in (b"}", b"]"))
    yield before, text[at:], b"", level


def name_of(texts: Texts) -> str | None:
    """The named style whose white space texts have."""
    return next((one for one in STYLES if spacing_of(one) == texts.spacing), None)


def respaced(texts: Texts, text: bytes) -> bytes:
    """A JSON text with the least white space that a named style has; of another style unchanged."""
    name = name_of(texts)
    if name is None:
        return text
    spaces = [SHORTEST.sub(b"", space_between(name, a, b, level)) for a, _, b, level in spaced(text)]
    return spaces[0] + b"".join(m[0] + space for m, space in zip(TOKEN.finditer(text), spaces[1:], strict=True))


SHORTEST = re.compile(rb"^ \?.*", re.DOTALL)
STYLES = ("natural", "compact", "json.dumps", *(f"indent{n}" for n in range(5)))


def space_between(name: str, before: bytes, after: bytes, level: int) -> bytes:
    """The pattern of the white space between two tokens, b"" for the text's ends, in so many open brackets."""
    is_opened, is_closing = before in (b"{", b"["), after in (b"}", b"]")
    if name == "natural":
        if after in (b",", b":"):
            return b""
        if before == b":":
            return b" ?"
        return rb" ?|\r?\n[ \t]{0,128}"
    if name == "json.dumps":
        return b" " if before in (b",", b":") else b""
    if name == "compact" or (is_opened and is_closing):
        return b""
    if is_opened or is_closing or before == b",":
        return b"\n" + b" " * (int(name[6:]) * (level - is_closing))
    return b" " if before == b":" else b""


def has_escapes(texts: Texts, text: bytes) -> bool:
    """Whether the strings of a JSON text are spelled as they may be."""
    if texts.escapes == "any":
        return True
    strings = [match[0].decode() for match in TOKEN.finditer(text) if match[0].startswith(b'"')]
    if texts.escapes == "minimal":
        return all(json.dumps(json.loads(one), ensure_ascii=False) == one for one in strings)
    escapes = (escape for one in strings for escape in ESCAPE.findall(one))
    return all(
        each in NEEDED
        or ((character := json.loads(f'"{each}"')) not in PRINTABLE and (len(each) == 2 or character not in SHORT))
        for each in escapes
    )


class Judge:
    """Says which values are those of a graph's nodes; what it has said of arrays and objects it remembers."""

    def __init__(self, graph: SchemaGraph) -> None:
        self.nodes = graph.nodes
        self.known: dict[tuple[int, int], bool] = {}
        self.kept: list[Any] = []

    def is_value(self, node: int, value: Any) -> bool:
        """Whether a value is one of a node's."""
        if node == NO_NODE:
            return False
        if not isinstance(value, (Object, list)):
            return any(self.has_value(shape, value) for shape in self.nodes[node])
        key = (id(value), node)
        if key not in self.known:
            self.kept.append(value)  # so that no other one has its id
            self.known[key] = any(self.has_value(shape, value) for shape in self.nodes[node])
        return self.known[key]

    def has_value(self, shape: Shape, value: Any) -> bool:
        if isinstance(shape, Spellings):
            is_word = value is None or value is True or value is False
            return (
                value.text if isinstance(value, Number) else json.dumps(value) if is_word else ""
            ).encode() in shape.texts
        if isinstance(shape, Numbers):
            return isinstance(value, Number) and shape.automaton.matches(value.text.encode())
        if isinstance(shape, (StringLiterals, Strings)):
            return isinstance(value, str) and is_string(shape, value)
        if isinstance(shape, Objects):
            return type(value) is Object and self.is_object(shape, value)
        return type(value) is list and self.is_array(shape, value)

    def is_object(self, shape: Objects, value: Object) -> bool:
        keys = [key for key, _ in value.members]
        if any("\ud800" <= character <= "\udfff" for key in keys for character in key) or len(set(keys)) < len(keys):
            return False
        if not len(keys) >= shape.least or (shape.most is not None and len(keys) > shape.most):
            return False
        place = {key.decode(): i for i, key in enumerate(shape.keys)}
        if any(is_required and name not in keys for name, is_required in zip(place, shape.required, strict=True)):
            return False
        if shape.ranks is not None:
            ranks = [shape.ranks[place[key]] if key in place else 1 << 30 for key in keys]
            if any(a > b for a, b in pairwise(ranks)):
                return False
        others = [(key, inside) for key, inside in value.members if key not in place]
        ways = permutations(others, len(shape.wanted))
        if not any(
            all(
                self.is_value(other_node(shape, key, row), inside)
                for row, (key, inside) in zip(shape.wanted, way, strict=True)
            )
            for way in ways
        ):
            return False
        return all(
            self.is_value(shape.values[place[key]] if key in place else other_node(shape, key, shape.others), inside)
            for key, inside in value.members
        )

    def is_array(self, shape: Arrays, value: list[Any]) -> bool:
        if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
            return False
        if shape.is_unique and max(Counter(map(compared, value)).values(), default=0) > 1:
            return False
        if shape.states:
            states = {0}
            for item in value:
                moves = [move for number in states for move in shape.states[number].moves]
                states = {after for node, after in moves if self.is_value(node, item)}
            return any(shape.states[number].is_end for number in states)
        inside = shape.contained
        least, most = 0, 0  # of the items that may be read as contained
        for i, item in enumerate(value):
            is_out = self.is_value(shape.prefix[i] if i < len(shape.prefix) else shape.items, item)
            is_in = inside is not None and self.is_value(
                inside.prefix[i] if i < len(inside.prefix) else inside.items, item
            )
            if not (is_out or is_in):
                return False
            least, most = least + (not is_out), most + is_in
        return inside is None or (most >= inside.least and (inside.most is None or least <= inside.most))


def is_string(shape: StringLiterals | Strings, value: str) -> bool:
    if any("\ud800" <= character <= "\udfff" for character in value):
        return False
    if isinstance(shape, StringLiterals):
        return value.encode() in shape.texts
    is_long = len(value) >= shape.least and (shape.most is None or len(value) <= shape.most)
    return is_long and (shape.automaton is None or shape.automaton.matches(value.encode()))


def other_node(shape: Objects, key: str, others: tuple[int, ...]) -> int:
    """The node of a key that is not named. others : the node of each class."""
    if shape.key_automaton is None:
        return others[0] if others else NO_NODE
    state = 0
    for byte in key.encode():
        state = int(shape.key_automaton.next_state[state, byte]) if state >= 0 else -1
    name = int(shape.key_automaton.ends[state]) if state >= 0 else -1
    return NO_NODE if name < 0 else others[name]


def compared(value: Any) -> Any:
    """What items are compared by."""
    if isinstance(value, Object):
        return frozenset((key, compared(inside)) for key, inside in value.members)
    if isinstance(value, list):
        return ("array", *map(compared, value))
    return value_of_number(value.text) if isinstance(value, Number) else json.dumps(value)


def value_of_number(spelled: str) -> tuple[bool, str, int]:
    """Sign, digits and exponent, of which numbers that are equal have the same.

    >>> value_of_number("-1.50e1") == value_of_number("-15"), value_of_number("-0.0")
    (True, (False, '', 0))
    """
    mantissa, _, exponent = spelled.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    if not stripped:
        return False, "", 0
    # by way of a Decimal, which has no limit of digits
    shift = int(Decimal(exponent or "0")) - len(fraction) + len(digits) - len(stripped)
    return spelled.startswith("-"), stripped, shift


def small_texts(n: int, pieces: Iterable[bytes], digits: bytes, words: Iterable[bytes]) -> list[bytes]:
    """All JSON texts of up to `n` bytes without white space.

    pieces : of which strings are made, each the spelling of a character.
    digits : the bytes of which numbers are made.
    words : true, false and null, or some of them.
    """
    pieces, words = tuple(pieces), tuple(words)
    number = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

    @lru_cache(None)
    def contents(k: int) -> tuple[bytes, ...]:
        return (b"",) if k == 0 else tuple(p + rest for p in pieces if len(p) <= k for rest in contents(k - len(p)))

    @lru_cache(None)
    def runs(k: int) -> tuple[bytes, ...]:
        return (b"",) if k == 0 else tuple(run + bytes([d]) for run in runs(k - 1) for d in digits)

    def strings(k: int) -> tuple[bytes, ...]:
        return tuple(b'"' + content + b'"' for content in contents(k - 2)) if k >= 2 else ()

    @lru_cache(None)
    def values(k: int) -> tuple[bytes, ...]:
        if k <= 0:
            return ()
        found = [*strings(k), *(word for word in words if len(word) == k)]
        found += [run for run in runs(min(k, 5)) if number.fullmatch(run)] if k <= 5 else []
        if k >= 2:
            found += [b"[" + items + b"]" for items in listed(k - 2, False)]
            found += [b"{" + items + b"}" for items in listed(k - 2, True)]
        return tuple(found)

    def ones(k: int, is_object: bool) -> tuple[bytes, ...]:
        if not is_object:
            return values(k)
        return tuple(key + b":" + value for i in range(2, k - 1) for key in strings(i) for value in values(k - 1 - i))

    @lru_cache(None)
    def listed(k: int, is_object: bool) -> tuple[bytes, ...]:
        if k == 0:
            return (b"",)
        found = list(ones(k, is_object))
        for i in range(1, k - 1):
            found += [one + b"," + rest for one in ones(i, is_object) for rest in listed(k - 1 - i, is_object)]
        return tuple(found)

    return [text for k in range(1, n + 1) for text in values(k)]
