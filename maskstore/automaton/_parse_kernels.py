"""The jitted loops over suspended parses: what an LR parser that knows only the top of its stack still has to see of it.

`lr` is one flat int32 array (`flatten_tables`), so that a call passes one array instead of eight; see PERF in `stack_automaton`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT

# places in the header of `lr`
N_STATES, N_COLUMNS, N_NONTERMINALS, ACTION, GOTO, RULE_LHS, RULE_LENGTH, ALTERNATIVES, DEFAULT = range(9)
PREDECESSOR_START, PREDECESSORS, N_RULES, MODE = range(9, 13)
HEADER = 96
"""Places up to the first table; the decoder's tables use those from 16 on."""

REFUSED = 0
ACCEPTED = 1
FIRST_STATE = 2
"""Suspended states are numbered from here."""

NOTHING = -1
"""In place of a nonterminal to push: the parse has not begun."""

ENDLESS = -2
"""Returned where reductions did not come to an end."""

TOO_DEEP = -3
"""Returned where a parse needs longer scratch stacks; the same call with such ones goes on."""

REFUSED_REST = -(1 << 30)
"""In place of a rest: no stack accepts it."""

MAX_POPS = 4096
"""More than the cells that a rule discards; see `flatten_tables`."""

# places in the header of `where`, which begins with the number of sets of states; see `Twins`
PLACE_START, PLACE_KEYS, PLACE_NUMBERS, SHAPE_OF = range(1, 5)
TWINS_HEADER = 8

FIRST_DEPTH = 512
MAX_BRANCHES = 64
MAX_STEPS = 100_000
"""Without a shift, or with other readings still to follow."""
NEW_STEP = 64
"""A step that is not yet known takes some times as long as one that is."""

# rows of `sizes`
N_CONFIGURATIONS, N_SUSPENDED, N_MEMBERS, N_SETS, N_STEPS, N_PAIRS, N_EDGES, NEXT_PAIR, N_TWINS = range(9)


@kernel
def slot_of(key, keys, slots):  # type: ignore[no-untyped-def]
    """Where an int64 key is or belongs in an open-addressed table: slots[result] is its number or -1."""
    mask = slots.shape[0] - 1
    h = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while slots[h] >= 0 and keys[slots[h]] != key:
        h = (h + 1) & mask
    return h


@kernel
def refill(keys, n, slots):  # type: ignore[no-untyped-def]
    """Fill an empty slot table from the first n keys."""
    add_keys(keys, 0, n, slots)


@kernel
def add_keys(keys, begin, end, slots):  # type: ignore[no-untyped-def]
    """Enter the keys begin .. end - 1 in a slot table; of equal ones the last."""
    for i in range(begin, end):
        slots[slot_of(keys[i], keys, slots)] = i


@kernel
def mix(h, value):  # type: ignore[no-untyped-def]
    """One more value into a 64-bit hash."""
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@kernel
def configuration(rest, pops, pushed, sizes, keys, parts, slots):  # type: ignore[no-untyped-def]
    """The number of a configuration: `pops` cells to discard, then `pushed` onto the next, then `rest` to read.

    keys : (capacity,) int64; parts : (capacity, 3) int32.
    """
    # BOUND: flatten_tables and build_suspended check that rests, pops and nonterminals fit 32, 12 and 18 bits
    key = (np.int64(rest) << np.int64(30)) ^ (np.int64(pops) << np.int64(18)) ^ np.int64(pushed + 1)
    slot = slot_of(key, keys, slots)
    if slots[slot] < 0:
        number = sizes[N_CONFIGURATIONS]
        sizes[N_CONFIGURATIONS] = number + 1
        keys[number] = key
        parts[number, 0] = rest
        parts[number, 1] = pops
        parts[number, 2] = pushed
        slots[slot] = number
    return slots[slot]


