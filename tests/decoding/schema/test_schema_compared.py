"""Arrays whose items must differ as values: what users see of the interpreter beside the engine."""

from __future__ import annotations

import json
import pickle
import random
import time
from typing import Any

import numpy as np
import pytest
from shares import share

import maskwright as mw
from maskwright.decoding.reference import json_completions
from maskwright.stores.schema_store import SchemaStore, build_schema_store

CLOSED = {
    "type": "array",
    "uniqueItems": True,
    "items": {
        "type": "object",
        "properties": {"id": {"type": "string"}, "on": {"type": "boolean"}, "at": {"$ref": "#/$defs/at"}},
        "required": ["id"],
        "additionalProperties": False,
    },
    "$defs": {"at": {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 2}},
}
ANYTHING = {"type": "array", "uniqueItems": True}
NESTED = {"properties": {"a": {**ANYTHING, "items": {**ANYTHING, "items": {"type": ["number", "string", "null"]}}}}}
NUMBERS = {"type": "array", "uniqueItems": True, "items": {"type": "number"}, "minItems": 2}
TWO_KINDS = {
    "type": "array",
    "uniqueItems": True,
    "items": {"anyOf": [{"type": "string"}, CLOSED["items"]]},
    "$defs": CLOSED["$defs"],
}
SCHEMAS = {"closed": CLOSED, "anything": ANYTHING, "nested": NESTED, "numbers": NUMBERS, "two kinds": TWO_KINDS}


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return mw.load_vocabulary("python-tiny")


@pytest.fixture(scope="module")
def stores(vocabulary: mw.Vocabulary) -> dict[str, SchemaStore]:
    return {name: build_schema_store(mw.load_schema(schema), vocabulary) for name, schema in SCHEMAS.items()}


def mask(matcher: Any) -> list[int]:
    words = np.zeros(matcher.store.n_words, np.uint32)
    matcher.fill(words)
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()


@pytest.mark.parametrize(
    ("name", "text", "legal"),
    [
        ("closed", '[{"id":"a","on":true},{"on":true,"id":"a"}]', 41),
        ("closed", '[{"id":"a","at":[1,2]},{"id":"a","at":[1,2]}]', 43),
        ("closed", '[{"id":"a"},{"id":"a","on":true},{"id":"a","on":false},{"id":"a"}]', 64),
        ("closed", '[{"id":"a"},{"id":"a"},', 21),
        ("anything", '[{"a":[1.0],"b":{}},{"b":{},"a":[1]}]', 35),
        ("anything", "[1,1.00,10e-1]", 7),
        ("anything", '["a","a"]', 7),
        ("anything", "[[],[[]],[[],[]],[[[]]],[[]]]", 27),
        ("anything", "[0,-0.", None),
        ("nested", '{"a":[["a",1],[1,"a"],["a",1.0]]}', 30),
        ("numbers", "[1,2,1.0,", 8),
        ("numbers", "[12,1", None),
        ("two kinds", '["a",{"id":"a"},"a"]', 18),
    ],
)
def test_where_items_become_equal(stores: dict[str, SchemaStore], name: str, text: str, legal: int | None) -> None:
    matcher = stores[name].matcher()
    for place, byte in enumerate(text.encode()):
        if not matcher.try_bytes(bytes([byte])):
            assert place == legal
            assert stores[name].vocabulary.tokens.index(bytes([byte])) not in mask(matcher)
            return
    assert legal is None


