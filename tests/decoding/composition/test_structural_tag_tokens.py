"""Structural tags with sets and budgets of tokens, against the definition and against xgrammar."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from naive_structural_tags import IDS, VOCABULARY, Text, random_tag
from shares import share

import maskwright as mw

SMALL = mw.Vocabulary("small", (b"", *(one.encode() for one in VOCABULARY[1:])), {0: VOCABULARY[0]}, (0,))


def store_of(form: dict[str, Any], vocabulary: mw.Vocabulary = SMALL) -> mw.ComposedStore:
    return mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), vocabulary)


def mask_of(matcher: mw.ComposedMatcher) -> set[int]:
    words = np.zeros(matcher.store.n_words, np.uint32)
    matcher.try_fill(words)
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


@pytest.mark.parametrize("seed", share(range(120), 12))
def test_masks_of_random_tags(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        form = random_tag(rng)
        store = store_of(form)
        matcher, naive, said = store.matcher(4), Text(form), list[int]()
        for _ in range(10):
            wanted = naive.allowed()
            shown = form, [VOCABULARY[token] for token in said]
            assert mask_of(matcher) == wanted, shown
            assert matcher.is_accepting() == (0 in wanted), shown
            assert {token for token in IDS if matcher.is_allowed(token)} == wanted - {0}, shown
            going_on = sorted(wanted - {0})
            if not going_on:
                break
            token = rng.choice(going_on)
            if rng.random() < 0.2:
                matcher.advance(rng.choice(going_on))
                matcher.rollback()
                matcher = matcher.fork()
                assert mask_of(matcher) == wanted, shown
            matcher.advance(token)
            naive.advance(token)
            said.append(token)
        if rng.random() < 0.5 and not matcher.is_accepting():
            for token in matcher.short_ending().tokens:
                assert token in naive.allowed(), (form, said)
                naive.advance(token)
            assert 0 in naive.allowed(), (form, said)
