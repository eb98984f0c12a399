"""Graphs of schemas: drafts, documents, orders, what is refused and why, and hostile schemas."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from naive_json_texts import is_text_of
from schema_cases import check_graph
from shares import share
from written_cases import parameters

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema import normal
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.load import load_schema
from maskwright.analysis.schema.shapes import Arrays, Objects, Strings

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def accepts(schema: Any, *texts: str, **options: Any) -> list[bool]:
    graph = build_graph(schema, **options)
    check_graph(graph)
    return [is_text_of(graph, text) for text in texts]


def test_numbers_whose_value_matters_have_no_exponent() -> None:
    assert accepts({"type": "number"}, "1e2", "100") == [True, True]
    assert accepts({"type": "number", "minimum": 3}, "1e2", "100", "2.9") == [False, True, False]
    assert accepts({"const": 1}, "1", "1.0", "-1", "1e0") == [True, True, False, False]


def test_integers_by_draft() -> None:
    assert accepts({"$schema": DRAFT_4, "type": "integer"}, "1", "1.0") == [True, False]
    assert accepts({"$schema": DRAFT_6, "type": "integer"}, "1", "1.0", "1.5") == [True, True, False]


def test_siblings_of_references_by_draft() -> None:
    parts = {"$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": {"type": "string"}}}
    assert accepts({"$schema": DRAFT_7, **parts}, '"ab"', "1") == [True, False]
    assert accepts(parts, '"ab"', '"a"') == [False, True]


def test_conditions_by_draft() -> None:
    parts = {"if": {"type": "string"}, "then": {"maxLength": 1}}
    assert accepts({"$schema": DRAFT_6, **parts}, '"ab"') == [True]
    assert accepts({"$schema": DRAFT_7, **parts}, '"ab"', '"a"', "1") == [False, True, True]


def test_a_folder_of_documents_is_given(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "base.json").write_text('{"definitions": {"path": {"type": "string", "minLength": 1}}}')
    (tmp_path / "more" / "n.json").write_text('{"$id": "https://example.org/number.json", "type": "integer"}')
    (tmp_path / "old.json").write_text('{"$schema": "http://json-schema.org/draft-03/schema#"}')
    (tmp_path / "list.json").write_text("[1]")
    for own in ({}, {"$id": "https://example.org/root.json"}):
        number = "number.json" if own else "more/n.json"
        schema = {**own, "properties": {"a": {"$ref": "base.json#/definitions/path"}, "b": {"$ref": number}}}
        graph = load_schema(schema, documents=tmp_path).texts.graph
        texts = ('{"a": "x", "b": 1}', '{"a": ""}', '{"b": "1"}')
        assert [is_text_of(graph, text) for text in texts] == [True, False, False]
    with pytest.raises(SchemaError, match=r"old\.json: \$schema is 'http://json-schema.org/draft-03/schema#'"):
        load_schema({"$ref": "old.json"}, documents=str(tmp_path))
    with pytest.raises(SchemaError, match="which is no folder"):
        load_schema({}, documents=tmp_path / "list.json")
    with pytest.raises(SchemaError, match="expected URI -> schema, or a folder"):
        load_schema({}, documents=7)  # type: ignore[arg-type]
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(SchemaError, match=r"bad\.json:1:2"):
        load_schema({}, documents=tmp_path)


def test_documents_are_given() -> None:
    schema = {"properties": {"a": {"$ref": "https://example.org/other#/$defs/x"}}}
    other = {"$defs": {"x": {"type": "integer"}}}
    with pytest.raises(SchemaError, match="pass other documents") as caught:
        build_graph(schema)
    assert caught.value.pointer == "/properties/a/$ref"
    assert accepts(schema, '{"a": 1}', '{"a": "1"}', documents={"https://example.org/other": other}) == [True, False]
    graph = build_graph(schema, lenient=True)
    assert [pointer for pointer, _ in graph.left_out] == ["/properties/a/$ref"]
    assert is_text_of(graph, '{"a": "1"}')


def test_key_order_of_the_schema() -> None:
    schema = {"type": "object", "properties": {"b": True, "a": {}}, "required": ["c"]}
    texts = ('{"b": 1, "a": 1, "c": 1, "x": 1}', '{"a": 1, "b": 1, "c": 1}', '{"x": 1, "c": 1}')
    assert accepts(schema, *texts) == [True, True, True]
    assert accepts(schema, *texts, key_order="schema") == [True, False, False]


@pytest.mark.parametrize(("schema", "text"), parameters("schemas", "orders of keys"))
def test_order_of_keys(schema: dict[str, Any], text: str) -> None:
    """text : keys in the one order that they may have, but for those beside a bar."""
    keys = text.replace("|", " ").split()
    assert accepts(schema, json.dumps(dict.fromkeys(keys, 1)), key_order="schema") == [True]
    for number in range(len(keys) - 1):
        swapped = [*keys[:number], keys[number + 1], keys[number], *keys[number + 2 :]]
        is_free = "|" in text and number == len(keys) - 2
        assert accepts(schema, json.dumps(dict.fromkeys(swapped, 1)), key_order="schema") == [is_free], swapped


def test_keys_of_patterns_with_few_keys_are_named() -> None:
    graph = build_graph(
        {"type": "object", "patternProperties": {"^(a|b)$": {"type": "null"}}, "additionalProperties": False}
    )
    (shape,) = graph.nodes[graph.root]
    assert isinstance(shape, Objects)
    assert shape.keys == (b"a", b"b") and shape.others == ()


def test_leaves_are_the_same_objects() -> None:
    graph = build_graph(
        {"properties": {"a": {"type": "string", "minLength": 2}, "b": {"minLength": 2, "type": "string"}}}
    )
    other = build_graph({"type": "array", "items": {"type": "string", "minLength": 2}})
    mine = [shape for shapes in graph.nodes for shape in shapes if isinstance(shape, Strings) and shape.least == 2]
    theirs = [shape for shapes in other.nodes for shape in shapes if isinstance(shape, Strings)]
    assert len(mine) == len(theirs) == 1
    assert mine[0] is theirs[0]


def test_branches_that_exclude_one_another_are_not_negated() -> None:
    branches = [
        {"type": "object", "properties": {"t": {"const": str(i)}, "more": {"$ref": "#"}}, "required": ["t"]}
        for i in range(30)
    ]
    graph = build_graph({"oneOf": branches})
    assert len(graph.nodes[graph.root]) == 30


def test_unique_items_of_finite_sets() -> None:
    schema = {"type": "array", "items": {"enum": ["a", "b", None]}, "uniqueItems": True}
    graph = build_graph(schema)
    (shape,) = graph.nodes[graph.root]
    assert isinstance(shape, Arrays) and shape.is_unique and shape.most == 3
    assert accepts(schema, '["a", null, "b"]', '["a", "a"]', "[]") == [True, False, True]
    with pytest.raises(SchemaError, match="no value satisfies"):
        build_graph({**schema, "minItems": 4})


@pytest.mark.parametrize(
    ("items", "more"),
    [
        ({"type": "object"}, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, {"minItems": 3}),
        ({"type": "array"}, {"minItems": 2}),
        ({"type": "number"}, {"minItems": 2}),
        ({"pattern": "^a"}, {"minItems": 2}),
        ({"enum": [[], {}, 1]}, {"minItems": 1}),
        (True, {"prefixItems": [{"type": "boolean"}, {"type": "null"}]}),
    ],
)
def test_unique_items_of_any_kind(items: Any, more: dict[str, Any]) -> None:
    schema = {"type": "array", "items": items, "uniqueItems": True, **more}
    graph = build_graph(schema)
    check_graph(graph)
    (shape,) = graph.nodes[graph.root]
    assert isinstance(shape, Arrays) and shape.is_unique and shape.is_deep
    texts = (
        '[{"b": 1, "a": []}, {"a": [], "b": 1.0}]',
        '[{"a": 1}, {"a": 2}]',
        "[[1, 2], [2, 1]]",
        "[[1], [1e0]]",
        "[1, 1.0]",
    )
    if items is True or items == {"type": "object"}:
        is_open = "prefixItems" not in more
        assert accepts(schema, *texts[:2]) == [False, is_open]
    if items == {"type": "array"}:
        assert accepts(schema, *texts[2:4]) == [True, False]


@pytest.mark.parametrize(
    "items",
    [
        {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 0},
        {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False},
        {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
        {"enum": [[], {}, 1]},
    ],
)
def test_too_few_items_may_differ(items: Any) -> None:
    """Whether there is an array of so many is not looked at where items are few and not scalars."""
    schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": 2}
    with pytest.raises(SchemaError, match="different finite sets are compared"):
        build_graph(schema)
    assert build_graph({**schema, "minItems": 1}).left_out == ()


def test_integers_may_have_a_point() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    assert accepts(schema, "[1, 2.0]", "[1.5]", "[true]") == [True, False, False]


def test_a_text_with_the_same_key_twice_is_no_instance() -> None:
    assert accepts(True, '{"a": 1, "a": 1}', '{"a": 1}', "NaN", "[") == [False, True, False, False]


MALFORMED = [
    *parameters("schemas", "malformed"),
    ({"minimum": math.inf}, "/minimum"),
    ({"enum": [math.nan]}, "/enum"),
    ({"enum": [{1: 2}]}, "/enum"),
    ({"const": {1, 2}}, "/const"),
    ({"properties": {1: {}}}, "/properties"),
]


@pytest.mark.parametrize(("schema", "pointer"), MALFORMED, ids=str)
def test_what_is_malformed_is_named(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        build_graph(schema)
    assert caught.value.pointer == pointer
    assert str(caught.value).startswith(pointer or "at the root: ")


REFUSED = parameters("schemas", "refused")


@pytest.mark.parametrize(("schema", "pointer", "reason"), REFUSED, ids=str)
def test_what_is_not_exact_is_refused_or_left_out(schema: Any, pointer: str | None, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason) as caught:
        build_graph(schema)
    graph = build_graph(schema, lenient=True)
    check_graph(graph)
    assert any(reason in why for _, why in graph.left_out)
    if pointer is not None:
        assert caught.value.pointer == pointer
        assert [where for where, _ in graph.left_out] == [pointer]


EMPTY = [*parameters("schemas", "empty"), {"type": "object", "required": ["\ud800"]}]


@pytest.mark.parametrize("schema", EMPTY, ids=str)
def test_a_schema_without_an_instance_is_an_error(schema: Any) -> None:
    with pytest.raises(SchemaError, match="no value satisfies the schema"):
        build_graph(schema)


def deep(n: int, wrap: Callable[[Any], Any], leaf: Any) -> Any:
    for _ in range(n):
        leaf = wrap(leaf)
    return leaf


TOO_MUCH: dict[str, tuple[Callable[[], Any], str]] = {
    "nested allOf": (lambda: deep(20_000, lambda inner: {"allOf": [inner]}, {}), "more than 100 subschemas"),
    "loop of anyOf": (lambda: {"anyOf": [{"$ref": "#"}, {"type": "string"}]}, "refers to itself"),
    "product of anyOf": (
        lambda: {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(30)]},
        "alternatives",
    ),
    "product of patterns": (
        lambda: {"allOf": [{"anyOf": [{"pattern": f"a{i}"}, {"pattern": f"b{i}"}]} for i in range(12)]},
        "alternatives|multiply",
    ),
    "patterns of keys": (
        lambda: {"patternProperties": {f"x{i}": {"type": "null"} for i in range(30)}},
        "patterns of keys have together more than 20,000 states",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
@pytest.mark.timeout(60)
def test_what_is_too_much_says_so(name: str) -> None:
    make, message = TOO_MUCH[name]
    with pytest.raises(SchemaError, match=message):
        build_graph(make())


LARGE: dict[str, Callable[[], Any]] = {
    "deep properties": lambda: deep(
        5_000, lambda inner: {"type": "object", "properties": {"a": inner}}, {"type": "null"}
    ),
    "deep without types": lambda: deep(2_000, lambda inner: {"properties": {"a": inner}, "minProperties": 0}, {}),
    "chain of references": lambda: {
        "$ref": "#/$defs/0",
        "$defs": {**{str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(3_000)}, "3000": {"type": "null"}},
    },
    "many strings": lambda: {"enum": [f"string {i}" for i in range(5_000)]},
    "many keys": lambda: {"not": {"properties": {f"k{i}": {"type": "string"} for i in range(300)}}},
    "large": lambda: {"properties": {f"key {i}": {"properties": {"a": {"maxLength": 3}}} for i in range(20_000)}},
    "allOf of 100": lambda: {
        "allOf": [{"properties": {f"k{i}": {"type": "null"}}, "required": [f"k{i}"]} for i in range(100)]
    },
    "huge counts": lambda: {"type": "array", "minItems": 10**9, "contains": {"type": "string"}, "maxContains": 5},
}


@pytest.mark.parametrize("name", share(sorted(LARGE, key="large".__eq__), len(LARGE) - 1))
@pytest.mark.timeout(60)
def test_large_schemas_compile(name: str) -> None:
    check_graph(build_graph(LARGE[name]()))


@pytest.mark.parametrize("is_text", [True, False])
def test_schemas_that_are_nested_too_deeply_are_called_so(is_text: bool) -> None:
    values: Any = {}
    for _ in range(5_000):
        values = {"not": values}
    with pytest.raises(
        SchemaError, match="arrays and objects stand more than 250 deep inside one another; write it flatter"
    ):
        load_schema('{"not":' * 20_000 + "{}" + "}" * 20_000 if is_text else values)


@pytest.mark.parametrize("branch", [lambda i: {"type": "number", "minimum": i}, lambda i: {"type": "string"}])
def test_branches_that_all_meet_are_refused_before_their_pairs_are_made(
    branch: Callable[[int], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normal, "MOST_WORK", 20_000)
    start = time.process_time()
    with pytest.raises(SchemaError, match="multiply too far"):
        build_graph({"oneOf": [branch(i) for i in range(20_000)]})
    assert time.process_time() - start < 10  # measured: 1 s, of 200 million pairs
