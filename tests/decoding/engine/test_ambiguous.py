"""Ambiguous grammars: rows as the naive twin has them, which follows all readings, and an independent oracle; no limit on ordinary ones."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable

import pytest
from checked_texts import checked_texts
from engine_cases import longest, random_vocabulary, vocabulary_of
from grammars import random_expressions, random_tails
from mask_bits import row
from naive_engine import NaiveEngine
from oracle import Oracle
from shares import parts, share

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.stores.build import compile_store

EXPRESSION = """
start: e
e: e "+" e | e "*" e | "-" e | e "?" e ":" e | "(" e ")" | f "(" [e ("," e)*] ")" | e "!" | N
f: N
N: /[0-9]/
"""


def check(seed: int, draw: Callable[[int], Grammar] = random_expressions) -> bool:
    """Rows along random legal texts; False where a text has too many readings to be followed."""
    grammar = draw(seed)
    if seed % 3 == 2:
        grammar = dataclasses.replace(grammar, lexing="contextual")
    try:
        store, naive = compile_store(grammar, random_vocabulary(grammar, seed)), NaiveEngine(grammar)
        oracle = Oracle(grammar, "all")
        for matcher, text in checked_texts(store, naive, oracle, random.Random(seed), 2):
            try:
                ending = matcher.shortest_ending()
                assert naive.is_legal_text(text + ending.data), (grammar.text, text, ending)
            except DeadEndError as error:
                assert "but not under vocabulary" in str(error), (grammar.text, text)
    except LimitError as error:
        assert "readings" in str(error)
        return False
    return True


@pytest.mark.parametrize("seeds", share(parts(40, 10), 1), ids=str)
def test_rows_of_random_expressions(seeds: range) -> None:
    assert sum(map(check, seeds)) > 5


@pytest.mark.parametrize("seeds", share(parts(30, 10), 1), ids=str)
def test_rows_of_random_tails(seeds: range) -> None:
    assert sum(check(seed, random_tails) for seed in seeds) > 5


@pytest.mark.slow
def test_rows_of_many_random_expressions() -> None:
    assert sum(check(seed) for seed in range(1000, 1200)) > 120


@pytest.mark.slow
def test_rows_of_many_random_tails() -> None:
    assert sum(check(seed, random_tails) for seed in range(1000, 1120)) > 80


@pytest.mark.parametrize("text", ["1+", "1?2:", "-", "(1)*", "1!*-"])
def test_ordinary_ambiguous_expressions_have_no_limit(text: str) -> None:
    """100,000 operators: one stack, time in proportion, and rows as at the start."""
    store = compile_store(longest(EXPRESSION, "expression"), vocabulary_of(text.encode(), singles=b"+*-?:()!,01"))
    matcher = store.matcher()
    matcher.advance(0)
    first = row(matcher)
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        for _ in range(50_000):
            matcher.advance(0)
        seconds.append(time.process_time() - begin)
    assert len(matcher.text.stacks()) == 1 and row(matcher) == first
    assert seconds[1] < 3 * seconds[0] + 1


def test_an_else_behind_any_number_of_ifs() -> None:
    text = 'start: s\ns: "i" s | "i" s "e" s | "w" s | "x"'
    store = compile_store(longest(text, "else"), vocabulary_of(b"iw", b"ex", singles=b"iwex"))
    matcher = store.matcher()
    matcher.advance_bytes(b"iw" * 20_000 + b"x")
    for n in range(20_000):
        assert matcher.is_allowed(1), n
        matcher.advance(1)
    assert len(matcher.text.stacks()) == 1 and not matcher.is_allowed(1) and matcher.is_accepting()
