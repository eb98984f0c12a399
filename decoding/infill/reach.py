"""Which stacks can still come to the end of a text with given pieces in it, and at what cost.

T(n, c) is what is known of a parser that stands at node n of the lexical graph, with LR state c on
top of a stack of which nothing else is known: a set of *targets*. A target (n', A, j) says: c is
gone; discard j more cells, push nonterminal A, go on at n'. DONE says: the text is accepted, if the
start of the stack comes next.

    shift   n feeds t, then n2; c shifts t to s     for y in T(n2, s):          over(y, c)
    reduce  A : of k >= 1 symbols                   (n, A, k - 1)
    reduce  A : of none                             for y in T(n, goto(c, A)):  over(y, c)
    end     c accepts                               DONE

    over((n, A, j), c) = (n, A, j - 1)                                    if j > 0
                       = over(y, c) for y in T(n, goto(c, A))             if j = 0

Under a layout each target has a guard (`blocks`) on the stack that is left. `over` hands it down,
and joins it with that of y. Some nodes stand for others under a guard:

    skip    n may be n2 under guard g               for y in T(n2, c):          y, under g too

Targets have costs, the least bytes that are free on the way, and are settled in the order of these.
Behind a reduction, a node feeds only the columns on which the parser reduces so.

Source: A. Bouajjani, J. Esparza, O. Maler, Reachability analysis of pushdown automata (1997): pre*,
made as it is asked for; Knuth, "A generalization of Dijkstra's algorithm" (1977).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

from maskwright.analysis.errors import LimitError
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending_parser import EndingParser, Frame
from maskwright.decoding.infill.lexical import NOWHERE, Feeds, Graph

MOST_STEPS = 4_000_000
"""BOUND: the targets that are settled for a question, and kept; some 10 us and 300 bytes each."""

Target: TypeAlias = tuple[int, int, int, int]
"""A node, a nonterminal, how many cells to discard before it is pushed, and the stack's guard."""
DONE: Target = (-1, -1, 1, 0)
"""The text is accepted, if the cell below is the start of the stack."""
NOTHING: Target = (-1, -1, 0, 0)
"""The text is accepted."""
_EXPAND, _INNER, _OFFER = range(3)
"""What is on the agenda: a new entry; a target on the cell of an entry; one that leaves it.

INVARIANT: a new entry costs nothing, so it comes before all that costs something. What a target
costs is never less than what it is made of. So the first offer of a target is the least.
"""


class _Entry:
    """The targets of a node and a cell, or those of a target once it has read a cell.

    cell : what `over` reads. costs : of each target that is settled. offered, inner : the least
    offers so far, also of those that stand on the own cell. heard : what the entry has asked for.
    listeners : who hears of these targets.
    """

    __slots__ = ("cell", "costs", "heard", "inner", "listeners", "offered")

    def __init__(self, cell: int) -> None:
        self.cell = cell
        self.costs: dict[Target, int] = {}
        self.heard: dict[tuple[int, int, int, bool], int] = {}
        self.offered: dict[Target, int] = {}
        self.inner: dict[Target, int] = {}
        self.listeners: list[_Listener] = []


_Listener: TypeAlias = tuple[_Entry, int, int, bool]
"""An entry, what targets cost there besides, a guard that is joined with theirs, and whether they
are of the same cell; otherwise of one above, so that `over` hands them on."""


@dataclass(slots=True)
class _Asked:
    """Whether a stack does what a target says: as far as it is known.

    steps : what is left to ask of the stack below, cheapest first. step : what is being asked.
    """

    target: Target
    frame: Frame
    steps: Iterator[tuple[Target, int]]
    least: int = COSTLY
    step: tuple[Target, int] | None = None


