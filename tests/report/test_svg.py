"""The pictures: well-formed, and drawn to the numbers that they are given."""

from __future__ import annotations

import math
import random
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.analysis.legality.deciders import ALWAYS, NEVER
from maskwright.maskstore.entries.streamline import STEPS
from maskwright.report import svg
from maskwright.report.svg import Markup, node

NS = "{http://www.w3.org/2000/svg}"
TOP = 10.0
"""Where a chart's axis ends."""


def parsed(picture: str) -> ElementTree.Element:
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{NS}svg" and root[0].tag == f"{NS}title" and root[1].tag == f"{NS}desc"
    return root


def of_class(root: ElementTree.Element, tag: str, *classes: str) -> list[ElementTree.Element]:
    return [e for e in root.iter(NS + tag) if set(classes) <= set(e.get("class", "").split())]


def number(element: ElementTree.Element, key: str) -> float:
    return float(element.get(key, "nan"))


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]


def entry(reading: str, rules: str, *counts: int) -> dict[str, Any]:
    return {"reading": reading, "rules": rules, **dict(zip(svg.STEP_LABELS, counts, strict=True))}


SOUND = entry("sound", "normalised", 1000, 1000, 800, 200, 100, 80, 50, 25, 25)
POST = entry("post", "lark", 1100, 1000, 900, 300, 200, 100, 75, 50, 50)


def test_steps_and_verdicts_are_those_of_the_store() -> None:
    assert tuple(svg.STEP_LABELS) == ("original", *STEPS)
    assert svg.VERDICTS[NEVER] == "never" and svg.VERDICTS[ALWAYS] == "always" and len(svg.VERDICTS) == 3


@given(st.text(), st.text())
@settings(deadline=None)
def test_node_carries_any_text_unchanged_once_it_is_printable(text: str, value: str) -> None:
    element = ElementTree.fromstring(node("p", text, node("b", "&"), title=value))
    assert element.text in (svg.printable(text), None) and (element.text or "") == svg.printable(text)
    assert element.get("title") == svg.printable(value) and element[0].text == "&"


def test_printable_shows_what_cannot_be_seen() -> None:
    assert svg.printable("a\n\t\x00\u202e\ud800é <") == "a\\n\\t\\x00\\u202e\\ud800é <"


def test_node_escapes_text_but_not_markup() -> None:
    assert node("b", "<i>", Markup("<i></i>"), class_="x", data_size=1.50) == (
        '<b class="x" data-size="1.5">&lt;i&gt;<i></i></b>'
    )


def test_shortened_keeps_the_length() -> None:
    assert svg.shortened("abcdefgh", 8) == "abcdefgh" and svg.shortened("abcdefghi", 8) == "abcde..."


def test_variants_picture_has_a_logarithmic_axis_and_apart_labels() -> None:
    root = parsed(svg.variants_picture([SOUND, POST, entry("post", "normalised", *[1000] * 8, 26)]))
    curves = [e for e in of_class(root, "path", "curve") if e.find(f"{NS}title") is not None]
    assert [e.get("class") for e in curves] == ["curve sound normalised", "curve post normalised", "curve post lark"]
    heights = [y for _, y in points(curves[0].get("d", ""))]
    assert len(heights) == len(svg.STEP_LABELS)
    decade = (heights[4] - heights[0]) / math.log10(1000 / 100)
    for height, step in zip(heights, svg.STEP_LABELS, strict=True):
        assert height - heights[0] == pytest.approx(decade * math.log10(1000 / SOUND[step]), abs=0.05)
    ends = [e for e in of_class(root, "text", "quiet") if e.text in ("25", "26", "50") and len(e.get("class", "")) > 5]
    places = [number(e, "y") for e in ends]
    assert len(places) == 3 and all(a - b >= 11.99 for a, b in pairwise(places))


def test_variants_picture_of_a_store_that_vanishes() -> None:
    root = parsed(svg.variants_picture([entry("sound", "lark", 1, 1, 1, 1, 1, 1, 1, 0, 0)]))
    assert len({y for _, y in points(of_class(root, "path", "curve")[0].get("d", ""))}) == 1


def test_ladder_holds_its_ends() -> None:
    for low, high in ((1, 1), (1, 2), (3, 40), (999, 1001), (1, 10**9)):
        rungs = svg.ladder(low, high)
        assert rungs[0] <= low and rungs[-1] >= high and len(rungs) >= 2


