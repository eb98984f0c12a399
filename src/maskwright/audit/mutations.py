"""Values near a value: one thing in it is changed, as a schema's own words suggest.

In: a JSON value. Out: another one. What is put in comes from the schema: names of members,
constants of `enum`, `const`, `default` and `examples`, and numbers just past its bounds.

Values are what `value_of` returns: numbers with a fraction are Decimals.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from maskwright.analysis.schema.documents import escaped
from maskwright.analysis.schema.known_keywords import WITH_NAMED

_CONSTANTS = ("enum", "examples")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_PLAIN: tuple[Any, ...] = (None, True, False, 0, -1, 7, Decimal("0.5"), 10**12, "", "a", "a b", "2024-02-29", [], {})
"""Values that are tried whatever the schema says."""
_DIGITS = 40
"""Most digits of a number before and behind the point, where it was written with one."""
_CHARACTERS = 'a0 Z-_.@/\u00e9\u20ac"\\\n'


@dataclass(frozen=True)
class Words:
    """What a schema names.

    names : of members, each once, in the order of the schema; one that is none of them is last.
    values : constants, and numbers around bounds, then `_PLAIN`.
    orders : the names of each `properties`, in order.
    """

    names: tuple[str, ...]
    values: tuple[Any, ...]
    orders: tuple[tuple[str, ...], ...]


def words_of(schema: Any) -> Words:
    """What a schema names. schema : as Python values; it may be a bool."""
    names: dict[str, None] = {}
    values: dict[str, Any] = {}
    orders: list[tuple[str, ...]] = []
    for one in _objects(schema):
        properties = one.get("properties")
        if isinstance(properties, dict):
            names.update(dict.fromkeys(properties))
            orders.append(tuple(properties))
        required = one.get("required")
        if isinstance(required, list):
            names.update(dict.fromkeys(name for name in required if isinstance(name, str)))
        found = [each for key in _CONSTANTS if isinstance(one.get(key), list) for each in one[key]]
        found += [one[key] for key in ("const", "default") if key in one]
        for key in _BOUNDS:
            bound = one.get(key)
            if isinstance(bound, int | float) and not isinstance(bound, bool):
                exact = Decimal(str(bound))
                found += [exact, exact + 1, exact - 1, exact + Decimal("0.5")]
        for value in found:
            value = exactly(value)
            values.setdefault(spell(value), value)
    names["zz"] = None
    for value in _PLAIN:
        values.setdefault(spell(value), value)
    return Words(tuple(names), tuple(values.values()), tuple(orders))


def exactly(value: Any) -> Any:
    """A value with Decimals for numbers with a fraction, and ints for those without one.

    A number that would take more than `_DIGITS` digits, such as 1e9999, becomes 1.
    """
    if isinstance(value, float):
        value = Decimal(str(value))
    if isinstance(value, Decimal):
        digits = value.as_tuple().digits
        if not value.is_finite() or abs(value.adjusted()) > _DIGITS or len(digits) > _DIGITS:
            return 1
        return int(value) if value == value.to_integral_value() else value
    if isinstance(value, dict):
        return {key: exactly(each) for key, each in value.items()}
    return [exactly(each) for each in value] if isinstance(value, list) else value


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """All objects inside a schema, itself first; some may be no schemas, which does no harm."""
    if isinstance(schema, dict):
        yield schema
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _objects(each)


_SUBSCHEMA = (
    "items",
    "additionalItems",
    "additionalProperties",
    "propertyNames",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
)
"""Keywords with one schema inside of which jsonschema names the keyword that is broken."""
_LISTS = ("allOf", "prefixItems", "items")
_ASSERTING = (
    "type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
    "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
    "minProperties", "maxProperties", "required", "dependentRequired", "dependencies", "propertyNames", "not", "anyOf",
    "oneOf", "additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip


def _says_nothing(key: str, value: Any) -> bool:
    """Whether no value breaks a keyword, at a glance: `required: []`, `minLength: 0`."""
    if isinstance(value, bool):
        return value == (key != "uniqueItems")
    if isinstance(value, dict | list):
        return not value
    return value == 0 and key in ("minLength", "minItems", "minProperties", "minContains")


def keywords_of(schema: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """The keywords of a schema that a value could break, each with its JSON pointer.

    Those inside `not`, `if`, `contains`, `anyOf` and `oneOf` are left out: if a value breaks them,
    the outer keyword is named.

    >>> [*keywords_of({"type": "array", "items": {"minimum": 1}, "title": "list"})]
    [('type', '/type'), ('minimum', '/items/minimum')]
    """
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in _ASSERTING and not _says_nothing(key, value):
            yield key, f"{pointer}/{key}"
    for key, value in schema.items():
        if key in WITH_NAMED and isinstance(value, dict):
            for name, each in value.items():
                yield from keywords_of(each, f"{pointer}/{key}/{escaped(name)}")
        elif key in _LISTS and isinstance(value, list):
            for n, each in enumerate(value):
                yield from keywords_of(each, f"{pointer}/{key}/{n}")
        elif key in _SUBSCHEMA:
            yield from keywords_of(value, f"{pointer}/{key}")


Spans = list[tuple[int, int, tuple[str, ...]]]
"""Where values stand in a text: first character, end, and the steps of the JSON pointer."""


def spell(
    value: Any, gap: str = "", orders: tuple[tuple[str, ...], ...] | None = None, spans: Spans | None = None
) -> str:
    """The JSON text of a value, numbers without exponents.

    gap : what stands behind commas and colons.
    orders : orders of names; members of an object keep that which has most of them, and the others
        come behind. None for the order of the value.
    spans : is filled with where each value stands.

    >>> spell({"b": [1, Decimal("0.50")], "a": "x"}, " ", (("a", "b"),))
    '{"a": "x", "b": [1, 0.50]}'
    """
    parts: list[str] = []
    length = 0

    def put(text: str) -> None:
        nonlocal length
        parts.append(text)
        length += len(text)

    def write(one: Any, at: tuple[str, ...]) -> None:
        begin = length
        if isinstance(one, dict):
            put("{")
            for n, name in enumerate(_ordered(one, orders)):
                put(f",{gap}" * bool(n) + json.dumps(name, ensure_ascii=False) + f":{gap}")
                write(one[name], (*at, name))
            put("}")
        elif isinstance(one, list):
            put("[")
            for n, each in enumerate(one):
                put(f",{gap}" * bool(n))
                write(each, (*at, str(n)))
            put("]")
        else:
            put(f"{one:f}" if isinstance(one, Decimal) else json.dumps(one, ensure_ascii=False))
        if spans is not None:
            spans.append((begin, length, at))

    write(value, ())
    return "".join(parts)


def _ordered(members: dict[str, Any], orders: tuple[tuple[str, ...], ...] | None) -> list[str]:
    names = list(members)
    if not orders:
        return names
    best = max(orders, key=lambda order: sum(name in members for name in order))
    rank = {name: n for n, name in enumerate(best)}
    return sorted(names, key=lambda name: rank.get(name, len(rank)))


def mutated(value: Any, words: Words, rng: random.Random) -> Any:
    """A value in which one thing is changed; it may happen to be the same."""
    places = [*_places(value)]
    path = rng.choice(places)
    found = value
    for step in path:
        found = found[step]
    return replaced(value, path, _changed(found, words, rng))


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value inside, itself first."""
    yield at
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in steps:
        yield from _places(each, (*at, step))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A value with another one at a path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def _changed(value: Any, words: Words, rng: random.Random) -> Any:
    if rng.random() < 0.15:
        return rng.choice(words.values)
    if isinstance(value, dict):
        return _changed_object(value, words, rng)
    if isinstance(value, list):
        return _changed_array(value, words, rng)
    if isinstance(value, str):
        return _changed_string(value, rng)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        shift = rng.choice((1, -1, 2, -2, 100, Decimal("0.5"), Decimal("0.01")))
        return rng.choice((exactly(Decimal(value) + shift), -value, value * 1000))
    return rng.choice(words.values)


