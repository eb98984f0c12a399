"""Interchangeable terminals: those that can replace each other, one occurrence at a time, in every word of the language.

X and Y are interchangeable when they stand in the same places of the rules: ``A -> a X b`` is a rule if and only if ``A -> a Y b`` is.
Then u X v is a word if and only if u Y v is: in the derivation tree of the one, replace the rule above this X by its twin
(proofs/interchange.v). Swapping *all* X and Y of the rule set is not enough: with ``A -> X X | Y Y`` it maps the rules onto themselves,
but X Y is no word.
"""

from __future__ import annotations

from maskwright.analysis.arguments import boolean
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import inline_unit_only, normalise, reduce
from maskwright.analysis.loading.sources import GrammarSource, as_grammar

Classes = tuple[tuple[int, ...], ...]


def interchange_classes(grammar: GrammarSource, *, rewrite: bool = False) -> Classes:
    """The classes with two or more members, each sorted, in the order of their least member. Being in one class is a proof.

    Declared and ignored terminals, and a layout's own terminals, are in no class: their meaning is not their place in the rules alone.

    rewrite : look at other rules for the same language, where wrappers such as ``break_stmt : BREAK`` are gone and equal
        nonterminals are one; this proves more.

    Source: partition refinement as in Tran-Thien's streamlining post (2025), which has the form without `rewrite`.
    """
    rewrite = boolean("rewrite", rewrite)
    grammar = as_grammar(grammar)
    union = _Union(grammar.n_terminals)
    forms = [reduce(grammar)]
    if rewrite:
        forms += [inline_unit_only(grammar), inline_unit_only(normalise(grammar))]
    for form in forms:
        for members in _same_occurrences(form).values():
            for other in members[1:]:
                union.join(members[0], other)
    return union.classes()


def _same_occurrences(grammar: Grammar) -> dict[frozenset[tuple[int, tuple[int, ...], tuple[int, ...]]], list[int]]:
    excluded = set(grammar.ignored)
    if grammar.layout is not None:
        layout = grammar.layout
        excluded |= {layout.newline, layout.indent, layout.dedent, *sum(layout.brackets, ())}
    occurrences: dict[int, set[tuple[int, tuple[int, ...], tuple[int, ...]]]] = {}
    for rule in grammar.rules:
        for i, symbol in enumerate(rule.rhs):
            if (
                not grammar.is_nonterminal(symbol)
                and symbol not in excluded
                and not grammar.terminals[symbol].is_declared
            ):
                occurrences.setdefault(symbol, set()).add((rule.lhs, rule.rhs[:i], rule.rhs[i + 1 :]))
    by_occurrences: dict[frozenset[tuple[int, tuple[int, ...], tuple[int, ...]]], list[int]] = {}
    for symbol in sorted(occurrences):
        by_occurrences.setdefault(frozenset(occurrences[symbol]), []).append(symbol)
    return by_occurrences


class _Union:
    """Sets of terminals joined by proofs; interchange is an equivalence, so proofs on different rules add up."""

    def __init__(self, n: int) -> None:
        self.parent = list(range(n))

    def find(self, i: int) -> int:
        while self.parent[i] != i:
            i = self.parent[i]
        return i

    def join(self, i: int, j: int) -> None:
        low, high = sorted((self.find(i), self.find(j)))
        self.parent[high] = low

    def classes(self) -> Classes:
        members: dict[int, list[int]] = {}
        for i in range(len(self.parent)):
            members.setdefault(self.find(i), []).append(i)
        return tuple(tuple(group) for group in members.values() if len(group) > 1)


def representatives(n_terminals: int, classes: Classes) -> list[int]:
    """Terminal -> the least terminal of its class."""
    least = list(range(n_terminals))
    for members in classes:
        for member in members:
            least[member] = members[0]
    return least
