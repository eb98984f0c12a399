"""Which terminals and sequences of them can no parser read, or any, whatever its stack? Only the state on top is followed; below it
anything may lie.

A sequence of the walk (`requirements`) grows symbol by symbol, and each has a set of states that the parser can be in after it: from a
state that must reduce, the parser may come to any state that the LR(0) automaton has below. A sequence without such a state is *dead*. That
is less than what exploring all stacks (`suspended`) finds, but it is found while the walk goes on, before sequences multiply: where lexing
has modes, most of the ways to read a token are dead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

from maskwright.analysis.lr.tables import ACCEPT, CONFLICT, LrTables

Int32 = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]

NOWHERE, ANYWHERE = 0, 1
"""The first sets of states: none, and all."""


class Feasible:
    """The states after each sequence, by sequence number.

    dead(number) : no parser can read the sequence. Symbols below n_terminals are terminals, from `mode_code` on they ask for a mode, and
    those between are newlines of the layout, which may be dropped, and behind which anything may be on top.
    """

    def __init__(
        self, tables: LrTables, column_of: Sequence[int], mode_of_state: Int32, mode_code: int, n_modes: int
    ) -> None:
        self._tables = tables
        self._column_of = column_of
        self._mode_code = mode_code
        self._sets: list[Int32] = [np.zeros(0, np.int32), np.arange(tables.n_states, dtype=np.int32)]
        self._number: dict[bytes, int] = {states.tobytes(): i for i, states in enumerate(self._sets)}
        self._after: dict[tuple[int, int], int] = {}
        self._in_mode = [mode_of_state == mode for mode in range(n_modes)]
        self._entered = {
            column: np.flatnonzero(tables.accessing == column).astype(np.int32) for column in range(tables.n_terminals)
        }
        self._is_entered_alone = bool((tables.accessing >= -1).all())
        self._reductions = _reductions(tables)
        self._of_sequence = [ANYWHERE]
        self.dead = np.zeros(1, np.bool_)

    def extend(self, parent: Int32, last: Int32, n_sequences: int) -> None:
        """Learn of more sequences; each comes after its parent. Sequence 0 is empty."""
        of_sequence, after = self._of_sequence, self._after
        first = len(of_sequence)
        for before, symbol in zip(parent[first:n_sequences].tolist(), last[first:n_sequences].tolist(), strict=True):
            key = of_sequence[before], symbol
            found = after.get(key)
            if found is None:
                found = after[key] = self._read(*key)
            of_sequence.append(found)
        if len(self.dead) < len(parent):
            self.dead = np.concatenate([self.dead, np.zeros(len(parent) - len(self.dead), np.bool_)])
        self.dead[first:n_sequences] = np.array(of_sequence[first:], np.int64) == NOWHERE

    def _read(self, states: int, symbol: int) -> int:
        """The set after a symbol."""
        if states == NOWHERE:
            return NOWHERE
        if symbol >= self._mode_code:
            members = self._sets[states]
            return self._intern(members[self._in_mode[symbol - self._mode_code][members]])
        if symbol >= len(self._column_of):
            return ANYWHERE
        column = self._column_of[symbol]
        if column < 0:
            return NOWHERE
        if states == ANYWHERE and self._is_entered_alone:
            return self._intern(self._entered[column])
        tables = self._tables
        found: Int32 = _step(self._sets[states], column, tables.action, tables.alternatives, *self._reductions)
        return self._intern(found)

    def _intern(self, states: Int32) -> int:
        key = states.tobytes()
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = len(self._sets)
            self._sets.append(states)
        return number


def surely_shifted(tables: LrTables) -> Words:
    """The terminals that a parser with a state on top shifts, after whatever reductions, whatever lies below.

    (n_states, ceil(columns / 32)) uint32; bit i of word w, the little end first, is column 32 w + i. Where the actions of a cell conflict,
    one of them does. The greatest solution: a parse that never meets an error shifts, since none reduces for ever (`loops`).
    """
    starts, rules, target_start, targets = _reductions(tables)
    n_words = (tables.action.shape[1] + 31) // 32
    shifts = (tables.action > 0) & (tables.action < ACCEPT)
    reduces = np.zeros((len(rules), tables.action.shape[1]), np.bool_)
    for state in range(tables.n_states):
        mine = slice(int(starts[state]), int(starts[state + 1]))
        reduces[mine] = tables.action[state] == -1 - rules[mine, None]
        for column in np.flatnonzero(tables.action[state] >= CONFLICT).tolist():
            actions = tables.actions(state, column)
            shifts[state, column] = any(0 < each < ACCEPT for each in actions)
            reduces[mine, column] = np.isin(-1 - rules[mine], actions)
    shifted, found = _words(shifts, n_words), _words((tables.action != 0) & (tables.action != ACCEPT), n_words)
    # a reduction that leads nowhere is one that no stack comes to
    leads = np.flatnonzero(np.diff(target_start))
    state_of = np.repeat(np.arange(tables.n_states), np.diff(starts))[leads]
    columns = _words(reduces[leads], n_words)
    while True:
        fewer = shifted.copy()
        if len(leads):
            after = np.bitwise_and.reduceat(found[targets], target_start[leads], axis=0)
            np.bitwise_or.at(fewer, state_of, columns & after)
        if (fewer == found).all():
            return found
        found = fewer


def _words(truths: npt.NDArray[np.bool_], n_words: int) -> Words:
    """Rows of truths as bits."""
    padded = np.zeros((len(truths), 32 * n_words), np.bool_)
    padded[:, : truths.shape[1]] = truths
    return np.packbits(padded, axis=1, bitorder="little").view("<u4").astype(np.uint32)


def _reductions(tables: LrTables) -> tuple[Int32, Int32, Int32, Int32]:
    """For each state its reductions, and the states that the parser may be in after each.

    Returns starts : (n_states + 1,), rules : (n,), target_start : (n + 1,), targets.
    """
    starts, rules, target_start, targets = [0], [], [0], []
    for state in range(tables.n_states):
        row = tables.action[state]
        found = {
            -each - 1 for column in np.flatnonzero(row).tolist() for each in tables.actions(state, column) if each < 0
        }
        for rule in sorted(found):
            rules.append(rule)
            below = states_below(state, int(tables.rule_length[rule]), tables.predecessor_start, tables.predecessors)
            gotos = tables.goto[below, tables.rule_lhs[rule]]
            reached = np.unique(gotos[gotos >= 0])
            targets.append(reached)
            target_start.append(target_start[-1] + len(reached))
        starts.append(len(rules))
    return (
        np.array(starts, np.int32),
        np.array(rules, np.int32),
        np.array(target_start, np.int32),
        np.concatenate([np.zeros(0, np.int32), *targets]).astype(np.int32),
    )


@njit(cache=True, nogil=True)
def states_below(state, depth, predecessor_start, predecessors):  # type: ignore[no-untyped-def]
    """The states, ascending, that can lie so far below a state on a stack."""
    n_states = predecessor_start.shape[0] - 1
    here = np.zeros(n_states, np.bool_)
    here[state] = True
    for _ in range(depth):
        below = np.zeros(n_states, np.bool_)
        for s in range(n_states):
            if here[s]:
                for p in range(predecessor_start[s], predecessor_start[s + 1]):
                    below[predecessors[p]] = True
        here = below
    return np.flatnonzero(here).astype(np.int32)


@njit(cache=True, nogil=True)
def _step(states, column, action, alternatives, starts, rules, target_start, targets):  # type: ignore[no-untyped-def]
    """The states, ascending, after a terminal column has been shifted from one of some states, all reductions before it done."""
    n_states = action.shape[0]
    seen = np.zeros(n_states, np.bool_)
    shifted = np.zeros(n_states, np.bool_)
    agenda = np.empty(n_states, np.int32)
    n = 0
    for i in range(states.shape[0]):
        seen[states[i]] = True
        agenda[n] = states[i]
        n += 1
    while n > 0:
        n -= 1
        state = agenda[n]
        code = action[state, column]
        count = 1
        if code >= CONFLICT:
            count = alternatives[code - CONFLICT]
        for i in range(count):
            each = code if code < CONFLICT else alternatives[code - CONFLICT + 1 + i]
            if 0 < each < ACCEPT:
                shifted[each - 1] = True
            elif each < 0:
                for r in range(starts[state], starts[state + 1]):
                    if rules[r] != -each - 1:
                        continue
                    for t in range(target_start[r], target_start[r + 1]):
                        if not seen[targets[t]]:
                            seen[targets[t]] = True
                            agenda[n] = targets[t]
                            n += 1
    return np.flatnonzero(shifted).astype(np.int32)
