"""Schemas in which objects have no members but those that they name."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from maskwright.analysis.errors import NestingError, SchemaError
from maskwright.analysis.nesting import check_nesting
from maskwright.analysis.schema.documents import pointed
from maskwright.analysis.schema.known_keywords import WITH_NAMED

_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose value is no schema, whatever it looks like."""

_NAMING = ("properties", "patternProperties")


def closed_objects(schema: Any) -> Any:
    """A copy in which objects that name members have no others, unless the schema says so.

    Each subschema that has `properties` or `patternProperties`, and no `additionalProperties`, gets
    ``"additionalProperties": false``: vLLM's `disable_additional_properties` and xgrammar's
    `strict_mode`. Schemas may stand anywhere, as OpenAPI's do in ``#/components/schemas``. So what
    looks like one is closed where no keyword has schemas, and what a reference leads to is one.

    >>> closed_objects({"properties": {"a": True}})
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
        if any(isinstance(one.get(key), Mapping) for key in _NAMING):
            one.setdefault("additionalProperties", False)
    return schema


def refuse_deep(*values: Any) -> None:
    """Raises: SchemaError for values that are nested too deeply to be those of a schema."""
    try:
        for value in values:
            check_nesting(value)
    except NestingError as error:
        raise SchemaError(f"/: {error}") from None
