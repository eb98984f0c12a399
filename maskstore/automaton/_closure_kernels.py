"""The jitted loops that close the stack automaton: sets of suspended states with their tokens, followed over all stacks."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.maskstore.automaton._parse_kernels import (
    ACCEPTED,
    N_STATES,
    PREDECESSOR_START,
    PREDECESSORS,
    REFUSED,
    mix,
    slot_of,
)

NO_MASK = 0
DECIDED = 0
"""The node in which no token is undecided, and the mask with no token."""

# rows of `sizes`
N_MASKS, N_DENSE, N_IDS, N_NODES, N_ITEMS, N_EDGES, N_VISITS, NEXT_VISIT, NEXT_ROOT = range(9)


@kernel
def add_mask(mask, words, mask_count, mask_at, dense, ids):  # type: ignore[no-untyped-def]
    """OR a pooled mask into words."""
    at = mask_at[mask]
    if mask_count[mask] < 0:
        for w in range(words.shape[0]):
            words[w] |= dense[at, w]
    else:
        for i in range(at, at + mask_count[mask]):
            token = ids[i]
            words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@kernel
def pool_mask(words, limit, sizes, mask_hash, mask_count, mask_at, mask_slots, dense, ids):  # type: ignore[no-untyped-def]
    """The number of the mask in words, which is cleared. limit : a mask of more tokens is kept as words.

    mask_count : tokens of a sparse mask, at ids[mask_at:]; -1 for a dense one, row mask_at of dense.
    """
    n_words = words.shape[0]
    count = 0
    h = np.uint64(0x2545F4914F6CDD1D)
    for w in range(n_words):
        word = words[w]
        if word != 0:
            h = mix(h, (np.uint64(w) << np.uint64(32)) | np.uint64(word))
            while word != 0:
                word &= word - np.uint32(1)
                count += 1
    if count == 0:
        return NO_MASK
    key = np.int64(h >> np.uint64(1))
    slots_mask = mask_slots.shape[0] - 1
    at = (key >> 19) & slots_mask
    is_dense = count > limit
    while mask_slots[at] >= 0:
        known = mask_slots[at]
        if mask_hash[known] == key and (mask_count[known] == -1 if is_dense else mask_count[known] == count):
            same = True
            if is_dense:
                row = mask_at[known]
                for w in range(n_words):
                    if dense[row, w] != words[w]:
                        same = False
                        break
            else:
                for i in range(mask_at[known], mask_at[known] + count):
                    token = ids[i]
                    if (words[token >> 5] >> np.uint32(token & 31)) & np.uint32(1) == 0:
                        same = False
                        break
            if same:
                words[:] = 0
                return known
        at = (at + 1) & slots_mask
    number = sizes[N_MASKS]
    sizes[N_MASKS] = number + 1
    mask_hash[number] = key
    mask_slots[at] = number
    if is_dense:
        row = sizes[N_DENSE]
        sizes[N_DENSE] = row + 1
        mask_count[number] = -1
        mask_at[number] = row
        for w in range(n_words):
            dense[row, w] = words[w]
            words[w] = 0
    else:
        place = sizes[N_IDS]
        mask_count[number] = count
        mask_at[number] = place
        for w in range(n_words):
            word = words[w]
            if word != 0:
                for bit in range(32):
                    if (word >> np.uint32(bit)) & np.uint32(1) != 0:
                        ids[place] = w * 32 + bit
                        place += 1
                words[w] = 0
        sizes[N_IDS] = place
    return number


@kernel
def pool_groups(  # type: ignore[no-untyped-def]
    members, member_start, groups, starts, limit, words, out, sizes, mask_hash, mask_count, mask_at, mask_slots, dense, ids
):  # fmt: skip
    """Masks of unions of groups of tokens: out[i] is that of groups[starts[i] : starts[i + 1]]. Stops, returning i, when a pool is full."""
    for i in range(starts.shape[0] - 1):
        if (
            sizes[N_MASKS] + 2 > mask_hash.shape[0]
            or sizes[N_DENSE] + 2 > dense.shape[0]
            or sizes[N_IDS] + limit + 2 > ids.shape[0]
        ):
            return i
        for g in range(starts[i], starts[i + 1]):
            group = groups[g]
            for j in range(member_start[group], member_start[group + 1]):
                token = members[j]
                words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
        out[i] = pool_mask(words, limit, sizes, mask_hash, mask_count, mask_at, mask_slots, dense, ids)
    return starts.shape[0] - 1


@kernel
def union(masks, n, words, limit, sizes, mask_hash, mask_count, mask_at, mask_slots, dense, ids):  # type: ignore[no-untyped-def]
    """The number of the union of masks[:n]."""
    if n == 0:
        return NO_MASK
    first = masks[0]
    same = True
    for i in range(1, n):
        if masks[i] != first:
            same = False
            break
    if same:
        return first
    for i in range(n):
        add_mask(masks[i], words, mask_count, mask_at, dense, ids)
    return pool_mask(words, limit, sizes, mask_hash, mask_count, mask_at, mask_slots, dense, ids)


@kernel
def sort_pairs(states, masks, n, order, tmp_states, tmp_masks):  # type: ignore[no-untyped-def]
    """Sort states[:n] ascending, masks along with them (stable)."""
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
        tmp_states[i] = states[found[i]]
        tmp_masks[i] = masks[found[i]]
    for i in range(n):
        states[i] = tmp_states[i]
        masks[i] = tmp_masks[i]


@kernel
def node_of(  # type: ignore[no-untyped-def]
    states, masks, n, sizes, node_start, node_state, node_mask, node_hash, node_slots, order, tmp_states, tmp_masks, several,
    words, limit, mask_hash, mask_count, mask_at, mask_slots, dense, ids,
):  # fmt: skip
    """The node with these undecided states and their tokens; tokens of one state are united. DECIDED for none."""
    if n == 0:
        return DECIDED
    sort_pairs(states, masks, n, order, tmp_states, tmp_masks)
    unique = 0
    i = 0
    while i < n:
        state = states[i]
        m = 0
        while i < n and states[i] == state:
            several[m] = masks[i]
            m += 1
            i += 1
        mask = union(several, m, words, limit, sizes, mask_hash, mask_count, mask_at, mask_slots, dense, ids)
        states[unique] = state
        masks[unique] = mask
        unique += 1
    h = np.uint64(0x9E3779B97F4A7C15)
    for i in range(unique):
        h = mix(h, (np.uint64(states[i]) << np.uint64(32)) | np.uint64(masks[i]))
    key = np.int64(h >> np.uint64(1))
    slots_mask = node_slots.shape[0] - 1
    at = (key >> 19) & slots_mask
    while node_slots[at] >= 0:
        known = node_slots[at]
        if node_hash[known] == key and node_start[known + 1] - node_start[known] == unique:
            same = True
            begin = node_start[known]
            for i in range(unique):
                if node_state[begin + i] != states[i] or node_mask[begin + i] != masks[i]:
                    same = False
                    break
            if same:
                return known
        at = (at + 1) & slots_mask
    number = sizes[N_NODES]
    sizes[N_NODES] = number + 1
    begin = node_start[number]
    for i in range(unique):
        node_state[begin + i] = states[i]
        node_mask[begin + i] = masks[i]
    node_start[number + 1] = begin + unique
    node_hash[number] = key
    node_slots[at] = number
    sizes[N_ITEMS] = begin + unique
    return number


@kernel
def visit(node, cell, n_cells, sizes, visit_keys, visit_slots):  # type: ignore[no-untyped-def]
    """Put a pair (node, last cell) on the agenda, once."""
    if node == DECIDED:
        return
    key = np.int64(node) * n_cells + cell
    slot = slot_of(key, visit_keys, visit_slots)
    if visit_slots[slot] < 0:
        visit_slots[slot] = sizes[N_VISITS]
        visit_keys[sizes[N_VISITS]] = key
        sizes[N_VISITS] += 1


@kernel
def room(width, n_items, limit, sizes, mask_hash, dense, ids, node_hash, node_state, edge_keys, visit_keys):  # type: ignore[no-untyped-def]
    """Which table is too full for `width` more edges from a node of n_items; 0 for none."""
    # an edge makes a mask for what it accepts and one for each state that remains
    if sizes[N_MASKS] + width * (n_items + 1) + 2 > mask_hash.shape[0]:
        return 1
    if sizes[N_DENSE] + width * (n_items + 1) + 2 > dense.shape[0]:
        return 2
    if sizes[N_IDS] + width * limit * 4 + (n_items + 1) * limit + 2 > ids.shape[0]:
        return 3
    if sizes[N_NODES] + width + 2 > node_hash.shape[0]:
        return 4
    if sizes[N_ITEMS] + width * n_items + 2 > node_state.shape[0]:
        return 5
    if sizes[N_EDGES] + width + 2 > edge_keys.shape[0]:
        return 6
    if sizes[N_VISITS] + width + 2 > visit_keys.shape[0]:
        return 7
    return 0


@kernel
def close_roots(  # type: ignore[no-untyped-def]
    n_cells, item_start, item_root, item_mask, root_start, root_cell, root_state, sizes, mask_hash, mask_count, mask_at, mask_slots,
    dense, ids, node_start, node_state, node_mask, node_hash, node_slots, edge_keys, edge_node, edge_mask, edge_slots,
    visit_keys, visit_slots, limit, words, states, masks, order, tmp_states, tmp_masks, several, accepted, by_cell, cell_start,
    until,
):  # fmt: skip
    """The edges of the root nodes, numbered 1, 2, ... in their order.

    item_start : (n_roots + 1,) int64; item_root, item_mask : the distinct roots of suspended parses and their tokens.
    by_cell : (capacity, 2) int32, cell_start : (n_cells + 1,) int64, scratch. Returns 0 when done, -1 to be called again (`until` roots'
    cells), else the table that is full (8: by_cell).
    """
    n_roots = item_start.shape[0] - 1
    hashes = np.empty(n_cells + 1, np.uint64)
    done = 0
    while sizes[NEXT_ROOT] < n_roots:
        if done >= until:
            return -1
        root = sizes[NEXT_ROOT]
        total = 0
        for i in range(item_start[root], item_start[root + 1]):
            total += root_start[item_root[i] + 1] - root_start[item_root[i]]
        if total > by_cell.shape[0]:
            return 8
        n_items = item_start[root + 1] - item_start[root]
        cell_start[:] = 0
        for i in range(item_start[root], item_start[root + 1]):
            for e in range(root_start[item_root[i]], root_start[item_root[i] + 1]):
                cell_start[root_cell[e] + 1] += 1
        for cell in range(n_cells):
            cell_start[cell + 1] += cell_start[cell]
        for i in range(item_start[root], item_start[root + 1]):
            for e in range(root_start[item_root[i]], root_start[item_root[i] + 1]):
                cell = root_cell[e]
                by_cell[cell_start[cell], 0] = item_mask[i]
                by_cell[cell_start[cell], 1] = root_state[e]
                cell_start[cell] += 1
        # now cell_start[cell] is where the cell's part ends
        full = room(8, n_items, limit, sizes, mask_hash, dense, ids, node_hash, node_state, edge_keys, visit_keys)
        if full != 0 or sizes[N_EDGES] + n_cells + 2 > edge_keys.shape[0]:
            return full if full != 0 else 6
        if sizes[N_VISITS] + n_cells + 2 > visit_keys.shape[0]:
            return 7
        first_edge = sizes[N_EDGES]
        begin = 0
        for cell in range(n_cells):
            end = cell_start[cell]
            if end == begin:
                continue
            # cells with the same outcome as an earlier one of this root share its edge
            twin = -1
            h = np.uint64(end - begin)
            for i in range(begin, end):
                h = mix(h, (np.uint64(by_cell[i, 0]) << np.uint64(32)) | np.uint64(by_cell[i, 1]))
            hashes[sizes[N_EDGES] - first_edge] = h
            for e in range(first_edge, sizes[N_EDGES]):
                other = edge_keys[e] - np.int64(root + 1) * n_cells
                other_end = cell_start[other]
                other_begin = 0 if other == 0 else cell_start[other - 1]
                if hashes[e - first_edge] != h or order[e - first_edge] >= 0 or other_end - other_begin != end - begin:
                    continue
                same = True
                for i in range(end - begin):
                    if (
                        by_cell[begin + i, 0] != by_cell[other_begin + i, 0]
                        or by_cell[begin + i, 1] != by_cell[other_begin + i, 1]
                    ):
                        same = False
                        break
                if same:
                    twin = e
                    break
            if twin < 0:
                full = room(
                    1, n_items, limit, sizes, mask_hash, dense, ids, node_hash, node_state, edge_keys, visit_keys
                )
                if full != 0:
                    # BOUND: what was done for this root is done again from the same tables and gives the same numbers
                    for e in range(first_edge, sizes[N_EDGES]):
                        edge_keys[e] = -1
                    sizes[N_EDGES] = first_edge
                    return full
                n = 0
                m = 0
                for i in range(begin, end):
                    if by_cell[i, 1] == ACCEPTED:
                        accepted[m] = by_cell[i, 0]
                        m += 1
                    else:
                        masks[n] = by_cell[i, 0]
                        states[n] = by_cell[i, 1]
                        n += 1
                mask = union(accepted, m, words, limit, sizes, mask_hash, mask_count, mask_at, mask_slots, dense, ids)
                node = node_of(
                    states, masks, n, sizes, node_start, node_state, node_mask, node_hash, node_slots, order, tmp_states, tmp_masks,
                    several, words, limit, mask_hash, mask_count, mask_at, mask_slots, dense, ids,
                )  # fmt: skip
            else:
                node = edge_node[twin]
                mask = edge_mask[twin]
            edge = sizes[N_EDGES]
            edge_keys[edge] = np.int64(root + 1) * n_cells + cell
            edge_node[edge] = node
            edge_mask[edge] = mask
            order[edge - first_edge] = twin
            sizes[N_EDGES] = edge + 1
            begin = end
        for edge in range(first_edge, sizes[N_EDGES]):
            edge_slots[slot_of(edge_keys[edge], edge_keys, edge_slots)] = edge
            visit(edge_node[edge], edge_keys[edge] % n_cells, n_cells, sizes, visit_keys, visit_slots)
        sizes[NEXT_ROOT] = root + 1
        done += n_cells + total
    return 0


@kernel
def close_nodes(  # type: ignore[no-untyped-def]
    lr, step_keys, step_result, step_slots, sizes, mask_hash, mask_count, mask_at, mask_slots,
    dense, ids, node_start, node_state, node_mask, node_hash, node_slots, edge_keys, edge_node, edge_mask, edge_slots,
    visit_keys, visit_slots, limit, words, states, masks, order, tmp_states, tmp_masks, several, accepted, until,
):  # fmt: skip
    """The edges of all nodes over all cells that can follow. Returns 0 when done, -1 to be called again (`until` edges, of which new ones
    count eight times for each of their items), else the table that is full."""
    n_cells = lr[N_STATES]
    done = 0
    while sizes[NEXT_VISIT] < sizes[N_VISITS]:
        number = sizes[NEXT_VISIT]
        if done >= until:
            return -1
        node = visit_keys[number] // n_cells
        cell = visit_keys[number] % n_cells
        n_items = node_start[node + 1] - node_start[node]
        for p in range(lr[lr[PREDECESSOR_START] + cell], lr[lr[PREDECESSOR_START] + cell + 1]):
            below = lr[lr[PREDECESSORS] + p]
            key = np.int64(node) * n_cells + below
            slot = slot_of(key, edge_keys, edge_slots)
            if edge_slots[slot] >= 0:
                visit_if_room = edge_node[edge_slots[slot]]
                if sizes[N_VISITS] + 2 > visit_keys.shape[0]:
                    return 7
                visit(visit_if_room, below, n_cells, sizes, visit_keys, visit_slots)
                continue
            full = room(1, n_items, limit, sizes, mask_hash, dense, ids, node_hash, node_state, edge_keys, visit_keys)
            if full != 0:
                return full
            done += 8 * (n_items + 1)
            n = 0
            m = 0
            for i in range(node_start[node], node_start[node + 1]):
                after = step_result[
                    step_slots[slot_of(np.int64(node_state[i]) * n_cells + below, step_keys, step_slots)]
                ]
                if after == REFUSED:
                    continue
                if after == ACCEPTED:
                    accepted[m] = node_mask[i]
                    m += 1
                else:
                    states[n] = after
                    masks[n] = node_mask[i]
                    n += 1
            mask = union(accepted, m, words, limit, sizes, mask_hash, mask_count, mask_at, mask_slots, dense, ids)
            target = node_of(
                states, masks, n, sizes, node_start, node_state, node_mask, node_hash, node_slots, order, tmp_states, tmp_masks,
                several, words, limit, mask_hash, mask_count, mask_at, mask_slots, dense, ids,
            )  # fmt: skip
            edge = sizes[N_EDGES]
            edge_keys[edge] = key
            edge_node[edge] = target
            edge_mask[edge] = mask
            edge_slots[slot] = edge
            sizes[N_EDGES] = edge + 1
            visit(target, below, n_cells, sizes, visit_keys, visit_slots)
        sizes[NEXT_VISIT] = number + 1
        done += 1 + lr[lr[PREDECESSOR_START] + cell + 1] - lr[lr[PREDECESSOR_START] + cell]
    return 0


@kernel
def refill_by_hash(hashes, first, n, slots):  # type: ignore[no-untyped-def]
    """Fill an empty slot table of distinct masks from their stored hashes."""
    mask = slots.shape[0] - 1
    for i in range(first, n):
        at = (hashes[i] >> 19) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i


@kernel
def refill_nodes(node_start, node_hash, n, slots):  # type: ignore[no-untyped-def]
    """Fill an empty slot table of nodes; roots and node 0 have no items and are in no slot."""
    mask = slots.shape[0] - 1
    for i in range(n):
        if node_start[i + 1] == node_start[i]:
            continue
        at = (node_hash[i] >> 19) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i