@pytest.mark.parametrize("n", share([4, 14], 1))
@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_are_the_tokens_that_can_be_read(stores: dict[str, SchemaStore], name: str, n: int) -> None:
    store, rng = stores[name], random.Random(name)
    texts = {
        "closed": '[{"id":"a","on":true},{"on":false,"id":"a"},{"id":"a"},{"id":"a","at":[1,2]},{"at":[1],"id":"a"}]',
        "anything": '[{"a":1},{"a":1,"b":2},["a"],["a",{"a":1}],"a",1,11,1.5,null]',
        "nested": '{"a":[["a",1],[1,"a"],[],["a"],[null,"a",1]],"b":[[],[]]}',
        "numbers": "[1,10,100,1e3,0.1,-0.1,0]",
        "two kinds": '["a",{"id":"a"},"ab",{"id":"a","on":true},{"id":"ab"}]',
    }
    data = texts[name].encode()
    chosen = set(rng.sample(range(len(data)), n)) | {len(data)}
    matcher = store.matcher()
    for place in range(len(data) + 1):
        if place in chosen:
            found = mask(matcher)
            read = [token for token in range(store.vocabulary.size) if matcher.is_allowed(token)]
            assert found == read, (matcher.said(), [store.vocabulary.tokens[t] for t in {*found} ^ {*read}])
        if place < len(data):
            matcher.advance_bytes(data[place : place + 1])
    assert matcher.is_accepting()


def test_history_copies_and_batches(stores: dict[str, SchemaStore]) -> None:
    store = stores["closed"]
    matcher = store.matcher(3)
    for piece in (b'[{"id":"a"}', b',{"id":', b'"a', b'"'):
        matcher.advance_bytes(piece)
    closing = store.vocabulary.tokens.index(b"}")
    assert not matcher.is_allowed(closing) and closing not in mask(matcher)
    with pytest.raises(mw.IllegalTokenError, match="cannot come here"):
        matcher.advance(closing)
    assert "equal to one before it" in matcher.explain(closing).summary
    again = pickle.loads(pickle.dumps(matcher))
    copy = matcher.fork()
    batch = store.batch(2)
    batch.advance_bytes(0, b'[{"id":"a"},{"id":"a"')
    batch.copy(0, 1)
    assert not batch.is_allowed(0, closing) and not batch.is_allowed(1, closing)
    matcher.rollback(2)
    matcher.advance_bytes(b'"b"')
    assert matcher.is_allowed(closing) and not copy.is_allowed(closing) and not again.is_allowed(closing)
    assert mask(again) == mask(copy)
    copy.become(matcher)
    assert mask(copy) == mask(matcher) and copy.said() == b'[{"id":"a"},{"id":"b"'
    matcher.reset()
    matcher.advance_bytes(b'[{"id":"a"}')
    assert matcher.forced_bytes() == b"" and not matcher.is_accepting() and matcher.shortest_ending().data == b"]"
    with pytest.raises(mw.MaskwrightError, match="cannot roll back"):
        matcher.rollback(2)


def test_endings_make_items_new(stores: dict[str, SchemaStore]) -> None:
    for name, text in (
        ("closed", '[{"id":""},{"id":"'),
        ("closed", '[{"id":"","on":true},{"on":true'),
        ("numbers", "[1,1"),
    ):
        matcher = stores[name].matcher()
        matcher.advance_bytes(text.encode())
        value = json.loads(matcher.said() + matcher.shortest_ending().data)
        assert len({json.dumps(one, sort_keys=True) for one in value}) == len(value)


def test_endings_of_many_new_items_are_near(vocabulary: mw.Vocabulary) -> None:
    for items in ({"type": "object"}, CLOSED["items"], {"type": ["number", "array"]}):
        schema = mw.load_schema({**CLOSED, "items": items, "minItems": 5}, whitespace="compact")
        ending = build_schema_store(schema, vocabulary).matcher().shortest_ending()
        value = json.loads(ending.data)
        assert len({json.dumps(one, sort_keys=True) for one in value}) == len(value) == 5
        assert len(ending.data) < 150 and b"".join(vocabulary.tokens[t] for t in ending.tokens) == ending.data


