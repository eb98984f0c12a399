"""Whether some bytes make one lexeme fail while another reading of them survives.

See `Lexemes.can_survive`. Callers own all arrays and have checked them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Bool, Int32, Int32_2D, Int64, UInt8
from maskwright.analysis.jit import kernel

UNKNOWN, DIES, SURVIVES, UNDER_WAY = range(4)
"""What is known of a pair; UNDER_WAY while it is looked at."""
FULL, PAUSED = -1, -2


class Union(NamedTuple):
    """The union automaton of a lexer's modes.

    next_by_class : (n_states, n_classes) int32; -1 for none.
    winner : (n_states,) int32; the terminal that wins there, or -1.
    ends : (n_states,) bool; whether some terminal ends there.
    start_begin, starts : (n_states + 1,), (n,) int32; the states in which a lexeme may begin behind
        the terminals that end in a state.
    most_starts : the most of them for one state.
    """

    next_by_class: Int32_2D
    winner: Int32
    ends: Bool
    start_begin: Int32
    starts: Int32
    most_starts: int


class Pairs(NamedTuple):
    """What is known of pairs of states: a hash table.

    keys : (capacity,) int64; a power of two. 1 + (first * n_states + lexeme) * n_states + other, 0
        where free. `first` is 1 + the terminal that the other reading comes directly behind, 0 past
        its first lexeme.
    known : (capacity,) uint8; one of the states of knowledge above.
    met : (capacity,) int64; scratch, the slots of the pairs under way. The search goes through it.
    sizes : (3,) int64; the slots in use, the pairs under way, and those of them that are done.
    """

    keys: Int64
    known: UInt8
    met: Int64
    sizes: Int64


@kernel
def slot_of(key, pairs):  # type: ignore[no-untyped-def]
    """The slot of a key, where it is or belongs."""
    mask = pairs.keys.shape[0] - 1
    h = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while pairs.keys[h] != 0 and pairs.keys[h] != key:
        h = (h + 1) & mask
    return h


@kernel(entry=True)
def refill(old: Pairs, pairs: Pairs) -> None:
    """Enter into an empty table what another one knows for good."""
    for i in range(old.keys.shape[0]):
        if old.known[i] == DIES or old.known[i] == SURVIVES:
            h = slot_of(old.keys[i], pairs)
            pairs.keys[h] = old.keys[i]
            pairs.known[h] = old.known[i]
            pairs.sizes[0] += 1


@kernel
def meet(key, pairs, n_met):  # type: ignore[no-untyped-def]
    """Look at a pair later, if nothing is known of it.

    Returns what is known of it, and how many pairs are under way.
    """
    h = slot_of(key, pairs)
    if pairs.keys[h] == 0:
        pairs.keys[h] = key
        pairs.sizes[0] += 1
    known = pairs.known[h]
    if known == UNKNOWN:
        pairs.known[h] = UNDER_WAY
        pairs.met[n_met] = h
        n_met += 1
    return known, n_met


@kernel
def follow(key, union, may_end, may_live, pairs, n_met):  # type: ignore[no-untyped-def]
    """Read each byte from a pair.

    Returns whether the other reading survives, and how many pairs are under way.
    """
    n_states = union.winner.shape[0]
    other = (key - 1) % n_states
    lexeme = (key - 1) // n_states % n_states
    first = (key - 1) // n_states // n_states
    for c in range(union.next_by_class.shape[1]):
        other_after = union.next_by_class[other, c]
        if other_after < 0:
            continue
        after = union.next_by_class[lexeme, c]
        if after < 0:
            if first == 0 or may_live[other_after]:
                return True, n_met
        elif union.winner[after] < 0:
            known, n_met = meet(1 + (first * n_states + after) * n_states + other_after, pairs, n_met)
            if known == SURVIVES:
                return True, n_met
            if union.ends[other_after] if first == 0 else may_end[other_after]:
                for i in range(union.start_begin[other_after], union.start_begin[other_after + 1]):
                    known, n_met = meet(1 + np.int64(after) * n_states + union.starts[i], pairs, n_met)
                    if known == SURVIVES:
                        return True, n_met
    return False, n_met


@kernel(entry=True)
def survives(key: int, union: Union, may_end: Bool, may_live: Bool, pairs: Pairs, pause: int) -> int:
    """Whether a pair survives, see `Lexemes.can_survive`.

    key : see `Pairs`; nothing is known of it.
    may_end, may_live : (n_states,) bool; whether a terminal that may follow the first one can end
        in a state, and there or later. Not read past the first lexeme.
    pause : pairs after which the kernel returns.

    Returns 1, 0, or PAUSED if it is to be called again; or FULL if the table has no room: then it
    must be made anew, and larger.
    """
    # a byte leads to one pair, and to one more for each start; all of them may be new
    most = union.next_by_class.shape[1] * (1 + union.most_starts)
    n_met = pairs.sizes[1]
    if n_met == 0:
        pairs.sizes[2] = 0
        _, n_met = meet(key, pairs, n_met)
    last = pairs.sizes[2] + pause
    while pairs.sizes[2] < n_met:
        pairs.sizes[1] = n_met
        if 2 * (pairs.sizes[0] + most) > pairs.keys.shape[0]:
            return FULL
        if pairs.sizes[2] == last:
            return PAUSED
        survived, n_met = follow(pairs.keys[pairs.met[pairs.sizes[2]]], union, may_end, may_live, pairs, n_met)
        pairs.sizes[2] += 1
        if survived:
            for i in range(n_met):
                pairs.known[pairs.met[i]] = UNKNOWN
            pairs.known[slot_of(key, pairs)] = SURVIVES
            pairs.sizes[1] = 0
            return 1
    for i in range(n_met):
        pairs.known[pairs.met[i]] = DIES
    pairs.sizes[1] = 0
    return 0
