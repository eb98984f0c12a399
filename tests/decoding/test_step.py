"""`step` is `advance` and then `fill`: the same masks, the same errors, the same state after them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from engine_cases import random_contextual_grammar, random_layout_grammar, random_longest_grammar, random_vocabulary
from grammars import JSON
from mask_bits import ids
from shares import share

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store


def said(call: Any, *arguments: Any) -> str:
    try:
        call(*arguments)
    except MaskwrightError as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("make", [random_longest_grammar, random_layout_grammar, random_contextual_grammar])
@pytest.mark.parametrize("n", share([5, 12], 1))
def test_a_step_is_both(make: Any, n: int) -> None:
    n_steps = n_errors = 0
    for seed in range(n):
        grammar = make(seed)
        try:
            store = compile_store(grammar, random_vocabulary(grammar, seed))
        except MaskwrightError:
            continue
        rng = random.Random(seed)
        one, other = store.matcher(), store.matcher()
        masks = np.zeros((2, store.n_words), np.uint32)
        for _ in range(80):
            allowed = sorted(ids(masks[0]))
            token = (
                rng.choice(allowed) if allowed and rng.random() < 0.9 else rng.randrange(-1, store.vocabulary.size + 2)
            )
            expected = said(one.advance, token) or said(one.fill, masks[0])
            assert said(other.step, token, masks[1]) == expected
            assert expected or masks[0].tolist() == masks[1].tolist()
            n_steps, n_errors = n_steps + 1, n_errors + bool(expected)
            assert said(one.is_accepting) == said(other.is_accepting)
            if one.is_finished() or "DeadEnd" in expected:
                assert one.is_finished() == other.is_finished()
                one.reset(), other.reset()
    assert n_steps > 25 * n and n_errors > n // 2


def deep() -> Store:
    return compile_store(
        parse_grammar(JSON, name="json"), Vocabulary.from_tokens([b"[", b"]", b"[[[[", b"1", b""], eos=[4])
    )


def test_a_step_that_needs_more_memory() -> None:
    store = deep()
    one, other = store.matcher(), store.matcher()
    masks = np.zeros((2, 1), np.uint32)
    for i in range(30_000):
        one.advance(2), one.fill(masks[0])
        other.step(2, masks[1])
        assert masks[0, 0] == masks[1, 0], i


def test_the_end_and_what_does_not_fit() -> None:
    matcher, words = deep().matcher(), np.ones(1, np.uint32)
    with pytest.raises(MaskwrightError, match="bitmask"):
        matcher.step(0, np.zeros(3, np.float32))
    matcher.step(3, words)
    assert words[0] == 1 << 3 | 1 << 4, "another digit, or the end"
    with pytest.raises(IllegalTokenError):
        matcher.step(0, words)
    matcher.step(4, words)
    assert words[0] == 0 and matcher.is_finished()


def test_batches() -> None:
    batch, words = deep().batch(3), np.zeros((3, 1), np.uint32)
    batch.step([0, 3, -1], words)
    expected = deep().batch(3)
    expected.advance([0, 3, -1])
    others = np.zeros((3, 1), np.uint32)
    expected.fill(others)
    assert words.tolist() == others.tolist()
    with pytest.raises(MaskwrightError, match="the bitmask has shape"):
        batch.step([3, -1, -1], np.zeros((2, 1), np.uint32))
    batch.step([3, -1, -1], words)
