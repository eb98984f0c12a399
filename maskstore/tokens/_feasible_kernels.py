"""Sets of states that a parser can be in after some symbols; see `feasible`.

Callers own all arrays and have checked them.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.maskstore.tokens._hash_kernels import Map, number_of_key, number_of_run, value_of_key
from maskwright.maskstore.tokens.walk_tables import Feasible

UNKNOWN = -1
"""Instead of a set of states: it has not been worked out, or there is no room for it."""
NOWHERE, ANYWHERE = 0, 1
"""See `feasible`."""


@kernel(forceinline=True)
def key_of(number, symbol):  # type: ignore[no-untyped-def]
    """One key for a number and a symbol, both below 2^31."""
    return (np.int64(number) << np.int64(32)) | np.int64(symbol)


@kernel(entry=True)
def find_set_after(states: int, symbol: int, sets_after: Map) -> int:
    """The set of the parser's states after a symbol (see `feasible`), or UNKNOWN."""
    return value_of_key(key_of(states, symbol), sets_after, UNKNOWN)


@kernel
def mark_shifted(states, column, feasible):  # type: ignore[no-untyped-def]
    """Mark in marks[0] the states after any reductions and a shift of a column, from a set."""
    sets, reductions = feasible.sets, feasible.reductions
    shifted, seen, agenda = feasible.marks[0], feasible.marks[1], feasible.lists[0]
    n = 0
    for i in range(sets.start[states], sets.start[states + 1]):
        seen[sets.items[i]] = True
        agenda[n] = sets.items[i]
        n += 1
    done = 0
    while done < n:
        state = agenda[done]
        done += 1
        code = feasible.action[state, column]
        count = 1 if code < CONFLICT else feasible.alternatives[code - CONFLICT]
        for i in range(count):
            each = code if code < CONFLICT else feasible.alternatives[code - CONFLICT + 1 + i]
            if 0 < each < ACCEPT:
                shifted[each - 1] = True
            elif each < 0:
                for r in range(reductions.starts[state], reductions.starts[state + 1]):
                    if reductions.rules[r] != -each - 1:
                        continue
                    for t in range(reductions.target_start[r], reductions.target_start[r + 1]):
                        target = reductions.targets[t]
                        if not seen[target]:
                            seen[target] = True
                            agenda[n] = target
                            n += 1
    for i in range(n):
        seen[agenda[i]] = False


@kernel
def read_symbol(states, symbol, feasible):  # type: ignore[no-untyped-def]
    """The set after a symbol; UNKNOWN without room."""
    sets, found = feasible.sets, feasible.lists[1]
    n_states = feasible.action.shape[0]
    n = 0
    if symbol >= feasible.mode_code:
        for i in range(sets.start[states], sets.start[states + 1]):
            if feasible.mode_of_state[sets.items[i]] == symbol - feasible.mode_code:
                found[n] = sets.items[i]
                n += 1
        return number_of_run(found, n, sets)
    if symbol >= feasible.column_of.shape[0]:
        return np.int64(ANYWHERE)
    column = feasible.column_of[symbol]
    if column < 0:
        return np.int64(NOWHERE)
    if states == ANYWHERE and feasible.is_entered_alone:
        for state in range(n_states):
            if feasible.accessing[state] == column:
                found[n] = state
                n += 1
        return number_of_run(found, n, sets)
    mark_shifted(states, column, feasible)
    for state in range(n_states):
        if feasible.marks[0, state]:
            feasible.marks[0, state] = False
            found[n] = state
            n += 1
    return number_of_run(found, n, sets)


@kernel(entry=True)
def learn_after(states: int, symbol: int, feasible: Feasible) -> int:
    """Work out and note the set after a symbol, which is not noted yet. UNKNOWN without room."""
    found = read_symbol(states, symbol, feasible)
    if found == UNKNOWN:
        return found
    row = number_of_key(key_of(states, symbol), feasible.after)
    if row < 0:
        return np.int64(UNKNOWN)
    feasible.after.value[row] = found
    return found
