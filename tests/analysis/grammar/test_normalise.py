"""Rewritten grammars have the same terminal language, and the form that they promise."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from grammars import grammars, make_grammar
from hypothesis import given, settings
from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.lexer import Lexer
from naive import affordable_length, is_prefix, prefixes, productive, words
from shares import check_examples, share

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.normalise import (
    coarsest_congruence,
    common_prefix,
    inline_unit_only,
    normalise,
    productive_symbols,
    reachable_symbols,
    reduce,
)
from maskwright.analysis.loading import load_grammar

Rewrite = Callable[[Grammar], Grammar]
REWRITES: list[Rewrite] = [reduce, normalise, inline_unit_only, lambda grammar: inline_unit_only(normalise(grammar))]
REWRITE_NAMES = ["reduce", "normalise", "inline_unit_only", "inline_unit_only(normalise)"]

NASTY = {
    "self unit": "S : S | a",
    "unit cycle": "S : A\nA : B | a\nB : C | b\nC : A | c",
    "unit cycle back to the start": "S : A | a\nA : S | b",
    "two unit cycles": "S : A B\nA : B | a\nB : A | b",
    "mutual unit-only": "S : A | B\nA : B | a\nB : A | b",
    "unit-only with self unit": "S : A | x S\nA : A | a",
    "empty cycle": "S : S S | a |",
    "nullable left recursion": "S : A S a | b\nA :",
    "indirect left recursion": "S : A a | b\nA : S c | A d |",
    "indirect left recursion of three": "S : A a\nA : B b | x\nB : S c | y",
    "merging makes left recursion": "S : A\nA : B x | c\nB : A x | c",
    "merging makes a unit rule": "S : A z\nA : B | c\nB : A | c",
    "merging makes equal beginnings": "S : A x | B y\nA : a A | b\nB : a B | b",
    "factoring makes equals": "S : A x | B y\nA : x a | x b\nB : x T\nT : a | b",
    "a tail that was merged is needed again": "S : P | A z | q Q\nP : M x a | N x b\nQ : y a | y b\nA : a | b\nM : c\nN : c",
    "long common beginnings": "S : a b c d | a b c e | a b f | a b | a | g",
    "recursive start": "S : S a | b S | S S | c",
    "start inside": "S : a S b | A\nA : ( S ) | x",
    "unproductive": "S : a | U b\nU : U a",
    "unreachable": "S : a\nA : b S",
    "undefined nonterminal": "S : a | N",
    "only empty": "S : A A\nA :",
    "dangling else": "S : i S | i S e S | x",
    "left recursion twice": "S : S a | S b | c | d | S",
}


def is_normal(grammar: Grammar) -> bool:
    for lhs, rules in grammar.rules_of.items():
        firsts = [rule.rhs[:1] for rule in rules]
        if (lhs,) in firsts or len(set(firsts)) < len(firsts):
            return False
    return True


def is_reduced(grammar: Grammar) -> bool:
    nonterminals = set(grammar.rules_of)
    alive = productive_symbols(grammar) & reachable_symbols(grammar)
    return nonterminals <= alive and len(set(grammar.rules)) == len(grammar.rules)


def assert_same_language(before: Grammar, after: Grammar, n_words: int) -> None:
    length = affordable_length(before, n_words)
    assert after.terminals == before.terminals
    assert words(after, length) == words(before, length)
    assert prefixes(after, length - 1) == prefixes(before, length - 1)


@pytest.mark.parametrize("rewrite", REWRITES, ids=REWRITE_NAMES)
@pytest.mark.parametrize("case", NASTY)
def test_nasty_grammars_keep_their_language(case: str, rewrite: Rewrite) -> None:
    before = make_grammar(NASTY[case])
    after = rewrite(before)
    assert is_reduced(after)
    assert_same_language(before, after, 400)


@pytest.mark.parametrize("n", share([20, 80], 1))
def test_random_grammars_keep_their_language(n: int) -> None:
    check_examples(check_language, n, grammars())


def check_language(grammar: Grammar) -> None:
    for rewrite in REWRITES:
        after = rewrite(grammar)
        assert is_reduced(after)
        assert_same_language(grammar, after, 60)


@pytest.mark.parametrize("case", NASTY)
def test_normal_form_of_nasty_grammars(case: str) -> None:
    before = make_grammar(NASTY[case])
    after = normalise(before)
    assert is_normal(after)
    assert size(after) <= 4 * size(before) + 4
    assert len(set(after.nonterminals)) == after.n_nonterminals
    again = normalise(after)
    assert is_normal(again) and len(set(again.nonterminals)) == again.n_nonterminals


@settings(deadline=None, max_examples=300)
@given(grammars())
def test_normal_form_of_random_grammars(grammar: Grammar) -> None:
    after = normalise(grammar)
    assert is_normal(after) and is_reduced(after)
    assert size(after) <= 4 * size(grammar) + 4
    assert productive_symbols(grammar) == productive(grammar)


def size(grammar: Grammar) -> int:
    return sum(1 + len(rule.rhs) for rule in grammar)


def test_forms_in_full() -> None:
    def shown(grammar: Grammar) -> list[str]:
        return [grammar.rule_text(rule) for rule in grammar]

    assert shown(normalise(make_grammar("S : S a | b"))) == ["S : b S__rest0", "S__rest0 : a S__rest0", "S__rest0 :"]
    assert shown(normalise(make_grammar("S : x a | x b | y"))) == [
        "S : x S__tail0",
        "S : y",
        "S__tail0 : a",
        "S__tail0 : b",
    ]
    merged = normalise(make_grammar("S : a A | b B\nA : x | y A\nB : y B | x"))
    assert shown(merged) == ["S : a A", "S : b A", "A : x", "A : y A"]
    units = inline_unit_only(make_grammar("S : x T y\nT : A | B\nA : a\nB : b c"))
    assert shown(units) == ["S : x T y", "T : a", "T : b c"]
    cycle = inline_unit_only(make_grammar("S : A\nA : B | a\nB : A | b"))
    assert sorted(shown(cycle)) == ["S : a", "S : b"]
    reduced = reduce(make_grammar("S : a | U\nU : U a\nZ : b"))
    assert shown(reduced) == ["S : a"] and reduced.nonterminals == ("S",)


def test_fresh_names_avoid_those_of_the_grammar() -> None:
    grammar = make_grammar("S : S a | S__rest0\nS__rest0 : b")
    assert sorted(normalise(grammar).nonterminals) == ["S", "S__rest0", "S__rest1"]


def test_long_chains_end() -> None:
    units = make_grammar("S : A0\n" + "\n".join(f"A{i} : A{i + 1} | a{i}" for i in range(150)) + "\nA150 : S | b")
    assert len(inline_unit_only(units).rules) == 151
    assert is_normal(normalise(units))
    doubling = "\n".join(f"A{i} : A{i + 1} A{i + 1} | A{i + 1} x" for i in range(200))
    assert size(normalise(make_grammar(doubling + "\nA200 : a"))) < 2000


def test_empty_language_is_refused() -> None:
    for rewrite in REWRITES:
        with pytest.raises(
            GrammarError, match=r"grammar test: start symbol 'S' is unproductive: .* give one of its rules"
        ):
            rewrite(make_grammar("S : a S | A\nA : S b"))


def test_helpers() -> None:
    assert common_prefix([(1, 2, 3), (1, 2), (1, 2, 4)]) == (1, 2)
    assert common_prefix([(), (1,)]) == ()
    assert coarsest_congruence({5: [(1, 6)], 6: [(1, 5)], 7: [(1,)], 8: [(1, 7)]}) == {5: 5, 6: 5, 7: 7, 8: 8}
    grammar = make_grammar("S : a A\nB : U\nU : U")
    assert {grammar.symbol_name(s) for s in productive_symbols(grammar)} == {"a"}
    assert {grammar.symbol_name(s) for s in reachable_symbols(grammar)} == {"S", "a", "A"}


# ---- python.lark


class Numbers(Lexer):
    """A lexer for words that are given as terminal numbers."""

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any = None) -> Iterator[Token]:
        return (Token(f"T{number}", "") for number in lexer_state)


def earley(grammar: Grammar) -> Callable[[tuple[int, ...]], bool]:
    """Lark's Earley parser as a judge of words; it shares no code with the rewriting."""
    n = grammar.n_terminals
    lines = ["%declare " + " ".join(f"T{t}" for t in range(n))]
    for lhs, rules in grammar.rules_of.items():
        bodies = [" ".join(f"T{s}" if s < n else f"n{s}" for s in rule.rhs) for rule in rules]
        lines.append(f"n{lhs}: " + " | ".join(bodies))
    parser = Lark("\n".join(lines), parser="earley", lexer=Numbers, start=f"n{grammar.start}")

    def accepts(word: tuple[int, ...]) -> bool:
        try:
            parser.parse(word)
        except UnexpectedInput:
            return False
        return True

    return accepts


