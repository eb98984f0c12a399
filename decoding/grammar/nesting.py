"""Whether the rules of a grammar with layout have brackets in pairs."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.analysis.grammar import Grammar

MOST_CLOSED = 100
"""BOUND: the brackets that a nonterminal may close that others have opened."""


def is_nested(grammar: Grammar, depth_of: Sequence[int]) -> bool:
    """Whether each nonterminal opens a certain number of brackets, and no newline stands inside.

    depth_of : what each terminal opens, 1, 0 or -1. The grammar has a layout.
    """
    assert grammar.layout is not None
    opens = dict(enumerate(depth_of))
    least = {terminal: min(0, opened) for terminal, opened in opens.items()}
    has_line = {grammar.layout.newline}
    is_new = True
    while is_new:
        is_new = False
        for rule in grammar.rules:
            depth = low = 0
            if not opens.keys() >= set(rule.rhs):
                continue
            for symbol in rule.rhs:
                if depth > 0 and symbol in has_line:
                    return False
                low = min(low, depth + least[symbol])
                depth += opens[symbol]
            if opens.setdefault(rule.lhs, depth) != depth or low < -MOST_CLOSED:
                return False
            is_line = not has_line.isdisjoint(rule.rhs)
            if low < least.get(rule.lhs, 1) or (is_line and rule.lhs not in has_line):
                least[rule.lhs] = min(low, least.get(rule.lhs, 0))
                has_line |= {rule.lhs} if is_line else set()
                is_new = True
    return least.get(grammar.start, -1) == 0 == opens[grammar.start]
