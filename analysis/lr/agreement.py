"""Do the parses of one text always stand in states of one class?

Under contextual lexing a class is a set of competing terminals. Where LALR tables have a conflict,
a parser that follows all actions goes on with several stacks. A lexer that asks the parser which
terminals compete can serve them all only if they agree.

Two stacks that come from one conflict are equal up to some state, the *base*, and differ above it.
Below the base we assume any states that the automaton allows. From each conflict we follow such
pairs over all terminals that both stacks can read, until they are equal again. While both stacks
have pushed equal states onto the parts in which they differ, they do the same and agree. So we
follow such a pair only from the reduction on that pops the lowest of these equal states.

Example: `s: x "b" "c" | y "b" /[c-z]/`, `x: "a"`, `y: "a"` has a conflict before "b": two
reductions. Behind "b" one parse takes "c", the other the pattern, so the text `abc` has two parses
that lex its last letter differently.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.lr.encoding import CONFLICT, LrTables
from maskwright.analysis.lr.fragments import Fragments, TooManyFragmentsError

MAX_DIFFERENCE = 48
"""The most states above the base of a pair, of both stacks together."""
MAX_PAIRS = 5_000
"""The most pairs that are followed."""

Above = tuple[int, ...]
"""The states of a stack above the base, the top last."""
Pair = tuple[int, Above, Above]
"""A base, and the states that each of two stacks has above it."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A conflict with two parses that stand in states of different classes, or may do so.

    state, column : the cell of the conflict.
    columns : the terminal columns that are read from there on, the conflict's column first.
    states : where the two parses stand then; None if the search was given up, so that nothing is
        known.
    """

    state: int
    column: int
    columns: tuple[int, ...]
    states: tuple[int, int] | None


def disagreement(
    tables: LrTables, class_of_state: npt.NDArray[np.int32], max_pairs: int = MAX_PAIRS
) -> Disagreement | None:
    """The first conflict found with two parses of one text in states of different classes.

    class_of_state : (n_states,) int32; the class of each state.
    max_pairs : the most pairs to follow.

    Returns None as a proof that there is no such conflict. An answer whose `states` are None means
    that it is not known: some pair differs in more than MAX_DIFFERENCE states, or there are more
    than `max_pairs` pairs. We may also follow pairs that no text leads to, so an answer need not be
    one that a text shows.

    Cost: O(pairs * terminals) steps of some 10 us.
    """
    classes: list[int] = class_of_state.tolist()
    pairs = _Pairs(tables)
    # For each pair the pair before it and the terminal read there.
    origin: dict[Pair, tuple[Pair, int]] = {}
    agenda: deque[Pair] = deque()

    def explained(pair: Pair, column: int, states: tuple[int, int] | None) -> Disagreement:
        columns = [column]
        while pair in origin:
            pair, column = origin[pair]
            columns.append(column)
        return Disagreement(pair[0], columns[-1], tuple(reversed(columns)), states)

    def follow(pair: Pair, column: int) -> Disagreement | None:
        try:
            for after in sorted(pairs.after(pair, column)):
                tops = _top(after[0], after[1]), _top(after[0], after[2])
                if classes[tops[0]] != classes[tops[1]]:
                    return explained(pair, column, tops)
                for one in pairs.apart(after):
                    if one not in origin:
                        if len(origin) >= max_pairs:
                            return explained(pair, column, None)
                        origin[one] = pair, column
                        agenda.append(one)
        except _TooDifferent:
            return explained(pair, column, None)
        return None

    for state, column in np.argwhere(tables.action[:, : tables.n_terminals] >= CONFLICT).tolist():
        answer = follow((state, (), ()), column)
        if answer is not None:
            return answer
    while agenda:
        look()
        pair = agenda.popleft()
        for column in pairs.columns(pair):
            answer = follow(pair, column)
            if answer is not None:
                return answer
    return None


class _TooDifferent(Exception):
    """A pair differs in more than MAX_DIFFERENCE states."""

    pass


def _top(base: int, above: Above) -> int:
    """The state on top of a stack."""
    return above[-1] if above else base


class _Pairs:
    """Finds what becomes of a pair of stacks when both read a terminal."""

    def __init__(self, tables: LrTables) -> None:
        self.tables = tables
        self.lengths: list[int] = tables.rule_length.tolist()
        self.symbols: list[int] = tables.rule_lhs.tolist()
        self._fragments = Fragments(tables)
        self._goto = self._fragments.goto
        self._below = tables.below
        self._acts = tables.action[:, : tables.n_terminals] != 0
        self._columns_of = cache(self._find_columns)
        self._through_of, self._through = self._find_through()
        self._apart: dict[tuple[Pair, int], list[Pair]] = {}
        self._after_popping = cache(self._find_after_popping)
        self._shift = cache(self._find_shift)

    def columns(self, pair: Pair) -> list[int]:
        """The terminal columns that both tops have an action for, ascending."""
        base, first, second = pair
        return self._columns_of(_top(base, first), _top(base, second))

    def _find_columns(self, one: int, other: int) -> list[int]:
        columns: list[int] = np.flatnonzero(self._acts[one] & self._acts[other]).tolist()
        return columns

    def after(self, pair: Pair, column: int) -> set[Pair]:
        """The pairs of different stacks after both have shifted a terminal.

        The base is raised over all that the two stacks then have in common.

        Raises: _TooDifferent if the stacks of a pair differ in too many states.
        """
        found: set[Pair] = set()
        seen = {pair}
        agenda = [pair]
        while agenda:
            base, first, second = agenda.pop()
            ones, others = self._shift(base, first, column), self._shift(base, second, column)
            for one in ones:
                for other in others:
                    if one is not None and other is not None and one != other:
                        found.add(_without_common(base, one, other))
            if None in ones or None in others:
                for below in self._below[base]:
                    deeper = below, (base, *first), (base, *second)
                    if len(deeper[1]) + len(deeper[2]) > MAX_DIFFERENCE + 2:
                        raise _TooDifferent
                    if deeper not in seen:
                        seen.add(deeper)
                        agenda.append(deeper)
        return found

    def apart(self, pair: Pair) -> list[Pair]:
        """The pairs with different tops that a pair leads to, sorted.

        This is the pair itself if its tops differ. If they are equal, these are the pairs behind
        the reductions that both stacks do alike.

        Raises: _TooDifferent if the stacks of a pair differ in too many states.
        """
        base, first, second = pair
        if (first[-1] if first else base) != (second[-1] if second else base):
            return [pair]
        # what follows depends only on the equal states' lowest one, and on what is below it
        begin = self._lowest_equal(base, first, second) if first and second else (pair, -1)
        found = self._apart.get(begin)
        if found is None:
            reached: set[Pair] = set()
            seen = {begin}
            agenda = [begin]
            while agenda:
                look()
                at = agenda.pop()
                known = self._apart.get(at)
                if known is not None:
                    reached.update(known)
                    continue
                new: Iterable[Pair]
                if at[1] >= 0:
                    new = self._after_popping(*at)
                else:  # the base itself is on top of one
                    base, first, second = at[0]
                    new = [(below, (base, *first), (base, *second)) for below in self._below[base]]
                for one in new:
                    base, first, second = one
                    if (first[-1] if first else base) != (second[-1] if second else base):
                        reached.add(one)
                        continue
                    after = self._lowest_equal(base, first, second) if first and second else (one, -1)
                    if after not in seen:
                        seen.add(after)
                        agenda.append(after)
            found = self._apart[begin] = sorted(reached)
        return found

    def _find_after_popping(self, below: Pair, through: int) -> frozenset[Pair]:
        """The pairs after a reduction that pops a state which both stacks have pushed.

        below : the pair below that state. The pairs are those after the reduction, before a
            terminal.
        through : the reductions that pop it, a number of `_through`.
        """
        found: set[Pair] = set()
        for popped, symbols in self._through[through]:
            agenda = [below]
            while agenda:
                look()
                base, one, other = agenda.pop()
                n_one, n_other = len(one) - popped, len(other) - popped
                if n_one < 0 or n_other < 0:
                    if len(one) + len(other) > MAX_DIFFERENCE:
                        raise _TooDifferent
                    agenda += [(deeper, (base, *one), (base, *other)) for deeper in self._below[base]]
                    continue
                one, other = one[:n_one], other[:n_other]
                gotos_of_one = self._goto[one[-1] if one else base]
                gotos_of_other = self._goto[other[-1] if other else base]
                for symbol in symbols:
                    goto, other_goto = gotos_of_one[symbol], gotos_of_other[symbol]
                    if goto >= 0 and other_goto >= 0:
                        after = _without_common(base, (*one, goto), (*other, other_goto))
                        if after[1] or after[2]:
                            found.add(after)
        return frozenset(found)

    def _lowest_equal(self, base: int, first: Above, second: Above) -> tuple[Pair, int]:
        """What is below the equal states on top of two stacks, and what pops the lowest of these.

        That is a number of `_through`.
        """
        length = 1
        least = min(len(first), len(second))
        while length < least and first[-1 - length] == second[-1 - length]:
            length += 1
        return (base, first[:-length], second[:-length]), self._through_of[first[-length]]

    def _find_through(self) -> tuple[list[int], list[list[tuple[int, list[int]]]]]:
        """For each state the reductions that pop it, by number; and these reductions.

        They are grouped by how many states they pop below it: that number, and their nonterminals.
        """
        tables = self.tables
        found: list[set[tuple[int, int]]] = [set() for _ in range(tables.n_states)]
        for state in range(tables.n_states):
            actions = {a for column in np.flatnonzero(tables.action[state]) for a in tables.actions(state, int(column))}
            for rule in (-action - 1 for action in actions if action < 0):
                layer = {state}
                for popped in range(self.lengths[rule] - 1, -1, -1):
                    for one in layer:
                        found[one].add((self.symbols[rule], popped))
                    layer = {below for one in layer for below in self._below[one]}
        number: dict[tuple[tuple[int, int], ...], int] = {}
        through_of = [number.setdefault(tuple(sorted(of_state)), len(number)) for of_state in found]
        through: list[dict[int, list[int]]] = [{} for _ in number]
        for by_length, reductions in zip(through, number, strict=True):
            for symbol, popped in reductions:
                by_length.setdefault(popped, []).append(symbol)
        return through_of, [list(by_length.items()) for by_length in through]

    def _find_shift(self, base: int, above: Above, column: int) -> list[Above | None]:
        """The stacks above the base after a terminal has been shifted.

        None is among them if a reduction pops the base.
        """
        try:
            shifted, pending = self._fragments.read((base, *above), column)
        except TooManyFragmentsError:
            raise _TooDifferent from None
        if any(len(stack) > MAX_DIFFERENCE + 1 for stack in shifted):
            raise _TooDifferent
        return [stack[1:] for stack in shifted] + [None] * bool(pending)


def _without_common(base: int, first: Above, second: Above) -> Pair:
    """The pair of two stacks, the lesser first, its base raised over what they have in common."""
    if second < first:
        first, second = second, first
    common = 0
    while common < min(len(first), len(second)) and first[common] == second[common]:
        common += 1
    return _top(base, first[:common]), first[common:], second[common:]
