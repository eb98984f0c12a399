"""Compiled loops that close the stack automaton: nodes, followed over all stacks.

`c` is a `Closing`, see `closure_tables`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton import closure_tables as closing
from maskwright.maskstore.automaton._pool_kernels import lack_of_masks, union
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, DONE, PAUSED, REFUSED, Followed, Parser
from maskwright.maskstore.tokens._hash_kernels import (
    first_slot,
    hash_of_run,
    number_of_key,
    number_of_run,
    slot_of,
)
from maskwright.maskstore.tokens._kernels import sort_numbers


@kernel(forceinline=True)
def item_of(state, mask):  # type: ignore[no-untyped-def]
    """An item of a node as one number: a configuration set, and the tokens that hang on it."""
    return (np.int64(state) << np.int64(32)) | np.int64(mask)


@kernel(forceinline=True)
def unite(n, pool, scratch):  # type: ignore[no-untyped-def]
    """Sort scratch.items[:n] and unite the masks of equal sets. Returns how many are left."""
    items = scratch.items
    sort_numbers(items, n)
    n_unique = 0
    i = 0
    while i < n:
        state = items[i] >> 32
        m = 0
        while i < n and items[i] >> 32 == state:
            scratch.several[m] = items[i] & 0xFFFFFFFF
            m += 1
            i += 1
        items[n_unique] = item_of(state, union(scratch.several, m, pool))
        n_unique += 1
    return n_unique


@kernel(forceinline=True)
def node_of(n, c):  # type: ignore[no-untyped-def]
    """The number of the node with the items in scratch.items[:n].

    It is a new node if there is none with these items, and DECIDED if n is 0.
    """
    if n == 0:
        return np.int64(closing.DECIDED)
    return number_of_run(c.scratch.items, unite(n, c.pool, c.scratch), c.nodes)


@kernel(forceinline=True)
def visit(node, cell, c):  # type: ignore[no-untyped-def]
    """Put a pair (node, last cell) on the agenda, unless it was there or the node is DECIDED."""
    if node != closing.DECIDED:
        number_of_key(np.int64(node) * c.n_cells + cell, c.visits)


@kernel
def lack_of_room(width, n_items, c):  # type: ignore[no-untyped-def]
    """The code of a table that may be full for `width` more edges from a node of n_items.

    Returns DONE if there is room.
    """
    # an edge makes one mask for what it accepts and one for each configuration set that remains
    full = lack_of_masks(width * (n_items + 1) + 2, c.pool)
    if full != 0:
        return full
    nodes = c.nodes
    if nodes.size[0] + width + 2 > nodes.hashes.shape[0]:
        return closing.FULL_NODES
    if nodes.start[nodes.size[0]] + width * n_items + 2 > nodes.items.shape[0]:
        return closing.FULL_NODES
    if c.edges.size[0] + width + 2 > c.edges.keys.shape[0]:
        return closing.FULL_EDGES
    if c.visits.size[0] + width + 2 > c.visits.keys.shape[0]:
        return closing.FULL_VISITS
    return DONE


@kernel
def add_edge(key, node, mask, edges):  # type: ignore[no-untyped-def]
    """Add an edge, which is in no slot yet. Returns its number."""
    edge = edges.size[0]
    edges.keys[edge] = key
    edges.node[edge] = node
    edges.mask[edge] = mask
    edges.size[0] = edge + 1
    return edge


@kernel
def sort_by_cell(root, item_start, item_root, item_mask, root_start, root_cell, root_state, scratch):  # type: ignore[no-untyped-def]
    """Sort the masks and results of a root's items by their cell.

    Written: scratch.by_cell; scratch.cell_start. The rows of cell c are cell_start[c - 1] (0 for
        the first cell) to cell_start[c].

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
            by_cell[cell_start[cell]] = item_of(root_state[e], item_mask[i])
            cell_start[cell] += 1


