"""A server's memory under requests that are all different: it stops growing."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import maskwright as mw
from maskwright.analysis.kept import SHARED
from maskwright.maskstore.schema import eras, write
from maskwright.serving import requests as requests_module
from maskwright.serving.requests import RequestCompiler

MOST_BYTES = 300_000


def spec_of(kind: str, number: int) -> tuple[str, str]:
    """A request that no other number has: its kind and text."""
    word = f"w{number}"
    if kind == "json":
        members = {
            word: {"type": "string", "pattern": f"^{word}[a-z]+$", "maxLength": 9 + number},
            "n": {"type": "integer", "minimum": number},
            "e": {"enum": [word, f"{word}x", number]},
        }
        return kind, json.dumps({"properties": members, "additionalProperties": {"const": word}})
    if kind == "structural_tag":
        form = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": f"{word}+"}, "end": "</f>"}
        return kind, json.dumps({"type": "structural_tag", "format": form})
    texts = {
        "regex": f"{word}[a-z]{{2,5}}(a|b{word})+",
        "choice": json.dumps([word, f"{word}{word}", f"a{word}"]),
        "grammar": f'start: "{word}" (A | "b")*\nA: /{word}[0-9]+/\n',
        "gbnf": f'root ::= "{word}" (a | "{word}c")*\na ::= "{word}" [0-9]+\n',
        "llguidance": f'start: "{word}" %json {{"const": "{word}"}}\n',
    }
    return ("grammar" if kind in ("gbnf", "llguidance") else kind), texts[kind]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[RequestCompiler]:
    """A compiler, with so little room that the plateau is near."""
    monkeypatch.setattr(SHARED, "most", MOST_BYTES)
    monkeypatch.setattr(eras, "_now", [eras.Era(eras.current_era().number + 1)])
    monkeypatch.setattr(eras.current_era().ids, "_most", 50)
    monkeypatch.setattr(write, "_MOST_TEXTS", 20)
    monkeypatch.setattr(requests_module, "_CHECKED", 10)
    yield RequestCompiler("python-tiny", on_disk=False, cache_entries=3)


@pytest.mark.parametrize(
    ("kind", "n", "rounds"),
    [
        ("json", 40, 10),
        pytest.param("regex", 40, 10, marks=pytest.mark.slow),
        pytest.param("choice", 40, 10, marks=pytest.mark.slow),
        pytest.param("grammar", 30, 8, marks=pytest.mark.slow),
        pytest.param("gbnf", 30, 8, marks=pytest.mark.slow),
        pytest.param("llguidance", 30, 8, marks=pytest.mark.slow),
        ("structural_tag", 10, 8),
    ],
)
def test_requests_that_are_all_different_do_not_pile_up(small: RequestCompiler, kind: str, n: int, rounds: int) -> None:
    """Python's memory has no more blocks than before, though each request makes hundreds."""

    def blocks_after(begin: int) -> int:
        for number in range(begin, begin + n):
            found, text = spec_of(kind, number)
            small.check(found, text)
            store = small.compile(found, text)
            if isinstance(store, mw.Store):
                store.close()  # the thread that closes it is done
            store.matcher().fill(np.zeros(-(-small.vocabulary.size // 32), np.uint32))
        gc.collect()
        return sys.getallocatedblocks()

    blocks = [blocks_after(10_000 * k) for k in range(1, rounds)]
    assert SHARED.held <= MOST_BYTES
    assert len(small) == 3
    growth = np.diff(blocks)
    assert growth[-4:].min() < 2 * n, blocks  # what is kept for each with a key takes more
