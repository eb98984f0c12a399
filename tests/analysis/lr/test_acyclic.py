"""Rules without endless derivations: the same language, by brute force, and nothing else is touched."""

from __future__ import annotations

import time
from collections.abc import Callable

import naive
import pytest
from grammars import make_grammar, random_grammar, random_looping_grammar
from naive_lr import Stack, TooMany, accepts_end, shift
from shares import share

from maskwright.analysis.grammar import Grammar, Rule, Terminal
from maskwright.analysis.grammar.lark_files import rule_name
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.lr.acyclic import parsed_grammar, without_endless
from maskwright.analysis.lr.loops import endless_cycle
from maskwright.analysis.lr.tables import build_lr_tables, build_merged_tables

CHUNK = 125


def affordable(grammar: Grammar, n_words: int) -> int:
    """The least length (at most 8) up to which some nonterminal has so many words."""
    length = 2
    while length < 8 and max(map(len, naive.words_of(grammar, length).values())) < n_words:
        length += 1
    return length


def check(grammar: Grammar, n_words: int) -> bool:
    """Whether the grammar was rewritten; to one of the same language that no parser can reduce for ever by."""
    reduced = reduce(grammar)
    found = without_endless(reduced)
    if endless_cycle(reduced) is None:
        assert found is reduced
        return False
    assert endless_cycle(found) is None, grammar.text
    assert found == reduce(found) == without_endless(found)
    length = affordable(reduced, n_words)
    assert naive.words(found, length) == naive.words(reduced, length), (grammar.name, grammar.text)
    authors = {rule_name(name) for name in reduced.nonterminals}
    assert all(rule_name(name) in authors for name in found.nonterminals)
    assert len(set(found.nonterminals)) == found.n_nonterminals
    return True


@pytest.mark.parametrize("chunk", share(range(8), 1))
@pytest.mark.parametrize(("make", "least"), [(random_grammar, 0.05), (random_looping_grammar, 0.4)])
def test_the_language_stays(make: Callable[[int], Grammar], least: float, chunk: int) -> None:
    n = sum(check(make(seed), 30) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK))
    assert n > CHUNK * least


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 500))
def test_the_language_stays_for_many(first: int) -> None:
    assert sum(check(random_looping_grammar(seed), 60) for seed in range(first, first + 500)) > 200


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("S : P b\nP : R | P R\nR : a |", "S : P b | P : | P : P+ | P+ : R+ | P+ : P+ R+ | R+ : a"),
        ("S : N S a | b\nN : c |", "S : N+ S a | S : S a | S : b | N+ : c"),
        ("S : A\nA : B | a\nB : A | b", "S : A | A : a | A : b"),
        ("S : S S | a |", "S : | S : S+ | S+ : S+ S+ | S+ : a"),
        ("S : N S M | b\nN : n |\nM : m |", "S : N+ S | S : S M+ | S : b | N+ : n | M+ : m"),
        ("S : V S V | b\nV : V |", "S : b"),
        ("S : S |", "S :"),
    ],
)
def test_what_becomes_of_the_rules(text: str, rules: str) -> None:
    found = without_endless(reduce(make_grammar(text)))
    shown = [found.rule_text(rule).replace(" (not empty)", "+") for rule in found.rules]
    assert sorted(shown) == sorted(rules.split(" | "))


def test_the_rest_of_a_long_rule_is_shared() -> None:
    found = without_endless(reduce(make_grammar("S : N M K S a | b\nN : n |\nM : m |\nK : k |")))
    shown = [found.rule_text(rule).replace(" (not empty)", "+") for rule in found.rules]
    assert shown[:5] == ["S : N+ S (rest 2)", "S : M+ S (rest)", "S : K+ S a", "S : S a", "S : b"]
    assert {"S (rest 2) : M S (rest)", "S (rest) : K S a", "M : M+", "M :", "M+ : m", "N+ : n"} <= set(shown)


