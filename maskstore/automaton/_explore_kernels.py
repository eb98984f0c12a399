"""The jitted loops that follow suspended parses over all stacks. `x` is an `Exploration`, see `exploration_tables`."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton._hash_kernels import first_slot, mix, slot_of
from maskwright.maskstore.automaton._parse_kernels import advance_configuration, suspend, twin
from maskwright.maskstore.automaton.exploration_tables import (
    ACCEPTED,
    DONE,
    ENDLESS,
    FIRST_STATE,
    FULL_CONFIGURATIONS,
    FULL_EDGES,
    FULL_PAIRS,
    FULL_SETS,
    FULL_STATES,
    FULL_STEPS,
    FULL_TWINS,
    IS_ACCEPTED,
    N_CONFIGURATIONS,
    N_EDGES,
    N_MEMBERS,
    N_PAIRS,
    N_SETS,
    N_STEPS,
    N_SUSPENDED,
    N_TWINS,
    NEXT_PAIR,
    NOTHING,
    PAUSED,
    REFUSED,
)

NEW_STEP = 64
"""A step that is not yet known takes some times as long as one that is."""


@kernel
def least_twins(rest_of, top_of, next_place, twin_of, x):  # type: ignore[no-untyped-def]
    """The least twins of rests, each with a state on top, from place next_place[0] on; those without outcomes are their own.

    Returns DONE or FULL_TWINS.
    """
    for place in range(next_place[0], rest_of.shape[0]):
        if x.sizes[N_TWINS] + 1 > x.twins.keys.shape[0]:
            next_place[0] = place
            return FULL_TWINS
        rest = rest_of[place]
        twin_of[place] = rest
        if rest >= 0 and x.outcomes[rest] >= 0:
            twin_of[place] = twin(rest, top_of[place], x.rests.symbol, x.places.shape, x.outcomes, x.twins, x.sizes)
    return DONE


@kernel
def unique(members, n):  # type: ignore[no-untyped-def]
    """Sort members[:n] and leave each once; returns how many are left. They are few."""
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
def suspended(members, n, states, sizes):  # type: ignore[no-untyped-def]
    """The number of the suspended state with these configurations, members[:n] in any order; REFUSED for none. Sorts members."""
    if n == 0:
        return REFUSED
    n = unique(members, n)
    start, items = states.start, states.items
    h = np.uint64(88172645463325252)
    for i in range(n):
        h = mix(h, members[i])
    key = np.int64(h >> np.uint64(1))
    mask = states.slots.shape[0] - 1
    at = first_slot(key, states.slots)
    while states.slots[at] >= 0:
        known = states.slots[at]
        if states.hashes[known] == key and start[known + 1] - start[known] == n:
            same = True
            for i in range(n):
                if items[start[known] + i] != members[i]:
                    same = False
                    break
            if same:
                return known
        at = (at + 1) & mask
    number = sizes[N_SUSPENDED]
    sizes[N_SUSPENDED] = number + 1
    begin = start[number]
    for i in range(n):
        items[begin + i] = members[i]
    start[number + 1] = begin + n
    sizes[N_MEMBERS] = begin + n
    states.hashes[number] = key
    states.slots[at] = number
    return number


@kernel
def step(state, cell, x):  # type: ignore[no-untyped-def]
    """The suspended state after one more cell: REFUSED, ACCEPTED, a number, ENDLESS or TOO_DEEP."""
    found = x.scratch.found
    n = 0
    for i in range(x.states.start[state], x.states.start[state + 1]):
        c = x.states.items[i]
        rest = np.int64(x.configurations.parts[c, 0])
        pops = np.int64(x.configurations.parts[c, 1])
        pushed = np.int64(x.configurations.parts[c, 2])
        if pops > 0:
            if n + 8 > found.shape[0]:
                return ENDLESS
            n = suspend(rest, pops - 1, pushed, cell, x, n)
            continue
        n = advance_configuration(rest, pushed, cell, x, n)
        if n == IS_ACCEPTED:
            return ACCEPTED
        if n < 0:
            return n
    return suspended(found, n, x.states, x.sizes)


@kernel(forceinline=True)
def new_step(state, cell, x):  # type: ignore[no-untyped-def]
    """`step`, remembered. For a step that is not known."""
    after = step(state, cell, x)
    if after < 0:
        return after
    key = np.int64(state) * x.parser.action.shape[0] + cell
    number = x.sizes[N_STEPS]
    x.steps.keys[number] = key
    x.steps.result[number] = after
    x.steps.slots[slot_of(key, x.steps.keys, x.steps.slots)] = number
    x.sizes[N_STEPS] = number + 1
    return after


@kernel(forceinline=True)
def pair_of(state, cell, n_cells, keys, slots, sizes):  # type: ignore[no-untyped-def]
    """The number of a pair (suspended state, last cell). keys, slots : as of `Pairs`."""
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
    """Which table may be full before so many steps are made; DONE for none."""
    sizes = x.sizes
    # BOUND: a step makes at most found.shape[0] configurations, twins and sets, and one state
    most = width * x.scratch.found.shape[0]
    if sizes[N_CONFIGURATIONS] + most > x.configurations.keys.shape[0]:
        return FULL_CONFIGURATIONS
    if sizes[N_SETS] + most > x.sets.hashes.shape[0]:
        return FULL_SETS
    if sizes[N_SUSPENDED] + width + 2 > x.states.hashes.shape[0] or sizes[N_MEMBERS] + most > x.states.items.shape[0]:
        return FULL_STATES
    if sizes[N_STEPS] + width > x.steps.keys.shape[0]:
        return FULL_STEPS
    if sizes[N_PAIRS] + width + 2 > x.pairs.keys.shape[0]:
        return FULL_PAIRS
    if sizes[N_EDGES] + width > x.edges.after.shape[0]:
        return FULL_EDGES
    if sizes[N_TWINS] + most > x.twins.keys.shape[0]:
        return FULL_TWINS
    return DONE


@kernel
def explore(x, until):  # type: ignore[no-untyped-def]
    """Follow all pairs (suspended state, last cell read) over the cells that can lie below, from pair sizes[NEXT_PAIR] on.

    Returns DONE, PAUSED (after `until` edges, of which new ones count NEW_STEP times), ENDLESS, TOO_DEEP, or the table that is full.
    """
    # PERF: arrays are taken out of their tuples before the loops, as each time that is done their references are counted
    predecessor_start, predecessors = x.parser.predecessor_start, x.parser.predecessors
    step_keys, step_slots, step_result = x.steps.keys, x.steps.slots, x.steps.result
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
            # PERF: looked up here, since a call that passes some thirty arrays takes 0.4 us and nine of ten edges are known: 0.7 against 22
            # CPU-s for the 53 million edges of sql's suspended parses (vocabulary of the bundled model, numba 0.68)
            slot = slot_of(np.int64(state) * n_cells + below, step_keys, step_slots)
            if step_slots[slot] >= 0:
                after = np.int64(step_result[step_slots[slot]])
            else:
                done += NEW_STEP
                after = np.int64(new_step(state, below, x))
            if after < 0:
                return after
            if after >= FIRST_STATE:
                after = FIRST_STATE + np.int64(pair_of(after, below, n_cells, pair_keys, pair_slots, sizes))
            edges[at] = after
            at += 1
        sizes[N_EDGES] = at
        edge_start[pair + 1] = at
        sizes[NEXT_PAIR] = pair + 1
        done += end - begin + 1
    return DONE


@kernel
def explore_tops(rest_of, top_of, next_place, pair_of_place, x, until):  # type: ignore[no-untyped-def]
    """The first step of rests, each with a state on top, from place next_place[0] on. Returns as `explore`.

    rest_of, top_of : (n_places,) int32. Written, pair_of_place : (n_places,) int32; REFUSED, ACCEPTED or FIRST_STATE + the pair.
    """
    parser, symbol = x.parser, x.rests.symbol
    n_cells, n_columns = parser.action.shape
    stop = next_place[0] + until
    while next_place[0] < rest_of.shape[0]:
        place = next_place[0]
        if place >= stop:
            return PAUSED
        full = lack_of_room(1, x)
        if full != DONE:
            return full
        rest = np.int64(rest_of[place])
        top = np.int64(top_of[place])
        next_place[0] = place + 1
        pair_of_place[place] = REFUSED
        if rest >= 0 and symbol[rest] < n_columns and parser.action[top, symbol[rest]] == 0:
            continue
        n = advance_configuration(rest, NOTHING, top, x, 0)
        if n == IS_ACCEPTED:
            pair_of_place[place] = ACCEPTED
            continue
        if n < 0:
            next_place[0] = place
            return n
        state = suspended(x.scratch.found, n, x.states, x.sizes)
        if state >= FIRST_STATE:
            pair_of_place[place] = FIRST_STATE + pair_of(state, top, n_cells, x.pairs.keys, x.pairs.slots, x.sizes)
    return DONE


@kernel
def merge_steps(n_steps, n_cells, steps, pairs, classes, least):  # type: ignore[no-untyped-def]
    """Rewrite each step's result by what is known of the pair it leads to: decided early, or the least equivalent state.

    least : (n_classes + 2,) int32; the least state of each class.
    """
    for i in range(n_steps):
        after = steps.result[i]
        if after < FIRST_STATE:
            continue
        key = np.int64(after) * n_cells + steps.keys[i] % n_cells
        mine = classes[pairs.slots[slot_of(key, pairs.keys, pairs.slots)] + FIRST_STATE]
        steps.result[i] = mine if mine < FIRST_STATE else least[mine]
