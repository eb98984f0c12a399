"""Masks and endings of objects that must have some member which the schema does not name.

Masks are compared with those of the plain interpreter, which reads bytes one by one.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from mask_bits import ids
from schema_masks import TOKENS, VOCABULARY, follow
from shares import share
from wanted_schemas import wanting

import maskwright as mw
from maskwright.analysis.schema.shapes import Objects
from maskwright.stores.schema_store import SchemaStore, build_schema_store

NO_STRINGS: dict[str, Any] = {"type": "object", "not": {"additionalProperties": {"type": "string"}}}


def store_of(schema: Any, rng: Random) -> SchemaStore | None:
    """The store of a schema that asks for some member without a name, in any style; None for others."""
    style = rng.choice(("any", "natural", "compact", "indent2"))
    try:
        loaded = mw.load_schema(schema, style=style, key_order=rng.choice(("any", "schema")))
    except mw.SchemaError:
        return None
    shapes = [shape for node in loaded.texts.graph.nodes for shape in node]
    is_such = any(shape.wanted for shape in shapes if isinstance(shape, Objects))
    return build_schema_store(loaded, VOCABULARY) if is_such else None


def end_somewhere(store: SchemaStore, rng: Random, steps: int) -> bytes:
    """A text that is drawn under the masks for some steps, and then ended."""
    matcher = store.matcher()
    words = np.zeros(store.n_words, np.uint32)
    for _ in range(steps):
        matcher.fill(words)
        tokens = sorted(ids(words) - {*VOCABULARY.eos})
        if not tokens:
            break
        near = [token for token in tokens if TOKENS[token][:1] in b'"{}[],:ab1n']
        matcher.advance(rng.choice((near if rng.random() < 0.8 else tokens) or tokens))
    matcher.advance_bytes(matcher.shortest_ending().data)
    assert matcher.is_accepting()
    return matcher.said()


@pytest.mark.parametrize("seeds", share([range(10), range(10, 1000)], 1))
def test_masks_and_endings_of_random_schemas(seeds: range) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the library jsonschema is the oracle; install it")
    n_masks = 0
    for seed in seeds:
        rng = Random(f"wanted {seed}")
        schema = wanting(rng)
        store = store_of(schema, rng)
        if store is None:
            continue
        for _ in range(2):
            n_masks += follow(store.texts, rng, 20)
        for _ in range(3):
            text = end_somewhere(store, rng, rng.randrange(12))
            assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), (schema, text)
    assert n_masks > 10 * len(seeds)


@pytest.mark.parametrize("seeds", share([range(8), range(8, 200)], 1))
def test_items_that_differ(seeds: range) -> None:
    n_masks = 0
    for seed in seeds:
        rng = Random(f"wanted items {seed}")
        schema = {"type": "array", "items": wanting(rng), "uniqueItems": True, "minItems": rng.choice((0, 2))}
        store = store_of(schema, rng)
        if store is not None:
            n_masks += follow(store.texts, rng, 20)
    assert n_masks > 2 * len(seeds)


def test_a_member_that_is_wanted_takes_the_last_place() -> None:
    """And a token may hold the whole of it."""
    schema = {**NO_STRINGS, "properties": {"a": {"type": "string"}}, "required": ["a"], "maxProperties": 3}
    matcher = mw.build_store(mw.load_schema(schema, style="compact"), VOCABULARY).matcher()
    for text, is_legal in (
        ('{"a":"x","b":"x","c":1}', True),
        ('{"a":"x","b":1,"c":"x"}', True),
        ('{"b":"x","c":"x"', False),
        ('{"a":"x","b":"x","c":"', False),
        ('{"a":"x","b":"x"}', False),
        ('{"a":"x","b":1,"c":2,', False),
    ):
        assert matcher.try_bytes(text.encode()) == is_legal, text
        matcher.reset()
    matcher.advance_bytes(b'{"b":1')
    assert not matcher.is_accepting() and matcher.is_allowed(TOKENS.index(b',"'))
    matcher.reset()
    matcher.advance_bytes(b'{"a":"x"')
    assert not matcher.is_allowed(TOKENS.index(b'"}')) and not matcher.is_allowed(TOKENS.index(b"}"))


def test_why_an_object_may_not_end() -> None:
    matcher = mw.build_store(mw.load_schema(NO_STRINGS, style="compact"), VOCABULARY).matcher()
    matcher.advance_bytes(b'{"b":"x"')
    said = matcher.explain(TOKENS.index(b"}")).summary
    assert "it lacks a property that the schema asks for by what it is, not by its name" in said
    assert matcher.shortest_ending().data == b',"":0}'
