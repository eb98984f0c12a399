"""The jitted loops behind `deciders`: what rules consume, and what derivation paths accept.

An *item* is a rule with a dot, that is a position in the rule. A set of remainders is a bit mask in
a uint64: bit r says that the last r symbols of the sequence are still to be read. Bit 0 says that
the whole sequence has been read, perhaps in the middle of a rule; this is all that legality asks.
Example: mask 0b101 says that in one way all has been read, and in another two symbols are left.

Level r of an array belongs to the sequence's suffix of length r. Callers own all arrays and have
checked everything. Sequences have 1 to 63 symbols.

The readable formulas, for a suffix of length n that begins with `a`:

    tail[n, end of a rule]       = {n}
    tail[n, item before symbol]  = union of tail[r, next item] for r in step(symbol, n)
                                   (r = 0 stays 0)
    step(terminal, n)            = {n-1} if terminal == a else {}
    step(nonterminal, n)         = span[n, nonterminal]
                                 = union of tail[n, first item] over its rules
                                   (least fixed point)
    can_follow[n, A]             = some occurrence of A has 0 in T, or has r in T with
                                   can_follow[r, lhs], where T = tail[n, item after A]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int8, Int32, Int32_2D, Int32_3D, Int64, UInt64_2D
from maskwright.analysis.jit import kernel

MAX_LENGTH = 63


class RuleTable(NamedTuple):
    """A grammar's rules as flat arrays.

    next_symbol : (n_items,) int32; the symbol after an item's dot, or -1 at the end of a rule.
    lhs : (n_items,) int32; the left-hand side of the item's rule.
    rule_end : (n_rules,) int32; each rule's last item. The items of rule i are
        rule_end[i - 1] + 1 .. rule_end[i].
    occurrences : (n_symbol_items,) int32; the items before each symbol, grouped by symbol.
    occurrence_start : (n_symbols + 1,) int32; the items before symbol s are
        occurrences[occurrence_start[s] : occurrence_start[s + 1]].
    sizes : (2,) int32; the number of terminals, and the start symbol.
    """

    next_symbol: Int32
    lhs: Int32
    rule_end: Int32
    occurrences: Int32
    occurrence_start: Int32
    sizes: Int32


class Levels(NamedTuple):
    """The remainders of the suffixes of one sequence, by level; a level is a suffix's length.

    The arrays have depth + 1 levels, at most 64. Level 0 is not used.

    first : (depth + 1,) int32; the suffix's first symbol.
    span : (depth + 1, n_symbols) uint64; the remainders after a nonterminal has read from the
        suffix.
    tail : (depth + 1, n_items) uint64; the remainders after the symbols that follow an item's dot
        have read from the suffix.
    can_follow : (depth + 1, n_symbols) int32; 0 if the suffix cannot follow the symbol, else the
        order of discovery within the level. The fact that such a number rests on has a lower number
        at this level, or belongs to a lower level.
    """

    first: Int32
    span: UInt64_2D
    tail: UInt64_2D
    can_follow: Int32_2D


@kernel
def _tail_of(table, levels, n, item):  # type: ignore[no-untyped-def]
    """tail[n, item] by the formula, from the values known so far: a bit mask of remainders."""
    symbol = table.next_symbol[item]
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


@kernel(entry=True)
def add_level(table: RuleTable, levels: Levels, n: int, symbol: int) -> None:
    """Fill level n for the suffix that is `symbol` followed by the suffix of level n - 1.

    Cost: O(rounds * items * n), the rounds being those of two fixed points.
    """
    levels.first[n] = symbol
    levels.span[n, :] = np.uint64(0)
    levels.tail[n, :] = np.uint64(0)
    levels.can_follow[n, :] = 0
    rank = 0
    n_rules = table.rule_end.shape[0]
    changed = True
    while changed:
        changed = False
        # PERF: a rule depends on the rules of its symbols. Grammars are written top down, so these
        # mostly come later: go backwards.
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
        for item in range(table.next_symbol.shape[0]):
            symbol_here = table.next_symbol[item]
            if symbol_here < 0 or levels.can_follow[n, symbol_here] != 0:
                continue
            remainders = levels.tail[n, item + 1]
            if remainders == np.uint64(0):
                continue
            lhs = table.lhs[item]
            found = (remainders & np.uint64(1)) != np.uint64(0)
            for r in range(1, n + 1):
                if found:
                    break
                found = ((remainders >> np.uint64(r)) & np.uint64(1)) != np.uint64(0) and levels.can_follow[r, lhs] != 0
            if found:
                rank += 1
                levels.can_follow[n, symbol_here] = rank
                changed = True


@kernel(entry=True)
def advance(levels: Levels, remainders: np.uint64, item_after: int) -> int:
    """The remainders that are left after a rule, from `item_after` on, has read on.

    It reads on from each of `remainders`. Bit 0 of `remainders` is not looked at.

    Returns a bit mask, uint64.
    """
    left = np.uint64(0)
    r = 1
    remaining = remainders >> np.uint64(1)
    while remaining != np.uint64(0):
        if remaining & np.uint64(1):
            left |= levels.tail[r, item_after]
        remaining >>= np.uint64(1)
        r += 1
    return left


@kernel
def _add_if_new(slots, stamps, stamp, symbol, first_mask, second_mask):  # type: ignore[no-untyped-def]
    """Add (symbol, first_mask, second_mask) to a hash set: 1 if it is new, 0 if not, -1 if full."""
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


@kernel(entry=True)
def implies(
    table: RuleTable,
    premise: Levels,
    n_premise: int,
    conclusion: Levels,
    n_conclusion: int,
    left: int,
    slots: UInt64_2D,
    stamps: Int64,
    stamp: int,
    stack: UInt64_2D,
) -> bool:
    """Whether every derivation path from `left` that accepts the premise accepts the conclusion.

    A state of the search is (A, J, K): the symbol A has just been completed, and J and K are the
    remainders of the premise and of the conclusion on the path so far. J = {0} means that the
    premise has been accepted.

    premise, conclusion : `Levels` of the two sequences.
    n_premise, n_conclusion : their lengths. n_premise = 0 is the premise that always holds;
        n_conclusion is 1 or more.
    left : a terminal or a nonterminal.
    slots, stack : (n_slots, 3) uint64, scratch.
    stamps : (n_slots,) int64, scratch; values below `stamp`.
    stamp : a new number for each call with the same scratch, 1 or more.

    Returns True as a proof. Returns False if some path accepts only the premise, and also if the
    hash set is full.

    INVARIANT: a state on the stack has 0 not in K (else it is settled), and J is not empty.
    """
    _add_if_new(
        slots, stamps, stamp, left, np.uint64(1) << np.uint64(n_premise), np.uint64(1) << np.uint64(n_conclusion)
    )
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
            return False  # the path ends here, and has not accepted the conclusion
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
            new = _add_if_new(slots, stamps, stamp, lhs, next_holds, next_wanted)
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
    """Whether some derivation path from `symbol` accepts one of the remainders but 0."""
    r = 1
    remaining = remainders >> np.uint64(1)
    while remaining != np.uint64(0):
        if (remaining & np.uint64(1)) and levels.can_follow[r, symbol] != 0:
            return True
        remaining >>= np.uint64(1)
        r += 1
    return False


@kernel(entry=True)
def judge_tree(
    table: RuleTable,
    levels: Levels,
    lengths: Int32,
    firsts: Int32,
    query_start: Int64,
    query_left: Int32,
    verdicts: Int8,
    slots: UInt64_2D,
    stamps: Int64,
    stack: UInt64_2D,
) -> int:
    """Judge many pairs of a left symbol and a sequence. Returns the last stamp used.

    The sequences form a tree of suffixes in depth-first order.

    lengths, firsts : (n_nodes,) int32; node i is the suffix that begins with firsts[i] and goes on
        as the nearest earlier node of length lengths[i] - 1.
    query_start : (n_nodes + 1,) int64; the queries of node i are query_start[i] ..
        query_start[i + 1].
    query_left : (n_queries,) int32; a terminal, -1 for the start of the text, -2 for anywhere.
    verdicts : (n_queries,) int8, written: 0 never legal, 1 legal somewhere, 2 always legal, which
        is proved.
    slots, stamps, stack : scratch as in `implies`; the stamps are 0.
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
    """Write a whole derivation path from `left`, up to the start symbol, that accepts a suffix.

    n : the suffix's level.
    shortest : (n_symbols,) int32; the item before each symbol on its shortest derivation path. The
        path goes on so once the suffix is accepted.
    path : (depth,) int32, written: the items after the occurrences passed, then -1.

    Returns the path's length, or -1 if it does not fit.

    BOUND: levels.can_follow[n, left] != 0. The orders of discovery in `can_follow` fall along the
    path within a level, so it ends.
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
                remainders = levels.tail[r, item + 1]
                lhs = table.lhs[item]
                if remainders & np.uint64(1):
                    chosen = item
                    accepted = True
                    break
                for left_over in range(1, r + 1):
                    if ((remainders >> np.uint64(left_over)) & np.uint64(1)) == np.uint64(0):
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


@kernel(entry=True)
def witness_tree(
    table: RuleTable,
    levels: Levels,
    lengths: Int32,
    firsts: Int32,
    query_start: Int64,
    query_left: Int32,
    shortest: Int32,
    paths: Int32_2D,
    found: Int32,
) -> None:
    """Write an accepting path for each query. Returns nothing.

    lengths, firsts, query_start : the tree of suffixes, as in `judge_tree`.
    query_left : (n_queries,) int32; terminals only.
    shortest : as in `accepting_path`.
    paths : (n_queries, depth) int32, written: the items after the occurrences passed, then -1.
    found : (n_queries,) int32, written: the paths' lengths; -1 if there is no path, or it does not
        fit.
    """
    for node in range(lengths.shape[0]):
        n = lengths[node]
        add_level(table, levels, n, firsts[node])
        for query in range(query_start[node], query_start[node + 1]):
            paths[query, :] = -1
            found[query] = -1
            if levels.can_follow[n, query_left[query]] != 0:
                found[query] = accepting_path(table, levels, n, query_left[query], shortest, paths[query])


@kernel(entry=True)
def sign_tree(
    table: RuleTable,
    levels: Levels,
    lengths: Int32,
    firsts: Int32,
    query_start: Int64,
    query_left: Int32,
    pool: Int32,
    paths: Int32_3D,
    signatures: UInt64_2D,
) -> None:
    """Write which derivation paths of a pool accept each query's sequence. Returns nothing.

    lengths, firsts, query_start : the tree of suffixes, as in `judge_tree`.
    query_left : not used.
    pool : (n_queries,) int32; the pool of each query.
    paths : (n_pools, n_paths, depth) int32; each path as the items after the occurrences passed,
        then -1. A path without items accepts nothing.
    signatures : (n_queries, ceil(n_paths / 64)) uint64, zero before, written: bit p % 64 of word
        p // 64 is set if path p accepts.
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