@kernel
def twin(rest, tops, rest_symbol, where, outcomes, sizes, twin_keys, twin_rest, twin_slots):  # type: ignore[no-untyped-def]
    """The least rest that reads alike where one of a set of states is on top (see `twins`); REFUSED_REST if no stack accepts it.

    tops : number of the set. twin_keys : (capacity,) int64; twin_rest : (capacity,) int32; twin_slots : as for `slot_of`.
    """
    begin = outcomes[rest]
    at = where[SHAPE_OF] + 2 * (rest_symbol[rest] * where[0] + tops)
    mine = outcomes[begin + where[at + 1]]
    if mine == 0:
        return REFUSED_REST
    key = (np.int64(where[at]) << np.int64(32)) ^ np.int64(mine)
    slot = slot_of(key, twin_keys, twin_slots)
    if twin_slots[slot] < 0:
        number = sizes[N_TWINS]
        sizes[N_TWINS] = number + 1
        twin_keys[number] = key
        twin_rest[number] = rest
        twin_slots[slot] = number
    return twin_rest[twin_slots[slot]]


@kernel
def suspend(  # type: ignore[no-untyped-def]
    rest, pops, pushed, cell, rest_symbol, where, outcomes, sizes, twin_keys, twin_rest, twin_slots, conf_keys,
    conf_parts, conf_slots, found,
    n_found,
):  # fmt: skip
    """Add a configuration to found[n_found:], of the rest's least twin behind the last cell read; none if no stack accepts it.

    Returns the new n_found.
    """
    if rest >= 0 and outcomes[rest] >= 0:
        key = pushed * MAX_POPS + pops
        at = where[where[PLACE_START] + cell]
        # BOUND: `Places` has every place behind every cell
        while where[where[PLACE_KEYS] + at] != key:
            at += 1
        tops = where[where[PLACE_NUMBERS] + at]
        rest = twin(rest, tops, rest_symbol, where, outcomes, sizes, twin_keys, twin_rest, twin_slots)
        if rest == REFUSED_REST:
            return n_found
    found[n_found] = configuration(rest, pops, pushed, sizes, conf_keys, conf_parts, conf_slots)
    return n_found + 1


@kernel
def least_twins(  # type: ignore[no-untyped-def]
    rest_of, top_of, next_place, twin_of, rest_symbol, where, outcomes, sizes, twin_keys, twin_rest, twin_slots
):  # fmt: skip
    """The least twins of rests, each with a state on top, from place next_place[0] on; those without outcomes are their own.

    Returns 0 when done, 7 if the table of twins is nearly full.
    """
    for place in range(next_place[0], rest_of.shape[0]):
        if sizes[N_TWINS] + 1 > twin_keys.shape[0]:
            next_place[0] = place
            return 7
        rest = rest_of[place]
        twin_of[place] = rest
        if rest >= 0 and outcomes[rest] >= 0:
            twin_of[place] = twin(
                rest, top_of[place], rest_symbol, where, outcomes, sizes, twin_keys, twin_rest, twin_slots
            )
    return 0


@kernel
def terminal_set(bits, sizes, set_keys, set_bits, slots):  # type: ignore[no-untyped-def]
    """The number of a set of terminals. bits : (n_words,) uint64. set_bits : (capacity, n_words)."""
    h = np.uint64(1469598103934665603)
    for w in range(bits.shape[0]):
        h = mix(h, bits[w])
    key = np.int64(h >> np.uint64(1))
    mask = slots.shape[0] - 1
    at = np.int64(h >> np.uint64(24)) & mask
    while slots[at] >= 0:
        found = slots[at]
        if set_keys[found] == key:
            same = True
            for w in range(bits.shape[0]):
                if set_bits[found, w] != bits[w]:
                    same = False
            if same:
                return found
        at = (at + 1) & mask
    number = sizes[N_SETS]
    sizes[N_SETS] = number + 1
    set_keys[number] = key
    for w in range(bits.shape[0]):
        set_bits[number, w] = bits[w]
    slots[at] = number
    return number


@kernel
def rest_key(rest, top, n_states):  # type: ignore[no-untyped-def]
    """One key for a rest (a sequence or an end check) and the state on top."""
    return (np.int64(rest) * 2 if rest >= 0 else np.int64(-rest) * 2 + 1) * n_states + top


