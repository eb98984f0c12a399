"""Which states of two parsers of one language can be on top after the same terminals?

Each parser reads the same terminals with its own tables. We follow only the tops of their stacks: a
reduction may uncover any state that the automaton allows there. So we may find pairs that no text
leads to, but we miss none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

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
    one_after, other_after = _tops_after(first), _tops_after(second)
    met = {(0, 0)}

    def after(pair: tuple[int, int]) -> set[tuple[int, int]]:
        if len(met) > MAX_PAIRS:
            return set()
        found = {
            (one, other)
            for column in range(first.n_terminals)
            for one in one_after(pair[0], column)
            for other in other_after(pair[1], column)
        }
        met.update(found)
        return found

    reachable([(0, 0)], after)
    return None if len(met) > MAX_PAIRS else met


def _tops_after(tables: LrTables) -> Callable[[int, int], frozenset[int]]:
    """What a parser can have on top one terminal later, if only the top of its stack is known.

    The function takes a state and a column, and gives no states if the parser refuses the terminal
    whatever lies below.
    """
    lengths: list[int] = tables.rule_length.tolist()
    symbols: list[int] = tables.rule_lhs.tolist()

    @cache
    def below(state: int, depth: int) -> frozenset[int]:
        """The states that can lie `depth` states below `state`."""
        if depth == 0:
            return frozenset({state})
        return frozenset(one for above in below(state, depth - 1) for one in tables.below[above])

    def reduced(column: int, top: int) -> Iterator[int]:
        """The states that reductions before a terminal put on top."""
        for rule in (-action - 1 for action in tables.actions(top, column) if action < 0):
            for base in below(top, lengths[rule]):
                if tables.goto[base, symbols[rule]] >= 0:
                    yield int(tables.goto[base, symbols[rule]])

    @cache
    def after(state: int, column: int) -> frozenset[int]:
        actions = [tables.actions(top, column) for top in reachable([state], partial(reduced, column))]
        return frozenset(action - 1 for row in actions for action in row if 0 < action < ACCEPT)

    return after
