"""Reductions without end: grammars on which an LR parser could reduce for ever and read nothing.

A parser that follows all actions can do so if and only if, in the reduced grammar,

- some A =>+ A (a cycle: every text with an A in it has infinitely many derivations), or
- some A =>+ w A v with w not empty and w =>* the empty string (hidden left recursion: the parser
  may push w any number of times).

If: w* is a viable prefix before what A begins with, and another A can come after A. Only if: take
the lowest height that the stack has infinitely often. Either the nonterminals pushed there derive
each other in a cycle, or the stack grows for ever by symbols that derive the empty string. In the
second case the automaton passes them in infinitely many leftmost descents, and infinitely many of
these step over something.

A parser that follows all actions gets other rules for such a grammar (`acyclic`). A parser with one
action a cell takes only some of these steps. So we look at its tables only if the grammar has such
an A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import nullable_symbols
from maskwright.analysis.graphs import unions, way_to, ways
from maskwright.analysis.lr.encoding import LrTables

Graph = list[dict[int, None]]
"""For each nonterminal index the indices that it leads to, as the keys of a dictionary."""


class FollowGraphs(NamedTuple):
    """Graphs of a grammar's nonterminals, by index: which nonterminals a rule begins with or is.

    whole : A -> B if some rule of A is B between symbols that may be empty.
    left : A -> B if some rule of A begins with B behind symbols that may be empty.
    hidden : the part of `left` with at least one symbol before B.
    """

    whole: Graph
    left: Graph
    hidden: Graph


def follow_graphs(grammar: Grammar, nullable: frozenset[int]) -> FollowGraphs:
    """The graphs of a grammar.

    nullable : the symbols that derive the empty string (`nullable_symbols`).

    Cost: O(size of the grammar).
    """
    n_terminals, n = grammar.n_terminals, grammar.n_nonterminals
    found = FollowGraphs([{} for _ in range(n)], [{} for _ in range(n)], [{} for _ in range(n)])
    for rule in grammar.rules:
        head = rule.lhs - n_terminals
        n_required = sum(symbol not in nullable for symbol in rule.rhs)
        for position, symbol in enumerate(rule.rhs):
            if symbol >= n_terminals:
                found.left[head][symbol - n_terminals] = None
                if position:
                    found.hidden[head][symbol - n_terminals] = None
                if n_required == (symbol not in nullable):
                    found.whole[head][symbol - n_terminals] = None
            if symbol not in nullable:
                break
    return found


def first_terminals(grammar: Grammar, nullable: frozenset[int]) -> list[int]:
    """For each symbol the terminals that a text of it can begin with, as bits.

    nullable : the nonterminals that derive the empty text.
    """
    return _begun_with(grammar, nullable, 1)


def last_terminals(grammar: Grammar, nullable: frozenset[int]) -> list[int]:
    """For each symbol the terminals that a text of it can end with, as in `first_terminals`."""
    return _begun_with(grammar, nullable, -1)


def _begun_with(grammar: Grammar, nullable: frozenset[int], step: Literal[1, -1]) -> list[int]:
    begins: list[list[int]] = [[] for _ in range(grammar.n_terminals + grammar.n_nonterminals)]
    for rule in grammar.rules:
        for symbol in rule.rhs[::step]:
            begins[rule.lhs].append(symbol)
            if symbol not in nullable:
                break
    return unions(begins, [1 << symbol for symbol in range(grammar.n_terminals)] + [0] * grammar.n_nonterminals)


def endless_cycle(grammar: Grammar) -> tuple[tuple[int, ...], bool] | None:
    """Nonterminals A, B, .., A, each of which begins with the next, so that reductions may not end.

    grammar : reduced.

    Returns the symbols of the cycle, A first and last, and whether the recursion is hidden (else A
    =>+ A). None if there is no cycle.

    Cost: O(edges) unions of bits.
    """
    n_terminals, n = grammar.n_terminals, grammar.n_nonterminals
    whole, left, hidden = follow_graphs(grammar, nullable_symbols(grammar))
    for graph, closing, is_hidden in ((whole, whole, False), (left, hidden, True)):
        reach = unions([list(targets) for targets in graph], [1 << i for i in range(n)])
        for source, targets in enumerate(closing):
            for target in targets:
                if reach[target] >> source & 1:
                    path = [source, *way_to(source, ways([target], graph.__getitem__))]
                    return tuple(n_terminals + i for i in path), is_hidden
    return None


def refuse_endless_tables(grammar: Grammar, make_tables: Callable[[], LrTables]) -> None:
    """Refuses tables with which a parser of one action a cell could reduce for ever.

    grammar : reduced. make_tables : makes its tables; called only if they are needed.

    Raises: GrammarError if that could happen on a stack of the LR(0) automaton.
    Cost: O(states * terminals * reductions), only for grammars that `endless_cycle` finds.
    """
    if endless_cycle(grammar) is None:
        return
    tables = make_tables()
    for column in range(tables.n_terminals + 1):
        loop = _Reductions(tables, column).find_loop()
        if loop:
            names = " -> ".join(grammar.symbol_name(grammar.n_terminals + i) for i in (*loop, loop[0]))
            before = grammar.display_name(column) if column < grammar.n_terminals else "the end of the text"
            raise GrammarError(
                f"grammar {grammar.name}: infinite ambiguity: before {before} the parser would reduce for ever ({names}), "
                "because its conflicts are resolved by taking the first rule; take the cycle out of these rules"
            )


class _Loop(Exception):
    """There is a loop. nonterminals : those that are pushed again and again, each once."""

    def __init__(self, nonterminals: Iterable[int]) -> None:
        self.nonterminals = list(dict.fromkeys(nonterminals))


class _Reductions:
    """All reductions that can happen before one terminal, on any stack of the automaton.

    tops : the states that can be on top just after a terminal, and the start state.
    ended : for each top that `run` has been asked about, its answer.
    """

    def __init__(self, tables: LrTables, column: int) -> None:
        self.action: list[int] = tables.action[:, column].tolist()
        self.goto = tables.goto
        self.lhs: list[int] = tables.rule_lhs.tolist()
        self.length: list[int] = tables.rule_length.tolist()
        self.below = tables.below
        self.tops = [s for s, symbol in enumerate(tables.accessing.tolist()) if symbol < tables.n_terminals]
        self.ended: dict[int, tuple[int, int] | None] = {}

    def find_loop(self) -> list[int]:
        """The nonterminals of a loop, [] for none. Begins on all stacks just after a terminal."""
        try:
            agenda: list[tuple[int, int]] = []  # (base, nonterminal to be pushed on it)
            for top in self.tops:
                escape = self.run(top)
                if escape is not None:
                    agenda += [(base, escape[0]) for base in self.states_below([top], escape[1] + 1)]
            agenda = list(dict.fromkeys(agenda))
            replaced_by: dict[tuple[int, int], int] = {}  # what replaces a nonterminal on the same base
            seen = set(agenda)
            for base, nonterminal in agenda:  # grows while it is read
                look()
                escape = self.run(int(self.goto[base, nonterminal]))
                if escape is None:
                    continue
                if escape[1] == 0:
                    replaced_by[base, nonterminal] = escape[0]
                for lower in self.states_below([base], escape[1]):
                    if (lower, escape[0]) not in seen:
                        seen.add((lower, escape[0]))
                        agenda.append((lower, escape[0]))
            self.check_chains(replaced_by)
        except _Loop as loop:
            return loop.nonterminals
        return []

    def states_below(self, states: list[int], depth: int) -> list[int]:
        """The states that can lie `depth` states below one of `states`."""
        for _ in range(depth):
            states = list(dict.fromkeys(lower for state in states for lower in self.below[state]))
        return states

    def run(self, top: int) -> tuple[int, int] | None:
        """Reduces with `top` on an unknown stack, until a reduction pops a part of that stack.

        Returns the nonterminal that this reduction pushes, and how many states of the unknown stack
        it pops before. Returns None if the reductions end first.

        Raises: _Loop if they never end: a state comes to lie above itself, or the same state comes
            again onto the same states. What happens above a state depends on it alone, so both
            repeat. Without them the stack is bounded, and at each height the reductions end.
        """
        if top in self.ended:
            return self.ended[top]
        stack = [top]
        pushed: list[list[tuple[int, int]]] = [[]]  # the (nonterminal, state) that have lain directly on each state
        while True:
            action = self.action[stack[-1]]
            if action >= 0:
                self.ended[top] = None
                return None
            rule = -action - 1
            nonterminal, length = self.lhs[rule], self.length[rule]
            if length >= len(stack):
                self.ended[top] = nonterminal, length - len(stack)
                return self.ended[top]
            del stack[len(stack) - length :], pushed[len(pushed) - length :]
            state = int(self.goto[stack[-1], nonterminal])
            on_top = pushed[-1]
            on_top.append((nonterminal, state))
            if any(state == other for _, other in on_top[:-1]):
                raise _Loop(found for found, _ in on_top)
            if state in stack:
                raise _Loop(on[-1][0] for on in pushed[stack.index(state) :])
            stack.append(state)
            pushed.append([])

    def check_chains(self, replaced_by: dict[tuple[int, int], int]) -> None:
        """Raises _Loop if nonterminals replace each other on one base for ever.

        replaced_by : (base, nonterminal pushed on it) -> the nonterminal that replaces it there.
        """
        done: set[tuple[int, int]] = set()
        for start in replaced_by:
            chain = [start]
            while chain[-1] in replaced_by and chain[-1] not in done:
                done.add(chain[-1])
                chain.append((start[0], replaced_by[chain[-1]]))
            if chain[-1] in chain[:-1]:
                raise _Loop(nonterminal for _, nonterminal in chain[chain.index(chain[-1]) :])
