"""A parser that knows only the upper cells of its stack: what does it say of a continuation?

A *continuation* is symbols to read (columns, or `n_columns` + m for mode m), and then a set of
columns of which one comes next, or -1 for whatever comes; by number. A *configuration* is what a
parser waits for that has read all cells it knows of: how many more cells to discard, the
nonterminal to push then, and what is left of its continuation. Several continuations, conflicts and
lookahead sets give several of them at once: a *configuration set*, by number. `ACCEPTED` and
`REFUSED` are those that are decided.

This is proofs/partial_stacks.v, written down once more for `verify` only: it shares no code with
the builder of the automaton.

PERF: three things are shared, which the proof does not speak of. Until its first symbol is shifted,
only that symbol of a continuation matters: so what a parser does until then is worked out once for
all continuations that begin alike (`Ways`, `_moves`). So is which configurations can come to which
shifts, a least fixed point over finitely many (`Ways.reach`). And continuations that come to the
same set in every state that their first symbol leads to are one (`_alike`), since no cell further
down can tell them apart. `_raw` and `_kept` remember what takes time to work out, and leave out
what is at hand. tests/naive/naive_configurations.py is the plain form.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.verify.trusted import Lexer, Parser
from maskwright.maskstore.verify.ways import Cells, Code, Way, Ways

REFUSED, ACCEPTED = 0, 1
"""The numbers of the configuration sets that refuse, or accept, every stack."""

WHATEVER = -1
"""The set of columns of a continuation that asks for nothing more."""

Ints = npt.NDArray[np.int32]
MOST_LOOKED_AT = 200
"""Most symbols of a continuation that is looked at where only the top of a stack is known."""

MOST_AT_ONCE = 32
"""Most symbols of a continuation that are read by recursion."""

Continuation = int
"""The number of a continuation (`Configurations.continuation`)."""
Codes = tuple[Code, ...]
"""What some configurations wait for whose continuation is the same, ascending."""
END = -1
"""Instead of a symbol: the continuation has none, and its rest is a set or WHATEVER."""


class _Move(NamedTuple):
    """A `Way` with the number of its codes."""

    codes: int
    shifts: frozenset[Cells]
    accepts: bool


class Configurations:
    """Configuration sets by number, and what each says of one more cell.

    sets : the lookahead sets by number, as bits; more can be appended.
    ways : what a parser does with one symbol.
    """

    def __init__(self, parser: Parser, lexer: Lexer) -> None:
        self.parser = parser
        self.ways = Ways(parser)
        self.mode_of = lexer.mode_of
        self.sets = list(lexer.sets)
        self._symbol: list[int] = []
        self._rest: list[int] = []
        self._length: list[int] = []
        self._continuation: dict[tuple[int, int], Continuation] = {}
        self.nothing = self._continued(END, WHATEVER)
        self._members: dict[int, list[int]] = {}
        # codes by number; sets: pairs of the number of codes and their continuation, which ascends
        self._codes: list[Codes] = [()]
        self._codes_number: dict[Codes, int] = {(): 0}
        self._set: list[tuple[tuple[int, Continuation], ...]] = [(), ()]
        self._number: dict[tuple[tuple[int, Continuation], ...], int] = {(): REFUSED}
        self._first: dict[frozenset[Continuation], Ints] = {}
        self._first_known: dict[Continuation, Ints] = {}
        self._taking_known: dict[int, list[int]] = {}
        self._may_known: dict[Continuation, int] = {}
        # by continuation: a number for each state on top, -1 where nobody has asked
        self._settled: dict[Continuation, array[int]] = {}
        self._unasked = array("i", [-1]) * parser.n_states
        # by a set's number * n_states + a cell
        self._kept: dict[int, int] = {}
        self._raw: dict[int, int] = {}
        self._entered = [sorted(states) for states in parser.entered]
        self._alike_known: dict[Continuation, Continuation] = {}
        self._like: dict[tuple[int, bool, tuple[int, ...]], Continuation] = {}
        self._parts: dict[int, tuple[int, ...]] = {}
        self._moved: dict[tuple[int, int, int], _Move] = {}
        self._live: dict[Continuation, int] = {}
        self._dead: dict[Continuation, int] = {}

    def __len__(self) -> int:
        return len(self._set)

    def continuation(self, symbols: Sequence[int], ahead: int) -> Continuation:
        """The number of a continuation, or of one that says the same.

        ahead : the number of a set, or WHATEVER.
        """
        found = self._continued(END, ahead)
        for symbol in reversed(symbols):
            found = self._alike(self._continued(symbol, found))
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

        Returns (n_states,) int32, by the state on top.
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
        """`first` of one continuation.

        Of a long one some ends come first, so that none is read by recursion from start to end.
        """
        if continuation not in self._first_known:
            agenda = []
            one = continuation
            while one not in self._first_known:
                agenda.append(one)
                if self._length[one] <= MOST_AT_ONCE:
                    break
                for _ in range(MOST_AT_ONCE):
                    one = self._rest[one]
            for one in reversed(agenda):
                found = self._first_known[one] = np.full(self.parser.n_states, REFUSED, np.int32)
                may = self._may_read(one)
                for top in self._taking(one):
                    if may >> top & 1:
                        found[top] = self._alive(self._settle(top, one), top)
        return self._first_known[continuation]

    def _may_read(self, continuation: Continuation) -> int:
        """The states on which a continuation may be read where only the top is known, as bits.

        That a state is not among them is a proof.

        PERF: this is what refuses most of them, and needs no search of stacks.
        """
        found = self._may_known.get(continuation)
        if found is None:
            symbol, rest = self._symbol[continuation], self._rest[continuation]
            if symbol in (END, self.parser.n_columns - 1) or self._length[continuation] > MOST_LOOKED_AT:
                found = (1 << self.parser.n_states) - 1
            else:
                may, found = self._may_read(rest), 0
                for top in self._taking(continuation):
                    after = 1 << top if symbol >= self.parser.n_columns else self.ways.tops_after(top, symbol)
                    if after & may:
                        found |= 1 << top
            self._may_known[continuation] = found
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
        raw = self._read(number, cell)
        if raw in (REFUSED, ACCEPTED):
            return raw
        key = raw * self.parser.n_states + cell
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._alive(raw, cell)
        return found

    def parts(self, number: int) -> tuple[int, ...]:
        """The sets of one configuration each of which a set is made."""
        found = self._parts.get(number)
        if found is None:
            groups = self._set[number]
            if len(groups) == 1 and len(self._codes[groups[0][0]]) == 1:
                found = (number,)
            else:
                found = tuple(
                    self._numbered(((self._codes_numbered((code,)), left),))
                    for codes, left in groups
                    for code in self._codes[codes]
                )
            self._parts[number] = found
        return found

    def _read(self, number: int, cell: int) -> int:
        """`after`, the configurations that refuse every stack included."""
        if number in (REFUSED, ACCEPTED):
            return number
        groups = self._set[number]
        if len(groups) == 1:
            return self._read_group(number, cell)
        key = number * self.parser.n_states + cell
        found = self._raw.get(key)
        if found is None:
            parts = [self._read_group(self._numbered((group,)), cell) for group in groups]
            found = self._raw[key] = self._union(parts)
        return found

    def _read_group(self, number: int, cell: int) -> int:
        """`_read` of configurations with one continuation.

        PERF: where no symbol is shifted the answer is at hand; of the others it is kept.
        """
        ((codes, left),) = self._set[number]
        move = self._moves(codes, cell, self._symbol[left])
        if not move.shifts and not move.accepts:
            return self._numbered(((move.codes, left),)) if move.codes else REFUSED
        key = number * self.parser.n_states + cell
        found = self._raw.get(key)
        if found is None:
            found = self._raw[key] = self._shifted(move, move.codes, left, (cell,))
        return found

    def _shifted(self, way: Way | _Move, codes: int, left: Continuation, below: Cells) -> int:
        """What is left of a way when the symbols behind the first are read, too.

        codes : the number of the way's codes. below : the cells below those that were pushed, if
            they are known.
        """
        rest = self._rest[left]
        if way.accepts and rest == self.nothing:
            return ACCEPTED
        numbers = [self._numbered(((codes, left),))] if codes else []
        for pushed in way.shifts:
            number = self._settle(pushed[-1], rest)
            for cell in (*pushed[-2::-1], *below):
                number = self._read(number, cell)
            if number == ACCEPTED:
                return ACCEPTED
            numbers.append(number)
        return numbers[0] if len(numbers) == 1 else self._union(numbers)

    def _settle(self, cell: int, continuation: Continuation) -> int:
        """Run a parser on the only cell that it knows, as far as it comes."""
        settled = self._settled.get(continuation)
        if settled is None:
            settled = self._settled[continuation] = self._unasked[:]
        found = settled[cell]
        if found < 0:
            symbol, rest = self._symbol[continuation], self._rest[continuation]
            if symbol == END:
                found = self._ahead(cell, rest)
            elif symbol >= self.parser.n_columns:
                is_mode = self.mode_of[cell] == symbol - self.parser.n_columns
                found = self._settle(cell, rest) if is_mode else REFUSED
            else:
                way = self.ways.before_shift(cell, symbol)
                codes = self._codes_numbered(tuple(sorted(way.codes)))
                found = self._shifted(way, codes, self._alike(continuation), ())
            settled[cell] = found
        return found

    def _ahead(self, cell: int, ahead: int) -> int:
        """`_settle` where one column of a set comes next, or whatever comes."""
        if ahead == WHATEVER or self.sets[ahead] & self.parser.shifts[cell]:
            return ACCEPTED
        each = [self._continued(column, self.nothing) for column in self._columns(ahead)]
        return self._alive(self._union([self._settle(cell, one) for one in each]), cell)

    def _alike(self, continuation: Continuation) -> Continuation:
        """The first continuation that says what this one says, wherever it is read.

        PERF: they begin with one symbol, and come to the same in all states that it leads to. Of
        python.lark's continuations three in four are like another one, and so are sets with them.
        """
        found = self._alike_known.get(continuation)
        if found is None:
            symbol, rest = self._symbol[continuation], self._rest[continuation]
            if symbol >= self.parser.n_columns:
                return continuation
            after = tuple([self._settle(cell, rest) for cell in self._entered[symbol]])
            key = symbol, rest == self.nothing, after
            found = self._alike_known[continuation] = self._like.setdefault(key, continuation)
        return found

    def _moves(self, codes: int, cell: int, symbol: int) -> _Move:
        """What codes come to with one more cell below."""
        key = codes, cell, symbol
        found = self._moved.get(key)
        if found is None:
            n = self.ways.n_nonterminals
            left: set[Code] = set()
            shifts: set[Cells] = set()
            accepts = False
            for code in self._codes[codes]:
                if code >= n:
                    left.add(code - n)
                    continue
                way = self.ways.pushes(cell, code, symbol)
                left |= way.codes
                shifts |= way.shifts
                accepts |= way.accepts
            found = self._moved[key] = _Move(self._codes_numbered(tuple(sorted(left))), frozenset(shifts), accepts)
        return found

    def _alive(self, number: int, cell: int) -> int:
        """A set without those configurations that refuse every stack below a cell."""
        if number in (REFUSED, ACCEPTED):
            return number
        groups = self._set[number]
        alive = tuple((kept, left) for codes, left in groups if (kept := self._alive_codes(codes, left, cell)))
        return number if alive == groups else self._numbered(alive)

    def _alive_codes(self, codes: int, left: Continuation, cell: int) -> int:
        """The number of those codes with which some stack below a cell is accepted."""
        symbol, members = self._symbol[left], self._codes[codes]
        alive = [code for code in members if self._is_live(self.ways.reach(cell, code, symbol), left)]
        return codes if len(alive) == len(members) else self._codes_numbered(tuple(alive))

    def _is_live(self, places: int, left: Continuation) -> bool:
        """Whether the rest of a continuation is accepted, on some stack, from one of the places."""
        if places & self._live.get(left, 0):
            return True
        unknown = places & ~self._dead.get(left, 0)
        shifts = self.ways.shifts[self._symbol[left]]
        while unknown:
            bit = unknown & -unknown
            if self._is_live_place(shifts.place[bit.bit_length() - 1], left):
                self._live[left] = self._live.get(left, 0) | bit
                return True
            self._dead[left] = self._dead.get(left, 0) | bit
            unknown ^= bit
        return False

    def _is_live_place(self, place: tuple[int, Cells] | None, left: Continuation) -> bool:
        rest = self._rest[left]
        if place is None:
            return rest == self.nothing
        base, pushed = place
        number = self._settle(pushed[-1], rest)
        for cell in (*pushed[-2::-1], base):
            number = self._read(number, cell)
        return self._alive(number, base) != REFUSED

    def _union(self, numbers: Iterable[int]) -> int:
        distinct = set(numbers) - {REFUSED}
        if len(distinct) < 2:
            return distinct.pop() if distinct else REFUSED
        if ACCEPTED in distinct:
            return ACCEPTED
        found: dict[Continuation, set[int]] = {}
        for number in distinct:
            for codes, left in self._set[number]:
                found.setdefault(left, set()).add(codes)
        return self._numbered(tuple((self._codes_union(codes), left) for left, codes in sorted(found.items())))

    def _codes_union(self, numbers: set[int]) -> int:
        if len(numbers) == 1:
            return next(iter(numbers))
        return self._codes_numbered(tuple(sorted({code for number in numbers for code in self._codes[number]})))

    def _codes_numbered(self, codes: Codes) -> int:
        number = self._codes_number.setdefault(codes, len(self._codes))
        if number == len(self._codes):
            self._codes.append(codes)
        return number

    def _numbered(self, groups: tuple[tuple[int, Continuation], ...]) -> int:
        number = self._number.setdefault(groups, len(self._set))
        if number == len(self._set):
            self._set.append(groups)
        return number

    def _columns(self, ahead: int) -> list[int]:
        """The members of a lookahead set."""
        if ahead not in self._members:
            bits = self.sets[ahead]
            self._members[ahead] = [column for column in range(self.parser.n_columns) if bits >> column & 1]
        return self._members[ahead]