@kernel
def rest_after(rest, top, n_states, known_keys, known_rest, known_slots):  # type: ignore[no-untyped-def]
    """The least rest known to be equivalent where `top` has just been shifted; REFUSED_REST if no stack below accepts it."""
    slot = slot_of(rest_key(rest, top, n_states), known_keys, known_slots)
    return known_rest[known_slots[slot]] if known_slots[slot] >= 0 else rest


@kernel
def push_branch(work, height, rest, branches, overlay, heights, rests):  # type: ignore[no-untyped-def]
    """Copy a parse under way onto the agenda; returns the new number of branches."""
    for i in range(height):
        overlay[branches, i] = work[i]
    heights[branches] = height
    rests[branches] = rest
    return branches + 1


@kernel
def next_rule(members, top, after, lr, set_bits, bits):  # type: ignore[no-untyped-def]
    """The least rule > `after` by which the state `top` reduces before some terminal of a set, and in `bits` all those terminals.

    Returns -1 if there is none, -2 if the state shifts one of the terminals.
    """
    columns = lr[N_COLUMNS]
    best = 1 << 30
    for word in range(bits.shape[0]):
        bits[word] = np.uint64(0)
    for column in range(columns):
        word = column >> 6
        bit = np.uint64(1) << np.uint64(column & 63)
        if set_bits[members, word] & bit == 0:
            continue
        action = lr[lr[ACTION] + top * columns + column]
        if action == 0:
            continue
        first = 0
        count = 1
        if action >= CONFLICT:
            first = lr[ALTERNATIVES] + action - CONFLICT + 1
            count = lr[first - 1]
        for i in range(count):
            each = action if first == 0 else lr[first + i]
            if each > 0:
                return -2
            rule = -each - 1
            if rule <= after or rule > best:
                continue
            if rule < best:
                best = rule
                for w in range(bits.shape[0]):
                    bits[w] = np.uint64(0)
            bits[word] |= bit
    return -1 if best == 1 << 30 else best


