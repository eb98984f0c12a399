"""Compiled loops that list what is to be explored for continuations of one length (`levels`).

Callers own all arrays. Continuation c is at c of the arrays over continuations, and set -1 - s is
at -1 - s from their end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Bool_2D, Int32, Int64, UInt8_2D
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton.exploration_tables import REFUSED_CONTINUATION


class Facts(NamedTuple):
    """What is known of all continuations and symbols. States are bits, the little end first.

    is_root : (n_kinds, n_all) bool; whether a continuation is a root of a kind.
    allowed : (n_kinds, n_bytes) uint8; the states that can be on top of a root of a kind.
    accessed, acts : (n_symbols, n_bytes) uint8; the states that a symbol leads to, and those that
        act on it.
    symbols : (n_continuations,) int32; the first symbol of each.
    before, before_of : (n,) int32; for each continuation that reads a symbol, this symbol, and the
        continuation behind it. Sorted by the second.
    """

    is_root: Bool_2D
    allowed: UInt8_2D
    accessed: UInt8_2D
    acts: UInt8_2D
    symbols: Int32
    before: Int32
    before_of: Int32


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
