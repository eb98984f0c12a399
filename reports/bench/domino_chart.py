"""The picture of the record that domino.py writes: speed and passes by the tokens that are put ahead, beside the paper's best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from selective_chart import sheet

from maskwright.report.svg import Markup, node

PAPER = 1.7
"""The paper's best: so many times as fast as no masks, with counts, on JSON with a schema, on a GPU; at second hand (docs/sources.md)."""
COLOURS = ("#5c6670", "#0b6e4f", "#2b59c3", "#c1440e", "#7b3fa0", "#8a6d3b")
STYLE = """text { font: 12px system-ui, sans-serif; fill: #222; } .quiet { fill: #666; font-size: 11px; } .title { font-weight: 600; }
.rule { stroke: #ddd; fill: none; } .curve { fill: none; stroke-width: 2; } .paper { stroke: #222; stroke-dasharray: 5 4; }"""
TITLES = {
    "bundled": "the bundled model",
    "int8": "24 layers, weights of a byte",
    "float32": "24 layers, float32",
}


def picture(models: dict[str, Any], speculated: Sequence[int], foot: str) -> str:
    """A panel for each model: speed relative to no masks by s; and one of the passes a token with the last model."""
    width, height, top = 460.0, 270.0, 64.0
    *_, last = models
    panels = [
        panel(f"{TITLES[name]}: speed relative to no masks", found, speculated, "speed")
        for name, found in models.items()
    ]
    panels.append(panel(f"{TITLES[last]}: passes of the model a token", models[last], speculated, "calls_a_token"))
    full = top + height * len(panels) + 24
    legend = [part for i, grammar in enumerate(models[last]) for part in named(i, grammar)]
    placed = [node("g", one, transform=f"translate(0 {top + height * i:g})") for i, one in enumerate(panels)]
    title = "Domino's grammars: speed by the number of tokens that counts put ahead"
    return sheet(title, STYLE, width, full, [*legend, *placed], foot)


def named(number: int, grammar: str) -> list[Markup]:
    """A grammar's entry in the legend."""
    x, y = 14 + 150 * (number % 3), 22 + 20 * (number // 3)
    return [
        node("path", class_="curve", stroke=COLOURS[number], d=f"M{x} {y}h14"),
        node("text", grammar, class_="quiet", x=x + 18, y=y + 4),
    ]


def panel(title: str, found: dict[str, Any], speculated: Sequence[int], key: str) -> Markup:
    """A line for each grammar: masks alone, then counts by s."""
    left, right, top, bottom = 46.0, 440.0, 30.0, 222.0
    lines = {
        grammar: [ways["masks"][key], *(ways[f"counts, s = {s}"][key] for s in speculated)]
        for grammar, ways in found.items()
    }
    most = max([PAPER if key == "speed" else 1.0, *(value for line in lines.values() for value in line)])
    step = 0.5 if most <= 4 else 1.0 if most <= 8 else 4.0
    n_ticks = int(most / step) + 1

    def at(number: int, value: float) -> tuple[float, float]:
        return left + (right - left) * number / len(speculated), bottom - (bottom - top) * value / (n_ticks * step)

    parts = [node("text", title, class_="title", x=14, y=14)]
    for tick in range(n_ticks + 1):
        y = at(0, tick * step)[1]
        parts.append(node("path", class_="rule", d=f"M{left} {y:.1f}H{right}"))
        parts.append(node("text", f"{tick * step:g}", class_="quiet", x=left - 6, y=y + 4, text_anchor="end"))
    for number, name in enumerate(("masks", *map(str, speculated))):
        parts.append(node("text", name, class_="quiet", x=at(number, 0)[0], y=bottom + 16, text_anchor="middle"))
    parts.append(node("text", "s, tokens ahead", class_="quiet", x=right, y=bottom + 32, text_anchor="end"))
    if key == "speed":
        y = at(0, PAPER)[1]
        parts.append(node("path", class_="paper", d=f"M{left} {y:.1f}H{right}"))
        parts.append(node("text", f"the paper's best, {PAPER:g}", class_="quiet", x=left + 4, y=y - 4))
    for colour, (grammar, line) in zip(COLOURS, lines.items(), strict=False):
        points = "L".join("{:.1f} {:.1f}".format(*at(number, value)) for number, value in enumerate(line))
        parts.append(node("path", node("title", grammar), class_="curve", stroke=colour, d=f"M{points}"))
    return Markup("".join(parts))