@kernel
def advance_configuration(  # type: ignore[no-untyped-def]
    rest, pushed, cell, lr, rest_symbol, rest_next, known_keys, known_rest, known_slots, where, outcomes, twin_keys,
    twin_rest, twin_slots,
    sizes, conf_keys, conf_parts, conf_slots,
    set_keys, set_bits, set_slots, work, overlay, heights, rests, found, n_found,
):  # fmt: skip
    """Read one cell and go on until the next one is needed.

    rest : a sequence (>= 0) or the end check for terminal set -rest - 1; set 0 means "whatever comes".
    known_keys, known_rest, known_slots : what `rest_after` knows; facts found so far make the parses that remain fewer.
    work : (depth,) int32, overlay : (MAX_BRANCHES, depth) int32; heights, rests : (MAX_BRANCHES,) int32, scratch.
    Configurations are added to found[n_found:]. Returns the new n_found, -1 if the rest is accepted, ENDLESS, TOO_DEEP.
    """
    columns = lr[N_COLUMNS]
    goto = lr[GOTO]
    n_nonterminals = lr[N_NONTERMINALS]
    bits = np.empty(set_bits.shape[1], np.uint64)
    work[0] = cell
    height = 1
    if pushed != NOTHING:
        work[1] = lr[goto + cell * n_nonterminals + pushed]
        height = 2
        if work[1] < 0:
            return n_found
    branches = push_branch(work, height, rest, 0, overlay, heights, rests)
    steps = 0
    while branches > 0:
        branches -= 1
        height = heights[branches]
        rest = rests[branches]
        for i in range(height):
            work[i] = overlay[branches, i]
        while True:
            steps += 1
            if rest == -1:
                return -1
            if steps > MAX_STEPS or branches + 8 > MAX_BRANCHES or n_found + 8 > found.shape[0]:
                return ENDLESS
            if height + 2 > work.shape[0]:
                return TOO_DEEP
            top = work[height - 1]
            if rest >= 0 and rest_symbol[rest] >= columns:
                # contextual lexing: the next lexeme was read in this mode
                if lr[lr[MODE] + top] != rest_symbol[rest] - columns:
                    break
                rest = rest_after(rest_next[rest], top, lr[N_STATES], known_keys, known_rest, known_slots)
                if rest == REFUSED_REST:
                    break
                continue
            rule = lr[lr[DEFAULT] + top]
            if rule < 0 and rest >= 0:
                action = lr[lr[ACTION] + top * columns + rest_symbol[rest]]
                if action == 0:
                    break
                if action == ACCEPT:
                    return -1  # the end marker is the last of a sequence
                if action >= CONFLICT:
                    first = lr[ALTERNATIVES] + action - CONFLICT + 1
                    for i in range(first, first + lr[first - 1]):
                        if lr[i] == ACCEPT:
                            return -1
                        if lr[i] > 0:
                            work[height] = lr[i] - 1
                            after = rest_after(
                                rest_next[rest], lr[i] - 1, lr[N_STATES], known_keys, known_rest, known_slots
                            )
                            if after != REFUSED_REST:
                                branches = push_branch(work, height + 1, after, branches, overlay, heights, rests)
                            continue
                        length = lr[lr[RULE_LENGTH] - lr[i] - 1]
                        lhs = lr[lr[RULE_LHS] - lr[i] - 1]
                        if height <= length:
                            n_found = suspend(
                                rest, length - height, lhs, cell, rest_symbol, where, outcomes, sizes, twin_keys, twin_rest,
                                twin_slots, conf_keys, conf_parts, conf_slots, found, n_found,
                            )  # fmt: skip
                        else:
                            below = height - length
                            kept = work[below] if below < height else 0
                            work[below] = lr[goto + work[below - 1] * n_nonterminals + lhs]
                            branches = push_branch(work, below + 1, rest, branches, overlay, heights, rests)
                            work[below] = kept
                    break
                if action > 0:
                    work[height] = action - 1
                    height += 1
                    if branches == 0:
                        steps = 0  # a long token takes many
                    rest = rest_after(rest_next[rest], action - 1, lr[N_STATES], known_keys, known_rest, known_slots)
                    if rest == REFUSED_REST:
                        break
                    continue
                rule = -action - 1
            elif rule < 0:
                # the end check: a shift of any of its terminals will do, else each reduction takes its own terminals along
                rule = next_rule(-rest - 1, top, -1, lr, set_bits, bits)
                if rule == -2:
                    return -1
                while rule >= 0:
                    ending = -terminal_set(bits, sizes, set_keys, set_bits, set_slots) - 1
                    length = lr[lr[RULE_LENGTH] + rule]
                    lhs = lr[lr[RULE_LHS] + rule]
                    if height <= length:
                        n_found = suspend(
                            ending, length - height, lhs, cell, rest_symbol, where, outcomes, sizes, twin_keys, twin_rest,
                            twin_slots, conf_keys, conf_parts, conf_slots, found, n_found,
                        )  # fmt: skip
                    else:
                        below = height - length
                        kept = work[below] if below < height else 0
                        work[below] = lr[goto + work[below - 1] * n_nonterminals + lhs]
                        branches = push_branch(work, below + 1, ending, branches, overlay, heights, rests)
                        work[below] = kept
                    rule = next_rule(-rest - 1, top, rule, lr, set_bits, bits)
                break
            length = lr[lr[RULE_LENGTH] + rule]
            lhs = lr[lr[RULE_LHS] + rule]
            if height <= length:
                n_found = suspend(
                    rest, length - height, lhs, cell, rest_symbol, where, outcomes, sizes, twin_keys, twin_rest,
                    twin_slots, conf_keys, conf_parts, conf_slots, found, n_found,
                )  # fmt: skip
                break
            height -= length
            work[height] = lr[goto + work[height - 1] * n_nonterminals + lhs]
            height += 1
    return n_found


