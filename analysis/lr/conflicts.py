"""LALR(1) conflicts: states in which the parser may do several things before the same terminal.

Each conflict comes with an example that is real: a terminal sequence after which the parser does
get into the state, before the conflicting terminal.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Literal

import numpy as np

from maskwright.analysis.deadline import look
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import nullable_symbols
from maskwright.analysis.graphs import reachable, unions
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import Automaton, bits, build_automaton
from maskwright.analysis.lr.lookaheads import Lookaheads, conflicting_cells, lookaheads
from maskwright.analysis.lr.loops import first_terminals
from maskwright.analysis.lr.yields import Yields

Kind = Literal["accept", "shift", "reduce"]
"""What an action does."""

MAX_EXAMPLE = 1000
"""The most terminals of an example that is written out."""
MAX_VERTICES = 30_000
"""The most vertices of all searches for examples together: some seconds."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a conflict.

    kind : what it does. items : the items that ask for it, as text.
    """

    kind: Kind
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A state and a terminal for which the tables have several actions.

    state : its number in the LR(0) automaton.
    terminal : the terminal's number, or n_terminals for the end of the text.
    terminal_name : the terminal as messages show it.
    actions : to accept or to shift comes first, then the reductions in the order of the grammar's
        rules.
    example : a shortest sequence of terminals that leads the parser here, then the conflicting
        terminal (unless that is the end). None if MAX_EXAMPLE terminals or more lead here, if no
        example was asked for, or if none was found within MAX_VERTICES.
    example_text : the example as messages show it, "" for None.
    is_shared : whether after the example each of the actions can be the right one. False: not all
        of them at once. The state stands for several contexts, and only the lookahead sets merged
        over them (or a longer example) bring the actions together.
    """

    state: int
    terminal: int
    terminal_name: str
    actions: tuple[Action, ...]
    example: tuple[int, ...] | None
    example_text: str
    is_shared: bool

    @property
    def kind(self) -> str:
        """``shift/reduce``, ``reduce/reduce`` or ``accept/reduce``."""
        return f"{self.actions[0].kind}/reduce"

    def __str__(self) -> str:
        lines = [f"{self.kind} conflict before {self.terminal_name} (state {self.state})"]
        if self.example_text:
            lines.append(f"  after: {self.example_text}")
        for action in self.actions:
            lines += [f"  {action.kind:6}: {item}" for item in action.items]
        return "\n".join(lines)


def conflicts(grammar: Grammar, n_examples: int = 100) -> tuple[Conflict, ...]:
    """All conflicts of the LALR(1) tables of `parsed_grammar`, ordered by state and terminal.

    n_examples : for how many of them, from the first on, an example is searched.

    Raises: GrammarError if the language is empty; LimitError if the automaton is too large.
    """
    automaton = build_automaton(parsed_grammar(grammar, grammar.conflicts))
    sets = lookaheads(automaton)
    cells = list(conflicting_cells(automaton, sets))
    with_example: dict[int, list[int]] = {}
    for state, terminal in cells[:n_examples]:
        look()
        with_example.setdefault(terminal, []).append(state)
    yields = Yields(automaton.grammar)
    found: dict[int, dict[int, tuple[list[int], bool]]] = {}
    n_vertices = MAX_VERTICES
    for terminal, states in with_example.items():
        found[terminal], n_used = _Search(automaton, sets, yields, terminal).run(states, n_vertices)
        n_vertices -= n_used
    return tuple(
        _conflict(automaton, sets, yields, state, terminal, found.get(terminal, {}).get(state))
        for state, terminal in cells
    )


