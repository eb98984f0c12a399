"""Structural tags as programs that were written for xgrammar pass them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from maskwright.analysis.arguments import a_type
from maskwright.analysis.nesting import read_json
from maskwright.serving.xgrammar_missing import RefusedError


class StructuralTagItem:
    """A tag of xgrammar's older form: xgrammar's `StructuralTagItem`.

    begin, end : the texts around.
    schema : of the JSON between them: JSON text, a dict, or a pydantic model. It is kept as
        `schema_`.

    Raises: RefusedError for a begin or an end that is no str.
    """

    def __init__(self, *, begin: str, schema: Any, end: str) -> None:
        for name, value in (("begin", begin), ("end", end)):
            if not isinstance(value, str):
                raise RefusedError(f"the {name} of a tag is {a_type(value)}; expected a str")
        self.begin, self.schema_, self.end = begin, schema, end

    def __repr__(self) -> str:
        return f"StructuralTagItem(begin={self.begin!r}, schema={self.schema_!r}, end={self.end!r})"


def tag_text(structural_tag: Any, triggers: Any, tags: Any) -> str:
    """The JSON text of a structural tag.

    structural_tag : JSON text, a dict, or an object of xgrammar; or, with triggers, a list of
        `StructuralTagItem`, which may also be `tags`.

    Raises: RefusedError for other arguments.
    """
    if (structural_tag is None) == (tags is None):
        raise RefusedError("expected a structural tag, or tags and triggers")
    items = structural_tag if tags is None else tags
    if tags is not None or triggers is not None or isinstance(items, list | tuple):
        return as_json("structural tag", _of_items(items, triggers))
    if hasattr(items, "model_dump_json"):
        items = items.model_dump_json()
    return as_json("structural tag", items)


def _of_items(items: Any, triggers: Any) -> dict[str, Any]:
    """The newer form of tags with triggers."""
    for name, value, expected in (("tags", items, "StructuralTagItem"), ("triggers", triggers, "str")):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise RefusedError(f"the {name} of a structural tag are {a_type(value)}; expected a list of {expected}")
    found = []
    for item in items:
        if not all(hasattr(item, name) for name in ("begin", "schema_", "end")):
            raise RefusedError(f"a tag is {a_type(item)}; expected StructuralTagItem(begin=..., schema=..., end=...)")
        content = {"type": "json_schema", "json_schema": _schema_values(item.schema_)}
        found.append({"type": "tag", "begin": item.begin, "content": content, "end": item.end})
    return {
        "type": "structural_tag",
        "format": {"type": "triggered_tags", "triggers": list(triggers), "tags": found},
    }


def _schema_values(schema: Any) -> Any:
    """A schema as values of JSON, of its text, of a pydantic model, or of values."""
    if hasattr(schema, "model_json_schema"):
        return schema.model_json_schema()
    if not isinstance(schema, str):
        return schema
    try:
        return read_json(schema)
    except ValueError as error:
        raise RefusedError(f"the schema of a tag is not JSON: {error}") from error


def as_json(what: str, value: Any) -> str:
    """JSON text, of text or of Python values. Raises: RefusedError for what is neither."""
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except (TypeError, ValueError) as error:
        raise RefusedError(f"the {what} cannot be written as JSON: {error}") from error


__all__ = ["StructuralTagItem", "as_json", "tag_text"]
