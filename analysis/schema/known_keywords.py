"""The keywords of JSON Schema: what each is about, and where other schemas stand in it."""

from __future__ import annotations

from typing import Any

OF_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
OF_STRINGS = frozenset({"minLength", "maxLength", "pattern", "format"})
OF_ARRAYS = frozenset({
    "minItems", "maxItems", "uniqueItems", "items", "prefixItems", "additionalItems", "contains", "minContains",
    "maxContains",
})  # fmt: skip
OF_OBJECTS = frozenset({
    "minProperties", "maxProperties", "required", "properties", "patternProperties", "additionalProperties",
    "propertyNames",
})  # fmt: skip
"""Keywords that say something of one type, whatever stands beside them in the schema."""
TYPE_OF = {
    keyword: kind
    for kind, keywords in (("number", OF_NUMBERS), ("string", OF_STRINGS), ("array", OF_ARRAYS), ("object", OF_OBJECTS))
    for keyword in keywords
}
"""Each of these keywords -> the type that it is about."""
DEPENDENT = frozenset({"dependencies", "dependentRequired", "dependentSchemas"})
UNEVALUATED = {"unevaluatedProperties": "object", "unevaluatedItems": "array"}
"""Keyword -> the type that it is about, as far as its neighbours leave something over."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
COMBINING = frozenset({*REFERENCES, "allOf", "anyOf", "oneOf", "not", "if", "then", "else", *DEPENDENT, *UNEVALUATED})
"""Keywords that are worked out with others (`normal.py`)."""
OF_SCALARS = OF_NUMBERS | OF_STRINGS | {"type", "enum", "const"}
SAYING = OF_SCALARS | OF_ARRAYS | OF_OBJECTS | COMBINING
"""All keywords that say something of values."""
SINCE = {
    "const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7, "minContains": 2019, "maxContains": 2019,
    "dependentRequired": 2019, "dependentSchemas": 2019, "unevaluatedItems": 2019, "unevaluatedProperties": 2019,
    "$recursiveRef": 2019, "prefixItems": 2020, "$dynamicRef": 2020,
}  # fmt: skip
"""Keyword -> the first draft that has it."""
DESCRIBING = frozenset({
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "$defs", "definitions",
    "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "contentEncoding",
    "contentMediaType", "contentSchema", "discriminator", "nullable", "externalDocs", "xml",
})  # fmt: skip
"""Keywords that describe, and are not meant to assert; the last ones are of OpenAPI."""
WITH_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
WITH_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
WITH_ONE = frozenset({
    "additionalProperties", "items", "additionalItems", "contains", "propertyNames", "not", "if", "then", "else",
    "unevaluatedProperties", "unevaluatedItems",
})  # fmt: skip
"""Keywords whose value has schemas by names, in an array, or is one."""
WITH_ANY = WITH_NAMED | WITH_LIST | WITH_ONE


def schemas_of(keyword: str, value: Any) -> dict[tuple[str | int, ...], Any] | None:
    """The schemas in a keyword's value by the way to each; None if it has no form for any."""
    if keyword in WITH_NAMED and isinstance(value, dict):
        return {(name,): one for name, one in value.items()}
    if keyword in WITH_LIST and isinstance(value, list):
        return {(i,): one for i, one in enumerate(value)}
    return {(): value} if keyword in WITH_ONE and isinstance(value, dict) else None
