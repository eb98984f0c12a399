"""What other programs mean by a schema, in the words of JSON Schema.

In: a schema as Python values. Out: a copy in which each subschema was changed: also what only looks
like one where no keyword has schemas, as OpenAPI's ``#/components/schemas``, and what references
lead to.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import unquote

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.documents import pointed, refuse_deep
from maskwright.analysis.schema.formats import NATURAL
from maskwright.analysis.schema.known_keywords import WITH_NAMED

Change = Callable[[dict[str, Any]], None]

Formats = Literal["assert", "natural", "annotate"] | Mapping[str, str | None]
"""What `format` says: see `load_schema`."""

_OPENAPI = re.compile(r"https?://spec\.openapis\.org/oas/3\.0(?!\d)")
_DRAFT_4 = "http://json-schema.org/draft-04/schema#"

_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose value is no schema, whatever it looks like."""


def rewritten(schema: Any, *changes: Change) -> Any:
    """A copy with each subschema changed.

    >>> rewritten({"properties": {"a": True}}, close_object)
    {'properties': {'a': True}, 'additionalProperties': False}

    Raises: SchemaError for a schema that is nested too deeply.
    """
    refuse_deep(schema)
    schema = copy.deepcopy(schema)
    seen: set[int] = set()
    todo = [(schema, schema)]  # with the schema that the pointers of its references begin at
    while todo:
        one, base = todo.pop()
        if isinstance(one, list | tuple):
            todo += [(each, base) for each in one]
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one.get("$id"), str) and not one["$id"].startswith("#"):
            base = one
        for key, value in one.items():
            if key in WITH_NAMED and isinstance(value, dict):
                todo += [(each, base) for each in value.values()]
            elif key == "$ref" and isinstance(value, str) and value.startswith("#/"):
                with suppress(LookupError):
                    todo.append((pointed(base, unquote(value[1:])), base))
            elif key not in _DATA:
                todo.append((value, base))
        for change in changes:
            change(one)
    return schema


def close_object(schema: dict[str, Any]) -> None:
    """An object that names members has no others, unless the schema says so.

    vLLM's `disable_additional_properties` and xgrammar's `strict_mode`.
    """
    if any(isinstance(schema.get(key), Mapping) for key in ("properties", "patternProperties")):
        schema.setdefault("additionalProperties", False)


def require_tag(schema: dict[str, Any]) -> None:
    """The member by which OpenAPI's `discriminator` tells branches apart is there.

    Who reads the text, as pydantic, looks at it first, also where its class has a default for it.
    """
    discriminator = schema.get("discriminator")
    tag = discriminator.get("propertyName") if isinstance(discriminator, dict) else None
    required = schema.get("required", [])
    if isinstance(tag, str) and isinstance(required, list) and tag not in required:
        schema["required"] = [*required, tag]


def read_openapi(schema: dict[str, Any]) -> None:
    """OpenAPI 3.0 in draft 4: its `nullable` and `discriminator`.

    Source: OpenAPI 3.0.4, section 4.7.24: without `type` beside it `nullable` says nothing.
    """
    require_tag(schema)
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]


def as_json_schema(schema: Any, changes: Sequence[Change]) -> Any:
    """A document with its subschemas changed; one of OpenAPI 3.0 is read as draft 4."""
    dialect, version = (schema.get("$schema"), schema.get("openapi")) if isinstance(schema, dict) else (None, None)
    if _OPENAPI.match(str(dialect)) or (dialect is None and str(version).startswith("3.0.")):
        schema, changes = {**schema, "$schema": _DRAFT_4}, (read_openapi, *changes)
    return rewritten(schema, *changes) if changes else schema


def read_format(formats: Formats) -> Change:
    """`format` as a pattern, or as an annotation; `x-format` is then what it was.

    Raises: SchemaError for what is neither a word nor formats and their patterns.
    """
    patterns = NATURAL if formats == "natural" else formats
    is_known = isinstance(patterns, Mapping) and all(isinstance(one, str | None) for one in patterns.values())
    if not is_known and patterns != "annotate":
        raise SchemaError(
            f"formats is {clip(formats)}; expected assert, natural, annotate, or format -> pattern or None"
        )

    def change(schema: dict[str, Any]) -> None:
        name = schema.get("format")
        if not isinstance(name, str) or (patterns != "annotate" and name not in patterns):
            return
        schema["x-format"] = schema.pop("format")
        pattern = None if isinstance(patterns, str) else patterns[name]
        if pattern is not None:
            asserted = {"pattern": f"^(?:{pattern})$"}
            if "pattern" in schema and isinstance(schema.setdefault("allOf", []), list):
                schema["allOf"].append(asserted)
            else:
                schema.update(asserted)

    return change
