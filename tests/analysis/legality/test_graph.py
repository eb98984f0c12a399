"""Graphs of automata, and the same graphs for networkx, which need not be installed."""

from __future__ import annotations

import json
import re
import sys

import networkx
import pytest
from grammars import make_grammar, random_grammar

from maskwright.analysis.errors import MissingExtraError
from maskwright.analysis.legality.deciders import Deciders
from maskwright.analysis.legality.exploration import Exploration
from maskwright.analysis.legality.follow import build_follow_graph
from maskwright.analysis.legality.graph import distances
from maskwright.analysis.legality.pushdown import Pushdown
from maskwright.analysis.legality.verdict import START


def test_columns_are_distances() -> None:
    for seed in range(40):
        graph = Pushdown(random_grammar(seed)).graph
        starts = [node for node, look in graph.nodes.items() if look.start]
        expected = networkx.multi_source_dijkstra_path_length(graph.to_networkx(), starts) if starts else {}
        assert distances(graph) == expected


def test_networkx_has_nodes_edges_and_labels() -> None:
    grammar = make_grammar("S : a S b | a b")
    for automaton in (Pushdown(grammar), Exploration(grammar, (1,), (1,))):
        graph = automaton.graph.to_networkx()
        assert dict(graph.nodes(data="label")) == {node: look.label for node, look in automaton.graph.nodes.items()}
        assert sorted(graph.edges(data="label")) == sorted(tuple(edge[:3]) for edge in automaton.graph.edges)
    exploration = Exploration(grammar, (1,), (1,))
    filled = {node for node, is_filled in exploration.graph.to_networkx().nodes(data="filled") if is_filled}
    assert filled == exploration.coaccessible
    follow = build_follow_graph(Deciders(grammar)).to_networkx()
    assert dict(follow.nodes(data="label")) == {START: "start", 0: "a", 1: "b"}
    assert sorted(follow.edges(data="always")) == [(START, 0, True), (0, 0, False), (0, 1, False), (1, 1, False)]


def test_without_networkx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    grammar = make_grammar("S : a S b | a b")
    graph = build_follow_graph(Deciders(grammar))
    for to_networkx in (Pushdown(grammar).graph.to_networkx, Pushdown(grammar).graph.to_graphml, graph.to_networkx):
        with pytest.raises(MissingExtraError, match=r"networkx is not installed: pip install 'maskwright\[graphs\]'"):
            to_networkx()


def test_graphml_and_dot_hold_the_graph() -> None:
    for seed in range(20):
        graph = Pushdown(random_grammar(seed)).graph
        numbered = graph.numbered()
        read = networkx.parse_graphml(graph.to_graphml(), node_type=int, force_multigraph=True)
        assert dict(read.nodes(data=True)) == {node: look._asdict() for node, look in numbered.nodes.items()}
        assert sorted(read.edges(data="label")) == sorted(tuple(edge[:3]) for edge in numbered.edges)
        written = graph.to_dot("a title").splitlines()
        arrows = [re.fullmatch(r'(\d+) -> (\d+) \[label=(".*")\];', line) for line in written]
        found = [(int(each[1]), int(each[2]), json.loads(each[3])) for each in arrows if each is not None]
        assert found == [tuple(edge[:3]) for edge in numbered.edges]
        boxes = [re.fullmatch(r'(\d+) \[label=(".*"), peripheries=([12])\];', line) for line in written]
        shown = {int(each[1]): (json.loads(each[2]), each[3] == "2") for each in boxes if each is not None}
        assert shown == {node: (look.label, look.accepting) for node, look in numbered.nodes.items()}
        assert sum("start" in line for line in written) == sum(look.start for look in graph.nodes.values())