def _conflict(
    automaton: Automaton,
    sets: Lookaheads,
    yields: Yields,
    state: int,
    terminal: int,
    path: tuple[list[int], bool] | None,
) -> Conflict:
    """The conflict of a cell. path : as `_Search.run` finds it; None: no example."""
    grammar, items = automaton.grammar, automaton.items
    is_end = terminal == grammar.n_terminals
    actions = []
    if is_end and state == automaton.accepting:
        actions.append(Action("accept", (items.text(items.start + 1),)))
    if not is_end and automaton.transitions[state, terminal] >= 0:
        # The kernel of the state shifted to, with each dot moved one symbol back.
        after = automaton.kernels[automaton.transitions[state, terminal]]
        actions.append(Action("shift", tuple(items.text(item - 1) for item in after)))
    for rule, terminals in zip(automaton.completed[state], sets[state], strict=True):
        if terminals >> terminal & 1:
            actions.append(Action("reduce", (items.text(items.first[rule] + len(grammar.rules[rule].rhs)),)))
    name = "the end of the text" if is_end else grammar.display_name(terminal)
    example = None
    if path is not None and sum(yields.cost[symbol] for symbol in path[0]) < MAX_EXAMPLE:
        example = tuple(yields.of(path[0]))
    text = ""
    if example is not None:
        shown = " ".join(map(grammar.display_name, example)) or "nothing"
        text = f"{shown} . {'(end)' if is_end else name}"
        example = example if is_end else (*example, terminal)
    return Conflict(state, terminal, name, tuple(actions), example, text, path is not None and path[1])