@pytest.mark.parametrize("name", SCHEMAS)
def test_texts_drawn_under_masks_are_instances(stores: dict[str, SchemaStore], name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    store, rng = stores[name], random.Random(name)
    tokens, eos = store.vocabulary.tokens, store.vocabulary.eos[0]
    words = np.zeros(store.n_words, np.uint32)
    for _ in range(8):
        matcher = store.matcher()
        for _ in range(40):
            matcher.fill(words)
            found = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
            near = [t for t in found if tokens[t] and not tokens[t].strip(b'{}[],:"1a0ntrueid. ')]
            token = rng.choice(near or found)
            if token == eos:
                break
            matcher.advance(token)
        text = matcher.said() + matcher.shortest_ending().data
        jsonschema.Draft202012Validator(SCHEMAS[name]).validate(json.loads(text))


def test_schemas_without_such_arrays_are_read_by_the_engine_alone(vocabulary: mw.Vocabulary) -> None:
    for schema in ({}, {"items": {"type": "string"}, "uniqueItems": True, "type": "array"}):
        assert not build_schema_store(mw.load_schema(schema), vocabulary).compares_items
    assert build_schema_store(mw.load_schema(ANYTHING), vocabulary).compares_items


MANY = [f"k{i:02}" for i in range(40)]
DEEP = {"type": "object", "properties": {"a": {"type": "object", "required": ["b"]}}, "required": ["a"]}
WIDE: dict[str, tuple[Any, Any]] = {
    "required behind many": (
        {
            "type": "object",
            "properties": {**{key: {"type": "string"} for key in MANY}, "z": {"type": "object"}},
            "required": [*MANY, "z"],
            "additionalProperties": False,
        },
        {**dict.fromkeys(MANY, ""), "z": {}},
    ),
    "as many as there are": (
        {
            "type": "object",
            "properties": {**{key: {"type": "boolean"} for key in MANY}, "z": {"type": "object"}},
            "minProperties": 41,
            "additionalProperties": False,
        },
        {**dict.fromkeys(MANY, True), "z": {}},
    ),
    "others": (
        {
            "type": "object",
            "properties": {key: {"type": "boolean"} for key in MANY},
            "minProperties": 41,
            "additionalProperties": DEEP,
        },
        {**dict.fromkeys(MANY, True), "x": {"a": {"b": 1}}},
    ),
    "last of a prefix": (
        {"type": "array", "prefixItems": [*[{"type": "boolean"}] * 40, DEEP], "minItems": 41},
        [*[True] * 40, {"a": {"b": 1}}],
    ),
    "contained": ({"type": "array", "contains": DEEP}, [{"a": {"b": 1}}]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", share(WIDE, 2))
def test_values_that_come_deep_behind_many_others_are_found_soon(vocabulary: mw.Vocabulary, name: str) -> None:
    """Such a search took two to the number of members, or for ever."""
    items, value = WIDE[name]
    store = build_schema_store(mw.load_schema({"type": "array", "uniqueItems": True, "items": items}), vocabulary)
    matcher, begin = store.matcher(), time.process_time()
    matcher.advance_bytes(f"[{json.dumps(value)},".encode())
    assert mask(matcher) and not matcher.is_accepting()
    assert not matcher.fork().try_bytes(f"{json.dumps(value)}]".encode())
    matcher.advance(matcher.short_ending().tokens[0])
    assert time.process_time() - begin < 5


def test_a_search_has_an_end(vocabulary: mw.Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_completions, "MOST_STEPS", 1)
    matcher = build_schema_store(mw.load_schema(CLOSED), vocabulary).matcher()
    with pytest.raises(mw.LimitError, match="more than 1 steps to tell whether one is new"):
        matcher.advance_bytes(b'[{"id":"a","at":[1]},{"id":"a","at":[1')


@pytest.mark.parametrize("pattern", ["b", "^a*b$", "\u8a9e$", "b.?$"])
def test_strings_that_end_in_few_ways_are_found_soon(vocabulary: mw.Vocabulary, pattern: str) -> None:
    """All characters were tried where one leads on: a mask took seconds."""
    schema = {**ANYTHING, "items": {**ANYTHING, "items": {"type": "string", "pattern": pattern}}}
    store = build_schema_store(mw.load_schema(schema, whitespace="compact"), vocabulary)
    end = pattern[0] if pattern[0] > "~" else "b"
    matcher = store.matcher()
    matcher.advance_bytes(f'[[],["{end}"],["{end}'.encode())
    begin = time.process_time()
    assert mask(matcher)
    assert time.process_time() - begin < 2
    assert not matcher.fork().try_bytes(b'"]') and matcher.fork().try_bytes(b'",')


def of(items: Any, **limits: int) -> dict[str, Any]:
    return {**ANYTHING, "items": items, **limits}


CLOSED_TAGS = {
    "properties": {"t": of({"enum": ["x", "y", "z"]}, maxItems=2)},
    "required": ["t"],
    "type": "object",
    "additionalProperties": False,
}
MAYBE = {"type": "object", "properties": {"c": {"enum": [None, False]}}, "additionalProperties": False}
HALVES = {"type": ["string", "number"], "multipleOf": 0.5, "minimum": -2, "maximum": 2}
CAME: dict[str, tuple[Any, Any]] = {
    "the last of a set": (of(of({"enum": ["a", "b", "c"]}, maxItems=2)), [["a", "b"], ["a", "c"]]),
    "more of a set": (of(of({"enum": ["a", "b", "c", "d"]}, minItems=3)), [["a", "b", "c"], ["a", "b", "d"]]),
    "in objects": (of(CLOSED_TAGS), [{"t": ["x", "y"]}, {"t": ["x", "z"]}]),
    "objects in arrays": (
        of(of(MAYBE, maxItems=2)),
        [[{"c": None}, {"c": False}], [{}, {"c": False}], [{}, {"c": None}]],
    ),
    "numbers that begin alike": (of({"anyOf": [{"enum": [10, 11]}, {"type": "string"}]}), [10, 11]),
    "a range, or a string": (of({"type": ["string", "integer"], "minimum": 1, "maximum": 12}), [1, 12]),
    "signs": (of(HALVES), [-2, -1]),
    "fractions": (of(HALVES), [1, 1.5]),
}


@pytest.mark.parametrize("name", CAME)
def test_items_are_new_though_others_that_begin_like_them_have_come(vocabulary: mw.Vocabulary, name: str) -> None:
    """Few values were looked at, which had come in another array; numbers were known by their first byte."""
    schema, value = CAME[name]
    store = build_schema_store(mw.load_schema(schema, whitespace="compact"), vocabulary)
    matcher = store.matcher()
    for byte in json.dumps(value, separators=(",", ":")).encode():
        allowed = {vocabulary.tokens[token] for token in mask(matcher)}
        assert bytes([byte]) in allowed
        ending = matcher.fork()
        ending.advance_bytes(matcher.short_ending().data)
        assert ending.is_accepting()
        matcher.advance_bytes(bytes([byte]))
    assert matcher.is_accepting()


def test_an_interrupted_call_leaves_no_readings_of_another_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C once the engine has read or taken back a token, before anybody else knows."""
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "object"}}
    store = mw.build_store(mw.load_schema(schema), "python-tiny")
    matcher, other = store.matcher(), store.matcher()
    for each in (matcher, other):
        each.advance_bytes(b'[{"a":1},')
    call = matcher.text._call  # type: ignore[attr-defined]

    def interrupted(entry: Any, *arguments: Any) -> Any:
        call(entry, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(matcher.text, "_call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        matcher.advance_bytes(b'{"a":')
    monkeypatch.undo()
    other.advance_bytes(b'{"a":')
    assert matcher.said() == other.said() and matcher.allowed_tokens() == other.allowed_tokens()
    for each in (matcher, other):
        each.rollback(1)
        each.advance_bytes(b'{"b"')
    assert matcher.allowed_tokens() == other.allowed_tokens()
