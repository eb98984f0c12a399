"""The jitted fixed points behind `shortest_ending`: least costs of lexemes, symbols and rules.

A cost is a number of bytes. COSTLY stands for "never"; costs do not grow beyond it.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32, Int32_2D, Int32_3D, Int32_4D
from maskwright.analysis.jit import kernel

COSTLY = 1 << 28
"""The cost of what is impossible, in bytes."""
PLAIN, INDENT, DEDENT = 0, 1, 2
"""What a rule reads next: the layout's indent, its dedent, or any other symbol."""


@kernel(entry=True)
def relax_lexer(begin: int, source: Int32, target: Int32, cost: Int32, floor: int, least: Int32_2D) -> None:
    """Compute the least bytes from lexer states to the ends of lexemes.

    It lowers least[q, u], the bytes from state q to the end of lexeme u, over moves that emit
    nothing, until no move lowers it.

    begin : the number of moves.
    source, target, cost : (begin,) int32; a move's states, and its bytes.
    floor : no cost becomes lower. The next lexeme ended before the last byte read if its cost is
        negative: at most as many bytes before as are read anew. A table that no compiler wrote may
        have a circle of moves that costs less than nothing.
    least : (n_states, n) int32, changed; at first the costs without such moves, COSTLY for none.
    """
    changed = True
    while changed:
        changed = False
        for i in range(begin - 1, -1, -1):
            for u in range(least.shape[1]):
                known = least[target[i], u]
                found = max(known + cost[i], floor)
                if known < COSTLY and found < least[source[i], u]:
                    least[source[i], u] = found
                    changed = True


@kernel(entry=True)
def relax_rules(
    symbol_costs: Int32_4D,
    item_costs: Int32_4D,
    item_lhs: Int32,
    parents: Int32,
    children: Int32,
    symbols: Int32,
    kinds: Int32,
    deeper: Int32,
) -> None:
    """Compute the least costs of nonterminals and of what is left of rules.

    A cost depends on the class of the terminal before (the row) and of the last terminal (the
    column), of K classes. It consists of bytes, and of lines whose indentation must still be paid
    for. Each of these numbers is least by itself.

    symbol_costs : (n_columns + n_nonterminals, 2, K, K) int32, changed; bytes and lines. The
        nonterminals' entries must begin at COSTLY.
    item_costs : (n_items, 3, K, K) int32, changed; bytes, lines of the block in which the item
        stands, and lines behind a dedent that ends this block. Items with nothing left must begin
        with the identity (0 on the diagonal, else COSTLY), the others at COSTLY.
    item_lhs : (n_items,) int32; if the item is a whole rule of a nonterminal, the nonterminal's
        index in symbol_costs; else -1.
    parents, children, symbols, kinds : (n_edges,) int32; item parents[i] can read symbols[i], and
        item children[i] is left then. kinds[i] is PLAIN, INDENT or DEDENT.
    deeper : (2,) int32; what a line of an inner block costs at least: bytes, and lines of the block
        around it.
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


@kernel(entry=True)
def join_items(first: Int32_3D, remainder: Int32_3D, least: Int32_3D, kind: int, deeper: Int32) -> bool:
    """Lower the costs of an item to those of a symbol followed by another item.

    Returns whether any cost became lower.

    first : (2, K, K) int32; the symbol.
    remainder : (3, K, K) int32; the item that is left.
    least : (3, K, K) int32, changed; the item that begins with the symbol.
    kind, deeper : as of `relax_rules`.
    """
    n_classes = first.shape[1]
    changed = False
    for a in range(n_classes):
        for c in range(n_classes):
            if first[0, a, c] >= COSTLY:
                continue
            for b in range(n_classes):
                if remainder[0, c, b] >= COSTLY:
                    continue
                found = first[0, a, c] + remainder[0, c, b]
                here, behind = remainder[1, c, b], remainder[2, c, b]
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
