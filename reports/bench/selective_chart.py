"""The pictures of the record that selective.py writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from maskwright.report.svg import Markup, ladder, node

SHOWN = 120
"""Steps."""
COLOURS = ("#0b6e4f", "#2b59c3", "#c1440e", "#7b3fa0", "#8a6d3b", "#5c6670")
KINDS = {"full": ("full product", " full"), "ours": ("mask and selective product where it pays", "")}
STYLE = """text { font: 12px system-ui, sans-serif; fill: #222; } .quiet { fill: #666; font-size: 11px; }
.rule { stroke: #ddd; fill: none; } .curve { fill: none; stroke-width: 2; } .full { stroke-dasharray: 5 4; } .title { font-weight: 600; }"""


def picture(facts: dict[str, Any], foot: str) -> str:
    """Panels: the last product by number of ids, one colour a batch; for each schema its steps; and the post's four pictures."""
    width, height = 460.0, 270.0
    panels = [head_panel(facts["head"])]
    for panel in (loop_panel, share_panel, violin_panel):
        panels += [panel(name, schema) for name, schema in facts["schemas"].items()]
    full = height * len(panels) + 30
    placed = [node("g", panel, transform=f"translate(0 {height * i:g})") for i, panel in enumerate(panels)]
    title = "Selective multiplication: time of the last product by number of allowed tokens, and step by step"
    return sheet(title, STYLE, width, full, placed, foot)


def sheet(title: str, style: str, width: float, height: float, parts: Iterable[Markup], foot: str) -> str:
    """An SVG document on white paper. foot : a line of small type at its lower end."""
    return node(
        "svg",
        node("title", title),
        node("style", Markup(style)),
        node("rect", width=width, height=height, fill="#fff"),
        *parts,
        node("text", foot, class_="quiet", x=14, y=height - 8),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
    )  # fmt: skip


def frame(title: str, low: float, high: float, across: list[tuple[float, str]], label: str) -> tuple[list[Markup], Any]:
    """Axes of a panel, its vertical one logarithmic in ms; and where a value stands."""
    left, right, top, bottom = 62.0, 446.0, 44.0, 222.0
    ticks = [value / 1e6 for value in ladder(1e6 * low, 1e6 * high)]
    span = np.log(ticks[-1] / ticks[0])

    def up(value: float) -> float:
        return float(bottom - (bottom - top) * np.log(max(value, ticks[0]) / ticks[0]) / span)

    parts = [node("text", title, class_="title", x=14, y=18)]
    for tick in ticks:
        if len(ticks) < 8 or f"{round(1e6 * tick)}"[0] == "1":
            parts.append(node("path", class_="rule", d=f"M{left} {up(tick):.1f}H{right}"))
            parts.append(node("text", f"{tick:g} ms", class_="quiet", x=left - 6, y=up(tick) + 4, text_anchor="end"))
    for share, name in across:
        x = left + (right - left) * share
        parts.append(node("text", name, class_="quiet", x=x, y=bottom + 16, text_anchor="middle"))
    parts.append(node("text", label, class_="quiet", x=right, y=bottom + 32, text_anchor="end"))
    return parts, lambda share, value: f"{left + (right - left) * share:.1f} {up(value):.1f}"


def head_panel(cells: list[dict[str, Any]]) -> Markup:
    times = [ms for cell in cells for _, ms in cell["selective_ms"]] + [cell["full_ms"] for cell in cells]
    most = max(n for cell in cells for n, _ in cell["selective_ms"])
    across = [(np.log(n) / np.log(most), f"{n:,}") for n in (4**i for i in range(9)) if n <= most]
    parts, at = frame("the last product alone", min(times), max(times), across, "allowed tokens of each sequence")
    for i, cell in enumerate(cells):
        name = f"batch {cell['batch']}: crossover {cell['crossover']:,}"
        points = "L".join(at(np.log(n) / np.log(most), ms) for n, ms in cell["selective_ms"])
        parts.append(node("path", node("title", name), class_="curve", stroke=COLOURS[i], d=f"M{points}"))
        flat = f"M{at(0, cell['full_ms'])}L{at(1, cell['full_ms'])}"
        parts.append(
            node("path", node("title", f"full, batch {cell['batch']}"), class_="curve full", stroke=COLOURS[i], d=flat)
        )
        parts.append(node("path", class_="curve", stroke=COLOURS[i], d=f"M{14 + 86 * i} 32h14"))
        parts.append(node("text", f"batch {cell['batch']}", class_="quiet", x=32 + 86 * i, y=36))
    return Markup("".join(parts))


def loop_panel(name: str, facts: dict[str, Any]) -> Markup:
    steps = facts["per_step"]
    times = [ms for _, _, *pair in steps for ms in pair]
    across = [(i / len(steps), f"{i}") for i in range(0, len(steps), 20)]
    share = f"{facts['steps_selected']} of {facts['steps']} steps selected"
    title = f"{name}: {share}, the last product {facts['head_speedup']:.3g}x as fast"
    parts, at = frame(title, min(times), max(times), across, f"step (the first {SHOWN})")
    for column, (shown, extra) in enumerate(KINDS.values(), 2):
        points = "L".join(at(i / len(steps), step[column]) for i, step in enumerate(steps))
        colour, x = COLOURS[4 - column], 14 + 120 * (column - 2)
        parts.append(node("path", class_=f"curve{extra}", stroke=colour, d=f"M{points}"))
        parts.append(node("path", class_=f"curve{extra}", stroke=colour, d=f"M{x} 32h14"))
        parts.append(node("text", shown, class_="quiet", x=x + 18, y=36))
    return Markup("".join(parts))


def legend(parts: list[Markup]) -> list[tuple[str, str]]:
    """Adds what the colours of the full product and of ours are. Returns each name with its colour."""
    found = []
    for i, (name, (shown, _)) in enumerate(KINDS.items()):
        x, colour = 14 + 120 * i, COLOURS[2 - i]
        parts.append(node("circle", cx=x + 7, cy=32, r=4, fill=colour))
        parts.append(node("text", shown, class_="quiet", x=x + 18, y=36))
        found.append((name, colour))
    return found


def share_panel(name: str, facts: dict[str, Any]) -> Markup:
    """A dot for each text: mean time of a token, layers and last product, by the share of tokens with the selective product."""
    texts = [
        (chosen / n, (layers + full) / n, (layers + ours) / n) for n, chosen, layers, full, ours in facts["per_text"]
    ]
    times = [ms for _, *pair in texts for ms in pair]
    across = [(share / 100, f"{share}%") for share in range(0, 101, 20)]
    title = f"{name}: time of a token in each of {len(texts)} texts"
    parts, at = frame(title, min(times), max(times), across, "tokens with the selective product")
    for column, (_, colour) in enumerate(legend(parts), 1):
        for text in texts:
            x, y = at(text[0], text[column]).split(" ")
            parts.append(node("circle", cx=x, cy=y, r=2.5, fill=colour, fill_opacity=0.5))
    return Markup("".join(parts))


def violin_panel(name: str, facts: dict[str, Any]) -> Markup:
    """A violin for each power of two that the number of allowed tokens reaches: times of tokens, the full product's on the left."""
    groups = facts["by_ids"]
    times = [float(ms) for group in groups for kind in KINDS for ms in group[kind]]
    across = [((i + 0.5) / len(groups), f"{group['ids_at_least']:,}") for i, group in enumerate(groups)]
    title = f"{name}: time of a token by number of allowed tokens"
    parts, at = frame(title, min(times), max(times), across, "allowed tokens, at least")
    for kind, colour in legend(parts):
        side = 0.45 / len(groups) * (-1 if kind == "full" else 1)
        for (middle, _), group in zip(across, groups, strict=True):
            most = max(group[kind].values())
            values = [(float(ms), n / most) for ms, n in group[kind].items()]
            # two digits of a time are a bar between its neighbours
            for ms, share in values:
                x, y = (float(part) for part in at(middle, ms).split(" "))
                to = float(at(middle + side * share, ms).split(" ")[0])
                parts.append(node("path", d=f"M{x} {y}H{to:.1f}", stroke=colour, stroke_width=3, fill="none"))
    return Markup("".join(parts))
