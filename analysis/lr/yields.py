"""A cheapest string of terminals of each symbol, its *yield*."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.graphs import cheapest_rules


class Yields:
    """The cheapest yields of a grammar's symbols; of several, those whose rule comes first.

    costs : for each terminal that may occur what it costs, at least 1; None: each costs 1.
    cost : for each symbol what its yield costs, -1 if it has none.
    body : for each nonterminal the right-hand side that gives its yield.
    """

    def __init__(self, grammar: Grammar, costs: Mapping[int, int] | None = None) -> None:
        n_terminals = grammar.n_terminals
        costs = dict.fromkeys(range(n_terminals), 1) if costs is None else costs
        self.cost = [costs.get(symbol, -1) for symbol in range(n_terminals)] + [-1] * grammar.n_nonterminals
        self.body: list[tuple[int, ...]] = [()] * len(self.cost)
        known = [[self.cost[symbol] for symbol in rule.rhs if symbol < n_terminals] for rule in grammar.rules]
        usable = [number for number, costs in enumerate(known) if min(costs, default=1) > 0]
        rules = [grammar.rules[number] for number in usable]
        found = cheapest_rules(
            (rule.lhs, sum(known[number]), filter(grammar.is_nonterminal, rule.rhs))
            for number, rule in zip(usable, rules, strict=True)
        )
        for lhs, (cost, which) in found.items():
            self.cost[lhs], self.body[lhs] = cost, rules[which].rhs
        self._n_terminals = n_terminals

    def of(self, symbols: Iterable[int]) -> Iterator[int]:
        """The terminals of the yields of some symbols in a row, each of which has one."""
        agenda = list(symbols)[::-1]
        while agenda:
            symbol = agenda.pop()
            if symbol < self._n_terminals:
                yield symbol
            elif self.cost[symbol]:  # there may be very many symbols in a derivation of nothing
                agenda += self.body[symbol][::-1]
