"""A parser's stack in words: its symbols, the items of its top state, the rules around them."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.analysis.graphs import reachable
from maskwright.decoding.explain.explanation import StackDescription
from maskwright.decoding.reference.interpreter import Interpreter
from maskwright.decoding.reference.parser import END, Stack

MOST_RULES = 10
"""Rules in a chain that is shown."""


class StackDescriptions:
    """Puts the stacks of a trace into words.

    trace : the readings whose stacks are shown.
    """

    def __init__(self, trace: Interpreter) -> None:
        self.trace = trace
        self.automaton = trace.machine.automaton
        self._known: dict[int, frozenset[int]] = {}

    def describe(self, stack: Stack, refuses: tuple[str, ...]) -> StackDescription:
        """A stack of the trace in words.

        refuses : the names of the terminals that it refuses.
        """
        states = stack.states()
        state = states[-1]
        symbols = [self.automaton.accessing[s] for s in states[1:]]
        items = self.automaton.kernels[state]
        return StackDescription(
            refuses,
            state,
            tuple(self.symbol(s) for s in symbols),
            tuple(map(self.automaton.items.text, items)),
            self.rules_around(states),
            tuple(map(self.symbol, self.trace.expected((stack,)))),
        )

    def symbol(self, symbol: int) -> str:
        """The display name of a terminal, a nonterminal, or END."""
        if symbol == END:
            return "the end of the text"
        return self.automaton.grammar.display_name(symbol)

    def rules_around(self, states: Sequence[int]) -> tuple[str, ...]:
        """The rules that wait for the one on top of a stack, the innermost first.

        They form one chain of at most `MOST_RULES` items. At each level the item with the lowest
        number is taken.

        states : the stack's LR states, from the bottom.
        """
        automaton = self.automaton
        items, grammar = automaton.items, automaton.grammar
        n = grammar.n_terminals
        found: list[str] = []
        at = len(states) - 1
        item = min(automaton.kernels[states[at]])
        while items.rule[item] < len(grammar.rules) and len(found) < MOST_RULES:
            rule = items.rule[item]
            at -= item - items.first[rule]
            wanted = grammar.rules[rule].lhs
            # A kernel item whose next symbol is the finished nonterminal, or can begin with it.
            outer = [
                i
                for i in automaton.kernels[states[at]]
                if items.symbol[i] >= n and (items.symbol[i] == wanted or wanted in self._corners(items.symbol[i]))
            ]
            if not outer:
                # Only in a state that lies on no stack.
                break
            item = min(outer)
            found.append(items.text(item))
        return tuple(found)

    def _corners(self, symbol: int) -> frozenset[int]:
        """A nonterminal, and the nonterminals that its derivations may begin with."""
        known, grammar = self._known, self.automaton.grammar
        if symbol not in known:
            found = reachable(
                [symbol],
                lambda here: [
                    rule.rhs[0] for rule in grammar.rules_of[here] if rule.rhs and grammar.is_nonterminal(rule.rhs[0])
                ],
            )
            known[symbol] = frozenset(found)
        return known[symbol]
