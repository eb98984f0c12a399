"""A lenient reading leaves out what cannot be said, and refuses no instance."""

from __future__ import annotations

from typing import Any

import pytest
from naive_json_texts import is_text_of
from schema_cases import check_graph

from maskwright.analysis.schema.graph import build_graph

BACK_REFERENCE = r"^(.)\1$"
UNKNOWN = {"$ref": "https://example.org/elsewhere"}


def reads(schema: Any, *texts: str) -> list[bool]:
    graph = build_graph(schema, lenient=True)
    assert graph.left_out
    check_graph(graph)
    return [is_text_of(graph, text) for text in texts]


CLOSED: list[dict[str, Any]] = [
    {"patternProperties": {BACK_REFERENCE: {}}},
    {**UNKNOWN, "properties": {"a": {}}},
    {"allOf": [{"anyOf": [UNKNOWN, {"required": ["z"]}]}]},
    {"if": UNKNOWN, "then": {"properties": {"a": {}}}},
    {"dependentSchemas": {"aa": UNKNOWN}},
]


@pytest.mark.parametrize("schema", CLOSED, ids=str)
def test_what_is_not_known_may_have_evaluated_any_member(schema: dict[str, Any]) -> None:
    assert reads({**schema, "unevaluatedProperties": False}, '{"aa": 1}', '{"aa": 1, "bb": 2}') == [True, True]


def test_what_is_not_known_may_have_evaluated_any_item() -> None:
    closed = {"prefixItems": [{}], "unevaluatedItems": False}
    assert reads({**UNKNOWN, **closed}, "[1, 2, 3]") == [True]
    assert reads({"contains": {"type": "string", "pattern": BACK_REFERENCE}, **closed}, '[1, "aa"]') == [True]


def test_what_is_left_out_elsewhere_does_not_open_a_closed_object() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": BACK_REFERENCE}}, "unevaluatedProperties": False}
    assert reads(schema, '{"a": "ab"}', '{"a": 1}', '{"b": "aa"}') == [True, False, False]


def test_many_branches_still_say_what_members_are() -> None:
    branches = [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(11)]
    schema = {"type": "object", "anyOf": branches, "unevaluatedProperties": False}
    assert reads(schema, '{"p1": 1}', '{"p1": 1, "q": 1}', '{"p1": "s"}', '{"q": 1}') == [True, True, False, False]
    assert reads({"type": "object", "not": schema}, '{"p1": "s"}', '{"p1": 1, "q": 1}') == [True, True]


def test_long_keys_are_not_counted() -> None:
    keys = {"propertyNames": {"pattern": "^[a-z]{1,50000}$"}}
    assert reads(keys, '{"ab": 1}', '{"A": 1}', "{}") == [True, False, True]
    assert reads({"type": "object", "not": keys}, '{"A": 1}', "{}") == [True, False]
