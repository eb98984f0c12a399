"""Random schemas that ask for some member without naming it, and objects to try them on."""

from __future__ import annotations

from random import Random
from typing import Any

VALUES: tuple[Any, ...] = (
    {"type": "string"}, {"type": "integer"}, {"enum": ["a", 1, None]}, {"type": ["null", "boolean"]}, {"const": 1}, True,
    {"type": "array", "maxItems": 1}, {"type": "object", "maxProperties": 1}, {"type": "string", "maxLength": 1}, False,
)  # fmt: skip
PATTERNS = ("^a", "b$", "^[ab]+$", "c", "^x-", "^.?$")
NAMES: tuple[Any, ...] = (
    {"maxLength": 1},
    {"pattern": "^a"},
    {"minLength": 2},
    {"pattern": "b|c"},
    {"enum": ["a", "ab"]},
)
KEYS = ("a", "b", "ab", "abc", "x-a", "c", "é", "")
TEXTS: tuple[Any, ...] = ("", "a", "ab", 1, 2, None, True, [], [1], {}, {"a": 1}, {"a": "a", "x": 2})


def members(rng: Random) -> dict[str, Any]:
    """What every member must be, of some names."""
    found: dict[str, Any] = {}
    if rng.random() < 0.6:
        found["additionalProperties"] = rng.choice(VALUES)
    if rng.random() < 0.4:
        found["patternProperties"] = {rng.choice(PATTERNS): rng.choice(VALUES)}
    if rng.random() < 0.4:
        found["properties"] = {rng.choice(KEYS): rng.choice(VALUES) for _ in range(rng.choice((1, 2)))}
    if not found or rng.random() < 0.2:
        found["propertyNames"] = rng.choice(NAMES)
    return found


def wanting(rng: Random) -> dict[str, Any]:
    """A schema of objects, some of which must have a member that it does not name."""
    kind = rng.random()
    if kind < 0.4:
        found: dict[str, Any] = {"not": {"type": "object", **members(rng)}}
    elif kind < 0.7:
        found = {"oneOf": [members(rng), members(rng)]}
    else:
        found = {"if": members(rng), "then": members(rng), "else": rng.choice((members(rng), True))}
    if rng.random() < 0.4:
        found |= members(rng)
    if rng.random() < 0.3:
        found["required"] = [rng.choice(KEYS)]
    if rng.random() < 0.3:
        found["maxProperties"] = rng.choice((1, 2, 3))
    if rng.random() < 0.2:
        found["minProperties"] = rng.choice((1, 2))
    if rng.random() < 0.2:
        found = {"allOf": [found, {"not": members(rng)}]}
    if rng.random() < 0.15:
        found = {"properties": {"a": found}, "additionalProperties": {"not": members(rng)}}
    return {"type": "object", **found}


def objects(rng: Random, n: int) -> list[dict[str, Any]]:
    """Objects of up to four members."""
    return [{key: rng.choice(TEXTS) for key in rng.sample(KEYS, rng.choice((0, 1, 1, 2, 2, 3, 4)))} for _ in range(n)]
