"""The GPU benchmark's two pictures: kernels over batch sizes, and decoding loops' overhead. In: the record's facts. Out: SVG documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from peers.chart import HEIGHT, STYLE, TOP, WIDTH

COLOURS = {
    "pass": "#5c6670",
    "unconstrained": "#5c6670",
    "ours rows": "#0b6e4f",
    "ours words": "#58a68a",
    "resident rows": "#58a68a",
    "GpuBatch": "#0b6e4f",
    "GpuBatch, forked": "#12b886",
    "xgrammar": "#2b59c3",
    "xgrammar triton": "#2b59c3",
    "xgrammar cuda": "#7b9be8",
    "xgrammar cpu": "#2b59c3",
    "llguidance": "#c1440e",
}
LEFT = 66.0


@dataclass(frozen=True)
class Panel:
    """curves : name -> (batch, value > 0), by batch. Both axes are logarithmic."""

    title: str
    unit: str
    curves: Mapping[str, Sequence[tuple[int, float]]]


def _draw(panel: Panel, x: float, y: float) -> str:
    right, bottom = WIDTH - 14, HEIGHT - 40
    points = [point for curve in panel.curves.values() for point in curve]
    batches = sorted({batch for batch, _ in points})
    low = math.floor(math.log10(min(value for _, value in points)))
    high = max(low + 1, math.ceil(math.log10(max(value for _, value in points))))
    span = math.log2(batches[-1] / batches[0]) or 1.0

    def across(batch: int) -> float:
        return LEFT + (right - LEFT) * math.log2(batch / batches[0]) / span

    def up(value: float) -> float:
        return bottom - (bottom - TOP) * (math.log10(value) - low) / (high - low)

    parts = [
        f'<g transform="translate({x:g} {y:g})"><text class="title" x="{LEFT:g}" y="16">{escape(panel.title)}</text>'
    ]
    for power in range(low, high + 1):
        at = up(10.0**power)
        parts.append(f'<path class="rule" d="M{LEFT:g} {at:.1f}H{right:g}"/>')
        label = escape(f"{10.0**power:g} {panel.unit}")
        parts.append(f'<text class="quiet" x="{LEFT - 6:g}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    for batch in batches:
        parts.append(f'<path class="rule" d="M{across(batch):.1f} {TOP:g}V{bottom:g}"/>')
        parts.append(
            f'<text class="quiet" x="{across(batch):.1f}" y="{bottom + 15:g}" text-anchor="middle">{batch}</text>'
        )
    for name, curve in panel.curves.items():
        path = "L".join(f"{across(batch):.1f} {up(value):.1f}" for batch, value in curve)
        label = f"{name}: " + "; ".join(f"batch {batch}: {value:g} {panel.unit}" for batch, value in curve)
        # a curve of one point is drawn as a dot
        more = ' style="stroke-linecap:round;stroke-width:6"' if len(curve) == 1 else ""
        path += "h0" if len(curve) == 1 else ""
        colour = COLOURS.get(name, "#8a6d3b")
        parts.append(f'<path class="curve" stroke="{colour}"{more} d="M{path}"><title>{escape(label)}</title></path>')
    parts.append(
        f'<text class="quiet" x="{right:g}" y="{bottom + 31:g}" text-anchor="end">sequences in the batch</text></g>'
    )
    return "".join(parts)


def picture(panels: Sequence[Panel], description: str, foot: str) -> str:
    """An SVG document, two panels a row."""
    kept = [panel for panel in panels if any(panel.curves.values())]
    rows = (len(kept) + 1) // 2
    width, height = 2 * WIDTH, rows * HEIGHT + 60
    names = [name for name in COLOURS if any(panel.curves.get(name) for panel in kept)]
    step = (width - 20) / max(5, len(names))
    legend = [
        f'<path class="curve" stroke="{COLOURS[name]}" d="M{20 + step * i:g} 20h24"/>'
        f'<text x="{50 + step * i:g}" y="24">{escape(name)}</text>'
        for i, name in enumerate(names)
    ]
    drawn = [_draw(panel, WIDTH * (i % 2), 36 + HEIGHT * (i // 2)) for i, panel in enumerate(kept)]
    text = f'<text class="quiet" x="20" y="{height - 8:g}">{escape(foot)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"><title>{escape(description)}</title>'
        f'<style>{STYLE}</style><rect width="{width:g}" height="{height:g}" fill="#fff"/>{"".join(legend)}{"".join(drawn)}{text}</svg>\n'
    )


def apply_panels(facts: Mapping[str, Any]) -> list[Panel]:
    """Real rows: a panel for each width and dtype. facts : what `gpu_apply.measure` found."""
    shapes = [shape for shape in facts["shapes"] if shape["rows"] == "real"]
    panels = []
    for columns, dtype in sorted({(shape["columns"], shape["dtype"]) for shape in shapes}):
        curves: dict[str, list[tuple[int, float]]] = {}
        for shape in sorted(shapes, key=lambda shape: shape["batch"]):
            if (shape["columns"], shape["dtype"]) == (columns, dtype):
                for name, candidate in shape["candidates"].items():
                    if "us" in candidate:
                        curves.setdefault(name, []).append((shape["batch"], candidate["us"]["median"]))
        panels.append(Panel(f"V = {columns:,}, {dtype}", "us", curves))
    return panels


def decode_panels(facts: Mapping[str, Any]) -> list[Panel]:
    """Overhead, at least 0.01 %: a panel for each piece of work. facts : what `gpu_decode.measure` found."""
    panels = []
    for cell in facts["cells"]:
        curves: dict[str, list[tuple[int, float]]] = {}
        for batch in sorted(cell["batches"], key=lambda batch: batch["batch"]):
            for name, loop in batch["loops"].items():
                if name != "unconstrained" and "overhead_percent" in loop:
                    value = max(0.01, loop["overhead_percent"]["median"])
                    curves.setdefault(name, []).append((batch["batch"], value))
        panels.append(Panel(f"{cell['work']}, {cell['tokenizer']}: over unconstrained", "%", curves))
    return panels
