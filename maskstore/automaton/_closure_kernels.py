"""Compiled loops that close the stack automaton: nodes, followed over all stacks.

`c` is a `Closing`, see `closure_tables`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton._pool_kernels import union
from maskwright.maskstore.automaton.closure_tables import (
    DECIDED,
    FULL_CELLS,
    FULL_DENSE,
    FULL_EDGES,
    FULL_IDS,
    FULL_ITEMS,
    FULL_MASKS,
    FULL_NODES,
    FULL_VISITS,
    N_DENSE,
    N_EDGES,
    N_IDS,
    N_ITEMS,
    N_MASKS,
    N_NODES,
    N_VISITS,
    NEXT_ROOT,
    NEXT_VISIT,
    Closing,
)
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, DONE, PAUSED, REFUSED, Followed, Parser
from maskwright.maskstore.tokens._hash_kernels import first_slot, mix, slot_of


@kernel(allocates=True)
def sort_pairs(n, scratch):  # type: ignore[no-untyped-def]
    """Sort scratch.states[:n] in ascending order, and scratch.masks with them (stable)."""
    states, masks = scratch.states, scratch.masks
    if n < 24:
        for i in range(1, n):
            state = states[i]
            mask = masks[i]
            j = i
            while j > 0 and states[j - 1] > state:
                states[j] = states[j - 1]
                masks[j] = masks[j - 1]
                j -= 1
            states[j] = state
            masks[j] = mask
        return
    found = np.argsort(states[:n], kind="mergesort")
    for i in range(n):
        scratch.more_states[i] = states[found[i]]
        scratch.more_masks[i] = masks[found[i]]
    for i in range(n):
        states[i] = scratch.more_states[i]
        masks[i] = scratch.more_masks[i]


@kernel(forceinline=True)
def unite(n, pool, scratch, sizes):  # type: ignore[no-untyped-def]
    """Sort scratch.states[:n] and unite the masks of equal states. Returns how many are left."""
    sort_pairs(n, scratch)
    states, masks = scratch.states, scratch.masks
    n_unique = 0
    i = 0
    while i < n:
        state = states[i]
        m = 0
        while i < n and states[i] == state:
            scratch.several[m] = masks[i]
            m += 1
            i += 1
        mask = union(scratch.several, m, pool, sizes)
        states[n_unique] = state
        masks[n_unique] = mask
        n_unique += 1
    return n_unique


@kernel(forceinline=True)
def node_of(n, c):  # type: ignore[no-untyped-def]
    """The number of the node with the items in scratch.states[:n] and scratch.masks[:n].

    It is a new node if there is none with these items, and DECIDED if n is 0.
    """
    if n == 0:
        return DECIDED
    nodes, items, sizes, states, masks = c.nodes, c.items, c.sizes, c.scratch.states, c.scratch.masks
    n = unite(n, c.pool, c.scratch, sizes)
    h = np.uint64(0x9E3779B97F4A7C15)
    for i in range(n):
        h = mix(h, (np.uint64(states[i]) << np.uint64(32)) | np.uint64(masks[i]))
    key = np.int64(h >> np.uint64(1))
    at = first_slot(key, nodes.slots)
    while nodes.slots[at] >= 0:
        known = nodes.slots[at]
        begin = nodes.start[known]
        if nodes.hashes[known] == key and nodes.start[known + 1] - begin == n:
            same = True
            for i in range(n):
                if items.state[begin + i] != states[i] or items.mask[begin + i] != masks[i]:
                    same = False
                    break
            if same:
                return known
        at = (at + 1) & (nodes.slots.shape[0] - 1)
    number = sizes[N_NODES]
    sizes[N_NODES] = number + 1
    begin = nodes.start[number]
    for i in range(n):
        items.state[begin + i] = states[i]
        items.mask[begin + i] = masks[i]
    nodes.start[number + 1] = begin + n
    nodes.hashes[number] = key
    nodes.slots[at] = number
    sizes[N_ITEMS] = begin + n
    return number


@kernel
def visit(node, cell, n_cells, visits, sizes):  # type: ignore[no-untyped-def]
    """Put a pair (node, last cell) on the agenda, unless it was there or the node is DECIDED."""
    if node == DECIDED:
        return
    key = np.int64(node) * n_cells + cell
    slot = slot_of(key, visits.keys, visits.slots)
    if visits.slots[slot] < 0:
        visits.slots[slot] = sizes[N_VISITS]
        visits.keys[sizes[N_VISITS]] = key
        sizes[N_VISITS] += 1


@kernel
def lack_of_room(width, n_items, c):  # type: ignore[no-untyped-def]
    """The code of a table that may be full for `width` more edges from a node of n_items.

    Returns DONE if there is room.
    """
    pool, sizes = c.pool, c.sizes
    # an edge makes one mask for what it accepts and one for each configuration set that remains
    if sizes[N_MASKS] + width * (n_items + 1) + 2 > pool.hashes.shape[0]:
        return FULL_MASKS
    if sizes[N_DENSE] + width * (n_items + 1) + 2 > pool.dense.shape[0]:
        return FULL_DENSE
    if sizes[N_IDS] + width * pool.limit * 4 + (n_items + 1) * pool.limit + 2 > pool.ids.shape[0]:
        return FULL_IDS
    if sizes[N_NODES] + width + 2 > c.nodes.hashes.shape[0]:
        return FULL_NODES
    if sizes[N_ITEMS] + width * n_items + 2 > c.items.state.shape[0]:
        return FULL_ITEMS
    if sizes[N_EDGES] + width + 2 > c.edges.keys.shape[0]:
        return FULL_EDGES
    if sizes[N_VISITS] + width + 2 > c.visits.keys.shape[0]:
        return FULL_VISITS
    return DONE


@kernel
def add_edge(key, node, mask, edges, sizes):  # type: ignore[no-untyped-def]
    """Add an edge, which is in no slot yet. Returns its number."""
    edge = sizes[N_EDGES]
    edges.keys[edge] = key
    edges.node[edge] = node
    edges.mask[edge] = mask
    sizes[N_EDGES] = edge + 1
    return edge


@kernel
def sort_by_cell(root, item_start, item_root, item_mask, root_start, root_cell, root_state, scratch):  # type: ignore[no-untyped-def]
    """Sort the masks and results of a root's items by their cell.

    Written: scratch.by_cell, rows of a mask and a result (ACCEPTED or a configuration set);
        scratch.cell_start. The rows of cell c are cell_start[c - 1] (0 for the first cell) to
        cell_start[c].

    item_start, item_root, item_mask, root_start, root_cell, root_state : see `close_roots`.
    """
    by_cell, cell_start = scratch.by_cell, scratch.cell_start
    cell_start[:] = 0
    for i in range(item_start[root], item_start[root + 1]):
        for e in range(root_start[item_root[i]], root_start[item_root[i] + 1]):
            cell_start[root_cell[e] + 1] += 1
    for cell in range(cell_start.shape[0] - 1):
        cell_start[cell + 1] += cell_start[cell]
    for i in range(item_start[root], item_start[root + 1]):
        for e in range(root_start[item_root[i]], root_start[item_root[i] + 1]):
            cell = root_cell[e]
            by_cell[cell_start[cell], 0] = item_mask[i]
            by_cell[cell_start[cell], 1] = root_state[e]
            cell_start[cell] += 1


@kernel
def slot_of_edge(begin, end, root, c):  # type: ignore[no-untyped-def]
    """The slot in scratch.edge_slots of this root's edge whose cell has the same rows in by_cell as
    begin to end - 1. If there is none, -1 is there.
    """
    by_cell, cell_start, slots = c.scratch.by_cell, c.scratch.cell_start, c.scratch.edge_slots
    h = np.uint64(end - begin)
    for i in range(begin, end):
        h = mix(h, (np.uint64(by_cell[i, 0]) << np.uint64(32)) | np.uint64(by_cell[i, 1]))
    at = first_slot(np.int64(h >> np.uint64(1)), slots)
    while slots[at] >= 0:
        other = c.edges.keys[slots[at]] - np.int64(root + 1) * c.n_cells
        other_begin = np.int64(0) if other == 0 else cell_start[other - 1]
        same = cell_start[other] - other_begin == end - begin
        if same:
            for i in range(end - begin):
                if (
                    by_cell[begin + i, 0] != by_cell[other_begin + i, 0]
                    or by_cell[begin + i, 1] != by_cell[other_begin + i, 1]
                ):
                    same = False
                    break
        if same:
            break
        at = (at + 1) & (slots.shape[0] - 1)
    return at


@kernel(entry=True)
def close_roots(
    item_start: Int64,
    item_root: Int32,
    item_mask: Int32,
    root_start: Int64,
    root_cell: Int32,
    root_state: Int32,
    c: Closing,
    until: int,
) -> int:
    """Make the edges of the root nodes. The roots have the numbers 1, 2, ... in their order.

    item_start : (n_roots + 1,) int64; where the items of each root begin.
    item_root, item_mask : (n_items,) int32; distinct roots of configuration sets, and their
        masks.
    root_start, root_cell, root_state : see `ConfigurationSets`.

    Returns DONE, PAUSED (after `until` cells and results of roots), or the code of a table that is
    full.
    """
    n_cells, edges, scratch, sizes = c.n_cells, c.edges, c.scratch, c.sizes
    done = 0
    while sizes[NEXT_ROOT] < item_start.shape[0] - 1:
        if done >= until:
            return PAUSED
        root = sizes[NEXT_ROOT]
        total = 0
        for i in range(item_start[root], item_start[root + 1]):
            total += root_start[item_root[i] + 1] - root_start[item_root[i]]
        if total > scratch.by_cell.shape[0]:
            return FULL_CELLS
        sort_by_cell(root, item_start, item_root, item_mask, root_start, root_cell, root_state, scratch)
        n_items = item_start[root + 1] - item_start[root]
        full = lack_of_room(8, n_items, c)
        if full != DONE:
            return full
        if sizes[N_EDGES] + n_cells + 2 > edges.keys.shape[0]:
            return FULL_EDGES
        if sizes[N_VISITS] + n_cells + 2 > c.visits.keys.shape[0]:
            return FULL_VISITS
        first_edge = sizes[N_EDGES]
        scratch.edge_slots[:] = -1
        begin = np.int64(0)
        for cell in range(n_cells):
            end = scratch.cell_start[cell]
            if end == begin:
                continue
            # cells with the same results as an earlier cell of this root have an equal edge
            slot = slot_of_edge(begin, end, root, c)
            equal = scratch.edge_slots[slot]
            if equal < 0:
                full = lack_of_room(1, n_items, c)
                if full != DONE:
                    # BOUND: the next call does this root again. The masks and nodes made so far are
                    # in the tables, so they get the same numbers
                    for e in range(first_edge, sizes[N_EDGES]):
                        edges.keys[e] = -1
                    sizes[N_EDGES] = first_edge
                    return full
                n = 0
                m = 0
                for i in range(begin, end):
                    if scratch.by_cell[i, 1] == ACCEPTED:
                        scratch.accepted[m] = scratch.by_cell[i, 0]
                        m += 1
                    else:
                        scratch.masks[n] = scratch.by_cell[i, 0]
                        scratch.states[n] = scratch.by_cell[i, 1]
                        n += 1
                mask = np.int64(union(scratch.accepted, m, c.pool, sizes))
                node = np.int64(node_of(n, c))
            else:
                mask = np.int64(edges.mask[equal])
                node = np.int64(edges.node[equal])
            edge = add_edge(np.int64(root + 1) * n_cells + cell, node, mask, edges, sizes)
            if equal < 0:
                scratch.edge_slots[slot] = edge
            begin = end
        for edge in range(first_edge, sizes[N_EDGES]):
            edges.slots[slot_of(edges.keys[edge], edges.keys, edges.slots)] = edge
            visit(edges.node[edge], edges.keys[edge] % n_cells, n_cells, c.visits, sizes)
        sizes[NEXT_ROOT] = root + 1
        done += n_cells + total
    return DONE


@kernel(entry=True)
def close_nodes(parser: Parser, followed: Followed, c: Closing, until: int) -> int:
    """Make the edges of all nodes over all cells that can follow.

    parser, followed : `exploration_tables.Parser`, `ConfigurationSets.followed`.

    Returns DONE, PAUSED (after `until` edges; a new one counts 8 times, and 8 times for each item
    of its node), or the code of a table that is full.
    """
    n_cells, nodes, items, edges = c.n_cells, c.nodes, c.items, c.edges
    visits, scratch, sizes = c.visits, c.scratch, c.sizes
    done = 0
    while sizes[NEXT_VISIT] < sizes[N_VISITS]:
        number = sizes[NEXT_VISIT]
        if done >= until:
            return PAUSED
        node = visits.keys[number] // n_cells
        cell = visits.keys[number] % n_cells
        first = nodes.start[node]
        n_items = nodes.start[node + 1] - first
        is_begun = False
        for p in range(parser.predecessor_start[cell], parser.predecessor_start[cell + 1]):
            below = parser.predecessors[p]
            key = np.int64(node) * n_cells + below
            slot = slot_of(key, edges.keys, edges.slots)
            if edges.slots[slot] >= 0:
                if sizes[N_VISITS] + 2 > visits.keys.shape[0]:
                    return FULL_VISITS
                visit(edges.node[edges.slots[slot]], below, n_cells, visits, sizes)
                continue
            full = lack_of_room(1, n_items, c)
            if full != DONE:
                return full
            done += 8 * (n_items + 1)
            if not is_begun:
                is_begun = True
                for i in range(n_items):
                    # BOUND: each set of a node was explored with each last cell of the node
                    pair = slot_of(np.int64(items.state[first + i]) * n_cells + cell, followed.keys, followed.slots)
                    scratch.cursor[i] = followed.start[followed.slots[pair]] - parser.predecessor_start[cell]
            n = 0
            m = 0
            for i in range(n_items):
                after = followed.after[scratch.cursor[i] + p]
                if after == REFUSED:
                    continue
                if after == ACCEPTED:
                    scratch.accepted[m] = items.mask[first + i]
                    m += 1
                else:
                    scratch.states[n] = after
                    scratch.masks[n] = items.mask[first + i]
                    n += 1
            mask = union(scratch.accepted, m, c.pool, sizes)
            target = node_of(n, c)
            edges.slots[slot] = add_edge(key, target, mask, edges, sizes)
            visit(target, below, n_cells, visits, sizes)
        sizes[NEXT_VISIT] = number + 1
        done += 1 + parser.predecessor_start[cell + 1] - parser.predecessor_start[cell]
    return DONE
