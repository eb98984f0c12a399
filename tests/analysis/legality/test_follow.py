"""The follow graph against the definition: an edge is a factor of a word."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from grammars import make_grammar, random_grammar
from naive import is_factor, is_prefix
from naive_store import WaysUp

from maskwright.analysis.legality.deciders import ALWAYS, NEVER, SOMETIMES, Deciders
from maskwright.analysis.legality.follow import build_follow_graph, draw_follow_graph, pair_verdicts
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading import load_grammar


@pytest.mark.parametrize("chunk", range(5))
def test_pairs_and_graph_equal_the_definition(chunk: int) -> None:
    for seed in range(40 * chunk, 40 * (chunk + 1)):
        grammar = random_grammar(seed)
        deciders, ways = Deciders(grammar), WaysUp(grammar)
        n = grammar.n_terminals
        table = pair_verdicts(deciders)
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


def test_picture_shows_every_live_terminal_and_marks_always() -> None:
    grammar = load_grammar("lark:lark")
    deciders = Deciders(grammar)
    root = ElementTree.fromstring(draw_follow_graph(deciders))
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {grammar.display_name(t) for t in deciders.live_terminals} | {"start"} <= texts
    paths = [path.attrib for path in root.iter("{http://www.w3.org/2000/svg}path")]
    assert any("#a94f08" in str(path) for path in paths)
