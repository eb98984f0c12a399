"""The jitted loops behind `exact`: an LR parser on stacks of which only the top part is known.

A stack is read from the top, one cell (LR state) after another. After some cells, the parser waits
for the next cell in some *pending* reductions. Each is packed into an int64: (which of the two
words, position in it, cells still to pop, nonterminal). A *configuration set* is a sorted set of
pending reductions, with two flags that say which words have been accepted. A *node* is a
configuration set and the cell read last. Configuration sets and nodes are interned, so the graph of
nodes is finite.

The readable formulas, for a pending reduction (p, k, A) and a next cell c:

    k > 0:  (p, k - 1, A)
    k = 0:  run the parser on the word from position p with the stack ... c goto(c, A). It ends in
            one of:
            - the word is used up: accepted;
            - no action: refused;
            - a rule of length l for the nonterminal B, on a stack of which only d <= l states are
              known: (p', l - d, B).

Where a cell of the tables has several actions, the parser runs on with each of them. Callers own
all arrays and have checked everything. A negative result means that an array is too short, and that
nothing has been decided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int32_2D, Int64, Int64_2D
from maskwright.analysis.jit import kernel

CONFLICT = 1 << 30
FIELD_BITS = 20
"""Bits of each field of a packed pending reduction: position, cells to pop, nonterminal."""

NEVER_MODE, SAME_MODE = 0, 1
"""Modes of a search. A node is bad if the first word is accepted, or if just one of the two is."""

TOO_SMALL = -1
_OPEN, _ACCEPTED = 0, 1
_REFUSES, _FORKS, _SHIFTS = -1, -2, -3
_REFUSED_ABOVE, _ACCEPTED_ABOVE, _NEEDS_BELOW = _OPEN, _ACCEPTED, 2
_GOOD, _BAD, _UNDECIDED = 0, 1, 2
_ACTIONS_A_CELL = 256
"""Actions of one run, for each cell of room on the stack; past them the parser may run for ever."""
_MASK = (1 << FIELD_BITS) - 1
_BELOW_POSITION = (1 << (2 * FIELD_BITS)) - 1
_HASH_BITS = 40
_HASH_MASK = (1 << _HASH_BITS) - 1


class Tables(NamedTuple):
    """The arrays of `LrTables` that a parser needs; see there."""

    action: Int32_2D
    goto: Int32_2D
    alternatives: Int32
    rule_lhs: Int32
    rule_length: Int32
    predecessor_start: Int32
    predecessors: Int32


class Scratch(NamedTuple):
    """Scratch space of a search.

    A slot of a hash table is in use if its stamp is that of the present case.

    configuration_sets : (n + 1, 2) int64; the begin of a set's members in `pending`, and its flags.
        The begin of the next set is its end.
    set_slots : (2^i, 2) int64; stamp and configuration set.
    pending : (m,) int64; packed pending reductions.
    nodes : (n, 3) int32, in the order found; a node's configuration set, its cell, and the node
        from which it was reached, -1 for a top.
    node_slots : (2^j, 2) int64; stamp and node.
    stack : (depth,) int32; the known part of a stack, its top last.
    others : (cells,) int32; the stacks of alternatives that have not been run yet.
    other_ends : (rows, 3) int64; for each alternative the begin of its stack in `others`, the
        stack's depth, and the position in the word.
    bad : (wanted, 2) int32; the node from which a bad node was reached, -1 for a top, and the bad
        node's cell.
    above : (2^k, 3) int64; stamp, key and answer of `_run_above`.
    reduced : (2^l, 2) int64; key and answer of `_reduce`; key -1 = free. It depends on the tables
        only, not on a case, so it has no stamps.

    `above` and `reduced` are caches with one entry a slot: a new key overwrites another's.
    """

    configuration_sets: Int64_2D
    set_slots: Int64_2D
    pending: Int64
    nodes: Int32_2D
    node_slots: Int64_2D
    stack: Int32
    others: Int32
    other_ends: Int64_2D
    bad: Int32_2D
    above: Int64_2D
    reduced: Int64_2D


@kernel
def _pack(tag, position, pops, nonterminal):  # type: ignore[no-untyped-def]
    """A pending reduction as an int64. tag : 0 or 1, which of the two words."""
    high = np.int64(tag) << FIELD_BITS | np.int64(position)
    return (high << FIELD_BITS | np.int64(pops)) << FIELD_BITS | np.int64(nonterminal)


@kernel
def _mix(key, value):  # type: ignore[no-untyped-def]
    """A hash below 2**40. No product overflows, so that NumPy does not warn without the JIT."""
    mixed = ((key ^ (value & _HASH_MASK) ^ (value >> _HASH_BITS)) * 1000003) & _HASH_MASK
    return mixed ^ (mixed >> 17)


@kernel
def _insert(pending, begin, end, value):  # type: ignore[no-untyped-def]
    """Add a value to the sorted set pending[begin:end]. Returns its new end, or TOO_SMALL."""
    if end >= pending.shape[0]:
        return TOO_SMALL
    at = end
    while at > begin and pending[at - 1] > value:
        at -= 1
    if at > begin and pending[at - 1] == value:
        return end
    for i in range(end, at, -1):
        pending[i] = pending[i - 1]
    pending[at] = value
    return end + 1


@kernel
def _act(tables, stack, depth, action):  # type: ignore[no-untyped-def]
    """Do a shift or a reduction on a stack of `depth` known cells.

    Returns the new depth, or -1 - k if k cells below the known ones must be popped.
    """
    if action > 0:
        stack[depth] = action - 1
        return depth + 1
    length = tables.rule_length[-action - 1]
    if length >= depth:
        return depth - length - 1
    depth -= length
    stack[depth] = tables.goto[stack[depth - 1], tables.rule_lhs[-action - 1]]
    return depth + 1


@kernel
def _reduce(tables, scratch, cell, nonterminal, column):  # type: ignore[no-untyped-def]
    """The end of the reductions on one lookahead, from the stack ... cell goto(cell, nonterminal).

    Returns _REFUSES if there is no action; _FORKS if an action is a conflict, or there are too many
    actions or cells; _SHIFTS - s if state s shifts the lookahead; or the reduction that goes on
    below the cell, packed at position 0.
    """
    scratch.stack[0] = cell
    scratch.stack[1] = tables.goto[cell, nonterminal]
    depth = np.int64(2)
    for _ in range(_ACTIONS_A_CELL):
        action = np.int64(tables.action[scratch.stack[depth - 1], column])
        if action >= CONFLICT or depth >= scratch.stack.shape[0]:
            return np.int64(_FORKS)
        if action >= 0:
            return np.int64(_SHIFTS) - scratch.stack[depth - 1] if action else np.int64(_REFUSES)
        depth = _act(tables, scratch.stack, depth, action)
        if depth < 0:
            return _pack(0, 0, -1 - depth, tables.rule_lhs[-action - 1])
    return np.int64(_FORKS)


@kernel
def _is_new_alternative(others, ends, row):  # type: ignore[no-untyped-def]
    """Whether alternative `row` differs from all before it.

    Equal stacks at one position need not be run twice.
    """
    begin, depth = ends[row, 0], ends[row, 1]
    for other in range(row):
        if ends[other, 1] != depth or ends[other, 2] != ends[row, 2]:
            continue
        i = depth - 1
        while i >= 0 and others[ends[other, 0] + i] == others[begin + i]:
            i -= 1
        if i < 0:
            return False
    return True


@kernel
def _run(tables, scratch, word, position, depth, tag, begin, end):  # type: ignore[no-untyped-def]
    """Run the parser on the word from `position`, with scratch.stack[:depth] known.

    The pending reductions that it ends in are added to the set pending[begin:end].

    Returns _ACCEPTED, _OPEN or TOO_SMALL, and the new end of the set. _OPEN covers a word that is
    refused: no reduction is added then.
    """
    stack, others, ends = scratch.stack, scratch.others, scratch.other_ends
    n_others, next_other, free, n_actions = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while True:
        while True:
            if position == word.shape[0]:
                return np.int64(_ACCEPTED), end
            n_actions += 1
            column = word[position]
            action = np.int64(tables.action[stack[depth - 1], column]) if column >= 0 else np.int64(0)
            if action == 0:
                break
            # BOUND: an action adds at most one state
            if depth >= stack.shape[0] or n_actions > _ACTIONS_A_CELL * stack.shape[0]:
                return np.int64(TOO_SMALL), end
            if action < CONFLICT:
                after = _act(tables, stack, depth, action)
                if after < 0:
                    packed = _pack(tag, position, -1 - after, tables.rule_lhs[-action - 1])
                    end = _insert(scratch.pending, begin, end, packed)
                    if end < 0:
                        return np.int64(TOO_SMALL), end
                    break
                position += action > 0
                depth = after
                continue
            at = action - CONFLICT
            for i in range(at + 1, at + 1 + tables.alternatives[at]):
                action = np.int64(tables.alternatives[i])
                if n_others >= ends.shape[0] or free + depth >= others.shape[0]:
                    return np.int64(TOO_SMALL), end
                for j in range(depth):
                    others[free + j] = stack[j]
                after = _act(tables, others[free:], depth, action)
                if after < 0:
                    packed = _pack(tag, position, -1 - after, tables.rule_lhs[-action - 1])
                    end = _insert(scratch.pending, begin, end, packed)
                    if end < 0:
                        return np.int64(TOO_SMALL), end
                    continue
                ends[n_others, 0] = free
                ends[n_others, 1] = after
                ends[n_others, 2] = position + (action > 0)
                if _is_new_alternative(others, ends, n_others):
                    n_others += 1
                    free += after
            break
        if next_other == n_others:
            return np.int64(_OPEN), end
        depth, position = ends[next_other, 1], ends[next_other, 2]
        for j in range(depth):
            stack[j] = others[ends[next_other, 0] + j]
        next_other += 1


@kernel
def _run_above(tables, scratch, columns, part, position, tag, state, end):  # type: ignore[no-untyped-def]
    """The outcome of the word from `position` with a state on top, if the state alone decides it.

    Returns _ACCEPTED_ABOVE, _REFUSED_ABOVE, _NEEDS_BELOW or TOO_SMALL.
    """
    scratch.stack[0] = state
    word = columns[part[2 * tag] : part[2 * tag + 1]]
    # a temporary set after pending[:end], which stays unchanged
    accepted, after = _run(tables, scratch, word, position, np.int64(1), tag, end, end)
    if accepted < 0:
        return np.int64(TOO_SMALL)
    return np.int64(_ACCEPTED_ABOVE if accepted else _REFUSED_ABOVE if after == end else _NEEDS_BELOW)


@kernel
def _run_from(tables, scratch, columns, part, packed, configuration_set, cell, tag, begin, end):  # type: ignore[no-untyped-def]
    """`_run` from the top of a stack (set -1), or from a pending reduction on its last cell.

    Returns as `_run`.
    """
    word = columns[part[2 * tag] : part[2 * tag + 1]]
    scratch.stack[0] = cell
    if configuration_set < 0:
        return _run(tables, scratch, word, np.int64(0), np.int64(1), tag, begin, end)
    scratch.stack[1] = tables.goto[cell, packed & _MASK]
    return _run(tables, scratch, word, (packed >> (2 * FIELD_BITS)) & _MASK, np.int64(2), tag, begin, end)


@kernel
def _judge_set(flags, begin, end, mode):  # type: ignore[no-untyped-def]
    """Whether a set with the members pending[begin:end] is _GOOD, _BAD or _UNDECIDED."""
    if mode == NEVER_MODE:
        if flags & 1:
            return _BAD
        return _GOOD if begin == end else _UNDECIDED
    if begin == end:
        return _BAD if flags == 1 or flags == 2 else _GOOD
    return _UNDECIDED


@kernel
def _intern_set(configuration_sets, slots, pending, stamp, n_sets, flags, end):  # type: ignore[no-untyped-def]
    """Intern the set whose members stand after those of the last set, up to `end`.

    Returns an equal set's number, n_sets if the set is new, or TOO_SMALL.
    """
    begin = configuration_sets[n_sets, 0]
    mask = slots.shape[0] - 1
    key = flags + 1
    for i in range(begin, end):
        key = _mix(key, pending[i])
    slot = key & mask
    while slots[slot, 0] == stamp:
        known = slots[slot, 1]
        start = configuration_sets[known, 0]
        if configuration_sets[known, 1] == flags and configuration_sets[known + 1, 0] - start == end - begin:
            i = 0
            while i < end - begin and pending[start + i] == pending[begin + i]:
                i += 1
            if i == end - begin:
                return known
        slot = (slot + 1) & mask
    if n_sets + 1 >= configuration_sets.shape[0] or 2 * n_sets >= mask:
        return np.int64(TOO_SMALL)
    slots[slot, 0] = stamp
    slots[slot, 1] = n_sets
    configuration_sets[n_sets, 1] = flags
    configuration_sets[n_sets + 1, 0] = end
    return n_sets


@kernel
def _intern_node(nodes, slots, stamp, n_nodes, configuration_set, cell, parent):  # type: ignore[no-untyped-def]
    """Add a node unless it is known. Returns the new number of nodes, or TOO_SMALL."""
    mask = slots.shape[0] - 1
    slot = _mix(_mix(np.int64(1), configuration_set), np.int64(cell)) & mask
    while slots[slot, 0] == stamp:
        known = slots[slot, 1]
        if nodes[known, 0] == configuration_set and nodes[known, 1] == cell:
            return n_nodes
        slot = (slot + 1) & mask
    if n_nodes >= nodes.shape[0] or 2 * n_nodes >= mask:
        return np.int64(TOO_SMALL)
    slots[slot, 0] = stamp
    slots[slot, 1] = n_nodes
    nodes[n_nodes, 0] = configuration_set
    nodes[n_nodes, 1] = cell
    nodes[n_nodes, 2] = parent
    return n_nodes + 1


@kernel(forceinline=True)
def _answer(tables, scratch, stamp, columns, part, packed, cell, tag, begin, end):  # type: ignore[no-untyped-def]
    """What becomes of a pending reduction that has popped all it pops, once a cell is known.

    Returns _REFUSED_ABOVE, _NEEDS_BELOW or what `_run_above` says; and the new end of the members,
    or TOO_SMALL.
    Two caches answer nearly always.
    """
    pending, above, reduced = scratch.pending, scratch.above, scratch.reduced
    n_nonterminals, n_columns = np.int64(tables.goto.shape[1]), np.int64(tables.action.shape[1])
    position = (packed >> (2 * FIELD_BITS)) & _MASK
    # BOUND: a pending reduction has the word's next terminal as its lookahead,
    # so its position is inside the word
    column = np.int64(columns[part[2 * tag] + position])
    key = (cell * n_nonterminals + (packed & _MASK)) * n_columns + column
    slot = _mix(np.int64(1), key) & (reduced.shape[0] - 1)
    if reduced[slot, 0] != key:
        reduced[slot, 0] = key
        reduced[slot, 1] = _reduce(tables, scratch, cell, packed & _MASK, column)
    ends = reduced[slot, 1]
    answer = np.int64(_NEEDS_BELOW)
    if ends == _REFUSES:
        answer = np.int64(_REFUSED_ABOVE)
    elif ends >= 0:
        answer = np.int64(_REFUSED_ABOVE)
        end = _insert(pending, begin, end, ends | (packed & ~_BELOW_POSITION))
    elif ends <= _SHIFTS:
        key = _pack(tag, position, 0, _SHIFTS - ends)
        slot = _mix(np.int64(1), key) & (above.shape[0] - 1)
        if above[slot, 0] != stamp or above[slot, 1] != key:
            above[slot, 0] = stamp
            above[slot, 1] = key
            above[slot, 2] = _run_above(tables, scratch, columns, part, position, tag, _SHIFTS - ends, end)
        answer = above[slot, 2]
    return answer, end


@kernel
def _explore(tables, scratch, stamp, columns, part, all_tops, mode):  # type: ignore[no-untyped-def]
    """Search the nodes that the tops lead to, breadth first, until scratch.bad is full.

    Returns the numbers of nodes and of bad ones. The first is TOO_SMALL if there was no room.
    """
    # PERF: we take the arrays out of the tuples once, before the loops
    configuration_sets, set_slots, pending = scratch.configuration_sets, scratch.set_slots, scratch.pending
    nodes, node_slots, bad = scratch.nodes, scratch.node_slots, scratch.bad
    predecessor_start, predecessors = tables.predecessor_start, tables.predecessors
    n_words = 1 if mode == NEVER_MODE else 2
    # PERF: with plain literals Numba would compile the functions called below twice
    n_nodes, n_sets, n_bad, node, configuration_set = np.int64(0), np.int64(0), np.int64(0), np.int64(-1), np.int64(-1)
    at, until = part[4], part[5]
    configuration_sets[0, 0] = 0
    while True:
        while at < until:
            cell = np.int64(all_tops[at] if configuration_set < 0 else predecessors[at])
            at += 1
            # the set after this cell: its members are written after those of the last set
            begin = configuration_sets[n_sets, 0]
            end = begin
            flags = np.int64(0) if configuration_set < 0 else configuration_sets[configuration_set, 1]
            member = np.int64(0) if configuration_set < 0 else configuration_sets[configuration_set, 0]
            for tag in range(n_words):
                begin_of_tag = end
                accepted = np.int64(_OPEN)
                # before a stack's top each word counts as one pending reduction, not stored
                last = np.int64(tag + 1) if configuration_set < 0 else configuration_sets[configuration_set + 1, 0]
                while member < last:
                    packed = _pack(tag, 0, 0, 0) if configuration_set < 0 else pending[member]
                    if packed >> (3 * FIELD_BITS) != tag:
                        break
                    member += 1
                    if accepted:
                        continue
                    if (packed >> FIELD_BITS) & _MASK:
                        end = _insert(pending, begin, end, packed - (1 << FIELD_BITS))
                    elif configuration_set < 0:
                        accepted, end = _run_from(
                            tables, scratch, columns, part, packed, configuration_set, cell, tag, begin, end
                        )
                    else:
                        answer, end = _answer(tables, scratch, stamp, columns, part, packed, cell, tag, begin, end)
                        if answer == _NEEDS_BELOW:
                            accepted, end = _run_from(
                                tables, scratch, columns, part, packed, configuration_set, cell, tag, begin, end
                            )
                        else:
                            accepted = answer
                    if accepted < 0 or end < 0:
                        return np.int64(TOO_SMALL), n_bad
                if accepted:
                    flags |= 1 << tag
                    # this word's other members no longer matter; they are the greatest, hence last
                    end = begin_of_tag
            verdict = _judge_set(flags, begin, end, mode)
            if verdict == _BAD:
                bad[n_bad, 0] = node
                bad[n_bad, 1] = cell
                n_bad += 1
                if n_bad == bad.shape[0]:
                    return n_nodes, n_bad
            elif verdict == _UNDECIDED:
                found = _intern_set(configuration_sets, set_slots, pending, stamp, n_sets, flags, end)
                if found < 0:
                    return np.int64(TOO_SMALL), n_bad
                n_sets += found == n_sets
                n_nodes = _intern_node(nodes, node_slots, stamp, n_nodes, found, cell, node)
                if n_nodes < 0:
                    return np.int64(TOO_SMALL), n_bad
        node += 1
        if node >= n_nodes:
            return n_nodes, n_bad
        configuration_set = np.int64(nodes[node, 0])
        at, until = np.int64(predecessor_start[nodes[node, 1]]), np.int64(predecessor_start[nodes[node, 1] + 1])


@kernel(entry=True)
def explore(
    tables: Tables,
    scratch: Scratch,
    columns: Int32,
    parts: Int64_2D,
    all_tops: Int32,
    mode: int,
    next_case: int,
    found: Int64_2D,
) -> int:
    """Search the cases from `next_case` on.

    columns : (n,) int32; the words' terminals as columns of the tables, -1 for one of no rule.
    parts : (n_cases, 6) int64; for each case begin and end of its first word and of its second word
        in `columns`, and of its tops in `all_tops`. The second word is not used in NEVER_MODE.
    all_tops : (m,) int32; the states on top of the stacks.
    mode : NEVER_MODE or SAME_MODE.
    found : (n_cases, 2) int64, written: the numbers of nodes and of bad ones. `scratch` keeps the
        nodes of the last case.

    Returns the first case for which there was no room, or n_cases. The stamp of case i is i + 1, so
    a scratch space serves one list of cases.
    """
    for case in range(next_case, parts.shape[0]):
        n_nodes, n_bad = _explore(tables, scratch, case + 1, columns, parts[case], all_tops, mode)
        if n_nodes < 0:
            return case
        found[case, 0] = n_nodes
        found[case, 1] = n_bad
    return parts.shape[0]
