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

from maskwright.analysis.arrays import Bool_2D, Int32, Int32_2D
from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, LrTables
from maskwright.maskstore.tokens import _feasible_kernels as kernels
from maskwright.maskstore.tokens import walk_tables
from maskwright.maskstore.tokens._hash_kernels import doubled, no_runs, no_values, number_of_run, with_room
from maskwright.maskstore.tokens.walk_tables import ModesOfSets, Reductions

Words = npt.NDArray[np.uint32]

NOWHERE, ANYWHERE = kernels.NOWHERE, kernels.ANYWHERE
"""The numbers of the first two sets of states: the empty set, and the set of all states."""

FIRST_SETS = 1 << 6
"""Sets that there is room for at first: a power of two."""
FIRST_AFTER = 1 << 9
"""Sets and symbols for which there is room at first: a power of two."""


class Feasible:
    """Sets of the parser's states by number, and the set that follows each after a symbol.

    A symbol below n_terminals is a terminal. From `mode_code` on a symbol asks for a mode. The
    symbols between are newlines of the layout: they may be dropped, and after them any state may be
    on top.

    reductions : those of the tables.
    known, modes_of_sets : what has been worked out, for the kernels of the walk.
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
        self.reductions = reductions_of(tables)
        self._mode_of_state = mode_of_state
        every = np.arange(tables.n_states, dtype=np.int32)
        self.known = walk_tables.Feasible(
            np.ascontiguousarray(tables.action),
            tables.alternatives,
            self.reductions,
            np.array(column_of, np.int32),
            tables.accessing,
            bool((tables.accessing >= -1).all()),
            np.array(mode_of_state, np.int32),
            mode_code,
            no_values(FIRST_AFTER),
            no_runs(FIRST_SETS, max(FIRST_SETS, tables.n_states)),
            np.zeros((2, tables.n_states), np.bool_),
            np.zeros((2, tables.n_states), np.int32),
        )
        self._n_mode_of = 0
        self.modes_of_sets = ModesOfSets(
            np.full(FIRST_SETS, -1, np.int32), np.zeros(FIRST_SETS, np.int32), *np.zeros((2, 2 * n_modes), np.int32)
        )
        for states in (every[:0], every):
            self._intern(states)

    def states(self, number: int) -> Int32:
        """The members of a set, ascending: (n,) int32."""
        sets = self.known.sets
        return sets.items[sets.start[number] : sets.start[number + 1]]

    def set_after(self, states: int, symbol: int) -> int:
        """The set of states after a symbol; NOWHERE if no parser in a state of the set can read it.

        states : the number of the set before.
        """
        if states == NOWHERE:
            return NOWHERE
        found = int(kernels.find_set_after(states, symbol, self.known.after))
        return self.learn(states, symbol) if found == kernels.UNKNOWN else found

    def learn(self, states: int, symbol: int) -> int:
        """Work out the set after a symbol, and note it, where it is missing. Makes room for it.

        states : the number of the set before; not NOWHERE. Returns the number of the set after.
        """
        while (found := int(kernels.learn_after(states, symbol, self.known))) == kernels.UNKNOWN:
            self._make_room()
        return found

    def _make_room(self) -> None:
        """Make room for one more set, and for one more of what is noted."""
        sets = with_room(self.known.sets, 1)
        while sets.start[sets.size[0]] + len(self._mode_of_state) > len(sets.items):
            sets = sets._replace(items=doubled(sets.items))
        self.known = self.known._replace(after=with_room(self.known.after, 1), sets=sets)
        more = len(sets.hashes) - len(self.modes_of_sets.begin)
        if more > 0:
            begins, ends, mode_of, subset = self.modes_of_sets
            begins, ends = np.append(begins, np.full(more, -1, np.int32)), np.append(ends, np.zeros(more, np.int32))
            self.modes_of_sets = ModesOfSets(begins, ends, mode_of, subset)

    def learn_modes(self, states: int) -> None:
        """Note in `modes_of_sets` the modes of a set, and the subset of its states in each mode."""
        members = self.states(states)
        mode_of_member = self._mode_of_state[members]
        modes = np.unique(mode_of_member).tolist()
        subsets = [self._intern(members[mode_of_member == mode]) for mode in modes]
        begins, ends, mode_of, subset = self.modes_of_sets
        first = self._n_mode_of
        self._n_mode_of += len(modes)
        while len(mode_of) < self._n_mode_of:
            mode_of, subset = (np.concatenate([array, array]) for array in (mode_of, subset))
        begins[states], ends[states] = first, self._n_mode_of
        mode_of[first : self._n_mode_of], subset[first : self._n_mode_of] = modes, subsets
        self.modes_of_sets = ModesOfSets(begins, ends, mode_of, subset)

    def _intern(self, states: Int32) -> int:
        """The number of a set, a new one if it has none."""
        while (found := int(number_of_run(states, len(states), self.known.sets))) == kernels.UNKNOWN:
            self._make_room()
        return found


def surely_shifted(tables: LrTables, reductions: Reductions | None = None) -> Words:
    """For each state on top, the terminals that every parser shifts, whatever lies below.

    Any reductions may come first. Where the actions of a cell conflict, one of them must lead to
    the shift. This is the greatest solution of its equations: a parse that never meets an error
    ends in a shift, since none reduces for ever (`loops`).

    reductions : `reductions_of(tables)`, if they are known.

    Returns (n_states, ceil(n_columns / 32)) uint32; bit i of word w, the little end first, is
    column 32 w + i.
    """
    starts, rules, target_start, targets = reductions or reductions_of(tables)
    n_words = (tables.action.shape[1] + 31) // 32
    shifts = (tables.action > 0) & (tables.action < ACCEPT)
    of_state = np.repeat(np.arange(tables.n_states), np.diff(starts))
    reduces = tables.action[of_state] == -1 - rules[:, None]
    for state, column in conflicts_of(tables):
        actions = tables.actions(state, column)
        shifts[state, column] = any(0 < each < ACCEPT for each in actions)
        mine = slice(int(starts[state]), int(starts[state + 1]))
        reduces[mine, column] = np.isin(-1 - rules[mine], actions)
    shifted, found = _words(shifts, n_words), _words((tables.action != 0) & (tables.action != ACCEPT), n_words)
    # no stack comes to a reduction that leads to no state
    leads = np.flatnonzero(np.diff(target_start))
    states, firsts = np.unique(of_state[leads], return_index=True)
    columns = _words(reduces[leads], n_words)
    while True:
        fewer = shifted.copy()
        if len(leads):
            after = np.bitwise_and.reduceat(found[targets], target_start[leads], axis=0)
            fewer[states] |= np.bitwise_or.reduceat(columns & after, firsts, axis=0)
        if (fewer == found).all():
            return found
        found = fewer


def _words(truths: npt.NDArray[np.bool_], n_words: int) -> Words:
    """Rows of truths as bits: (n_rows, n_words) uint32."""
    padded = np.zeros((len(truths), 32 * n_words), np.bool_)
    padded[:, : truths.shape[1]] = truths
    return np.packbits(padded, axis=1, bitorder="little").view("<u4").astype(np.uint32)


def reductions_of(tables: LrTables) -> Reductions:
    """The reductions of LALR tables, and what they lead to."""
    n_states = tables.n_states
    states, rules = reducing_states(tables)
    target_start, targets = np.zeros(len(states) + 1, np.int32), np.zeros(4 * len(states) + n_states, np.int32)
    while not _write_targets(
        states,
        rules,
        tables.rule_length,
        tables.rule_lhs,
        np.ascontiguousarray(tables.goto),
        tables.predecessor_start,
        tables.predecessors,
        np.zeros((3, n_states), np.bool_),
        target_start,
        targets,
    ):
        targets = np.zeros(2 * len(targets), np.int32)
    starts = np.searchsorted(states, np.arange(n_states + 1)).astype(np.int32)
    return Reductions(starts, rules, target_start, targets[: target_start[-1]])


def conflicts_of(tables: LrTables) -> list[list[int]]:
    """The cells of the parser's actions that have several: a state and a column of each."""
    if not len(tables.alternatives):
        return []
    found: list[list[int]] = np.argwhere(tables.action >= CONFLICT).tolist()
    return found


