"""The follow graph against the definition: an edge is a factor of a word."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest
from grammars import make_grammar, random_grammar
from naive import is_factor, is_prefix
from naive_store import WaysUp

from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.legality.deciders import ALWAYS, NEVER, SOMETIMES, Deciders
from maskwright.analysis.legality.follow import build_follow_graph, sentential_forms
from maskwright.analysis.legality.graph import to_svg
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading import load_grammar


@pytest.mark.parametrize("chunk", range(5))
def test_pairs_and_graph_equal_the_definition(chunk: int) -> None:
    for seed in range(40 * chunk, 40 * (chunk + 1)):
        grammar = random_grammar(seed)
        deciders, ways = Deciders(grammar), WaysUp(grammar)
        n = grammar.n_terminals
        table = deciders.pairs
        graph = build_follow_graph(deciders)
        assert table.shape == (n + 1, n) and set(graph.names) == {START, *range(n)}
        for right in range(n):
            begins = is_prefix(grammar, (right,))
            assert table[n, right] == (ALWAYS if begins else NEVER), (seed, right)
            assert ((START, right) in graph.edges) == begins
            for left in range(n):
                legal = is_factor(grammar, (left, right))
                always = legal and ways.implies(left, (), (right,))
                assert table[left, right] == (ALWAYS if always else SOMETIMES if legal else NEVER), (seed, left, right)
                assert ((left, right) in graph.edges) == legal
                if legal:
                    assert graph.edges[left, right] == always


def test_graph_by_hand() -> None:
    grammar = make_grammar("S : a S b | a b\nZ : z")
    graph = build_follow_graph(Deciders(grammar))
    a, b, z = range(3)
    assert sorted(graph.edges) == [(START, a), (a, a), (a, b), (b, b)]
    assert graph.edges[START, a] and not graph.edges[b, b]
    assert graph.names == {START: "start", a: "a", b: "b", z: "z"}
    assert graph.successors(a) == [a, b] and graph.successors(z) == []


@pytest.mark.parametrize("chunk", range(2))
def test_sentential_forms_by_derivation(chunk: int) -> None:
    """Which symbols stand side by side in short leftmost, rightmost and other derivations, and at their ends."""
    for seed in range(10 * chunk, 10 * (chunk + 1)):
        grammar = reduce(random_grammar(seed))
        graph = build_follow_graph(Deciders(sentential_forms(grammar)))
        named = {(graph.names[left], graph.names[right]) for left, right in graph.edges}
        forms, seen = [(grammar.start,)], {(grammar.start,)}
        while forms and len(seen) < 1500:
            form = forms.pop(0)
            for at, symbol in enumerate(form):
                for rule in grammar.rules_of.get(symbol, ()):
                    new = (*form[:at], *rule.rhs, *form[at + 1 :])
                    if len(new) <= 9 and new not in seen:
                        seen.add(new)
                        forms.append(new)
        shown = {symbol: grammar.display_name(symbol) for symbol in range(grammar.n_terminals)}
        shown |= {grammar.n_terminals + i: f"<{name}>" for i, name in enumerate(grammar.nonterminals)}
        met = set()
        for form in seen:
            met |= set(itertools.pairwise(["start", *map(shown.__getitem__, form), "<end>"]))
        assert met <= named, seed
        if not forms:
            assert met == named, seed
        else:
            assert len(named - met) <= 0.2 * len(named), (seed, named - met)


def test_sentential_forms_by_hand() -> None:
    graph = build_follow_graph(Deciders(sentential_forms(make_grammar("S : a S b | a b\nZ : z"))))
    named = {(graph.names[left], graph.names[right]) for left, right in graph.edges}
    assert named == {
        ("start", "a"), ("start", "<S>"), ("a", "a"), ("a", "b"), ("a", "<S>"), ("b", "b"), ("b", "<end>"),
        ("<S>", "b"), ("<S>", "<end>"),
    }  # fmt: skip
    assert [look.label for look in graph.graph.nodes.values() if look.accepting] == ["<end>"]


def test_picture_shows_every_live_terminal_and_marks_always() -> None:
    grammar = load_grammar("lark:lark")
    deciders = Deciders(grammar)
    root = ElementTree.fromstring(to_svg(build_follow_graph(deciders).graph, "lark"))
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {grammar.display_name(t) for t in deciders.live_terminals} | {"start"} <= texts
    paths = [path.attrib for path in root.iter("{http://www.w3.org/2000/svg}path")]
    assert any("#a94f08" in str(path) for path in paths)
