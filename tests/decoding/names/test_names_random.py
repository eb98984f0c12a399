"""Masks of a terminal that is held to names against the naive twin, on random grammars, names and places."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any

import pytest
from engine_cases import (
    random_contextual_grammar,
    random_layout_grammar,
    random_longest_grammar,
    random_vocabulary,
    samples,
)
from mask_bits import row
from naive_engine import NaiveEngine
from naive_names import continuation, is_left, spelled
from shares import share

from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.decoding.matcher import Matcher
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

KINDS = {"plain": random_longest_grammar, "layout": random_layout_grammar, "contextual": random_contextual_grammar}
TRIES = (25, 60)
"""Searches for a continuation: in the quick cases, and in the others. Of those that are found most are among the first 60."""


@cache
def case(kind: str, seed: int) -> tuple[Store, NaiveEngine]:
    grammar = KINDS[kind](seed)
    return compile_store(grammar, random_vocabulary(grammar, seed, 25)), NaiveEngine(grammar, grammar.conflicts)


def masked(matcher: Matcher) -> set[int]:
    """The tokens of a mask; none at a dead end."""
    try:
        return row(matcher)
    except DeadEndError:
        return set()


def comes(matcher: Matcher, terminal: int) -> bool:
    """Whether a terminal may come next: a mask without it is another one."""
    without = matcher.fork()
    without.restrict(matcher.store.grammar.terminals[terminal].name, [])
    return masked(without) != masked(matcher)


def check(kind: str, seed: int, number: int, tries: int, counts: Counter[str]) -> None:
    store, naive = case(kind, seed)
    rng = random.Random(f"{kind} {seed} {number}")
    grammar, tokens = store.grammar, store.vocabulary.tokens
    newline = -1 if grammar.layout is None else grammar.layout.newline
    patterns = [
        t
        for t, terminal in enumerate(grammar.terminals)
        if t not in grammar.ignored and t != newline and not terminal.is_declared
    ]
    matcher = store.matcher()
    text = b""
    for _ in range(rng.randint(0, 3)):
        allowed = sorted(row(matcher) - set(store.vocabulary.eos))
        if not allowed:
            return
        token = rng.choice(allowed)
        matcher.advance(token)
        text += tokens[token]
    place = len(text)
    free = matcher.fork()
    terminal = rng.choice([t for t in patterns if comes(free, t)] or patterns)
    texts = spelled(naive, terminal, rng)
    names = frozenset(rng.sample(texts, min(len(texts), rng.choice([0, 1, 2, 3])))) | frozenset(
        rng.choice([[], [b"a"], samples(grammar, rng, 1)])
    )
    matcher.restrict(grammar.terminals[terminal].name, names)
    by_bytes = matcher.fork()
    for _ in range(4):
        where = f"{text!r} from {place}, {grammar.terminals[terminal].name} {sorted(names)}"
        assert matcher.is_accepting() == is_left(naive, text, place, terminal, names), where
        mask = masked(matcher)
        assert mask <= row(free)
        assert mask == masked(by_bytes), where
        assert {token for token in range(len(tokens)) if matcher.is_allowed(token)} == mask, where
        for token in sorted(row(free) - set(store.vocabulary.eos)):
            found = continuation(naive, text + tokens[token], place, terminal, names, tries)
            counts["unknown" if found is False else "refused" if found is None else "allowed"] += 1
            if found is not False:
                assert (token in mask) == (found is not None), f"{where}: {tokens[token]!r}, naive {found!r}"
        if not mask - set(store.vocabulary.eos):
            return
        token = rng.choice(sorted(mask - set(store.vocabulary.eos)))
        matcher.advance(token)
        free.advance(token)
        for byte in tokens[token]:
            by_bytes.advance_bytes(bytes([byte]))
        text += tokens[token]


def cases(kind: str, seeds: range, n_quick: int) -> list[Any]:
    """One question to some of the grammars; two to each in slow tests."""
    numbered = [(seed, range(1)) for seed in seeds[:n_quick]] + [(seed, range(2)) for seed in seeds]
    return share([pytest.param(kind, *each, id=f"{kind}-{each[0]}-{len(each[1])}") for each in numbered], n_quick)


CASES = [*cases("plain", range(20), 2), *cases("contextual", range(20), 7), *cases("layout", range(12), 1)]


@pytest.mark.parametrize(("kind", "seed", "numbers"), CASES)
def test_masks_equal_the_naive_twins(kind: str, seed: int, numbers: range) -> None:
    counts: Counter[str] = Counter()
    try:
        for number in numbers:
            check(kind, seed, number, TRIES[len(numbers) > 1], counts)
    except LimitError:
        pytest.skip("the grammar has too many readings")
    except MaskwrightError as error:
        if "no text" in str(error):
            pytest.skip(str(error))
        raise
