"""Which terminal can stand directly behind which, from the rules alone."""

from __future__ import annotations

from collections.abc import Callable

from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.grammar.normalise import nullable_symbols
from maskwright.analysis.graphs import unions
from maskwright.analysis.lr.automaton import bits


def neighbours(grammar: Grammar) -> list[int]:
    """For each terminal those that some sentence has directly behind it, as bits.

    grammar : reduced, so that each pair does occur in a sentence.

    Cost: O(size of the grammar) unions of bits, some times.
    """
    nullable = nullable_symbols(grammar)
    first = first_terminals(grammar, nullable)
    last = _reached(grammar, nullable, lambda rule: rule.rhs[::-1])
    behind = [0] * (grammar.n_terminals + grammar.n_nonterminals)
    for rule in grammar.rules:
        for at, symbol in enumerate(rule.rhs):
            for other in range(at + 1, len(rule.rhs)):
                behind[symbol] |= first[rule.rhs[other]]
                if rule.rhs[other] not in nullable:
                    break
    found = [0] * grammar.n_terminals
    for symbol, terminals in enumerate(behind):
        if terminals:
            for terminal in bits(last[symbol]):
                found[terminal] |= terminals
    return found


def first_terminals(grammar: Grammar, nullable: frozenset[int]) -> list[int]:
    """For each symbol the terminals that a text of it can begin with, as bits.

    nullable : the nonterminals that derive the empty text.
    """
    return _reached(grammar, nullable, lambda rule: rule.rhs)


def _reached(grammar: Grammar, nullable: frozenset[int], ordered: Callable[[Rule], tuple[int, ...]]) -> list[int]:
    """For each symbol the terminals that a text of it can begin with, as bits.

    ordered : a rule's body in the order of reading; reversed, the terminals that texts end with.
    """
    begins: list[list[int]] = [[] for _ in range(grammar.n_terminals + grammar.n_nonterminals)]
    for rule in grammar.rules:
        for symbol in ordered(rule):
            begins[rule.lhs].append(symbol)
            if symbol not in nullable:
                break
    return unions(begins, [1 << symbol for symbol in range(grammar.n_terminals)] + [0] * grammar.n_nonterminals)
