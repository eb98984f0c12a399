"""Alternatives of which one wants distinct items: masks where a text is no longer one of its texts."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
from mask_bits import mask_of
from schema_masks import TOKENS, VOCABULARY
from shares import share

import maskwright as mw
from maskwright.stores.schema_store import SchemaStore, build_schema_store

UNIQUE = {"type": "array", "uniqueItems": True}
INTEGERS = {"type": "array", "items": {"type": "integer"}}


def tagged(first: Any, second: Any) -> dict[str, Any]:
    """Objects of which a tag that may stand behind tells which alternative they are."""
    return {
        "oneOf": [
            {"type": "object", "properties": {"a": one, "b": {"const": tag}}, "required": ["b"]}
            for tag, one in enumerate((first, second))
        ]
    }


def store_of(schema: Any) -> SchemaStore:
    return build_schema_store(mw.load_schema(schema, whitespace="compact"), VOCABULARY)


def allowed(matcher: Any) -> set[bytes]:
    return {TOKENS[token] for token in mask_of(matcher) if token < len(TOKENS)}


@pytest.mark.parametrize(
    ("schema", "text", "may", "may_not"),
    [
        ({"anyOf": [UNIQUE, INTEGERS]}, "[1,1,", b"-1", b'"n{['),
        ({"anyOf": [{**UNIQUE, "items": {"type": "number"}}, INTEGERS]}, "[1,1,2", b"3]", b"}."),
        ({"anyOf": [{**UNIQUE, "items": {}}, {"type": "array", "items": {"maxLength": 1}}]}, '["b","b","a', b'"', b"a"),
        (
            {
                **UNIQUE,
                "items": {
                    "type": "string",
                    "anyOf": [{"enum": ["bb", "aa", "ab"]}, {"pattern": "^([ab]{2}|a*b|[ab])$"}],
                },
                "contains": {"type": "string", "anyOf": [{"enum": ["ab", "b"]}, {"pattern": "^(b(a)?|b.*|a?b)$"}]},
            },
            '["aab","ab","aa',
            b'"a',
            b"b",
        ),
        (tagged(UNIQUE, INTEGERS), '{"a":[1,1],"b":', b"1", b"0"),
        (tagged(UNIQUE, INTEGERS), '{"a":[1,1', b",1", b'"'),
        (tagged({**UNIQUE, "items": {}}, {"type": "array"}), '{"a":[[1],[1],"a', b'a"', b""),
        ({"items": {"anyOf": [UNIQUE, INTEGERS]}}, "[[1,1,2],[1,", b'1"n{[', b"]"),
    ],
)
def test_what_only_the_dropped_alternative_allows_is_not_in_the_mask(
    schema: Any, text: str, may: bytes, may_not: bytes
) -> None:
    matcher = store_of(schema).matcher()
    matcher.advance_bytes(text.encode())
    found = allowed(matcher)
    assert found == {token for number, token in enumerate(TOKENS) if matcher.is_allowed(number)}
    assert all(bytes([byte]) in found for byte in may) and not any(bytes([byte]) in found for byte in may_not)


def random_array(rng: random.Random, depth: int = 1) -> dict[str, Any]:
    items: list[Any] = [
        {},
        {"type": "integer"},
        {"type": ["number", "string"]},
        {"enum": [1, "a", [], [1], {}]},
        {"type": "string", "maxLength": 1},
        {"type": "object", "maxProperties": 1},
        {"type": "string", "pattern": "^(a*b|[ab]{1,2})$"},
    ]
    inside = rng.choice(items) if depth == 0 or rng.random() < 0.6 else alternatives(rng, depth - 1)
    found = {"type": "array", "items": inside, "uniqueItems": rng.random() < 0.6}
    return {**found, "contains": {"type": "integer"}} if rng.random() < 0.3 else found


def alternatives(rng: random.Random, depth: int) -> dict[str, Any]:
    some = [random_array(rng, depth) for _ in range(2)]
    return {"anyOf": some} if rng.random() < 0.6 else tagged(*some)


def texts(rng: random.Random) -> str:
    """The beginning of an array, or of one in an object or an array, in which an item comes twice."""
    item = rng.choice(["1", "1", "[]", "{}", '"a"', "[1]", '{"a":1}'])
    items = [item, rng.choice(["2", "[2]", '"b"', item]), item]
    rng.shuffle(items)
    behind = rng.choice(["", ",", ',"', ",[", ",[1", "],", '],"b":', "],["])
    return rng.choice(["", "[", '{"a":']) + "[" + ",".join(items[: rng.choice([2, 3])]) + behind


@pytest.mark.parametrize("seed", share(range(60), 4))
def test_masks_of_random_alternatives(seed: int) -> None:
    rng = random.Random(31_000 + seed)
    n_masks = 0
    for _ in range(25):
        try:
            store = store_of(alternatives(rng, 1))
        except mw.SchemaError:
            continue
        for _ in range(12):
            matcher = store.matcher()
            if matcher.try_bytes(texts(rng).encode()):
                n_masks += 1
                assert allowed(matcher) == {token for i, token in enumerate(TOKENS) if matcher.is_allowed(i)}
    assert n_masks > 5


def test_history_copies_and_batches() -> None:
    store = store_of(tagged(UNIQUE, INTEGERS))
    matcher, batch = store.matcher(), store.batch(2)
    matcher.advance_bytes(b'{"a":[1,1')
    fork = matcher.fork()
    before = allowed(matcher)
    assert b'"' not in before
    matcher.advance_bytes(b"0,")
    after = allowed(matcher)
    assert b'"' in after  # the items are 1 and 10
    matcher.rollback()
    assert allowed(matcher) == allowed(fork) == allowed(pickle.loads(pickle.dumps(fork))) == before
    fork.advance_bytes(b',2],"b":')
    assert b"1" in allowed(fork) and b"0" not in allowed(fork)
    batch.advance_bytes(0, fork.said())
    batch.copy(0, 1)
    words = np.zeros((2, store.n_words), np.uint32)
    batch.fill(words)
    for token in (b"0", b"1"):
        number = TOKENS.index(token)
        assert [bool(row[number >> 5] >> np.uint32(number & 31) & 1) for row in words] == [token == b"1"] * 2
    fork.reset()
    fork.advance_bytes(b'{"a":[1,')
    assert b'"' in allowed(fork)


def test_all_tokens_are_asked_only_where_a_reading_was_dropped() -> None:
    for schema, text, is_dropped in (
        ({"anyOf": [UNIQUE, INTEGERS]}, '[1,2,"a', False),
        ({"anyOf": [UNIQUE, INTEGERS]}, "[1,1,", True),
        ({**UNIQUE, "contains": {"type": "integer"}}, '[1,[2],"a",', False),
        ({**UNIQUE, "items": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}, '[{"a":1},{"c":1,"a', False),
        (tagged(UNIQUE, INTEGERS), '{"a":[1,1],', True),
        (tagged(UNIQUE, INTEGERS), '{"a":[1,1],"b":1,', False),
    ):
        matcher = store_of(schema).matcher()
        matcher.advance_bytes(text.encode())
        assert matcher.text._entries.has_dropped(matcher.text._memory) == is_dropped, text