def heights(grammar: Grammar) -> dict[int, int]:
    """Symbol -> the least height of a derivation tree."""
    found = dict.fromkeys(range(grammar.n_terminals), 0)
    while True:
        new = {
            rule.lhs: 1 + max((found[s] for s in rule.rhs), default=0)
            for rule in reversed(grammar.rules)
            if rule.lhs not in found and all(s in found for s in rule.rhs)
        }
        if not new:
            return found
        found |= new


def sentences(grammar: Grammar, rng: random.Random, count: int, longest: int) -> list[tuple[int, ...]]:
    height = heights(grammar)

    def lowest(rule: Any) -> int:
        return max((height[s] for s in rule.rhs), default=0)

    found: list[tuple[int, ...]] = []
    while len(found) < count:
        budget, word, stack = rng.randint(10, 120), [], [grammar.start]
        while stack:
            symbol = stack.pop()
            if symbol < grammar.n_terminals:
                word.append(symbol)
                continue
            rules = grammar.rules_of[symbol]
            budget -= 1
            least = min(map(lowest, rules))
            rule = rng.choice([r for r in rules if budget > 0 or lowest(r) == least])
            stack.extend(reversed(rule.rhs))
        if 0 < len(word) <= longest:
            found.append(tuple(word))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("n", share([6, 15, 45], 1))