def reducing_states(tables: LrTables) -> tuple[Int32, Int32]:
    """The states that may reduce, and by which rules: two arrays (n,) int32, which ascend."""
    n_rules = tables.n_rules
    keys = np.flatnonzero(tables.action < 0)
    keys = keys // tables.action.shape[1] * n_rules - 1 - tables.action.reshape(-1)[keys]
    more = [at * n_rules - 1 - each for at, c in conflicts_of(tables) for each in tables.actions(at, c) if each < 0]
    keys = np.unique(np.concatenate([keys, np.array(more, np.int64)]))
    return (keys // n_rules).astype(np.int32), (keys % n_rules).astype(np.int32)


@kernel(entry=True)
def _write_targets(
    states: Int32,
    rules: Int32,
    rule_length: Int32,
    rule_lhs: Int32,
    goto: Int32_2D,
    predecessor_start: Int32,
    predecessors: Int32,
    scratch: Bool_2D,
    target_start: Int32,
    targets: Int32,
) -> bool:
    """Write the states that a parser may be in after each reduction, ascending.

    states, rules : (n,) int32; the state on top and the rule of each reduction.
    scratch : (3, n_states) bool.
    Written: target_start, (n + 1,) int32, and targets.

    Returns whether there was room for all of them.
    """
    n_states = goto.shape[0]
    for r in range(states.shape[0]):
        scratch[:] = False
        scratch[0, states[r]] = True
        here = 0
        for _ in range(rule_length[rules[r]]):
            for s in range(n_states):
                if scratch[here, s]:
                    scratch[here, s] = False
                    for p in range(predecessor_start[s], predecessor_start[s + 1]):
                        scratch[1 - here, predecessors[p]] = True
            here = 1 - here
        pushed = rule_lhs[rules[r]]
        for s in range(n_states):
            if scratch[here, s] and goto[s, pushed] >= 0:
                scratch[2, goto[s, pushed]] = True
        n = target_start[r]
        if n + n_states > targets.shape[0]:
            return False
        for s in range(n_states):
            if scratch[2, s]:
                targets[n] = s
                n += 1
        target_start[r + 1] = n
    return True


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
