"""Strings in arrays of distinct items: only tokens that may make an item equal are read by the interpreter."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from mask_bits import ids
from shares import share

import maskwright as mw
from maskwright.decoding.schema import compared

STRINGS: list[dict[str, Any]] = [
    {"enum": ["a", "ab", "abc", "é", "è", "for", "form", "format"]},
    {"type": "string", "maxLength": 3},
    {"type": "string", "pattern": "^(a|b|é)*$", "maxLength": 2},
    {"type": "string", "pattern": "^x"},
    {"type": "string", "pattern": "^(re|pr)turn$"},
    {"enum": ["\n", "\\", '"q', "\x01"]},
    {"type": "integer"},
]


def schema_of(rng: random.Random) -> dict[str, Any]:
    kind = rng.randrange(3)
    items: dict[str, Any] = {"anyOf": rng.sample(STRINGS, 2)}
    if kind == 1:
        items = {"type": "object", "properties": {"k": items, "l": rng.choice(STRINGS)}, "additionalProperties": False}
    if kind == 2:
        items = {"type": "array", "items": items, "maxItems": 2, "uniqueItems": rng.random() < 0.5}
    return {"type": "array", "items": items, "uniqueItems": True, "maxItems": rng.choice([3, 9])}


@pytest.mark.parametrize("seed", share(range(60), 3))
def test_masks_are_those_of_all_tokens(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the interpreter read every token that the engine lets in."""
    rng = random.Random(seed)
    vocabulary = mw.load_vocabulary("python-tiny")
    spellings = {"whitespace": "compact", "escapes": rng.choice(["any", "natural", "minimal"])}
    try:
        store = mw.build_store(mw.load_schema(schema_of(rng), **spellings), vocabulary)
    except mw.SchemaError:
        pytest.skip("refused")
    few, every = np.zeros((2, -(-vocabulary.size // 32)), np.uint32)
    matcher, chosen = store.matcher(), compared._doubtful
    for _ in range(25):
        monkeypatch.setattr(compared, "_doubtful", chosen)
        matcher.fill(few)
        monkeypatch.setattr(compared, "_doubtful", lambda of, *_: compared._token_sets(of).every)
        matcher.fill(every)
        assert (few == every).all()
        tokens = sorted(ids(few))
        tokens.sort(key=lambda token: len(vocabulary.tokens[token]) + 3 * rng.random())
        matcher.advance(rng.choice(tokens[:12]))
        if matcher.is_finished():
            break


@pytest.mark.parametrize("escapes", ["any", "natural", "minimal"])
def test_what_only_known_strings_go_on_with_is_refused(escapes: Any) -> None:
    vocabulary = mw.load_vocabulary("python-tiny")
    items = {"anyOf": [{"enum": ["for", "form", "fé", "x"]}, {"type": "integer"}]}
    schema = {"type": "array", "items": items, "uniqueItems": True}
    store = mw.build_store(mw.load_schema(schema, whitespace="compact", escapes=escapes), vocabulary)
    words = np.zeros(-(-vocabulary.size // 32), np.uint32)
    for before, refused, allowed in (
        ('["for","form","', [], [b"f", b"x"]),
        ('["for","form","f', [b"o", b"or", b"orm"], [b"\xc3"]),
        ('["for","form","fé","', [b"f", b"fo", b"for", b"form"], [b"x"]),
        ('["for","fo', [], [b"r", b"rm"]),
        ('["form","for', [b"m"], [b'"']),
    ):
        matcher = store.matcher()
        matcher.advance_bytes(before.encode())
        matcher.fill(words)
        mask = {vocabulary.tokens[t] for t in np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))}
        assert not refused or not set(refused).isdisjoint(vocabulary.tokens)
        assert not mask.intersection(refused) and mask.issuperset(set(allowed) & set(vocabulary.tokens)), before
