"""Graphs of automata, to be drawn or looked into.

In: nodes and edges with their labels. Out: an SVG text, or what networkx and Graphviz take.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from maskwright.analysis.errors import MissingExtraError
from maskwright.analysis.graphs import ways

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


LINE = 15.0
"""Height of a line of text. All lengths here are in px."""
LETTER = 7.3
"""Width of a letter of the monospaced font, rounded up."""
GAP = 24.0
"""Distance between the boxes of a column."""
TURN = 44.0
"""Width between columns in which an arrow turns."""
TRACK = 9.0
"""Distance between parallel arrows."""
LEAD = 18.0
"""Length of the last, straight part of a returning arrow, and of the arrow that marks a start."""
MARGIN = 16.0
"""Distance between the drawing and the picture's border."""

INK, QUIET, ACCENT, BACKGROUND, FILLED = "#111111", "#555555", "#a94f08", "#ffffff", "#cfe8cf"

_TIP = '<marker id="{}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
_TIP += '<path d="M0 0L8 4L0 8z" fill="{}"/></marker>'
_CANVAS = f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{{width}}" height="{{height}}" viewBox="0 0 {{width}} {{height}}"
 style="max-width: 100%; height: auto" role="img" font-family="monospace" font-size="12" fill="none">
<title>{{title}}</title>
{_TIP.format("tip", QUIET)}
{_TIP.format("accented-tip", ACCENT)}
<rect width="{{width}}" height="{{height}}" fill="{BACKGROUND}"/>
{{content}}
</svg>
"""


@dataclass(slots=True, eq=False)
class _Box:
    """A node of the graph. x, y : its left upper corner. arrows : those that leave it."""

    lines: list[str]
    look: Look
    column: int
    arrows: list[_Arrow] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0

    @property
    def height(self) -> float:
        """The height of the box, which its arrows share with their labels."""
        return max(LINE * len(self.lines) + 14, sum(arrow.height for arrow in self.arrows) + 12)


@dataclass(slots=True, eq=False)
class _Arrow:
    """All edges from one box to another, drawn as one arrow.

    lines : the lines of its label.
    y : the height at which it leaves its box.
    down, up : where an arrow that returns goes down behind its label, and up to its target.
    """

    source: _Box
    target: _Box
    lines: list[str] = field(default_factory=list)
    is_accented: bool = False
    y: float = 0.0
    down: float = 0.0
    up: float = 0.0

    @property
    def height(self) -> float:
        """The room that the arrow takes, with its label above it."""
        return LINE * len(self.lines) + 3 if self.lines else 10.0

    @property
    def is_forward(self) -> bool:
        """Whether the arrow leads to the next column. Other arrows return."""
        return self.target.column == self.source.column + 1


def to_svg(graph: Graph[Any], title: str) -> str:
    """The graph as one self-contained SVG text, in columns from left to right.

    A node's column is its distance from the start nodes. Parallel edges share an arrow, with their
    labels one above the other. An arrow leaves its box on the right, at a height of its own. Its
    label stands above it, and the arrow turns only where the label has ended. An arrow that does
    not lead to the next column returns to its target below all boxes, in a lane of its own. So a
    label never overlaps another label, a box or an arrow. Only arrows may cross.

    graph : all nodes must be reachable from the start nodes.
    title : what the picture shows, for readers who cannot see it.

    Cost: O(n log n) for n nodes and edges, and the square of the number of returning arrows.
    """
    boxes = _boxes(graph)
    columns: list[list[_Box]] = [[] for _ in range(1 + max((box.column for box in boxes), default=-1))]
    for box in boxes:
        columns[box.column].append(box)
    returning = [arrow for box in boxes for arrow in box.arrows if not arrow.is_forward]
    bottom = _place_rows(columns)
    turns, width = _place_columns(columns, returning)
    lanes, bottom = _lanes(returning, bottom)
    drawn: list[str] = []
    for box in boxes:
        for arrow in box.arrows:
            turn, target = turns[box.column], arrow.target
            path = f"M{_at(box.x + box.width, arrow.y)}L{_at(turn, arrow.y)}"
            if arrow.is_forward:
                y, bend = target.y + target.height / 2, (target.x - turn) / 2
                path += f"C{_at(turn + bend, arrow.y)} {_at(target.x - bend, y)} {_at(target.x, y)}"
            else:
                lane, y = lanes[arrow], target.y + target.height * 3 / 4
                corners = (arrow.down, arrow.y), (arrow.down, lane), (arrow.up, lane), (arrow.up, y), (target.x, y)
                path += "".join(f"L{_at(*corner)}" for corner in corners)
            drawn += _drawn_arrow(path, arrow)
    for box in boxes:
        drawn += _drawn_box(box)
    size = {"width": _px(width), "height": _px(bottom + MARGIN)}
    return _CANVAS.format(title=escape(title), content="\n".join(drawn), **size)


def distances(graph: Graph[NodeT]) -> dict[NodeT, int]:
    """For each node that the start nodes lead to its distance from them, the nearest first."""
    successors: dict[NodeT, dict[NodeT, None]] = {node: {} for node in graph.nodes}
    for edge in graph.edges:
        successors[edge.source][edge.target] = None
    found: dict[NodeT, int] = {}
    for node, before in ways(
        (node for node, look in graph.nodes.items() if look.start), successors.__getitem__
    ).items():
        found[node] = 0 if node == before else found[before] + 1
    return found


def _boxes(graph: Graph[Any]) -> list[_Box]:
    """The boxes with their arrows, the nearest first."""
    looks = graph.nodes
    boxes = {node: _Box(looks[node].label.split("\n"), looks[node], at) for node, at in distances(graph).items()}
    arrows: dict[tuple[Any, Any], _Arrow] = {}
    for source, target, label, accented in graph.edges:
        arrow = arrows.setdefault((source, target), _Arrow(boxes[source], boxes[target]))
        arrow.lines += label.split("\n") if label else []
        arrow.is_accented |= accented
    for arrow in arrows.values():
        arrow.source.arrows.append(arrow)
    order = {box: number for number, box in enumerate(boxes.values())}
    for box in order:
        box.arrows.sort(key=lambda arrow: (not arrow.is_forward, order[arrow.target]))
    return list(order)


def _place_rows(columns: Sequence[list[_Box]]) -> float:
    """Set the heights of boxes and arrows, each column in the middle. Returns the lowest end."""
    heights = [sum(box.height + GAP for box in column) - GAP for column in columns]
    for column, height in zip(columns, heights, strict=True):
        y = MARGIN + (max(heights) - height) / 2
        for box in column:
            box.y = y
            for arrow in box.arrows:
                y += arrow.height
                arrow.y = y
            y = box.y + box.height + GAP
    return MARGIN + max(heights, default=0.0)


def _place_columns(columns: Sequence[list[_Box]], returning: Sequence[_Arrow]) -> tuple[list[float], float]:
    """Set the boxes' sides, and where returning arrows go up and down.

    Returns for each column where the arrows turn that leave it, behind all labels; and the
    picture's width.
    """
    turns, x = [], MARGIN
    for number, column in enumerate(columns):
        for arrow in returning:
            if arrow.target.column == number:
                arrow.up = x
                x += TRACK
        x += LEAD
        width = LETTER * max(len(line) for box in column for line in box.lines) + 18
        for box in column:
            box.x, box.width = x, width
        labels = [len(line) for box in column for arrow in box.arrows for line in arrow.lines]
        x += width + (LETTER * max(labels, default=0) + 12 if any(box.arrows for box in column) else 0)
        turns.append(x)
        for arrow in returning:
            if arrow.source.column == number:
                arrow.down = x
                x += TRACK
        x += TURN if number + 1 < len(columns) else 0
    return turns, x + MARGIN


def _lanes(returning: Sequence[_Arrow], bottom: float) -> tuple[dict[_Arrow, float], float]:
    """The height of each returning arrow's lane below all boxes, and that of the lowest."""
    lanes: list[list[_Arrow]] = []
    for arrow in sorted(returning, key=lambda arrow: arrow.down - arrow.up):  # the shortest takes the top lane
        free = (lane for lane in lanes if all(arrow.down < a.up or a.down < arrow.up for a in lane))
        lane = next(free, None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(arrow)
    heights = [bottom + GAP / 2 + TRACK * number for number in range(len(lanes))]
    return {arrow: y for lane, y in zip(lanes, heights, strict=True) for arrow in lane}, max([bottom, *heights])


def _drawn(name: str, text: str = "", /, **attributes: str | float) -> str:
    """An element; an underscore in the name of an attribute stands for a hyphen."""
    values = ((key, _px(value) if isinstance(value, float) else value) for key, value in attributes.items())
    shown = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in values)
    return f"<{name}{shown}>{escape(text)}</{name}>"


