"""Random small schemas and values, of few keys and constants, so that they meet often."""

from __future__ import annotations

from random import Random
from typing import Any

KEYS = ["a", "b", "c", "ab"]
PATTERNS = ["^a", "b$", "c", "^[ab]+$", "^(a|c)$"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def random_value(rng: Random, depth: int) -> Any:
    """A JSON value of at most `depth` levels."""
    kind = rng.randrange(7 if depth > 0 else 4)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind in (1, 2):
        return rng.choice([-1, 0, 1, 2, 3, 0.5, 1.0, 2.5])
    if kind == 3:
        return "".join(rng.choice("abc") for _ in range(rng.randrange(4)))
    if kind == 4:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    keys = rng.sample(KEYS, rng.randrange(len(KEYS)))
    return {key: random_value(rng, depth - 1) for key in keys}


class Schemas:
    """Random schemas of a draft.

    draft : 4, 6, 7, 2019 or 2020.
    with_unevaluated : whether `unevaluatedProperties` and `unevaluatedItems` may stand there.
    """

    def __init__(self, rng: Random, draft: int, with_unevaluated: bool = False) -> None:
        self.rng = rng
        self.draft = draft
        self.with_unevaluated = with_unevaluated

    def whole(self, depth: int) -> Any:
        """A schema with definitions."""
        schema = self.schema(depth)
        if isinstance(schema, dict):
            schema["definitions"] = {"x": self.schema(depth - 1), "y": self.schema(depth - 2)}
        return schema

    def schema(self, depth: int) -> Any:
        """A schema; at the bottom without subschemas."""
        rng = self.rng
        if self.draft > 4 and rng.random() < 0.08:
            return rng.random() < 0.7
        schema: dict[str, Any] = {}
        if rng.random() < 0.4:
            schema["type"] = rng.choice(TYPES) if rng.random() < 0.7 else rng.sample(TYPES, 2)
        for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
            part = rng.choice([self._scalar, self._array, self._object, self._combinator, self._enum])
            part(schema, depth)
        return schema

    def _enum(self, schema: dict[str, Any], depth: int) -> None:
        if self.rng.random() < 0.4:
            values = [random_value(self.rng, 1) for _ in range(self.rng.randrange(1, 4))]
            schema["enum"] = values
        elif self.draft > 4 and self.rng.random() < 0.4:
            schema["const"] = random_value(self.rng, 1)

    def _scalar(self, schema: dict[str, Any], depth: int) -> None:
        rng = self.rng
        keyword = rng.choice(
            ["minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "multipleOf"]
        )
        if keyword == "pattern":
            schema[keyword] = rng.choice(PATTERNS)
        elif keyword == "exclusiveMinimum" and self.draft == 4:
            schema.update({"minimum": rng.randrange(3), "exclusiveMinimum": rng.random() < 0.5})
        elif keyword == "multipleOf":
            schema[keyword] = rng.choice([1, 2, 0.5])
        else:
            schema[keyword] = rng.randrange(3)

    def _array(self, schema: dict[str, Any], depth: int) -> None:
        rng = self.rng
        keyword = rng.choice(["items", "prefix", "contains", "minItems", "maxItems", "uniqueItems"])
        if keyword in ("minItems", "maxItems"):
            schema[keyword] = rng.randrange(3)
        elif keyword == "uniqueItems":
            schema[keyword] = True
        elif depth <= 0:
            return
        elif keyword == "items":
            schema[keyword] = self.schema(depth - 1)
        elif keyword == "contains":
            schema[keyword] = self.schema(depth - 1)
            if self.draft >= 2019 and rng.random() < 0.5:
                schema[rng.choice(["minContains", "maxContains"])] = rng.randrange(3)
        else:
            first = [self.schema(depth - 1) for _ in range(rng.randrange(1, 3))]
            others, keys = self.schema(depth - 1), rng.random() < 0.5
            if self.draft >= 2020:
                schema["prefixItems"] = first
                if keys:
                    schema["items"] = others
            else:
                schema["items"] = first
                if keys:
                    schema["additionalItems"] = others
        if self.with_unevaluated and rng.random() < 0.5:
            schema["unevaluatedItems"] = rng.random() < 0.3 or self.schema(0)

    def _object(self, schema: dict[str, Any], depth: int) -> None:
        rng = self.rng
        choices = ["properties", "properties", "patternProperties", "additionalProperties", "propertyNames", "required"]
        keyword = rng.choice([*choices, "minProperties", "maxProperties", "dependencies"])
        if keyword in ("minProperties", "maxProperties"):
            schema[keyword] = rng.randrange(3)
        elif keyword == "required":
            schema[keyword] = rng.sample(KEYS, rng.randrange(1, 3))
        elif depth <= 0:
            return
        elif keyword == "properties":
            schema[keyword] = {key: self.schema(depth - 1) for key in rng.sample(KEYS, rng.randrange(1, 3))}
        elif keyword == "patternProperties":
            schema[keyword] = {text: self.schema(depth - 1) for text in rng.sample(PATTERNS, rng.randrange(1, 3))}
        elif keyword == "dependencies":
            self._dependency(schema, depth)
        elif keyword != "propertyNames" or rng.random() < 0.5:
            schema[keyword] = self.schema(depth - 1) if rng.random() < 0.6 or self.draft == 4 else False
        if self.with_unevaluated and rng.random() < 0.5:
            schema["unevaluatedProperties"] = rng.random() < 0.3 or self.schema(0)

    def _dependency(self, schema: dict[str, Any], depth: int) -> None:
        rng = self.rng
        on_names = rng.random() < 0.5
        value = rng.sample(KEYS, rng.randrange(1, 3)) if on_names else self.schema(depth - 1)
        keyword = "dependencies" if self.draft < 2019 else "dependentRequired" if on_names else "dependentSchemas"
        schema[keyword] = {rng.choice(KEYS): value}

    def _combinator(self, schema: dict[str, Any], depth: int) -> None:
        rng = self.rng
        if depth <= 0:
            return
        keyword = rng.choice(["allOf", "anyOf", "oneOf", "oneOf", "not", "if", "$ref"])
        if keyword == "not":
            schema[keyword] = self.schema(depth - 1)
        elif keyword == "$ref":
            schema[keyword] = rng.choice(["#/definitions/x", "#/definitions/y"])
        elif keyword == "if":
            for key in ["if", *rng.sample(["then", "else"], rng.randrange(1, 3))]:
                schema[key] = self.schema(depth - 1)
        else:
            schema[keyword] = [self.schema(depth - 1) for _ in range(rng.randrange(1, 4))]
