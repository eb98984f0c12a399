"""Tokens in GBNF and EBNF: masks against the definition, and what else a text of such a grammar can do."""

from __future__ import annotations

import random
from pathlib import Path

import naive_token_rules as naive
import numpy as np
import pytest
from mask_bits import mask_of
from naive_token_rules import EOS, SPECIAL, TOKENS, random_rules
from shares import share

import maskwright as mw

SMALL = mw.Vocabulary("small", TOKENS, {number: name for name, number in SPECIAL.items()}, (EOS,))


@pytest.mark.parametrize("seed", share(range(100), 4))
def test_masks_of_random_rules(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"tokens {seed}")
    for _ in range(4):
        rules, *texts = random_rules(rng)
        syntax = rng.randrange(2)
        found = mw.read_constraint(texts[syntax], ("gbnf", "ebnf")[syntax])
        store = mw.build_store(found, SMALL)
        if rng.random() < 0.2 and isinstance(found, mw.Composition):
            store.save(tmp_path / "store.safetensors")
            store = mw.load_store(tmp_path / "store.safetensors")
        batch = store.batch(2)
        words = np.zeros((2, store.n_words), np.uint32)
        for row in range(2):
            matcher, stacks = store.matcher(), [naive.begin(rules)]
            for _ in range(rng.randrange(2, 9)):
                legal = naive.mask(rules, stacks[-1])
                assert mask_of(matcher) == legal, (texts[syntax], stacks[-1])
                assert matcher.is_accepting() == (EOS in legal)
                batch.fill(words)
                assert {token for token in range(len(TOKENS)) if words[row, 0] >> token & 1} == legal, texts[syntax]
                if not legal - {EOS}:
                    break
                token = rng.choice(sorted(legal - {EOS}))
                matcher.advance(token)
                batch.advance(np.array([token if k == row else -1 for k in range(2)]))
                stacks.append(naive.behind(rules, stacks[-1], token))
            check_ending(matcher.fork(), rules, stacks[-1])
            back = rng.randrange(len(stacks))
            matcher.rollback(back)
            assert mask_of(matcher) == naive.mask(rules, stacks[len(stacks) - 1 - back]), texts[syntax]


def check_ending(matcher: mw.Matcher, rules: naive.Rules, stacks: set[naive.Stack]) -> None:
    for token in matcher.shortest_ending().tokens:
        assert token in naive.mask(rules, stacks)
        stacks = naive.behind(rules, stacks, token)
        matcher.advance(token)
    assert () in stacks and matcher.is_accepting()


@pytest.mark.parametrize("seed", share(range(12), 4))
def test_the_definition_against_all_texts_of_a_few_tokens(seed: int) -> None:
    """A token is in the mask if and only if some text of at most eight tokens more goes on with it."""
    rng = random.Random(f"all texts {seed}")
    for _ in range(10):
        rules, *_ = random_rules(rng, 2)
        stacks = naive.begin(rules)
        for _ in range(3):
            tried = {token for token in range(EOS) if naive.ends(rules, naive.behind(rules, stacks, token), 8)}
            assert naive.mask(rules, stacks) - {EOS} == tried
            if not tried:
                break
            stacks = naive.behind(rules, stacks, rng.choice(sorted(tried)))
