"""Whether LALR tables reduce on a stack that is too short, or to a state without the goto.

A stack is a path of gotos and shifts from state 0. So walking back from a state, as far as a rule
is long, meets every state that the reduction can uncover. We walk back from all states at once, one
step a round.

A table from a file may come from anyone, so each load checks it. NumPy does this faster than
compiled code can be loaded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT

Array = npt.NDArray[Any]
Pairs = tuple[Array, Array]


class Work:
    """A budget of steps, so that made-up tables take neither for ever nor all memory."""

    def __init__(self, limit: int) -> None:
        """limit : the steps in all."""
        self.limit = limit
        self.left = limit

    def spend(self, steps: int) -> None:
        """Take steps from the budget, before the arrays for them are made.

        Raises: LimitError if too few are left.
        """
        self.left -= steps
        if self.left < 0:
            raise LimitError(f"reductions need more than {self.limit:,} steps to check")


def bad_reduction(
    action: Array,
    alternatives: Array,
    goto: Array,
    default_rule: Array,
    rule_lhs: Array,
    rule_length: Array,
    limit: int,
) -> tuple[int, int] | None:
    """A state and a rule by which it reduces where it must not; None if there is none.

    All arrays are int32 and flat, as in `LrTables`. Every number in them is in range.

    limit : the most steps of the search, each some 50 bytes.

    Raises: LimitError if more steps are needed.

    Cost: O(states x what they are reached from) for each round, with a log for sorting.
    """
    n_states, n_rules = len(default_rule), len(rule_lhs)
    work = Work(limit)
    state, value = _actions(action, alternatives, n_states, work)
    starts, below = _below(state, value, goto, n_states)
    reduces, defaults = value < 0, np.flatnonzero(default_rule >= 0)
    keys = [state[reduces] * n_rules - value[reduces] - 1, defaults * n_rules + default_rule[defaults]]
    state, rule = np.divmod(_distinct(np.concatenate(keys)), max(1, n_rules))
    # `top` is what lies `depth` below the states `origin`, sorted by `origin`, which still have
    # longer rules to reduce by
    origin = top = _distinct(state)
    depth = 0
    while len(state):
        work.spend(len(state))
        is_due = rule_length[rule] == depth
        due = np.flatnonzero(is_due)
        which, index = _each(np.searchsorted(origin, state[due]), np.searchsorted(origin, state[due], "right"), work)
        is_missing = goto.reshape(n_states, -1)[top[index], rule_lhs[rule[due[which]]]] < 0
        if is_missing.any():
            first = due[which[is_missing.argmax()]]
            return int(state[first]), int(rule[first])
        state, rule = state[~is_due], rule[~is_due]
        is_short = np.isin(state, origin[top == 0])
        if is_short.any():
            return int(state[is_short.argmax()]), int(rule[is_short.argmax()])
        goes_on = np.isin(origin, state)
        origin, top = origin[goes_on], top[goes_on]
        which, index = _each(starts[top], starts[top + 1], work)
        origin, top = np.divmod(_distinct(origin[which] * n_states + below[index]), n_states)
        depth += 1
    return None


def _distinct(values: Array) -> Array:
    """The values, ascending, each once.

    PERF: np.unique imports numpy.ma, and whoever loads a store would wait for it.
    """
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def _actions(action: Array, alternatives: Array, n_states: int, work: Work) -> Pairs:
    """States and their plain actions, one pair for each action of a conflict: int64."""
    index = np.flatnonzero(action)
    state, value = index // (len(action) // n_states), action[index].astype(np.int64)
    is_conflict = value >= CONFLICT
    conflicts = _distinct(state[is_conflict] * len(alternatives) + value[is_conflict] - CONFLICT)
    where, first = np.divmod(conflicts, max(1, len(alternatives)))
    which, at = _each(first + 1, first + 1 + alternatives[first], work)
    state = np.concatenate([state[~is_conflict], where[which]])
    return state, np.concatenate([value[~is_conflict], alternatives[at].astype(np.int64)])


def _below(state: Array, value: Array, goto: Array, n_states: int) -> Pairs:
    """The states that can lie directly below each state on a stack.

    Returns where each state's run begins, (n_states + 1,), and the states below.
    """
    shifts = (value > 0) & (value < ACCEPT)
    index = np.flatnonzero(goto >= 0)
    keys = [
        (value[shifts] - 1) * n_states + state[shifts],
        goto[index].astype(np.int64) * n_states + index // (len(goto) // n_states),
    ]
    above, below = np.divmod(_distinct(np.concatenate(keys)), n_states)
    return np.searchsorted(above, np.arange(n_states + 1)), below


def _each(begins: Array, ends: Array, work: Work) -> Pairs:
    """For each i and each index from begins[i] to ends[i] - 1: i, and the index. Two arrays."""
    counts = ends - begins
    work.spend(int(counts.sum(dtype=np.int64)))
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) + (begins - (np.cumsum(counts) - counts))[which]
