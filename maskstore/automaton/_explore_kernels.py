"""Compiled loops that follow configuration sets over all stacks.

`x` is an `Exploration`, see `exploration_tables`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32, Int64, UInt64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton import exploration_tables as exploring
from maskwright.maskstore.automaton._parse_kernels import (
    add_configuration,
    advance_configuration,
    parts_of,
    representative,
)
from maskwright.maskstore.tokens._hash_kernels import number_of_key, number_of_run, slot_of_step

NEW_STEP = 64
"""Units of work of a step that is not yet known. A known step takes one."""


@kernel(entry=True)
def number_of_set(bits: UInt64, sets: exploring.TerminalSets) -> int:
    """The number of a set of terminals, (n_words,) uint64; a new one if it has none."""
    return number_of_run(bits, bits.shape[0], sets)


@kernel(entry=True)
def representatives_of(
    continuation_of: Int32, top_of: Int32, next_index: Int64, representative_of: Int32, x: exploring.Exploration
) -> int:
    """The representatives of continuations, each with a state on top, from index next_index[0] on.

    A continuation without outcomes is its own representative.

    continuation_of, top_of : (n,) int32. Written, representative_of : (n,) int32; a continuation,
        or REFUSED_CONTINUATION.

    Returns DONE or FULL_REPRESENTATIVES.
    """
    for index in range(next_index[0], continuation_of.shape[0]):
        if x.representatives.size[0] == x.representatives.keys.shape[0]:
            next_index[0] = index
            return exploring.FULL_REPRESENTATIVES
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
            )
    return exploring.DONE


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
def configuration_set(members, n, states):  # type: ignore[no-untyped-def]
    """The number of the set of the configurations members[:n], a new one if it is not in the table.

    Sorts members. Returns REFUSED if n is 0.
    """
    return number_of_run(members, unique(members, n), states) if n > 0 else np.int64(exploring.REFUSED)


@kernel(forceinline=True)
def step(state, cell, x):  # type: ignore[no-untyped-def]
    """The result of reading one more cell in a configuration set.

    Returns REFUSED, ACCEPTED, the next configuration set, ENDLESS, TOO_DEEP or NO_SETS.
    """
    found = x.scratch.found
    n = 0
    for i in range(x.states.start[state], x.states.start[state + 1]):
        continuation, pops, pushed = parts_of(x.configurations.keys[x.states.items[i]])
        if pops > 0:
            if n + 8 > found.shape[0]:
                return exploring.ENDLESS
            n = add_configuration(continuation, pops - 1, pushed, cell, x, n)
            continue
        n = advance_configuration(continuation, pushed, cell, x, n)
        if n == exploring.IS_ACCEPTED:
            return exploring.ACCEPTED
        if n < 0:
            return n
    return configuration_set(found, n, x.states)


@kernel(forceinline=True)
def lack_of_room(width, x):  # type: ignore[no-untyped-def]
    """The code of a table that may be full before `width` more steps are made; DONE if none is."""
    cursor, states = x.cursor, x.states
    # BOUND: a step makes at most found.shape[0] configurations and representatives, and one
    # configuration set. It asks itself for room for each set of terminals (NO_SETS)
    most = width * x.scratch.found.shape[0]
    if x.configurations.size[0] + most > x.configurations.keys.shape[0]:
        return exploring.FULL_CONFIGURATIONS
    if x.sets.size[0] + most > x.sets.hashes.shape[0]:
        return exploring.FULL_SETS
    if (
        states.size[0] + width + 2 > states.hashes.shape[0]
        or states.start[states.size[0]] + most > states.items.shape[0]
    ):
        return exploring.FULL_STATES
    if 2 * (cursor[exploring.N_STEPS] + width) > x.steps.slots.shape[0]:
        return exploring.FULL_STEPS
    if x.pairs.size[0] + width + 2 > x.pairs.keys.shape[0]:
        return exploring.FULL_PAIRS
    if cursor[exploring.N_EDGES] + width > x.edges.shape[0]:
        return exploring.FULL_EDGES
    if x.representatives.size[0] + most > x.representatives.keys.shape[0]:
        return exploring.FULL_REPRESENTATIVES
    return exploring.DONE


@kernel(entry=True)
def explore(x: exploring.Exploration, until: int) -> int:
    """Follow all pairs (configuration set, last cell) over the cells that can lie below.

    Begins with pair cursor[NEXT_PAIR]. New pairs are followed in the same call.

    Returns DONE, PAUSED (after `until` edges; one whose step is new counts NEW_STEP times),
    ENDLESS, TOO_DEEP, NO_SETS, or the code of a table that is full.
    """
    # PERF: arrays are taken out of their tuples once, before the loops
    predecessor_start, predecessors = x.parser.predecessor_start, x.parser.predecessors
    steps = x.steps.slots
    pairs, pair_keys, edge_start = x.pairs, x.pairs.keys, x.pairs.edge_start
    edges, cursor = x.edges, x.cursor
    n_cells = x.parser.action.shape[0]
    done = 0
    while cursor[exploring.NEXT_PAIR] < pairs.size[0]:
        pair = cursor[exploring.NEXT_PAIR]
        if done >= until:
            return exploring.PAUSED
        state = pair_keys[pair] // n_cells
        cell = pair_keys[pair] % n_cells
        begin = predecessor_start[cell]
        end = predecessor_start[cell + 1]
        full = lack_of_room(end - begin, x)
        if full != exploring.DONE:
            return full
        at = cursor[exploring.N_EDGES]
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
                cursor[exploring.N_STEPS] += 1
            if after >= exploring.FIRST_STATE:
                after = exploring.FIRST_STATE + number_of_key(after * n_cells + below, pairs)
            edges[at] = after
            at += 1
        cursor[exploring.N_EDGES] = at
        edge_start[pair + 1] = at
        cursor[exploring.NEXT_PAIR] = pair + 1
        done += end - begin + 1
    return exploring.DONE


@kernel(entry=True)
def explore_tops(
    continuation_of: Int32, top_of: Int32, next_index: Int64, pair_of_index: Int32, x: exploring.Exploration, until: int
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
            return exploring.PAUSED
        full = lack_of_room(1, x)
        if full != exploring.DONE:
            return full
        continuation = np.int64(continuation_of[index])
        top = np.int64(top_of[index])
        next_index[0] = index + 1
        pair_of_index[index] = exploring.REFUSED
        if continuation >= 0 and symbol[continuation] < n_columns and parser.action[top, symbol[continuation]] == 0:
            continue
        n = advance_configuration(continuation, exploring.NOTHING, top, x, 0)
        if n == exploring.IS_ACCEPTED:
            pair_of_index[index] = exploring.ACCEPTED
            continue
        if n < 0:
            next_index[0] = index
            return n
        state = configuration_set(x.scratch.found, n, x.states)
        if state >= exploring.FIRST_STATE:
            pair_of_index[index] = exploring.FIRST_STATE + number_of_key(state * n_cells + top, x.pairs)
    return exploring.DONE
