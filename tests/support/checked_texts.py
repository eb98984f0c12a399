"""Random texts drawn under a store's masks, each mask held against the naive engine's and the oracle's."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from mask_bits import ids
from naive_engine import NaiveEngine
from oracle import Oracle

from maskwright.analysis.errors import DeadEndError
from maskwright.decoding.matcher import Matcher
from maskwright.stores.store import Store

N_TOKENS = 8
N_ASKED = 3
"""Tokens of each mask about which the oracle is asked."""


def checked_texts(
    store: Store, naive: NaiveEngine, oracle: Oracle | None, rng: random.Random, n_texts: int
) -> Iterator[tuple[Matcher, bytes]]:
    """Yields matchers where the mask has been found right, and the text that they have read. oracle : not asked if None."""
    tokens, eos = store.vocabulary.tokens, set(store.vocabulary.eos)
    words = np.zeros(store.n_words, np.uint32)
    for _ in range(n_texts):
        matcher, text = store.matcher(), b""
        for _ in range(N_TOKENS):
            wanted = naive.allowed(text, tokens) | (eos if naive.is_legal_text(text) else set())
            try:
                matcher.fill(words)
            except DeadEndError:
                assert not wanted, (store.grammar.text, text)
                break
            found = ids(words)
            assert found == wanted, (store.grammar.text, text)
            for token in rng.sample(range(len(tokens)), N_ASKED):
                if oracle is not None and tokens[token]:
                    assert oracle.is_allowed(text, tokens[token]) == (token in found), (
                        store.grammar.text,
                        text,
                        tokens[token],
                    )
            yield matcher, text
            able = sorted(found - eos)
            if not able:
                break
            token = rng.choice(able)
            matcher.advance(token)
            text += tokens[token]
