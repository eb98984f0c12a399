"""Arrays that ask for more different items than there are values, which automata must count."""

from __future__ import annotations

from typing import Any

import pytest

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.shapes import Spellings, StringLiterals

SOME_A = {"type": "string", "pattern": "^a*$", "maxLength": 100}
EVEN = {"type": "string", "pattern": "^(aa)*$"}


@pytest.mark.parametrize("length", [2, 1_000_000_000])
def test_long_strings_are_enough_at_once(length: int) -> None:
    """Their number was once worked out whole, which took minutes."""
    items = {"type": "string", "minLength": length, "maxLength": length}
    assert build_graph({"type": "array", "uniqueItems": True, "minItems": 5, "items": items}).nodes


@pytest.mark.parametrize(
    ("schema", "keyword", "n"),
    [
        ({"items": SOME_A}, "minItems", 101),
        ({"items": {"type": "integer", "minimum": 1, "maximum": 5000}}, "minItems", 5000),
        ({"items": {"type": "string", "maxLength": 1}}, "minItems", 0x110000 - 0x800 + 1),
        ({"items": SOME_A, "contains": EVEN}, "minContains", 51),
        ({"prefixItems": [{"type": "number"}], "items": SOME_A}, "minItems", 102),
    ],
)
def test_just_as_many_items_as_values(schema: Any, keyword: str, n: int) -> None:
    schema = {"type": "array", "uniqueItems": True, **schema}
    assert build_graph({**schema, keyword: n}).nodes
    with pytest.raises(SchemaError, match="no value satisfies the schema"):
        build_graph({**schema, keyword: n + 1})
    (shapes,) = build_graph({"anyOf": [{**schema, keyword: n + 1}, {"type": "null"}]}).nodes
    assert shapes == (Spellings((b"null",)),)


def test_listed_strings_are_as_long_as_they_may_be() -> None:
    items = {"type": "string", "pattern": "^(a{70}|b|cc)$"}
    for limits, texts in (({"maxLength": 69}, (b"b", b"cc")), ({"minLength": 69}, (b"a" * 70,))):
        graph = build_graph({"type": "array", "uniqueItems": True, "items": {**items, **limits}})
        assert (StringLiterals(texts),) in graph.nodes
