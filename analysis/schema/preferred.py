"""Which values a JSON Schema names for a place of its texts: what its author would write there.

In: a schema, and the way to a value, step by step. Out: JSON texts. They need not be legal there:
masks know nothing of them, and who writes one reads it as any other text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.documents import Document, has_names
from maskwright.analysis.schema.keywords import decimal
from maskwright.analysis.schema.known_keywords import OF_NUMBERS, OF_STRINGS, REFERENCES
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.objects import is_found

MOST_PREFERRED = 32
"""BOUND: the texts of a place."""
MOST_SUBSCHEMAS = 256
"""BOUND: the subschemas that are looked at for a place."""
MOST_DIGITS, DEEPEST = 40, 8
"""BOUND: the digits of a number, and the levels of an object or array, that are written."""
_OF_FORMATS = {"date": ("1970-01-01",), "date-time": ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00")}
"""Tried before the first values of a format, whose year 0000 or 0001 few programs take."""
_OF_SCALARS = tuple(sorted(OF_NUMBERS | OF_STRINGS, reverse=True))
_OF_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS = ("items", "additionalItems", "unevaluatedItems")
_NAMING = {
    "default", "examples", "const", "enum", "format", "x-format", "properties", "patternProperties", "prefixItems",
    *_OF_MEMBERS, *_OF_ITEMS,
}  # fmt: skip
_STEP = re.compile(r'\.([A-Za-z_]\w*)|\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]', re.ASCII)
"""A step of a JSON path: a name, a quoted name, an offset."""


class Spot(NamedTuple):
    """A place of a text.

    locations : of the subschemas that may describe the value there, outermost first.
    values : what stands there in the values that are named for objects and arrays around it.
    """

    locations: tuple[int, ...] = ()
    values: tuple[Any, ...] = ()


class Preferred:
    """The values that a schema names by `default`, `examples`, `const` and `enum`, place by place.

    schema : as Python values; one that `build_graph` takes.
    documents : URI -> schema, for its references.

    A place is looked up in the schema itself, since nodes of the graph are shared by all places
    that allow the same. Its subschemas are those that `properties`, `items` and the like lead to,
    with all branches of combinators; so a value may be named by a branch that is not taken. A
    subschema that cannot be read, which a lenient reading left out, names nothing.

    root : the place of the whole text.
    """

    def __init__(self, schema: Any, documents: Mapping[str, Any]) -> None:
        self._document = Document(schema, documents, with_names=bool(documents) or has_names(schema))
        self._named: dict[tuple[int, ...], tuple[tuple[Any, ...], tuple[bytes, ...]]] = {}
        self.root = Spot(self._with_branches([self._document.root]))

    def inside(self, spot: Spot, step: str | int) -> Spot:
        """The place of a member, by its key, or of an item, by its offset."""
        locations: list[int] = []
        for above in spot.locations:
            with suppress(SchemaError):
                locations += self._steps(above, step)
        around = (*self._named_at(spot.locations)[0], *spot.values)
        values = tuple([value[step] for value in around if _has(value, step)])
        return Spot(self._with_branches(locations), values[:MOST_PREFERRED])

    def texts(self, spot: Spot) -> tuple[bytes, ...]:
        """The values of a place as JSON texts without white space, the most natural one first.

        Those of `default` come before those of `examples`, `const` and `enum`. Then come scalars
        that stand there in a value that is named for an object or array around it.
        """
        parts = [_written(value) for value in spot.values if not isinstance(value, list | tuple | dict)]
        return tuple(dict.fromkeys([text for text in (*self._named_at(spot.locations)[1], *parts) if text]))

    def naming(self, spot: Spot) -> tuple[int, ...]:
        """Those subschemas of a place that may name something there, or in a member or an item."""
        schemas = self._document.schemas
        return tuple([one for one in spot.locations if not _NAMING.isdisjoint(schemas[one])])

    def asked(self, path: str) -> str:
        """What keywords ask of a scalar at a JSON path, in words: `minimum 18, maximum 150`.

        path : as `$.friends[0]["first name"]`; what comes after it is not looked at.
        """
        spot, at = self.root, 1
        while (step := _STEP.match(path, at)) is not None:
            at, (name, quoted, offset) = step.end(), step.groups()
            spot = self.inside(spot, int(offset) if offset else json.loads(quoted) if quoted else name)
        schemas = [self._document.schemas[one] for one in spot.locations]
        found = {f"{word} {json.dumps(one[word])}": None for one in schemas for word in _OF_SCALARS if word in one}
        return ", ".join(found)

    def _named_at(self, locations: tuple[int, ...]) -> tuple[tuple[Any, ...], tuple[bytes, ...]]:
        """The values that are named for a place itself, and as texts; some may be there twice."""
        found = self._named.get(locations)
        if found is None:
            schemas = [self._document.schemas[one] for one in locations]
            values = [one["default"] for one in schemas if "default" in one]
            values += [value for one in schemas for value in _items(one.get("examples"))]
            values += [one["const"] for one in schemas if "const" in one]
            # PERF: of a thousand values those matter that are short; as short ones keep their order
            listed = [value for one in schemas for value in _items(one.get("enum"))]
            formats = [str(one.get("format", one.get("x-format"))) for one in schemas]
            values += [value for name in formats for value in _OF_FORMATS.get(name, ())]
            values = [*values, *sorted(listed, key=lambda value: len(_written(value)))][:MOST_PREFERRED]
            found = self._named[locations] = tuple(values), tuple(map(_written, values))
        return found

    def _with_branches(self, locations: Iterable[int]) -> tuple[int, ...]:
        """Subschemas, and those that describe the same value by a combinator or a reference."""
        found = list(dict.fromkeys(locations))
        for location in found:  # grows while it is read
            if len(found) < MOST_SUBSCHEMAS:
                with suppress(SchemaError):
                    found += dict.fromkeys([one for one in self._branches(location) if one not in found])
        return tuple([one for one in found[:MOST_SUBSCHEMAS] if isinstance(self._document.schemas[one], dict)])

    def _branches(self, location: int) -> Iterator[int]:
        schema = self._document.schemas[location]
        if not isinstance(schema, dict):
            return
        for keyword in REFERENCES:
            if isinstance(schema.get(keyword), str):
                yield self._document.follow(location, keyword)
        listed = [(key, i) for key in ("allOf", "anyOf", "oneOf") for i in range(len(_items(schema.get(key))))]
        named = [(key, name) for key in ("dependentSchemas", "dependencies") for name in _members(schema.get(key))]
        for keys in (*listed, ("then",), ("else",), *named):
            yield from self._child(location, *keys)

    def _steps(self, location: int, step: str | int) -> list[int]:
        """The subschemas that a subschema has for a member or an item."""
        schema = self._document.schemas[location]
        ways: list[tuple[str | int, ...]]
        if isinstance(step, str):
            ways = [("properties", step)] if step in _members(schema.get("properties")) else []
            patterns = _members(schema.get("patternProperties"))
            ways += [("patternProperties", text) for text in patterns if isinstance(text, str) and is_found(text, step)]
        else:
            ways = [(keyword, step) for keyword in ("prefixItems", "items") if step < len(_items(schema.get(keyword)))]
        rest = [(keyword,) for keyword in (_OF_MEMBERS if isinstance(step, str) else _OF_ITEMS)]
        return [one for keys in ways or rest for one in self._child(location, *keys)]

    def _child(self, location: int, *keys: str | int) -> Iterator[int]:
        """The subschema under some keys, if there is one that is an object."""
        schema = self._document.schemas[location]
        for key in keys:
            if not _has(schema, key):
                return
            schema = schema[key]
        if isinstance(schema, dict):
            yield self._document.child(location, schema, *keys, follows=False)


def preferred_of(constraint: object) -> Preferred | None:
    """The values that a constraint names; None if it is not a JSON schema."""
    if not isinstance(constraint, JsonSchema):
        return None
    return Preferred(constraint.schema, constraint.options.documents)


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _has(value: Any, step: str | int) -> bool:
    """Whether a value has a member or an item."""
    return step in value if isinstance(value, dict) else isinstance(step, int) and step < len(_items(value))


def _written(value: Any, level: int = 0) -> bytes:
    """A value as the shortest JSON text; b"" where that is long, or the value is none of JSON."""
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if isinstance(value, list | tuple | dict):
        if level == DEEPEST or not all([isinstance(key, str) for key in _members(value)]):
            return b""
        items = [_written(item, level + 1) for item in (value.values() if isinstance(value, dict) else value)]
        if not all(items):
            return b""
        if not isinstance(value, dict):
            return b"[" + b",".join(items) + b"]"
        return b"{" + b",".join([_written(key) + b":" + item for key, item in zip(value, items, strict=True)]) + b"}"
    number = decimal(value)
    if number is None or abs(number.adjusted()) > MOST_DIGITS:
        return b""
    text = format(number, "f") if number else "0"
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
