"""Cheapest terminal strings of a grammar's symbols, for examples."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from maskwright.analysis.grammar.grammar import Grammar


class Yields:
    """A cheapest terminal string of each symbol; of several, the one whose rule comes first.

    cost : for each symbol what the string costs; -1 if it has none.
    body : for each nonterminal the rule body that gives it.

    Source: D. Knuth, A generalization of Dijkstra's algorithm, Information Processing Letters 6
        (1977).
    """

    def __init__(self, grammar: Grammar, costs: Mapping[int, int] | None = None) -> None:
        """costs : of the terminals that strings may have; None: 1 for each."""
        n = grammar.n_terminals
        self.grammar = grammar
        self.cost = [1 if costs is None else costs.get(t, -1) for t in range(n)] + [-1] * grammar.n_nonterminals
        self.body: list[tuple[int, ...]] = [()] * len(self.cost)
        missing = [len(rule.rhs) for rule in grammar.rules]  # symbols whose cost is not known
        total = [0] * len(missing)
        uses: dict[int, list[int]] = {}
        for number, rule in enumerate(grammar.rules):
            for symbol in rule.rhs:
                uses.setdefault(symbol, []).append(number)
        agenda = [(0, number) for number, count in enumerate(missing) if count == 0]

        def found(symbol: int) -> None:
            for number in uses.get(symbol, ()):
                missing[number] -= 1
                total[number] += self.cost[symbol]
                if missing[number] == 0:
                    heapq.heappush(agenda, (total[number], number))

        for terminal in range(n):
            if self.cost[terminal] >= 0:
                found(terminal)
        while agenda:
            cost, number = heapq.heappop(agenda)
            lhs = grammar.rules[number].lhs
            if self.cost[lhs] < 0:
                self.cost[lhs], self.body[lhs] = cost, grammar.rules[number].rhs
                found(lhs)

    def of(self, symbols: Iterable[int], most: int) -> tuple[int, ...] | None:
        """A cheapest terminal string of some symbols in a row.

        None if there is none, or if it has more than `most` terminals.
        """
        word: list[int] = []
        agenda = [*symbols][::-1]
        while agenda and len(word) <= most:
            symbol = agenda.pop()
            if self.cost[symbol] < 0:
                return None
            if self.grammar.is_nonterminal(symbol):
                agenda += self.body[symbol][::-1] if self.cost[symbol] else ()
            else:
                word.append(symbol)
        return tuple(word) if len(word) <= most else None

    def words(self, most: int | None = None) -> dict[int, tuple[int, ...]]:
        """Symbol -> its string, for those that have one. most : the most that it may cost."""
        found: dict[int, tuple[int, ...]] = {}
        for symbol, cost in enumerate(self.cost):
            word = self.of((symbol,), cost) if cost >= 0 and (most is None or cost <= most) else None
            if word is not None:
                found[symbol] = word
        return found
