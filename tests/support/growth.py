"""How fast costs grow: for tests that something takes time in proportion to its size."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable

CLEARLY_LINEAR = 2.2
"""Times as much for twice the size: so little after two rounds is not looked at again. What is quadratic costs 4 times as much."""


def growth(cost: Callable[[int], float], n: int, rounds: int = 8) -> float:
    """How many times as much something costs for twice the size, between n and 4 n. cost : a number -> CPU seconds.

    That is the square root of the cost of 4 n over that of n: a machine that is slow for a moment weighs half as much as it would
    between n and 2 n. Of each the least of two rounds or some more counts, taken in turn, since whatever else the machine does can
    only add to it. Python's collector is off, since it walks all that the tests before have left; so what grows by its work alone is
    not seen.
    """
    gc.collect()
    gc.disable()
    try:
        small = large = ratio = math.inf
        for number in range(rounds):
            small, large = min(small, cost(n)), min(large, cost(4 * n))
            ratio = math.sqrt(large / small)
            if number > 0 and ratio < CLEARLY_LINEAR:
                break
    finally:
        gc.enable()
    return ratio