@kernel
def suspended(members, n, sizes, starts, items, hashes, slots):  # type: ignore[no-untyped-def]
    """The number of the suspended state with these configurations, members[:n] in any order; REFUSED for none. Sorts members."""
    if n == 0:
        return REFUSED
    unique = 0
    for i in range(n):
        value = members[i]
        j = unique
        while j > 0 and members[j - 1] > value:
            j -= 1
        if j > 0 and members[j - 1] == value:
            continue
        for k in range(unique, j, -1):
            members[k] = members[k - 1]
        members[j] = value
        unique += 1
    h = np.uint64(88172645463325252)
    for i in range(unique):
        h = mix(h, members[i])
    key = np.int64(h >> np.uint64(1))
    mask = slots.shape[0] - 1
    at = np.int64(h >> np.uint64(24)) & mask
    while slots[at] >= 0:
        known = slots[at]
        if hashes[known] == key and starts[known + 1] - starts[known] == unique:
            same = True
            for i in range(unique):
                if items[starts[known] + i] != members[i]:
                    same = False
                    break
            if same:
                return known
        at = (at + 1) & mask
    number = sizes[N_SUSPENDED]
    sizes[N_SUSPENDED] = number + 1
    begin = starts[number]
    for i in range(unique):
        items[begin + i] = members[i]
    starts[number + 1] = begin + unique
    sizes[N_MEMBERS] = begin + unique
    hashes[number] = key
    slots[at] = number
    return number


@kernel
def refill_hashed(hashes, first, n, slots):  # type: ignore[no-untyped-def]
    """Fill an empty slot table whose keys are distinct things with stored 63-bit hashes."""
    mask = slots.shape[0] - 1
    for i in range(first, n):
        at = np.int64((np.uint64(hashes[i]) << np.uint64(1)) >> np.uint64(24)) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i


@kernel
def step(  # type: ignore[no-untyped-def]
    state, cell, lr, rest_symbol, rest_next, known_keys, known_rest, known_slots, where, outcomes, twin_keys, twin_rest, twin_slots,
    sizes, conf_keys, conf_parts, conf_slots, set_keys,
    set_bits, set_slots,
    starts, items, hashes, state_slots, work, overlay, heights, rests, found,
):  # fmt: skip
    """The suspended state after one more cell: REFUSED, ACCEPTED, a number, ENDLESS or TOO_DEEP."""
    n = 0
    for i in range(starts[state], starts[state + 1]):
        c = items[i]
        rest = conf_parts[c, 0]
        pops = conf_parts[c, 1]
        pushed = conf_parts[c, 2]
        if pops > 0:
            if n + 8 > found.shape[0]:
                return ENDLESS
            n = suspend(
                rest, pops - 1, pushed, cell, rest_symbol, where, outcomes, sizes, twin_keys, twin_rest, twin_slots,
                conf_keys, conf_parts,
                conf_slots, found, n,
            )  # fmt: skip
            continue
        n = advance_configuration(
            rest, pushed, cell, lr, rest_symbol, rest_next, known_keys, known_rest, known_slots, where, outcomes,
            twin_keys, twin_rest, twin_slots,
            sizes, conf_keys, conf_parts, conf_slots,
            set_keys, set_bits, set_slots, work, overlay, heights, rests, found, n,
        )  # fmt: skip
        if n == -1:
            return ACCEPTED
        if n < 0:
            return n
    return suspended(found, n, sizes, starts, items, hashes, state_slots)


