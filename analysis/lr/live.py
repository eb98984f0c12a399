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
from dataclasses import replace
from functools import cache

import numpy as np

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.encoding import ACCEPT, Alternatives, Array, LrTables, finish_tables

MAX_EXITS = 5_000_000
"""The most exits of states, and of calls between them, that are followed: some 30 s."""
MAX_QUERIES = 200_000
"""The most queries."""
MAX_KINDS = 20_000
"""The most kinds of stacks, and the most pairs of a state and a kind."""

Exit = tuple[int, int, int]
"""n, A, t: n states are popped, then A is pushed before t."""

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
    Cost: O(exits), some us each.
    """

    def __init__(self, tables: LrTables) -> None:
        self.tables = tables
        self._exits = _Exits(tables)
        self._goto: list[list[int]] = tables.goto.tolist()
        self._below = tables.below
        self._queries: list[tuple[int, frozenset[Exit]]] = []
        """By number: the state that is asked, and the exits that are under way below it."""
        self._number: dict[tuple[int, frozenset[Exit]], int] = {}
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
        return self._exits.accepts[self._exits.ready[0]]

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
                below = frozenset((n - 1, a, t) for n, a, t in exits.of[ready])
                for top in self._below[state]:
                    first[top, state] = ANSWERED if exits.accepts[ready] else self._query(top, below)
        for query, (state, going_on) in enumerate(self._queries):  # grows while it is read
            look()
            below = frozenset((n - 1, a, t) for n, a, t in going_on)
            self._next[query] = {one: self._query(one, below) for one in self._below[state]}
        return first

    def _find_query(self, state: int, asked: frozenset[Exit]) -> int:
        """The number of a query: can a stack with `state` on top go on in one of these ways?

        asked : exits that may have come to their end at `state` (n = 0). Returns ANSWERED if the
            stack can go on whatever lies below.
        """
        going_on = self._going_on(state, asked)
        return ANSWERED if going_on is None else self._numbered(state, going_on)

    def _going_on(self, state: int, asked: frozenset[Exit]) -> frozenset[Exit] | None:
        """The exits under way below `state`; None if something accepts before one is needed."""
        going_on: set[Exit] = set()
        seen: set[Exit] = set()
        agenda = list(asked)
        for item in agenda:  # grows while it is read
            look()
            if item[0]:
                going_on.add(item)
                continue
            node = self._exits.node(self._goto[state][item[1]], item[2])
            if node is None:
                continue
            if self._exits.accepts[node]:
                return None
            new = {(n - 1, a, t) for n, a, t in self._exits.of[node]} - seen
            seen |= new
            agenda += new
        return frozenset(going_on)

    def _numbered(self, state: int, going_on: frozenset[Exit]) -> int:
        """The number of a query, new or known."""
        number = self._number.setdefault((state, going_on), len(self._queries))
        if number == len(self._queries):
            if number >= MAX_QUERIES:
                raise LimitError(f"its parser needs more than {MAX_QUERIES} queries")
            self._queries.append((state, going_on))
            self._next.append({})
        return number

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

    of : for each node its exits. accepts : for each node whether it can accept without an exit.
    ready : for each state its node before any terminal, -1 for states that nothing leads to.
    """

    def __init__(self, tables: LrTables) -> None:
        self.tables = tables
        self.goto: list[list[int]] = tables.goto.tolist()
        self.lengths: list[int] = tables.rule_length.tolist()
        self.symbols: list[int] = tables.rule_lhs.tolist()
        self.of: list[set[Exit]] = []
        self.accepts: list[bool] = []
        self.ready = [-1] * tables.n_states
        self._before: dict[tuple[int, int], int] = {}
        self._columns: list[list[int]] = [np.flatnonzero(row).tolist() for row in tables.action]
        self._copies: list[list[int]] = []
        """For each node the nodes that have all of its exits, at the same height."""
        self._callers: list[dict[tuple[int, int], None]] = []
        """For each node the nodes that come to it by pushing its state, and the state below it."""
        self._agenda: deque[tuple[int, Exit | None]] = deque()
        self._entered: list[tuple[int, int, int]] = []
        """Nodes whose actions are to be followed. INVARIANT: no call follows them, however deep."""
        self._returns: list[tuple[int, int, Exit | None]] = []
        self._work = 0
        self._enter_ready(0)
        while self._entered or self._returns or self._agenda:
            look()
            if self._entered:
                self._follow(*self._entered.pop())
            elif self._returns:
                self._return(*self._returns.pop())
            else:
                node, exit_ = self._agenda.popleft()
                for copy in self._copies[node]:
                    self._add(copy, exit_)
                self._returns += [(caller, below, exit_) for caller, below in self._callers[node]]

    def node(self, state: int, column: int) -> int | None:
        """The node of a state before a terminal; None if nothing leads to it."""
        return self._before.get((state, column))

    def _new(self) -> int:
        self.of.append(set())
        self.accepts.append(False)
        self._copies.append([])
        self._callers.append({})
        return len(self.of) - 1

    def _enter_ready(self, state: int) -> int:
        """The node of a state before any terminal, new or known."""
        if self.ready[state] < 0:
            node = self.ready[state] = self._new()
            for column in self._columns[state]:
                before = self._enter(state, column)
                self._copies[before].append(node)
                for exit_ in list(self.of[before]):
                    self._add(node, exit_)
                if self.accepts[before]:
                    self._add(node, None)
        return self.ready[state]

    def _enter(self, state: int, column: int) -> int:
        """The node of a state before a terminal, new or known."""
        known = self._before.get((state, column))
        if known is not None:
            return known
        node = self._before[state, column] = self._new()
        self._entered.append((node, state, column))
        return node

    def _follow(self, node: int, state: int, column: int) -> None:
        """Follow the actions of a node."""
        for action in self.tables.actions(state, column):
            if action == ACCEPT:
                self._add(node, None)
            elif action > 0:
                self._call(self._enter_ready(action - 1), node, state)
            else:
                rule = -action - 1
                self._return(node, state, (self.lengths[rule] + 1, self.symbols[rule], column))

    def _call(self, node: int, caller: int, below: int) -> None:
        """Notes that `caller` pushes a state onto `below` and comes to `node`."""
        key = caller, below
        if key not in self._callers[node]:
            self._count()
            self._callers[node][key] = None
            self._returns += [(caller, below, exit_) for exit_ in self.of[node]]
            if self.accepts[node]:
                self._add(caller, None)

    def _return(self, caller: int, below: int, exit_: Exit | None) -> None:
        """Passes an exit of a node to its caller, whose state `below` is the one below the node's.

        exit_ : None if the node accepts.
        """
        if exit_ is None:
            self._add(caller, None)
            return
        n, symbol, column = exit_
        if n > 1:
            self._add(caller, (n - 1, symbol, column))
        elif self.goto[below][symbol] >= 0:
            self._call(self._enter(self.goto[below][symbol], column), caller, below)

    def _add(self, node: int, exit_: Exit | None) -> None:
        """Adds an exit to a node; None: the node accepts."""
        if exit_ is None:
            if not self.accepts[node]:
                self.accepts[node] = True
                self._agenda.append((node, None))
        elif exit_ not in self.of[node]:
            self._count()
            self.of[node].add(exit_)
            self._agenda.append((node, exit_))

    def _count(self) -> None:
        self._work += 1
        if self._work > MAX_EXITS:
            raise LimitError(f"its parser has more than {MAX_EXITS} exits from its states")
