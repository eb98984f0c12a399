"""A cheapest string of terminals of each symbol, its *yield*."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

from maskwright.analysis.grammar.grammar import Grammar


class Yields:
    """The cheapest yields of a grammar's symbols; of several, those whose rule comes first.

    costs : for each terminal that may occur what it costs, at least 1; None: each costs 1.
    cost : for each symbol what its yield costs, -1 if it has none.
    body : for each nonterminal the right-hand side that gives its yield.

    Source: D. Knuth, A generalization of Dijkstra's algorithm (1977).
    """

    def __init__(self, grammar: Grammar, costs: Mapping[int, int] | None = None) -> None:
        n_terminals = grammar.n_terminals
        costs = dict.fromkeys(range(n_terminals), 1) if costs is None else costs
        self.cost = [costs.get(symbol, -1) for symbol in range(n_terminals)] + [-1] * grammar.n_nonterminals
        self.body: list[tuple[int, ...]] = [()] * len(self.cost)
        missing, total = [], []
        uses: dict[int, list[int]] = {}
        for number, rule in enumerate(grammar.rules):
            known = [self.cost[symbol] for symbol in rule.rhs if symbol < n_terminals]
            missing.append(len(rule.rhs) - len(known) if min(known, default=1) > 0 else -1)
            total.append(sum(known))
            for symbol in filter(grammar.is_nonterminal, rule.rhs):
                uses.setdefault(symbol, []).append(number)
        agenda = [(total[number], number) for number, count in enumerate(missing) if count == 0]
        heapq.heapify(agenda)
        while agenda:
            cost, number = heapq.heappop(agenda)
            lhs = grammar.rules[number].lhs
            if self.cost[lhs] >= 0:
                continue
            self.cost[lhs], self.body[lhs] = cost, grammar.rules[number].rhs
            for other in uses.get(lhs, ()):
                missing[other] -= 1
                total[other] += cost
                if missing[other] == 0:
                    heapq.heappush(agenda, (total[other], other))
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
