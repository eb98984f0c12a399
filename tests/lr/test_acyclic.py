"""Rules without endless derivations: the same language, by brute force, and nothing else is touched."""

from __future__ import annotations

import functools
import random
import time

import naive
import pytest
from grammars import make_grammar, random_grammar, random_looping_grammar
from lr.naive_lr import TooMany, accepts_end, all_words, shift

from maskwright.analysis.grammar import Grammar, Rule, Terminal, parse_grammar, reduce
from maskwright.analysis.grammar.lark_files import rule_name
from maskwright.analysis.lr import build_lr_tables
from maskwright.analysis.lr.acyclic import parsed_grammar, without_endless
from maskwright.analysis.lr.loops import endless_cycle

CHUNK = 150


def check(grammar: Grammar, most_words: int) -> bool:
    """Whether the grammar was rewritten; to one of the same language that no parser can reduce for ever by."""
    reduced = reduce(grammar)
    found = without_endless(reduced)
    if endless_cycle(reduced) is None:
        assert found is reduced
        return False
    assert endless_cycle(found) is None, grammar.text
    assert found == reduce(found)
    length = naive.affordable_length(grammar, most_words)
    assert naive.words(found, length) == naive.words(reduced, length), (grammar.name, grammar.text)
    authors = {rule_name(name) for name in reduced.nonterminals}
    assert all(rule_name(name) in authors for name in found.nonterminals)
    assert len(set(found.nonterminals)) == found.n_nonterminals
    return True


@pytest.mark.parametrize("chunk", range(4))
@pytest.mark.parametrize("make", [random_grammar, random_looping_grammar])
def test_the_language_stays(make, chunk: int) -> None:  # type: ignore[no-untyped-def]
    n = sum(check(make(seed), 300) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK))
    assert n > (CHUNK // 20 if make is random_grammar else CHUNK // 2)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
def test_the_language_stays_for_many(chunk: int) -> None:
    n = sum(check(random_looping_grammar(seed), 1000) for seed in range(10_000 + chunk * 1000, 10_000 + (chunk + 1) * 1000))
    assert n > 500
