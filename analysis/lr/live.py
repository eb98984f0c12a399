"""Parsers with decided conflicts: which stacks can still come to an end, and tables without others.

A parser that follows all actions reads a terminal only if the rules have a text that goes on with
it. A parser that shifts where it might also reduce may come to a stack from which no text is
accepted. With `S : D | x C` and `x : C x |` it takes every C into x, and then lacks the C behind x.
Its tables read such *dead ends*, as any LALR parser with decided conflicts does. An exact mask must
not lead into one.

What a stack can do is found from the top. Let a state be on top, before any terminal or (after a
reduction) before a certain one. Consider all texts that the parser may read from there. At some
point it pops this state and n - 1 states below it and pushes a nonterminal A there before a
terminal t; or it accepts. These *exits* (n, A, t) of all states are the least solution of equations
that follow the tables (a saturation, as for pushdown systems).

A stack is live if its top accepts, or has an exit such that the stack below can go on with A before
t. So the question goes down the stack, one state at a time, as a set of exits under way, one of
which must succeed. Such a set at a state is a *query*. It is answered where something accepts, and
it has failed at the bottom. A query is *sure* if no stack fails it. Only the other queries
distinguish stacks: which of them a stack answers is its *kind*. A parser whose states are pairs of
state and kind knows which shifts are dead. Most grammars have only sure queries, hence one kind.

Source: Bouajjani, Esparza, Maler, Reachability analysis of pushdown automata (CONCUR 1997).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.automaton import bits
from maskwright.analysis.lr.encoding import ACCEPT, Alternatives, Array, LrTables, finish_tables

MAX_EXITS = 2_000_000
"""The most exits of states, and calls between them, that are followed: some 5 s."""
MAX_QUERIES = 200_000
"""The most queries."""
MAX_KINDS = 20_000
"""The most kinds of stacks, and the most pairs of a state and a kind."""

Exits = frozenset[tuple[int, int]]
"""Exits (n, A, t): head n * n_nonterminals + A -> the columns t, as bits."""
ACCEPTING = -1
"""Stands for the head of an exit where the parser accepts."""
ANSWERED = -2
"""Stands for a query that no stack fails."""


def without_dead_ends(live: Live) -> tuple[LrTables, Array]:
    """Tables that accept the same texts as those of `live`, without dead ends.

    They read no terminal sequence that no accepted text begins with. Their states are pairs of a
    given state and a kind of stack.

    Returns the tables, and (n_states,) int32: the given state of each state.

    Raises: LimitError if there are more than MAX_KINDS states or kinds.
    """
    tables = live.tables
    pairs = [(0, 0)]
    number = {pairs[0]: 0}

    def pushed(state: int, kind: int, target: int) -> int:
        pair = target, live.push(state, kind, target)
        if number.setdefault(pair, len(pairs)) == len(pairs):
            if len(pairs) >= MAX_KINDS:
                raise LimitError(f"its states are on more than {MAX_KINDS} kinds of stacks")
            pairs.append(pair)
        return number[pair]

    actions, gotos = [], []
    for state, kind in pairs:  # grows while it is read
        action, goto = tables.action[state].copy(), tables.goto[state].copy()
        for column in np.flatnonzero((action > 0) & (action < ACCEPT)).tolist():
            target = int(action[column]) - 1
            action[column] = pushed(state, kind, target) + 1 if live.can_shift(state, kind, target) else 0
        for symbol in np.flatnonzero(goto >= 0).tolist():
            goto[symbol] = pushed(state, kind, int(goto[symbol]))
        actions.append(action)
        gotos.append(goto)
    of = np.array([state for state, _ in pairs], np.int32)
    found = finish_tables(
        np.stack(actions), np.stack(gotos), tables.rule_lhs, tables.rule_length, Alternatives(), tables.accessing[of],
        tables.terminal_column, tables.origin[of],
    )  # fmt: skip
    # We keep the given default rules. Where a dropped shift leaves only a reduction, the parser
    # must not reduce before the terminal of that shift.
    return replace(found, default_rule=tables.default_rule[of]), of


class Live:
    """The kinds of stacks of a parser. Kind 0 is that of the start state alone.

    tables : without conflicts. `push` leads from one kind to the next, and `can_shift` says whether
        a state may be pushed.

    Raises: LimitError if there are more than MAX_EXITS exits, MAX_QUERIES queries or MAX_KINDS
        kinds.
    Cost: O(exits), 2 us each; those that differ in the terminal only are followed together.
    """

    def __init__(self, tables: LrTables) -> None:
        self.tables = tables
        self._exits = _Exits(tables)
        self._goto: list[list[int]] = tables.goto.tolist()
        self._below = tables.below
        self._queries: list[tuple[int, Exits]] = []
        """By number: the state that is asked, and the exits that are under way below it."""
        self._number: dict[tuple[int, Exits], int] = {}
        self._next: list[dict[int, int]] = []
        """For each query: state below -> the query there, or ANSWERED."""
        self._query = cache(self._find_query)
        self._first = self._ask()
        self._undecided = self._find_undecided()
        self._unsure_at: dict[int, list[int]] = {}
        """The queries of each state that are not sure, ascending."""
        for query in sorted(self._undecided):
            self._unsure_at.setdefault(self._queries[query][0], []).append(query)
        self._members: list[frozenset[int]] = []
        """For each kind the queries that it answers, of those that are not sure."""
        self._kinds: dict[frozenset[int], int] = {}
        self.push = cache(self._push)
        """`_push`, which is asked the same again and again."""
        self._kind(frozenset())

    @property
    def accepts_some(self) -> bool:
        """Whether the parser accepts any text."""
        return ACCEPTING in self._exits.of[self._exits.ready[0]]

    @property
    def has_dead_ends(self) -> bool:
        """Whether the automaton has a stack that ends with a shift and is not live.

        No text need lead to that stack.
        """
        return any(query in self._undecided for query in self._first.values())

    def _push(self, top: int, kind: int, state: int) -> int:
        """The kind of a stack after one more state has been pushed.

        top, kind : the state on top of the stack before, and its kind. state : the state pushed.

        Raises: LimitError if there are more than MAX_KINDS kinds.
        """
        mine = self._unsure_at.get(state, ())
        return self._kind(frozenset(q for q in mine if self._is_answered(self._next[q][top], kind)))

    def can_shift(self, top: int, kind: int, state: int) -> bool:
        """Whether a stack is live after one more state has been shifted; arguments as `push`.

        False for a state that no shift of a text leads to.
        """
        return (top, state) in self._first and self._is_answered(self._first[top, state], kind)

    def _is_answered(self, query: int, kind: int) -> bool:
        """Whether a stack of some kind answers a query."""
        return query not in self._undecided or query in self._members[kind]

    def _kind(self, members: frozenset[int]) -> int:
        """The number of the kind that answers these queries, of those that are not sure."""
        number = self._kinds.setdefault(members, len(self._members))
        if number == len(self._members):
            if number >= MAX_KINDS:
                raise LimitError(f"it has more than {MAX_KINDS} kinds of stacks")
            self._members.append(members)
        return number

    def _ask(self) -> dict[tuple[int, int], int]:
        """Finds all queries that shifts lead to.

        Returns (top, state shifted onto it) -> the query at `top`, or ANSWERED.
        """
        exits = self._exits
        first: dict[tuple[int, int], int] = {}
        for state, ready in enumerate(exits.ready):
            if ready >= 0 and 0 <= self.tables.accessing[state] < self.tables.n_terminals:
                below, accepts = exits.popped(exits.of[ready].items()), ACCEPTING in exits.of[ready]
                for top in self._below[state]:
                    first[top, state] = ANSWERED if accepts else self._query(top, below)
        for query, (state, going_on) in enumerate(self._queries):  # grows while it is read
            look()
            below = exits.popped(going_on)
            self._next[query] = {one: self._query(one, below) for one in self._below[state]}
        return first

    def _find_query(self, state: int, asked: Exits) -> int:
        """The number of a query: can a stack with `state` on top go on in one of these ways?

        asked : exits that may have come to their end at `state` (n = 0). Returns ANSWERED if the
            stack can go on whatever lies below.
        """
        going_on = self._going_on(state, asked)
        if going_on is None:
            return ANSWERED
        number = self._number.setdefault((state, going_on), len(self._queries))
        if number == len(self._queries):
            if number >= MAX_QUERIES:
                raise LimitError(f"its parser needs more than {MAX_QUERIES} queries")
            self._queries.append((state, going_on))
            self._next.append({})
        return number

    def _going_on(self, state: int, asked: Exits) -> Exits | None:
        """The exits under way below `state`; None if something accepts before one is needed."""
        exits, gotos = self._exits, self._goto[state]
        going_on: dict[int, int] = {}
        seen: dict[int, int] = {}
        agenda = list(asked)
        for head, columns in agenda:  # grows while it is read
            look()
            if head >= exits.n_symbols:
                going_on[head] = going_on.get(head, 0) | columns
                continue
            new = columns & exits.entered[gotos[head]] & ~seen.get(gotos[head], 0) if gotos[head] >= 0 else 0
            if not new:
                continue
            seen[gotos[head]] = seen.get(gotos[head], 0) | new
            found = list(exits.at(gotos[head], new))
            if any(head == ACCEPTING for head, _ in found):
                return None
            agenda += exits.popped(found)
        return frozenset(going_on.items())

    def _find_undecided(self) -> frozenset[int]:
        """The queries that some stack fails.

        These are the queries that reach the bottom or have no exits under way, and all queries that
        lead to them.
        """
        before: dict[int, list[int]] = {}
        for query, after in enumerate(self._next):
            for one in set(after.values()):
                before.setdefault(one, []).append(query)
        failed = [q for q, (state, going_on) in enumerate(self._queries) if not going_on or not self._below[state]]
        return frozenset(reachable(failed, lambda query: before.get(query, ())))


class _Exits:
    """The exits of nodes. A node is a state on top, before any terminal or before a certain one.

    Before a terminal, only a state that shifts it or that begins an empty rule there has a node: if
    it reduces by another rule, that is its exit.

    of : for each node its exits, head -> columns; ACCEPTING is a head if it can accept without.
    ready : for each state its node before any terminal, -1 for states that nothing leads to.
    entered : for each state the columns before which something leads to it.

    PERF: most calls go to cells that reduce. One by one, these took 9 of 10 steps.
    """

    def __init__(self, tables: LrTables) -> None:
        self.tables = tables
        self.goto: list[list[int]] = tables.goto.tolist()
        self.n_symbols = tables.n_nonterminals
        self.of: list[dict[int, int]] = []
        self.ready = [-1] * tables.n_states
        self.entered = [0] * tables.n_states
        self._node: dict[tuple[int, int], int] = {}
        """(state, column) -> its node."""
        self._cells = [self._cells_of(row) for row in tables.action.tolist()]
        self._state: list[int] = []
        self._copies: list[list[int]] = []
        """For each node the nodes that have all of its exits, at the same height."""
        self._callers: list[list[int]] = []
        """For each node the nodes that come to it by pushing its state onto theirs."""
        self._called: list[dict[int, int]] = []
        """For each node: state pushed onto its own -> before which columns."""
        self._agenda: deque[tuple[int, int, int]] = deque()
        self._entered: list[tuple[int, int, int]] = []
        """Nodes whose actions are to be followed. INVARIANT: no call follows them, however deep."""
        self._returns: list[tuple[int, int, int]] = []
        self._work = 0
        self._enter_ready(0)
        while self._entered or self._returns or self._agenda:
            look()
            if self._entered:
                self._follow(*self._entered.pop())
            elif self._returns:
                self._return(*self._returns.pop())
            else:
                node, head, columns = self._agenda.popleft()
                for copy in self._copies[node]:
                    self._add(copy, head, columns)
                self._returns += [(caller, head, columns) for caller in self._callers[node]]

    def popped(self, exits: Iterable[tuple[int, int]]) -> Exits:
        """Exits, seen from the state below."""
        return frozenset([(head - self.n_symbols, columns) for head, columns in exits])

    def at(self, state: int, columns: int) -> Iterator[tuple[int, int]]:
        """The exits of a state before some of the columns that lead to it."""
        reduced, others = self._cells[state]
        yield from ((head, columns & before) for head, before in reduced if columns & before)
        for column in bits(columns & others):
            yield from self.of[self._node[state, column]].items()

    def _cells_of(self, row: list[int]) -> tuple[list[tuple[int, int]], int]:
        """The exits of a state's cells, and the columns whose cells need a node to know theirs."""
        exits: dict[int, int] = {}
        others = 0
        for column, action in enumerate(row):
            rule = -action - 1
            if action < 0 and self.tables.rule_length[rule]:
                head = int(self.tables.rule_length[rule]) * self.n_symbols + int(self.tables.rule_lhs[rule])
                exits[head] = exits.get(head, 0) | 1 << column
            elif action == ACCEPT:
                exits[ACCEPTING] = 1 << column
            elif action:
                others |= 1 << column
        return list(exits.items()), others

    def _new(self, state: int) -> int:
        self.of.append({})
        self._state.append(state)
        self._copies.append([])
        self._callers.append([])
        self._called.append({})
        return len(self.of) - 1

    def _enter_ready(self, state: int) -> int:
        """The node of a state before any terminal, new or known."""
        if self.ready[state] < 0:
            node = self.ready[state] = self._new(state)
            self.entered[state] = -1
            for column in bits(self._cells[state][1]):
                self._copies[self._enter(state, column)].append(node)
            for head, columns in self.at(state, -1):
                self._add(node, head, columns)
        return self.ready[state]

    def _enter(self, state: int, column: int) -> int:
        """The node of a state before a terminal, new or known."""
        node = self._node.get((state, column), -1)
        if node < 0:
            node = self._node[state, column] = self._new(state)
            self._entered.append((node, state, column))
        return node

    def _follow(self, node: int, state: int, column: int) -> None:
        """Follow the action of a node: a shift, or a reduction by an empty rule."""
        action = int(self.tables.action[state, column])
        if action > 0:
            self._call(self._enter_ready(action - 1), node)
        else:
            self._return(node, self.n_symbols + int(self.tables.rule_lhs[-action - 1]), 1 << column)

    def _call(self, node: int, caller: int) -> None:
        """Notes that `caller` comes to `node` by pushing a state onto its own."""
        self._count()
        self._callers[node].append(caller)
        self._returns += [(caller, head, columns) for head, columns in self.of[node].items()]

    def _return(self, caller: int, head: int, columns: int) -> None:
        """Passes an exit to the caller of what has it."""
        if head == ACCEPTING or head >= 2 * self.n_symbols:
            self._add(caller, max(ACCEPTING, head - self.n_symbols), columns)
            return
        called, pushed = self._called[caller], self.goto[self._state[caller]][head - self.n_symbols]
        new = columns & ~called.get(pushed, 0)
        if pushed >= 0 and new:
            self._count()
            called[pushed] = called.get(pushed, 0) | new
            self.entered[pushed] |= new
            exits, others = self._cells[pushed]
            self._returns += [(caller, head, new & before) for head, before in exits if new & before]
            for column in bits(new & others):
                self._call(self._enter(pushed, column), caller)

    def _add(self, node: int, head: int, columns: int) -> None:
        """Adds exits to a node."""
        known = self.of[node].get(head, 0)
        if new := columns & ~known:
            self._count()
            self.of[node][head] = known | new
            self._agenda.append((node, head, new))

    def _count(self) -> None:
        self._work += 1
        if self._work > MAX_EXITS:
            raise LimitError(f"its parser has more than {MAX_EXITS} exits from its states")
