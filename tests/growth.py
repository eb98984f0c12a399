"""How fast costs grow: for tests that something takes time in proportion to its size."""

from __future__ import annotations

import gc
from collections.abc import Callable


def growth(cost: Callable[[int], float], n: int, rounds: int = 4) -> float:
    """How many times as much 2 n costs as n. cost : a number -> CPU seconds.

    Of each the least of some rounds counts, taken in turn: whatever else the machine does can only add to it. Python's collector
    is off, since it walks all that the tests before have left; so what grows by its work alone is not seen.
    """
    gc.collect()
    gc.disable()
    try:
        pairs = [(cost(n), cost(2 * n)) for _ in range(rounds)]
    finally:
        gc.enable()
    small, large = (min(column) for column in zip(*pairs, strict=True))
    return large / small
