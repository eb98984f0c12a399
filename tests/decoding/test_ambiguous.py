"""Ambiguous grammars: rows as the naive twin has them, which follows all readings, and an independent oracle; no limit on ordinary ones."""

from __future__ import annotations

import dataclasses
import random
import time

import numpy as np
import pytest
from engine_cases import ids, longest, random_vocabulary, vocabulary_of
from grammars import random_expressions
from naive_engine import NaiveEngine
from oracle import Oracle

from maskwright.analysis.errors import LimitError
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.automaton_store import build_automaton_store

EXPRESSION = """
start: e
e: e "+" e | e "*" e | "-" e | e "?" e ":" e | "(" e ")" | f "(" [e ("," e)*] ")" | e "!" | N
f: N
N: /[0-9]/
"""


def row(matcher: Matcher) -> set[int]:
    words = np.zeros(matcher.store.n_words, np.uint32)
    matcher.fill(words)
    return ids(words)


def check(seed: int) -> bool:
    """Rows along random legal texts; False where the grammar has no end of reductions, or its texts too many readings for the twin."""
    grammar = random_expressions(seed)
    if seed % 3 == 2:
        grammar = dataclasses.replace(grammar, lexing="contextual")
    try:
        store, naive = build_automaton_store(grammar, random_vocabulary(grammar, seed)), NaiveEngine(grammar)
        oracle = Oracle(grammar, "all")
        rng = random.Random(seed)
        for _ in range(2):
            matcher, text = store.matcher(), b""
            for _ in range(8):
                found = row(matcher)
                eos = set(store.vocabulary.eos) if naive.is_legal_text(text) else set()
                assert found == naive.allowed(text, store.vocabulary.tokens) | eos, (grammar.text, text)
                for token in rng.sample(range(store.vocabulary.size), 3):
                    data = store.vocabulary.tokens[token]
                    assert not data or oracle.is_allowed(text, data) == (token in found), (grammar.text, text, data)
                ending = matcher.shortest_ending()
                assert naive.is_legal_text(text + ending.data), (grammar.text, text, ending)
                able = sorted(found - set(store.vocabulary.eos))
                if not able:
                    break
                token = rng.choice(able)
                matcher.advance(token)
                text += store.vocabulary.tokens[token]
    except LimitError as error:
        assert "readings" in str(error)
        return False
    return True


def test_rows_of_random_expressions() -> None:
    assert sum(check(seed) for seed in range(40)) > 25


@pytest.mark.slow
def test_rows_of_many_random_expressions() -> None:
    assert sum(check(seed) for seed in range(1000, 1500)) > 300


@pytest.mark.parametrize("text", ["1+", "1?2:", "-", "(1)*", "1!*-"])
def test_ordinary_ambiguous_expressions_have_no_limit(text: str) -> None:
    """100,000 operators: one stack, time in proportion, and rows as at the start."""
    store = build_automaton_store(
        longest(EXPRESSION, "expression"), vocabulary_of(text.encode(), singles=b"+*-?:()!,01")
    )
    matcher = store.matcher()
    matcher.advance(0)
    first = row(matcher)
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        for _ in range(50_000):
            matcher.advance(0)
        seconds.append(time.process_time() - begin)
    assert len(matcher._stacks(0)) == 1 and row(matcher) == first
    assert seconds[1] < 3 * seconds[0] + 1
