"""Compiled loops that find the classes of pairs (configuration set, last cell): `classify`.

The pairs come in parts. Edges lead into the same part or to earlier ones, whose classes are final.
So each part is visited once, by strongly connected components (Tarjan), the components that others
lead to first.

A pair on no cycle joins a known pair that has its cell and its edges, up to classes; if there is
none, it begins a new class. The pairs of a cycle are bisimilar to known pairs all together or not
at all. Two searches find the known cycle:

- by an edge that leaves the component and leads into the known cycle itself;
- else by the hash that refinement has given to one of the pairs. Bisimilar components take equally
  many rounds of refinement, and after each round bisimilar pairs have equal hashes.

Source: R. E. Tarjan, Depth-first search and linear graph algorithms, SIAM J. Computing 1 (1972).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int64, UInt64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, FIRST_STATE, REFUSED
from maskwright.maskstore.tokens._hash_kernels import mix

UNDECIDABLE = -2
"""Returned for pairs from which no stack leads to a decision."""

NO_CYCLE = -1
"""Instead of the first class of a cycle: the pairs of the class are on no cycle."""

# indices of `cursor`
N_CLASSES, N_CLASSIFIED, NEXT_ROOT, N_CALLS, N_STACK, N_MET, COMPONENT, BLOCKS = range(8)
"""What each entry of the cursor counts or points to.

