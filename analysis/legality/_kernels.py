"""The jitted loops behind `deciders`: what rules can consume, and how the derivation paths from a terminal behave.

Sets of remainders are bit masks: bit r of a uint64 says "the last r symbols of the sequence are still to be read"; bit 0 says that
the whole sequence has been read, perhaps in the middle of a rule, which is all that legality asks. Level r of an array belongs to the
sequence's suffix of length r. Callers own all arrays and have checked everything; sequences have 1 to 63 symbols.

The readable formulas, for a suffix of length n that begins with `a`, and items = positions in rules:

    tail[n, end of a rule]       = {n}
    tail[n, item before symbol]  = union of tail[r, next item] for r in step(symbol, n)     (r = 0 stays 0)
    step(terminal, n)            = {n-1} if terminal == a else {}
    step(nonterminal, n)         = span[n, nonterminal] = union of tail[n, first item] over its rules        (least fixed point)
    can_follow[n, A]             = some occurrence of A has 0 in T, or r in T with can_follow[r, lhs],  T = tail[n, item after A]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.jit import kernel

MAX_LENGTH = 63


class RuleTable(NamedTuple):
    """A grammar's rules as flat arrays.

    symbol : (n_items,) int32; the symbol after an item's dot, or -1 at the end of a rule.
    lhs : (n_items,) int32; the left-hand side of the item's rule.
    rule_end : (n_rules,) int32; each rule's last item; items of rule i are rule_end[i-1]+1 .. rule_end[i].
    occurrences : (n_symbol_items,) int32; the items before each symbol, grouped by symbol.
    occurrence_start : (n_symbols + 1,) int32.
    sizes : (2,) int32; the number of terminals, and the start symbol.
    """

    symbol: np.ndarray
    lhs: np.ndarray
    rule_end: np.ndarray
    occurrences: np.ndarray
    occurrence_start: np.ndarray
    sizes: np.ndarray


class Levels(NamedTuple):
    """What the suffixes of one sequence can do, by level (= length of the suffix).

    first : (64,) int32. span : (64, n_symbols) uint64. tail : (64, n_items) uint64.
    can_follow : (64, n_symbols) int32; 0 = no, else the order in which it was found out: what a positive number rests on has a
        lower number at this level, or stands at a lower level.
    """

    first: np.ndarray
    span: np.ndarray
    tail: np.ndarray
    can_follow: np.ndarray


@kernel
def _tail_of(table, levels, n, item):  # type: ignore[no-untyped-def]
    symbol = table.symbol[item]
    if symbol < 0:
        return np.uint64(1) << np.uint64(n)
    if symbol < table.sizes[0]:
        if symbol != levels.first[n]:
            return np.uint64(0)
        if n == 1:
            return np.uint64(1)
        return levels.tail[n - 1, item + 1]
    steps = levels.span[n, symbol]
    found = steps & np.uint64(1)
    for r in range(1, n + 1):
        if (steps >> np.uint64(r)) & np.uint64(1):
            found |= levels.tail[r, item + 1]
    return found


@kernel
def add_level(table, levels, n, symbol):  # type: ignore[no-untyped-def]
    """Fill level n for the suffix that is `symbol` followed by the suffix of level n - 1. Cost: O(rounds * items * n)."""
    levels.first[n] = symbol
    levels.span[n, :] = np.uint64(0)
    levels.tail[n, :] = np.uint64(0)
    levels.can_follow[n, :] = 0
    rank = 0
    n_rules = table.rule_end.shape[0]
    changed = True
    while changed:
        changed = False
        # PERF: what a rule can consume depends on what stands below it; grammars are written top down, so go backwards.
        for rule in range(n_rules - 1, -1, -1):
            last = table.rule_end[rule]
            first = table.rule_end[rule - 1] + 1 if rule > 0 else 0
            for item in range(last, first - 1, -1):
                levels.tail[n, item] = _tail_of(table, levels, n, item)
            lhs = table.lhs[last]
            merged = levels.span[n, lhs] | levels.tail[n, first]
            if merged != levels.span[n, lhs]:
                levels.span[n, lhs] = merged
                changed = True
    changed = True
    while changed:
        changed = False
        for item in range(table.symbol.shape[0]):
            symbol_here = table.symbol[item]
            if symbol_here < 0 or levels.can_follow[n, symbol_here] != 0:
                continue
            rest = levels.tail[n, item + 1]
            if rest == np.uint64(0):
                continue
            lhs = table.lhs[item]
            found = (rest & np.uint64(1)) != np.uint64(0)
            for r in range(1, n + 1):
                if found:
                    break
                found = ((rest >> np.uint64(r)) & np.uint64(1)) != np.uint64(0) and levels.can_follow[r, lhs] != 0
            if found:
                rank += 1
                levels.can_follow[n, symbol_here] = rank
                changed = True


@kernel
def advance(levels, remainders, item_after):  # type: ignore[no-untyped-def]
    """The remainders that are left when the rest of a rule, from `item_after` on, reads on from any of `remainders`."""
    left = np.uint64(0)
    r = 1
    rest = remainders >> np.uint64(1)
    while rest != np.uint64(0):
        if rest & np.uint64(1):
            left |= levels.tail[r, item_after]
        rest >>= np.uint64(1)
        r += 1
    return left


@kernel
def _seen(slots, stamps, stamp, symbol, first_mask, second_mask):  # type: ignore[no-untyped-def]
    """Whether (symbol, first_mask, second_mask) is new to the hash set; -1 when the set is full."""
    size = stamps.shape[0]
    # no products of large numbers: without the JIT, NumPy scalars would warn of overflow
    position = (
        np.int64(
            (first_mask % np.uint64(1000003)) * np.uint64(31)
            + (second_mask % np.uint64(999983)) * np.uint64(8191)
            + np.uint64(symbol) * np.uint64(7919)
        )
        % size
    )
    for _ in range(size):
        if stamps[position] != stamp:
            stamps[position] = stamp
            slots[position, 0] = np.uint64(symbol)
            slots[position, 1] = first_mask
            slots[position, 2] = second_mask
            return 1
        if (
            slots[position, 0] == np.uint64(symbol)
            and slots[position, 1] == first_mask
            and slots[position, 2] == second_mask
        ):
            return 0
        position = (position + 1) % size
    return -1


@kernel
def implies(table, premise, n_premise, conclusion, n_conclusion, left, slots, stamps, stamp, stack):  # type: ignore[no-untyped-def]
    """Whether every derivation path from `left` that accepts the premise accepts the conclusion; False also when the hash set is full.

    A state is (A, J, K): the symbol A has just been completed, J and K are the remainders of the premise and of the conclusion that
    some reading so far has left. J = {0} means "accepted already"; n_premise = 0 is the premise that always holds.
    stack : (len(stamps), 3) uint64, scratch; slots : (len(stamps), 3) uint64; stamps : (n_slots,) int64 with values below `stamp`.

    INVARIANT: a state on the stack has 0 not in K (else it is settled), and J is not empty.
    """
    _seen(slots, stamps, stamp, left, np.uint64(1) << np.uint64(n_premise), np.uint64(1) << np.uint64(n_conclusion))
    stack[0, 0] = np.uint64(left)
    stack[0, 1] = np.uint64(1) << np.uint64(n_premise)
    stack[0, 2] = np.uint64(1) << np.uint64(n_conclusion)
    depth = 1
    one = np.uint64(1)
    while depth > 0:
        depth -= 1
        symbol = np.int64(stack[depth, 0])
        holds = stack[depth, 1]
        wanted = stack[depth, 2]
        accepted = (holds & one) != np.uint64(0)
        if symbol == table.sizes[1] and accepted:
            return False  # the text may end here, and the conclusion is still waiting
        for index in range(table.occurrence_start[symbol], table.occurrence_start[symbol + 1]):
            item = table.occurrences[index]
            next_wanted = advance(conclusion, wanted, item + 1)
            if next_wanted & one:
                continue
            next_holds = one if accepted else advance(premise, holds, item + 1)
            if next_holds & one:
                next_holds = one
            if next_holds == np.uint64(0):
                continue
            lhs = table.lhs[item]
            if next_wanted == np.uint64(0) and (next_holds == one or can_accept(premise, next_holds, lhs)):
                return False
            if next_wanted == np.uint64(0):
                continue
            new = _seen(slots, stamps, stamp, lhs, next_holds, next_wanted)
            if new < 0:
                return False
            if new:
                stack[depth, 0] = np.uint64(lhs)
                stack[depth, 1] = next_holds
                stack[depth, 2] = next_wanted
                depth += 1
    return True


@kernel
def can_accept(levels, remainders, symbol):  # type: ignore[no-untyped-def]
    """Whether some derivation path from `symbol` accepts one of the remainders."""
    r = 1
    rest = remainders >> np.uint64(1)
    while rest != np.uint64(0):
        if (rest & np.uint64(1)) and levels.can_follow[r, symbol] != 0:
            return True
        rest >>= np.uint64(1)
        r += 1
    return False


@kernel
def judge_tree(  # type: ignore[no-untyped-def]
    table, levels, lengths, firsts, query_start, query_left, verdicts, slots, stamps, stack
):
    """Judge many (left symbol, sequence) pairs, the sequences being given as a tree of suffixes in depth-first order.

    lengths, firsts : (n_nodes,) int32; a node is the suffix `firsts[i]` + the nearest earlier node of length lengths[i] - 1.
    query_start : (n_nodes + 1,) int64; query_left : (n_queries,) int32, a terminal, -1 for the start of the text, -2 for anywhere.
    verdicts : (n_queries,) int8, written: 0 never legal, 1 legal somewhere, 2 always legal (proved).
    """
    stamp = 0
    for node in range(lengths.shape[0]):
        n = lengths[node]
        add_level(table, levels, n, firsts[node])
        for query in range(query_start[node], query_start[node + 1]):
            left = query_left[query]
            at_start = (levels.span[n, table.sizes[1]] & np.uint64(1)) != np.uint64(0)
            if left == -1:
                verdicts[query] = 2 if at_start else 0
            elif left == -2:
                somewhere = at_start
                for terminal in range(table.sizes[0]):
                    somewhere = somewhere or levels.can_follow[n, terminal] != 0
                verdicts[query] = 1 if somewhere else 0
            elif levels.can_follow[n, left] == 0:
                verdicts[query] = 0
            else:
                stamp += 1
                always = implies(table, levels, 0, levels, n, left, slots, stamps, stamp, stack)
                verdicts[query] = 2 if always else 1
    return stamp


@kernel
def accepting_path(table, levels, n, left, shortest, path):  # type: ignore[no-untyped-def]
    """Write a derivation path from `left` that accepts the suffix of level n, all the way; returns its length, or -1 if it does not fit.

    BOUND: levels.can_follow[n, left] != 0. shortest : (n_symbols,) int32; the item before each symbol on its shortest derivation path.
    path : (depth,) int32; the items after the occurrences passed, then -1.
    """
    path[:] = -1
    symbol = left
    r = n
    length = 0
    accepted = False
    while not accepted or symbol != table.sizes[1]:
        chosen = -1
        if accepted:
            chosen = shortest[symbol]
        else:
            for index in range(table.occurrence_start[symbol], table.occurrence_start[symbol + 1]):
                item = table.occurrences[index]
                rest = levels.tail[r, item + 1]
                lhs = table.lhs[item]
                if rest & np.uint64(1):
                    chosen = item
                    accepted = True
                    break
                for left_over in range(1, r + 1):
                    if ((rest >> np.uint64(left_over)) & np.uint64(1)) == np.uint64(0):
                        continue
                    rank = levels.can_follow[left_over, lhs]
                    if rank != 0 and (left_over < r or rank < levels.can_follow[r, symbol]):
                        chosen = item
                        r = left_over
                        break
                if chosen >= 0:
                    break
        if length == path.shape[0]:
            return -1
        path[length] = chosen + 1
        length += 1
        symbol = table.lhs[chosen]
    return length


@kernel
def witness_tree(table, levels, lengths, firsts, query_start, query_left, shortest, paths, found):  # type: ignore[no-untyped-def]
    """An accepting path for each query; the tree of suffixes is as in `judge_tree`, query_left holds terminals only.

    paths : (n_queries, depth) int32. found : (n_queries,) int32; the paths' lengths, -1 for none (or none that fits).
    """
    for node in range(lengths.shape[0]):
        n = lengths[node]
        add_level(table, levels, n, firsts[node])
        for query in range(query_start[node], query_start[node + 1]):
            paths[query, :] = -1
            found[query] = -1
            if levels.can_follow[n, query_left[query]] != 0:
                found[query] = accepting_path(table, levels, n, query_left[query], shortest, paths[query])


@kernel
def sign_tree(table, levels, lengths, firsts, query_start, query_left, pool, paths, signatures):  # type: ignore[no-untyped-def]
    """On which of some derivation paths each sequence is accepted; the tree of suffixes is as in `judge_tree`.

    pool : (n_queries,) int32; which of the pools of paths holds for a query. paths : (n_pools, n_paths, depth) int32; each path the items
        after the occurrences passed, then -1; a path without items accepts nothing.
    signatures : (n_queries, ceil(n_paths / 64)) uint64, zero before, written; query_left is not used.
    """
    for node in range(lengths.shape[0]):
        n = lengths[node]
        add_level(table, levels, n, firsts[node])
        for query in range(query_start[node], query_start[node + 1]):
            for path in range(paths.shape[1]):
                remainders = np.uint64(1) << np.uint64(n)
                for step in range(paths.shape[2]):
                    item = paths[pool[query], path, step]
                    if item < 0:
                        break
                    remainders = advance(levels, remainders, item)
                    if remainders == np.uint64(0) or (remainders & np.uint64(1)):
                        break
                if remainders & np.uint64(1):
                    signatures[query, path // 64] |= np.uint64(1) << np.uint64(path % 64)
