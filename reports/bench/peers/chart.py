"""The benchmark's picture: for each piece of work, the share of steps that take at most so long, one curve an engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from peers.summary import CURVE

COLOURS = {
    "ours": "#0b6e4f",
    "llguidance": "#c1440e",
    "xgrammar": "#2b59c3",
    "glrmask": "#c2185b",
    "outlines": "#8a6d3b",
    "kbnf": "#7b3fa0",
    "syncode": "#5c6670",
}
STYLE = """text { font: 12px system-ui, sans-serif; fill: #222; } .quiet { fill: #666; font-size: 11px; }
.rule { stroke: #ddd; fill: none; } .curve { fill: none; stroke-width: 2; } .title { font-weight: 600; }"""
WIDTH, HEIGHT, LEFT, TOP = 460.0, 250.0, 46.0, 34.0
LOW, HIGH = -1, 7  # powers of ten, in us


def _across(value: float) -> float:
    return LEFT + (WIDTH - LEFT - 14) * (math.log10(max(value, 10**LOW)) - LOW) / (HIGH - LOW)


def _panel(cell: dict[str, Any], x: float, y: float) -> str:
    bottom = HEIGHT - 40
    parts = [f'<g transform="translate({x:g} {y:g})">']
    parts.append(f'<text class="title" x="{LEFT:g}" y="16">{escape(cell["work"])}, V = {cell["vocabulary"]:,}</text>')
    for share in (0, 25, 50, 75, 100):
        at = bottom - (bottom - TOP) * share / 100
        parts.append(f'<path class="rule" d="M{LEFT:g} {at:g}H{WIDTH - 14:g}"/>')
        parts.append(f'<text class="quiet" x="{LEFT - 6:g}" y="{at + 4:g}" text-anchor="end">{share} %</text>')
    for power, name in zip(
        range(LOW, HIGH + 1), ("0.1", "1", "10", "100 us", "1 ms", "10", "100", "1 s", "10"), strict=True
    ):
        at = _across(10.0**power)
        parts.append(f'<path class="rule" d="M{at:g} {TOP:g}V{bottom:g}"/>')
        parts.append(f'<text class="quiet" x="{at:g}" y="{bottom + 15:g}" text-anchor="middle">{name}</text>')
    for name, engine in cell["engines"].items():
        if curve := engine.get("curve_us"):
            points = "L".join(
                f"{_across(value):.1f} {bottom - (bottom - TOP) * share / 100:.1f}"
                for share, value in zip(CURVE, curve, strict=True)
            )
            label = f"{name}: median {engine['both_us']['p50']:g} us, 99 % {engine['both_us']['p99']:g} us"
            parts.append(
                f'<path class="curve" stroke="{COLOURS[name]}" d="M{points}"><title>{escape(label)}</title></path>'
            )
    parts.append(
        f'<text class="quiet" x="{WIDTH - 14:g}" y="{bottom + 31:g}" text-anchor="end">mask + advance takes at most</text></g>'
    )
    return "".join(parts)


def picture(cells: Sequence[dict[str, Any]], date: str, cpu: str) -> str:
    """An SVG document. cells : the record's `cells`."""
    rows = (len(cells) + 1) // 2
    width, height = 2 * WIDTH, rows * HEIGHT + 60
    names = [name for name in COLOURS if any(cell["engines"].get(name, {}).get("curve_us") for cell in cells)]
    legend = [
        f'<path class="curve" stroke="{COLOURS[name]}" d="M{20 + 130 * i} 20h24"/><text x="{50 + 130 * i}" y="24">{name}</text>'
        for i, name in enumerate(names)
    ]
    panels = [_panel(cell, WIDTH * (i % 2), 36 + HEIGHT * (i // 2)) for i, cell in enumerate(cells)]
    foot = f'<text class="quiet" x="20" y="{height - 8:g}">{escape(f"{date}, one core of {cpu}; batch size 1")}</text>'
    description = "Share of steps by time of mask and advance, one curve for each engine"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"><title>{description}</title>'
        f'<style>{STYLE}</style><rect width="{width:g}" height="{height:g}" fill="#fff"/>{"".join(legend)}{"".join(panels)}{foot}</svg>\n'
    )
