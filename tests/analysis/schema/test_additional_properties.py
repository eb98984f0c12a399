"""Objects without members that they do not name, wherever their schema stands."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from maskwright.analysis.errors import MaskwrightError, SchemaError
from maskwright.analysis.schema.load import load_schema
from maskwright.analysis.schema.rewriting import close_object, rewritten
from maskwright.stores.build import build_store

NAMED = {"type": "object", "properties": {"x": {"type": "integer"}}}
CLOSED = {**NAMED, "additionalProperties": False}


@pytest.mark.parametrize(
    "around",
    [
        lambda a: a,
        lambda a: {"$defs": {"a": a}},
        lambda a: {"allOf": [True, {"not": a}], "if": a, "items": [a]},
        lambda a: {"components": {"schemas": {"a": a}}, "$ref": "#/components/schemas/a"},
        # names that are keywords elsewhere, and pointers with escapes
        lambda a: {"components": {"properties": a, "b~/%": a}, "$ref": "#/components/properties"},
        lambda a: {"x": {"enum": a, "const": [a]}, "allOf": [{"$ref": "#/x/enum"}, {"$ref": "#/x/const/0"}]},
        lambda a: {"a%b~/": {"default": a}, "$ref": "#/a%25b~0~1/default"},
        lambda a: {"$defs": {"in": {"$id": "x:y", "enum": a, "$ref": "#/enum"}}},
        lambda a: {"patternProperties": {"": a}, "additionalProperties": True},
    ],
)
def test_schemas_are_closed_wherever_they_stand(around: Any) -> None:
    schema = around(copy.deepcopy(NAMED))
    before = copy.deepcopy(schema)
    found = rewritten(schema, close_object)
    assert schema == before
    found.get("components", {}).pop("additionalProperties", None)  # it looks like a schema; nobody reads it
    assert found == around(CLOSED)


def test_what_says_so_is_open_and_data_stay() -> None:
    data = [NAMED, {"patternProperties": {}}]
    for schema in (
        {"properties": {}, "additionalProperties": {"type": "null"}},
        {"const": NAMED, "enum": data, "default": data, "examples": data},
        {"properties": {"properties": {"const": NAMED}}, "additionalProperties": True},
        {"type": "object", "required": ["properties"], "$ref": "#/nothing/0/1"},
        [],
        True,
    ):
        assert rewritten(schema, close_object) == schema


def test_patterns_are_names_and_unevaluated_members_are_others() -> None:
    for schema in ({"patternProperties": {"^a": {}}}, {"properties": {}, "unevaluatedProperties": {"type": "null"}}):
        assert rewritten(schema, close_object) == {**schema, "additionalProperties": False}


def test_a_reference_that_leads_to_itself_ends() -> None:
    schema: Any = {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/properties/b"}}}
    assert rewritten(schema, close_object) == {**schema, "additionalProperties": False}


def test_what_is_too_long_or_too_deep_is_no_error_of_another_kind() -> None:
    assert rewritten({"$ref": "#/allOf/" + "9" * 5000, "allOf": [True]}, close_object)["allOf"] == [True]
    assert rewritten({"anyOf": ({"properties": {}},)}, close_object)["anyOf"][0]["additionalProperties"] is False
    deep: Any = {"properties": {}}
    for _ in range(100_000):
        deep = {"not": deep}
    with pytest.raises(SchemaError, match="stand more than 250 deep"):
        rewritten(deep, close_object)


def takes(schema: Any, text: str, **options: Any) -> bool:
    matcher = build_store(load_schema(schema, **options), "python-tiny").matcher()
    return matcher.try_bytes(text.encode()) and matcher.is_accepting()


def test_an_option_of_load_schema() -> None:
    """What it means with references, other documents, and the parts of an `allOf`."""
    closed = {"additional_properties": False}
    assert takes(NAMED, '{"x": 1, "y": 2}') and not takes(NAMED, '{"x": 1, "y": 2}', **closed)
    assert takes(NAMED, '{"x": 1}', **closed) and takes(NAMED, "{}", **closed)
    other = {"documents": {"x:other": NAMED}}
    assert takes({"$ref": "x:other"}, '{"y": 1}', **other) and not takes(
        {"$ref": "x:other"}, '{"y": 1}', **other, **closed
    )
    anything = {"type": "object"}
    assert takes(anything, '{"y": 1}', **closed)
    parts = {"allOf": [NAMED, {"properties": {"y": True}}]}
    assert takes(parts, '{"x": 1, "y": 2}') and not takes(parts, '{"x": 1}', **closed) and takes(parts, "{}", **closed)
    counted = {"allOf": [NAMED, {"properties": {"y": True}}], "unevaluatedProperties": False}
    assert takes(counted, '{"x": 1, "y": 2}') and not takes(counted, '{"z": 1}')
    with pytest.raises(MaskwrightError, match="additional_properties is 'no', a str; expected True or False"):
        load_schema(NAMED, additional_properties="no")  # type: ignore[arg-type]
