"""Holes in real files: the true middle is never refused, and may end at its end."""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest
from library_cases import records
from shares import share

import maskwright as mw

BYTES = mw.Vocabulary.from_tokens([b"</s>", *(bytes([b]) for b in range(256))], eos=[0])


@functools.cache
def store(name: str) -> Any:
    return mw.build_store(name, BYTES)


@pytest.mark.parametrize(
    ("name", "n", "most"),
    share([("json", 40, 5_000), ("go", 3, 2_000), ("python", 8, 3_000), ("python", 40, 5_000)], 3),
)
def test_true_middles_come(name: str, n: int, most: int) -> None:
    rng = random.Random(name)
    n_files = n_bridges = 0
    for record in records(f"source/{name}", 400):
        text = record["text"].encode()
        plain = store(name).matcher(max_rollback=0)
        if not 200 <= len(text) <= most or not (plain.try_bytes(text) and plain.is_accepting()):
            continue
        begin = rng.randrange(len(text))
        end = min(len(text), begin + rng.randrange(200))
        matcher = store(name).matcher(prefix=text[:begin], suffix=text[end:])
        for at in range(begin, end):
            if rng.random() < 0.1:
                assert 1 + text[at] in matcher.allowed_tokens()
                there = store(name).matcher(max_rollback=0)
                there.advance_bytes(text[:at])
                assert matcher.is_accepting() == (there.try_bytes(text[end:]) and there.is_accepting())
                if name != "python" and n_bridges < 20:
                    n_bridges += 1
                    there = store(name).matcher(max_rollback=0)
                    there.advance_bytes(text[:at] + matcher.shortest_ending().data + text[end:])
                    assert there.is_accepting()
            matcher.advance_bytes(text[at : at + 1])
        assert matcher.is_accepting() and 0 in matcher.allowed_tokens()
        n_files += 1
        if n_files == n:
            break
    assert n_files == n
