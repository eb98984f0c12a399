"""Random schemas against the library `jsonschema`, and made twice."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any, Literal

import pytest
from naive_json_texts import is_text_of
from random_schemas import Schemas, random_value
from schema_cases import check_graph, same_graphs
from shares import share

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.scalars import LEAVES

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


@pytest.mark.parametrize("seeds", share([range(100), range(100, 1000)], 1))
def test_what_is_known_of_scalars_from_other_schemas_changes_nothing(seeds: range) -> None:
    n_same = 0
    for seed in seeds:
        rng = Random(f"leaves {seed}")
        draft = rng.choice([4, 7, 2020])
        schema = Schemas(rng, draft).whole(2)
        LEAVES.forget()
        n_same += made_again(schema, draft, rng.random() < 0.5)
    assert n_same > 0.6 * len(seeds)


def made_again(schema: Any, draft: int, in_order: bool) -> bool:
    """Whether a schema compiles; it must then give the same graph once more, or else the same error."""
    key_order: Literal["any", "schema"] = "schema" if in_order else "any"
    found = []
    for _ in range(2):
        try:
            found.append(build_graph(schema, key_order=key_order, is_natural=in_order, default_draft=draft))
        except SchemaError as error:
            found.append(str(error))
    first, again = found
    if isinstance(first, str) or isinstance(again, str):
        assert first == again, schema
        return False
    assert same_graphs(first, again), schema
    return True


@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        ({"$id": "http://x/a", "$schema": "http://json-schema.org/draft-07/schema#", "const": 1}, ""),
        ({"$id": "http://x/a", "$schema": "http://json-schema.org/draft-04/schema#", "const": 1}, ""),
        ({"type": "string", "minLength": "x"}, "/minLength: minLength is 'x'"),
        ({"type": "string", "pattern": "("}, "/pattern: the pattern"),
        ({"type": "array", "minItems": 2, "maxItems": 1, "uniqueItems": "yes"}, "/uniqueItems: uniqueItems is 'yes'"),
        ({"type": "array", "maxItems": -1, "uniqueItems": 1}, "/maxItems: maxItems is -1"),
        ({"type": "object", "minProperties": -1}, "/minProperties: minProperties is -1"),
    ],
)
def test_subschemas_are_read_by_their_own_draft_and_checked_where_they_stand(schema: Any, refused: str) -> None:
    for inside, pointer, text in (
        ({"properties": {"a": schema}}, "/properties/a", '{"b": {"a": 2}}'),
        ({"items": schema}, "/items", '{"b": [2]}'),
        ({"anyOf": [schema, {"type": "null"}]}, "/anyOf/0", '{"b": 2}'),
        ({"type": "object", "additionalProperties": schema}, "/additionalProperties", '{"b": {"a": 2}}'),
    ):
        whole = {"type": "object", "properties": {"b": inside}}
        for _ in range(2):
            if refused:
                with pytest.raises(SchemaError, match=re.escape(f"/properties/b{pointer}{refused}")):
                    build_graph(whole)
            else:  # draft 4 has no `const`
                assert is_text_of(build_graph(whole), text) is ("draft-04" in schema["$schema"])
