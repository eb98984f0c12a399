"""Schemas whose arrays are counted in several ways, at random; and values for them."""

from __future__ import annotations

from random import Random
from typing import Any

INSIDE: list[Any] = [
    {"const": 1}, {"const": "a"}, {"enum": [1, "a", None]}, {"type": "integer"}, {"type": "string"},
    {"type": "string", "maxLength": 1}, {"minimum": 2}, {"type": "object"}, {"type": "array", "maxItems": 0},
    {"required": ["a"]}, True,
]  # fmt: skip
"""Schemas of items: they meet often."""

ITEMS = [
    1, 1.0, 2, 3, 0.5, "a", "b", "ab", "", None, True, {}, {"a": 1}, {"b": "a", "a": 1}, {"a": 1, "b": "a"}, [], [1],
]  # fmt: skip


def counted_schema(rng: Random, *, is_unique: bool) -> dict[str, Any]:
    """An array with one to three `contains`, of draft 2020-12."""
    found: dict[str, Any] = {"type": "array", "allOf": []}
    for _ in range(rng.choice((1, 2) if is_unique else (2, 2, 3))):
        one = {"contains": rng.choice(INSIDE)}
        if rng.random() < 0.4:
            one["minContains"] = rng.randrange(3)
        if rng.random() < 0.3:
            one["maxContains"] = rng.randrange(1, 3)
        found["allOf"].append(one)
    if rng.random() < 0.4:
        found["items"] = rng.choice([{"enum": [1, 2, "a", "b"]}, {"type": ["string", "number"]}, {"type": "string"}])
    if not is_unique and rng.random() < 0.3:
        found["prefixItems"] = [rng.choice(INSIDE)]
    if rng.random() < 0.4:
        found["minItems"] = rng.randrange(4)
    if rng.random() < 0.3:
        found["maxItems"] = rng.randrange(2, 5)
    if is_unique:
        found["uniqueItems"] = True
    return found


def counted_value(rng: Random) -> list[Any]:
    """An array of a few items."""
    some = rng.sample(ITEMS, 4)
    return [rng.choice(some) for _ in range(rng.randrange(6))]
