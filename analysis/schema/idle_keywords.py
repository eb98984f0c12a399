"""Keywords of a JSON schema that say nothing where they stand.

In: a schema. Out: its subschemas with their places, and the keywords that do nothing there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from maskwright.analysis.schema.documents import BY_NAME, escaped
from maskwright.analysis.schema.formats import FORMATS, NOT_REGULAR

Severity = Literal["warning", "info"]

_OF_TYPE: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": (
        "items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "minItems", "maxItems",
        "uniqueItems", "unevaluatedItems",
    ),
    "object": (
        "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties",
        "maxProperties", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
    ),
}  # fmt: skip
"""Type -> the keywords that say something of values of that type only."""
_TYPE_OF = {keyword: kind for kind, keywords in _OF_TYPE.items() for keyword in keywords}
_FROM_DRAFT = {
    "const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7, "minContains": 2019, "maxContains": 2019,
    "dependentRequired": 2019, "dependentSchemas": 2019, "unevaluatedItems": 2019, "unevaluatedProperties": 2019,
    "$recursiveRef": 2019, "prefixItems": 2020, "$dynamicRef": 2020,
}  # fmt: skip
"""Keyword -> the first draft that has it."""
_ANYWHERE = frozenset({"type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref"})
_NO_ASSERTIONS = frozenset({
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "$defs", "definitions",
    "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "contentEncoding",
    "contentMediaType", "contentSchema", "discriminator", "nullable", "externalDocs", "xml",
})  # fmt: skip
"""Keywords that describe, and are not meant to assert; the last ones are of OpenAPI."""
_KNOWN = frozenset({*_TYPE_OF, *_FROM_DRAFT, *_ANYWHERE, *_NO_ASSERTIONS})

_FORMATS = FORMATS.keys() | NOT_REGULAR
_OTHERS_FORMATS = {"url": "uri", "guid": "uuid", "ip-address": "ipv4"}
"""What other languages call formats of JSON Schema."""

_ONES = (
    "additionalProperties", "items", "additionalItems", "contains", "propertyNames", "not", "if", "then", "else",
    "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")

Idle = tuple["Place", str, Severity, str, str]
"""The subschema, the keyword ("?" before an unknown one), severity, what is so, what to do."""


class Place(NamedTuple):
    """A subschema where it stands.

    pointer : its JSON pointer.
    schema : its keywords.
    draft : the draft that holds there.
    is_negated : whether it stands under `not` or `if`, where it need not be satisfied.
    """

    pointer: str
    schema: dict[str, Any]
    draft: int
    is_negated: bool


def places_of(schema: Any, draft: int) -> Iterator[Place]:
    """The subschemas of a schema that are objects, the outer ones first.

    Raises: nothing; what is malformed is left out.
    """
    todo: list[tuple[str, Any, bool]] = [("", schema, False)]
    while todo:
        pointer, one, is_negated = todo.pop()
        if not isinstance(one, dict):
            continue
        yield Place(pointer, one, draft, is_negated)
        inside: list[tuple[str, Any, bool]] = []
        for key, value in one.items():
            under = is_negated or key in ("not", "if")
            at = f"{pointer}/{escaped(key)}"
            if key in BY_NAME and isinstance(value, dict):
                inside += [(f"{at}/{escaped(name)}", each, under) for name, each in value.items()]
            elif key in _LISTS and isinstance(value, list):
                inside += [(f"{at}/{i}", each, under) for i, each in enumerate(value)]
            elif key in _ONES:
                inside.append((at, value, under))
        todo += reversed(inside)


def idle_keywords(places: Iterable[Place]) -> Iterator[Idle]:
    """The keywords that say nothing of any value."""
    for place in places:
        schema = place.schema
        if "$ref" in schema and place.draft <= 7:
            for keyword in schema:
                if keyword in _KNOWN - _NO_ASSERTIONS - {"$ref"}:
                    why = f"{keyword} stands beside $ref, where drafts up to 7 do not read it"
                    yield place, keyword, "warning", why, "put both into an allOf, or name a newer draft with $schema"
            continue
        for keyword in schema:
            found = _idle(place, keyword)
            if found is not None:
                yield place, *found


def _idle(place: Place, keyword: str) -> tuple[str, Severity, str, str] | None:
    """Why a keyword does nothing, if so."""
    schema, draft = place.schema, place.draft
    if keyword not in _KNOWN:
        return _unknown(keyword)
    first = _FROM_DRAFT.get(keyword, 0)
    if first > draft:
        return (
            keyword,
            "warning",
            f"{keyword} came with draft {first}, and here draft {draft} holds",
            "name a newer draft with $schema",
        )
    if keyword == "$recursiveRef" and draft != 2019:
        return keyword, "warning", "$recursiveRef is of draft 2019-09 only", "write $dynamicRef"
    if keyword == "additionalItems" and (draft >= 2020 or not isinstance(schema.get("items"), list)):
        why = (
            "additionalItems is no keyword of draft 2020-12"
            if draft >= 2020
            else "additionalItems does nothing without an array of items"
        )
        return keyword, "warning", why, "write items (beside prefixItems in draft 2020-12)"
    for words, partner in ((("then", "else"), "if"), (("minContains", "maxContains"), "contains")):
        if keyword in words and partner not in schema:
            return (
                keyword,
                "warning",
                f"{keyword} does nothing without {partner}",
                f"add {partner}, or remove {keyword}",
            )
    if keyword == "if" and "then" not in schema and "else" not in schema:
        return keyword, "warning", "if does nothing without then or else", "add one of them, or remove if"
    if keyword == "format" and (found := _unknown_format(schema["format"])):
        return keyword, *found
    return _of_another_type(schema, keyword)


def misspelled(schema: Any) -> Iterator[str]:
    """What to say, as lint does, of each keyword or format that is nearly a known one."""
    for place in places_of(schema, 0):
        for keyword in place.schema:
            found: tuple[str, str, str] | None = None
            if keyword == "format":
                found = _unknown_format(place.schema["format"])
            elif keyword not in _KNOWN and isinstance(keyword, str) and (unknown := _unknown(keyword)):
                found = unknown[1:]
            if found is not None and found[0] == "warning":
                yield f"{place.pointer}/{escaped(keyword)}: {found[1]}, so it changes nothing: {found[2]}"


def _unknown(keyword: str) -> tuple[str, Severity, str, str] | None:
    if keyword.startswith("x-"):
        return None
    near = difflib.get_close_matches(keyword, sorted(_KNOWN - _NO_ASSERTIONS), 1, 0.8)
    if near:
        return f"?{keyword}", "warning", f"there is no keyword {keyword!r}", f"write {near[0]!r}, if that is meant"
    return (
        f"?{keyword}",
        "info",
        f"{keyword!r} is no keyword of JSON Schema",
        "remove it, unless another program reads it",
    )


def _unknown_format(name: Any) -> tuple[Severity, str, str] | None:
    """What to say of a format that JSON Schema does not have: severity, what is so, what to do."""
    if not isinstance(name, str) or name in _FORMATS:
        return None
    # a name with a number, such as pydantic's uuid4, is another's own
    near = [] if name[-1:].isdigit() else difflib.get_close_matches(name.casefold(), sorted(_FORMATS), 1, 0.8)
    if name in _OTHERS_FORMATS or near:
        meant = _OTHERS_FORMATS.get(name) or near[0]
        return "warning", f"there is no format {name!r}", f"write {meant!r}, if that is meant"
    return "info", f"format {name!r} is none of JSON Schema's, so it says nothing", "use a pattern"


def _of_another_type(schema: Mapping[str, Any], keyword: str) -> tuple[str, Severity, str, str] | None:
    wanted = _TYPE_OF.get(keyword)
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given
    if wanted is None or not isinstance(names, list):
        return None
    if wanted in names or (wanted == "number" and "integer" in names):
        return None
    is_of = "or ".join(f"{name} " for name in map(str, names)).strip()
    why = f"{keyword} is about values of type {wanted}, but type is {is_of}"
    return keyword, "warning", why, f"remove it, or allow the type {wanted}"


__all__ = ["Place", "idle_keywords", "misspelled", "places_of"]
