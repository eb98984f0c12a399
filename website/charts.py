"""Charts as SVG that stands in a page and takes its colours, in light and dark. In: numbers. Out: markup.

Matplotlib draws. Texts stay texts, and what is black becomes the page's own colour (`static/site.css`).
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "maskwright",
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.6,
        "lines.markersize": 4,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "figure.constrained_layout.use": True,
    }
)

from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator  # noqa: E402

COLOURS = {
    "maskwright": "#0d9268",
    "maskwright, index": "#5fae5b",
    "maskwright, lazy": "#5fae5b",
    "llguidance": "#d9622b",
    "xgrammar": "#4a7df0",
    "kbnf": "#a566d1",
    "outlines": "#a5832f",
    "glrmask": "#d0508f",
    "syncode": "#3aa6b9",
}
"""Each engine's colour, which can be seen on white and on black."""
OTHERS = ("#0d9268", "#4a7df0", "#d9622b", "#a566d1", "#a5832f", "#d0508f", "#3aa6b9", "#8a8f98", "#b0342f", "#5fae5b")
"""Colours of what is no engine, in this order."""
MARKS = "o^sDv"
WIDTH = 4.0
"""Inches, of 72 units."""
SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
IDS = re.compile(r"""(?<=\sid=")|(?<=href="#)|(?<=url\(#)""")
"""Where the ids of an SVG begin, and the references to them."""
INK, GRID = "#000000", "#b0b0b0"
Curves = Mapping[str, Sequence[tuple[float, float]]]


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name of a chart; two are alike only where `COLOURS` says so, or has too few.

    >>> colours(["syncode", "glrmask", "a", "b"])["a"]
    '#0d9268'
    """
    found = {name: COLOURS[name] for name in names if name in COLOURS}
    free = [each for each in OTHERS if each not in found.values()]
    others = [name for name in dict.fromkeys(names) if name not in found]
    return found | {name: free[number % len(free)] for number, name in enumerate(others)}


def seconds(value: float, _: Any = None) -> str:
    """A time in us to read.

    >>> seconds(0.5), seconds(20), seconds(3000), seconds(1e6)
    ('0.5 us', '20 us', '3 ms', '1 s')
    """
    for least, unit in ((1e6, "s"), (1e3, "ms")):
        if value >= least * 0.9995:
            return f"{value / least:.3g} {unit}"
    return f"{value:.3g} us"


def count(value: float, _: Any = None) -> str:
    """A number to read.

    >>> count(1000), count(1e6)
    ('1,000', '1,000,000')
    """
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _around(low: float, high: float) -> tuple[float, float]:
    """The numbers 1, 2, 5, 10, ... below and above an interval.

    >>> _around(0.15, 300)
    (0.1, 500)
    """
    rungs = [
        factor * 10**power if power >= 0 else factor / 10**-power for power in range(-3, 10) for factor in (1, 2, 5)
    ]
    return max(rung for rung in rungs if rung <= low), min(rung for rung in rungs if rung >= high)


def _thin_out(figure: Any) -> None:
    """Leave out the ticks' labels that would touch the one before. The page's font may be wider than the one that is measured."""
    figure.draw_without_rendering()
    for axis in (each for axes in figure.axes for each in (axes.xaxis, axes.yaxis)):
        is_x, end = axis.axis_name == "x", float("-inf")
        labels = [
            tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_text() and not tick.label1.get_rotation()
        ]
        boxes = [(label.get_window_extent(), label) for label in labels]
        for box, label in sorted(boxes, key=lambda each: each[0].x0 if is_x else each[0].y0):
            begin, size = (box.x0, box.width) if is_x else (box.y0, box.height)
            margin = (0.15 if is_x else 0.05) * size + 2
            if begin - margin < end:
                label.set_visible(False)
            else:
                end = begin + size + margin


def _svg(figure: Any, title: str, about: str) -> str:
    _thin_out(figure)
    out = io.StringIO()
    figure.savefig(
        out, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    pyplot.close(figure)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", text)  # the page's own font
    text = text.replace(INK, "currentColor").replace(GRID, "var(--chart-grid)")
    head = f"<title>{escape(title)}</title><desc>{escape(about)}</desc>"
    text = re.sub(r"(<svg[^>]*>)", lambda found: found[1].replace("<svg", '<svg role="img"', 1) + head, text, count=1)
    return text


def apart(page: str) -> str:
    """A page whose charts have no id in common: matplotlib begins anew in each, and a reference means the first on the page.

    >>> print(apart('<svg><g id="a"/><use xlink:href="#a"/></svg><svg><g id="a" clip-path="url(#b)"/></svg>'))
    <svg><g id="chart-1-a"/><use xlink:href="#chart-1-a"/></svg><svg><g id="chart-2-a" clip-path="url(#chart-2-b)"/></svg>
    """
    numbers = itertools.count(1)
    return SVG.sub(lambda found: IDS.sub(f"chart-{next(numbers)}-", found[0]), page)


def _axes(title: str, height: float = 2.7) -> tuple[Any, Any]:
    figure, axes = pyplot.subplots(figsize=(WIDTH, height))
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    axes.grid(color=GRID)
    return figure, axes


def _log(axis: Any, shown: Any, values: Sequence[float]) -> None:
    """Make an axis logarithmic. values : where there are five at most, they are its ticks."""
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    ticks = sorted(set(values))
    if len(ticks) <= 5 and axis.axis_name == "x":
        axis.set_major_locator(FixedLocator(ticks))
    else:
        # within two powers of ten, 2 and 5 are ticks too, and the axis goes from tick to tick
        is_short = ticks[-1] < 100 * ticks[0]
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_short else (1,), numticks=9))
        if is_short:
            axis.set_view_interval(*_around(ticks[0], ticks[-1]), ignore=True)
    axis.set_major_formatter(FuncFormatter(shown))
    axis.set_minor_locator(NullLocator())


def lines(title: str, curves: Curves, across: str, *, y: Any = seconds, is_joined: bool = True) -> str:
    """Values over a quantity, both on logarithmic axes. across : what the quantity is. y : how values are shown."""
    figure, axes = _axes(title)
    ink = colours(list(curves))
    for name, points in curves.items():
        style = {"linestyle": "-" if is_joined else "", "color": ink[name], "label": name}
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, **style)
    points = [point for curve in curves.values() for point in curve]
    _log(axes.yaxis, y, [value for _, value in points])
    _log(axes.xaxis, count, [value for value, _ in points])
    axes.set_xlabel(across, loc="right")
    figure.legend(loc="outside lower center", ncols=3)
    texts = (f"{name}: " + ", ".join(f"{count(a)}: {y(b)}" for a, b in curve) for name, curve in curves.items())
    return _svg(figure, title, "; ".join(texts))


def shares(title: str, curves: Curves) -> str:
    """The share of steps that take at most so long. curves : (us, per cent)."""
    figure, axes = _axes(title)
    ink = colours(list(curves))
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), label=name, color=ink[name])
    _log(axes.xaxis, seconds, [value for curve in curves.values() for value, _ in curve])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    axes.set_xlabel("a step takes at most", loc="right")
    figure.legend(loc="outside lower center", ncols=3)
    texts = (
        f"{name}: half within {seconds(_at(c, 50))}, 99 % within {seconds(_at(c, 99))}" for name, c in curves.items()
    )
    return _svg(figure, title, "; ".join(texts))


def _at(points: Sequence[tuple[float, float]], share: float) -> float:
    return next(value for value, percent in points if percent >= share)


def ranges(title: str, rows: Mapping[str, Mapping[str, float]], shown: Any = seconds) -> str:
    """A row for each name: its values as marks on a logarithmic axis. rows : name -> what a value is -> it."""
    figure, axes = _axes(title, 1.0 + 0.24 * len(rows))
    kinds = list(dict.fromkeys(kind for values in rows.values() for kind in values))
    inks = colours([name.split(":")[0] for name in rows])
    for number, (name, values) in enumerate(rows.items()):
        ink = inks[name.split(":")[0]]
        axes.plot(list(values.values()), [number] * len(values), color=ink)
        for kind, value in values.items():
            axes.plot([value], [number], MARKS[kinds.index(kind)], color=ink)
    for kind in kinds:
        axes.plot([], [], MARKS[kinds.index(kind)], color=INK, label=kind)
    _log(axes.xaxis, shown, [value for values in rows.values() for value in values.values()])
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=5)
    texts = (
        f"{name}: " + ", ".join(f"{kind} {shown(value)}" for kind, value in values.items())
        for name, values in rows.items()
    )
    return _svg(figure, title, "; ".join(texts))


def steps(title: str, names: Sequence[str], curves: Mapping[str, Sequence[float]]) -> str:
    """Values after each step, on a logarithmic axis. names : of the steps."""
    figure, axes = _axes(title, 4.6)
    ink = colours(list(curves))
    for name, values in curves.items():
        axes.plot(range(len(names)), values, label=name, color=ink[name], marker="o", markersize=3)
    _log(axes.yaxis, count, [value for values in curves.values() for value in values])
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    figure.legend(loc="outside lower center", ncols=1)
    texts = (
        f"{name}: " + ", ".join(f"{step} {value:,}" for step, value in zip(names, values, strict=True))
        for name, values in curves.items()
    )
    return _svg(figure, title, "; ".join(texts))
