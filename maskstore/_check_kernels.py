"""The jitted loops that check an engine's table, and its checksum."""

from __future__ import annotations

import numpy as np
from numba import njit

from maskwright.analysis.lr.tables import ACCEPT, CONFLICT

FINE = -1
TOO_MUCH_WORK = -2


@njit(cache=True, nogil=True)
def checksum(table):  # type: ignore[no-untyped-def]
    """Sum of (2 i + 1) v_i modulo 2^64, where v_i is the place's value as an unsigned 32-bit number.

    Odd weights: no change of a single place goes unseen.
    """
    total = np.uint64(0)
    weight = np.uint64(1)
    for i in range(table.shape[0]):
        total += weight * np.uint64(np.uint32(table[i]))
        weight += np.uint64(2)
    return total


@njit(cache=True, nogil=True)
def outside(part, low, high):  # type: ignore[no-untyped-def]
    """The first place of a part whose value is not in low[column] .. high[column] - 1, or FINE. low, high : (width,) int64."""
    width = low.shape[0]
    for column in range(width):
        least = low[column]
        most = high[column]
        wrong = False
        for i in range(column, part.shape[0], width):
            wrong |= (part[i] < least) | (part[i] >= most)
        if wrong:
            for i in range(column, part.shape[0], width):
                if part[i] < least or part[i] >= most:
                    return i
    return FINE


@njit(cache=True, nogil=True)
def falls(part, last, step):  # type: ignore[no-untyped-def]
    """The first place that breaks: 0 at the start, `last` at the end, each at least `step` more than the one before; or FINE."""
    if part[0] != 0:
        return 0
    for i in range(1, part.shape[0]):
        if np.int64(part[i]) < np.int64(part[i - 1]) + step:
            return i
    return FINE if part[part.shape[0] - 1] == last else part.shape[0] - 1


@njit(cache=True, nogil=True)
def is_plain(action, n_states, n_rules):  # type: ignore[no-untyped-def]
    """Whether an action other than 0 shifts to a state, reduces by a rule or accepts."""
    return action == ACCEPT or 0 < action <= n_states or -n_rules <= action < 0


@njit(cache=True, nogil=True)
def bad_action(action, alternatives, n_states, n_rules, most):  # type: ignore[no-untyped-def]
    """The first place of `action` that no parser can follow, or FINE. most : alternatives that one place may have."""
    n = alternatives.shape[0]
    for i in range(action.shape[0]):
        value = action[i]
        if value == 0 or is_plain(value, n_states, n_rules):
            continue
        first = np.int64(value) - CONFLICT
        if first < 0 or first >= n:
            return i
        count = np.int64(alternatives[first])
        if count < 1 or count > most or first + count >= n:
            return i
        for k in range(first + 1, first + 1 + count):
            if not is_plain(alternatives[k], n_states, n_rules):
                return i
    return FINE


@njit(cache=True, nogil=True)
def bad_ending(starts, endings, n_sets, n_terminals):  # type: ignore[no-untyped-def]
    """The first place of `endings` that is not as the engine reads it, or FINE. starts : ascending to endings' length."""
    for state in range(starts.shape[0] - 1):
        at = np.int64(starts[state])
        end = np.int64(starts[state + 1])
        while at < end:
            if endings[at] < -1 or endings[at] >= 2 * n_sets:
                return at
            if at + 1 >= end or endings[at + 1] < 0 or at + 2 + np.int64(endings[at + 1]) > end:
                return at
            n = np.int64(endings[at + 1])
            for k in range(at + 2, at + 2 + n):
                if endings[k] < 0 or endings[k] >= n_terminals:
                    return k
            at += 2 + n
    return FINE


@njit(cache=True, nogil=True)
def bad_edge(edges, n_keys, n_pairs):  # type: ignore[no-untyped-def]
    """The first slot of the hash table that is neither free nor an edge, or FINE; the number of slots if none is free."""
    n_slots = edges.shape[0] // 2
    free = 0
    for slot in range(n_slots):
        key = edges[2 * slot]
        if key == -1:
            free += 1
        elif key < 0 or key >= n_keys or edges[2 * slot + 1] < 0 or edges[2 * slot + 1] >= n_pairs:
            return slot
    return FINE if free else n_slots


@njit(cache=True, nogil=True)
def stray_word(dense, allowed):  # type: ignore[no-untyped-def]
    """The first place of the bitmasks with a bit that `allowed`, (n_words,) int32, has not; or FINE."""
    width = allowed.shape[0]
    for begin in range(0, dense.shape[0], width):
        stray = np.int32(0)
        for w in range(width):
            stray |= dense[begin + w] & ~allowed[w]
        if stray != 0:
            for w in range(width):
                if dense[begin + w] & ~allowed[w] != 0:
                    return begin + w
    return FINE


