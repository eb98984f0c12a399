"""A parser that knows only the upper cells of its stack: what does it say of a continuation?

A *continuation* is symbols to read (columns, or `n_columns` + m for mode m), and then a set of
columns of which one comes next, or -1 for whatever comes; by number. A *configuration* is what a
parser waits for that has read all cells it knows of: how many more cells to discard, the
nonterminal to push then, and what is left of its continuation. Several continuations, conflicts and
lookahead sets give several of them at once: a *configuration set*, by number. `ACCEPTED` and
`REFUSED` are those that are decided.

This is proofs/partial_stacks.v, written down once more, in plain Python, for `verify` only: it
shares no code with the builder of the automaton.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.maskstore.verify.trusted import ACCEPTS, Lexer, Parser

REFUSED, ACCEPTED = 0, 1
"""The numbers of the configuration sets that refuse, or accept, every stack."""

WHATEVER = -1
"""The set of columns of a continuation that asks for nothing more."""

MOST_STEPS = 1 << 18
"""Steps of a parser over the cells it knows and one continuation, after which it is given up."""

Ints = npt.NDArray[np.int64]
MOST_LOOKED_AT = 200
"""Most symbols of a continuation that is looked at where only the top of a stack is known."""

Continuation = int
"""The number of a continuation (`Configurations.continuation`)."""
Configuration = tuple[int, int, Continuation]
"""Cells to discard, a nonterminal to push onto the next one, and what is left to read."""
Push = tuple[int, Continuation]
"""A nonterminal to push onto some state, and what is left to read then."""
END = -1
"""Instead of a symbol: the continuation has none, and its rest is a set or WHATEVER."""


class Configurations:
    """Configuration sets by number, and what each says of one more cell.

    sets : the lookahead sets by number, as bits; more can be appended.
    """

    def __init__(self, parser: Parser, lexer: Lexer) -> None:
        self.parser = parser
        self.mode_of = lexer.mode_of
        self.sets = list(lexer.sets)
        self._symbol: list[int] = []
        self._rest: list[int] = []
        self._length: list[int] = []
        self._continuation: dict[tuple[int, int], Continuation] = {}
        self.nothing = self._continued(END, WHATEVER)
        self._members: dict[int, list[int]] = {}
        self._set: list[frozenset[Configuration]] = [frozenset(), frozenset()]
        self._number: dict[frozenset[Configuration], int] = {frozenset(): REFUSED}
        self._settled: dict[tuple[int, Continuation], int] = {}
        self._pushed_known: dict[tuple[int, int, Continuation], int] = {}
        self._first: dict[frozenset[Continuation], Ints] = {}
        self._first_known: dict[Continuation, Ints] = {}
        self._taking_known: dict[int, list[int]] = {}
        self._may_known: dict[tuple[int, Continuation], bool] = {}
        self._after: dict[int, int] = {}
        self._raw: dict[int, int] = {}
        self._parts: dict[int, tuple[int, ...]] = {}
        self._taken: dict[Push, set[int]] = defaultdict(set)
        self._not_taken: dict[Push, set[int]] = defaultdict(set)
        self._tops: dict[tuple[int, int], frozenset[int]] = {}
        self._below: dict[tuple[int, int], frozenset[int]] = {}

    def __len__(self) -> int:
        return len(self._set)

    def continuation(self, symbols: Sequence[int], ahead: int) -> Continuation:
        """The number of a continuation. ahead : the number of a set, or WHATEVER."""
        found = self._continued(END, ahead)
        for symbol in reversed(symbols):
            found = self._continued(symbol, found)
        return found

    def _continued(self, symbol: int, rest: int) -> Continuation:
        number = self._continuation.setdefault((symbol, rest), len(self._symbol))
        if number == len(self._symbol):
            self._symbol.append(symbol)
            self._rest.append(rest)
            self._length.append(0 if symbol == END else self._length[rest] + 1)
        return number

    def first(self, continuations: frozenset[Continuation]) -> Ints:
        """The sets after the cell on top, if one of some continuations must be accepted.

        Returns (n_states,) int64, by the state on top.
        """
        found = self._first.get(continuations)
        if found is None:
            rows = [self._first_of(each) for each in continuations]
            found = rows[0] if len(rows) == 1 else np.max(rows, axis=0)
            if len(rows) > 1:
                for top in np.flatnonzero((np.array(rows) != REFUSED).sum(axis=0) > 1).tolist():
                    found[top] = self._union({int(row[top]) for row in rows})
            self._first[continuations] = found
        return found

    def _first_of(self, continuation: Continuation) -> Ints:
        """`first` of one continuation."""
        found = self._first_known.get(continuation)
        if found is None:
            found = self._first_known[continuation] = np.full(self.parser.n_states, REFUSED, np.int64)
            for top in self._taking(continuation):
                if not self._may_read(top, continuation):
                    continue
                found[top] = self._alive(self._settle(top, continuation), top)
        return found

    def _may_read(self, top: int, continuation: Continuation) -> bool:
        """Whether a continuation may be read where only the top is known. False is a proof.

        PERF: this is what refuses most of them, and needs no search of stacks.
        """
        key = top, continuation
        found = self._may_known.get(key)
        if found is None:
            symbol, rest = self._symbol[continuation], self._rest[continuation]
            if symbol in (END, self.parser.n_columns - 1) or self._length[continuation] > MOST_LOOKED_AT:
                found = True
            elif symbol >= self.parser.n_columns:
                found = self.mode_of[top] == symbol - self.parser.n_columns and self._may_read(top, rest)
            else:
                found = any(self._may_read(after, rest) for after in self.tops_after(top, symbol))
            self._may_known[key] = found
        return found

    def _taking(self, continuation: Continuation) -> list[int]:
        """The states that take the first symbol of a continuation, whatever comes of it."""
        symbol = self._symbol[continuation]
        if symbol == END:
            return list(range(self.parser.n_states))
        if symbol not in self._taking_known:
            n = self.parser.n_columns
            self._taking_known[symbol] = [
                top
                for top in range(self.parser.n_states)
                if (self.mode_of[top] == symbol - n if symbol >= n else self.parser.acts[top * n + symbol])
            ]
        return self._taking_known[symbol]

    def after(self, number: int, cell: int) -> int:
        """The set after one more cell, which lies below those read so far."""
        key = number * self.parser.n_states + cell
        found = self._after.get(key)
        if found is None:
            parts = self.parts(number)
            found = self._after[key] = (
                self._alive(self._one(number, cell), cell)
                if parts == (number,)
                else self._union(self.after(each, cell) for each in parts)
            )
        return found

    def _alive(self, number: int, cell: int) -> int:
        """A set without those configurations that refuse every stack below a cell."""
        if number in (REFUSED, ACCEPTED):
            return number
        parts = self.parts(number)
        alive = [each for each in parts if self.accepts_some(each, cell)]
        return number if len(alive) == len(parts) else self._union(alive)

    def accepts_some(self, number: int, cell: int) -> bool:
        """Whether a set of one configuration accepts some stack below a cell."""
        ((discard, nonterminal, left),) = self._set[number]
        pushes = nonterminal, left
        bases = self.deep_below(cell, discard + 1)
        if bases & self._taken[pushes]:
            return True
        # each push, the one that leads to it
        before: dict[tuple[Push, int], tuple[Push, int] | None] = {
            (pushes, base): None for base in bases - self._not_taken[pushes]
        }
        seen: dict[Push, set[int]] = defaultdict(set)
        seen[pushes] |= bases
        agenda = list(before)
        while agenda:
            way: tuple[Push, int] | None = agenda.pop()
            assert way is not None
            (nonterminal, left), base = way
            result = self._pushed(base, nonterminal, left)
            if result != ACCEPTED:
                for discard, nonterminal, left in self._set[result]:
                    pushes = nonterminal, left
                    deeper = self.deep_below(base, discard + 1)
                    if deeper & self._taken[pushes]:
                        break
                    new = deeper - seen[pushes] - self._not_taken[pushes]
                    seen[pushes] |= new
                    for one in new:
                        before[pushes, one] = way
                        agenda.append((pushes, one))
                else:
                    continue
            while way is not None:
                self._taken[way[0]].add(way[1])
                way = before[way]
            return True
        for pushes, base in before:
            self._not_taken[pushes].add(base)
        return False

    def parts(self, number: int) -> tuple[int, ...]:
        """The sets of one configuration each of which a set is made."""
        found = self._parts.get(number)
        if found is None:
            members = self._set[number]
            found = self._parts[number] = (
                (number,) if len(members) == 1 else tuple(self._numbered(frozenset([each])) for each in members)
            )
        return found

    def _one(self, number: int, cell: int) -> int:
        """What a set of one configuration becomes with one more cell, the dead included."""
        key = number * self.parser.n_states + cell
        found = self._raw.get(key)
        if found is None:
            ((discard, nonterminal, continuation),) = self._set[number]
            if discard:
                found = self._numbered(frozenset([(discard - 1, nonterminal, continuation)]))
            else:
                found = self._pushed(cell, nonterminal, continuation)
            self._raw[key] = found
        return found

    def _pushed(self, cell: int, nonterminal: int, left: Continuation) -> int:
        """What a parser becomes that pushes a nonterminal onto the only cell that it knows."""
        key = cell, nonterminal, left
        found = self._pushed_known.get(key)
        if found is None:
            found = self._pushed_known[key] = self._push(nonterminal, left, self.parser.goto[cell])
        return found

    def _push(self, nonterminal: int, left: Continuation, goto: list[int]) -> int:
        """`_pushed`, worked out. goto : the row of the cell."""
        begin = nonterminal, left
        seen = {begin}
        agenda = [begin]
        waiting: set[Configuration] = set()
        while agenda:
            nonterminal, left = agenda.pop()
            if goto[nonterminal] < 0:
                continue
            result = self._settle(goto[nonterminal], left)
            if result == ACCEPTED:
                return ACCEPTED
            for discard, further, rest in self._set[result]:
                if discard:
                    waiting.add((discard - 1, further, rest))
                elif (further, rest) not in seen:
                    seen.add((further, rest))
                    agenda.append((further, rest))
        return self._numbered(frozenset(waiting))

    def _union(self, numbers: Iterable[int]) -> int:
        found: set[Configuration] = set()
        for number in numbers:
            if number == ACCEPTED:
                return ACCEPTED
            found |= self._set[number]
        return self._numbered(frozenset(found))

    def _numbered(self, configurations: frozenset[Configuration]) -> int:
        number = self._number.setdefault(configurations, len(self._set))
        if number == len(self._set):
            self._set.append(configurations)
        return number

    def _settle(self, cell: int, continuation: Continuation) -> int:
        """Run a parser on the only cell that it knows, as far as it comes."""
        key = cell, continuation
        found = self._settled.get(key)
        if found is None:
            found = self._settled[key] = self._run((cell,), continuation)
        return found

    def _run(self, known: tuple[int, ...], continuation: Continuation) -> int:
        parser = self.parser
        begin = known, continuation
        seen = {begin}
        agenda = [begin]
        waiting: set[Configuration] = set()
        steps = 0
        while agenda:
            steps += 1
            if steps > MOST_STEPS:
                raise LimitError("a parser takes too many steps on the few cells that it knows: nothing was decided")
            cells, left = agenda.pop()
            symbol, rest = self._symbol[left], self._rest[left]
            if symbol == END:
                number = self._ahead(cells, rest)
                if number == ACCEPTED:
                    return ACCEPTED
                waiting |= self._set[number]
                continue
            if symbol >= parser.n_columns:
                if self.mode_of[cells[-1]] == symbol - parser.n_columns:
                    agenda.append((cells, rest))
                continue
            for action in parser.acts[cells[-1] * parser.n_columns + symbol]:
                if action == ACCEPTS:
                    if rest == self.nothing:
                        return ACCEPTED
                    continue
                if action > 0:
                    new = (*cells, action - 1), rest
                else:
                    kept = len(cells) - parser.length[-action - 1]
                    nonterminal = parser.lhs[-action - 1]
                    if kept <= 0:
                        waiting.add((-kept, nonterminal, left))
                        continue
                    pushed = parser.goto[cells[kept - 1]][nonterminal]
                    if pushed < 0:
                        continue
                    new = (*cells[:kept], pushed), left
                if new not in seen:
                    seen.add(new)
                    agenda.append(new)
        return self._numbered(frozenset(waiting))

    def _ahead(self, cells: tuple[int, ...], ahead: int) -> int:
        """`_run` where one column of a set comes next, or whatever comes."""
        if ahead == WHATEVER or self.sets[ahead] & self.parser.shifts[cells[-1]]:
            return ACCEPTED
        each = [self._continued(column, self.nothing) for column in self._columns(ahead)]
        if len(cells) == 1:
            return self._union(self._settle(cells[0], one) for one in each)
        return self._union(self._run(cells, one) for one in each)

    def _columns(self, ahead: int) -> list[int]:
        """The members of a lookahead set."""
        if ahead not in self._members:
            bits = self.sets[ahead]
            self._members[ahead] = [column for column in range(self.parser.n_columns) if bits >> column & 1]
        return self._members[ahead]

    def tops_after(self, top: int, column: int) -> frozenset[int]:
        """The states that can be on top after a column: these at most."""
        key = top, column
        if key not in self._tops:
            parser = self.parser
            found, seen, agenda = set(), {top}, [top]
            while agenda:
                state = agenda.pop()
                for action in parser.acts[state * parser.n_columns + column]:
                    if action == ACCEPTS:
                        continue
                    if action > 0:
                        found.add(action - 1)
                        continue
                    for under in self.deep_below(state, parser.length[-action - 1]):
                        pushed = parser.goto[under][parser.lhs[-action - 1]]
                        if pushed >= 0 and pushed not in seen:
                            seen.add(pushed)
                            agenda.append(pushed)
            self._tops[key] = frozenset(found)
        return self._tops[key]

    def deep_below(self, state: int, depth: int) -> frozenset[int]:
        """The states that can lie some cells below a state."""
        known = self._below.get((state, depth))
        if known is not None:
            return known
        found = frozenset([state])
        for cells in range(1, depth + 1):
            found = frozenset(under for above in found for under in self.parser.below[above])
            self._below[state, cells] = found
        return found
