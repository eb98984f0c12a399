"""Random schemas against the library `jsonschema`, and against the short and the long way."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from json_judge import is_text_of
from random_schemas import Schemas, random_value
from schema_cases import check_graph, records, same_graphs
from shares import share

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.graph import _built, build_graph

jsonschema = pytest.importorskip("jsonschema", reason="the library jsonschema is the oracle; install it")

VALIDATORS = {
    4: "Draft4Validator",
    6: "Draft6Validator",
    7: "Draft7Validator",
    2019: "Draft201909Validator",
    2020: "Draft202012Validator",
}


def natural_number(text: str) -> int | float:
    """A float of JSON as the natural style writes it, where its value matters: whole ones without a point."""
    value = float(text)
    return int(value) if value.is_integer() else value


def cases(draft: int, with_unevaluated: bool, n: int) -> Any:
    """Random schemas with random values and whether the oracle says that they are instances."""
    for seed in range(n):
        rng = Random(f"{draft} {with_unevaluated} {seed}")
        schema = Schemas(rng, draft, with_unevaluated).whole(rng.choice([1, 2, 3]))
        oracle = getattr(jsonschema, VALIDATORS[draft])(schema)
        values = [random_value(rng, 3) for _ in range(25)]
        try:
            yield schema, [(json.dumps(value), oracle.is_valid(value)) for value in values]
        except RecursionError:  # a reference to itself, which is refused
            with pytest.raises(SchemaError, match="itself"):
                build_graph(schema, default_draft=draft)


@pytest.mark.parametrize("n", share([50, 400], 1))
@pytest.mark.parametrize(
    ("draft", "with_unevaluated"), [(4, False), (6, False), (7, False), (2019, False), (2020, False), (2020, True)]
)
def test_random_schemas_mean_what_jsonschema_says(draft: int, with_unevaluated: bool, n: int) -> None:
    n_refused = n_instances = 0
    for schema, texts in cases(draft, with_unevaluated, n):
        try:
            graph = build_graph(schema, default_draft=draft)
        except SchemaError as error:
            if "no value satisfies the schema" in str(error):
                assert not any(is_valid for _, is_valid in texts), schema
                continue
            n_refused += 1
            try:
                graph = build_graph(schema, default_draft=draft, lenient=True)
            except SchemaError:
                continue
            check_graph(graph)
            assert graph.left_out
            for text, is_valid in texts:  # more values, never fewer
                assert not is_valid or is_text_of(graph, text), (schema, text)
            continue
        check_graph(graph)
        for text, is_valid in texts:
            n_instances += is_valid
            assert is_text_of(graph, text) == is_valid, (schema, text)
        natural = build_graph(schema, default_draft=draft, is_natural=True)
        for text, is_valid in texts if draft > 4 else ():
            assert is_text_of(natural, json.dumps(json.loads(text, parse_float=natural_number))) == is_valid, (
                schema,
                text,
            )
    assert n_refused < 0.1 * n
    assert n_instances > n


@pytest.mark.parametrize("draft", [4, 7, 2020])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("seeds", share([range(50), range(50, 500), range(500, 1000), range(1000, 1500)], 1))
def test_the_short_way_gives_what_the_long_way_gives(draft: int, in_order: bool, seeds: range) -> None:
    n_same = 0
    for seed in seeds:
        rng = Random(f"short {draft} {seed}")
        n_same += short_is_long(Schemas(rng, draft).whole(2), draft, in_order)
    assert n_same > 0.6 * len(seeds)


@pytest.mark.parametrize("every", share([20, 1], 1))
def test_the_short_way_gives_what_the_long_way_gives_for_schemastore(every: int) -> None:
    chosen = list(records("schemastore"))[::every]
    assert sum(short_is_long(one["schema"], 2020, False) for one in chosen) > 100 // every


@pytest.mark.parametrize("draft", [4, 2020])
@pytest.mark.parametrize(
    "schema",
    [
        {"$id": "http://x/a", "$schema": "http://json-schema.org/draft-04/schema#", "type": "string", "const": "z"},
        {"id": "http://x/a", "$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"},
        {"$id": "http://x/a", "$schema": "http://json-schema.org/draft-07/schema#", "const": 1},
        {"$schema": "http://nowhere", "type": "string"},
        {"type": "array", "minItems": 2, "maxItems": 1, "uniqueItems": "yes"},
        {"type": "array", "maxItems": -1, "uniqueItems": 1},
        {"type": "object", "minProperties": -1},
    ],
)
def test_the_short_way_reads_subschemas_by_their_own_draft_and_checks_them(schema: Any, draft: int) -> None:
    for around in (
        {"properties": {"a": schema}},
        {"items": schema},
        {"anyOf": [schema, {"type": "null"}]},
        {"type": "object", "additionalProperties": schema},
    ):
        short_is_long({"type": "object", "properties": {"b": around}}, draft, False)


def short_is_long(schema: Any, draft: int, in_order: bool) -> bool:
    """Whether a schema compiles; both ways must then give the same graph, or else the same error."""
    found = []
    for is_short in (True, False):
        try:
            found.append(_built(schema, None, in_order, in_order, False, draft, is_short))
        except SchemaError as error:
            found.append(str(error))
    short, long = found
    if isinstance(short, str) or isinstance(long, str):
        assert short == long, schema
        return False
    assert same_graphs(short, long), schema
    return True
