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
from typing import Any, TypeAlias

from maskwright.analysis.schema.documents import escaped
from maskwright.analysis.schema.known_keywords import REFERENCES, SAYING, WITH_LIST, WITH_NAMED, WITH_ONE

_CONSTANTS = ("enum", "examples")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_PLAIN: tuple[Any, ...] = (None, True, False, 0, -1, 7, Decimal("0.5"), 10**12, "", "a", "a b", "2024-02-29", [], {})
"""Values that are tried whatever the schema says."""
_DIGITS = 40
"""Most digits of a number before and behind the point, where it was written with one."""
_ALTERNATIVES = {"not", "if", "contains", "anyOf", "oneOf"}
"""Keywords inside of which none is named if a value breaks it: jsonschema names these then."""
_ASSERTING = SAYING - {
    *REFERENCES, "allOf", "if", "then", "else", "dependentSchemas", "items", "prefixItems", "properties", "patternProperties",
}  # fmt: skip
"""Keywords that a value breaks themselves, and not only through a schema inside."""
_CHARACTERS = 'a0 Z-_.@/\u00e9\u20ac"\\\n'


Path: TypeAlias = tuple[Any, ...]
"""Where a value stands in another one: names and indices."""


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
    for _, one in _places(schema):
        if not isinstance(one, dict):
            continue
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


def _says_nothing(key: str, value: Any) -> bool:
    """Whether no value breaks a keyword, at a glance: `required: []`, `minLength: 0`."""
    if isinstance(value, bool):
        return value == (key != "uniqueItems")
    if isinstance(value, dict | list):
        return not value
    return value == 0 and key in ("minLength", "minItems", "minProperties", "minContains")


def keywords_of(schema: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """The keywords of a schema that a value could break, each with its JSON pointer.

    Those inside `_ALTERNATIVES` are left out.

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
        elif key in WITH_LIST - _ALTERNATIVES and isinstance(value, list):
            for n, each in enumerate(value):
                yield from keywords_of(each, f"{pointer}/{key}/{n}")
        elif key in WITH_ONE - _ALTERNATIVES:
            yield from keywords_of(value, f"{pointer}/{key}")


Orders: TypeAlias = tuple[tuple[str, ...], ...] | None
"""Orders of names; members of an object keep that which has most of them, and the others come
behind. None for the order of the value."""


def pieces(value: Any, gap: str = "", orders: Orders = None, path: Path = ()) -> Iterator[tuple[str, Path]]:
    """The JSON text of a value, numbers without exponents, in pieces.

    Each piece comes with the path of the innermost value that it is part of.

    gap : what stands behind commas and colons.
    """
    if isinstance(value, dict):
        yield "{", path
        for n, name in enumerate(_ordered(value, orders)):
            yield f",{gap}" * bool(n) + json.dumps(name, ensure_ascii=False) + f":{gap}", path
            yield from pieces(value[name], gap, orders, (*path, name))
        yield "}", path
    elif isinstance(value, list):
        yield "[", path
        for n, each in enumerate(value):
            yield f",{gap}" * bool(n), path
            yield from pieces(each, gap, orders, (*path, n))
        yield "]", path
    else:
        yield f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False), path


def spell(value: Any, gap: str = "", orders: Orders = None) -> str:
    """The JSON text of a value, as of `pieces`.

    >>> spell({"b": [1, Decimal("0.50")], "a": "x"}, " ", (("a", "b"),))
    '{"a": "x", "b": [1, 0.50]}'
    """
    return "".join(piece for piece, _ in pieces(value, gap, orders))


def _ordered(members: dict[str, Any], orders: Orders) -> list[str]:
    names = list(members)
    if not orders:
        return names
    best = max(orders, key=lambda order: sum(name in members for name in order))
    rank = {name: n for n, name in enumerate(best)}
    return sorted(names, key=lambda name: rank.get(name, len(rank)))


def mutated(value: Any, words: Words, rng: random.Random) -> Any:
    """A value in which one thing is changed; it may happen to be the same."""
    path, found = rng.choice([*_places(value)])
    return replaced(value, path, _changed(found, words, rng))


def _places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The path to each value inside, itself first, and that value."""
    yield path, value
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in steps:
        yield from _places(each, (*path, step))


def replaced(value: Any, path: Path, new: Any) -> Any:
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
    for path, found in _places(value):
        less: Iterator[Any] = iter(())
        if isinstance(found, dict):
            less = ({other: each for other, each in found.items() if other != name} for name in found)
        elif isinstance(found, list):
            less = (found[:n] + found[n + 1 :] for n in range(len(found)))
        elif isinstance(found, str) and found:
            half = len(found) // 2
            halves = dict.fromkeys((found[:half], found[half:], found[:-1], found[1:]))
            less = (one for one in halves if one != found)
        elif not isinstance(found, bool) and isinstance(found, int | Decimal) and not -10 < found < 10:
            less = iter((int(found) // 10,))
        yield from (replaced(value, path, one) for one in less)
