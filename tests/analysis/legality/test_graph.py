"""Graphs of automata, and the same graphs for networkx, which need not be installed."""

from __future__ import annotations

import sys

import networkx
import pytest
from grammars import make_grammar, random_grammar

from maskwright.analysis.errors import MissingExtraError
from maskwright.analysis.legality.deciders import Deciders
from maskwright.analysis.legality.exploration import Exploration
from maskwright.analysis.legality.follow import build_follow_graph
from maskwright.analysis.legality.graph import Graph, Link, Look
from maskwright.analysis.legality.pushdown import Pushdown
from maskwright.analysis.legality.verdict import START


def test_layers_are_distances() -> None:
    for seed in range(40):
        graph = Pushdown(random_grammar(seed)).graph
        starts = [node for node, look in graph.nodes.items() if look.start]
        expected = networkx.multi_source_dijkstra_path_length(graph.to_networkx(), starts) if starts else {}
        assert {node: number for number, layer in enumerate(graph.layers()) for node in layer} == expected


def test_networkx_has_nodes_edges_and_labels() -> None:
    grammar = make_grammar("S : a S b | a b")
    for automaton in (Pushdown(grammar), Exploration(grammar, (1,), (1,))):
        graph = automaton.to_networkx()
        assert dict(graph.nodes(data="label")) == {node: look.label for node, look in automaton.graph.nodes.items()}
        assert sorted(graph.edges(data="label")) == sorted(tuple(edge[:3]) for edge in automaton.graph.edges)
    exploration = Exploration(grammar, (1,), (1,))
    filled = {node for node, is_filled in exploration.to_networkx().nodes(data="filled") if is_filled}
    assert filled == exploration.coaccessible
    follow = build_follow_graph(Deciders(grammar)).to_networkx()
    assert dict(follow.nodes(data="label")) == {START: "start", 0: "a", 1: "b"}
    assert sorted(follow.edges(data="always")) == [(START, 0, True), (0, 0, False), (0, 1, False), (1, 1, False)]


def test_without_networkx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    grammar = make_grammar("S : a S b | a b")
    graph = build_follow_graph(Deciders(grammar))
    for to_networkx in (Pushdown(grammar).to_networkx, Exploration(grammar, (1,), (1,)).to_networkx, graph.to_networkx):
        with pytest.raises(MissingExtraError, match=r"networkx is not installed: pip install 'maskwright\[graphs\]'"):
            to_networkx()


def test_dot_has_nodes_and_edges_with_what_marks_them() -> None:
    nodes = {"a": Look('say "x"\\', start=True, filled=True), "b": Look("two\nlines", accepting=True)}
    assert Graph(nodes, [Link("a", "b", "one"), Link("b", "b", accented=True)]).to_dot('a "b"').splitlines() == [
        'digraph "a \\"b\\"" {',
        "  rankdir=LR",
        "  node [shape=box]",
        '  n0 [label="say \\"x\\"\\\\", style="bold,filled"]',
        '  n1 [label="two\\nlines", peripheries=2]',
        '  n0 -> n1 [label="one"]',
        '  n1 -> n1 [label="", color=darkorange3, fontcolor=darkorange3]',
        "}",
    ]
