"""Several `contains` of one array, also where its items must differ: against `jsonschema` and the naive judge."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from counted_schemas import counted_schema, counted_value
from naive_json_texts import is_legal, is_text_of
from schema_cases import check_graph
from shares import share

from maskwright.analysis.errors import EmptySchemaError, SchemaError
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.shapes import Arrays, SchemaGraph, Texts

jsonschema = pytest.importorskip("jsonschema", reason="the library jsonschema is the oracle; install it")


def arrays(graph: SchemaGraph) -> list[Arrays]:
    return [one for one in graph.nodes[graph.root] if isinstance(one, Arrays)]


@pytest.mark.parametrize("is_unique", [False, True])
@pytest.mark.parametrize("n", share([40, 150], 1))
def test_counted_arrays_mean_what_jsonschema_says(is_unique: bool, n: int) -> None:
    n_instances = n_states = n_refused = 0
    for seed in range(n):
        rng = Random(f"counted {is_unique} {seed}")
        schema = counted_schema(rng, is_unique=is_unique)
        oracle = jsonschema.Draft202012Validator(schema)
        values = [counted_value(rng) for _ in range(40)]
        try:
            graph = build_graph(schema)
        except SchemaError as error:
            if "no value satisfies" in str(error):
                assert not any(map(oracle.is_valid, values)), schema
            else:
                n_refused += 1
                assert is_unique and error.pointer == "/uniqueItems", (schema, error)
            continue
        check_graph(graph)
        n_states += bool(arrays(graph)[0].states)
        for value in values:
            text = json.dumps(value)
            if is_unique:  # where all items are scalars of a finite set, there is one spelling
                text = text.replace("1.0", "1")
            is_valid = oracle.is_valid(value)
            n_instances += is_valid
            assert is_legal(Texts(graph), text.encode()) == is_valid, (schema, text)
    assert n_instances > 2 * n and n_states > n // 4 and n_refused < n // 10, (n_instances, n_states, n_refused)


MANY = [{"const": 0}, {"const": "a"}, {"minimum": 2}, {"minimum": 3}, {"type": "string"}, {"enum": ["b", 1]}]
MANY += [{"minLength": 2}, {"type": "null"}, {"type": "array", "maxItems": 0}, {"type": ["null", "integer"]}]


@pytest.mark.parametrize("n", share([12, 60], 1))
def test_many_counted_sets_mean_what_jsonschema_says(n: int) -> None:
    items, n_instances, n_empty = [0, 1, 2, 3, "a", "b", "cc", None, [], [0], True], 0, 0
    for seed in range(n):
        rng = Random(seed)
        counted: list[Any] = [{"contains": one} for one in rng.sample(MANY, rng.randint(5, 8))]
        if rng.random() < 0.3:
            counted[0]["maxContains"] = rng.randint(1, 2)
        schema = {"type": "array", "allOf": counted}
        oracle = jsonschema.Draft202012Validator(schema)
        values = [[rng.choice(items) for _ in range(rng.randint(2, 12))] for _ in range(60)]
        try:
            graph = build_graph(schema)
        except EmptySchemaError:
            n_empty += 1
            assert not any(map(oracle.is_valid, values)), schema
            continue
        for value in values:
            is_valid = oracle.is_valid(value)
            n_instances += is_valid
            assert is_legal(Texts(graph), json.dumps(value).encode()) == is_valid, (schema, value)
    assert n_instances > 5 * n and n_empty < n // 5, (n_instances, n_empty)


@pytest.mark.parametrize(
    ("schema", "n_states"),
    [
        ({"allOf": [{"contains": {"const": 1}}, {"contains": {"type": "string"}}]}, 4),
        ({"uniqueItems": True, "contains": {"const": "x"}, "items": {"enum": ["x", "y"]}, "minItems": 2}, 4),
        ({"allOf": [{"contains": {"const": 1}, "maxContains": 1}, {"contains": {"type": "integer"}}]}, 4),
    ],
)
def test_states(schema: Any, n_states: int) -> None:
    (found,) = arrays(build_graph(schema))
    assert len(found.states) == n_states


@pytest.mark.parametrize(
    ("schema", "pointer", "reason"),
    [
        ({"allOf": [{"contains": {"const": i}} for i in range(17)]}, "/allOf/16/contains", "counted by 17 sets at once"),
        ({"allOf": [{"contains": {"const": i}} for i in range(10)]}, "/allOf/9/contains", "in more than 1,000 ways"),
        (
            {"allOf": [{"contains": {"const": i}, "minContains": 40} for i in range(2)]},
            "/allOf/1/contains",
            "counted in more than 1,000 ways",
        ),
        (
            {"uniqueItems": True, "contains": {"const": 1}, "prefixItems": [{"type": "integer"}]},
            "/uniqueItems",
            "first items have schemas of their own",
        ),
        (
            {
                "uniqueItems": True,
                "contains": {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False},
            },
            "/uniqueItems",
            "of items of a finite set",
        ),
        ({"type": "array", "not": {"uniqueItems": True}}, "/not/uniqueItems", "arrays with equal items are asked for"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused(schema: Any, pointer: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason) as error:
        build_graph(schema)
    assert error.value.pointer == pointer


def test_equal_items_are_not_asked_for_where_all_must_differ() -> None:
    strings: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": {"type": "string"}}
    schema = {"oneOf": [strings, {"type": "array", "uniqueItems": True, "items": {"type": ["string", "null"]}}]}
    graph = build_graph(schema)
    oracle = jsonschema.Draft202012Validator(schema)
    for value in ([], ["a"], [None], [None, "a"], ["a", "a"], [None, "a", "a"], [None, None], [1]):
        assert is_text_of(graph, json.dumps(value)) == oracle.is_valid(value), value


NOT_EVALUATED: list[Any] = [
    {"not": {"anyOf": [True, {"properties": {"a": True}}], "unevaluatedProperties": False}},
    {"not": {"properties": {"a": True}, "unevaluatedProperties": False}, "required": ["a"]},
    {"type": "array", "not": {"prefixItems": [True], "unevaluatedItems": False}},
    {"type": "array", "not": {"contains": {"type": "string"}, "unevaluatedItems": {"type": "integer"}}},
    {
        "type": "object",
        "not": {"if": {"required": ["a"]}, "then": {"properties": {"b": {"const": 1}}}, "unevaluatedProperties": False},
    },
    {"oneOf": [{"properties": {"a": True}, "unevaluatedProperties": False}, {"required": ["b"]}], "type": "object"},
]


@pytest.mark.parametrize("schema", NOT_EVALUATED)
def test_unevaluated_keywords_are_negated(schema: Any) -> None:
    graph = build_graph(schema)
    check_graph(graph)
    oracle = jsonschema.Draft202012Validator(schema)
    rng = Random(3)
    found = set()
    for _ in range(150):
        keys = rng.sample(["a", "b", "c"], rng.randrange(4))
        value = counted_value(rng) if rng.random() < 0.5 else {key: rng.choice([1, "a"]) for key in keys}
        found.add(oracle.is_valid(value))
        assert is_text_of(graph, json.dumps(value)) == oracle.is_valid(value), value
    assert found == {False, True}


def test_a_member_is_asked_for_beside_many_names() -> None:
    names = [f"n{i}" for i in range(9)]
    one = {"properties": {name: {"type": "integer"} for name in names}}
    schema = {"type": "object", **one, "not": {"properties": {"n0": True, "x": True}, "additionalProperties": False}}
    graph = build_graph(schema)
    oracle = jsonschema.Draft202012Validator(schema)
    rng = Random(4)
    for _ in range(300):
        value = {key: rng.choice([1, 1, "a"]) for key in rng.sample([*names, "x", "y", "z"], rng.randrange(4))}
        assert is_text_of(graph, json.dumps(value)) == oracle.is_valid(value), value