class _Search:
    """Viable prefixes by the length of their yields, with the items that can have lookahead t.

    t is one terminal. A vertex is a state and the set of its kernel items that are valid with
    lookahead t: the canonical LR(1) automaton as far as t can tell. So unlike in the LALR
    automaton, a reduction found here is right for some text that goes on with t.

    Source: Isradisaikul and Myers, Finding counterexamples from parsing conflicts (2015), the
        shortest lookahead-sensitive path. We search for all items at once.
    """

    def __init__(self, automaton: Automaton, sets: Lookaheads, yields: Yields, terminal: int) -> None:
        self.automaton, self.sets, self.yields, self.terminal = automaton, sets, yields, terminal
        grammar = self.grammar = automaton.grammar
        n_terminals = self.n_terminals = grammar.n_terminals
        nullable = nullable_symbols(grammar)
        # None for the end of the text: its number is also that of a nonterminal.
        firsts = first_terminals(grammar, nullable) if terminal < n_terminals else []
        begins = {symbol for symbol, terminals in enumerate(firsts) if terminals >> terminal & 1}
        # For each nonterminal A of a closure: the nonterminals that its rules give lookahead t in
        # any case (always), and those that they give it if A has it (passed_on).
        self.always = [0] * grammar.n_nonterminals
        passed_on: list[list[int]] = [[] for _ in range(grammar.n_nonterminals)]
        # For each item before a symbol: whether what follows that symbol may begin with t, and
        # whether it may be empty.
        self.behind: list[tuple[bool, bool]] = []
        for body in [*(rule.rhs for rule in grammar.rules), (grammar.start,)]:
            flags = [(False, False)]
            follows, empty = False, True
            for symbol in reversed(body):
                flags.append((follows, empty))
                follows, empty = symbol in begins or (symbol in nullable and follows), symbol in nullable and empty
            self.behind += flags[::-1]
        for number, rule in enumerate(grammar.rules):
            if rule.rhs and rule.rhs[0] >= n_terminals:
                head, first = rule.lhs - n_terminals, rule.rhs[0] - n_terminals
                follows, empty = self.behind[automaton.items.first[number]]
                if follows:
                    self.always[head] |= 1 << first
                if empty:
                    passed_on[head].append(first)
        self.passed_on = unions(passed_on, [1 << i for i in range(grammar.n_nonterminals)])

    def run(self, goals: list[int], n_vertices: int) -> tuple[dict[int, tuple[list[int], bool]], int]:
        """Goal state -> the symbols of a viable prefix that leads there, and whether it is shared.

        Shared: all actions on t are right after the prefix. We take the shortest such prefix if
        there is one, else the shortest of those with most actions right. The search ends after
        n_vertices vertices.

        Also returns how many vertices were searched.
        """
        useful = np.zeros(self.automaton.n_states, np.bool_)
        useful[reachable(goals, self.automaton.below.__getitem__)] = True
        # the number of reductions; to shift or accept is always right
        n_actions = {goal: sum(terminals >> self.terminal & 1 for terminals in self.sets[goal]) for goal in goals}
        # goal -> (number of right reductions, vertex)
        best: dict[int, tuple[int, int]] = {}
        root = (0, int(self.terminal == self.n_terminals))
        vertices = [root]
        predecessor: list[tuple[int, int]] = [(-1, -1)]
        number = {root: 0}
        cost = [0]
        agenda = [(0, 0)]
        done: set[int] = set()
        open_goals = set(goals)
        while agenda and open_goals and len(done) < n_vertices:
            look()
            _, vertex = heapq.heappop(agenda)
            if vertex in done:
                continue
            done.add(vertex)
            state, kernel = vertices[vertex]
            inherited = self._closure(state, kernel)
            if state in open_goals:
                n_right = self._right_reductions(state, kernel, inherited)
                if n_right > best.get(state, (0, 0))[0]:
                    best[state] = n_right, vertex
                    if n_right == n_actions[state]:
                        open_goals.discard(state)
            row = self.automaton.transitions[state]
            for symbol in np.flatnonzero((row >= 0) & useful[row]).tolist():
                target = int(row[symbol])
                following = target, self._advance(state, kernel, inherited, target)
                other = number.get(following)
                length = cost[vertex] + self.yields.cost[symbol]
                if other is None:
                    other = number[following] = len(vertices)
                    vertices.append(following)
                    predecessor.append((vertex, symbol))
                    cost.append(length)
                elif length < cost[other]:
                    predecessor[other], cost[other] = (vertex, symbol), length
                else:
                    continue
                heapq.heappush(agenda, (length, other))
        found = {}
        for goal, (n_right, vertex) in best.items():
            symbols = []
            while vertex:
                vertex, symbol = predecessor[vertex]
                symbols.append(symbol)
            found[goal] = symbols[::-1], n_right == n_actions[goal]
        return found, len(done)

    def _closure(self, state: int, kernel: int) -> int:
        """The nonterminals after a dot, as bits, whose rules have lookahead t here.

        kernel : the kernel items with lookahead t, as bits.
        """
        items, n_terminals = self.automaton.items, self.n_terminals
        found = 0
        for position, item in enumerate(self.automaton.kernels[state]):
            symbol = items.symbol[item]
            if symbol >= n_terminals:
                follows, empty = self.behind[item]
                if follows or (empty and kernel >> position & 1):
                    found |= 1 << (symbol - n_terminals)
        for nonterminal in bits(self.automaton.closures[state]):
            found |= self.always[nonterminal]
        closed = 0
        for nonterminal in bits(found):
            closed |= self.passed_on[nonterminal]
        return closed

    def _advance(self, state: int, kernel: int, inherited: int, target: int) -> int:
        """The kernel items of `target` with lookahead t, as bits."""
        items = self.automaton.items
        before = self.automaton.kernels[state]
        found = 0
        for position, item in enumerate(self.automaton.kernels[target]):
            rule = items.rule[item]
            if item - 1 == items.first[rule] and rule < len(self.grammar.rules):
                is_valid = inherited >> (self.grammar.rules[rule].lhs - self.n_terminals) & 1
            else:
                is_valid = kernel >> before.index(item - 1) & 1
            found |= is_valid << position
        return found

    def _right_reductions(self, state: int, kernel: int, inherited: int) -> int:
        """The number of the state's reductions that are right before t."""
        items, rules = self.automaton.items, self.grammar.rules
        count = 0
        for position, item in enumerate(self.automaton.kernels[state]):
            if items.symbol[item] < 0 and items.rule[item] < len(rules):
                count += kernel >> position & 1
        for rule in self.automaton.completed[state]:
            if not rules[rule].rhs:
                count += inherited >> (rules[rule].lhs - self.n_terminals) & 1
        return count
