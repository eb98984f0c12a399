"""Interventions: masks change nothing that was legal (Domino's definition 2.1), and what they change is counted."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from grammars import json_text

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.generation.completion import Intervention, intervention
from maskwright.decoding.generation.generation import generate
from maskwright.decoding.generation.logits import likeliest
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import tokens_of, words_of
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

PIECES = (b'{"', b'":', b'",', b"[[", b"[1", b"true", b"null", b"12", b"ab")
EOS = 256 + len(PIECES)


@functools.cache
def vocabulary() -> Vocabulary:
    tokens = (*(bytes([byte]) for byte in range(256)), *PIECES, b"", b"")
    return Vocabulary("bytes", tokens, {EOS: "</s>", EOS + 1: "<s>"}, (EOS,))


@functools.cache
def store() -> Store:
    text = json_text(r'"[a-z ]{0,6}"', r"-?(0|[1-9][0-9]{0,4})", r" {1,3}")
    return compile_store(parse_grammar(text, name="json"), vocabulary())


def random_model(seed: int) -> Any:
    """Logits by the number of tokens read, and nothing else."""
    return lambda tokens: np.random.default_rng((seed, len(tokens))).normal(size=vocabulary().size)


def greedy_model(tokens: Sequence[int], seed: int) -> Any:
    """A model that wants some tokens, one after the other, and then to end; random logits besides."""
    wanted = [*tokens, EOS]

    def logits(text: Sequence[int]) -> Any:
        at = len(text) - 1
        found = np.random.default_rng((seed, at)).normal(size=vocabulary().size)
        found[wanted[min(at, len(tokens))]] = 9
        return found

    return logits


def begins_blank(token: int) -> bool:
    """Whether it begins with white space, with which no text begins: see `Blanks`."""
    return vocabulary().tokens[token][:1].isspace()


def random_text(rng: random.Random) -> list[int]:
    """The tokens of a random legal text."""
    matcher, words, tokens = store().matcher(), np.zeros(store().n_words, np.uint32), []
    while len(tokens) < 10 and not (tokens and rng.random() < 0.1):
        matcher.fill(words)
        some = [token for token in tokens_of(words).tolist() if token != EOS and (tokens or not begins_blank(token))]
        matcher.advance(token := rng.choice(some or [EOS]))
        if token == EOS:
            return tokens
        tokens.append(token)
    return [*tokens, *matcher.shortest_ending().tokens]


@pytest.mark.parametrize("options", [{}, {"opportunistic": True}, {"fast_forward": True}], ids=str)
def test_masks_are_minimally_invasive(options: dict[str, Any]) -> None:
    """What the model writes greedily without masks, if it is legal, it writes with them, and nothing intervenes."""
    rng = random.Random(5)
    for seed in range(25):
        tokens = random_text(rng)
        model = greedy_model(tokens, seed)
        free = generate(model, None, [EOS + 1], vocabulary=vocabulary(), max_tokens=99).run()
        assert free.tokens == tuple(tokens) and free.reason == "end" and free.interventions == ()
        held = generate(model, store().matcher(), [EOS + 1], max_tokens=99, close=False, **options).run()
        assert (held.tokens, held.reason, held.interventions) == (free.tokens, "end", ())


def test_the_first_intervention_is_where_the_models_text_becomes_illegal() -> None:
    rng, n_noted = random.Random(6), 0
    for seed in range(25):
        tokens = random_text(rng)
        at = rng.randrange(len(tokens))
        tokens[at] = rng.randrange(EOS + 1)
        matcher, n_legal, words = store().matcher(), 0, np.zeros(store().n_words, np.int32)
        wanted = [*tokens, EOS]
        while n_legal < len(wanted) and matcher.is_allowed(wanted[n_legal]):
            matcher.advance(wanted[n_legal])
            n_legal += 1
            if matcher.is_finished():
                break
        model = greedy_model(tokens, seed)
        texts = [
            generate(model, store().matcher(), [EOS + 1], max_tokens=12, close=False, **options).run()  # type: ignore[arg-type]
            for options in ({}, {"opportunistic": True}, {"temperature": 0.5, "seed": seed})
        ]
        assert texts[0].tokens == texts[1].tokens and texts[0].interventions == texts[1].interventions
        if matcher.is_finished() or n_legal >= 12:
            continue
        first, n_noted = texts[0].interventions[0], n_noted + 1
        assert (first.index, first.token) == (n_legal, wanted[n_legal])
        matcher.fill(words)
        shares = np.exp(np.array(model([0] * (n_legal + 1)), np.float32).astype(np.float64))
        allowed = shares[tokens_of(words)].sum() / shares.sum()
        assert first.probability == pytest.approx(1 - allowed, abs=1e-9) and 0 < first.probability < 1
    assert n_noted > 10


def test_interventions_while_healing_are_those_of_the_mask_alone() -> None:
    """`tr` is spelled anew: that other tokens do not spell it is no intervention, that `q` cannot come is one."""
    wants_true = greedy_model([vocabulary().tokens.index(b"true")], 0)
    healed = generate(wants_true, store().matcher(), [EOS + 1], heal=b"tr", max_tokens=9).run()
    assert healed.data == b"ue" and healed.interventions == ()
    found = generate(random_model(3), store().matcher(), [EOS + 1], heal=b"tr", max_tokens=40).run().interventions
    assert all(0 < one.probability <= 1 for one in found)
    spelled = [one for one in found if one.index == 0]
    assert not spelled or vocabulary().tokens[spelled[0].token].startswith(b"tr")


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_the_probability_that_is_masked_away(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for n in (1, 31, 32, 40, 70):
        logits = rng.normal(size=n).astype(np.float32)
        logits[rng.random(n) < 0.2] = np.nan
        allowed = np.flatnonzero(rng.random(n) < 0.5)
        words = words_of(allowed, n).view(dtype)
        found = intervention(7, logits, words, likeliest(logits))
        if np.isnan(logits).all():
            continue
        own = int(np.nanargmax(logits))
        shares = np.exp(np.nan_to_num(logits.astype(np.float64), nan=-np.inf))
        expected = 1 - shares[allowed].sum() / shares.sum()
        assert (found is None) == (own in allowed)
        assert found is None or (found.index, found.token) == (7, own)
        assert found is None or found.probability == pytest.approx(expected, abs=1e-6)
        wide = intervention(0, np.append(logits, np.float32(50)), words, own=n)
        assert wide is not None and wide.token == n and wide.probability > 0.99, "a token beyond the mask"
    infinite = np.array([0, np.inf, 0], np.float32)
    assert intervention(0, infinite, np.array([5], dtype), 1) == Intervention(0, 1, 1.0)
    assert intervention(0, infinite, np.array([2], dtype), 1) is None


def test_tokens_so_far_are_public() -> None:
    generation = generate(random_model(1), store().matcher(), [EOS + 1], max_tokens=9)
    seen = [(step, generation.tokens) for step in generation]
    assert all(len(before) <= len(after) for (_, before), (_, after) in pairwise(seen))
    assert seen[0][1] and generation.tokens == generation.completion.tokens
    failing = generate(random_model(1), store().matcher(), [EOS + 1], max_tokens=9)
    with pytest.raises(MaskwrightError, match="is under way"):
        _ = failing.completion
    assert failing.tokens == ()