def heights(path: str) -> list[float]:
    """The heights that a stepped curve comes to, as shares of the axis."""
    base = float(re.match(r"M[\d.]+ ([\d.]+)", path)[1])  # type: ignore[index]
    return [(base - float(y)) / (base - TOP) for y in re.findall(r"V([\d.]+)", path)]


def curve(root: ElementTree.Element, title: str) -> str:
    return next(e.get("d", "") for e in of_class(root, "path", "curve") if e.findtext(f"{NS}title") == title)


def test_cumulative_picture_reaches_each_share() -> None:
    root = parsed(svg.cumulative_picture([1, 10, 10, 100], [0, 1, 1, 100]))
    assert heights(curve(root, "original")) == pytest.approx([0.25, 0.75, 1], abs=1e-3)
    across = [float(x) for x in re.findall(r"H([\d.]+)V", curve(root, "original"))]
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.02)  # 1, 10, 100
    assert heights(curve(root, "streamlined")) == pytest.approx([0.25, 0.75, 1], abs=1e-3)
    description = root.findtext(f"{NS}desc") or ""
    assert "original: 3 of 4 states have at most 10 entries" in description
    steps = parsed(
        svg.cumulative_picture([1, 10, 10, 100], [0, 1, 1, 100], {"follow": [1, 1, 2, 100], "never": [1] * 4})
    )
    assert heights(curve(steps, "impossible neighbours deleted")) == pytest.approx([0.5, 0.75, 1], abs=1e-3)
    assert heights(curve(steps, "never-legal sequences deleted")) == [1]


def random_pairs(n: int, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    return {"live": list(range(n)), "matrix": ["".join(rng.choices("012", k=n)) for _ in range(n + 1)]}


def drawn_cells(row: ElementTree.Element, size: float, left: float, n: int) -> str:
    """The verdicts of a row of the matrix, read back from what is drawn."""
    cells = ["0"] * n
    for digit, verdict in enumerate(svg.VERDICTS):
        for path in of_class(row, "path", "run", verdict):
            assert number(path, "stroke-width") == size
            d = path.get("d", "")
            x = float(re.match(r"M([\d.]+) ", d)[1])  # type: ignore[index]
            for skipped, length in re.findall(r"m([\d.]+) 0h([\d.]+)", d):
                x += float(skipped)
                for place in range(round((x - left) / size), round((x + float(length) - left) / size)):
                    cells[place] = str(digit)
                x += float(length)
    return "".join(cells)


@pytest.mark.parametrize("n", [1, 5, 98, 200])
def test_matrix_draws_every_verdict(n: int) -> None:
    pairs = random_pairs(n, seed=n)
    root = parsed(svg.matrix_picture(pairs, [f"T{i}" for i in range(n)]))
    rows = of_class(root, "g", "row")
    size, left = number(root, "data-size"), number(root, "data-left")
    assert [drawn_cells(row, size, left, n) for row in rows] == pairs["matrix"]
    assert [row.get("data-cells") for row in rows] == pairs["matrix"]
    assert (rows[-1].findtext(f"{NS}title") or "").startswith("after start of text")


def test_matrix_beyond_the_limit_draws_the_most_active(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svg, "MATRIX_LIMIT", 2)
    pairs = {"live": [4, 5, 6], "matrix": ["012", "000", "201", "100"]}
    root = parsed(svg.matrix_picture(pairs, [f"T{i}" for i in range(7)]))
    assert [row.get("data-cells") for row in of_class(root, "g", "row")] == ["02", "21", "10"]
    assert root.get("data-names") == '["T4", "T6"]'


def test_row_words_are_cut() -> None:
    names = ["a", "b", "c", "d"]
    assert (
        svg.row_words("x", "2212", names, limit=2) == "after x always: a, b and 1 more; sometimes: c; never the other 0"
    )
    assert svg.row_words("x", "0000", names) == "after x never the other 4"


def test_matrix_of_random_verdicts_stays_below_a_megabyte() -> None:
    pairs = random_pairs(400, seed=1)
    assert len(svg.matrix_picture(pairs, [f'"a long text {i}"' for i in range(400)])) < 1_000_000
