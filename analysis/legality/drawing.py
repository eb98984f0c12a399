"""Labelled graphs as pictures.

In: a labelled graph. Out: one self-contained SVG text, the same for the same graph.

Boxes stand in columns, by their distance from the start. An arrow leaves its box on the right, at a
height of its own. Its label stands above it, and the arrow turns only where the label has ended. An
arrow that does not lead to the next column returns to its target below all boxes, in a lane of its
own. So a label never overlaps another label, a box or an arrow. Only arrows may cross.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from statistics import fmean
from typing import Any

from maskwright.analysis.legality.graph import Graph, Look

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

Point = tuple[float, float]

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
class _Arrow:
    """All edges from one box to another, drawn as one arrow.

    lines : the lines of its label.
    y : the height at which it leaves its box.
    """

    source: _Box
    target: _Box
    lines: list[str]
    is_accented: bool
    y: float = 0.0

    @property
    def above(self) -> float:
        """The room above the arrow, for its label."""
        return LINE * len(self.lines) + 3 if self.lines else 10.0

    @property
    def is_forward(self) -> bool:
        """Whether the arrow leads to the next column. Other arrows return."""
        return self.target.column == self.source.column + 1


@dataclass(slots=True, eq=False)
class _Box:
    """A node of the graph. x : its left side; y : its middle."""

    lines: list[str]
    look: Look
    column: int
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    arrows: list[_Arrow] = field(default_factory=list)

    @property
    def spread(self) -> float:
        """The distance from where the first arrow leaves to where the last one does."""
        return sum(arrow.above for arrow in self.arrows[1:])

    @property
    def height(self) -> float:
        """The height of the box."""
        return max(LINE * len(self.lines) + 14, self.spread + 12)

    @property
    def reach(self) -> float:
        """How far the box and the labels of its arrows may extend from its middle."""
        return max(self.height / 2, self.spread / 2 + (self.arrows[0].above if self.arrows else 0))


def to_svg(graph: Graph[Any], title: str) -> str:
    """The graph as one self-contained SVG text, in columns from left to right.

    A node's column is its distance from the start nodes. Parallel edges share an arrow, with their
    labels one above the other.

    graph : all nodes must be reachable from the start nodes.
    title : what the picture shows, for readers who cannot see it.

    Cost: O(n log n) for n nodes and edges, and the square of the number of returning arrows.
    """
    columns = _columns(graph)
    returning = [arrow for column in columns for box in column for arrow in box.arrows if not arrow.is_forward]
    _place_rows(columns)
    starts, turns, width = _place_columns(columns, returning)
    bottom = max((box.y + box.reach for column in columns for box in column), default=0.0)
    routes, bottom = _lanes(returning, starts, turns, bottom)
    boxes = [box for column in columns for box in column]
    drawn: list[str] = []
    for box in boxes:
        for arrow in box.arrows:
            begin = f"M{_at(box.x + box.width, arrow.y)}L{_at(turns[box.column], arrow.y)}"
            if arrow.is_forward:
                x, y, bend = arrow.target.x, arrow.target.y, (arrow.target.x - turns[box.column]) / 2
                end = f"C{_at(turns[box.column] + bend, arrow.y)} {_at(x - bend, y)} {_at(x, y)}"
            else:
                end = _rounded(routes[arrow])
            drawn += _drawn_arrow(begin + end, arrow)
    for box in boxes:
        drawn += _drawn_box(box)
    size = {"width": _px(width), "height": _px(bottom + MARGIN)}
    return _CANVAS.format(title=escape(title), content="\n".join(drawn), **size)


def _columns(graph: Graph[Any]) -> list[list[_Box]]:
    """The boxes with their arrows, in columns by distance from the start.

    A column's boxes are in the order of the boxes that lead to them.
    """
    layers = list(graph.layers())
    boxes: dict[Hashable, _Box] = {
        node: _Box(graph.nodes[node].label.split("\n"), graph.nodes[node], number)
        for number, layer in enumerate(layers)
        for node in layer
    }
    arrows: dict[tuple[Hashable, Hashable], _Arrow] = {}
    for edge in graph.edges:
        ends = edge.source, edge.target
        arrow = arrows.setdefault(ends, _Arrow(boxes[edge.source], boxes[edge.target], [], False))
        arrow.lines += edge.label.split("\n") if edge.label else []
        arrow.is_accented |= edge.accented
    columns = [[boxes[node] for node in layer] for layer in layers]
    for arrow in arrows.values():
        arrow.source.arrows.append(arrow)
    for before, column in pairwise(columns):
        wishes = _means((a.target, number) for number, box in enumerate(before) for a in box.arrows if a.is_forward)
        column.sort(key=lambda box: wishes[box])
    order = {box: number for column in columns for number, box in enumerate(column)}
    for box in order:
        box.arrows.sort(key=lambda arrow: (not arrow.is_forward, order[arrow.target]))
    return columns


def _means(values: Iterable[tuple[_Box, float]]) -> dict[_Box, float]:
    """The mean of each box's values."""
    found: dict[_Box, list[float]] = {}
    for box, value in values:
        found.setdefault(box, []).append(value)
    return {box: fmean(of_box) for box, of_box in found.items()}


def _place_rows(columns: Sequence[list[_Box]]) -> None:
    """Set the heights of boxes and arrows.

    The tallest column comes first, then its neighbours. Each box stands as near as possible to the
    boxes that it is connected with.
    """
    if not columns:
        return
    tallest = max(range(len(columns)), key=lambda k: sum(box.reach for box in columns[k]))
    _stack(columns[tallest], {})
    for column in columns[tallest + 1 :]:
        before = columns[column[0].column - 1]
        _stack(column, _means((a.target, box.y) for box in before for a in box.arrows if a.is_forward))
    for column in reversed(columns[:tallest]):
        _stack(column, _means((box, a.target.y) for box in column for a in box.arrows if a.is_forward))
    top = min(box.y - box.reach for column in columns for box in column)
    for column in columns:
        for box in column:
            box.y += MARGIN - top
            arrow_y = box.y - box.spread / 2
            for number, arrow in enumerate(box.arrows):
                arrow_y += arrow.above if number else 0
                arrow.y = arrow_y


