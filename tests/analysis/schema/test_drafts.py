"""Which nodes have a value, against a fixpoint that looks at every draft again and again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from growth import growth

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.drafts import Doubtful, Draft, Patterned, has_value, living
from maskwright.analysis.schema.load import load_schema
from maskwright.analysis.schema.shapes import NO_NODE, Arrays, Contained, Objects, Strings

ANY_STRING = Strings(None, 0, None)


def naive(drafts: Mapping[int, Sequence[Draft]]) -> set[int]:
    """The nodes that have a value."""
    alive: set[int] = set()
    while True:
        more = {node for node in drafts if any(has_value(draft, alive.__contains__) for draft in drafts[node])}
        if more == alive:
            return alive
        alive = more


def random_objects(rng: Random, n: int, is_limited: bool) -> Objects:
    m = rng.randrange(4)
    keys = tuple(bytes([97 + i]) for i in range(m))
    values = tuple(rng.randrange(NO_NODE, n) for _ in keys)
    flags = tuple(rng.random() < 0.6 for _ in keys)
    others = tuple(rng.randrange(n) for _ in range(rng.randrange(2)))
    least, most = (rng.randrange(4), rng.choice([None, 0, 1, 2, 3])) if is_limited else (0, None)
    return Objects(keys, values, flags, others, None, least, most)


def random_draft(rng: Random, n: int) -> Draft:
    kind = rng.randrange(10)
    if kind == 0:
        return ANY_STRING
    if kind < 5:
        return random_objects(rng, n, rng.random() < 0.5)
    if kind == 5:
        return Doubtful(random_objects(rng, n, True), (("/x", "some reason"),))
    if kind == 6:
        asked = ("/x",) * rng.randrange(3)
        rows = [(rng.randrange(n), *(rng.randrange(NO_NODE, n) for _ in asked)) for _ in range(rng.randrange(1, 3))]
        classes = {1 << i: row for i, row in enumerate(rows)}
        return Patterned(random_objects(rng, n, True)._replace(others=()), (), classes, asked)
    prefix = tuple(rng.randrange(NO_NODE, n) for _ in range(rng.randrange(3)))
    contained = None
    if kind == 7:
        inside = tuple(rng.randrange(NO_NODE, n) for _ in prefix)
        contained = Contained(rng.randrange(3), rng.choice([None, 1, 2]), inside, rng.randrange(NO_NODE, n))
    return Arrays(prefix, rng.randrange(NO_NODE, n), rng.randrange(4), rng.choice([None, 1, 2, 3]), contained)


@pytest.mark.parametrize("seed", range(40))
def test_nodes_with_a_value_are_the_least_fixpoint(seed: int) -> None:
    rng = Random(f"drafts {seed}")
    sizes = set()
    for _ in range(100):
        n = rng.randrange(1, 9)
        drafts = {node: [random_draft(rng, n) for _ in range(rng.randrange(3))] for node in range(n)}
        found = living(drafts)
        assert found == naive(drafts), drafts
        sizes.add((n, len(found)))
    assert len(sizes) > 10


def late(n: int) -> float:
    """CPU seconds for an object of n members, each of which waits for what is known last."""

    def needs(*nodes: int) -> Objects:
        keys = tuple(b"%08d" % i for i in range(len(nodes)))
        return Objects(keys, nodes, (True,) * len(nodes), (), None, 0, None)

    drafts: dict[int, list[Draft]] = {0: [ANY_STRING], 1: [needs(*range(2, n + 2))]}
    drafts.update((node, [needs(0)]) for node in range(2, n + 2))
    start = time.process_time()
    found = living(drafts)
    assert len(found) == n + 2
    return time.process_time() - start


def test_the_time_is_in_proportion_to_the_size() -> None:
    assert growth(late, 1000) < 2.8


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$id": "//[", "$ref": "x"}, "/$id"),
        ({"$id": "http://[", "$defs": {"a": {"$id": "b"}}, "$ref": "b"}, "/$id"),
        (
            {"$ref": "#/definitions/a", "definitions": {"a": {"$id": "//[", "properties": {"b": {"$ref": "x"}}}}},
            "/definitions/a/$id",
        ),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "id": "//[", "not": {"$ref": "x"}}, "/id"),
    ],
)
def test_an_identifier_that_is_no_uri_is_named(schema: dict[str, Any], pointer: str) -> None:
    with pytest.raises(SchemaError, match="is no URI") as caught:
        load_schema(schema)
    assert caught.value.pointer == pointer