@kernel
def slot_of_edge(begin, end, root, c):  # type: ignore[no-untyped-def]
    """The slot in scratch.edge_slots of this root's edge whose cell has the same rows in by_cell as
    begin to end - 1. If there is none, -1 is there.
    """
    by_cell, cell_start, slots = c.scratch.by_cell, c.scratch.cell_start, c.scratch.edge_slots
    at = first_slot(hash_of_run(by_cell[begin:end], end - begin), slots)
    while slots[at] >= 0:
        other = c.edges.keys[slots[at]] - np.int64(root + 1) * c.n_cells
        other_begin = np.int64(0) if other == 0 else cell_start[other - 1]
        same = cell_start[other] - other_begin == end - begin
        if same:
            for i in range(end - begin):
                if by_cell[begin + i] != by_cell[other_begin + i]:
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
    c: closing.Closing,
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
    n_cells, edges, scratch, cursor = c.n_cells, c.edges, c.scratch, c.cursor
    done = 0
    while cursor[closing.NEXT_ROOT] < item_start.shape[0] - 1:
        if done >= until:
            return PAUSED
        root = cursor[closing.NEXT_ROOT]
        total = 0
        for i in range(item_start[root], item_start[root + 1]):
            total += root_start[item_root[i] + 1] - root_start[item_root[i]]
        if total > scratch.by_cell.shape[0]:
            return closing.FULL_CELLS
        sort_by_cell(root, item_start, item_root, item_mask, root_start, root_cell, root_state, scratch)
        n_items = item_start[root + 1] - item_start[root]
        full = lack_of_room(8, n_items, c)
        if full != DONE:
            return full
        if edges.size[0] + n_cells + 2 > edges.keys.shape[0]:
            return closing.FULL_EDGES
        if c.visits.size[0] + n_cells + 2 > c.visits.keys.shape[0]:
            return closing.FULL_VISITS
        first_edge = edges.size[0]
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
                    for e in range(first_edge, edges.size[0]):
                        edges.keys[e] = -1
                    edges.size[0] = first_edge
                    return full
                n = 0
                m = 0
                for i in range(begin, end):
                    if scratch.by_cell[i] >> 32 == ACCEPTED:
                        scratch.accepted[m] = scratch.by_cell[i] & 0xFFFFFFFF
                        m += 1
                    else:
                        scratch.items[n] = scratch.by_cell[i]
                        n += 1
                mask = union(scratch.accepted, m, c.pool)
                node = node_of(n, c)
            else:
                mask = np.int64(edges.mask[equal])
                node = np.int64(edges.node[equal])
            edge = add_edge(np.int64(root + 1) * n_cells + cell, node, mask, edges)
            if equal < 0:
                scratch.edge_slots[slot] = edge
            begin = end
        for edge in range(first_edge, edges.size[0]):
            edges.slots[slot_of(edges.keys[edge], edges.keys, edges.slots)] = edge
            visit(edges.node[edge], edges.keys[edge] % n_cells, c)
        cursor[closing.NEXT_ROOT] = root + 1
        done += n_cells + total
    return DONE


@kernel(entry=True)
def close_nodes(parser: Parser, followed: Followed, c: closing.Closing, until: int) -> int:
    """Make the edges of all nodes over all cells that can follow.

    parser, followed : `exploration_tables.Parser`, `ConfigurationSets.followed`.

    Returns DONE, PAUSED (after `until` edges; a new one counts 8 times, and 8 times for each item
    of its node), or the code of a table that is full.
    """
    n_cells, nodes, edges, visits, scratch, cursor = c.n_cells, c.nodes, c.edges, c.visits, c.scratch, c.cursor
    pairs = followed.pairs
    done = 0
    while cursor[closing.NEXT_VISIT] < visits.size[0]:
        number = cursor[closing.NEXT_VISIT]
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
                if visits.size[0] + 2 > visits.keys.shape[0]:
                    return closing.FULL_VISITS
                visit(edges.node[edges.slots[slot]], below, c)
                continue
            full = lack_of_room(1, n_items, c)
            if full != DONE:
                return full
            done += 8 * (n_items + 1)
            if not is_begun:
                is_begun = True
                for i in range(n_items):
                    # BOUND: each set of a node was explored with each last cell of the node
                    pair = slot_of((nodes.items[first + i] >> 32) * n_cells + cell, pairs.keys, pairs.slots)
                    scratch.cursor[i] = pairs.edge_start[pairs.slots[pair]] - parser.predecessor_start[cell]
            n = 0
            m = 0
            for i in range(n_items):
                after = followed.after[scratch.cursor[i] + p]
                if after == REFUSED:
                    continue
                mask = nodes.items[first + i] & 0xFFFFFFFF
                if after == ACCEPTED:
                    scratch.accepted[m] = mask
                    m += 1
                else:
                    scratch.items[n] = item_of(after, mask)
                    n += 1
            accepted = union(scratch.accepted, m, c.pool)
            target = node_of(n, c)
            edges.slots[slot] = add_edge(key, target, accepted, edges)
            visit(target, below, c)
        cursor[closing.NEXT_VISIT] = number + 1
        done += 1 + parser.predecessor_start[cell + 1] - parser.predecessor_start[cell]
    return DONE
