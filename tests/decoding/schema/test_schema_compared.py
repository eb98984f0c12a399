"""Masks of arrays whose items are compared, against the plain interpreter that reads every token.

The engine lets that interpreter read only the tokens that may be wrong: which these are is decided by where the text stands.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from shares import parts, share

import maskwright as mw
from maskwright.decoding.reference.json_texts import JsonInterpreter, tokens_allowed

BYTES = [b"", *(bytes([byte]) for byte in range(32, 127)), b"\n"]
PIECES = [*'{}[],:" \\', *('"a"', '"b"', "1", "0", "true", ".", "e", "-", "null")]
SCALARS: list[Any] = [
    True,
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "string"},
    {"enum": [1, 2, "a", None]},
    {"type": "integer", "minimum": 0, "maximum": 12},
    {"type": "string", "maxLength": 2},
    {"type": "number", "multipleOf": 0.5},
    {"type": ["number", "null"]},
    {
        "anyOf": [
            {"type": "integer"},
            {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False},
        ]
    },
]


def random_vocabulary(rng: random.Random) -> mw.Vocabulary:
    """All bytes, and longer tokens of which JSON is made, some of which end items and begin others."""
    longer = {"".join(rng.choices(PIECES, k=rng.randrange(2, 6))).encode() for _ in range(220)}
    return mw.Vocabulary.from_tokens([*BYTES, *sorted(longer - set(BYTES))], eos=[0])


def random_item(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.random()
    if kind < 0.3 and depth < 3:
        names = rng.sample("abc", rng.randrange(1, 3))
        found: dict[str, Any] = {"type": "object", "properties": {name: random_item(rng, depth + 1) for name in names}}
        more = {
            "required": rng.sample(names, rng.randrange(len(names) + 1)),
            "additionalProperties": rng.choice([False, {"type": "boolean"}, {"enum": [1, 2]}]),
            "maxProperties": rng.randrange(1, 3),
            "propertyNames": {"pattern": "^[a-d]$"},
        }
        return found | {key: value for key, value in more.items() if rng.random() < 0.3}
    if kind < 0.5 and depth < 3:
        more = {
            "maxItems": rng.randrange(1, 4),
            "prefixItems": [random_item(rng, depth + 1) for _ in range(rng.randrange(1, 3))],
            "uniqueItems": True,
        }
        found = {"type": "array", "items": random_item(rng, depth + 1)}
        return found | {key: value for key, value in more.items() if rng.random() < 0.3}
    return rng.choice(SCALARS)


def check_seed(seed: int) -> Counter[str]:
    rng = random.Random(seed)
    schema = {"type": "array", "items": random_item(rng), "uniqueItems": True}
    style = rng.choice(["natural", "compact", "any", "json.dumps"])
    counts: Counter[str] = Counter()
    try:
        constraint = mw.load_schema(schema, style=style)
        store = mw.build_store(constraint, random_vocabulary(rng))
    except mw.MaskwrightError:
        return Counter({"refused": 1})
    tokens = store.vocabulary.tokens
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    interpreter = JsonInterpreter(constraint.texts)
    readings = interpreter.start()
    for _ in range(rng.randrange(5, 40)):
        try:
            matcher.fill(words)
            wanted = np.array(tokens_allowed(interpreter, readings, tokens))
        except mw.LimitError:
            counts["at a limit"] += 1
            break
        wanted[0] = interpreter.is_complete(readings)
        found = np.unpackbits(words.view(np.uint8), bitorder="little")[: len(tokens)].astype(bool)
        assert found.tolist() == wanted.tolist(), (json.dumps(schema), style, matcher.said())
        counts["masks"] += 1
        allowed = np.flatnonzero(wanted[1:]) + 1
        if not len(allowed):
            break
        token = int(rng.choice(allowed.tolist()))
        matcher.advance(token)
        readings = interpreter.read_bytes(readings, tokens[token])
    return counts


@pytest.mark.parametrize("seeds", share([range(24), *parts(1_200, 100)], 1))
def test_random_arrays(seeds: range) -> None:
    counts = sum(map(check_seed, seeds), Counter())
    assert counts["masks"] > 8 * len(seeds) and counts["refused"] < len(seeds) // 2


@pytest.mark.parametrize(
    ("text", "may_not"),
    [
        ("[[ true ], [", b"true "),  # behind a blank only the bracket may come
        ('[{"a":1},{"a":1', b"} "),
        ('[{"a":1},{"a":1,', b""),
        ("[1.5,1.5", b"]"),
        ("[[1],[1", b"]"),
    ],
)
def test_an_equal_item_does_not_end(text: str, may_not: bytes) -> None:
    vocabulary = mw.Vocabulary.from_tokens([*BYTES, b"true ", b"} "], eos=[0])
    matcher = mw.build_store(mw.load_schema({"type": "array", "uniqueItems": True}), vocabulary).matcher()
    matcher.advance_bytes(text.encode())
    allowed = matcher.allowed_tokens(as_bytes=True)
    assert allowed and may_not not in (allowed if may_not else ())
