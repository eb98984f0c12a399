"""What other programs mean by a schema, in the words of JSON Schema.

In: a schema as Python values. Out: a copy with each subschema changed. Every object counts as one
but data such as `const`, since OpenAPI keeps schemas where no keyword does; and a `$ref`'s target.
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
from maskwright.analysis.regex import ecma
from maskwright.analysis.schema.documents import NO_SCHEMAS, pointed, refuse_deep
from maskwright.analysis.schema.formats import WRITTEN
from maskwright.analysis.schema.known_keywords import WITH_NAMED

Change = Callable[[dict[str, Any]], None]
"""Changes one subschema in place."""
FormatsName = Literal["assert", "natural", "annotate"]
Formats = FormatsName | Mapping[str, str | None]
"""What `format` says: see `load_schema`."""
_OPENAPI = re.compile(r"https?://spec\.openapis\.org/oas/3\.0(?!\d)")


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
            elif key not in NO_SCHEMAS:
                todo.append((value, base))
        for change in changes:
            change(one)
    return schema


def close_object(schema: dict[str, Any]) -> None:
    """An object that names members has no others, unless the schema says so."""
    if any(isinstance(schema.get(key), Mapping) for key in ("properties", "patternProperties")):
        schema.setdefault("additionalProperties", False)


def _require_tag(schema: dict[str, Any]) -> bool:
    """Ask for the member that `discriminator` names. Returns whether there is one."""
    discriminator = schema.get("discriminator")
    tag = discriminator.get("propertyName") if isinstance(discriminator, dict) else None
    required = schema.get("required", [])
    if isinstance(tag, str) and isinstance(required, list | tuple) and tag not in required:
        schema["required"] = [*required, tag]
    return isinstance(tag, str)


def choose_by_tag(schema: dict[str, Any]) -> None:
    """A union of pydantic, which looks at the tag first, also where a class has a default."""
    if "oneOf" in schema and "anyOf" not in schema and _require_tag(schema):
        schema["anyOf"] = schema.pop("oneOf")  # no two branches have the same tag


def _openapi_3_0(schema: dict[str, Any]) -> None:
    """OpenAPI 3.0 in draft 4: `discriminator`, and `nullable`, which says nothing without `type`.

    Source: OpenAPI 3.0.4, section 4.7.24.
    """
    _require_tag(schema)
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]


def changed(schema: Any, documents: Mapping[str, Any], changes: Sequence[Change]) -> tuple[Any, dict[str, Any]]:
    """A schema and its documents with their subschemas changed; of OpenAPI 3.0 they become draft 4.

    Where one of them is of OpenAPI 3.0, so are documents that do not say what they are of.
    """
    version, versions = _version(schema), [*map(_version, documents.values())]
    silent = "3.0" if "3.0" in (version, *versions) else "other"
    others = [_changed(one, of or silent, changes) for one, of in zip(documents.values(), versions, strict=True)]
    return _changed(schema, version, changes), dict(zip(documents, others, strict=True))


def _changed(schema: Any, version: str, changes: Sequence[Change]) -> Any:
    if version == "3.0" and isinstance(schema, dict):
        return rewritten({**schema, "$schema": "http://json-schema.org/draft-04/schema#"}, _openapi_3_0, *changes)
    return rewritten(schema, *changes) if changes else schema


def _version(schema: Any) -> str:
    """What a document says it is of: "3.0" for OpenAPI 3.0, "" for nothing, else another text."""
    said = schema if isinstance(schema, dict) else {}
    if "$schema" in said:
        return "3.0" if _OPENAPI.match(str(said["$schema"])) else "other"
    return str(said.get("openapi", ""))[:3]


def formats_as(formats: Formats) -> Change:
    """`format` as a pattern, or as an annotation; `x-format` is then what it was.

    Raises: SchemaError for what is neither a word nor formats and their patterns.
    """
    is_all = formats == "annotate"
    patterns = {} if is_all else WRITTEN if formats == "natural" else formats
    if not isinstance(patterns, Mapping) or not all(isinstance(one, str | None) for one in patterns.values()):
        expected = "assert, natural, annotate, or format -> pattern or None"
        raise SchemaError(f"formats is {clip(formats)}; expected {expected}")
    for one in sorted({one for one in patterns.values() if one} - {*WRITTEN.values()}):
        try:
            ecma.parse(one)  # by itself, so that no bracket closes one that is put around it
        except ecma.PatternError as error:
            why = f"{error.what}, at offset {error.offset}"
            raise SchemaError(f"the pattern {clip(one)} cannot be used: {why}") from None

    def change(schema: dict[str, Any]) -> None:
        name = schema.get("format")
        if not isinstance(name, str) or not (is_all or name in patterns):
            return
        schema["x-format"] = schema.pop("format")
        pattern = patterns.get(name)
        if pattern is not None and "pattern" not in schema:
            schema["pattern"] = f"^(?:{pattern})$"
        elif pattern is not None and isinstance(every := schema.get("allOf", []), list | tuple):
            schema["allOf"] = [*every, {"pattern": f"^(?:{pattern})$"}]

    return change
