"""Draws the report's pictures as SVG, one function for each. In: numbers of the facts. Out: markup.

Only `node` makes markup. It escapes everything that is not `Markup` already, so no text of a
grammar can become a tag. The elements of a picture have classes. `PICTURE_STYLE` gives them colours
from the page's variables, in light and dark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

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

PICTURE_STYLE = """
svg { display: block; width: 100%; height: auto; font-family: inherit; }
svg text { fill: var(--ink); font-size: 12px; font-variant-numeric: tabular-nums; }
svg .quiet { fill: var(--soft); font-size: 11px; }
svg .small { fill: var(--soft); font-size: 9px; }
svg .axis { stroke: var(--soft); fill: none; }
svg .rule { stroke: var(--line); fill: none; }
svg .before { fill: var(--before); } svg .after { fill: var(--after); } svg .gone { fill: var(--gone); }
svg path.curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .curve.before, svg .curve.post { stroke: var(--before); }
svg .curve.after, svg .curve.sound { stroke: var(--after); }
svg .curve.lark { stroke-dasharray: 5 4; }
svg text.post { fill: var(--before-ink); } svg text.sound { fill: var(--after-ink); }
svg .never { fill: var(--never); } svg .run { fill: none; }
svg .sometimes { stroke: var(--sometimes); } svg .always { stroke: var(--always); }
svg .grid { stroke: var(--paper); stroke-width: .7; fill: none; pointer-events: none; }
@media (max-width: 30rem) { svg text { font-size: 13.5px; } svg .quiet { font-size: 12px; } }
svg .hit { fill: transparent; } svg .row:hover .hit { fill: var(--hover); }
"""


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


def _line(class_: str, x: float, y: float, to_x: float, to_y: float) -> Markup:
    return node("path", class_=class_, d=f"M{_shown(x)} {_shown(y)}L{_shown(to_x)} {_shown(to_y)}")


def steps_picture(entry: dict[str, Any]) -> Markup:
    """Bars of the entries left after each step, each followed by what the step removed.

    entry : a member of the facts' `entries`.
    """
    steps = [step for step in STEP_LABELS if step != "ignored" or entry["ignored"] != entry["original"]]
    largest = max(1, entry["original"])
    content: list[Markup] = []
    previous = entry["original"]
    for index, step in enumerate(steps):
        left, y = entry[step], 16 + 36 * index
        removed = f"  −{previous - left:,}" if previous > left else "  −0" if index else ""
        width, gone = WIDTH * left / largest, WIDTH * (previous - left) / largest
        content += [
            _text(0, y, STEP_LABELS[step]),
            _text(WIDTH, y, f"{left:,}", anchor="end", font_weight="600"),
            _text(WIDTH - 58, y, removed.strip(), "quiet", "end"),
            node("rect", class_="gone", x=width, y=y + 6, width=gone, height=11),
            node("rect", class_="before" if index == 0 else "after", x=0, y=y + 6, width=width, height=11),
        ]
        previous = left
    description = "; ".join(f"{STEP_LABELS[step]}: {entry[step]:,}" for step in steps)
    return _picture(WIDTH, 36 * len(steps) + 4, "Entries left after each step", description, *content)


def variants_picture(entries: Sequence[dict[str, Any]]) -> Markup:
    """Curves of the entries after each step, one for each reading and form of the rules.

    The axis of the entries is logarithmic.

    entries : the facts' `entries`.
    """
    values = [max(1, entry[step]) for entry in entries for step in STEP_LABELS]
    ticks = ladder(min(values), max(values))
    left, right, top, bottom = 60.0, WIDTH - 50.0, 10.0, 232.0
    low, high = math.log(ticks[0]), math.log(ticks[-1])

    def at(value: int) -> float:
        return bottom - (bottom - top) * (math.log(max(1, value)) - low) / (high - low)

    xs = [left + (right - left) * i / (len(STEP_LABELS) - 1) for i in range(len(STEP_LABELS))]
    content = [_line("rule", left, at(tick), right, at(tick)) for tick in ticks]
    content += [_text(left - 6, at(tick) + 4, f"{tick:,}", "quiet", "end") for tick in ticks]
    # labels are on two lines in turn, since neighbours would overlap on a phone
    content += [
        _text(x, bottom + 16 + 14 * (i % 2), step, "quiet", "middle")
        for i, (x, step) in enumerate(zip(xs, STEP_LABELS, strict=True))
    ]
    lowest = bottom
    for entry in sorted(entries, key=lambda entry: int(entry["exact"])):
        name = f"{entry['reading']} reading, {RULES_LABELS[entry['rules']]}"
        points = "L".join(f"{_shown(x)} {_shown(at(entry[s]))}" for x, s in zip(xs, STEP_LABELS, strict=True))
        content.append(
            node("path", node("title", name), class_=f"curve {entry['reading']} {entry['rules']}", d=f"M{points}")
        )
        lowest = min(lowest, at(entry["exact"])) if lowest == bottom else min(lowest - 12, at(entry["exact"]))
        content.append(_text(right + 6, lowest + 4, f"{entry['exact']:,}", f"quiet {entry['reading']}"))
    for index, entry in enumerate(entries):
        x, y = (20 if index % 2 == 0 else WIDTH / 2 + 10), bottom + 56 + 18 * (index // 2)
        content.append(_line(f"curve {entry['reading']} {entry['rules']}", x, y - 4, x + 26, y - 4))
        content.append(_text(x + 32, y, f"{entry['reading']}, {RULES_LABELS[entry['rules']]}", "quiet"))
    description = "; ".join(
        f"{e['reading']}, {RULES_LABELS[e['rules']]}: {e['original']:,} to {e['exact']:,}" for e in entries
    )
    height = bottom + 46 + 18 * ((len(entries) + 1) // 2)
    return _picture(WIDTH, height, "Entries by reading and form of the rules", description, *content)


def power_bins(values: Iterable[int]) -> list[tuple[int, int]]:
    """The bins 0, 1, 2-3, 4-7, ... that hold all values, each as its first and last value.

    values : integers >= 0. The bin of 0 is left out if no value is 0.

    >>> power_bins([1, 5])
    [(1, 1), (2, 3), (4, 7)]
    """
    found = list(values)
    bins = [(1 << power, (2 << power) - 1) for power in range(max(1, max(found, default=1).bit_length()))]
    return [(0, 0), *bins] if 0 in found else bins


def histogram_picture(before: Sequence[int], after: Sequence[int]) -> Markup:
    """A histogram of the lexer states by number of entries, in bins that double in width.

    before, after : (n_states,) entries of each lexer state, originally and streamlined.
    """
    bins = power_bins([*before, *after])
    counts = [[sum(low <= value <= high for value in values) for low, high in bins] for values in (before, after)]
    most = max(1, *map(max, counts))
    left, top, bottom = 8.0, 34.0, 236.0
    step = (WIDTH - 2 * left) / len(bins)
    content = [_line("axis", left, bottom, WIDTH - left, bottom)]
    for index, (low, high) in enumerate(bins):
        x = left + step * index
        where = f"{low:,} to {high:,} entries" if high > low else f"{low} entries"
        content.append(_text(x + step / 2, bottom + 15, f"{low}" if high == low else f"{low}–", "quiet", "middle"))
        for side, (class_, values) in enumerate(zip(("before", "after"), counts, strict=True)):
            height = (bottom - top) * values[index] / most
            bar_x = x + step * (0.08 + 0.42 * side)
            label = node("title", f"{where}: {values[index]:,} states {class_}")
            bar = {"x": bar_x, "y": bottom - height, "width": step * 0.42, "height": height}
            content.append(node("rect", label, class_=class_, **bar))
            if values[index]:
                content.append(_text(bar_x + step * 0.21, bottom - height - 3, f"{values[index]}", "small", "middle"))
    content += [*_legend(), _text(WIDTH - left, bottom + 31, "entries of a lexer state, from", "quiet", "end")]
    parts = zip(bins, *counts, strict=True)
    description = "; ".join(f"from {low} entries: {b} states before, {a} after" for (low, _), b, a in parts)
    return _picture(WIDTH, bottom + 38, "Lexer states by number of entries", description, *content)


def _legend() -> list[Markup]:
    names = {"before": "original", "after": "streamlined"}
    content = []
    for index, (class_, name) in enumerate(names.items()):
        x = 8 + 90 * index
        content += [node("rect", class_=class_, x=x, y=3, width=11, height=11), _text(x + 17, 13, name)]
    return content


def cumulative_picture(
    before: Sequence[int], after: Sequence[int], between: Mapping[str, Sequence[int]] | None = None
) -> Markup:
    """The share of lexer states with at most n entries, over a logarithmic axis of n.

    before, after : (n_states,) entries of each lexer state, originally and streamlined.
    between : streamlining step -> the same after this step, for steps to draw besides, in order.
    """
    steps = dict(between or {})
    left, right, top, bottom = 46.0, WIDTH - 14.0, 34.0, 236.0
    ticks = ladder(1, max(2, *before, *after))
    span = math.log(ticks[-1])

    def across(value: int) -> float:
        return left + (right - left) * math.log(max(1, value)) / span

    content = []
    for share in (0, 25, 50, 75, 100):
        y = bottom - (bottom - top) * share / 100
        content += [_line("rule", left, y, right, y), _text(left - 6, y + 4, f"{share} %", "quiet", "end")]
    labelled = [tick for tick in ticks if len(ticks) < 10 or f"{tick}"[0] == "1"]
    content += [_text(across(tick), bottom + 15, f"{tick:,}", "quiet", "middle") for tick in labelled]
    shades = {step: round((number + 1) / (len(steps) + 1), 2) for number, step in enumerate(steps)}
    for class_, values in (("before", before), *steps.items(), ("after", after)):
        points, done = [f"M{_shown(left)} {_shown(bottom)}"], 0
        ordered = sorted(values)
        for index, value in enumerate(ordered):
            if index + 1 == len(ordered) or ordered[index + 1] != value:
                done = index + 1
                height = bottom - (bottom - top) * done / len(ordered)
                points.append(f"H{_shown(across(value))}V{_shown(height)}")
        look: dict[str, str | float] = {"class_": f"curve {class_}", "d": "".join(points) + f"H{_shown(right)}"}
        if class_ in steps:
            look |= {"class_": "curve after", "stroke_opacity": shades[class_], "stroke_dasharray": "4 2"}
            content.append(node("path", node("title", STEP_LABELS[class_]), **look))
        else:
            content.append(node("path", **look))
    for number, step in enumerate(steps):
        x, y = 8 + WIDTH / 2 * (number % 2), bottom + 54 + 18 * (number // 2)
        content += [
            node(
                "path", class_="curve after", d=f"M{x} {y - 4}h26", stroke_opacity=shades[step], stroke_dasharray="4 2"
            ),
            _text(x + 32, y, STEP_LABELS[step], "quiet"),
        ]
    content += [*_legend(), _text(right, bottom + 31, "a lexer state has at most so many entries", "quiet", "end")]
    description = "; ".join(
        f"{name}: {sum(value <= tick for value in values)} of {len(values)} states have at most {tick} entries"
        for name, values in (("original", before), *steps.items(), ("streamlined", after))
        for tick in labelled
    )
    height = bottom + 38 + (18 * ((len(steps) + 1) // 2) + 4 if steps else 0)
    return _picture(WIDTH, height, "Cumulative distribution of entries over lexer states", description, *content)


def bars_picture(rows: Sequence[tuple[str, float, str]], title: str) -> Markup:
    """Horizontal bars, one below the other.

    rows : for each bar its label, its value >= 0, and the text that shows the value.
    title : the title of the picture.
    """
    left, right = 112.0, WIDTH - 70.0
    largest = max((value for _, value, _ in rows), default=0.0) or 1.0
    content = []
    for index, (label, value, shown) in enumerate(rows):
        y, width = 22 * index, (right - left) * value / largest
        content += [
            _text(left - 8, y + 14, shortened(label, 16), anchor="end"),
            node("rect", class_="after", x=left, y=y + 4, width=width, height=13),
            _text(left + width + 6, y + 14, shown, "quiet"),
        ]
    description = "; ".join(f"{label}: {shown}" for label, _, shown in rows)
    return _picture(WIDTH, 22 * len(rows) + 4, title, description, *content)


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
    description = (
        f"{len(kept) + 1} rows (left terminal, or the start of the text) by {len(kept)} columns (right terminal)"
    )
    attributes: dict[str, str | float] = {
        "class_": "matrix",
        "style": f"max-width:{full}px;min-width:{min(480, full)}px",
        "data_left": left,
        "data_size": size,
        "data_names": json.dumps(names, ensure_ascii=False),
    }
    return _picture(full, height + 2, "Which terminal can follow which", description, *content, **attributes)


def most_active(matrix: Sequence[str], limit: int) -> list[int]:
    """The numbers of the columns to draw, ascending: those with most pairs that are not "never".

    matrix : (n + 1,) strings of n digits, as in the facts' `pairs`.
    limit : most columns to draw.
    """
    n = len(matrix) - 1
    if n <= limit:
        return list(range(n))
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
