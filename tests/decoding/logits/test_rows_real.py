"""Rows on a device while real files are read side by side: those that `fill` writes, without a new one where none is needed."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from engine_cases import real_store, vocabulary_of
from paths import SHARED

from maskwright.analysis.loading import load_grammar
from maskwright.decoding.batch import Batch
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.gpu import _slot_kernels as slot_kernels
from maskwright.decoding.logits import _row_kernels as book_kernels
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

torch = pytest.importorskip("torch")
from maskwright.decoding.logits import ResidentRows  # noqa: E402

DATA = SHARED / "source"
KEPT = [book_kernels.find_rows, entries.fill_batch, entries.advance_batch]
KEPT += [getattr(slot_kernels, f"{name}_slots") for name in ("advance", "find", "write", "begin", "load")]


def replay(store: Store, texts: Sequence[Sequence[int]], capacity: int) -> tuple[int, int]:
    """Real texts side by side in a batch, rows against `fill` at each step. How many rows were compared, and how many were composed."""
    size = 8
    rows, batch, words = (
        ResidentRows(store, "cpu", capacity),
        store.batch(size),
        np.zeros((size, store.n_words), np.int32),
    )
    waiting = list(texts)
    reading: list[list[int]] = [[] for _ in range(size)]
    compared = composed = 0
    while waiting or any(reading):
        for slot in range(size):
            if not reading[slot] and waiting:
                reading[slot] = list(waiting.pop())
                batch.reset(slot)
        slots = [slot for slot in range(size) if reading[slot]]
        numbers = rows.ids(batch, slots).tolist()
        composed += int(rows._book[book_kernels.N_NEW])
        batch.fill(words, slots)
        tokens = np.full(size, -1)
        for slot in slots:
            assert np.array_equal(rows.words[numbers[slot]].numpy(), words[slot])
            compared += 1
            token = reading[slot].pop(0)
            if words[slot, token >> 5] >> (token & 31) & 1:
                tokens[slot] = token
            else:
                reading[slot] = []  # not a text of the grammar
        batch.advance(tokens)
    return compared, composed


def real_files(name: str, n: int) -> list[dict[str, Any]]:
    path = SHARED / f"{name}.jsonl.xz"
    if not path.exists():
        pytest.skip(f"no shared data: {path.name} is absent")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for _, line in zip(range(n), file, strict=False)]


def test_real_files_byte_by_byte() -> None:
    store = compile_store(load_grammar("lark:python"), vocabulary_of(singles=bytes(range(256))))
    texts = [list(file["text"][:1500].encode()) for file in real_files("python", 12)]
    compared, composed = replay(store, texts, 64)
    assert compared > 10_000 and composed > 64


@pytest.mark.slow
@pytest.mark.parametrize(("name", "at_least"), [("python", 50_000), ("json", 10_000)])
def test_real_files_token_by_token(name: str, at_least: int) -> None:
    from maskwright.maskstore.vocabulary.encoders import load_encoder

    encoder = load_encoder("mistral-7b-v0.1")
    texts = [encoder.exact_tokens(file["text"]).tokens for file in real_files(name, 60)]
    compared, composed = replay(real_store(name), texts, 4096)
    assert compared > at_least and composed < compared // 20
    assert isinstance(real_store(name).batch(1), Batch)