def _stack(column: Sequence[_Box], wishes: Mapping[_Box, float]) -> None:
    """Set the heights of a column's boxes: below each other, at least `GAP` apart.

    wishes : box -> the height at which it should stand. The column as a whole stands at the mean.
    """
    free = 0.0
    for number, box in enumerate(column):
        free += box.reach
        wish = wishes.get(box, free)
        box.y = max(free, wish) if number else wish
        free = box.y + box.reach + GAP
    if wishes:
        shift = fmean(wishes[box] - box.y for box in column if box in wishes)
        for box in column:
            box.y += shift


def _place_columns(
    columns: Sequence[list[_Box]], returning: Sequence[_Arrow]
) -> tuple[list[float], list[float], float]:
    """Set the boxes' sides.

    Returns, for each column, the x at which the arrows that return to it rise, and the x at which
    the arrows that leave it turn; then the picture's width.
    """
    starts, turns, x = [], [], MARGIN
    for number, column in enumerate(columns):
        starts.append(x)
        x += TRACK * sum(arrow.target.column == number for arrow in returning) + LEAD
        width = LETTER * max(len(line) for box in column for line in box.lines) + 18
        for box in column:
            box.x, box.width = x, width
        labels = [len(line) for box in column for arrow in box.arrows for line in arrow.lines]
        has_arrows = any(box.arrows for box in column)
        turns.append(x + width + (LETTER * max(labels, default=0) + 12 if has_arrows else 0))
        x = turns[-1] + TRACK * sum(arrow.source.column == number for arrow in returning)
        x += TURN if number + 1 < len(columns) else 0
    return starts, turns, x + MARGIN


def _lanes(
    returning: Sequence[_Arrow], starts: Sequence[float], turns: Sequence[float], bottom: float
) -> tuple[dict[_Arrow, list[Point]], float]:
    """The corners of each returning arrow after its label, and the height of the lowest lane.

    An arrow goes down, then along its lane below all boxes, then up, then to its target.
    """
    down: dict[_Arrow, float] = {}
    up: dict[_Arrow, float] = {}
    # Of two arrows that leave a column the lower one turns first, of two that arrive the higher
    # one. So they do not cross.
    for arrow in sorted(returning, key=lambda arrow: -arrow.y):
        down[arrow] = turns[arrow.source.column] + TRACK * sum(a.source.column == arrow.source.column for a in down)
    for arrow in sorted(returning, key=lambda arrow: arrow.target.y):
        up[arrow] = starts[arrow.target.column] + TRACK * sum(a.target.column == arrow.target.column for a in up)
    lanes: list[list[_Arrow]] = []
    routes: dict[_Arrow, list[Point]] = {}
    for arrow in sorted(returning, key=lambda arrow: down[arrow] - up[arrow]):  # the shortest arrow takes the top lane
        free = (lane for lane in lanes if all(down[arrow] < up[a] or down[a] < up[arrow] for a in lane))
        lane = next(free, None)
        if lane is None:
            lane = []
            lanes.append(lane)
        lane.append(arrow)
        y, end = bottom + GAP / 2 + TRACK * lanes.index(lane), arrow.target.y + arrow.target.height / 4
        routes[arrow] = [
            (turns[arrow.source.column], arrow.y),
            (down[arrow], arrow.y),
            (down[arrow], y),
            (up[arrow], y),
            (up[arrow], end),
            (arrow.target.x, end),
        ]
    return routes, bottom + (GAP / 2 + TRACK * (len(lanes) - 1) if lanes else 0)


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
    frames = [(0.0, FILLED if box.look.filled else BACKGROUND)]
    frames += [(3.0, "none")] if box.look.accepting else []
    for inset, fill in frames:
        corner = {"x": box.x + inset, "y": box.y - box.height / 2 + inset}
        size = {"width": box.width - 2 * inset, "height": box.height - 2 * inset}
        yield _drawn("rect", **corner, **size, rx="6", fill=fill, stroke=QUIET)
    if box.look.start:
        path = f"M{_at(box.x - LEAD, box.y)}L{_at(box.x, box.y)}"
        yield _drawn("path", d=path, stroke=QUIET, marker_end="url(#tip)")
    first = box.y + 4 - LINE * (len(box.lines) - 1) / 2
    for number, line in enumerate(box.lines):
        x, y = box.x + box.width / 2, first + LINE * number
        yield _drawn("text", line, x=x, y=y, text_anchor="middle", fill=INK)


def _rounded(corners: Sequence[Point]) -> str:
    """An SVG path along straight lines from the first point to the last, with rounded corners."""
    parts = []
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        near, far = (_towards(corner, other) for other in (before, after))
        parts.append(f"L{_at(*near)}Q{_at(*corner)} {_at(*far)}")
    return "".join([*parts, f"L{_at(*corners[-1])}"])


def _towards(corner: Point, other: Point) -> Point:
    """The point where the rounding of a corner meets the line to another one."""
    length = abs(other[0] - corner[0]) + abs(other[1] - corner[1])  # the lines are upright or level
    share = min(6.0, length / 2) / length if length else 0.0
    return corner[0] + share * (other[0] - corner[0]), corner[1] + share * (other[1] - corner[1])


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _at(x: float, y: float) -> str:
    return f"{_px(x)} {_px(y)}"
