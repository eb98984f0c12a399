"""Compiled loops that list what is to be explored for continuations of one length (`levels`).

Callers own all arrays. Continuation c is at c of the arrays over continuations, and set -1 - s is
at -1 - s from their end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Bool_2D, Int32, Int64, UInt8_2D
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, REFUSED, REFUSED_CONTINUATION
from maskwright.maskstore.tokens._continuation_kernels import WHATEVER
from maskwright.maskstore.tokens._hash_kernels import number_of_run

FULL, UNKNOWN = 1, 2
"""Codes that `lead` returns."""


class Facts(NamedTuple):
    """What is known of all continuations and symbols. States are bits, the little end first.

    is_root : (n_kinds, n_all) bool; whether a continuation is a root of a kind.
    allowed : (n_kinds, n_bytes) uint8; the states that can be on top of a root of a kind.
    accessed, acts : (n_symbols, n_bytes) uint8; the states that a symbol leads to, and those that
        act on it.
    symbols : (n_continuations,) int32; the first symbol of each.
    before, before_of : (n,) int32; for each continuation that reads a symbol, this symbol, and the
        continuation behind it. Sorted by the second.
    entered_start, entered : (n_symbols + 1,), (n,) int32; `accessed` as lists: symbol s leads to
        entered[entered_start[s] : entered_start[s + 1]], ascending.
    n_columns : the symbols below are columns, the others modes.
    """

    is_root: Bool_2D
    allowed: UInt8_2D
    accessed: UInt8_2D
    acts: UInt8_2D
    symbols: Int32
    before: Int32
    before_of: Int32
    entered_start: Int32
    entered: Int32
    n_columns: int


class Explored(NamedTuple):
    """The pairs of a leader and a state that were explored, as rows of bits.

    row : (n_all,) int32; the row of each leader, -1 if it has none yet.
    at : (n_all,) int32, all -1 between calls; scratch.
    states, inner : (capacity, n_bytes) uint8; the states explored, and those of them to which
        longer continuations lead.
    n_rows : (1,) int64; how many rows are in use.
    """

    row: Int32
    at: Int32
    states: UInt8_2D
    inner: UInt8_2D
    n_rows: Int64


class Leaders(NamedTuple):
    """Leaders by what tells them apart, as `Runs`: a symbol, and the results of what follows in the
    states that it leads to.

    leader : (capacity,) int32; the first continuation with these.
    """

    hashes: Int64
    start: Int64
    items: Int32
    leader: Int32
    slots: Int32
    size: Int64


class Known(NamedTuple):
    """The results of continuations: those of continuation c are begin[c] to end[c] - 1.

    begin, end : (n_all,) int64.
    tops, results : (capacity,) int32; the states on top, ascending, and their results.
    n : (1,) int64; how many of these are in use.
    """

    begin: Int64
    end: Int64
    tops: Int32
    results: Int32
    n: Int64


@kernel(entry=True)
def lead(
    members: Int32,
    next_continuation: Int32,
    leader: Int32,
    facts: Facts,
    known: Known,
    leaders: Leaders,
    done: Int64,
    fresh: Int32,
    items: Int32,
) -> int:
    """Find the leaders of the members of a level, which read a symbol.

    next_continuation : changed from what follows a member to the leader of that.
    leader : (n_all,) int32; by continuation, written for the members.
    leaders : changed.
    done : (2,) int64; the members done; and how many leaders are new of those that begin with a
        column. Changed.
    fresh : (n,) int32, written; the rows of these.
    items : (1 + n_states,) int32; scratch.

    Returns 0; FULL if `leaders` has no room, and the same call goes on; UNKNOWN if the result of
    what follows is not known.
    """
    n_all = leader.shape[0]
    while done[0] < members.shape[0]:
        member = members[done[0]]
        symbol = facts.symbols[member]
        after = leader[(next_continuation[member] + n_all) % n_all]
        n = 1
        is_refused = True
        items[0] = symbol
        if after != REFUSED_CONTINUATION:
            index = (after + n_all) % n_all
            at = known.begin[index]
            for i in range(facts.entered_start[symbol], facts.entered_start[symbol + 1]):
                items[n] = ACCEPTED
                if after != WHATEVER:
                    while at < known.end[index] and known.tops[at] < facts.entered[i]:
                        at += 1
                    if at == known.end[index] or known.tops[at] != facts.entered[i]:
                        return UNKNOWN
                    items[n] = known.results[at]
                is_refused = is_refused and items[n] == REFUSED
                n += 1
        found = np.int32(REFUSED_CONTINUATION)
        if after == WHATEVER or not is_refused:
            n_rows = leaders.size[0]
            row = number_of_run(items, n, leaders)
            if row < 0:
                return FULL
            if row == n_rows:
                leaders.leader[row] = member
                if symbol < facts.n_columns:
                    fresh[done[1]] = row
                    done[1] += 1
            found = leaders.leader[row]
        next_continuation[member] = after
        leader[member] = found
        done[0] += 1
    return 0


@kernel(entry=True)
def learn(continuation_of: Int32, top_of: Int32, results: Int32, known: Known, done: Int64) -> bool:
    """Note the results of continuations with a state on top.

    continuation_of, top_of, results : (n,) int32; those of a continuation are beside each other, by
        state.
    known : changed.
    done : (1,) int64; how many are done. Changed.

    Returns whether there was room for all. If not, the same call goes on.
    """
    n_all = known.begin.shape[0]
    while done[0] < continuation_of.shape[0]:
        first = done[0]
        last = first
        while last < continuation_of.shape[0] and continuation_of[last] == continuation_of[first]:
            last += 1
        index = (continuation_of[first] + n_all) % n_all
        old = known.begin[index]
        old_end = known.end[index]
        n = known.n[0]
        if n + last - first + old_end - old > known.tops.shape[0]:
            return False
        known.begin[index] = n
        while first < last or old < old_end:
            if old < old_end and (first == last or known.tops[old] <= top_of[first]):
                if first < last and known.tops[old] == top_of[first]:
                    first += 1
                known.tops[n] = known.tops[old]
                known.results[n] = known.results[old]
                old += 1
            else:
                known.tops[n] = top_of[first]
                known.results[n] = results[first]
                first += 1
            n += 1
        known.end[index] = n
        known.n[0] = n
        done[0] = last
    return True


@kernel(entry=True)
def fresh_pairs(
    members: Int32, leaders: Int32, facts: Facts, explored: Explored, found: Int32, fresh: UInt8_2D, inner: UInt8_2D
) -> int:
    """The pairs to explore for the members of a level. Returns how many leaders there are.

    members, leaders : (n,) int32; continuations and their leaders.
    explored : has room for n more rows; changed.
    found : (n,) int32, written; the leaders, in the order in which they are met.
    fresh : (n, n_bytes) uint8, zero before, written; the states with which each is to be explored.
    inner : (n, n_bytes) uint8, zero before; scratch.
    """
    n_all = explored.row.shape[0]
    n_bytes = fresh.shape[1]
    n = 0
    for m in range(members.shape[0]):
        leader = leaders[m]
        if leader == REFUSED_CONTINUATION:
            continue
        index = leader if leader >= 0 else n_all + leader
        at = explored.at[index]
        if at < 0:
            at = n
            explored.at[index] = n
            found[n] = leader
            n += 1
        member = members[m]
        for kind in range(facts.is_root.shape[0]):
            if facts.is_root[kind, member if member >= 0 else n_all + member]:
                for b in range(n_bytes):
                    fresh[at, b] |= facts.allowed[kind, b]
        low = 0
        high = facts.before_of.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if facts.before_of[middle] < member:
                low = middle + 1
            else:
                high = middle
        while low < facts.before_of.shape[0] and facts.before_of[low] == member:
            for b in range(n_bytes):
                inner[at, b] |= facts.accessed[facts.before[low], b]
            low += 1
    for at in range(n):
        leader = found[at]
        index = leader if leader >= 0 else n_all + leader
        explored.at[index] = -1
        row = explored.row[index]
        if row < 0:
            row = np.int32(explored.n_rows[0])
            explored.row[index] = row
            explored.n_rows[0] += 1
        for b in range(n_bytes):
            outer = fresh[at, b]
            if leader >= 0:  # the other states refuse it at once
                outer &= facts.acts[facts.symbols[leader], b]
            # a pair that was a root's only, and is now inside a longer continuation, is explored
            # again
            fresh[at, b] = (outer & ~explored.states[row, b]) | (inner[at, b] & ~explored.inner[row, b])
            explored.inner[row, b] |= inner[at, b]
            explored.states[row, b] |= outer | inner[at, b]
    return n
