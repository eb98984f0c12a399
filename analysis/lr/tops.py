"""Which states of two parsers of one language can be on top after the same terminals?

Each parser reads the same terminals with its own tables. We follow only the tops of their stacks: a
reduction may uncover any state that the automaton allows there. So we may find pairs that no text
leads to, but we miss none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.encoding import ACCEPT, LrTables

MAX_PAIRS = 20_000
"""The most pairs of states that are followed."""


def tops_in_step(first: LrTables, second: LrTables) -> set[tuple[int, int]] | None:
    """The pairs of states that may be on top after the same terminals, the starts among them.

    first, second : tables over the same terminals, with a column for each (`terminal_column` is the
        same in both).

    Returns pairs (state of `first`, state of `second`); None if there are more than MAX_PAIRS. A
    pair stands for texts that both parsers have read so far. What only one of them can go on with
    is not followed.

    Cost: O(pairs * terminals), and for each state and terminal the states that reductions lead
        through.
    """
    ones, others = _Tops(first), _Tops(second)
    found = {(0, 0)}
    agenda = [(0, 0)]
    for pair in agenda:  # grows while it is read
        for column in range(first.n_terminals):
            for one in ones.after(pair[0], column):
                new = {(one, other) for other in others.after(pair[1], column)} - found
                found |= new
                agenda += new
        if len(found) > MAX_PAIRS:
            return None
    return found


class _Tops:
    """What a parser can have on top one terminal later, if only the top of its stack is known."""

    def __init__(self, tables: LrTables) -> None:
        self.tables = tables
        self.lengths: list[int] = tables.rule_length.tolist()
        self.symbols: list[int] = tables.rule_lhs.tolist()
        self._below: dict[tuple[int, int], frozenset[int]] = {}
        self._after: dict[tuple[int, int], frozenset[int]] = {}

    def after(self, state: int, column: int) -> frozenset[int]:
        """The states on top after a terminal has been shifted.

        Empty if the parser refuses the terminal whatever lies below.
        """
        key = state, column
        if key not in self._after:
            actions = [self.tables.actions(top, column) for top in reachable([state], partial(self._reduced, column))]
            self._after[key] = frozenset(action - 1 for row in actions for action in row if 0 < action < ACCEPT)
        return self._after[key]

    def _reduced(self, column: int, top: int) -> Iterator[int]:
        """The states that reductions before a terminal put on top."""
        for rule in (-action - 1 for action in self.tables.actions(top, column) if action < 0):
            for below in self._states_below(top, self.lengths[rule]):
                reached = int(self.tables.goto[below, self.symbols[rule]])
                if reached >= 0:
                    yield reached

    def _states_below(self, state: int, depth: int) -> frozenset[int]:
        """The states that can lie `depth` states below `state`."""
        if depth == 0:
            return frozenset({state})
        key = state, depth
        if key not in self._below:
            self._below[key] = frozenset(
                below for above in self._states_below(state, depth - 1) for below in self.tables.below[above]
            )
        return self._below[key]