def _changed_object(value: dict[str, Any], words: Words, rng: random.Random) -> dict[str, Any]:
    if value and rng.random() < 0.4:
        dropped = rng.choice([*value])
        return {name: each for name, each in value.items() if name != dropped}
    grown = dict(value)
    grown[rng.choice(words.names)] = rng.choice([*words.values, *value.values()])
    return grown


def _changed_array(value: list[Any], words: Words, rng: random.Random) -> list[Any]:
    at = rng.randrange(len(value)) if value else 0
    how = rng.randrange(4)
    if how == 0:
        return value[:at] + value[at + 1 :]
    if how == 1 and value:
        return value[:at] + [value[at]] * 2 + value[at + 1 :]
    if how == 2 and value:
        return value * rng.choice((2, 5))
    return [*value, rng.choice(words.values)]


def _changed_string(value: str, rng: random.Random) -> str:
    at = rng.randrange(len(value) + 1)
    how = rng.randrange(4)
    if how == 0:
        return value[:at] + value[at + 1 :]
    if how == 1:
        return value[:at] + rng.choice(_CHARACTERS) + value[at + 1 :]
    return value * rng.choice((2, 20)) if how == 2 and value else value[:at] + rng.choice(_CHARACTERS) + value[at:]


def smaller(value: Any) -> Iterator[Any]:
    """Values with less in them, the most first: each member, item and half of a string left out."""
    for path in _places(value):
        found = value
        for step in path:
            found = found[step]
        if isinstance(found, dict):
            for name in found:
                yield replaced(value, path, {other: each for other, each in found.items() if other != name})
        elif isinstance(found, list):
            for n in range(len(found)):
                yield replaced(value, path, found[:n] + found[n + 1 :])
        elif isinstance(found, str) and found:
            half = len(found) // 2
            for text in dict.fromkeys((found[:half], found[half:], found[:-1], found[1:])):
                if text != found:
                    yield replaced(value, path, text)
        elif not isinstance(found, bool) and isinstance(found, int | Decimal) and not -10 < found < 10:
            yield replaced(value, path, int(found) // 10)


__all__ = ["Spans", "Words", "exactly", "keywords_of", "mutated", "replaced", "smaller", "spell", "words_of"]
