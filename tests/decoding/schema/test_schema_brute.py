"""Masks under a real vocabulary beside the tokens that the engine can read, one by one, along real instances."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mask_bits import ids
from paths import SHARED
from shares import share

import maskwright as mw
from maskwright.analysis.schema.shapes import Escapes
from maskwright.stores.schema_store import SchemaStore, build_schema_store

DATA = SHARED / "jsonschema" / "schemastore.jsonl.xz"

ODD = {
    "type": "object",
    "properties": {
        "date": {"format": "date"},
        "code": {"type": "string", "pattern": "^(aa)*b?$", "minLength": 3, "maxLength": 9},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 4}, "uniqueItems": True},
        "kind": {"enum": ["a", "ab", "abc", 1, 1.5, None, True]},
        "n": {"type": "number", "minimum": -3, "exclusiveMaximum": 1000, "multipleOf": 0.5},
    },
    "patternProperties": {"^x_[a-z]+$": {"type": "boolean"}},
    "additionalProperties": {"type": "array", "maxItems": 3, "contains": {"const": 1}},
    "maxProperties": 6,
}
ODD_TEXTS = (
    {"date": "2024-02-29", "code": "aaaab", "tags": ["a", "b", "ab"], "kind": "abc", "n": 12.5, "x_y": True},
    {"more": [1, 2], "other": [3, 1, "é😀"], "kind": 1.5, "code": "aaaa"},
)


def texts(escapes: Escapes) -> Iterator[tuple[str, Any, list[str]]]:
    yield (
        "odd",
        ODD,
        [
            json.dumps(value, ensure_ascii=ascii_only)
            for value in ODD_TEXTS
            for ascii_only in ((True, False) if escapes == "any" else (False,))
        ],
    )
    if not DATA.exists():
        return
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            record = json.loads(line)
            valid = [json.dumps(test["data"], ensure_ascii=False) for test in record["tests"] if test["valid"]]
            if number % (9 if escapes == "any" else 25) == 0 and valid:
                yield f"schemastore-{number}", record["schema"], valid[:2]


def compare(store: SchemaStore, text: bytes, n_masks: int, rng: random.Random) -> int:
    """Compare masks at some bytes of a text. Returns how many differ from none."""
    matcher = store.matcher()
    words = np.zeros(store.n_words, np.uint32)
    chosen = set(rng.sample(range(len(text) + 1), min(n_masks, len(text) + 1)))
    for position in range(len(text) + 1):
        if position in chosen:
            matcher.fill(words)
            bits = np.unpackbits(words.view(np.uint8), bitorder="little")
            wrong = [token for token in range(store.vocabulary.size) if bits[token] != matcher.is_allowed(token)]
            assert not wrong, (matcher.said(), [store.vocabulary.tokens[token] for token in wrong[:8]])
        if position < len(text):
            matcher.advance_bytes(text[position : position + 1])
    assert matcher.is_accepting()
    return len(chosen)


@pytest.mark.parametrize("escapes", share(["natural", "any", "minimal"], 1))
@pytest.mark.parametrize(
    ("tokenizer", "n_masks"), share([("python-tiny", 2), ("python-tiny", 12), ("mistral-7b-v0.1", 4)], 1)
)
def test_masks_are_the_tokens_that_can_be_read(tokenizer: str, n_masks: int, escapes: Escapes) -> None:
    vocabulary = mw.load_vocabulary(tokenizer)
    rng = random.Random(3)
    n = 0
    for name, schema, documents in texts(escapes):
        try:
            store = build_schema_store(mw.load_schema(schema, style="any", name=name, escapes=escapes), vocabulary)
        except mw.SchemaError:
            assert name != "odd"
            continue
        for document in documents:
            n += compare(store, document.encode(), n_masks, rng)
    assert 3 * n > n_masks * (10 if escapes == "any" else 5)


@pytest.mark.parametrize("n", share([20, 60], 1))
def test_texts_drawn_under_masks_are_instances(n: int) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    vocabulary = mw.load_vocabulary("python-tiny")
    store = build_schema_store(mw.load_schema(ODD), vocabulary)
    rng = random.Random(5)
    eos = vocabulary.eos[0]
    words = np.zeros(store.n_words, np.uint32)
    finished = 0
    for _ in range(n):
        matcher = store.matcher()
        while not matcher.is_finished() and len(matcher.said()) < 300:
            matcher.fill(words)
            tokens = sorted(ids(words))
            closing = [t for t in tokens if t == eos or vocabulary.tokens[t][:1] in b'"}],:']
            matcher.advance(rng.choice(closing if closing and rng.random() < 0.5 else tokens))
        if not matcher.is_finished():
            matcher.advance_bytes(matcher.shortest_ending().data)
            assert matcher.is_accepting()
        value = json.loads(matcher.said())
        jsonschema.Draft202012Validator(ODD).validate(value)
        finished += 1
    assert finished == n
