"""What a parser does with one symbol while it knows only some upper cells of its stack.

In: the LR tables. Out: where the symbol can be shifted, and what the parser waits for before. It
shares no code with the builder of the automaton.
"""

from __future__ import annotations

from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.maskstore.verify.trusted import ACCEPTS, Parser

MOST_STEPS = 1 << 18
"""Stacks of known cells that a parser may meet with one symbol, after which it is given up."""

Code = int
"""Cells to discard and the nonterminal to push then, as discard * n_nonterminals + nonterminal."""
Cells = tuple[int, ...]
"""States that a parser has pushed, the lowest first."""


class Way(NamedTuple):
    """What a parser does with a symbol on known cells: all its ways.

    codes : what it waits for. shifts : the cells that it has pushed, where it has shifted the
    symbol. accepts : whether the symbol ends the text.
    """

    codes: frozenset[Code]
    shifts: frozenset[Cells]
    accepts: bool


class Shifts:
    """All places at which some symbol is shifted, as bits, and which configurations come there.

    place : the bit of a cell and the cells pushed onto it; None for the end of the text.
    reach : for a cell and a code that waits below it, the bits of all places it can come to.
    """

    def __init__(self) -> None:
        self.number: dict[tuple[int, Cells] | None, int] = {}
        self.place: list[tuple[int, Cells] | None] = []
        self.reach: dict[tuple[int, Code], int] = {}

    def bit(self, place: tuple[int, Cells] | None) -> int:
        """The bit of a place."""
        number = self.number.setdefault(place, len(self.place))
        if number == len(self.place):
            self.place.append(place)
        return 1 << number


class Ways:
    """What a parser does with one symbol, remembered.

    n_nonterminals : the factor in codes, at least 1.
    shifts : for each symbol the places of its shifts.
    """

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.n_nonterminals = max(1, len(parser.goto[0]))
        self.shifts = [Shifts() for _ in range(parser.n_columns)]
        # the keys of `before_shift`, `pushes` and `tops_after` are their arguments as one number
        self._before: dict[int, Way] = {}
        self._pushed: dict[int, Way] = {}
        self._after: dict[int, int] = {}
        self._same: dict[Way, Way] = {}

    def before_shift(self, cell: int, symbol: int) -> Way:
        """Run a parser on the only cell that it knows, until it shifts a symbol."""
        key = cell * self.parser.n_columns + symbol
        found = self._before.get(key)
        if found is None:
            found = self._before[key] = self._kept(self._run(cell, symbol))
        return found

    def _kept(self, way: Way) -> Way:
        """The way, or the one that equals it and was found before.

        PERF: of 560,000 ways of the library's `sql` fewer than 8,000 differ.
        """
        return self._same.setdefault(way, way)

    def _run(self, cell: int, symbol: int) -> Way:
        parser = self.parser
        seen: set[Cells] = {(cell,)}
        agenda: list[Cells] = [(cell,)]
        codes: set[Code] = set()
        shifts: set[Cells] = set()
        accepts = False
        while agenda:
            if len(seen) > MOST_STEPS:
                raise LimitError("a parser takes too many steps on the few cells that it knows: nothing was decided")
            cells = agenda.pop()
            for action in parser.acts[cells[-1] * parser.n_columns + symbol]:
                if action == ACCEPTS:
                    accepts = True
                    continue
                if action > 0:
                    shifts.add((*cells, action - 1))
                    continue
                kept = len(cells) - parser.length[-action - 1]
                nonterminal = parser.lhs[-action - 1]
                if kept <= 0:
                    codes.add(-kept * self.n_nonterminals + nonterminal)
                    continue
                pushed = parser.goto[cells[kept - 1]][nonterminal]
                new = (*cells[:kept], pushed)
                if pushed >= 0 and new not in seen:
                    seen.add(new)
                    agenda.append(new)
        return Way(frozenset(codes), frozenset(shifts), accepts)

    def pushes(self, cell: int, nonterminal: int, symbol: int) -> Way:
        """What a parser does that pushes a nonterminal onto the only cell that it knows.

        Codes wait below the cell; it is not among the cells of a shift.
        """
        key = (cell * self.n_nonterminals + nonterminal) * self.parser.n_columns + symbol
        found = self._pushed.get(key)
        if found is None:
            goto, n = self.parser.goto[cell], self.n_nonterminals
            seen, agenda = {nonterminal}, [nonterminal]
            codes: set[Code] = set()
            shifts: set[Cells] = set()
            accepts = False
            while agenda:
                state = goto[agenda.pop()]
                if state < 0:
                    continue
                way = self.before_shift(state, symbol)
                shifts |= way.shifts
                accepts |= way.accepts
                for code in way.codes:
                    if code >= n:
                        codes.add(code - n)
                    elif code not in seen:
                        seen.add(code)
                        agenda.append(code)
            found = self._pushed[key] = self._kept(Way(frozenset(codes), frozenset(shifts), accepts))
        return found

    def reach(self, cell: int, code: Code, symbol: int) -> int:
        """Where the symbol can be shifted, on all stacks, if a code waits below a cell: as bits.

        Least fixed point over all codes that this one can come to.
        """
        known = self.shifts[symbol].reach
        if (cell, code) in known:
            return known[cell, code]
        order: list[tuple[int, Code]] = []
        nexts: dict[tuple[int, Code], set[tuple[int, Code]]] = {}
        own: dict[tuple[int, Code], int] = {}
        agenda = [(cell, code)]
        while agenda:
            node = agenda.pop()
            if node in nexts or node in known:
                continue
            nexts[node], own[node] = self._steps(node, symbol)
            order.append(node)
            agenda.extend(nexts[node])
        is_changed = True
        while is_changed:
            is_changed = False
            for node in reversed(order):
                bits = own[node]
                for each in nexts[node]:
                    bits |= known[each] if each in known else own[each]
                if bits != own[node]:
                    own[node] = bits
                    is_changed = True
        known.update(own)
        return known[cell, code]

    def _steps(self, node: tuple[int, Code], symbol: int) -> tuple[set[tuple[int, Code]], int]:
        """What a code below a cell can become at once, and the places of the shifts there."""
        cell, code = node
        n, bits = self.n_nonterminals, 0
        found: set[tuple[int, Code]] = set()
        shifts = self.shifts[symbol]
        for under in self.parser.below[cell]:
            if code >= n:
                found.add((under, code - n))
                continue
            way = self.pushes(under, code, symbol)
            found.update((under, each) for each in way.codes)
            for pushed in way.shifts:
                bits |= shifts.bit((under, pushed))
            if way.accepts:
                bits |= shifts.bit(None)
        return found, bits

    def tops_after(self, top: int, column: int) -> int:
        """The states that can be on top after a column, these at most: as bits."""
        key = top * self.parser.n_columns + column
        found = self._after.get(key)
        if found is None:
            parser = self.parser
            found, seen, agenda = 0, {top}, [top]
            while agenda:
                state = agenda.pop()
                for action in parser.acts[state * parser.n_columns + column]:
                    if action == ACCEPTS:
                        continue
                    if action > 0:
                        found |= 1 << action - 1
                        continue
                    for under in parser.deep_below(state, parser.length[-action - 1]):
                        pushed = parser.goto[under][parser.lhs[-action - 1]]
                        if pushed >= 0 and pushed not in seen:
                            seen.add(pushed)
                            agenda.append(pushed)
            self._after[key] = found
        return found
