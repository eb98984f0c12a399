"""How many strings go on from states of automata, so that a unique array finds new items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.graphs import predecessors
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import column_classes
from maskwright.analysis.schema.lengths import characters

FOR_EVER = (1 << 31) - 1
"""Infinitely many strings, however they go on (`strings_left`)."""
ENDLESS = FOR_EVER - 1
"""Infinitely many strings, of which some beginnings may have finitely many."""


def goes_on_for_ever(automaton: Dfa) -> bool:
    """Whether infinitely many strings begin like each prefix of a string."""
    return bool((strings_left(automaton.next_state, automaton.is_accepting) == FOR_EVER).all())


def strings_left(next_state: npt.NDArray[np.int32], is_end: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """The number of strings that go on from each state of an automaton: (n,) int32.

    next_state : (n, 256) int32; -1 for no transition. Every state can reach one that ends a string.
    is_end : (n,) bool; whether a string ends there, which counts.

    It is `ENDLESS` for infinitely many, and `FOR_EVER` if they are so behind whatever comes. What
    no text can have so many of, from `ENDLESS` on, counts as infinitely many.

    Cost: O(states * classes of bytes).
    """
    classes, columns = column_classes(next_state)
    widths = np.bincount(classes).tolist()
    ways = [
        [(target, width) for target, width in zip(row, widths, strict=True) if target >= 0]
        for row in next_state[:, columns].tolist()
    ]
    after = [{target for target, _ in pairs} for pairs in ways]
    before = predecessors(after)
    waiting = [len(targets) for targets in after]
    order = [state for state, n in enumerate(waiting) if not n]
    found = np.full(len(ways), FOR_EVER, np.int32)
    for state in order:  # grows while it is read; states that reach a cycle never come
        total = int(is_end[state]) + sum([width * int(found[target]) for target, width in ways[state]])
        found[state] = min(total, ENDLESS)
        for one in before[state]:
            waiting[one] -= 1
            if not waiting[one]:
                order.append(one)
    for state in order:  # grows again, by those from which one of these is reached
        for one in before[state]:
            if found[one] == FOR_EVER:
                found[one] = ENDLESS
                order.append(one)
    return found


def least_left(automaton: Dfa, left: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The fewest strings that go on behind one more character, from each state: (n,) int32.

    automaton : over valid UTF-8. left : what `strings_left` says of it.

    In a state within a character it is behind the rest of that. `FOR_EVER` where none can come.
    """
    found = np.full(len(left), FOR_EVER, np.int32)
    if left[0] != FOR_EVER:
        _, sources, targets = characters(automaton)
        np.minimum.at(found, sources, left[targets])
    return found