@kernel
def explore(  # type: ignore[no-untyped-def]
    lr, rest_symbol, rest_next, known_keys, known_rest, known_slots, where, outcomes, twin_keys, twin_rest, twin_slots,
    sizes, conf_keys, conf_parts, conf_slots, set_keys, set_bits,
    set_slots,
    starts, items, hashes, state_slots, step_keys, step_result, step_slots, pair_keys, pair_slots, edge_start, edges,
    work, overlay, heights, rests, found, until,
):  # fmt: skip
    """Follow all pairs (suspended state, last cell read) over the cells that can lie below, from pair sizes[NEXT_PAIR] on.

    step_keys, step_result : (capacity,) int64, int32; the step of state s on cell c has the key s * n_states + c.
    pair_keys : likewise. edges[edge_start[p] : edge_start[p + 1]] : for each predecessor of the pair's cell REFUSED, ACCEPTED or
    FIRST_STATE + the pair that follows.
    Returns 0 when done, -1 to be called again (`until` edges, of which new ones count NEW_STEP times), ENDLESS, TOO_DEEP, or 1, 2, 3,
    ... for the table that is nearly full.
    """
    n_cells = lr[N_STATES]
    done = 0
    while sizes[NEXT_PAIR] < sizes[N_PAIRS]:
        pair = sizes[NEXT_PAIR]
        if done >= until:
            return -1
        state = pair_keys[pair] // n_cells
        cell = pair_keys[pair] % n_cells
        begin = lr[lr[PREDECESSOR_START] + cell]
        end = lr[lr[PREDECESSOR_START] + cell + 1]
        width = end - begin
        # BOUND: a step makes at most found.shape[0] configurations, twins and sets, and one state
        slack = width * found.shape[0]
        if sizes[N_CONFIGURATIONS] + slack > conf_keys.shape[0]:
            return 1
        if sizes[N_SETS] + slack > set_keys.shape[0]:
            return 2
        if sizes[N_SUSPENDED] + width + 2 > hashes.shape[0] or sizes[N_MEMBERS] + slack > items.shape[0]:
            return 3
        if sizes[N_STEPS] + width > step_keys.shape[0]:
            return 4
        if sizes[N_PAIRS] + width + 2 > pair_keys.shape[0]:
            return 5
        if sizes[N_EDGES] + width > edges.shape[0]:
            return 6
        if sizes[N_TWINS] + slack > twin_keys.shape[0]:
            return 7
        at = sizes[N_EDGES]
        edge_start[pair] = at
        for i in range(begin, end):
            below = lr[lr[PREDECESSORS] + i]
            # PERF: looked up here, since a call that passes some thirty arrays takes 0.4 us and nine of ten edges are known: 0.7 against 22
            # CPU-s for the 53 million edges of sql's suspended parses (vocabulary of the bundled model, numba 0.68)
            slot = slot_of(np.int64(state) * n_cells + below, step_keys, step_slots)
            if step_slots[slot] >= 0:
                after = step_result[step_slots[slot]]
            else:
                done += NEW_STEP
                after = memo_step(
                    state, below, lr, rest_symbol, rest_next, known_keys, known_rest, known_slots, where, outcomes,
                    twin_keys, twin_rest, twin_slots,
                    sizes, conf_keys, conf_parts, conf_slots,
                    set_keys, set_bits, set_slots,
                    starts, items, hashes, state_slots, step_keys, step_result, step_slots, work, overlay, heights, rests, found,
                )  # fmt: skip
            if after < 0:
                return after
            if after >= FIRST_STATE:
                after = FIRST_STATE + pair_of(after, below, n_cells, sizes, pair_keys, pair_slots)
            edges[at] = after
            at += 1
        sizes[N_EDGES] = at
        edge_start[pair + 1] = at
        sizes[NEXT_PAIR] = pair + 1
        done += width + 1
    return 0


@kernel
def pair_of(state, cell, n_cells, sizes, pair_keys, pair_slots):  # type: ignore[no-untyped-def]
    """The number of a pair (suspended state, last cell)."""
    key = np.int64(state) * n_cells + cell
    slot = slot_of(key, pair_keys, pair_slots)
    if pair_slots[slot] < 0:
        number = sizes[N_PAIRS]
        pair_keys[number] = key
        pair_slots[slot] = number
        sizes[N_PAIRS] = number + 1
    return pair_slots[slot]