N_CLASSES : classes so far, with REFUSED and ACCEPTED.
N_CLASSIFIED : pairs that have their class.
NEXT_ROOT : the new pair from which the search goes on when no call is open.
N_CALLS, N_STACK, N_MET : open calls, pairs on the stack, and pairs met in this search.
COMPONENT : where on the stack the component in progress begins, or -1.
BLOCKS : its number of blocks after the last round of refinement, or -1 before the first.
"""


class Pairs(NamedTuple):
    """Pairs and their edges, as in `exploration_tables`.

    keys, edge_start : `exploration_tables.Pairs`.
    edges : `exploration_tables.Exploration.edges`; edges[e] is an index of `Classes.of_pair`.
    """

    n_cells: int
    keys: Int64
    edge_start: Int64
    edges: Int32


class Classes(NamedTuple):
    """The classes found so far.

    of_pair : (capacity,) int32; the classes of REFUSED, of ACCEPTED and of the pairs. -1 for pairs
        that have none yet.

    The other arrays have a row for each class.

    first_pair : int32; the first pair of the class.
    cycle_start : int32; the first class of its cycle, or NO_CYCLE. The classes of a cycle have
        consecutive numbers.
    tried : int32; the last component that was compared with its cycle.
    least : int32; the least configuration set of its pairs. Large before there is one.
    hashes, cycle_hashes : int64; of its edges, and of its cycle as seen from it.
    slots, cycle_slots : int32; hash tables of these, a power of two long, -1 where free.
    """

    of_pair: Int32
    first_pair: Int32
    cycle_start: Int32
    tried: Int32
    least: Int32
    hashes: Int64
    slots: Int32
    cycle_hashes: Int64
    cycle_slots: Int32


class Search(NamedTuple):
    """Scratch with a row for each new pair. Pairs are counted from the first new one.

    met : int32; when the pair was met, counted from 1; 0 before.
    lowest : int32; the least `met` of the pairs on the stack that it leads to.
    next_edge : int64; the edge at which its visit goes on.
    stack, calls : int32; Tarjan's stack, and the open calls.
    block : int32; its block of the refinement, and then its class.
    colors, fresh : uint64; hashes of the last round of refinement, and of this one.
    """

    met: Int32
    lowest: Int32
    next_edge: Int64
    stack: Int32
    calls: Int32
    block: Int32
    colors: UInt64
    fresh: UInt64


@kernel(entry=True)
def classify(n_pairs: int, pairs: Pairs, known: Classes, search: Search, cursor: Int64, until: int) -> int:
    """Find the classes of the pairs cursor[N_CLASSIFIED] to n_pairs - 1.

    Returns 0 when done, -1 after some `until` edges (call it again), or UNDECIDABLE.
    """
    base = cursor[N_CLASSIFIED]
    met, lowest, next_edge, calls = search.met, search.lowest, search.next_edge, search.calls
    done = 0
    while True:
        if done >= until:
            return -1
        if cursor[COMPONENT] >= 0:
            work = classify_component(pairs, known, search, cursor)
            if work == UNDECIDABLE:
                return UNDECIDABLE
            done += work
            continue
        if cursor[N_CALLS] == 0:
            while cursor[NEXT_ROOT] < n_pairs - base and met[cursor[NEXT_ROOT]] != 0:
                cursor[NEXT_ROOT] += 1
            if cursor[NEXT_ROOT] == n_pairs - base:
                cursor[N_CLASSIFIED] = n_pairs
                return 0
            enter(cursor[NEXT_ROOT], pairs, search, cursor)
        here = calls[cursor[N_CALLS] - 1]
        at = next_edge[here]
        end = pairs.edge_start[base + here + 1]
        done += 1
        after = -1
        while at < end:
            if known.of_pair[pairs.edges[at]] < 0:
                after = pairs.edges[at] - FIRST_STATE - base
                if met[after] == 0:
                    break
                lowest[here] = min(lowest[here], met[after])
            at += 1
        done += at - next_edge[here]
        next_edge[here] = at
        if at < end:
            enter(after, pairs, search, cursor)
            continue
        cursor[N_CALLS] -= 1
        if cursor[N_CALLS] > 0:
            caller = calls[cursor[N_CALLS] - 1]
            lowest[caller] = min(lowest[caller], lowest[here])
        if lowest[here] == met[here]:
            bottom = cursor[N_STACK] - 1
            while search.stack[bottom] != here:
                bottom -= 1
            cursor[COMPONENT] = bottom
            cursor[BLOCKS] = -1


@kernel
def enter(pair, pairs, search, cursor):  # type: ignore[no-untyped-def]
    """Begin the visit of a pair."""
    cursor[N_MET] += 1
    search.met[pair] = cursor[N_MET]
    search.lowest[pair] = cursor[N_MET]
    search.next_edge[pair] = pairs.edge_start[cursor[N_CLASSIFIED] + pair]
    search.stack[cursor[N_STACK]] = pair
    cursor[N_STACK] += 1
    search.calls[cursor[N_CALLS]] = pair
    cursor[N_CALLS] += 1


@kernel(allocates=True)
def classify_component(pairs, known, search, cursor):  # type: ignore[no-untyped-def]
    """One step towards the classes of the component on top of the stack.

    Each pair of a component leads to all the others. So all of them are decided early, or none.

    Returns the edges and pairs looked at, or UNDECIDABLE.
    """
    members = search.stack[cursor[COMPONENT] : cursor[N_STACK]]
    base = cursor[N_CLASSIFIED]
    block = search.block
    if cursor[BLOCKS] < 0:
        work = 0
        accepts = False
        refuses = False
        is_cycle = False
        for member in members:
            block[member] = -1
            for e in range(pairs.edge_start[base + member], pairs.edge_start[base + member + 1]):
                after = known.of_pair[pairs.edges[e]]
                is_cycle |= after < 0
                accepts |= after == ACCEPTED or after >= FIRST_STATE
                refuses |= after == REFUSED or after >= FIRST_STATE
            work += pairs.edge_start[base + member + 1] - pairs.edge_start[base + member] + 1
        if not (accepts or refuses):
            return UNDECIDABLE
        if not (accepts and refuses):
            block[members] = ACCEPTED if accepts else REFUSED
            settle(pairs, known, search, cursor)
            return work
        if not is_cycle:
            block[members[0]] = class_of(base + members[0], pairs, known, cursor)
            settle(pairs, known, search, cursor)
            return work
        more = find_by_exit(members, pairs, known, search, cursor)
        if block[members[0]] >= FIRST_STATE:
            settle(pairs, known, search, cursor)
            return work + more
        for member in members:
            block[member] = 0
            search.colors[member] = mix(np.uint64(0x51ED270B35A3F1C9), pairs.keys[base + member] % pairs.n_cells)
        cursor[BLOCKS] = 0
        return work + more
    before = cursor[BLOCKS]
    work = refine(members, pairs, known, search, cursor)
    if cursor[BLOCKS] != before:
        return work
    blocks = block[members]
    block[members] = -1
    key = np.int64(search.colors[members[0]] >> np.uint64(1))
    at = key & (known.cycle_slots.shape[0] - 1)
    while known.cycle_slots[at] >= 0:
        candidate = known.cycle_slots[at]
        if known.cycle_hashes[candidate] == key and matches(members[0], candidate, pairs, known, search, cursor):
            settle(pairs, known, search, cursor)
            return work
        at = (at + 1) & (known.cycle_slots.shape[0] - 1)
    start = cursor[N_CLASSES]
    for i in range(members.shape[0]):
        block[members[i]] = start + blocks[i]
        known.first_pair[start + blocks[i]] = base + members[i]
        known.cycle_start[start + blocks[i]] = start
        known.cycle_hashes[start + blocks[i]] = np.int64(search.colors[members[i]] >> np.uint64(1))
    settle(pairs, known, search, cursor)
    for number in range(start, start + before):
        known.hashes[number] = edges_hash(known.first_pair[number], pairs, known)
        add_slot(number, known.hashes, known.slots)
        add_slot(number, known.cycle_hashes, known.cycle_slots)
    cursor[N_CLASSES] = start + before
    return work


@kernel
def settle(pairs, known, search, cursor):  # type: ignore[no-untyped-def]
    """Give the component on top of the stack the classes in `block`, and take it off the stack."""
    for i in range(cursor[COMPONENT], cursor[N_STACK]):
        pair = cursor[N_CLASSIFIED] + search.stack[i]
        mine = search.block[search.stack[i]]
        known.of_pair[pair + FIRST_STATE] = mine
        if mine >= FIRST_STATE:
            known.least[mine] = min(known.least[mine], pairs.keys[pair] // pairs.n_cells)
    cursor[N_STACK] = cursor[COMPONENT]
    cursor[COMPONENT] = -1


@kernel
def find_by_exit(members, pairs, known, search, cursor):  # type: ignore[no-untyped-def]
    """Compare a component with the known cycles that it leads to.

    If it is bisimilar to one of them, `block` then holds the classes of its pairs. One edge into a
    cycle is enough: if the component is bisimilar to the cycle, the pair at which this edge begins
    has a class there.

    Returns the work done.
    """
    base = cursor[N_CLASSIFIED]
    mark = base + members[0] + 1
    work = 0
    for member in members:
        begin = pairs.edge_start[base + member]
        for e in range(begin, pairs.edge_start[base + member + 1]):
            wanted = known.of_pair[pairs.edges[e]]
            if wanted < FIRST_STATE or known.cycle_start[wanted] == NO_CYCLE:
                continue
            start = known.cycle_start[wanted]
            if known.tried[start] == mark:
                continue
            known.tried[start] = mark
            candidate = start
            while candidate < cursor[N_CLASSES] and known.cycle_start[candidate] == start:
                work += 1
                first = known.first_pair[candidate]
                if (
                    pairs.keys[base + member] % pairs.n_cells == pairs.keys[first] % pairs.n_cells
                    and known.of_pair[pairs.edges[pairs.edge_start[first] + e - begin]] == wanted
                ):
                    work += members.shape[0]
                    if matches(member, candidate, pairs, known, search, cursor):
                        return work
                candidate += 1
    return work


@kernel
def matches(member, candidate, pairs, known, search, cursor):  # type: ignore[no-untyped-def]
    """Whether a member of a component belongs to a known class.

    If so, `block` holds the classes of all members; if not, -1 as before.
    """
    base = cursor[N_CLASSIFIED]
    block = search.block
    # BOUND: the pairs of open calls are on the stack below the component, so behind them `calls`
    # has room for each member
    queue = search.calls[cursor[N_CALLS] :]
    block[member] = candidate
    queue[0] = member
    n = 1
    at = 0
    while at < n:
        pair = base + queue[at]
        first = known.first_pair[block[queue[at]]]
        at += 1
        fits = pairs.keys[pair] % pairs.n_cells == pairs.keys[first] % pairs.n_cells
        if fits:
            for i in range(pairs.edge_start[pair + 1] - pairs.edge_start[pair]):
                after = pairs.edges[pairs.edge_start[pair] + i]
                wanted = known.of_pair[pairs.edges[pairs.edge_start[first] + i]]
                if known.of_pair[after] >= 0:
                    fits = known.of_pair[after] == wanted
                else:
                    inner = after - FIRST_STATE - base
                    if block[inner] < 0 and wanted >= FIRST_STATE:
                        block[inner] = wanted
                        queue[n] = inner
                        n += 1
                    fits = block[inner] == wanted
                if not fits:
                    break
        if not fits:
            for i in range(n):
                block[queue[i]] = -1
            return False
    return True


@kernel(allocates=True)
def refine(members, pairs, known, search, cursor):  # type: ignore[no-untyped-def]
    """One round of partition refinement: split each block by its members' edges, up to blocks.

    A member's hash depends on its cell, on the classes that the component leads to, and on the
    hashes inside the component. Bisimilar components therefore get equal hashes.

    Returns the edges and members looked at.
    """
    base = cursor[N_CLASSIFIED]
    n_slots = 4
    while n_slots < 2 * members.shape[0]:
        n_slots *= 2
    slots = np.full(n_slots, -1, np.int32)
    firsts = np.empty(members.shape[0], np.int32)
    blocks = np.empty(members.shape[0], np.int32)
    n_blocks = 0
    work = 0
    for i in range(members.shape[0]):
        member = members[i]
        h = mix(search.colors[member], np.uint64(1))
        for e in range(pairs.edge_start[base + member], pairs.edge_start[base + member + 1]):
            after = known.of_pair[pairs.edges[e]]
            h = mix(h, np.uint64(after) if after >= 0 else search.colors[pairs.edges[e] - FIRST_STATE - base])
        work += pairs.edge_start[base + member + 1] - pairs.edge_start[base + member] + 1
        search.fresh[member] = h
        at = np.int64(h >> np.uint64(24)) & (n_slots - 1)
        while slots[at] >= 0:
            first = firsts[slots[at]]
            if search.fresh[first] == h and does_alike(base + member, base + first, base, pairs, known, search):
                break
            at = (at + 1) & (n_slots - 1)
        if slots[at] < 0:
            slots[at] = n_blocks
            firsts[n_blocks] = member
            n_blocks += 1
        blocks[i] = slots[at]
    for i in range(members.shape[0]):
        search.block[members[i]] = blocks[i]
        search.colors[members[i]] = search.fresh[members[i]]
    cursor[BLOCKS] = n_blocks
    return work


@kernel
def does_alike(pair, other, base, pairs, known, search):  # type: ignore[no-untyped-def]
    """Whether two pairs of a component have the same cell and block, and equal edges.

    Edges are equal if they lead into the same block, or out of the component to the same class.
    """
    if (
        search.block[pair - base] != search.block[other - base]
        or pairs.keys[pair] % pairs.n_cells != pairs.keys[other] % pairs.n_cells
    ):
        return False
    for i in range(pairs.edge_start[pair + 1] - pairs.edge_start[pair]):
        one = pairs.edges[pairs.edge_start[pair] + i]
        two = pairs.edges[pairs.edge_start[other] + i]
        if known.of_pair[one] != known.of_pair[two]:
            return False
        if known.of_pair[one] < 0 and search.block[one - FIRST_STATE - base] != search.block[two - FIRST_STATE - base]:
            return False
    return True


@kernel
def edges_hash(pair, pairs, known):  # type: ignore[no-untyped-def]
    """A hash of a pair's cell and of the classes of its edges, not negative."""
    h = mix(np.uint64(0x8C5F3A1D9B7E2460), pairs.keys[pair] % pairs.n_cells)
    for e in range(pairs.edge_start[pair], pairs.edge_start[pair + 1]):
        h = mix(h, known.of_pair[pairs.edges[e]])
    return np.int64(h >> np.uint64(1))


