"""Identifiers and references, wherever they stand, and documents of all sorts."""

from __future__ import annotations

from typing import Any

import pytest
from naive_json_texts import is_text_of

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.documents import has_names
from maskwright.analysis.schema.load import load_schema

NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
KEYWORDS = ("default", "const", "enum", "examples", "required", "dependentRequired", "type", "$comment")


@pytest.mark.parametrize("name", ["default", "type", "const", "enum", "examples", "required", "other"])
@pytest.mark.parametrize(
    "inner",
    [
        {"$id": "http://x/y", "$defs": {"a": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/a"}]},
        {"$defs": {"x": {"$anchor": "n", "type": "string"}}, "$ref": "#n"},
        {"$defs": {"x": {"$dynamicAnchor": "n", "type": "string"}}, "$dynamicRef": "#n"},
    ],
    ids=["$id", "$anchor", "$dynamicRef"],
)
def test_members_may_be_called_as_keywords_are(name: str, inner: dict[str, Any]) -> None:
    schema = {"properties": {name: inner}, "$defs": {"a": {"type": "integer"}}}
    graph = load_schema(schema).texts.graph
    assert is_text_of(graph, f'{{"{name}": "s"}}') and not is_text_of(graph, f'{{"{name}": 1}}')


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_names_are_looked_for_in_schemas_only(keyword: str) -> None:
    inner = {"$anchor": "a"}
    assert all(has_names({above: {keyword: inner}}) for above in NAMED)
    assert has_names({"properties": {"properties": {"properties": {keyword: {"not": inner}}}}})
    assert not has_names({keyword: inner}) and not has_names({"properties": {"properties": {keyword: inner}}})
    assert not has_names({"$defs": {"$id": {keyword: [inner]}, "$anchor": {}}})


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
@pytest.mark.parametrize("is_first", [True, False])
def test_an_embedded_schema_has_its_own_draft_wherever_it_says_so(keyword: str, is_first: bool) -> None:
    """`1.0` is no integer in draft 4."""
    own = {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x/y", "$id": "http://x/y"}
    one = {keyword: [{"type": "integer"}, {"type": "null"}][: 1 if keyword == "allOf" else 2]}
    for inner in ({**own, **one} if is_first else {**one, **own}, {"anyOf": [{**one, **own}]}):
        graph = load_schema({"properties": {"a": inner}}).texts.graph
        assert is_text_of(graph, '{"a": 1}') and not is_text_of(graph, '{"a": 1.0}')


@pytest.mark.parametrize(
    ("schema", "documents", "pointer"),
    [
        ({"$ref": "o.json"}, {"o.json": {"$id": 5}}, "o.json/$id"),
        ({"$ref": "o.json"}, {"o.json": {"properties": {"a": {"$id": []}}}}, "o.json/properties/a/$id"),
        ({"$id": 5, "$ref": "o.json"}, {"o.json": {}}, "/$id"),
        (
            {"items": {"$id": None, "properties": {"a": {"$id": 5}}}, "$ref": "o.json"},
            {"o.json": {}},
            "/items/properties/a/$id",
        ),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "id": 5, "not": {"$ref": "o"}}, {"o": {}}, "/id"),
    ],
)
def test_an_identifier_that_is_no_string_is_named(schema: Any, documents: dict[str, Any], pointer: str) -> None:
    with pytest.raises(SchemaError, match="an identifier is a string, not") as caught:
        load_schema(schema, documents=documents)
    assert caught.value.pointer == pointer


def test_documents_may_have_the_path_under_which_they_are_given_as_identifier() -> None:
    one: dict[str, Any] = {"$schema": "http://json-schema.org/draft-07/schema#"}
    documents = {
        "common/a.json": {**one, "$id": "common/a.json", "properties": {"b": {"$ref": "b.json"}}},
        "common/b.json": {**one, "$id": "common/b.json", "properties": {"c": {"$ref": "c.json#/definitions/c"}}},
        "common/c.json": {**one, "$id": "common/c.json", "definitions": {"c": {"type": "integer"}}},
    }
    main = {**one, "$id": "event$x", "properties": {"a": {"$ref": "common/a.json"}}}
    texts = load_schema(main, documents=documents).texts.graph
    assert is_text_of(texts, b'{"a":{"b":{"c":1}}}') and not is_text_of(texts, b'{"a":{"b":{"c":"x"}}}')


def test_a_reference_to_nothing_names_where_it_was_looked_for() -> None:
    given = {"https://o.org/schema/defs.json": {"definitions": {"m": True}}}
    with pytest.raises(SchemaError, match=r"'defs.json#/definitions/m' \(https://o.org/schema/image/defs.json\) leads"):
        load_schema({"$id": "https://o.org/schema/image/config", "$ref": "defs.json#/definitions/m"}, documents=given)
    with pytest.raises(SchemaError, match=r"'https://o.org/x' leads"):
        load_schema({"$ref": "https://o.org/x"})


@pytest.mark.parametrize(
    "name",
    [
        "http://json-schema.org/schema#",
        "https://spec.openapis.org/oas/3.1/dialect/base",
        "http://json-schema.org/draft-07/hyper-schema#",
        "https://json-schema.org/draft/2019-09/hyper-schema",
    ],
)
def test_other_names_of_drafts(name: str) -> None:
    assert is_text_of(load_schema({"$schema": name, "type": "string"}).texts.graph, b'"a"')


def test_an_unknown_draft_is_read_as_the_newest() -> None:
    schema = {"$schema": "https://meta.json-schema.tools/", "prefixItems": [{"type": "integer"}], "type": "array"}
    found = load_schema(schema)
    assert found.left_out == (
        ("/$schema", "no known draft is named 'https://meta.json-schema.tools/', so it is read as draft 2020"),
    )
    assert is_text_of(found.texts.graph, b"[1]") and not is_text_of(found.texts.graph, b'["a"]')


def test_an_unknown_draft_inside_is_read_as_the_one_around() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}
    inner = {"$schema": "http://a/meta", "$id": "http://a/b", "items": [{"type": "integer"}]}
    graph = load_schema({**old, "properties": {"x": inner}}).texts.graph
    assert [pointer for pointer, _ in graph.left_out] == ["/properties/x/$schema"]
    assert is_text_of(graph, b'{"x":[1]}') and not is_text_of(graph, b'{"x":["a"]}')
    there = load_schema(
        {"$ref": "o"}, documents={"o": {"$schema": "http://a/m"}, "p": {"$schema": "http://a/other"}}
    ).texts.graph
    assert [pointer for pointer, _ in there.left_out] == ["o/$schema"]
    with pytest.raises(SchemaError, match=r"\$schema is 7; expected the identifier"):
        load_schema({"$schema": 7})