def _drawn_arrow(path: str, arrow: _Arrow) -> Iterator[str]:
    colour, tip = (ACCENT, "accented-tip") if arrow.is_accented else (QUIET, "tip")
    yield _drawn("path", d=path, stroke=colour, marker_end=f"url(#{tip})")
    x, first = arrow.source.x + arrow.source.width + 5, arrow.y - 4 - LINE * (len(arrow.lines) - 1)
    for number, line in enumerate(arrow.lines):
        yield _drawn("text", line, x=x, y=first + LINE * number, fill=ACCENT if arrow.is_accented else INK)


def _drawn_box(box: _Box) -> Iterator[str]:
    middle = box.y + box.height / 2
    frames = [(0.0, FILLED if box.look.filled else BACKGROUND)]
    frames += [(3.0, "none")] if box.look.accepting else []
    for inset, fill in frames:
        corner = {"x": box.x + inset, "y": box.y + inset}
        size = {"width": box.width - 2 * inset, "height": box.height - 2 * inset}
        yield _drawn("rect", **corner, **size, rx="6", fill=fill, stroke=QUIET)
    if box.look.start:
        path = f"M{_at(box.x - LEAD, middle)}L{_at(box.x, middle)}"
        yield _drawn("path", d=path, stroke=QUIET, marker_end="url(#tip)")
    first = middle + 4 - LINE * (len(box.lines) - 1) / 2
    for number, line in enumerate(box.lines):
        x, y = box.x + box.width / 2, first + LINE * number
        yield _drawn("text", line, x=x, y=y, text_anchor="middle", fill=INK)


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _at(x: float, y: float) -> str:
    return f"{_px(x)} {_px(y)}"
