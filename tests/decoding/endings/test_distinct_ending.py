"""Endings that need many distinct names or items: found soon, legal, and the shortest where they say so."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import numpy as np
import pytest
from json_endings import JsonEndings

import maskwright as mw
from maskwright.analysis.errors import LimitError
from maskwright.decoding.schema import ending_states as schema_states

BYTES = mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])


def names(n: int) -> dict[str, Any]:
    return {"type": "object", "minProperties": n, "additionalProperties": {"const": 1}}


def items(kind: str, n: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": kind}, "uniqueItems": True, "minItems": n}


def matcher_of(schema: dict[str, Any]) -> Any:
    return mw.build_store(mw.load_schema(schema, whitespace="compact", escapes="minimal"), BYTES).matcher()


@pytest.mark.parametrize(
    ("schema", "n", "length"),
    [
        # one name is empty, 94 have a character that takes a byte, the others have two
        (names(150), 150, 1 + 5 + 94 * 6 + 55 * 7),
        (items("string", 150), 150, 1 + 3 + 94 * 4 + 55 * 5),
        # 10 take a byte, 99 two (-0 is 0), the others three
        (items("integer", 120), 120, 1 + 10 * 2 + 99 * 3 + 11 * 4),
    ],
)
def test_many_distinct_ones(monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], n: int, length: int) -> None:
    monkeypatch.setattr(schema_states, "SECONDS", 10.0)  # on a slow machine too
    matcher = matcher_of(schema)
    begin = time.thread_time()
    ending = matcher.short_ending()
    assert time.thread_time() - begin < 10  # 2 on a quiet machine
    assert len(json.loads(ending.data)) == n and matcher.try_bytes(ending.data) and matcher.is_accepting()
    assert ending.is_shortest and len(ending.data) == length


def test_a_budget_holds_many_names() -> None:
    matcher = mw.build_store(mw.load_schema(names(150), whitespace="compact", escapes="minimal"), BYTES).matcher(
        max_rollback=9
    )
    text = list(mw.generate(lambda _: np.ones(BYTES.size), matcher, [1], max_tokens=1100))
    assert len(json.loads(b"".join(step.data for step in text))) >= 150


@pytest.mark.parametrize("begin", [b"", b"[", b"[0", b'["', b'["\\', b"[1,0", b"[-", b"[0,1,", b'["a"', b'["","'])
def test_few_values_against_all_texts(begin: bytes) -> None:
    """Every text of values of which few are short, by brute force."""
    values = [b"0", b"1", b"-1", b'""', b'"a"', b'"\\\\"']
    schema = {
        "type": "array",
        "items": {"enum": [json.loads(value) for value in values]},
        "uniqueItems": True,
        "minItems": 4,
    }
    texts = mw.load_schema(schema, whitespace="compact", escapes="minimal").texts
    endings = JsonEndings(texts)
    found = endings.shortest(endings.readings(begin))
    legal = [b"[" + b",".join(some) + b"]" for some in itertools.permutations(values, 4)]
    assert found.is_shortest and begin + found.data in legal
    assert len(found.data) == min(len(text) - len(begin) for text in legal if text.startswith(begin))


@pytest.mark.parametrize("kind", ["string", "integer"])
def test_given_up_searches_say_so(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a search that is given up, `short` goes to a near one; `shortest` only returns what is proved."""
    endings = JsonEndings(mw.load_schema(items(kind, 30), whitespace="compact", escapes="minimal").texts)
    readings = endings.readings(b"[")
    proved = len(endings.shortest(readings).data)

    def give_up(*_: Any) -> None:
        raise LimitError("given up")

    monkeypatch.setattr(endings.endings.search(), "run", give_up)
    near = endings.short(readings)
    assert endings.interpreter.is_complete(endings.interpreter.read_bytes(readings, near.data))
    assert len(near.data) >= proved and near.is_shortest == (len(near.data) == proved)
    monkeypatch.setattr(schema_states, "SECONDS", -1000.0)
    with pytest.raises(LimitError, match="no ending of the text is found"):
        endings.short(readings)