def test_what_another_rule_says_is_left_out() -> None:
    found = without_endless(reduce(make_grammar("S : P b | b | P P | P | c P\nP : R | P R\nR : a |")))
    shown = {found.rule_text(rule).replace(" (not empty)", "+") for rule in found.rules if rule.lhs == found.start}
    assert shown == {"S : P b", "S : P P", "S : P", "S : c P"}  # P may be empty, and so may P P: both stay


def test_rules_outside_the_cycle_stay() -> None:
    text = "S : A X\nX : Y y | x X Z\nY : y | Z\nZ : z |\nA : A A | a |"
    reduced = reduce(make_grammar(text))
    found = without_endless(reduced)
    kept = {reduced.rule_text(rule) for rule in reduced.rules if reduced.symbol_name(rule.lhs) != "A"}
    assert kept <= {found.rule_text(rule) for rule in found.rules}


@pytest.mark.parametrize("chunk", share(range(8), 1))
def test_the_parser_reads_the_language(chunk: int) -> None:
    """All actions of the tables, over words, against Earley's recogniser on the rules as they were."""
    n_read = 0
    for seed in range(5000 + 25 * chunk, 5025 + 25 * chunk):
        grammar = random_looping_grammar(seed)
        tables, earley = build_lr_tables(grammar), naive.Earley(grammar)
        level: list[tuple[naive.Word, list[Stack], tuple[naive.Column, ...]]] = [((), [(0,)], (earley.start,))]
        for _ in range((7, 4, 3)[grammar.n_terminals - 1]):
            longer = []
            for word, stacks, columns in level:
                try:
                    assert accepts_end(tables, stacks) == earley.is_word(columns), (grammar.text, word)
                    for terminal in range(grammar.n_terminals):
                        column = int(tables.terminal_column[terminal])
                        after = shift(tables, stacks, column) if column >= 0 else []
                        read = earley.read(columns, terminal)
                        assert bool(after) == bool(read[-1]), (grammar.text, word, terminal)
                        n_read += 1
                        if after:
                            longer.append(((*word, terminal), after, read))
                except TooMany:
                    continue
            level = longer
    assert n_read > 250


def chain(n: int, *, is_hidden: bool) -> Grammar:
    """One rule of n symbols that may be empty, before its own left side."""
    names = [n + 3 + i for i in range(n)]
    rules = [Rule(n + 2, (*names, n + 2, *([n] if is_hidden else []))), Rule(n + 2, (n + 1,) if is_hidden else ())]
    rules += [Rule(name, body) for i, name in enumerate(names) for body in ((i,), ())]
    terminals = tuple(Terminal(f"T{i}", f"t{i}x") for i in range(n + 2))
    return Grammar("chain", terminals, ("s", *(f"n{i}" for i in range(n))), tuple(rules), start=n + 2)


@pytest.mark.parametrize("is_hidden", share([True, False], 1))
def test_a_long_rule_stays_linear(is_hidden: bool) -> None:
    sizes, seconds = [], []
    for n in (50, 100, 200):
        grammar = chain(n, is_hidden=is_hidden)
        before = time.process_time()
        assert build_merged_tables(grammar, "all").tables.n_states < 7 * n
        seconds.append(time.process_time() - before)
        sizes.append(sum(1 + len(rule.rhs) for rule in parsed_grammar(grammar, "all").rules))
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])
    assert sizes[2] < 12 * 200 and seconds[1] < 3


@pytest.mark.parametrize("text", ['start: r+ "b"\nr: "a"?', 'start: r* "b"\nr: "a"?', 'start: ("a"?)+ "b"'])
def test_a_repetition_of_what_may_be_empty_has_no_conflict(text: str) -> None:
    grammar = parse_grammar(text)
    tables = build_lr_tables(grammar)
    assert grammar.conflicts == "all" and tables.n_conflicts == 0
    assert naive.words(parsed_grammar(grammar, "all"), 5) == naive.words(reduce(grammar), 5)


def test_one_action_a_cell_keeps_the_rules() -> None:
    grammar = make_grammar("S : S S | a |")
    assert parsed_grammar(grammar, "shift") == reduce(grammar) != parsed_grammar(grammar, "all")
