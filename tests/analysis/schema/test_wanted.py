"""Objects that must have some member which the schema does not name, against the library `jsonschema`."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest
from naive_json_texts import is_text_of
from schema_cases import check_graph
from shares import share
from wanted_schemas import objects, wanting

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.shapes import Objects, SchemaGraph

jsonschema = pytest.importorskip("jsonschema", reason="the library jsonschema is the oracle; install it")

EXAMPLES: dict[str, Any] = {
    "a map or an object": {
        "oneOf": [
            {"type": "object", "additionalProperties": {"enum": ["number", "date"]}},
            {"type": "object", "properties": {"signal": {"type": "string"}}, "required": ["signal"]},
        ]
    },
    "a name or a pattern": {
        "oneOf": [
            {"type": "object", "properties": {"c": {"type": "string"}}},
            {
                "type": "object",
                "patternProperties": {"^c": {"type": "string"}},
                "properties": {"n": {"type": "null"}},
            },
        ]
    },
    "another name": {"type": "object", "not": {"patternProperties": {"^d": {}}, "additionalProperties": False}},
    "itself": {
        "$ref": "#/$defs/m",
        "$defs": {"m": {"type": "object", "additionalProperties": {"not": {"$ref": "#/$defs/m"}}}},
    },
    "two, or one that is both": {
        "type": "object",
        "allOf": [{"not": {"additionalProperties": {"type": one}}} for one in ("string", "integer")],
        "maxProperties": 2,
    },
    "few names": {"type": "object", "not": {"patternProperties": {"^[cn]$": {"type": "null"}}}, "maxProperties": 2},
    "long names": {"type": "object", "not": {"propertyNames": {"minLength": 2}}, "minProperties": 2},
}
VALUES = (1, "number", None, {}, {"a": 1}, {"a": {}})


def n_wanted(graph: SchemaGraph) -> int:
    """The most members that an object of a graph is asked for without a name."""
    return max((len(one.wanted) for node in graph.nodes for one in node if isinstance(one, Objects)), default=0)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_mean_what_jsonschema_says(name: str) -> None:
    schema = EXAMPLES[name]
    graph, oracle = build_graph(schema), jsonschema.Draft202012Validator(schema)
    check_graph(graph)
    assert n_wanted(graph) == {"two, or one that is both": 2, "few names": 0}.get(name, 1)
    verdicts = set()
    for n in range(3):
        for keys in itertools.permutations(("c", "n", "signal", "d"), n):
            for values in itertools.product(VALUES, repeat=n):
                value = dict(zip(keys, values, strict=True))
                verdicts.add(oracle.is_valid(value))
                assert is_text_of(graph, json.dumps(value)) == oracle.is_valid(value), value
    assert verdicts == {False, True}


@pytest.mark.parametrize("seeds", share([range(150), range(150, 3000)], 1))
def test_random_schemas_mean_what_jsonschema_says(seeds: range) -> None:
    n_refused = n_instances = n_such = 0
    for seed in seeds:
        rng = Random(f"wanted {seed}")
        schema = wanting(rng)
        oracle = jsonschema.Draft202012Validator(schema)
        cases = [(json.dumps(value), oracle.is_valid(value)) for value in objects(rng, 40)]
        try:
            graph = build_graph(schema)
        except SchemaError as error:
            if "no value satisfies the schema" in str(error):
                assert not any(is_valid for _, is_valid in cases), schema
                continue
            n_refused += 1
            assert "not counted" in str(error), schema
            graph = build_graph(schema, lenient=True)
            check_graph(graph)
            assert graph.left_out and all(is_text_of(graph, text) or not is_valid for text, is_valid in cases), schema
            continue
        check_graph(graph)
        n_such += n_wanted(graph) > 0
        for text, is_valid in cases:
            n_instances += is_valid
            assert is_text_of(graph, text) == is_valid, (schema, text)
    assert n_such > 0.4 * len(seeds) and n_refused < 0.25 * len(seeds) and n_instances > 5 * len(seeds)


def test_names_that_one_demand_gives_are_what_another_one_wants() -> None:
    """A short name is one of few, and no `ab`: one member is both."""
    schema = {
        "type": "object",
        "propertyNames": {"pattern": "b|c"},
        "allOf": [{"not": {"propertyNames": {"enum": ["ab"]}}}, {"not": {"propertyNames": {"minLength": 2}}}],
    }
    graph = build_graph(schema)
    assert [is_text_of(graph, text) for text in ('{"b": 1}', '{"ab": 1}', '{"b": 1, "ab": 2}', '{"bb": 1}')] == [
        True,
        False,
        True,
        False,
    ]
