"""Terminal sequences that every stack refuses, and terminals that every stack accepts.

Only the state on top of the stack is followed; below it anything may lie.

The sequences of the walk (`token_walk`) grow symbol by symbol. Each has a set of states that the
parser can be in after it: where a state must reduce, the parser may be in any state that the LR(0)
automaton allows afterwards. A sequence without such a state is not followed. Exploring all stacks
(`configuration_sets`) finds more, but this is found at each step of the walk, before sequences
multiply. Under lexing with modes most ways to read a token lead nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int32_2D
from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, LrTables
from maskwright.maskstore.tokens import _walk_kernels
from maskwright.maskstore.tokens.walk_tables import ModesOfSets, SetsAfter

Words = npt.NDArray[np.uint32]

NOWHERE, ANYWHERE = 0, 1
"""The numbers of the first two sets of states: the empty set, and the set of all states."""


class Feasible:
    """Sets of the parser's states by number, and the set that follows each after a symbol.

    A symbol below n_terminals is a terminal. From `mode_code` on a symbol asks for a mode. The
    symbols between are newlines of the layout: they may be dropped, and after them any state may be
    on top.

    sets_after, modes_of_sets : what has been worked out, for the kernels of the walk.
    """

    def __init__(
        self, tables: LrTables, column_of: Sequence[int], mode_of_state: Int32, mode_code: int, n_modes: int
    ) -> None:
        """Begin with the empty set and the set of all states.

        tables : the LALR tables.
        column_of : the parser's column of each terminal, -1 for a terminal in no rule.
        mode_of_state : (n_states,) int32; the lexing mode of each LR state.
        mode_code : the symbol of mode 0.
        n_modes : how many modes there are.
        """
        self._tables = tables
        self._column_of = column_of
        self._mode_code = mode_code
        self._mode_of_state = mode_of_state
        self._sets: list[Int32] = [np.zeros(0, np.int32), np.arange(tables.n_states, dtype=np.int32)]
        self._number: dict[bytes, int] = {states.tobytes(): i for i, states in enumerate(self._sets)}
        self._entered = {
            column: np.flatnonzero(tables.accessing == column).astype(np.int32) for column in range(tables.n_terminals)
        }
        self._is_entered_alone = bool((tables.accessing >= -1).all())
        self._reductions = _reductions(tables)
        self._n_after = 0
        self.sets_after = SetsAfter(np.zeros(1 << 10, np.uint64), np.zeros(1 << 10, np.int32))
        self._n_mode_of = 0
        self.modes_of_sets = ModesOfSets(
            np.full(1 << 6, -1, np.int32), np.zeros(1 << 6, np.int32), *np.zeros((2, 2 * n_modes), np.int32)
        )

    def states(self, number: int) -> Int32:
        """The members of a set, ascending: (n,) int32."""
        return self._sets[number]

    def set_after(self, states: int, symbol: int) -> int:
        """The set of states after a symbol; NOWHERE if no parser in a state of the set can read it.

        states : the number of the set before.
        """
        if states == NOWHERE:
            return NOWHERE
        found = int(_walk_kernels.find_set_after(states, symbol, self.sets_after))
        return self.learn(states, symbol) if found == _walk_kernels.UNKNOWN else found

    def learn(self, states: int, symbol: int) -> int:
        """Work out the set after a symbol, and note it in `sets_after`, where it is missing.

        states : the number of the set before; not NOWHERE. Returns the number of the set after.
        """
        if 2 * self._n_after >= len(self.sets_after.keys):
            old, n = self.sets_after, 2 * len(self.sets_after.keys)
            self.sets_after = SetsAfter(np.zeros(n, np.uint64), np.zeros(n, np.int32))
            _walk_kernels.refill_sets_after(old, self.sets_after)
        found = self._read(states, symbol)
        _walk_kernels.note_set_after(states, symbol, found, self.sets_after)
        self._n_after += 1
        return found

    def learn_modes(self, states: int) -> None:
        """Note in `modes_of_sets` the modes of a set, and the subset of its states in each mode."""
        members = self._sets[states]
        modes = np.unique(self._mode_of_state[members]).tolist()
        subsets = [self._intern(members[self._mode_of_state[members] == mode]) for mode in modes]
        begins, ends, mode_of, subset = self.modes_of_sets
        first = self._n_mode_of
        self._n_mode_of += len(modes)
        while len(mode_of) < self._n_mode_of:
            mode_of, subset = (np.concatenate([array, array]) for array in (mode_of, subset))
        begins[states], ends[states] = first, self._n_mode_of
        mode_of[first : self._n_mode_of], subset[first : self._n_mode_of] = modes, subsets
        self.modes_of_sets = ModesOfSets(begins, ends, mode_of, subset)

    def _read(self, states: int, symbol: int) -> int:
        """The set after a symbol, worked out."""
        if symbol >= self._mode_code:
            members = self._sets[states]
            return self._intern(members[self._mode_of_state[members] == symbol - self._mode_code])
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
        """The number of a set, a new one if it has none."""
        key = states.tobytes()
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = len(self._sets)
            self._sets.append(states)
            begins, ends, mode_of, subset = self.modes_of_sets
            if number >= len(begins):
                begins, ends = np.append(begins, np.full_like(begins, -1)), np.append(ends, np.zeros_like(ends))
                self.modes_of_sets = ModesOfSets(begins, ends, mode_of, subset)
        return number


def surely_shifted(tables: LrTables) -> Words:
    """For each state on top, the terminals that every parser shifts, whatever lies below.

    Any reductions may come first. Where the actions of a cell conflict, one of them must lead to
    the shift. This is the greatest solution of its equations: a parse that never meets an error
    ends in a shift, since none reduces for ever (`loops`).

    Returns (n_states, ceil(n_columns / 32)) uint32; bit i of word w, the little end first, is
    column 32 w + i.
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
    # no stack comes to a reduction that leads to no state
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
    """Rows of truths as bits: (n_rows, n_words) uint32."""
    padded = np.zeros((len(truths), 32 * n_words), np.bool_)
    padded[:, : truths.shape[1]] = truths
    return np.packbits(padded, axis=1, bitorder="little").view("<u4").astype(np.uint32)


def _reductions(tables: LrTables) -> tuple[Int32, Int32, Int32, Int32]:
    """For each state its reductions, and the states that the parser may be in after each.

    Returns starts : (n_states + 1,), rules : (n,), target_start : (n + 1,), targets; all int32.
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


@kernel(entry=True, allocates=True)
def states_below(state: int, depth: int, predecessor_start: Int32, predecessors: Int32) -> Int32:
    """The states that can lie `depth` cells below a state on a stack: ascending, int32.

    predecessor_start, predecessors : see `LrTables`.
    """
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


@kernel(entry=True, allocates=True)
def _step(
    states: Int32,
    column: int,
    action: Int32_2D,
    alternatives: Int32,
    starts: Int32,
    rules: Int32,
    target_start: Int32,
    targets: Int32,
) -> Int32:
    """The states after any reductions and a shift of a column, from any of some states.

    Returns int32, ascending. starts, rules, target_start, targets : see `_reductions`.
    """
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
