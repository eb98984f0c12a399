"""The plain reader, the shortest texts and the side-by-side pairs against the engine, Lark-free definitions and brute force."""

from __future__ import annotations

import itertools
import random
import re
import tomllib
from typing import Any

import pytest
from engine_cases import random_contextual_grammar, random_layout_grammar, random_longest_grammar
from grammars import random_grammar
from lint.seeds import grammar_of, vocabulary
from paths import TESTS
from shares import share

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.fronts.neighbours import neighbours
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.legality.deciders import NEVER, Deciders
from maskwright.decoding.explain import explain_text
from maskwright.decoding.matcher import Matcher
from maskwright.lint.conflicts import Ambiguity, _Search
from maskwright.lint.facts import Facts
from maskwright.lint.texts import Tree, cheapest_ways
from maskwright.stores.build import build_store

CASES = tomllib.loads((TESTS / "data/cases/engine.toml").read_text(encoding="utf-8"))["case"]


def is_prefix(matcher: Matcher, text: bytes) -> bool:
    """True too where the engine cannot follow the readings (`mode-conflict`)."""
    matcher.reset()
    try:
        matcher.advance_bytes(text)
    except MaskwrightError as error:
        return "several readings" in str(error)
    return True


def is_text(matcher: Matcher, text: bytes) -> bool | None:
    """None where the engine cannot follow the readings (`mode-conflict`)."""
    matcher.reset()
    try:
        matcher.advance_bytes(text)
    except MaskwrightError as error:
        return None if "several readings" in str(error) else False
    return matcher.is_accepting()


@pytest.mark.parametrize("case", [c for c in CASES if "grammar" in c], ids=lambda case: case["name"])
def test_texts_of_the_engines_cases(case: dict[str, Any]) -> None:
    options = {k: case[k] for k in ("lexing", "conflicts", "soft") if k in case}
    try:
        grammar = grammar_of(case["grammar"], **options)
    except MaskwrightError:
        pytest.skip("the case is about loading")
    if grammar.lexing == "nfa":
        pytest.skip("no reader for lexing nfa")
    reader = Facts(grammar, "x").reader
    for text in case.get("legal", ()):
        assert reader.read(text.encode()).accepted, text
    for text in case.get("open", ()):
        if not re.search("\n[ \t]+$", text):  # blanks that end a text are a matter of the layout's
            assert not reader.read(text.encode()).accepted, text


@pytest.mark.parametrize("seed", share(range(12), 3))
@pytest.mark.parametrize("kind", [random_longest_grammar, random_layout_grammar, random_contextual_grammar])
def test_reader_agrees_with_the_engine(kind: Any, seed: int) -> None:
    grammar = kind(seed)
    try:
        matcher = Matcher(build_store(grammar, vocabulary()))
    except MaskwrightError:
        return  # refused for reasons of its own
    facts = Facts(grammar, "x")
    rng = random.Random(seed)
    lexemes = list(facts.writer.lexemes.values())
    texts = [b"".join(rng.choices([*lexemes, b" ", b"a", b"\n"], k=rng.randint(1, 6))) for _ in range(60)]
    for text in texts:
        expected = is_text(matcher, text)
        assert expected is None or facts.reader.read(text).accepted == expected, text
    # what is written for a state of the parser can be gone on with
    for symbols in list(facts.writer.paths().values())[:20]:
        before = facts.writer.yield_of(symbols)
        text = None if before is None else facts.text(before)
        is_left_out = text is not None and "conflicts are decided by a shift" in str(explain_text(grammar, text))
        assert text is None or is_prefix(matcher, text) != is_left_out, text


@pytest.mark.parametrize("seed", range(30))
def test_neighbours_are_the_follow_graph(seed: int) -> None:
    grammar = reduce(random_grammar(seed))
    table = Deciders(grammar).pairs
    follows = neighbours(grammar)
    for x, y in itertools.product(range(grammar.n_terminals), repeat=2):
        assert bool(follows[x] >> y & 1) == (table[x, y] != NEVER)


@pytest.mark.parametrize("seed", range(20))
def test_side_by_side_by_trying(seed: int) -> None:
    """Whatever two short texts show side by side is said to be possible."""
    grammar = random_longest_grammar(seed)
    facts = Facts(grammar, "x")
    lexer = facts.lexer
    n = range(grammar.n_terminals)
    said = lexer.side_by_side((t, (1 << len(n)) - 1) for t in n)
    words = [bytes(w) for k in (1, 2, 3) for w in itertools.product(b"ab0. #x", repeat=k)]
    for text in words:
        first, end = lexer.longest(0, text, 0)
        if first >= 0 and end < len(text):
            second, after = lexer.longest(0, text, end)
            if second >= 0 and after == len(text):
                assert said[first] >> second & 1, (text, first, second)


def test_cheapest_ways_are_found_cheapest_first() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        n = rng.randrange(1, 8)
        edges = [[(rng.randrange(4), rng.randrange(n), k) for k in range(rng.randrange(4))] for _ in range(n)]
        cost = [0.0, *[float("inf")] * (n - 1)]
        for _ in range(n):
            for node, ways in enumerate(edges):
                for more, target, _ in ways:
                    cost[target] = min(cost[target], cost[node] + more)
        found = cheapest_ways(0, edges.__getitem__)
        assert set(found) == {node for node in range(n) if cost[node] < float("inf")}
        prices = []
        for node, labels in found.items():
            at, price = 0, 0
            for label in labels:
                more, at, _ = edges[at][label]
                price += more
            assert (at, price) == (node, cost[node])
            prices.append(price)
        assert prices == sorted(prices)


def test_pairs_that_never_stand_side_by_side() -> None:
    grammar = grammar_of('start: NAME | NUMBER | DOT\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\nDOT: "."')
    facts = Facts(grammar, "x")
    number = grammar.terminal_number
    lexer = facts.lexer
    every = sum(1 << t for t in number.values())
    said = lexer.side_by_side((t, every) for t in number.values())
    never = {(a, b) for a in number for b in number if not said[number[a]] >> number[b] & 1}
    assert never == {("NAME", "NAME"), ("NUMBER", "NUMBER")}


@pytest.mark.parametrize("seed", share(range(40), 7))
def test_ambiguities_are_two_derivations_of_one_sentence(seed: int) -> None:
    from maskwright.analysis.lr.conflicts import conflicts

    grammar = random_longest_grammar(seed)
    facts = Facts(grammar, "x")
    search = _Search(facts)
    search.n_steps = 3_000
    for conflict in conflicts(grammar)[:4]:
        found = search.ambiguity(conflict, search.stacks_before(conflict))
        if isinstance(found, Ambiguity):
            assert found.first != found.second
            assert list(found.first.terminals()) == list(found.second.terminals())
            for tree in (found.first, found.second):
                assert tree.symbol == facts.parsed.start
                check_derivation(facts.parsed, tree)


def check_derivation(grammar: Grammar, tree: Tree) -> None:
    if tree.children is None:
        assert not grammar.is_nonterminal(tree.symbol)
        return
    assert tuple(child.symbol for child in tree.children) in {rule.rhs for rule in grammar.rules_of[tree.symbol]}
    for child in tree.children:
        check_derivation(grammar, child)