@kernel
def class_of(pair, pairs, known, cursor):  # type: ignore[no-untyped-def]
    """The class of a pair on no cycle. All its edges have classes.

    It is a new class if no known one has the pair's cell and edges.
    """
    key = edges_hash(pair, pairs, known)
    at = key & (known.slots.shape[0] - 1)
    while known.slots[at] >= 0:
        number = known.slots[at]
        if known.hashes[number] == key:
            first = known.first_pair[number]
            same = pairs.keys[pair] % pairs.n_cells == pairs.keys[first] % pairs.n_cells
            if same:
                for i in range(pairs.edge_start[pair + 1] - pairs.edge_start[pair]):
                    one = pairs.edges[pairs.edge_start[pair] + i]
                    if known.of_pair[one] != known.of_pair[pairs.edges[pairs.edge_start[first] + i]]:
                        same = False
                        break
            if same:
                return number
        at = (at + 1) & (known.slots.shape[0] - 1)
    number = cursor[N_CLASSES]
    cursor[N_CLASSES] = number + 1
    known.slots[at] = number
    known.hashes[number] = key
    known.first_pair[number] = pair
    known.cycle_start[number] = NO_CYCLE
    return number


@kernel
def add_slot(number, hashes, slots):  # type: ignore[no-untyped-def]
    """Enter a class into a hash table. No equal class is in it yet."""
    at = hashes[number] & (slots.shape[0] - 1)
    while slots[at] >= 0:
        at = (at + 1) & (slots.shape[0] - 1)
    slots[at] = number


@kernel(entry=True)
def refill(n_classes: int, known: Classes) -> None:
    """Enter all classes into empty hash tables."""
    for number in range(FIRST_STATE, n_classes):
        add_slot(number, known.hashes, known.slots)
        if known.cycle_start[number] != NO_CYCLE:
            add_slot(number, known.cycle_hashes, known.cycle_slots)
