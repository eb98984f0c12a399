"""What can stand where, from the rules alone: which terminal behind which, and what is last.

A sufficient condition that no sentence is the beginning of another one: if the rules, left-factored
and without direct left recursion, are LL(1), then an LL(1) parser has one stack after each
beginning of a sentence. After a whole sentence all symbols on it may be empty. If a longer sentence
begins so, one of them derives a text too. So it is enough that no such symbol can stand last: the
symbols on the stack at the end are last symbols of rules, from the start symbol down.
"""

from __future__ import annotations

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import normalise, nullable_symbols
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.automaton import bits
from maskwright.analysis.lr.loops import first_terminals, last_terminals


def neighbours(grammar: Grammar) -> list[int]:
    """For each terminal those that some sentence has directly behind it, as bits.

    grammar : reduced, so that each pair does occur in a sentence.

    Cost: O(size of the grammar) unions of bits, some times.
    """
    nullable = nullable_symbols(grammar)
    first = first_terminals(grammar, nullable)
    last = last_terminals(grammar, nullable)
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


def is_prefix_free(grammar: Grammar) -> bool:
    """True is a proof that no sentence is the beginning of another one; False means unknown.

    grammar : its start symbol is productive.
    """
    grammar = normalise(grammar)
    nullable = nullable_symbols(grammar)
    return nullable.isdisjoint(last_symbols(grammar)) and _is_ll1(grammar, nullable)


def last_symbols(grammar: Grammar) -> list[int]:
    """The nonterminals that are last in rules, from the start symbol down, itself included."""

    def last(lhs: int) -> list[int]:
        ends = [rule.rhs[-1] for rule in grammar.rules_of[lhs] if rule.rhs]
        return list(filter(grammar.is_nonterminal, ends))

    return reachable([grammar.start], last)


def _is_ll1(grammar: Grammar, nullable: frozenset[int]) -> bool:
    first = first_terminals(grammar, nullable)
    follow = [0] * (grammar.n_terminals + grammar.n_nonterminals)
    changed = True
    while changed:
        changed = False
        for rule in grammar.rules:
            behind = follow[rule.lhs]
            for symbol in reversed(rule.rhs):
                if behind & ~follow[symbol]:
                    follow[symbol] |= behind
                    changed = True
                behind = first[symbol] | (behind if symbol in nullable else 0)
    for rules in grammar.rules_of.values():
        taken = 0
        n_empty = 0
        for rule in rules:
            predicted = 0
            for symbol in rule.rhs:
                predicted |= first[symbol]
                if symbol not in nullable:
                    break
            else:
                predicted |= follow[rule.lhs]
                n_empty += 1
            if predicted & taken or n_empty > 1:
                return False
            taken |= predicted
    return True
