"""Graphs of automata, to be drawn or looked into.

In: nodes and edges with their labels. Out: the same, as `drawing` and networkx take it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
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

    >>> nodes = {"a": Look("A", start=True), "b": Look("B")}
    >>> Graph(nodes, [Link("a", "b"), Link("b", "b")]).successors()
    {'a': ['b'], 'b': ['b']}
    """

    nodes: Mapping[NodeT, Look]
    edges: Sequence[Link[NodeT]]

    def successors(self) -> dict[NodeT, list[NodeT]]:
        """Node -> the targets of its edges, each once, in the order of `edges`."""
        found: dict[NodeT, dict[NodeT, None]] = {node: {} for node in self.nodes}
        for edge in self.edges:
            found[edge.source][edge.target] = None
        return {node: list(targets) for node, targets in found.items()}

    def layers(self) -> Iterator[list[NodeT]]:
        """The nodes that can be reached from the start nodes, by their distance from them."""
        successors = self.successors()
        layer = [node for node, look in self.nodes.items() if look.start]
        seen = set(layer)
        while layer:
            yield layer
            following: dict[NodeT, None] = {}
            for node in layer:
                following.update((target, None) for target in successors[node] if target not in seen)
            seen.update(following)
            layer = list(following)

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

    def to_dot(self, title: str) -> str:
        """The graph in the language DOT, for Graphviz; the same text for the same graph.

        title : the graph's name.

        >>> graph = Graph({"a": Look("A", start=True)}, [Link("a", "a", 'say "x"')])
        >>> print(graph.to_dot("one"), end="")
        digraph "one" {
          rankdir=LR
          node [shape=box]
          n0 [label="A", style=bold]
          n0 -> n0 [label="say \\"x\\""]
        }
        """
        number = {node: i for i, node in enumerate(self.nodes)}
        lines = [f"digraph {_quoted(title)} {{", "  rankdir=LR", "  node [shape=box]"]
        for node, look in self.nodes.items():
            style = ",".join(name for name, is_so in (("bold", look.start), ("filled", look.filled)) if is_so)
            more = f', style="{style}"' if "," in style else f", style={style}" if style else ""
            more += ", peripheries=2" if look.accepting else ""
            lines.append(f"  n{number[node]} [label={_quoted(look.label)}{more}]")
        for source, target, label, accented in self.edges:
            colour = ", color=darkorange3, fontcolor=darkorange3" if accented else ""
            lines.append(f"  n{number[source]} -> n{number[target]} [label={_quoted(label)}{colour}]")
        return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """A string of DOT."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
