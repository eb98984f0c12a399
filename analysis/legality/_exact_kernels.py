"""The jitted loops behind `exact`: what an LR parser does on stacks of which only the top is known.

A stack is read from the top, one cell (LR state) after another. What is still open after some cells have been read is a set of
*pending* reductions, each packed into an int64: (which of the two words, position in it, cells still to pop, nonterminal). A *front* is
a sorted set of them, with two flags that say which words have been accepted; a *node* is a front and the cell read last. Fronts and
nodes are interned, so the graph of nodes is finite. The readable formulas, for a pending reduction (p, k, A) and a next cell c:

    k > 0:  (p, k - 1, A)
    k = 0:  run the parser on the word from position p with the stack ... c goto(c, A). It ends in one of: the word is used up
            (accepted), no action (refused), a rule B of length l on a stack of which only d <= l states are known: (p', l - d, B)

Where a cell of the tables has several actions the parser runs on with each. Callers own all arrays and have checked everything; a
negative result means that an array is too short and nothing has been decided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.jit import kernel

CONFLICT = 1 << 30
FIELD_BITS = 20
"""Bits of a position, of a number of cells to pop and of a nonterminal in a packed pending reduction."""

NEVER_MODE, SAME_MODE = 0, 1
"""What makes a node bad: the first word is accepted; or just one of the two is."""

TOO_SMALL = -1
_OPEN, _ACCEPTED = 0, 1
_REFUSES, _FORKS, _SHIFTS = -1, -2, -3
_REFUSED_ABOVE, _ACCEPTED_ABOVE, _NEEDS_BELOW = _OPEN, _ACCEPTED, 2
_GOOD, _BAD, _UNDECIDED = 0, 1, 2
_ACTIONS_A_CELL = 256
"""Actions in one run, for each cell of room on the stack, past which the parser may be running for ever."""
_MASK = (1 << FIELD_BITS) - 1
_BELOW_POSITION = (1 << (2 * FIELD_BITS)) - 1
_HASH_BITS = 40
_HASH_MASK = (1 << _HASH_BITS) - 1


class Tables(NamedTuple):
    """The members of `LrTables` that a parser needs."""

    action: np.ndarray
    goto: np.ndarray
    alternatives: np.ndarray
    rule_lhs: np.ndarray
    rule_length: np.ndarray
    predecessor_start: np.ndarray
    predecessors: np.ndarray


class Scratch(NamedTuple):
    """Space for one exploration. A place of a hash table counts only if its stamp is that of the present exploration.

    fronts : (n + 1, 2) int64; where a front's members begin in `pending`, and its flags; the next front's begin is its end.
    front_slots : (2^i, 2) int64; stamp and front. pending : (m,) int64.
    nodes : (n, 3) int32; a node's front, its cell, and the node from which it was reached, -1 for a top. In the order found.
    node_slots : (2^j, 2) int64; stamp and node.
    stack : (depth,) int32; the known part of a stack. others : (cells,) int32, other_ends : (rows, 3) int64: the alternatives
        that are still to be run, and of each the begin in `others`, the depth and the position in the word.
    bad : (wanted, 2) int32; the node from which, and the cell on which, a bad one was reached; node -1 for a top.
    above : (2^k, 3) int64; stamp, key and answer of `_run_above`. reduced : (2^l, 2) int64; key and answer of `_reduce`, key -1 = free.
        Both caches have one place for all keys that share a slot. `reduced` is of the tables, not of a case.
    """

    fronts: np.ndarray
    front_slots: np.ndarray
    pending: np.ndarray
    nodes: np.ndarray
    node_slots: np.ndarray
    stack: np.ndarray
    others: np.ndarray
    other_ends: np.ndarray
    bad: np.ndarray
    above: np.ndarray
    reduced: np.ndarray


@kernel
def _pack(tag, position, pops, nonterminal):  # type: ignore[no-untyped-def]
    high = np.int64(tag) << FIELD_BITS | np.int64(position)
    return (high << FIELD_BITS | np.int64(pops)) << FIELD_BITS | np.int64(nonterminal)


@kernel
def _mix(key, value):  # type: ignore[no-untyped-def]
    """A hash below 2**40; no product overflows, of which NumPy scalars would warn without the JIT."""
    mixed = ((key ^ (value & _HASH_MASK) ^ (value >> _HASH_BITS)) * 1000003) & _HASH_MASK
    return mixed ^ (mixed >> 17)


@kernel
def _insert(pending, begin, end, value):  # type: ignore[no-untyped-def]
    """Add to the sorted set pending[begin:end]; its new end."""
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
    """Do a shift or a reduction; the new depth, or -1 - k if k more cells than the known ones are to be popped."""
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
    """How the reductions on one look-ahead end that begin with the stack ... cell goto(cell, nonterminal).

    _REFUSES; _FORKS (several actions, or too many); _SHIFTS - s, in state s; or the reduction that goes on below the cell, packed
    at position 0.
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
    """Whether the last alternative differs from all before it: equal stacks at one position have one future."""
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
    """The parser on the word from `position`, scratch.stack[:depth] known.

    Returns whether it is accepted (or TOO_SMALL), and the new end of the set pending[begin:end], to which what stays open was added.
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
    """What the word does from `position` on a stack with the state on top, if that can be told from this state alone."""
    scratch.stack[0] = state
    word = columns[part[2 * tag] : part[2 * tag + 1]]
    # a set of its own behind pending[:end], which stays as it is
    accepted, after = _run(tables, scratch, word, position, np.int64(1), tag, end, end)
    if accepted < 0:
        return np.int64(TOO_SMALL)
    return np.int64(_ACCEPTED_ABOVE if accepted else _REFUSED_ABOVE if after == end else _NEEDS_BELOW)


@kernel
def _run_from(tables, scratch, columns, part, packed, front, cell, tag, begin, end):  # type: ignore[no-untyped-def]
    """`_run` on the top of a stack (front -1), or where a pending reduction has found its last cell."""
    word = columns[part[2 * tag] : part[2 * tag + 1]]
    scratch.stack[0] = cell
    if front < 0:
        return _run(tables, scratch, word, np.int64(0), np.int64(1), tag, begin, end)
    scratch.stack[1] = tables.goto[cell, packed & _MASK]
    return _run(tables, scratch, word, (packed >> (2 * FIELD_BITS)) & _MASK, np.int64(2), tag, begin, end)


@kernel
def _judge_front(flags, begin, end, mode):  # type: ignore[no-untyped-def]
    if mode == NEVER_MODE:
        if flags & 1:
            return _BAD
        return _GOOD if begin == end else _UNDECIDED
    if begin == end:
        return _BAD if flags == 1 or flags == 2 else _GOOD
    return _UNDECIDED


@kernel
def _intern_front(fronts, slots, pending, stamp, n_fronts, flags, end):  # type: ignore[no-untyped-def]
    """The number of the front that was made behind the last one: n_fronts if it is new, TOO_SMALL if there is no room."""
    begin = fronts[n_fronts, 0]
    mask = slots.shape[0] - 1
    key = flags + 1
    for i in range(begin, end):
        key = _mix(key, pending[i])
    slot = key & mask
    while slots[slot, 0] == stamp:
        known = slots[slot, 1]
        start = fronts[known, 0]
        if fronts[known, 1] == flags and fronts[known + 1, 0] - start == end - begin:
            i = 0
            while i < end - begin and pending[start + i] == pending[begin + i]:
                i += 1
            if i == end - begin:
                return known
        slot = (slot + 1) & mask
    if n_fronts + 1 >= fronts.shape[0] or 2 * n_fronts >= mask:
        return np.int64(TOO_SMALL)
    slots[slot, 0] = stamp
    slots[slot, 1] = n_fronts
    fronts[n_fronts, 1] = flags
    fronts[n_fronts + 1, 0] = end
    return n_fronts


@kernel
def _intern_node(nodes, slots, stamp, n_nodes, front, cell, parent):  # type: ignore[no-untyped-def]
    """The new number of nodes, or TOO_SMALL."""
    mask = slots.shape[0] - 1
    slot = _mix(_mix(np.int64(1), front), np.int64(cell)) & mask
    while slots[slot, 0] == stamp:
        known = slots[slot, 1]
        if nodes[known, 0] == front and nodes[known, 1] == cell:
            return n_nodes
        slot = (slot + 1) & mask
    if n_nodes >= nodes.shape[0] or 2 * n_nodes >= mask:
        return np.int64(TOO_SMALL)
    slots[slot, 0] = stamp
    slots[slot, 1] = n_nodes
    nodes[n_nodes, 0] = front
    nodes[n_nodes, 1] = cell
    nodes[n_nodes, 2] = parent
    return n_nodes + 1


@kernel
def _explore(tables, scratch, stamp, columns, part, all_tops, mode):  # type: ignore[no-untyped-def]
    """All nodes that are reached from the tops, breadth first, until as many bad ones are met as scratch.bad has room for.

    Returns the numbers of nodes and of bad ones; (TOO_SMALL, 0) if there was no room.
    """
    # PERF: arrays are taken out of the tuples once, and a cell is read right here: a call with the tuples, or inlined with them, spends
    # 0.2-0.5 us on counting references, several times what the rest takes. The two caches answer nearly all reads. Both together:
    # 225 -> 48 us a longer sequence asked for never (reports/bench/exact_deciders.py, python.lark, AMD EPYC).
    fronts, front_slots, pending = scratch.fronts, scratch.front_slots, scratch.pending
    nodes, node_slots, bad, above, reduced = (
        scratch.nodes,
        scratch.node_slots,
        scratch.bad,
        scratch.above,
        scratch.reduced,
    )
    predecessor_start, predecessors = tables.predecessor_start, tables.predecessors
    n_nonterminals, n_columns = np.int64(tables.goto.shape[1]), np.int64(tables.action.shape[1])
    n_words = 1 if mode == NEVER_MODE else 2
    # PERF: plain literals would have what is called below compiled twice
    n_nodes, n_fronts, n_bad, node, front = np.int64(0), np.int64(0), np.int64(0), np.int64(-1), np.int64(-1)
    at, until = part[4], part[5]
    fronts[0, 0] = 0
    while True:
        while at < until:
            cell = np.int64(all_tops[at] if front < 0 else predecessors[at])
            at += 1
            # the front after this cell, made behind the last one
            begin = fronts[n_fronts, 0]
            end = begin
            flags = np.int64(0) if front < 0 else fronts[front, 1]
            member = np.int64(0) if front < 0 else fronts[front, 0]
            for tag in range(n_words):
                begin_of_tag = end
                accepted = np.int64(_OPEN)
                # a stack's top is read as if each word had one reduction pending, which is not on record
                last = np.int64(tag + 1) if front < 0 else fronts[front + 1, 0]
                while member < last:
                    packed = _pack(tag, 0, 0, 0) if front < 0 else pending[member]
                    if packed >> (3 * FIELD_BITS) != tag:
                        break
                    member += 1
                    if accepted:
                        continue
                    if (packed >> FIELD_BITS) & _MASK:
                        end = _insert(pending, begin, end, packed - (1 << FIELD_BITS))
                    elif front < 0:
                        accepted, end = _run_from(tables, scratch, columns, part, packed, front, cell, tag, begin, end)
                    else:
                        position = (packed >> (2 * FIELD_BITS)) & _MASK
                        # BOUND: what is pending waits for the word's next terminal, so the position is one of the word's
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
                                above[slot, 2] = _run_above(
                                    tables, scratch, columns, part, position, tag, _SHIFTS - ends, end
                                )
                            answer = above[slot, 2]
                        if answer == _NEEDS_BELOW:
                            accepted, end = _run_from(
                                tables, scratch, columns, part, packed, front, cell, tag, begin, end
                            )
                        else:
                            accepted = answer
                    if accepted < 0 or end < 0:
                        return np.int64(TOO_SMALL), n_bad
                if accepted:
                    flags |= 1 << tag
                    # what else was open about this word does not matter; its members are the greatest, hence the last
                    end = begin_of_tag
            verdict = _judge_front(flags, begin, end, mode)
            if verdict == _BAD:
                bad[n_bad, 0] = node
                bad[n_bad, 1] = cell
                n_bad += 1
                if n_bad == bad.shape[0]:
                    return n_nodes, n_bad
            elif verdict == _UNDECIDED:
                found = _intern_front(fronts, front_slots, pending, stamp, n_fronts, flags, end)
                if found < 0:
                    return np.int64(TOO_SMALL), n_bad
                n_fronts += found == n_fronts
                n_nodes = _intern_node(nodes, node_slots, stamp, n_nodes, found, cell, node)
                if n_nodes < 0:
                    return np.int64(TOO_SMALL), n_bad
        node += 1
        if node >= n_nodes:
            return n_nodes, n_bad
        front = np.int64(nodes[node, 0])
        at, until = np.int64(predecessor_start[nodes[node, 1]]), np.int64(predecessor_start[nodes[node, 1] + 1])


@kernel
def explore(tables, scratch, columns, parts, all_tops, mode, next_case, found):  # type: ignore[no-untyped-def]
    """Explore the cases from `next_case` on; the number of the first that found no room, or n_cases.

    columns : int32, -1 for a terminal of no rule. parts : (n_cases, 6) int64; begin and end of a case's first word and second word in
        `columns` (the second is not looked at in NEVER_MODE), and of its tops, the states on top of the stacks, in `all_tops`.
    found : (n_cases, 2) int64, filled in with the numbers of nodes and of bad ones; `scratch` keeps those of the last case.

    The stamp of case i is i + 1, so a scratch space serves one list of cases.
    """
    for case in range(next_case, parts.shape[0]):
        n_nodes, n_bad = _explore(tables, scratch, case + 1, columns, parts[case], all_tops, mode)
        if n_nodes < 0:
            return case
        found[case, 0] = n_nodes
        found[case, 1] = n_bad
    return parts.shape[0]
