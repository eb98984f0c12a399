"""pyformlang's intersection against the definitions, and the definitions against each other."""

from __future__ import annotations

import random
import sys

import naive
import pytest
from grammars import grammars, make_grammar, random_grammar
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import parts, share

from maskwright.analysis.errors import GrammarError, MissingExtraError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.bar_hillel import never_legal_pyformlang

A, B = 0, 1


@pytest.mark.parametrize(
    ("context", "sequence", "expected"),
    [
        ((B,), (A,), True),
        ((A,), (A,), False),
        ((A,), (B,), False),
        ((A,), (B, B, B), False),
        ((A, B), (A,), True),
        ((B, B), (B,), False),
        ((), (A,), False),
        ((), (A, B, B), True),
        ((), (B,), True),
        ((), (), False),
        ((A,), (), False),
    ],
)
def test_a_n_b_n_by_hand(context: naive.Word, sequence: naive.Word, expected: bool) -> None:
    grammar = make_grammar("S : a S b | a b")
    assert never_legal_pyformlang(grammar, context, sequence) is expected
    assert naive.never_legal(grammar, context, sequence) is expected


def test_empty_languages() -> None:
    nothing, empty_word = make_grammar("S : a S"), make_grammar("S : \nT : a")
    assert never_legal_pyformlang(nothing, (), ())
    assert never_legal_pyformlang(nothing, (A,), ())
    assert not never_legal_pyformlang(empty_word, (), ())
    assert never_legal_pyformlang(empty_word, (), (A,))


def test_useless_symbols_do_not_count() -> None:
    grammar = make_grammar("S : a b | a U\nU : a U\nZ : b a")
    assert never_legal_pyformlang(grammar, (A,), (A,))
    assert never_legal_pyformlang(grammar, (B,), (A,))
    assert not never_legal_pyformlang(grammar, (A,), (B,))


@pytest.mark.parametrize("seeds", share(parts(120, 30), 1), ids=str)
def test_agrees_with_the_definition(seeds: range) -> None:
    n_never = n_queries = 0
    for seed in seeds:
        grammar, rng = random_grammar(seed), random.Random(seed)
        for _ in range(5):
            context = tuple(rng.choices(range(grammar.n_terminals), k=rng.choice([0, 1, 1, 1, 2])))
            sequence = tuple(rng.choices(range(grammar.n_terminals), k=rng.choice([0, 1, 1, 2, 3])))
            never = never_legal_pyformlang(grammar, context, sequence)
            assert never == naive.never_legal(grammar, context, sequence), (grammar.text, context, sequence)
            n_never, n_queries = n_never + never, n_queries + 1
    assert 25 < n_never < n_queries - 25  # both answers are met


@settings(max_examples=40, deadline=None)
@given(grammars(), st.data())
def test_a_word_of_the_context_is_found_only_where_one_exists(grammar: Grammar, data: st.DataObject) -> None:
    terminals = st.integers(0, grammar.n_terminals - 1)
    context = tuple(data.draw(st.lists(terminals, max_size=2)))
    sequence = tuple(data.draw(st.lists(terminals, min_size=1, max_size=2)))
    found = naive.legal_context(grammar, context, sequence, 5)
    never = never_legal_pyformlang(grammar, context, sequence)
    if found is not None:
        assert not never
        assert naive.is_prefix(grammar, found)
        assert found[len(found) - len(context + sequence) :] == context + sequence


@pytest.mark.parametrize("seeds", share(parts(60, 20), 1), ids=str)
def test_naive_prefixes_are_the_prefixes_of_naive_words(seeds: range) -> None:
    for seed in seeds:
        grammar = random_grammar(seed)
        words, prefixes = naive.words(grammar, 5), naive.prefixes(grammar, 4)
        assert {word[:i] for word in words for i in range(min(len(word), 4) + 1)} <= prefixes
        for word in prefixes:
            assert naive.is_word(grammar, word) == (word in words)
        for word in ((), *((x, y) for x in range(grammar.n_terminals) for y in range(grammar.n_terminals))):
            assert never_legal_pyformlang(grammar, (), word) == (word not in prefixes)


def test_naive_search_by_hand() -> None:
    grammar = make_grammar("S : a S b | a b")
    assert naive.words(grammar, 4) == {(A, B), (A, A, B, B)}
    assert naive.prefixes(grammar, 2) == {(), (A,), (A, A), (A, B)}
    assert naive.is_factor(grammar, (B, B, B))
    assert not naive.is_factor(grammar, (B, A))
    assert naive.always_legal(grammar, (A,), (B,), 6)
    assert naive.refutes_always(grammar, (B,), (B,), 6) == (A, B)
    assert naive.refutes_joint(grammar, (A,), (B,), (B, B), 6) == (A,)
    assert naive.jointly_legal(grammar, (A,), (A,), (B,), 6)
    assert naive.legal_context(grammar, (B,), (B,), 3) is None
    assert naive.legal_context(grammar, (B,), (B,), 4) == (A, A, B, B)
    assert naive.refutes_interchange(grammar, A, B, 4) == ((), (B,))
    assert naive.interchangeable(make_grammar("S : a S | b S | c"), A, B, 4)


def test_not_a_terminal() -> None:
    with pytest.raises(GrammarError, match=r"grammar test: symbol number 2 is not a terminal, expected 0\.\.1"):
        never_legal_pyformlang(make_grammar("S : a S b | a b"), (A,), (2,))


def test_without_pyformlang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyformlang", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'maskwright\[oracle\]'"):
        never_legal_pyformlang(make_grammar("S : a", name="without"), (), (A,))
