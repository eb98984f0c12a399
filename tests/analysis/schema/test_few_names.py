"""Objects that may have few names, which patterns and lengths only say together: is there an instance?"""

from __future__ import annotations

from itertools import combinations, product
from random import Random
from typing import Any

import pytest
from naive_json_texts import is_text_of
from shares import share

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.keys import n_keys
from maskwright.analysis.schema.strings import pattern_automaton

ONLY_C = {"patternProperties": {"c": {"type": "integer"}}, "minProperties": 2, "additionalProperties": False}
LONGEST = {"propertyNames": {"maxLength": 1}}


def is_refused(schema: Any, **options: Any) -> bool:
    try:
        build_graph(schema, **options)
    except SchemaError as error:
        assert "no value satisfies the schema" in str(error), (schema, error)
        return True
    return False


@pytest.mark.parametrize(
    "schema",
    [
        {**ONLY_C, **LONGEST},
        {**ONLY_C, "propertyNames": {"pattern": "^.$"}},
        {**ONLY_C, "propertyNames": {"allOf": [{"pattern": "^.{1,2}$"}, {"pattern": "^.?$"}]}},
        {**ONLY_C, **LONGEST, "properties": {"a": False}},
        {**ONLY_C, **LONGEST, "properties": {"c": {"type": "integer"}}},
        {**ONLY_C, **LONGEST, "properties": {"a": {"type": "string"}}, "minProperties": 3},
        {**ONLY_C, **LONGEST, "required": ["c"]},
        {"allOf": [ONLY_C, LONGEST]},
        {"patternProperties": {"c": {}}, **LONGEST, "unevaluatedProperties": False, "minProperties": 2},
        {"patternProperties": {"^[a-z]{2}$": {}}, "additionalProperties": False, "minProperties": 677},
        {"patternProperties": {"^[a-z]": {}, "[0-9]": False}, "propertyNames": {"pattern": "^.[0-9k-l]$"},
         "additionalProperties": False, "minProperties": 53},
        {"patternProperties": {"^[a-z]{2}$": {"$ref": "#"}, "^[0-9]{3}$": {}}, "additionalProperties": False,
         "minProperties": 1001},
    ],
)  # fmt: skip
def test_more_members_are_asked_for_than_names_exist(schema: Any) -> None:
    schema = {"type": "object", **schema}
    assert is_refused(schema) and is_refused(schema, key_order="schema")
    fewer = {**schema, "minProperties": schema.get("minProperties", 2) - 1}
    if "allOf" in schema:
        fewer = {"type": "object", "allOf": [{**ONLY_C, "minProperties": 1}, LONGEST]}
    assert not is_refused(fewer)


def test_such_branches_go_away() -> None:
    few: dict[str, Any] = {"type": "object", **ONLY_C, **LONGEST}
    graph = build_graph({"anyOf": [few, {"type": "string"}]})
    assert len(graph.nodes) == 1 and len(graph.nodes[0]) == 1
    graph = build_graph({"properties": {"x": few}, "additionalProperties": {"type": "array", "items": few}})
    assert is_text_of(graph, '{"y":[]}') and not is_text_of(graph, '{"x":{"c":1}}')
    assert not is_text_of(graph, '{"y":[{"c":1}]}')
    # all values are of the one case, whose objects have too few names
    condition = {"if": {"properties": {"k": {"const": 1}}}, "then": few, "else": {"type": "object"}}
    assert is_refused({"type": "object", **condition, "unevaluatedProperties": False})


def test_a_class_of_names_counts_only_with_a_value() -> None:
    # an object inside needs members of its own, without end: only names of three digits have a value
    inside = {"^[a-z]{2}$": {"$ref": "#"}, "^[0-9a-f]{3}$": {"type": "null"}}
    schema = {"type": "object", "patternProperties": inside, "additionalProperties": False}
    assert is_refused({**schema, "minProperties": 4097}) and not is_refused({**schema, "minProperties": 4096})


def test_names_are_counted() -> None:
    c, short = pattern_automaton("c"), pattern_automaton("^[a-z]{1,2}$")
    assert n_keys((c, short), [3], [b"c", b"ac", b"x", b"ccc"]) == 26 + 26 + 1 - 1 - 2
    assert n_keys((c, short), [2, 3], []) == 26 + 26 * 26
    assert n_keys((c, short), [1], []) is n_keys((c, short), [1, 3], []) is None


NAMES = ["".join(letters) for size in range(4) for letters in product("abcd", repeat=size)]
PATTERNS = ["c", "^a", "b$", "^[ab]+$", "^(a|c)$", "^.$", "^[a-c]{2}$", "d|aa"]


def random_schema(rng: Random) -> dict[str, Any]:
    def value() -> Any:
        return rng.choice([True, {"type": "integer"}, {"type": "integer"}, False])

    schema: dict[str, Any] = {"type": "object", "minProperties": rng.choice([1, 2, 2, 3])}
    schema["patternProperties"] = {text: value() for text in rng.sample(PATTERNS, rng.randrange(1, 4))}
    if rng.random() < 0.8:
        schema["propertyNames"] = rng.choice([{"maxLength": 1}, {"maxLength": 2}, {"pattern": rng.choice(PATTERNS)}])
    if rng.random() < 0.4:
        schema["properties"] = {name: value() for name in rng.sample(["a", "b", "ac"], rng.randrange(1, 3))}
    if rng.random() < 0.3:
        schema["required"] = [rng.choice(["a", "c"])]
    if rng.random() < 0.3:
        schema["maxProperties"] = rng.choice([1, 2, 3])
    schema[rng.choice(["additionalProperties", "unevaluatedProperties"])] = rng.random() < 0.1
    if rng.random() < 0.2:
        schema = {"allOf": [schema, {"propertyNames": {"pattern": rng.choice(PATTERNS)}}]}
    return schema


@pytest.mark.parametrize("n", share([60, 400], 1))
def test_refused_are_just_those_without_an_instance(n: int) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the library jsonschema is the oracle; install it")
    n_empty = 0
    for seed in range(n):
        schema = random_schema(Random(f"few names {seed}"))
        oracle = jsonschema.Draft202012Validator(schema)
        # a member that may be there alone or not at all is all that counts, beside their number
        limits = ("minProperties", "required", "maxProperties")
        parts = [{key: value for key, value in part.items() if key not in limits}
                 for part in schema.get("allOf", [schema])]  # fmt: skip
        member = jsonschema.Draft202012Validator({"allOf": parts})
        names = [name for name in NAMES if member.is_valid({name: 1})]
        exists = any(
            oracle.is_valid(dict.fromkeys(some, 1)) for size in (1, 2, 3) for some in combinations(names, size)
        )
        assert is_refused(schema) is not exists, schema
        n_empty += not exists
    assert n // 8 < n_empty < n * 7 // 8, n_empty