@pytest.mark.parametrize("reference", ["o.json#/$defs/a", "./o.json#/$defs/a"])
@pytest.mark.parametrize("uri", ["o.json", "./o.json"])
def test_a_reference_may_begin_with_the_folder_itself(uri: str, reference: str) -> None:
    graph = load_schema({"$ref": reference}, documents={uri: {"$defs": {"a": {"type": "null"}}}}).texts.graph
    assert is_text_of(graph, b"null") and not is_text_of(graph, b"1")


def test_a_reference_beside_what_cannot_be_looked_through_is_no_error_of_another_kind() -> None:
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": True}}  # of no draft 4
    named = {"$id": "urn:a", "type": "null", "$ref": "#/$defs/c", "$defs": {"c": {"type": "null"}}}
    with pytest.raises(SchemaError, match=r"/\$defs/a/\$ref: the reference '#/\$defs/c' leads to nothing"):
        load_schema({"$ref": "#/$defs/a", "$defs": {"a": named, "b": old}})
    assert is_text_of(load_schema({"$ref": "#/$defs/a", "$defs": {"a": named}}).texts.graph, b"null")


def test_documents_have_uris() -> None:
    for schema in ({}, {"$ref": "o.json"}):
        with pytest.raises(SchemaError, match="documents has the key 5; expected URI -> schema"):
            load_schema(schema, documents={5: {}})  # type: ignore[dict-item]


@pytest.mark.parametrize("documents", [None, {"o": {"type": ("integer", "string")}}])
def test_tuples_are_arrays_and_keys_are_strings(documents: dict[str, Any] | None) -> None:
    schema: Any = {"type": "object", "properties": {5: {"type": ("integer", "string")}}}
    if documents:
        schema["properties"][5] = {"$ref": "o"}
    graph = load_schema(schema, documents=documents).texts.graph
    assert [is_text_of(graph, f'{{"5": {value}}}') for value in ("1", '"a"', "null")] == [True, True, False]


INTEGER, STRING = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://a/b", "$defs": {"x": {"$id": "http://a/b", **INTEGER}, "y": {"$id": "http://a/b", **STRING}}},
        {"$ref": "#n", "$defs": {"x": {"$anchor": "n", **INTEGER}, "y": {"$anchor": "n", **STRING}}},
        {"$dynamicRef": "#n", "$defs": {"x": {"$dynamicAnchor": "n", **INTEGER}, "y": {"$dynamicAnchor": "n"}}},
        {"$id": "http://a/b", "$ref": "#/$defs/x", "$defs": {"x": INTEGER, "y": {"$id": "http://a/b"}}},
        {"$id": "http://a/", "$ref": "b", "$defs": {"x": {"$id": "http://a/b"}, "y": {"not": {"$id": "b", **STRING}}}},
    ],
)
def test_a_name_of_different_subschemas_is_refused_where_it_is_asked_for(schema: dict[str, Any]) -> None:
    # which of them is meant is left open, and what looks names up takes one by the hash seed
    with pytest.raises(SchemaError, match="different subschemas have the name"):
        load_schema(schema)
    reference = next(key for key in schema if key.endswith(("Ref", "ref")))
    assert load_schema({**schema, reference: "http://a/c#"}, documents={"http://a/c": INTEGER})


def test_equal_subschemas_may_have_one_name() -> None:
    both = {"$id": "http://a/b", **INTEGER}
    assert load_schema({"$ref": "http://a/b", "$defs": {"x": both, "y": dict(both)}})
