"""Objects of many alternatives in one frame: masks beside the plain interpreter's, and sizes that only they reach."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest
from random_texts import ESCAPES
from schema_masks import SPACINGS, follow
from shares import share

import maskwright as mw
from maskwright.analysis.schema.shapes import Objects, Texts
from maskwright.maskstore.schema import layout

LITERALS = ({"const": "a"}, {"const": "b"}, {"const": "a"}, {"enum": ["a", "ab", None]}, {"enum": [True, "b"]})
VALUES = (*LITERALS, {"type": "string", "maxLength": 2}, {"const": 1}, {}, {"type": "null"})


def value(rng: random.Random, depth: int) -> Any:
    return wide(rng, depth - 1) if depth and rng.random() < 0.2 else rng.choice(VALUES)


def wide(rng: random.Random, depth: int) -> dict[str, Any]:
    """A random schema of objects that are much alike."""
    ways: list[dict[str, Any]] = []
    for _ in range(rng.choice((2, 3, 5))):
        keys = rng.sample(["a", "b", "ab", ""], rng.randint(1, 3))
        rest = rng.choice(
            (
                {},
                {"additionalProperties": False},
                {"additionalProperties": value(rng, 0)},
                {"minProperties": rng.randint(1, 2)},
            )
        )
        required = [key for key in keys if rng.random() < 0.4]
        ways.append(
            {"type": "object", "properties": {key: value(rng, depth) for key in keys}, "required": required, **rest}
        )
    if rng.random() < 0.3:
        ways += [{"type": "array", "items": value(rng, depth), "maxItems": 2}, {"type": "object", "maxProperties": 1}]
    return {"anyOf": ways}


@pytest.mark.parametrize(
    "seed", share([*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 80))], 5)
)
def test_masks_are_those_of_the_interpreter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_APART", 1)
    n_masks = n_wide = 0
    for k in range(6):
        rng = random.Random(1000 * seed + k)
        try:
            graph = mw.load_schema(wide(rng, rng.choice((0, 1, 1, 2)))).texts.graph
        except mw.MaskwrightError:  # no value, or too many alternatives
            continue
        n_wide += any(sum(isinstance(shape, Objects) for shape in node) > 1 for node in graph.nodes)
        n_masks += follow(Texts(graph, rng.choice(SPACINGS), ESCAPES[k % 3]), rng, 25)
    assert n_wide > 0 and n_masks > 20


def tagged(n: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "type": "object",
            "properties": {"kind": {"const": f"k{i}"}, f"a{i}": {"type": "string"}},
            "required": ["kind"],
            **more,
        }
        for i in range(n)
    ]


CLOSED = {"type": "object", "required": ["p", "k"], "additionalProperties": False}
CASES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "closed": (
        {"anyOf": tagged(2000, additionalProperties=False)},
        ['{"kind":"k1999","a1999":"x"}', '{"a7":"","kind":"k7"}'],
        ['{"kind":"k1999","a1998":"x"}', '{"a7":"","kind":"k8"}', '{"kind":"k2000"}', "{}"],
    ),
    "one of": (
        {"oneOf": tagged(2000)},
        ['{"other":[1],"a17":2,"kind":"k1321"}', '{"kind":"k5","a5":"x","a6":1}'],
        ['{"other":[1],"a17":2,"kind":"k17"}', '{"kind":"k5","a5":1}'],
    ),
    "numbered": (
        {"oneOf": [{**CLOSED, "properties": {"p": {"type": "string"}, "k": {"const": i}}} for i in range(800)]},
        ['{"p":"x","k":7}', '{"k":799.0,"p":""}'],
        ['{"p":"x","k":2000}', '{"p":"x"}', '{"p":"","k":7,"z":1}'],
    ),
    "untagged": (
        {"anyOf": [{"properties": {f"a{i}": {"type": "string"}}, "required": [f"a{i}"]} for i in range(2000)]},
        ['{"a5":3,"z":[{"a9":1}],"a77":"x"}', "[1]"],
        ['{"a5":3,"z":[{"a9":""}]}', "{}"],
    ),
    "conditions on one name": (
        {"allOf": [{"if": {"properties": {"k": {"const": i}}}, "then": {"required": [f"p{i}"]}} for i in range(300)]},
        ['{"k":299,"p299":0}', '{"k":300}', '{"p7":1,"k":7.0,"z":0}', "1"],
        ['{"k":299,"p298":0}', "{}", '{"p7":1,"k":8}'],
    ),
    "conditions": (
        {"allOf": [{"if": {"properties": {f"k{i}": {"const": "x"}}}, "then": {"required": [f"r{i}"]}} for i in range(10)]},
        ["{" + ",".join(f'"{"rk"[i % 2]}{i}":"y"' for i in range(10)) + "}"],
        ["{" + ",".join(f'"{"rk"[i % 2]}{i}":"x"' for i in range(10)) + "}", "{}"],
    ),
    "choices": (
        {"type": "object", "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(11)]},
        ["{" + ",".join(f'"{"ab"[i % 2]}{i}":0' for i in range(11)) + "}"],
        ["{" + ",".join(f'"{"ab"[i % 2]}{i}":0' for i in range(10)) + ",\"c10\":1}", "{}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_thousands_of_alternatives(name: str) -> None:
    schema, legal, others = CASES[name]
    store = mw.build_store(mw.load_schema(schema), "python-tiny")
    words = np.zeros(store.n_words, np.uint32)
    for text in legal:
        matcher = store.matcher()
        for byte in text.encode():
            matcher.fill(words)
            matcher.advance_bytes(bytes([byte]))
        assert matcher.is_accepting() and len(matcher.text._memory) < 4_000_000, text
        matcher = store.matcher()
        matcher.advance_bytes(text.encode()[: len(text) // 2])
        matcher.advance_bytes(matcher.shortest_ending().data)
        assert matcher.is_accepting()
    for text in others:
        matcher = store.matcher()
        try:
            matcher.advance_bytes(text.encode())
        except mw.MaskwrightError:
            continue
        assert not matcher.is_accepting(), text


def test_masks_of_thousands_of_alternatives_take_what_those_of_few_do() -> None:
    def seconds(n: int) -> float:
        store = mw.build_store(mw.load_schema({"anyOf": tagged(n)}), "python-tiny")
        words, text = np.zeros(store.n_words, np.uint32), f'{{"z":1,"kind":"k{n - 1}"}}'.encode()
        best = 9.0
        for _ in range(4):
            matcher, began = store.matcher(), time.thread_time()
            for byte in text:
                matcher.fill(words)
                matcher.advance_bytes(bytes([byte]))
            best = min(best, time.thread_time() - began)
        return best

    assert seconds(2000) < 30 * seconds(40)
