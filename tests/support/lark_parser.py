"""A second LALR parser: states and lookaheads by Lark's own code, all actions of a conflict followed.

Exact verdicts are held against it. A stack is a linked list of LR states. Equal stacks are one object (hash-consing), so the effect of
a terminal on a stack is computed once.
"""

from __future__ import annotations

from typing import NamedTuple

from lark.common import ParserConf
from lark.grammar import NonTerminal
from lark.grammar import Rule as LarkRule
from lark.grammar import Terminal as LarkTerminal
from lark.parsers.lalr_analysis import LALR_Analyzer

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lr.acyclic import parsed_grammar

END = -1
"""Number of the end of the text, where a terminal is expected."""
STACK_LIMIT = 10_000
"""Stacks for one terminal above which the grammar counts as too ambiguous."""


class Stack:
    """A parser stack. Compare with `is`.

    top : the LR state on top.
    below : the stack under it; None at the bottom.
    pushed : the known stacks with one more state, by that state.
    after : the known stacks after each terminal.
    """

    __slots__ = ("after", "below", "pushed", "top")

    def __init__(self, top: int, below: Stack | None) -> None:
        self.top = top
        self.below = below
        self.pushed: dict[int, Stack] = {}
        self.after: dict[int, tuple[Stack, ...]] = {}

    def push(self, state: int) -> Stack:
        """The stack with one more state on top."""
        found = self.pushed.get(state)
        if found is None:
            found = self.pushed[state] = Stack(state, self)
        return found


Stacks = tuple[Stack, ...]


class Actions(NamedTuple):
    """The actions of one LR state before one terminal.

    shift : the state shifted to, or None.
    reductions : (left-hand side, length) of the rules to reduce by.
    """

    shift: int | None
    reductions: tuple[tuple[int, int], ...]


class LalrParser:
    """The LALR(1) automaton of a grammar's rules, with terminals as numbers.

    States and lookaheads are computed by Lark's own code.

    go : for each state the states after a symbol.
    initial : the stacks before the text.
    """

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        grammar = parsed_grammar(grammar, "all")
        nonterminals = [NonTerminal(f"n{i}") for i in range(grammar.n_nonterminals)]
        symbols = [*(LarkTerminal(f"t{t}") for t in range(grammar.n_terminals)), *nonterminals]
        number = {symbol.name: i for i, symbol in enumerate(symbols)} | {"$END": END}
        rules = [
            LarkRule(nonterminals[r.lhs - grammar.n_terminals], [symbols[s] for s in r.rhs], order=i)
            for i, r in enumerate(grammar.rules)
        ]
        analyser = LALR_Analyzer(ParserConf(rules, {}, [symbols[grammar.start].name]))
        analyser.compute_lr0_states()
        analyser.compute_reads_relations()  # type: ignore[no-untyped-call]
        analyser.compute_includes_lookback()  # type: ignore[no-untyped-call]
        analyser.compute_lookaheads()  # type: ignore[no-untyped-call]
        (root,) = analyser.lr0_start_states.values()
        state_number = {itemset: i for i, itemset in enumerate(analyser.lr0_itemsets)}
        self.go: list[dict[int, int]] = []
        self._actions: list[dict[int, Actions]] = []
        for itemset in state_number:
            go = {
                number[symbol.name]: state_number[target]
                for symbol, target in itemset.transitions.items()
                if symbol.name in number
            }
            actions = {symbol: Actions(target, ()) for symbol, target in go.items() if symbol < grammar.n_terminals}
            for symbol, reduced in itemset.lookaheads.items():
                terminal = number[symbol.name]
                by = sorted((number[rule.origin.name], len(rule.expansion)) for rule in reduced)
                actions[terminal] = Actions(actions.get(terminal, Actions(None, ())).shift, tuple(dict.fromkeys(by)))
            self.go.append(go)
            self._actions.append(actions)
        self.initial: Stacks = (Stack(state_number[root], None),)

    def shift(self, stacks: Stacks, terminal: int) -> Stacks:
        """The stacks after a terminal; () if the terminal is not legal.

        Raises: LimitError if the text has more than STACK_LIMIT readings, or if the grammar has
            hidden left recursion and so infinitely many stacks (a nonterminal derives itself after
            symbols that may be empty).
        Cost: O(reductions), once for each stack and terminal.
        """
        if len(stacks) == 1:
            return self._shift(stacks[0], terminal)
        found = tuple(dict.fromkeys(after for stack in stacks for after in self._shift(stack, terminal)))
        if len(found) > STACK_LIMIT:
            raise LimitError(
                f"grammar {self._grammar.name} has more than {STACK_LIMIT} readings of one text: their number grows with "
                "the text's length; make its rules less ambiguous"
            )
        return found

    def _shift(self, stack: Stack, terminal: int) -> Stacks:
        known = stack.after.get(terminal)
        if known is not None:
            return known
        found = []
        for here in self._reduced(stack, terminal):
            actions = self._actions[here.top].get(terminal)
            if actions is not None and actions.shift is not None:
                found.append(here.push(actions.shift))
        stack.after[terminal] = tuple(dict.fromkeys(found))
        return stack.after[terminal]

    def _reduced(self, stack: Stack, terminal: int) -> list[Stack]:
        """The stack and all stacks that reductions before `terminal` make of it."""
        seen = {stack: None}
        agenda = [stack]
        while agenda:
            here = agenda.pop()
            actions = self._actions[here.top].get(terminal)
            if actions is None:
                continue
            for lhs, length in actions.reductions:
                base = here
                for _ in range(length):
                    assert base.below is not None  # INVARIANT: a rule's symbols are on the stack when it is reduced
                    base = base.below
                after = base.push(self.go[base.top][lhs])
                if after not in seen:
                    seen[after] = None
                    agenda.append(after)
            if len(seen) > STACK_LIMIT:
                raise LimitError(
                    f"grammar {self._grammar.name} has more than {STACK_LIMIT} readings of one text: their number grows with its length; "
                    "make its rules less ambiguous"
                )
        return list(seen)
