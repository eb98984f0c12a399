"""What stands in a picture of a graph, and that no label meets anything else in it."""

from __future__ import annotations

import itertools
import random
import re
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from shares import share

from maskwright.analysis.legality.graph import Graph, Link, Look, to_svg

SVG = "{http://www.w3.org/2000/svg}"


class Box(NamedTuple):
    """A rectangle: what a label or a frame covers."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def numbers(element: ElementTree.Element, *names: str) -> list[float]:
    return [float(element.attrib[name]) for name in names]


def frames(root: ElementTree.Element) -> list[Box]:
    """All frames but the picture's own."""
    found = []
    for rect in root.findall(f"{SVG}rect")[1:]:
        x, y, width, height = numbers(rect, "x", "y", "width", "height")
        found.append(Box(x, y, x + width, y + height))
    return found


def labels(root: ElementTree.Element) -> list[Box]:
    """What the arrows' labels cover, letters of 12 px being 7.3 px wide."""
    found = []
    for text in root.iter(f"{SVG}text"):
        if text.get("text-anchor") is None:
            x, y = numbers(text, "x", "y")
            found.append(Box(x, y - 10, x + 7.3 * len(text.text or ""), y + 2))
    return found


def points_of_arrows(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Points close to each other along every arrow."""
    found = []
    for path in root.findall(f"{SVG}path"):
        here: tuple[float, float] = (0.0, 0.0)
        for command, rest in re.findall(r"([MLCQ])([-\d. ]+)", path.attrib["d"]):
            values = [float(value) for value in rest.split()]
            corners = [here, *zip(values[::2], values[1::2], strict=True)]
            here = corners[-1]
            if command != "M":
                found += [_bezier(corners, step / 200) for step in range(201)]
    return found


def _bezier(corners: list[tuple[float, float]], share: float) -> tuple[float, float]:
    """De Casteljau: a line's, a quadratic or a cubic curve's point."""
    while len(corners) > 1:
        corners = [(a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])) for a, b in itertools.pairwise(corners)]
    return corners[0]


def random_graph(seed: int) -> Graph[int]:
    """A graph with loops, parallel edges and several starts, all nodes reachable; labels of none to three lines."""
    rng = random.Random(seed)
    nodes, edges = {}, []
    n_nodes = rng.randint(1, 12)
    for node in range(n_nodes):
        lines = ["x" * rng.randint(1, 20) for _ in range(rng.randint(1, 4))]
        is_start = node == 0 or rng.random() < 0.2
        nodes[node] = Look("\n".join(lines), start=is_start, accepting=rng.random() < 0.3, filled=True)
        if not is_start:
            edges.append(Link(rng.randrange(node), node))
    for _ in range(rng.randint(0, 15)):
        label = "\n".join("y" * rng.randint(1, 15) for _ in range(rng.randint(0, 3)))
        edges.append(Link(rng.randrange(n_nodes), rng.randrange(n_nodes), label, accented=rng.random() < 0.5))
    return Graph(nodes, edges)


@pytest.mark.parametrize("seed", share(range(40), 4))
def test_no_label_meets_a_label_a_box_or_an_arrow(seed: int) -> None:
    graph = random_graph(seed)
    root = ElementTree.fromstring(to_svg(graph, "random"))
    written = labels(root)
    lines = [line for edge in graph.edges for line in edge.label.split("\n") if line]
    assert len(written) == len(lines)
    for one, other in itertools.combinations(written, 2):
        assert not one.meets(other)
    boxes = frames(root)
    assert len(boxes) == len(graph.nodes) + sum(look.accepting for look in graph.nodes.values())
    for label, box in itertools.product(written, boxes):
        assert not label.meets(box)
    points = points_of_arrows(root)
    for label in written:
        assert not any(label.left < x < label.right and label.top < y < label.bottom for x, y in points)
    width, height = numbers(root, "width", "height")
    for box in (*written, *boxes):
        assert 0 <= box.left <= box.right <= width
        assert 0 <= box.top <= box.bottom <= height
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


@pytest.mark.parametrize("seed", share(range(40), 4))
def test_boxes_stand_apart_and_no_arrow_crosses_one(seed: int) -> None:
    graph = random_graph(seed)
    graph = Graph({node: look._replace(accepting=False) for node, look in graph.nodes.items()}, graph.edges)
    root = ElementTree.fromstring(to_svg(graph, "random"))
    boxes = frames(root)
    for one, other in itertools.combinations(boxes, 2):
        assert not one.meets(other)
    points = points_of_arrows(root)
    for box in boxes:
        assert not any(box.left + 1 < x < box.right - 1 and box.top < y < box.bottom for x, y in points)


def test_columns_are_distances_and_arrows_lead_to_their_boxes() -> None:
    nodes = {node: Look(node, start=node == "a", accepting=node == "c") for node in "abc"}
    edges = [Link("a", "b", "one"), Link("a", "b", "two", accented=True), Link("b", "c"), Link("c", "a", "back")]
    graph = Graph(nodes, edges)
    root = ElementTree.fromstring(to_svg(graph, "a < b"))
    assert root.findtext(f"{SVG}title") == "a < b"
    a, b, c, inner = frames(root)
    assert a.right < b.left
    assert b.right < c.left
    assert (inner.left, inner.top) == (c.left + 3, c.top + 3)
    arrows = [path for path in root.findall(f"{SVG}path") if path.attrib["marker-end"]]
    ends = [tuple(map(float, re.findall(r"[-\d.]+", path.attrib["d"])[-2:])) for path in arrows]
    assert [x for x, _ in ends] == [b.left, c.left, a.left, a.left]  # one arrow for both edges from a to b; the start
    assert all(box.top < y < box.bottom for (_, y), box in zip(ends, (b, c, a, a), strict=True))
    assert [path.attrib["marker-end"] for path in arrows] == ["url(#accented-tip)", *["url(#tip)"] * 3]
    text = [element.text for element in root.iter(f"{SVG}text")]
    assert text == ["one", "two", "back", "a", "b", "c"]


def test_a_graph_without_nodes_is_an_empty_picture() -> None:
    root = ElementTree.fromstring(to_svg(Graph({}, []), "nothing"))
    assert frames(root) == labels(root) == points_of_arrows(root) == []
