"""The jitted fixed points behind `shortest_ending`: least costs of lexemes, of symbols and of parts of rules.

A cost is a number of bytes; COSTLY stands for "never" and is kept from growing.
"""

from __future__ import annotations

from numba import njit

COSTLY = 1 << 28


@njit(cache=True, nogil=True)
def relax_lexer(begin, source, target, cost, least):  # type: ignore[no-untyped-def]
    """least[q, u]: bytes from lexer state q to the end of lexeme u, over moves that emit nothing.

    begin : the moves' number. source, target, cost : (begin,) int32. least : (n_states, n) int32, changed until nothing is less.
    """
    changed = True
    while changed:
        changed = False
        for i in range(begin - 1, -1, -1):
            for u in range(least.shape[1]):
                found = least[target[i], u] + cost[i]
                if found < least[source[i], u]:
                    least[source[i], u] = found
                    changed = True


@njit(cache=True, nogil=True)
def relax_rules(symbol_costs, item_costs, item_lhs, parents, children, symbols):  # type: ignore[no-untyped-def]
    """Least costs of nonterminals and of what is left of rules, by the class of the terminal before and of the last terminal.

    symbol_costs : (n_columns + n_nonterminals, K, K) int32; rows of nonterminals begin at COSTLY. item_costs : (n_items, K, K) int32;
    of items with nothing left the identity, of others COSTLY. Edge i says: item parents[i] may read symbols[i] and be children[i].
    item_lhs : (n_items,) int32; the nonterminal's row if the item has one whole rule left, else -1.
    """
    n_classes = symbol_costs.shape[1]
    changed = True
    while changed:
        changed = False
        for i in range(parents.shape[0]):
            if join(symbol_costs[symbols[i]], item_costs[children[i]], item_costs[parents[i]]):
                changed = True
        for i in range(item_lhs.shape[0]):
            row = item_lhs[i]
            if row < 0:
                continue
            for a in range(n_classes):
                for b in range(n_classes):
                    if item_costs[i, a, b] < symbol_costs[row, a, b]:
                        symbol_costs[row, a, b] = item_costs[i, a, b]
                        changed = True


@njit(cache=True, nogil=True)
def join(first, second, least):  # type: ignore[no-untyped-def]
    """least = min(least, first then second), (K, K) int32 each. Returns whether anything became less."""
    n_classes = first.shape[0]
    changed = False
    for a in range(n_classes):
        for c in range(n_classes):
            if first[a, c] >= COSTLY:
                continue
            for b in range(n_classes):
                found = first[a, c] + second[c, b]
                if found < least[a, b]:
                    least[a, b] = found
                    changed = True
    return changed
