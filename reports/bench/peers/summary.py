"""What is made of the times: percentiles, the best of several processes, ratios on the steps of both. Numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.int64]

PERCENTILES = (50, 90, 99, 99.9)
CURVE = (0, *range(1, 100), 99.5, 99.9, 100)
"""Percentiles that the chart is drawn from."""


def spread(times: npt.NDArray[np.int64]) -> dict[str, float]:
    """Percentiles, maximum and mean in us of times in ns."""
    if not len(times):
        return {}
    # of a few values the highest percentile would be the maximum
    kept = [p for p in PERCENTILES if p < 99.9 or len(times) >= 1_000]
    values = {f"p{p:g}": float(v) / 1e3 for p, v in zip(kept, np.percentile(times, kept), strict=True)}
    values |= {"max": float(times.max()) / 1e3, "mean": float(times.mean()) / 1e3}
    return {name: round(value, 3) for name, value in values.items()}


def best_of(tables: Iterable[Table], keys: int) -> Table:
    """The least time of each step over several processes; a step is its first `keys` columns, and steps that not all made are left out.

    The work of a step is the same in every process, so what differs is the machine's doing.
    """
    first, *others = tables
    for other in others:
        n = min(len(first), len(other))
        first, other = first[:n], other[:n]
        if not np.array_equal(first[:, :keys], other[:, :keys]):
            raise ValueError("two processes of one engine made different steps")
        first = np.concatenate([first[:, :keys], np.minimum(first[:, keys:], other[:, keys:])], axis=1)
    return first


def replay_summary(steps: Table, other_advances: npt.NDArray[np.int64]) -> dict[str, Any]:
    mask, advance = steps[:, 2], steps[:, 3]
    both = mask + advance
    curve = [round(float(v) / 1e3, 3) for v in np.percentile(both, CURVE)] if len(both) else []
    return {
        "mask_us": spread(mask),
        "advance_us": spread(np.concatenate([advance, other_advances])),
        "both_us": spread(both),
        "curve_us": curve,
    }


def batch_summary(steps: Table) -> dict[str, Any]:
    """Times of whole steps, all sequences of the batch together."""
    return {
        "mask_us": spread(steps[:, 0]),
        "advance_us": spread(steps[:, 1]),
        "both_us": spread(steps[:, 0] + steps[:, 1]),
    }


def ratio(ours: Table, theirs: Table) -> dict[str, float]:
    """Their mask + advance over ours, on the steps that both made: of the means, and of the medians."""
    times = {(int(d), int(p)): int(m + a) for d, p, m, a in ours}
    pairs = np.array(
        [(times[key], m + a) for d, p, m, a in theirs if (key := (int(d), int(p))) in times], dtype=np.int64
    )
    if not len(pairs):
        return {}
    means, medians = pairs.mean(axis=0), np.median(pairs, axis=0)
    return {
        "steps": len(pairs),
        "of_means": round(float(means[1] / means[0]), 2),
        "of_medians": round(float(medians[1] / medians[0]), 2),
    }
