"""Alternatives inside one another that nothing tells apart: their readings do not multiply."""

from __future__ import annotations

import json
import lzma
import pickle
import time
from typing import Any

import numpy as np
import pytest
from mask_bits import check_mask
from paths import SHARED

import maskwright as mw
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.schema import constants
from maskwright.stores.schema_store import SchemaStore, build_schema_store

DATA = SHARED / "jsonschema" / "schemastore.jsonl.xz"
WAYS = 8


def object_way(k: int) -> dict[str, Any]:
    """One of the objects: they differ in a member that no text has."""
    inner = {"anyOf": [{"$ref": "#/$defs/any"}, {"type": "array", "items": {"$ref": "#/$defs/any"}}, {"type": "null"}]}
    return {"type": "object", "properties": {"a": inner, f"k{k}": {"const": k}}, "additionalProperties": False}


def array_way(k: int) -> dict[str, Any]:
    """One of the arrays: they differ in how many items they may have."""
    return {"type": "array", "items": {"$ref": "#/$defs/any"}, "maxItems": 40 + k}


NESTED = {
    "$defs": {"any": {"anyOf": [object_way(k) for k in range(WAYS)] + [array_way(k) for k in range(WAYS)]}},
    "$ref": "#/$defs/any",
}


@pytest.fixture(scope="module")
def store() -> SchemaStore:
    return build_schema_store(mw.load_schema(NESTED), mw.load_vocabulary("python-tiny"))


def n_threads(matcher: Any) -> int:
    return int(matcher.text._memory[matcher.text._memory[constants.STATE]])


@pytest.mark.parametrize(("begin", "end"), [(b'{"a":', b"}"), (b"[", b"]"), (b'{"a":[', b"]}")])
def test_readings_and_time_do_not_grow_with_depth(store: SchemaStore, begin: bytes, end: bytes) -> None:
    matcher = store.matcher()
    used = []
    most = 0
    for depth in range(50):
        start = time.process_time()
        for byte in begin:
            matcher.advance_bytes(bytes([byte]))
            most = max(most, n_threads(matcher))
        used.append(time.process_time() - start)
        if depth == 30:
            words = np.zeros(store.n_words, np.uint32)
            matcher.fill(words)
    assert most <= WAYS * WAYS  # places in the schema, however deep
    assert min(used[40:]) < 20 * min(used[2:10]) + 0.01
    other = pickle.loads(pickle.dumps(matcher.fork()))
    text = (b"null" if begin.endswith(b":") else b"") + end * 50
    for each in (matcher, other):
        each.advance_bytes(text)
        assert each.is_accepting()
        assert each.said() == begin * 50 + text
    matcher.rollback()
    assert matcher.said() == begin * 50
    matcher.advance_bytes(text)
    assert matcher.is_accepting()
    assert matcher.n_bytes < 4_000_000  # 256 states to go back to


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"',
        b'{"k',
        b'{"a":{"a":{"k3":',
        b'{"a":{"a":{"a":null',
        b'[[[[{"a":[',
        b'[[{"k1":1},{"a":null}',
        b'{"a":[{"a":[{"k2":2},[',
        b'{"a":{"a":[[],[{"k7":7},[]],{"a":null}]',
    ],
)
def test_masks_of_many_readings(store: SchemaStore, text: bytes) -> None:
    matcher = store.matcher()
    for byte in text:
        matcher.advance_bytes(bytes([byte]))
    check_mask(matcher)
    matcher.text._give_room(0)
    check_mask(matcher)


def test_what_differs_below_is_kept_apart(store: SchemaStore) -> None:
    schema = {
        "anyOf": [
            {"items": {"items": {"enum": [1]}, "type": "array"}, "type": "array", "maxItems": 2},
            {"items": {"items": {"type": "integer"}, "type": "array"}, "type": "array", "maxItems": 1},
        ]
    }
    matcher = build_schema_store(mw.load_schema(schema), store.vocabulary).matcher()
    matcher.advance_bytes(b"[[1],")
    assert not matcher.try_bytes(b"[2")
    assert matcher.try_bytes(b"[1]]") and matcher.is_accepting()
    matcher.rollback(2)
    matcher.advance_bytes(b"[[2]")
    assert not matcher.try_bytes(b",") and matcher.try_bytes(b"]")


def test_a_text_begins_small(store: SchemaStore) -> None:
    assert store.matcher().n_bytes < 64_000
    assert store.matcher(max_rollback=0).n_bytes < 64_000


def test_tmlanguage() -> None:
    if not DATA.exists():
        pytest.skip("the evaluation data is not there")
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        record = next(each for each in map(json.loads, lines) if each["id"] == "schemastore/tmlanguage")
    store = build_schema_store(mw.load_schema(record["schema"], lenient=True), mw.load_vocabulary("python-tiny"))
    n = 0
    for test in record["tests"]:
        matcher = Matcher(store)
        data = json.dumps(test["data"]).encode()
        if test["valid"]:
            for at in range(0, len(data), 7):
                matcher.advance_bytes(data[at : at + 7])
            assert matcher.is_accepting()
            n += 1
    assert n > 0