@kernel
def memo_step(  # type: ignore[no-untyped-def]
    state, cell, lr, rest_symbol, rest_next, known_keys, known_rest, known_slots, where, outcomes, twin_keys, twin_rest, twin_slots,
    sizes, conf_keys, conf_parts, conf_slots, set_keys,
    set_bits, set_slots,
    starts, items, hashes, state_slots, step_keys, step_result, step_slots, work, overlay, heights, rests, found,
):  # fmt: skip
    """`step`, each once."""
    key = np.int64(state) * lr[N_STATES] + cell
    slot = slot_of(key, step_keys, step_slots)
    if step_slots[slot] < 0:
        after = step(
            state, cell, lr, rest_symbol, rest_next, known_keys, known_rest, known_slots, where, outcomes, twin_keys,
            twin_rest, twin_slots,
            sizes, conf_keys, conf_parts, conf_slots,
            set_keys, set_bits, set_slots,
            starts, items, hashes, state_slots, work, overlay, heights, rests, found,
        )  # fmt: skip
        if after < 0:
            return after
        number = sizes[N_STEPS]
        step_keys[number] = key
        step_result[number] = after
        step_slots[slot] = number
        sizes[N_STEPS] = number + 1
    return step_result[step_slots[slot]]


@kernel
def explore_tops(  # type: ignore[no-untyped-def]
    rest_of, top_of, next_place, pair_of_place, lr, rest_symbol, rest_next, known_keys, known_rest, known_slots,
    where, outcomes, twin_keys, twin_rest, twin_slots, sizes, conf_keys, conf_parts, conf_slots, set_keys, set_bits,
    set_slots, starts, items, hashes, state_slots,
    step_keys, step_result, step_slots, pair_keys, pair_slots, work, overlay, heights, rests, found, until,
):  # fmt: skip
    """The first step of rests, each with a state on top. Parameters and results as in `explore`.

    rest_of, top_of : (n_places,) int32. Written, pair_of_place : (n_places,) int32; REFUSED, ACCEPTED or FIRST_STATE + the pair.
    """
    n_cells = lr[N_STATES]
    columns = lr[N_COLUMNS]
    stop = next_place[0] + until
    while next_place[0] < rest_of.shape[0]:
        place = next_place[0]
        if place >= stop:
            return -1
        slack = found.shape[0]
        if sizes[N_CONFIGURATIONS] + slack > conf_keys.shape[0]:
            return 1
        if sizes[N_SETS] + slack > set_keys.shape[0]:
            return 2
        if sizes[N_SUSPENDED] + 4 > hashes.shape[0] or sizes[N_MEMBERS] + slack > items.shape[0]:
            return 3
        if sizes[N_STEPS] + 1 > step_keys.shape[0]:
            return 4
        if sizes[N_PAIRS] + 3 > pair_keys.shape[0]:
            return 5
        if sizes[N_TWINS] + slack > twin_keys.shape[0]:
            return 7
        rest = rest_of[place]
        top = top_of[place]
        next_place[0] = place + 1
        pair_of_place[place] = REFUSED
        if rest >= 0 and rest_symbol[rest] < columns and lr[lr[ACTION] + top * columns + rest_symbol[rest]] == 0:
            continue
        n = advance_configuration(
            rest, NOTHING, top, lr, rest_symbol, rest_next, known_keys, known_rest, known_slots, where, outcomes,
            twin_keys, twin_rest, twin_slots,
            sizes, conf_keys, conf_parts,
            conf_slots, set_keys, set_bits, set_slots, work, overlay, heights, rests, found, 0,
        )  # fmt: skip
        if n == -1:
            pair_of_place[place] = ACCEPTED
            continue
        if n < 0:
            next_place[0] = place
            return n
        state = suspended(found, n, sizes, starts, items, hashes, state_slots)
        if state >= FIRST_STATE:
            pair_of_place[place] = FIRST_STATE + pair_of(state, top, n_cells, sizes, pair_keys, pair_slots)
    return 0


@kernel
def merge_steps(n_steps, n_cells, step_keys, step_result, pair_keys, pair_slots, classes, least):  # type: ignore[no-untyped-def]
    """Rewrite each step's result by what is known of the pair it leads to: decided early, or the least equivalent state.

    least : (n_classes + 2,) int32; the least state of each class.
    """
    for i in range(n_steps):
        after = step_result[i]
        if after < FIRST_STATE:
            continue
        key = np.int64(after) * n_cells + step_keys[i] % n_cells
        mine = classes[pair_slots[slot_of(key, pair_keys, pair_slots)] + FIRST_STATE]
        step_result[i] = mine if mine < FIRST_STATE else least[mine]
