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
from itertools import pairwise
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


def parsed(text: bytes) -> Any:
    """The value of a JSON text: str, list, None, bool, `Number` or `Object`. Raises: ValueError."""
    return json.loads(
        text.decode(),
        object_pairs_hook=lambda pairs: Object(tuple(pairs)),
        parse_int=Number,
        parse_float=Number,
        parse_constant=refuse,
    )


def is_legal(texts: Texts, text: bytes) -> bool:
    """Whether a text is one of the texts."""
    try:
        value = parsed(text)
    except ValueError:
        return False
    return is_value(texts.graph, texts.graph.root, value) and has_spacing(texts, text) and has_escapes(texts, text)


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


def is_value(graph: SchemaGraph, node: int, value: Any) -> bool:
    """Whether a value is one of a node's."""
    return node != NO_NODE and any(has_value(graph, shape, value) for shape in graph.nodes[node])


def has_value(graph: SchemaGraph, shape: Shape, value: Any) -> bool:
    if isinstance(shape, Spellings):
        text = (
            value.text
            if isinstance(value, Number)
            else json.dumps(value)
            if value is None or value in (True, False)
            else ""
        )
        return text.encode() in shape.texts
    if isinstance(shape, Numbers):
        return isinstance(value, Number) and shape.automaton.matches(value.text.encode())
    if isinstance(shape, (StringLiterals, Strings)):
        return isinstance(value, str) and is_string(shape, value)
    if isinstance(shape, Objects):
        return type(value) is Object and is_object(graph, shape, value)
    return type(value) is list and is_array(graph, shape, value)


def is_string(shape: StringLiterals | Strings, value: str) -> bool:
    if any("\ud800" <= character <= "\udfff" for character in value):
        return False
    if isinstance(shape, StringLiterals):
        return value.encode() in shape.texts
    is_long = len(value) >= shape.least and (shape.most is None or len(value) <= shape.most)
    return is_long and (shape.automaton is None or shape.automaton.matches(value.encode()))


def is_object(graph: SchemaGraph, shape: Objects, value: Object) -> bool:
    keys = [key for key, _ in value.members]
    if any("\ud800" <= character <= "\udfff" for key in keys for character in key) or len(set(keys)) < len(keys):
        return False
    names = [key.decode() for key in shape.keys]
    if not len(keys) >= shape.least or (shape.most is not None and len(keys) > shape.most):
        return False
    if any(is_required and name not in keys for name, is_required in zip(names, shape.required, strict=True)):
        return False
    if shape.ranks is not None:
        places = [shape.ranks[names.index(key)] if key in names else 1 << 30 for key in keys]
        if any(a > b for a, b in pairwise(places)):
            return False
    return all(is_value(graph, node_of(shape, names, key), inside) for key, inside in value.members)


def node_of(shape: Objects, names: list[str], key: str) -> int:
    if key in names:
        return shape.values[names.index(key)]
    if shape.key_automaton is None:
        return shape.others[0] if shape.others else NO_NODE
    state = 0
    for byte in key.encode():
        state = int(shape.key_automaton.next_state[state, byte]) if state >= 0 else -1
    name = int(shape.key_automaton.ends[state]) if state >= 0 else -1
    return NO_NODE if name < 0 else shape.others[name]


def is_array(graph: SchemaGraph, shape: Arrays, value: list[Any]) -> bool:
    if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
        return False
    if shape.is_unique and max(Counter(map(compared, value)).values(), default=0) > 1:
        return False
    if shape.states:
        return ends_from(graph, shape, 0, value)
    least, most = 0, 0  # of the items that may be read as contained
    for i, item in enumerate(value):
        is_out = is_value(graph, shape.prefix[i] if i < len(shape.prefix) else shape.items, item)
        inside = shape.contained
        is_in = inside is not None and is_value(
            graph, inside.prefix[i] if i < len(inside.prefix) else inside.items, item
        )
        if not (is_out or is_in):
            return False
        least, most = least + (not is_out), most + is_in
    inside = shape.contained
    return inside is None or (most >= inside.least and (inside.most is None or least <= inside.most))


def ends_from(graph: SchemaGraph, shape: Arrays, number: int, items: list[Any]) -> bool:
    """Whether some way from a state reads these items and comes to an end."""
    if not items:
        return shape.states[number].is_end
    return any(
        is_value(graph, node, items[0]) and ends_from(graph, shape, after, items[1:])
        for node, after in shape.states[number].moves
    )


def compared(value: Any) -> Any:
    """What items are compared by."""
    if isinstance(value, Object):
        return frozenset((key, compared(inside)) for key, inside in value.members)
    if isinstance(value, list):
        return ("array", *map(compared, value))
    if not isinstance(value, Number):
        return json.dumps(value)
    sign, digits, exponent = Decimal(value.text).as_tuple()
    stripped = "".join(map(str, digits)).rstrip("0")
    return (sign, stripped.lstrip("0"), int(exponent) + len(digits) - len(stripped)) if stripped else (0, "", 0)


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
