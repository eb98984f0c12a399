"""Random schemas whose names and items begin alike, with finitely many of them behind some beginnings."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

FINITE = ["a", "b", "ab", "aa", "[ab]", "[ab]{2}", "a?b", "é", "[à-é]", "b(a|é)?"]
ENDLESS = ["a*", "b.*", "a*b", "(ab)*", "[ab]*", ".*", "b+a", "[^a]", "a+b?", "[^b]*[ab]", "é*a"]
NAMES = ["a", "b", "ab", "aa", "ba", "bb", "é", ""]


def pattern(rng: Random) -> str:
    """A pattern of a finite set beside an endless one, or of one of them."""
    parts = [rng.choice(FINITE)] if rng.random() < 0.8 else []
    if not parts or rng.random() < 0.7:
        parts.append(rng.choice(ENDLESS))
    if rng.random() < 0.3:
        parts.append(rng.choice(FINITE))
    return f"^({'|'.join(parts)})$"


def string(rng: Random) -> dict[str, Any]:
    """A schema of strings."""
    kind = rng.randrange(6)
    if kind == 0:
        return {"enum": rng.sample(NAMES, rng.randint(1, 3))}
    if kind == 1:
        return {"type": "string", "maxLength": rng.randint(0, 2)}
    if kind == 2:
        return {"type": "string", "anyOf": [{"enum": rng.sample(NAMES, rng.randint(1, 3))}, {"pattern": pattern(rng)}]}
    if kind == 3:
        return {"type": "string", "pattern": pattern(rng), "maxLength": rng.randint(1, 3)}
    if kind == 4:
        return {"type": "string", "not": {"pattern": pattern(rng)}}
    return {"type": "string", "pattern": pattern(rng)}


def value(rng: Random, depth: int) -> Any:
    """A schema of a member's value or an item."""
    kind = rng.random()
    if kind < 0.5 or depth == 0:
        return rng.choice([{"const": 1}, {"type": "null"}, {"enum": [1, "a"]}, string(rng)])
    return schema(rng, depth - 1)


def names(rng: Random) -> dict[str, Any]:
    found = string(rng)
    return {key: one for key, one in found.items() if key != "type"} or {"maxLength": 1}


def objects(rng: Random, depth: int) -> dict[str, Any]:
    """A schema of objects."""
    found: dict[str, Any] = {"type": "object"}
    if rng.random() < 0.5:
        found["propertyNames"] = names(rng)
    if "propertyNames" not in found or rng.random() < 0.4:
        found["patternProperties"] = {pattern(rng): value(rng, depth) for _ in range(rng.randint(1, 2))}
        found["additionalProperties"] = rng.choice([False, False, False, value(rng, 0)])
    elif rng.random() < 0.6:
        found["additionalProperties"] = value(rng, 0)
    if rng.random() < 0.4:
        found["properties"] = {name: value(rng, 0) for name in rng.sample(NAMES, rng.randint(1, 2))}
    if rng.random() < 0.2:
        found["required"] = [rng.choice(NAMES)]
    if rng.random() < 0.2:
        found["minProperties"] = rng.randint(1, 4)
    if rng.random() < 0.2:
        found["maxProperties"] = rng.randint(2, 4)
    if rng.random() < 0.15:
        found["dependentRequired"] = {rng.choice(NAMES): [rng.choice(NAMES)]}
    if rng.random() < 0.1:
        found["if"], found["then"] = {"required": [rng.choice(NAMES)]}, {"required": [rng.choice(NAMES)]}
    return found


def arrays(rng: Random, depth: int) -> dict[str, Any]:
    """A schema of arrays of items that differ."""
    found: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": string(rng)}
    if rng.random() < 0.15:
        found["items"] = value(rng, depth)
    if rng.random() < 0.2:
        found["contains"] = string(rng)
    if rng.random() < 0.2:
        found["minItems"] = rng.randint(1, 4)
    if rng.random() < 0.2:
        found["maxItems"] = rng.randint(2, 4)
    return found


def schema(rng: Random, depth: int = 1) -> dict[str, Any]:
    """A schema of objects, arrays, or either of two."""
    kind = rng.random()
    if kind < 0.15:
        return {
            rng.choice(["anyOf", "anyOf", "oneOf"]): [
                objects(rng, 0),
                (objects if rng.random() < 0.7 else arrays)(rng, 0),
            ]
        }
    return (objects if kind < 0.7 else arrays)(rng, depth)


def whole_texts(rng: Random, n: int) -> list[bytes]:
    """Some short texts of objects and arrays, of few names and items."""
    some = rng.sample(NAMES, 4)
    found = []
    for _ in range(n):
        chosen = rng.choice([*permutations(some, 1), *permutations(some, 2), *permutations(some, 3)])
        quoted = [f'"{one}"' for one in chosen]
        if rng.random() < 0.6:
            text = "{" + ",".join(f"{one}:{rng.choice(['1', 'null', quoted[0]])}" for one in quoted) + "}"
        else:
            text = "[" + ",".join(quoted) + "]"
        found.append(text.encode())
    return found
