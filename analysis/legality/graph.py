"""Graphs of automata, to be drawn or looked into.

In: nodes and edges with their labels. Out: the same, as `drawing`, networkx and Graphviz take it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from maskwright.analysis.errors import MissingExtraError

if TYPE_CHECKING:
    import networkx as nx

NodeT = TypeVar("NodeT", bound=Hashable)


class Look(NamedTuple):
    """How a node looks.

    label : one or more lines.
    start : whether it is a start node.
    accepting : if true, it has a double frame.
    filled : if true, it has a colour.
    """

    label: str
    start: bool = False
    accepting: bool = False
    filled: bool = False


class Link(NamedTuple, Generic[NodeT]):
    """An edge.

    label : its lines, perhaps none: "".
    accented : if true, it has a colour.
    """

    source: NodeT
    target: NodeT
    label: str = ""
    accented: bool = False


def need_networkx() -> Any:
    """The module networkx.

    Raises: MissingExtraError if it is not installed.
    """
    try:
        import networkx
    except ImportError as error:
        raise MissingExtraError("networkx is not installed: pip install 'maskwright[graphs]'") from error
    return networkx


@dataclass(frozen=True, slots=True)
class Graph(Generic[NodeT]):
    """A directed graph with labels. Edges may be parallel.

    nodes : node -> how it looks, in a fixed order.
    edges : in a fixed order; their ends are among `nodes`.
    """

    nodes: Mapping[NodeT, Look]
    edges: Sequence[Link[NodeT]]

    def to_networkx(self) -> nx.MultiDiGraph[NodeT]:
        """The graph for networkx; the fields of `Look` and `Link` are attributes.

        Raises: MissingExtraError if networkx is not installed.
        """
        graph: nx.MultiDiGraph[NodeT] = need_networkx().MultiDiGraph()
        for node, look in self.nodes.items():
            graph.add_node(node, **look._asdict())
        for source, target, label, accented in self.edges:
            graph.add_edge(source, target, label=label, accented=accented)
        return graph

    def numbered(self) -> Graph[int]:
        """The same graph, its nodes named by their numbers in the order of `nodes`."""
        number = {node: i for i, node in enumerate(self.nodes)}
        edges = [Link(number[edge.source], number[edge.target], edge.label, edge.accented) for edge in self.edges]
        return Graph(dict(enumerate(self.nodes.values())), edges)

    def to_graphml(self) -> str:
        """The graph as GraphML, which yEd, Gephi and networkx read. Attributes: as `to_networkx`.

        Raises: MissingExtraError if networkx is not installed.
        """
        return "\n".join(need_networkx().generate_graphml(self.numbered().to_networkx())) + "\n"

    def to_dot(self, title: str) -> str:
        """The graph in Graphviz's language, from left to right."""
        graph = self.numbered()
        lines = [
            f"digraph {json.dumps(title, ensure_ascii=False)} {{",
            'rankdir=LR; node [shape=box, fontname="monospace"];',
        ]
        for node, look in graph.nodes.items():
            marks = f", peripheries={1 + look.accepting}" + ', style=filled, fillcolor="#cfe8cf"' * look.filled
            lines.append(f"{node} [label={json.dumps(look.label, ensure_ascii=False)}{marks}];")
            lines += [f'start{node} [shape=none, label=""]; start{node} -> {node};'] * look.start
        for source, target, label, accented in graph.edges:
            colour = ', color="#a94f08", fontcolor="#a94f08"' * accented
            lines.append(f"{source} -> {target} [label={json.dumps(label, ensure_ascii=False)}{colour}];")
        return "\n".join([*lines, "}"]) + "\n"
