"""Markup, and the report's pictures as SVG. In: numbers of the facts. Out: markup.

Only `node` makes markup. It escapes everything that is not `Markup` already, so no text of a
grammar can become a tag. The elements of a picture have classes. `page.html` gives them colours
from the page's variables, in light and dark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

WIDTH = 460
"""Width of most pictures, in SVG units."""
MATRIX_LIMIT = 250
"""Most terminals that the matrix draws.

With more, its cells would be too small to see, and the page larger than a megabyte.
"""

STEP_LABELS = {
    "original": "original",
    "ignored": "ignored terminals left out",
    "classes": "interchangeable terminals merged",
    "follow": "impossible neighbours deleted",
    "pairs": "certain last terminals folded",
    "never": "never-legal sequences deleted",
    "always": "always-legal remainders folded",
    "joint": "jointly legal sequences merged",
    "exact": "merged by exact LR verdicts",
}
"""Streamlining step -> its words in the reports, in order."""
RULES_LABELS = {"lark": "rules as loaded", "normalised": "rules normalised"}
"""Form of the rules -> its words in the reports."""
VERDICTS = ("never", "sometimes", "always")
"""The words of the verdicts 0, 1 and 2."""


class Markup(str):
    """A string that is markup already, which `node` does not escape."""

    __slots__ = ()


def printable(text: str) -> str:
    """The text with each character that is not printable written as a Python escape.

    Control characters, invisible characters and unpaired surrogates are not printable.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def node(name: str, *content: str, **attributes: str | float) -> Markup:
    """One element of HTML or SVG.

    name : the tag.
    content : what is inside. Content that is not `Markup` is made printable and escaped.
    attributes : ``class_`` stands for ``class``; an underscore inside a name stands for a hyphen.

    >>> node("td", "a < b", class_="n", data_value=0.5)
    '<td class="n" data-value="0.5">a &lt; b</td>'
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(printable(_shown(value)))}"'
        for key, value in attributes.items()
    )
    inner = "".join(item if isinstance(item, Markup) else escape(printable(item)) for item in content)
    return Markup(f"<{name}{shown}>{inner}</{name}>")


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """Pieces of markup in one. between : markup to put between them; it is not escaped."""
    return Markup(between.join(parts))


def shortened(text: str, length: int) -> str:
    """The text, made printable and cut to `length` characters; a cut text ends in three dots."""
    text = printable(text)
    return text if len(text) <= length else text[: length - 3] + "..."


def ladder(low: float, high: float) -> list[int]:
    """Ticks of a logarithmic axis: the numbers 1, 2, 5, 10, 20, 50, ... that enclose an interval.

    They begin with the last one <= low, or 1, and end with the first one >= high. The largest is
    5 * 10**12.

    >>> ladder(4067, 110140)
    [2000, 5000, 10000, 20000, 50000, 100000, 200000]
    """
    rungs = [factor * 10**power for power in range(13) for factor in (1, 2, 5)]
    first = max((i for i, rung in enumerate(rungs) if rung <= low), default=0)
    last = next((i for i, rung in enumerate(rungs) if rung >= high), len(rungs) - 1)
    return rungs[first : max(last, first + 1) + 1]


def _picture(
    width: float, height: float, title: str, description: str, *content: Markup, **more: str | float
) -> Markup:
    head = (node("title", title), node("desc", description))
    box = f"0 0 {_shown(width)} {_shown(height)}"
    return node("svg", *head, *content, xmlns="http://www.w3.org/2000/svg", viewBox=box, role="img", **more)


def _text(x: float, y: float, text: str, class_: str = "", anchor: str = "start", **more: str | float) -> Markup:
    return node("text", text, x=x, y=y, class_=class_ or "label", text_anchor=anchor, **more)


class Curve(NamedTuple):
    """A curve of `_chart`.

    name : its words in the legend. look : attributes that give it its look.
    points : (n, 2) from left to right; each coordinate is between 0 and 1, the origin at the bottom
        left. is_stepped : whether it goes across, then up, from point to point.
    end : words behind the last point.
    """

    name: str
    look: Mapping[str, str | float]
    points: Sequence[tuple[float, float]]
    is_stepped: bool = False
    end: str = ""


Ticks = Sequence[tuple[float, str]]
"""Places on an axis between 0 and 1, with their labels."""


def _chart(title: str, description: str, curves: Sequence[Curve], across: Ticks, up: Ticks, words: str = "") -> Markup:
    """Curves over two axes, with a legend below.

    across, up : the ticks of the axes; labels of the lower one stand on two lines in turn, since
        neighbours would overlap on a phone. words : what the lower axis counts.
    """
    left, top, bottom = 60.0, 10.0, 212.0
    right = WIDTH - (50.0 if any(curve.end for curve in curves) else 14.0)

    def at(x: float, y: float) -> tuple[float, float]:
        return left + (right - left) * x, bottom - (bottom - top) * y

    content = []
    for y, label in up:
        height = at(0, y)[1]
        content.append(node("path", class_="rule", d=f"M{_shown(left)} {_shown(height)}H{_shown(right)}"))
        content.append(_text(left - 6, height + 4, label, "quiet", "end"))
    for number, (x, label) in enumerate(across):
        content.append(_text(at(x, 0)[0], bottom + 16 + 14 * (number % 2), label, "quiet", "middle"))
    lowest = bottom + 12
    for curve in sorted(curves, key=lambda curve: curve.points[-1][1]):
        places = [(_shown(x), _shown(y)) for x, y in (at(*point) for point in curve.points)]
        if curve.is_stepped:
            path = f"M{_shown(left)} {_shown(bottom)}{''.join(f'H{x}V{y}' for x, y in places)}H{_shown(right)}"
        else:
            path = "M" + "L".join(f"{x} {y}" for x, y in places)
        content.append(node("path", node("title", curve.name), d=path, **curve.look))
        if curve.end:
            lowest = min(lowest - 12, at(*curve.points[-1])[1])  # labels stand apart
            kind = str(curve.look["class_"]).removeprefix("curve ")
            content.append(_text(right + 6, lowest + 4, curve.end, f"quiet {kind}"))
    content.append(_text(right, bottom + 46, words, "quiet", "end"))
    for number, curve in enumerate(curves):
        x, y = 8 + WIDTH / 2 * (number % 2), bottom + 66 + 18 * (number // 2)
        content.append(node("path", d=f"M{_shown(x)} {_shown(y - 4)}h26", **curve.look))
        content.append(_text(x + 32, y, curve.name, "quiet"))
    return _picture(WIDTH, bottom + 56 + 18 * ((len(curves) + 1) // 2), title, description, *content)


def variants_picture(entries: Sequence[dict[str, Any]]) -> Markup:
    """Curves of the entries after each step, one for each reading and form of the rules.

    The axis of the entries is logarithmic.

    entries : the facts' `entries`.
    """
    ticks = ladder(*(choose(max(1, entry[s]) for entry in entries for s in STEP_LABELS) for choose in (min, max)))
    up = [(_logarithmic(tick, ticks), f"{tick:,}") for tick in ticks]
    across = [(number / (len(STEP_LABELS) - 1), step) for number, step in enumerate(STEP_LABELS)]
    curves = [
        Curve(
            f"{entry['reading']}, {RULES_LABELS[entry['rules']]}",
            {"class_": f"curve {entry['reading']} {entry['rules']}"},
            [(x, _logarithmic(entry[step], ticks)) for x, step in across],
            end=f"{entry['exact']:,}",
        )
        for entry in entries
    ]
    parts = zip(curves, entries, strict=True)
    description = "; ".join(f"{curve.name}: {e['original']:,} to {e['exact']:,}" for curve, e in parts)
    return _chart("Entries by reading and form of the rules", description, curves, across, up)


def cumulative_picture(
    before: Sequence[int], after: Sequence[int], between: Mapping[str, Sequence[int]] | None = None
) -> Markup:
    """The share of lexer states with at most n entries, over a logarithmic axis of n.

    before, after : (n_states,) entries of each lexer state, originally and streamlined.
    between : streamlining step -> the same after this step, for steps to draw besides, in order.
    """
    steps = {} if between is None else between
    ticks = ladder(1, max(2, *before, *after))
    labelled = [tick for tick in ticks if len(ticks) < 10 or f"{tick}"[0] == "1"]
    drawn = {"original": before, **{STEP_LABELS[step]: values for step, values in steps.items()}, "streamlined": after}
    curves = []
    for number, (name, values) in enumerate(drawn.items()):
        look: dict[str, str | float] = {"class_": "curve after" if number else "curve before"}
        if 0 < number <= len(steps):
            look |= {"stroke_opacity": round(number / (len(steps) + 1), 2), "stroke_dasharray": "4 2"}
        done = {value: n / len(values) for n, value in enumerate(sorted(values), start=1)}
        points = [(_logarithmic(value, ticks), share) for value, share in done.items()]
        curves.append(Curve(name, look, points, is_stepped=True))
    description = "; ".join(
        f"{name}: {sum(value <= tick for value in values)} of {len(values)} states have at most {tick} entries"
        for name, values in drawn.items()
        for tick in labelled
    )
    across = [(_logarithmic(tick, ticks), f"{tick:,}") for tick in labelled]
    up = [(share / 100, f"{share} %") for share in (0, 25, 50, 75, 100)]
    title, words = "Cumulative distribution of entries over lexer states", "a lexer state has at most so many entries"
    return _chart(title, description, curves, across, up, words)


def _logarithmic(value: int, ticks: Sequence[int]) -> float:
    """Where a number stands between the first and the last tick of a logarithmic axis; 0 as 1."""
    return math.log(max(1, value) / ticks[0]) / math.log(ticks[-1] / ticks[0])


def matrix_picture(pairs: dict[str, Any], texts: Sequence[str]) -> Markup:
    """The matrix of the verdicts on pairs of terminals.

    A row is the left terminal; the last row is the start of the text. A column is the right
    terminal. Neighbouring cells with the same verdict are drawn as one line. Each row has a tooltip
    that says it in words. At most MATRIX_LIMIT terminals are drawn.

    pairs : the facts' `pairs`.
    texts : (n_terminals,) the spelling of each terminal.
    """
    matrix, live = pairs["matrix"], pairs["live"]
    kept = most_active(matrix, MATRIX_LIMIT)
    names = [texts[live[i]] for i in kept]
    size = max(3, min(16, 900 // max(1, len(kept))))
    named = size >= 7  # names in smaller letters could not be read
    left, top = (92, 78) if named else (4, 4)
    width, gap, letters = size * len(kept), max(2, size // 3), min(11, size - 0.5)
    style = f"font-size:{letters}px"
    content = [node("rect", class_="never", x=left, y=top, width=width, height=width)]
    for index, name in enumerate(names if named else ()):
        x = left + size * index + size / 2 + 0.36 * letters
        turn = f"rotate(-90 {_shown(x)} {top - 5})"
        content.append(_text(x, top - 5, shortened(name, 12), transform=turn, style=style))
    for index, row in enumerate([*kept, len(live)]):
        cells = "".join(matrix[row][i] for i in kept)
        name = names[index] if index < len(kept) else "start of text"
        y = top + size * index + (gap if index == len(kept) else 0)
        parts = [node("title", row_words(name, cells, names))]
        if index == len(kept):
            parts.append(node("rect", class_="never", x=left, y=y, width=width, height=size))
        for verdict in (1, 2):
            if str(verdict) in cells:
                runs = _runs(cells, str(verdict), left, y + size / 2, size)
                parts.append(node("path", class_=f"run {VERDICTS[verdict]}", d=runs, stroke_width=size))
        parts.append(node("rect", class_="hit", x=left, y=y, width=width, height=size))
        if named:
            parts.append(_text(left - 5, y + size / 2 + 0.36 * letters, shortened(name, 14), anchor="end", style=style))
        content.append(node("g", *parts, class_="row", data_name=name, data_cells=cells))
    height, full = top + width + gap + size, left + width + 4
    if named:
        lines = [f"M{left + size * i} {top}V{height}M{left} {top + size * i}h{width}" for i in range(1, len(kept))]
        content.append(node("path", class_="grid", d="".join(lines)))
    rows, columns = "(left terminal, or the start of the text)", f"{len(kept)} columns (right terminal)"
    attributes: dict[str, str | float] = {
        "class_": "matrix",
        "style": f"max-width:{full}px;min-width:{min(480, full)}px",
        "data_left": left,
        "data_size": size,
        "data_names": json.dumps(names, ensure_ascii=False),
    }
    description = f"{len(kept) + 1} rows {rows} by {columns}"
    return _picture(full, height + 2, "Which terminal can follow which", description, *content, **attributes)


def most_active(matrix: Sequence[str], limit: int) -> list[int]:
    """The numbers of the columns to draw, ascending: those with most pairs that are not "never".

    matrix : (n + 1,) strings of n digits, as in the facts' `pairs`.
    limit : most columns to draw.
    """
    n = len(matrix) - 1
    activity = [n - matrix[i].count("0") + sum(row[i] != "0" for row in matrix) for i in range(n)]
    return sorted(sorted(range(n), key=lambda i: (-activity[i], i))[:limit])


def row_words(name: str, cells: str, names: Sequence[str], limit: int = 40) -> str:
    """A row of the matrix in words; each list is cut after `limit` names.

    name : the left terminal.
    cells : (n,) the digits of the row.
    names : (n,) the right terminals.

    >>> row_words("DEF", "010", ["DEF", "NAME", "COLON"])
    'after DEF sometimes: NAME; never the other 2'
    """
    parts = []
    for verdict in (2, 1):
        found = [other for other, cell in zip(names, cells, strict=True) if cell == str(verdict)]
        if found:
            more = f" and {len(found) - limit} more" if len(found) > limit else ""
            parts.append(f"{VERDICTS[verdict]}: {', '.join(shortened(other, 24) for other in found[:limit])}{more}")
    return f"after {name} " + "; ".join([*parts, f"never the other {cells.count('0')}"])


def _runs(cells: str, verdict: str, left: float, middle: float, size: float) -> str:
    """The SVG path along the middle of a matrix row, over the cells with one verdict.

    Its stroke must be as wide as a cell.
    """
    moves, end = [f"M{_shown(left)} {_shown(middle)}"], 0
    for match in re.finditer(f"{verdict}+", cells):
        moves.append(f"m{_shown(size * (match.start() - end))} 0h{_shown(size * (match.end() - match.start()))}")
        end = match.end()
    return "".join(moves)
