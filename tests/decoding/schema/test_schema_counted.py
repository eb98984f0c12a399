"""Masks of arrays that are counted in several ways, beside the plain interpreter; and what that takes."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from counted_schemas import counted_schema, counted_value
from json_endings import JsonEndings
from naive_json_texts import is_text_of
from schema_masks import SPACINGS, follow
from shares import share

import maskwright as mw
from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.shapes import SchemaGraph, Texts
from maskwright.decoding.reference.json_texts import JsonInterpreter


def graphs(is_unique: bool, n: int) -> list[tuple[dict[str, Any], SchemaGraph]]:
    found = []
    for seed in range(n):
        schema = counted_schema(random.Random(f"masks {is_unique} {seed}"), is_unique=is_unique)
        try:
            found.append((schema, build_graph(schema)))
        except SchemaError:
            continue
    return found


@pytest.mark.parametrize("is_unique", [False, True])
def test_whole_texts(is_unique: bool) -> None:
    rng = random.Random(7)
    n_legal = 0
    for schema, graph in graphs(is_unique, 40):
        interpreter = JsonInterpreter(Texts(graph))
        for _ in range(10):
            text = json.dumps(counted_value(rng)).encode()
            readings = interpreter.read_bytes(interpreter.start(), text)
            n_legal += interpreter.is_complete(readings)
            assert interpreter.is_complete(readings) == is_text_of(graph, text), (schema, text)
    assert n_legal > 25


@pytest.mark.parametrize(("is_unique", "n"), share([(False, 10), (True, 10), (False, 40), (True, 40)], 2))
def test_every_legal_beginning_has_an_ending(is_unique: bool, n: int) -> None:
    rng = random.Random(8)
    n_endings = 0
    for schema, graph in graphs(is_unique, n):
        endings = JsonEndings(Texts(graph))
        for _ in range(4):
            text = json.dumps(counted_value(rng)).encode()
            readings = endings.interpreter.start()
            for at, byte in enumerate(text):
                after = endings.interpreter.read(readings, byte)
                if not after:
                    break
                readings = after
                if rng.random() < 0.2:
                    ending = endings.shortest(readings).data
                    n_endings += 1
                    assert is_text_of(graph, text[: at + 1] + ending), (schema, text[: at + 1], ending)
    assert n_endings > n


@pytest.mark.parametrize("is_unique", [False, True])
def test_masks_are_those_of_the_interpreter(is_unique: bool) -> None:
    n_masks = 0
    for number, (_, graph) in enumerate(graphs(is_unique, 24)):
        rng = random.Random(number)
        try:
            n_masks += follow(Texts(graph, rng.choice(SPACINGS)), rng, 15)
        except LimitError:
            continue
    assert n_masks > 100


def test_hundreds_of_alternatives_in_one_place() -> None:
    kinds = [
        {"type": "object", "properties": {f"k{i}": {"const": i}}, "required": [f"k{i}"], "additionalProperties": False}
        for i in range(400)
    ]
    store = mw.build_store(mw.load_schema({"anyOf": kinds}), "python-tiny")
    matcher = store.matcher()
    matcher.advance_bytes(b'{"k3')
    matcher.fill(np.zeros(store.n_words, np.uint32))
    matcher.advance_bytes(b'99":399}')
    assert matcher.is_accepting()
    # those with a greatest number of members stand apart from one another
    with pytest.raises(mw.LimitError, match="512 can be told apart"):
        mw.build_store(
            mw.load_schema({"anyOf": [{**one, "maxProperties": i + 2} for i, one in enumerate(2 * kinds)]}),
            "python-tiny",
        )
