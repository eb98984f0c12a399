"""Parse tables as arrays: what an LR parser does in each state before each terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import cached_property

Array = npt.NDArray[np.int32]

ERROR = 0
"""Action of a cell without any: the parser refuses the terminal."""
ACCEPT = 1 << 29
"""Action in column END where the whole text has been reduced to the start symbol."""
CONFLICT = 1 << 30
"""An action of CONFLICT or more stands for several actions.

With i = action - CONFLICT, alternatives[i] is their count n, and the n plain actions follow.
"""


@dataclass(frozen=True, eq=False)
class LrTables:
    """LALR(1) tables of a grammar. All arrays are C-contiguous and read-only.

    n_terminals : T, the number of terminal columns without the end marker. END, the end of the
        text, is column T.
    action : (n_states, T + 1) int32. ERROR; s + 1 = shift and go to state s; -(r + 1) = reduce by
        rule r; ACCEPT; CONFLICT or more = several actions.
    goto : (n_states, n_nonterminals) int32; the state after a nonterminal has been pushed, -1 =
        none.
    rule_lhs : (n_rules,) int32; the left side of each rule, as an index of a nonterminal, 0 ..
        n_nonterminals - 1.
    rule_length : (n_rules,) int32; the number of symbols on the right. Before bisimulation, rule r
        is rule r of `acyclic.parsed_grammar`, and nonterminal index i is its symbol
        grammar.n_terminals + i.
    alternatives : (n,) int32; see CONFLICT. A shift or ACCEPT comes first, then the reductions,
        ascending by rule.
    default_rule : (n_states,) int32; r if the reduction by rule r is the only action of the state,
        else -1. A parser may reduce by it before any terminal, since it still never shifts a
        terminal that is not legal. In the tables of `live.without_dead_ends` it is -1 also where a
        dropped shift leaves only the reduction.
    predecessor_start, predecessors : (n_states + 1,) and (n,) int32; the states that can lie
        directly below state s on a stack, ascending, are
        predecessors[predecessor_start[s] : predecessor_start[s + 1]]. State 0 is the start state
        and has none.
    accessing : (n_states,) int32; the symbol whose shift or goto leads to a state: a terminal
        column t, or n_terminals + 1 + nonterminal index; -1 for state 0. After bisimulation it is
        the merged symbol, and -2 if several symbols lead to the state.
    terminal_column : (grammar.n_terminals,) int32; the column of each of the grammar's terminals;
        -1 for a terminal that occurs in no rule that a text can use.
    origin : (n_states,) int32; the state of the LR(0) automaton (`automaton.build_automaton`) that
        each state comes from; after bisimulation the least of those that were merged. Ascending,
        except in the tables of `live.without_dead_ends`, where several states can have one origin.
        States to which no action leads are left out.
    """

    n_terminals: int
    action: Array
    goto: Array
    rule_lhs: Array
    rule_length: Array
    alternatives: Array
    default_rule: Array
    predecessor_start: Array
    predecessors: Array
    accessing: Array
    terminal_column: Array
    origin: Array

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.action)

    @property
    def n_nonterminals(self) -> int:
        """The number of nonterminals."""
        return int(self.goto.shape[1])

    @property
    def n_rules(self) -> int:
        """The number of rules."""
        return len(self.rule_lhs)

    @property
    def n_conflicts(self) -> int:
        """The number of cells with several actions."""
        return int((self.action >= CONFLICT).sum())

    @cached_property
    def below(self) -> list[list[int]]:
        """For each state the states that can lie directly below it: `predecessors` as lists."""
        members: list[int] = self.predecessors.tolist()
        return [members[start:end] for start, end in pairwise(self.predecessor_start.tolist())]

    def actions(self, state: int, column: int) -> tuple[int, ...]:
        """The plain actions of a cell, in the order of `alternatives`; () for an error."""
        action = int(self.action[state, column])
        if action < CONFLICT:
            return (action,) if action != ERROR else ()
        at = action - CONFLICT
        return tuple(self.alternatives[at + 1 : at + 1 + int(self.alternatives[at])].tolist())

    def __repr__(self) -> str:
        return (
            f"<LrTables: {self.n_states} states, {self.n_terminals} terminals, {self.n_nonterminals} nonterminals, "
            f"{self.n_rules} rules, {self.n_conflicts} conflicts>"
        )


class Alternatives:
    """Numbers the sets of actions of cells with several actions; equal sets share one number.

    values : the content of `LrTables.alternatives` so far.
    """

    def __init__(self) -> None:
        self.values: list[int] = []
        self._number: dict[tuple[int, ...], int] = {}

    def encode(self, actions: Sequence[int]) -> int:
        """The action that stands for some plain actions, in any order, repeats allowed.

        Returns ERROR for none, the action itself for one, and CONFLICT or more for several.
        """
        ordered = tuple(sorted(set(actions), reverse=True))  # shifts and ACCEPT are positive, reductions -1, -2, ...
        if len(ordered) < 2:
            return ordered[0] if ordered else ERROR
        if ordered not in self._number:
            self._number[ordered] = CONFLICT + len(self.values)
            self.values += [len(ordered), *ordered]
        return self._number[ordered]


def finish_tables(
    action: Array,
    goto: Array,
    rule_lhs: Array,
    rule_length: Array,
    alternatives: Alternatives,
    accessing: Array,
    terminal_column: Array,
    origin: Array,
) -> LrTables:
    """The tables with all that follows from actions and gotos: default rules and predecessors.

    action : (n_states, T + 1) int32. alternatives : its cells with several actions.
    goto, rule_lhs, rule_length, accessing, terminal_column, origin : as in `LrTables`.
    """
    start, below = predecessors(action, goto, alternatives)
    arrays = [
        np.array(array, np.int32, order="C")
        for array in (
            action,
            goto,
            rule_lhs,
            rule_length,
            alternatives.values,
            default_rules(action),
            start,
            below,
            accessing,
            terminal_column,
            origin,
        )
    ]
    for array in arrays:
        array.setflags(write=False)
    return LrTables(action.shape[1] - 1, *arrays)


def default_rules(action: Array) -> Array:
    """`LrTables.default_rule` of actions (n_states, T + 1) int32."""
    greatest = np.where(action == ERROR, np.iinfo(np.int32).min, action).max(axis=1)
    least = action.min(axis=1)
    rule: Array = np.where((greatest == least) & (least < 0), -least - 1, -1)
    return rule.astype(np.int32)


def predecessors(action: Array, goto: Array, alternatives: Alternatives) -> tuple[Array, Array]:
    """`LrTables.predecessor_start` and `LrTables.predecessors`.

    action : (n_states, T + 1) int32. goto : (n_states, n_nonterminals) int32. alternatives : the
        action's.
    """
    n_states = len(action)
    shifted = action.copy()
    first = np.array([*alternatives.values, 0], np.int32)
    several = shifted >= CONFLICT
    shifted[several] = first[shifted[several] - CONFLICT + 1]  # a shift comes first
    shifted[shifted == ACCEPT] = ERROR
    state, column = np.nonzero(shifted > 0)
    base, nonterminal = np.nonzero(goto >= 0)
    above = np.concatenate([shifted[state, column] - 1, goto[base, nonterminal]]).astype(np.int64)
    keys = np.unique(above * n_states + np.concatenate([state, base]))
    start = np.searchsorted(keys, np.arange(n_states + 1) * n_states)
    return start.astype(np.int32), (keys % n_states).astype(np.int32)


def can_follow(tables: LrTables) -> Callable[[int, int], bool]:
    """A function `can_follow(first, second)` on terminals of the grammar.

    It is True if some state that `first` leads to has an action before `second`. False is therefore
    a proof that `second` cannot follow `first` directly; True is not.
    """
    n = tables.n_terminals
    follows = np.zeros((n, n), np.bool_)
    for state, symbol in enumerate(tables.accessing.tolist()):
        if 0 <= symbol < n:
            follows[symbol] |= tables.action[state, :n] != 0
    column: list[int] = tables.terminal_column.tolist()
    rows = [row.tobytes() for row in follows]

    def answer(first: int, second: int) -> bool:
        left, right = column[first], column[second]
        return left >= 0 and right >= 0 and rows[left][right] != 0

    return answer
