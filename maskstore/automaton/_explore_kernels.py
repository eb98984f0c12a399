"""Compiled loops that follow configuration sets over all stacks.

`x` is an `Exploration`, see `exploration_tables`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton._parse_kernels import add_configuration, advance_configuration, representative
from maskwright.maskstore.automaton.exploration_tables import (
    ACCEPTED,
    DONE,
    ENDLESS,
    FIRST_STATE,
    FULL_CONFIGURATIONS,
    FULL_EDGES,
    FULL_PAIRS,
    FULL_REPRESENTATIVES,
    FULL_SETS,
    FULL_STATES,
    FULL_STEPS,
    IS_ACCEPTED,
    N_CONFIGURATIONS,
    N_EDGES,
    N_MEMBERS,
    N_PAIRS,
    N_REPRESENTATIVES,
    N_SETS,
    N_STATES,
    N_STEPS,
    NEXT_PAIR,
    NOTHING,
    PAUSED,
    REFUSED,
    Exploration,
)
from maskwright.maskstore.tokens._hash_kernels import hash_of_run, slot_of, slot_of_run, slot_of_step

NEW_STEP = 64
"""Units of work of a step that is not yet known. A known step takes one."""


@kernel(entry=True)
def representatives_of(
    continuation_of: Int32, top_of: Int32, next_index: Int64, representative_of: Int32, x: Exploration
) -> int:
    """The representatives of continuations, each with a state on top, from index next_index[0] on.

    A continuation without outcomes is its own representative.

    continuation_of, top_of : (n,) int32. Written, representative_of : (n,) int32; a continuation,
        or REFUSED_CONTINUATION.

    Returns DONE or FULL_REPRESENTATIVES.
    """
    for index in range(next_index[0], continuation_of.shape[0]):
        if x.sizes[N_REPRESENTATIVES] + 1 > x.representatives.keys.shape[0]:
            next_index[0] = index
            return FULL_REPRESENTATIVES
        continuation = continuation_of[index]
        representative_of[index] = continuation
        if continuation >= 0 and x.outcomes[continuation] >= 0:
            representative_of[index] = representative(
                continuation,
                top_of[index],
                x.continuations.symbol,
                x.positions.shape,
                x.outcomes,
                x.representatives,
                x.sizes,
            )
    return DONE


@kernel
def unique(members, n):  # type: ignore[no-untyped-def]
    """Sort members[:n] and remove duplicates. Returns how many are left. For small n: O(n^2)."""
    n_unique = 0
    for i in range(n):
        value = members[i]
        j = n_unique
        while j > 0 and members[j - 1] > value:
            j -= 1
        if j > 0 and members[j - 1] == value:
            continue
        for k in range(n_unique, j, -1):
            members[k] = members[k - 1]
        members[j] = value
        n_unique += 1
    return n_unique


@kernel
def configuration_set(members, n, states, sizes):  # type: ignore[no-untyped-def]
    """The number of the set of the configurations members[:n], a new one if it is not in the table.

    Sorts members. Returns REFUSED if n is 0.
    """
    if n == 0:
        return REFUSED
    n = unique(members, n)
    key = hash_of_run(members, n)
    at = slot_of_run(key, members, n, states)
    if states.slots[at] >= 0:
        return states.slots[at]
    number = sizes[N_STATES]
    sizes[N_STATES] = number + 1
    begin = states.start[number]
    for i in range(n):
        states.items[begin + i] = members[i]
    states.start[number + 1] = begin + n
    sizes[N_MEMBERS] = begin + n
    states.hashes[number] = key
    states.slots[at] = number
    return number


@kernel(forceinline=True)
def step(state, cell, x):  # type: ignore[no-untyped-def]
    """The result of reading one more cell in a configuration set.

    Returns REFUSED, ACCEPTED, the next configuration set, ENDLESS, TOO_DEEP or NO_SETS.
    """
    found = x.scratch.found
    n = 0
    for i in range(x.states.start[state], x.states.start[state + 1]):
        c = x.states.items[i]
        continuation = np.int64(x.configurations.parts[c, 0])
        pops = np.int64(x.configurations.parts[c, 1])
        pushed = np.int64(x.configurations.parts[c, 2])
        if pops > 0:
            if n + 8 > found.shape[0]:
                return ENDLESS
            n = add_configuration(continuation, pops - 1, pushed, cell, x, n)
            continue
        n = advance_configuration(continuation, pushed, cell, x, n)
        if n == IS_ACCEPTED:
            return ACCEPTED
        if n < 0:
            return n
    return configuration_set(found, n, x.states, x.sizes)


@kernel(forceinline=True)
def pair_of(state, cell, n_cells, keys, slots, sizes):  # type: ignore[no-untyped-def]
    """The number of a pair (configuration set, last cell), a new one if it is not in the table.

    keys, slots : of `Pairs`.
    """
    key = np.int64(state) * n_cells + cell
    slot = slot_of(key, keys, slots)
    if slots[slot] < 0:
        number = sizes[N_PAIRS]
        keys[number] = key
        slots[slot] = number
        sizes[N_PAIRS] = number + 1
    return slots[slot]


@kernel(forceinline=True)
def lack_of_room(width, x):  # type: ignore[no-untyped-def]
    """The code of a table that may be full before `width` more steps are made; DONE if none is."""
    sizes = x.sizes
    # BOUND: a step makes at most found.shape[0] configurations and representatives, and one
    # configuration set. It asks itself for room for each set of terminals (NO_SETS)
    most = width * x.scratch.found.shape[0]
    if sizes[N_CONFIGURATIONS] + most > x.configurations.keys.shape[0]:
        return FULL_CONFIGURATIONS
    if sizes[N_SETS] + most > x.sets.hashes.shape[0]:
        return FULL_SETS
    if sizes[N_STATES] + width + 2 > x.states.hashes.shape[0] or sizes[N_MEMBERS] + most > x.states.items.shape[0]:
        return FULL_STATES
    if 2 * (sizes[N_STEPS] + width) > x.steps.slots.shape[0]:
        return FULL_STEPS
    if sizes[N_PAIRS] + width + 2 > x.pairs.keys.shape[0]:
        return FULL_PAIRS
    if sizes[N_EDGES] + width > x.edges.after.shape[0]:
        return FULL_EDGES
    if sizes[N_REPRESENTATIVES] + most > x.representatives.keys.shape[0]:
        return FULL_REPRESENTATIVES
    return DONE


@kernel(entry=True)
def explore(x: Exploration, until: int) -> int:
    """Follow all pairs (configuration set, last cell) over the cells that can lie below.

    Begins with pair sizes[NEXT_PAIR]. New pairs are followed in the same call.

    Returns DONE, PAUSED (after `until` edges; one whose step is new counts NEW_STEP times),
    ENDLESS, TOO_DEEP, NO_SETS, or the code of a table that is full.
    """
    # PERF: arrays are taken out of their tuples once, before the loops
    predecessor_start, predecessors = x.parser.predecessor_start, x.parser.predecessors
    steps = x.steps.slots
    pair_keys, pair_slots, edge_start = x.pairs.keys, x.pairs.slots, x.pairs.edge_start
    edges, sizes = x.edges.after, x.sizes
    n_cells = x.parser.action.shape[0]
    done = 0
    while sizes[NEXT_PAIR] < sizes[N_PAIRS]:
        pair = sizes[NEXT_PAIR]
        if done >= until:
            return PAUSED
        state = pair_keys[pair] // n_cells
        cell = pair_keys[pair] % n_cells
        begin = predecessor_start[cell]
        end = predecessor_start[cell + 1]
        full = lack_of_room(end - begin, x)
        if full != DONE:
            return full
        at = sizes[N_EDGES]
        edge_start[pair] = at
        for i in range(begin, end):
            below = predecessors[i]
            # PERF: known steps are looked up without a call
            key = np.int64(state) * n_cells + below
            slot = slot_of_step(key, steps)
            if steps[slot, 0] != 0:
                after = steps[slot, 1]
            else:
                done += NEW_STEP
                after = np.int64(step(state, below, x))
                if after < 0:
                    return after
                steps[slot, 0] = key
                steps[slot, 1] = after
                sizes[N_STEPS] += 1
            if after >= FIRST_STATE:
                after = FIRST_STATE + np.int64(pair_of(after, below, n_cells, pair_keys, pair_slots, sizes))
            edges[at] = after
            at += 1
        sizes[N_EDGES] = at
        edge_start[pair + 1] = at
        sizes[NEXT_PAIR] = pair + 1
        done += end - begin + 1
    return DONE


@kernel(entry=True)
def explore_tops(
    continuation_of: Int32, top_of: Int32, next_index: Int64, pair_of_index: Int32, x: Exploration, until: int
) -> int:
    """The first step of continuations, each with a state on top, from index next_index[0] on.

    continuation_of, top_of : (n,) int32. Written, pair_of_index : (n,) int32; REFUSED, ACCEPTED or
        FIRST_STATE + the pair.

    Returns as `explore`; `until` is a number of continuations.
    """
    parser, symbol = x.parser, x.continuations.symbol
    n_cells, n_columns = parser.action.shape
    stop = next_index[0] + until
    while next_index[0] < continuation_of.shape[0]:
        index = next_index[0]
        if index >= stop:
            return PAUSED
        full = lack_of_room(1, x)
        if full != DONE:
            return full
        continuation = np.int64(continuation_of[index])
        top = np.int64(top_of[index])
        next_index[0] = index + 1
        pair_of_index[index] = REFUSED
        if continuation >= 0 and symbol[continuation] < n_columns and parser.action[top, symbol[continuation]] == 0:
            continue
        n = advance_configuration(continuation, NOTHING, top, x, 0)
        if n == IS_ACCEPTED:
            pair_of_index[index] = ACCEPTED
            continue
        if n < 0:
            next_index[0] = index
            return n
        state = configuration_set(x.scratch.found, n, x.states, x.sizes)
        if state >= FIRST_STATE:
            pair_of_index[index] = FIRST_STATE + pair_of(state, top, n_cells, x.pairs.keys, x.pairs.slots, x.sizes)
    return DONE
