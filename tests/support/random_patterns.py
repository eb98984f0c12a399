"""Regular expressions at random, as texts."""

from __future__ import annotations

import random
from collections.abc import Sequence

REPEATS = ("*", "+", "?", "{1,2}", "{2}", "{0,3}", "{1,}")


def random_pattern(
    rng: random.Random,
    depth: int,
    singles: Sequence[str],
    repeats: Sequence[str] = REPEATS,
    around: Sequence[str] = ("({})",),
) -> str:
    """A pattern of groups that are nested at most `depth` deep.

    singles : patterns for one character.
    repeats : quantifiers, of groups.
    around : with {} where any pattern may stand.
    """
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(singles)
    one, other = (random_pattern(rng, depth - 1, singles, repeats, around) for _ in range(2))
    if kind < 0.55:
        return one + other
    if kind < 0.7:
        return f"({one}|{other})"
    if kind < 0.9:
        return f"({one}){rng.choice(repeats)}"
    return rng.choice(around).format(one)
