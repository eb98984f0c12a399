"""Sets of states that a parser can be in after some symbols; see `feasible`.

Callers own all arrays and have checked them.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.maskstore.tokens._hash_kernels import hash_of_run, slot_of_run
from maskwright.maskstore.tokens.walk_tables import N_AFTER, N_SETS, Feasible, SetsAfter

UNKNOWN = -1
"""Instead of a set of states: it has not been worked out, or there is no room for it."""
NOWHERE, ANYWHERE = 0, 1
"""See `feasible`."""


@kernel
def hash_of(number, symbol, slots):  # type: ignore[no-untyped-def]
    """The key of two numbers, and the slot at which its search begins."""
    key = (np.uint64(number) << np.uint64(32)) | np.uint64(symbol)
    return key, np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & (slots.shape[0] - 1)


@kernel(entry=True)
def find_set_after(states: int, symbol: int, sets_after: SetsAfter) -> int:
    """The set of the parser's states after a symbol (see `feasible`), or UNKNOWN."""
    key, h = hash_of(states, symbol, sets_after.keys)
    while sets_after.keys[h] != 0:
        if sets_after.keys[h] == key:
            return np.int64(sets_after.sets[h])
        h = (h + 1) & (sets_after.keys.shape[0] - 1)
    return np.int64(UNKNOWN)


@kernel(entry=True)
def note_set_after(states: int, symbol: int, found: int, sets_after: SetsAfter) -> None:
    """Note the set after a symbol, for `find_set_after`. It is not noted yet, and there is room."""
    key, h = hash_of(states, symbol, sets_after.keys)
    while sets_after.keys[h] != 0:
        h = (h + 1) & (sets_after.keys.shape[0] - 1)
    sets_after.keys[h] = key
    sets_after.sets[h] = found


@kernel(entry=True)
def refill_sets_after(old: SetsAfter, sets_after: SetsAfter) -> None:
    """Enter all that is noted in old tables into larger, empty ones."""
    for i in range(old.keys.shape[0]):
        if old.keys[i] != 0:
            note_set_after(old.keys[i] >> np.uint64(32), old.keys[i] & np.uint64(0xFFFFFFFF), old.sets[i], sets_after)


@kernel(entry=True)
def number_of_set(states: Int32, n: int, feasible: Feasible) -> int:
    """The number of the set states[:n], ascending, which may be new. UNKNOWN without room."""
    sets, sizes = feasible.sets, feasible.sizes
    key = hash_of_run(states, n)
    at = slot_of_run(key, states, n, sets)
    if sets.slots[at] >= 0:
        return np.int64(sets.slots[at])
    number = sizes[N_SETS]
    if number == sets.hashes.shape[0] or sets.start[number] + n > sets.items.shape[0]:
        return np.int64(UNKNOWN)
    begin = sets.start[number]
    for i in range(n):
        sets.items[begin + i] = states[i]
    sets.start[number + 1] = begin + n
    sets.hashes[number] = key
    sets.slots[at] = number
    sizes[N_SETS] = number + 1
    return np.int64(number)


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
        return number_of_set(found, n, feasible)
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
        return number_of_set(found, n, feasible)
    mark_shifted(states, column, feasible)
    for state in range(n_states):
        if feasible.marks[0, state]:
            feasible.marks[0, state] = False
            found[n] = state
            n += 1
    return number_of_set(found, n, feasible)


@kernel(entry=True)
def learn_after(states: int, symbol: int, feasible: Feasible) -> int:
    """Work out and note the set after a symbol, which is not noted yet. UNKNOWN without room."""
    if 2 * feasible.sizes[N_AFTER] >= feasible.after.keys.shape[0]:
        return np.int64(UNKNOWN)
    found = read_symbol(states, symbol, feasible)
    if found != UNKNOWN:
        note_set_after(states, symbol, found, feasible.after)
        feasible.sizes[N_AFTER] += 1
    return found
