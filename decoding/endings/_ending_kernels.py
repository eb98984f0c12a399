"""The jitted fixed points behind `shortest_ending`: least costs of lexemes, of symbols and of parts of rules.

A cost is a number of bytes; COSTLY stands for "never" and is kept from growing.
"""

from __future__ import annotations

from maskwright.analysis.jit import kernel

COSTLY = 1 << 28
PLAIN, INDENT, DEDENT = 0, 1, 2


@kernel
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


@kernel
def relax_rules(symbol_costs, item_costs, item_lhs, parents, children, symbols, kinds, deeper):  # type: ignore[no-untyped-def]
    """Least costs of nonterminals and of what is left of rules, by the class of the terminal before and of the last terminal.

    A cost is bytes and, each least by itself, lines whose indentation is to be paid for.
    symbol_costs : (n_columns + n_nonterminals, 2, K, K) int32, bytes and lines; rows of nonterminals begin at COSTLY.
    item_costs : (n_items, 3, K, K) int32, bytes, lines of the block that the item stands in, and lines behind a dedent that ends it; of
    items with nothing left bytes are the identity, of others COSTLY.
    Edge i says: item parents[i] may read symbols[i] and be children[i]; kinds[i] is PLAIN, INDENT or DEDENT.
    item_lhs : (n_items,) int32; the nonterminal's row if the item has one whole rule left, else -1.
    deeper : (2,) int32; what a line of a block inside costs at least: bytes, and lines of the block around it.
    """
    n_classes = symbol_costs.shape[2]
    changed = True
    while changed:
        changed = False
        for i in range(parents.shape[0]):
            if join_items(symbol_costs[symbols[i]], item_costs[children[i]], item_costs[parents[i]], kinds[i], deeper):
                changed = True
        for i in range(item_lhs.shape[0]):
            row = item_lhs[i]
            if row < 0:
                continue
            for a in range(n_classes):
                for b in range(n_classes):
                    if item_costs[i, 0, a, b] < COSTLY:
                        if item_costs[i, 0, a, b] < symbol_costs[row, 0, a, b]:
                            symbol_costs[row, 0, a, b] = item_costs[i, 0, a, b]
                            changed = True
                        lines = item_costs[i, 1, a, b] + item_costs[i, 2, a, b]
                        if lines < symbol_costs[row, 1, a, b]:
                            symbol_costs[row, 1, a, b] = lines
                            changed = True


@kernel
def join_items(first, rest, least, kind, deeper):  # type: ignore[no-untyped-def]
    """least = min(least, first then rest). first : (2, K, K) int32, a symbol. rest, least : (3, K, K) int32, items. Returns whether
    anything became less."""
    n_classes = first.shape[1]
    changed = False
    for a in range(n_classes):
        for c in range(n_classes):
            if first[0, a, c] >= COSTLY:
                continue
            for b in range(n_classes):
                if rest[0, c, b] >= COSTLY:
                    continue
                found = first[0, a, c] + rest[0, c, b]
                here, behind = rest[1, c, b], rest[2, c, b]
                if kind == INDENT:
                    found += here * deeper[0]
                    here *= deeper[1]
                elif kind == DEDENT:
                    behind += here
                    here = 0
                here += first[1, a, c]
                if found < least[0, a, b]:
                    least[0, a, b] = found
                    changed = True
                if here < least[1, a, b]:
                    least[1, a, b] = here
                    changed = True
                if behind < least[2, a, b]:
                    least[2, a, b] = behind
                    changed = True
    return changed