@njit(cache=True, nogil=True)
def stray_id(ids, allowed):  # type: ignore[no-untyped-def]
    """The first place of the lists whose token `allowed` has not, or FINE. BOUND: ids are in 0 .. V - 1."""
    for i in range(ids.shape[0]):
        if not (allowed[ids[i] >> 5] >> (ids[i] & 31)) & 1:
            return i
    return FINE


@njit(cache=True, nogil=True)
def states_below(action, alternatives, goto, n_states):  # type: ignore[no-untyped-def]
    """The states that can lie directly below each state on a stack: (n_states + 1,) starts, and the states."""
    starts = np.zeros(n_states + 1, np.int64)
    below = np.empty(0, np.int32)
    columns = action.shape[0] // n_states
    symbols = goto.shape[0] // n_states
    last = np.empty(n_states, np.int32)
    for fill in range(2):
        last[:] = -1
        if fill:
            total = 0
            for state in range(n_states + 1):
                n = starts[state]
                starts[state] = total
                total += n
            below = np.empty(total, np.int32)
        for state in range(n_states):
            for i in range(columns + symbols):
                first = 0
                count = 1
                if i >= columns:
                    value = goto[state * symbols + i - columns] + 1
                else:
                    value = action[state * columns + i]
                    if value >= CONFLICT:
                        first = value - CONFLICT + 1
                        count = alternatives[first - 1]
                for k in range(count):
                    if first > 0:
                        value = alternatives[first + k]
                    if 0 < value < ACCEPT and last[value - 1] != state:
                        last[value - 1] = state
                        if fill:
                            below[starts[value - 1]] = state
                        starts[value - 1] += 1
        if fill:
            for state in range(n_states, 0, -1):
                starts[state] = starts[state - 1]
            starts[0] = 0
    return starts, below


@njit(cache=True, nogil=True)
def bad_reduction(action, alternatives, goto, default_rule, rule_lhs, rule_length, starts, below, limit):  # type: ignore[no-untyped-def]
    """A state and a rule by which it reduces on a stack too short for it, or down to a state without its goto; (FINE, 0) if none.

    A stack is a path of `below` from state 0, so walking back from the state, as far as the rule is long, meets every state that the
    reduction can uncover. limit : steps after which (TOO_MUCH_WORK, 0) is returned.
    """
    n_states = default_rule.shape[0]
    columns = action.shape[0] // n_states
    symbols = goto.shape[0] // n_states
    asked = np.full(rule_lhs.shape[0], -1, np.int32)
    rules = np.empty(rule_lhs.shape[0], np.int32)
    mark = np.full(n_states, -1, np.int64)
    here = np.empty(n_states, np.int32)
    after = np.empty(n_states, np.int32)
    stamp = np.int64(0)
    work = np.int64(0)
    for state in range(n_states):
        n_rules = 0
        longest = 0
        for i in range(columns + 1):
            first = 0
            count = 1
            value = -(default_rule[state] + 1) if i == columns else action[state * columns + i]
            if value >= CONFLICT:
                first = value - CONFLICT + 1
                count = alternatives[first - 1]
            for k in range(count):
                if first > 0:
                    value = alternatives[first + k]
                if value < 0 and asked[-value - 1] != state:
                    asked[-value - 1] = state
                    rules[n_rules] = -value - 1
                    n_rules += 1
                    longest = max(longest, rule_length[-value - 1])
        if n_rules == 0:
            continue
        here[0] = state
        n_here = 1
        for depth in range(longest + 1):
            at_bottom = False
            for i in range(n_here):
                at_bottom = at_bottom or here[i] == 0
            for k in range(n_rules):
                rule = rules[k]
                if rule_length[rule] > depth and at_bottom:
                    return state, rule
                if rule_length[rule] == depth:
                    work += n_here
                    for i in range(n_here):
                        if goto[here[i] * symbols + rule_lhs[rule]] < 0:
                            return state, rule
            if depth == longest:
                break
            stamp += 1
            n_after = 0
            for i in range(n_here):
                work += starts[here[i] + 1] - starts[here[i]]
                for at in range(starts[here[i]], starts[here[i] + 1]):
                    if mark[below[at]] != stamp:
                        mark[below[at]] = stamp
                        after[n_after] = below[at]
                        n_after += 1
            here, after = after, here
            n_here = n_after
            if work > limit:
                return TOO_MUCH_WORK, 0
    return FINE, 0
