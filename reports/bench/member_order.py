"""Instances with their members in the order in which a schema names them, as engines ask for it that fix the order.

llguidance documents the order (docs/json_schema.md, "Property order"), and xgrammar and glrmask keep to it: the keys of `properties`, then
those of `required` that stand there alone, then others as they come. Schemas that speak of the same value, by `$ref`, `allOf`, `anyOf` and
the like, count in the order in which these keywords appear; of alternatives the first one that the value fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jsonschema.validators import Draft202012Validator, validator_for

DEEPEST = 60
"""Levels of instances, and of schemas that refer to schemas, that are looked into."""


class MemberOrder:
    """The order of one schema's members. schema : as Python has it."""

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self._validator = validator_for(schema, default=Draft202012Validator)(schema)

    def ordered(self, value: Any) -> Any:
        """The value with all members in the schema's order."""
        return self._ordered(value, [self._root], 0)

    def _ordered(self, value: Any, schemas: list[Any], depth: int) -> Any:
        if depth > DEEPEST or not isinstance(value, dict | list):
            return value
        parts = [part for schema in schemas for part in self._parts(schema, value, 0)]
        if isinstance(value, list):
            return [
                self._ordered(item, [of for part in parts for of in _of_item(*part, i)], depth + 1)
                for i, item in enumerate(value)
            ]
        named = [key for keyword, own in parts if keyword == "properties" for key in own["properties"]]
        named += [key for keyword, own in parts if keyword == "required" for key in own["required"]]
        keys = [key for key in dict.fromkeys(named) if key in value]
        keys += [key for key in value if key not in keys]
        return {
            key: self._ordered(value[key], [of for part in parts for of in _of_member(*part, key)], depth + 1)
            for key in keys
        }

    def _parts(self, schema: Any, value: Any, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Keywords that speak of a value, each with the schema that has it, in the order of their appearance."""
        if not isinstance(schema, dict) or depth > DEEPEST:
            return
        for keyword, content in schema.items():
            below: list[Any] = []
            if keyword == "$ref":
                below = [self._target(content)]
            elif keyword == "allOf" and isinstance(content, list):
                below = content
            elif keyword in ("anyOf", "oneOf") and isinstance(content, list):
                below = next(([one] for one in content if self._fits(value, one)), [])
            elif keyword in ("then", "else") and "if" in schema:
                below = [content] if self._fits(value, schema["if"]) == (keyword == "then") else []
            else:
                yield keyword, schema
            for one in below:
                yield from self._parts(one, value, depth + 1)

    def _fits(self, value: Any, schema: Any) -> bool:
        try:
            return bool(self._validator.evolve(schema=schema).is_valid(value))
        except Exception:  # a reference to elsewhere, or a pattern that Python does not read
            return False

    def _target(self, reference: Any) -> Any:
        """What a reference into the schema refers to; None for other references."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        at = self._root
        for step in reference[1:].split("/")[1:]:
            at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
        return at


def _of_item(keyword: str, schema: dict[str, Any], at: int) -> list[Any]:
    """The schemas of an array's item that a keyword has."""
    content = schema[keyword]
    if keyword in ("items", "prefixItems") and isinstance(content, list):
        return content[at : at + 1]
    first = schema.get("prefixItems") if keyword == "items" else schema.get("items")
    if keyword in ("items", "additionalItems"):
        return [content] if not isinstance(first, list) or at >= len(first) else []
    return []


def _of_member(keyword: str, schema: dict[str, Any], key: str) -> list[Any]:
    """The schemas of an object's member that a keyword has."""
    content = schema[keyword]
    if keyword == "properties":
        return [content[key]] if key in content else []
    if keyword == "patternProperties":
        return [of for pattern, of in content.items() if _matches(pattern, key)]
    if keyword == "additionalProperties":
        others = any(_matches(pattern, key) for pattern in schema.get("patternProperties", {}))
        return [] if others or key in schema.get("properties", {}) else [content]
    return []


def _matches(pattern: str, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except re.error:
        return False