def test_python_normalised_is_the_same_language(n: int) -> None:
    before = load_grammar("lark:python")
    after = normalise(before)
    assert is_normal(after) and is_reduced(after)
    assert len(after.rules) < 1.5 * len(before.rules)
    assert (after.terminals, after.layout, after.ignored) == (before.terminals, before.layout, before.ignored)
    in_before, in_after = earley(before), earley(after)
    rng = random.Random(3)
    samples = sentences(before, rng, n, 25), sentences(after, rng, n, 25)
    assert all(map(in_after, samples[0])) and all(map(in_before, samples[1]))
    assert len({terminal for part in samples for word in part for terminal in word}) > 30 + 2 * n // 3
    n_refused = 0
    for word in samples[0] + samples[1]:
        changed = list(word)
        changed[rng.randrange(len(word))] = rng.randrange(before.n_terminals)
        accepted = in_before(tuple(changed))
        assert in_after(tuple(changed)) == accepted
        n_refused += not accepted
    assert n // 3 < n_refused < 2 * n


def test_python_normalised_has_the_same_first_terminals() -> None:
    before = load_grammar("lark:python")
    after = normalise(before)
    firsts = {t for t in range(before.n_terminals) if is_prefix(before, (t,))}
    assert firsts == {t for t in range(before.n_terminals) if is_prefix(after, (t,))} and 30 < len(firsts) < 60