class Reach:
    """Which stacks come to the end of a lexical graph.

    n_steps : the targets that are settled and kept.

    INVARIANT: but for `_is_asking` nothing is half made, so all that was settled is final.
    """

    def __init__(self, parser: EndingParser, graph: Graph) -> None:
        self._parser, self.graph = parser, graph
        self._state, self._guards = graph.cells.state, graph.guards
        self._may_skip = 1 << parser.n_columns
        self._wholes: dict[tuple[int, int], int] = {}
        self._number: dict[tuple[int, int], int] = {}
        self._feeds: list[tuple[int, Feeds, int]] = []
        self._known: dict[tuple[Target, int], int] = {}
        self._drop()

    def forget(self) -> None:
        """Forget what is known of single stacks."""
        self._known.clear()

    def _drop(self) -> None:
        """Forget all targets."""
        self._entries: dict[tuple[int, int], _Entry] = {}
        self._read: dict[tuple[Target, int], _Entry] = {}
        self._agenda: list[tuple[int, int, int, Target, _Entry]] = []
        self.n_steps = self._n_pushed = 0
        self._is_asking = False

    # -- tabulation

    def _masked(self, node: int, columns: int) -> int:
        """A node that feeds only some columns."""
        key = node, columns
        found = self._number.get(key)
        if found is None:
            feeds = self.graph.feeds[node]
            assert feeds is not None
            found = len(self._number)
            self._feeds[found:] = [(node, feeds, columns)]
            self._number[key] = found
        return found

    def _entry(self, node: int, cell: int) -> _Entry:
        """The entry of a node that may feed only some columns."""
        found = self._entries.get((node, cell))
        if found is None:
            found = self._entries[node, cell] = _Entry(cell)
            self._push(0, _EXPAND, (node, 0, 0, 0), found)
        return found

    def _expand(self, entry: _Entry, number: int) -> None:
        parser, cell = self._parser, self._state[entry.cell]
        node, feeds, columns = self._feeds[number]
        if columns & self._may_skip:
            columns ^= self._may_skip
            for skip in [each for each in feeds if each < 0]:
                for guard in self._guards.below(-1 - skip, entry.cell):
                    for then, cost in feeds[skip]:
                        self._ask(entry, self._whole(then, entry.cell), entry.cell, cost, guard, True)
        default = parser.default[cell] if columns else NOWHERE
        if default >= 0:
            self._reduce(entry, node, columns, default)
            return
        for column, target in parser.shifts[cell]:
            if columns >> column & 1:
                for then, cost in feeds[column]:
                    above = target
                    if then in self.graph.block_of:
                        above = self.graph.cells.cell(target, self.graph.block_of[then])
                    self._ask(entry, self._whole(then, above), above, cost, 0, False)
        if parser.accepts[cell] and columns >> self.graph.end_column & 1:
            for _, cost in feeds[self.graph.end_column]:
                self._offer(entry, DONE, cost)
        for rule, some in parser.reduces[cell]:
            if columns & some:
                self._reduce(entry, node, columns & some, rule)

    def _reduce(self, entry: _Entry, node: int, columns: int, rule: int) -> None:
        masked, length, lhs = self._masked(node, columns), self._parser.rule_length[rule], self._parser.rule_lhs[rule]
        if length:
            self._offer(entry, (masked, lhs, length - 1, 0), 0)
        else:
            self._goto(entry, masked, lhs, 0, 0)

    def _goto(self, entry: _Entry, masked: int, lhs: int, cost: int, guard: int) -> None:
        target = self._parser.goto[self._state[entry.cell]][lhs]
        if target >= 0:
            self._ask(entry, masked, target, cost, guard, False)

    def _whole(self, node: int, cell: int) -> int:
        """A node of the graph with all that it feeds; NOWHERE if that is nothing."""
        found = self._wholes.get((node, cell))
        if found is None:
            there = self.graph.resolve(node, cell)
            feeds = None if there == NOWHERE else self.graph.feeds[there]
            columns = sum(1 << column for column in feeds or () if column >= 0)
            columns |= self._may_skip if feeds and min(feeds) < 0 else 0
            found = self._wholes[node, cell] = self._masked(there, columns) if feeds else NOWHERE
        return found

    def _ask(self, entry: _Entry, masked: int, cell: int, cost: int, guard: int, is_same: bool) -> None:
        """Have an entry hear of the targets of a node and a cell (`_Listener`)."""
        key = masked, cell, guard, is_same
        known = entry.heard.get(key)
        if masked == NOWHERE or (known is not None and known <= cost):
            return
        entry.heard[key] = cost
        asked = self._entry(masked, cell)
        listener = entry, cost, guard, is_same
        asked.listeners.append(listener)
        for target, more in asked.costs.items():
            self._hear(listener, target, more)

    def _hear(self, listener: _Listener, target: Target, more: int) -> None:
        entry, cost, guard, is_same = listener
        if guard:
            guard = self._guards.both(guard, target[3])
            if guard < 0:
                return
            target = (*target[:3], guard)
        if is_same:
            self._offer(entry, target, cost + more)
        else:
            self._over(entry, target, cost + more)

    def _over(self, entry: _Entry, target: Target, cost: int) -> None:
        """Hand a target on to an entry, whose cell is below the one that is gone."""
        node, lhs, pops, guard = target
        if pops:
            below = self._guards.below(guard, entry.cell) if guard else (0,)
            if node >= 0:
                for each in below:
                    self._offer(entry, (node, lhs, pops - 1, each), cost)
            elif entry.cell == 0 and below:  # the start of the stack
                self._offer(entry, NOTHING, cost)
        elif node >= 0 and cost < entry.inner.get(target, COSTLY):
            entry.inner[target] = cost
            self._push(cost, _INNER, target, entry)

    def _offer(self, entry: _Entry, target: Target, cost: int) -> None:
        if cost < entry.offered.get(target, COSTLY):
            entry.offered[target] = cost
            self._push(cost, _OFFER, target, entry)

    def _push(self, cost: int, kind: int, target: Target, entry: _Entry) -> None:
        self._n_pushed += 1
        heappush(self._agenda, (cost, self._n_pushed, kind, target, entry))

    def _saturate(self) -> None:
        """Settle all that is offered. Raises: LimitError after `MOST_STEPS`."""
        agenda = self._agenda
        while agenda:
            cost, _, kind, target, entry = heappop(agenda)
            if kind == _EXPAND:
                self._expand(entry, target[0])
            elif kind == _INNER:
                if entry.inner[target] == cost:  # otherwise a lesser one came before
                    self._goto(entry, target[0], target[1], cost, target[3])
            elif target not in entry.costs:
                self.n_steps += 1
                if self.n_steps > MOST_STEPS:
                    raise LimitError(
                        f"whether the suffix can follow takes more than {MOST_STEPS:,} steps to find out: give a shorter suffix, or "
                        "ask only where the middle may end (exact=False)"
                    )
                entry.costs[target] = cost
                for listener in entry.listeners:
                    self._hear(listener, target, cost)

    # -- asking

    def least(self, node: int, frames: tuple[Frame, ...]) -> int:
        """The least free bytes with which one of some stacks comes to the end; COSTLY if none does.

        node : of the graph. Cost: O(1) for each frame that was not asked before, after the first.

        Raises: LimitError if this question alone takes more than `MOST_STEPS`.
        """
        if self._is_asking:  # the last question was interrupted, or goes on where the process forked
            self._drop()
        is_first, self._is_asking = not self._entries, True
        try:
            found = self._least(node, frames)
        except LimitError:
            self._drop()
            if is_first:
                raise
            found = self.least(node, frames)
        self._is_asking = False
        return found

    def _least(self, node: int, frames: tuple[Frame, ...]) -> int:
        found = COSTLY
        for frame in frames:
            masked = self._whole(node, frame.state)
            if masked == NOWHERE:
                continue
            entry = self._entry(masked, frame.state)
            self._saturate()
            for target, cost in entry.costs.items():
                if target == NOTHING:
                    found = min(found, cost)
                elif frame.below is not None and cost < found:
                    found = min(found, cost + self._satisfies(target, frame.below))
        return found

    def _satisfies(self, target: Target, frame: Frame) -> int:
        """What it costs that a stack does what a target says; COSTLY if it cannot."""
        known = self._known
        found = known.get((target, frame.number))
        agenda = [] if found is not None else [self._begin(target, frame)]
        while agenda:
            asked = agenda[-1]
            while (step := asked.step or next(asked.steps, None)) is not None and step[1] < asked.least:
                after, cost = asked.step = step
                if after == NOTHING:
                    asked.least = cost
                elif asked.frame.below is not None:
                    rest = known.get((after, asked.frame.below.number))
                    if rest is None:
                        agenda.append(self._begin(after, asked.frame.below))
                        break
                    asked.least = min(asked.least, cost + rest)
                asked.step = None
            else:
                agenda.pop()
                found = known[asked.target, asked.frame.number] = asked.least
        assert found is not None
        return found

    def _begin(self, target: Target, frame: Frame) -> _Asked:
        """Let a target read the cell on top, and see what it asks of the stack below."""
        entry = self._read.get((target, frame.state))
        if entry is None:
            entry = self._read[target, frame.state] = _Entry(frame.state)
            self._over(entry, target, 0)
            self._saturate()
        return _Asked(target, frame, iter(entry.costs.items()))
