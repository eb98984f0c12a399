"""From a tree without look-arounds but ``^`` and ``$`` to a deterministic automaton over classes.

The tree becomes a position automaton: one position for each set of characters in it, copies of
repetitions included.

`determinise` knows all look-arounds, and leaves trees without them to this, which takes a tenth of
the time.

Source: V. Glushkov, The abstract theory of automata (1961). We build from the end of the pattern
backwards, and keep loops and anchors as positions that read nothing (*markers*).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.bounds import too_many_positions
from maskwright.analysis.regex.charset import Ranges, partition
from maskwright.analysis.regex.tree import (
    ANY,
    Chars,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    children,
    factored,
    is_nullable,
    sets,
    size,
)

START = Look(ANY, ahead=False, negated=True)
"""The start of the text."""

END = Look(ANY, ahead=True, negated=True)
"""The end of the text."""

MOST_STEPS = 600_000
"""BOUND: positions that are stepped through, which takes about half a second."""

Numbers = frozenset[int]
"""Some positions and markers of a tree."""

_NONE: Numbers = frozenset()
_MATCH, _ENDED = 0, 1  # the numbers for: matched here; matched if the text ends here
_MATCHED = frozenset((_MATCH,))
_LOOP, _START, _END = "loop", "start", "end"


class ClassRows(NamedTuple):
    """A deterministic automaton over classes of scalar values, not minimal.

    bounds : first character of each interval of characters, sorted; the first is 0.
    class_of : the class of each interval, -1 for the surrogates.
    rows : for each state the next one by class, -1 for none. State 0 is initial.
    is_accepting : whether each state accepts.
    refused : for each state, if asked, before which classes, n_classes for the end, it does not
        accept, whatever comes behind these.
    """

    bounds: list[int]
    class_of: list[int]
    rows: list[list[int]]
    is_accepting: list[bool]
    refused: tuple[frozenset[int], ...] = ()


def is_plain(tree: Node) -> bool:
    """Whether the tree has no look-arounds but `START` and `END`, so that `run` can read it.

    Lazy, possessive and atomic parts are not plain.
    """
    is_part = isinstance(tree, Chars | Sequence | Choice) or (isinstance(tree, Repeat) and tree.mode == "greedy")
    return tree in (START, END) or (is_part and all(map(is_plain, children(tree))))


def run(tree: Node, max_states: int, *, is_search: bool) -> ClassRows:
    """The automaton of the texts that match as a whole, or in which a match is found.

    tree : as `is_plain` says.
    is_search : whether a match may stand anywhere in the text.

    Raises: LimitError if more than `max_states` states are needed, if repetitions unfold to more
    than 4 * `max_states` positions, or if it takes more than `MOST_STEPS` steps.
    Cost: that of the subset construction, exponential at worst.
    """
    tree = factored(tree)
    if size(tree) > 4 * max_states:
        raise too_many_positions(max_states)
    bounds, class_of, masks, n_classes = partition(sets(tree))
    positions = _Positions()
    first = positions.build(tree, _MATCHED)
    rows, is_accepting = positions.determinise(first, positions.by_class(masks, n_classes), max_states, is_search)
    return ClassRows(bounds, class_of, rows, is_accepting)


class _Positions:
    """The positions and markers of a tree, by number.

    PERF: sets are small where a tree is large. With integers of a bit a position instead, those of
    a row of n copies took n * n bits.
    """

    def __init__(self) -> None:
        self._following = [_NONE, _NONE]  # what may come behind a position or marker
        self._kind: dict[int, str] = {}  # of markers
        self._of_set: dict[Ranges, set[int]] = {}
        self._place: dict[int, int] = {}  # in a copy that may be left out -> the same place in the last one
        self._expanded: dict[int, Numbers] = {}
        self._steps_left = MOST_STEPS

    def _add(self, following: Numbers) -> Numbers:
        self._following.append(following)
        return frozenset((len(self._following) - 1,))

    def _marker(self, kind: str, following: Numbers) -> Numbers:
        self._kind[len(self._following)] = kind
        return self._add(following)

    def build(self, tree: Node, after: Numbers) -> Numbers:
        """What `tree` begins with, if what is behind it begins with `after`."""
        match tree:
            case Chars(ranges):
                found = self._add(after)
                self._of_set.setdefault(ranges, set()).update(found)
                return found
            case Sequence(parts):
                for part in reversed(parts):
                    after = self.build(part, after)
                return after
            case Choice(options):
                return _NONE.union(*[self.build(option, after) for option in options])
            case Repeat(body=body, least=least, most=most):
                leave, last = after, len(self._following)
                if is_nullable(body, looks_hold=False):
                    least = 0
                if most is None:
                    loop = self._marker(_LOOP, _NONE)
                    begin = self.build(body, loop)
                    self._following[min(loop)] = leave | begin
                    # the last of the copies that there must be is the one that is repeated
                    after, least = (begin, least - 1) if least else (loop, 0)
                else:
                    for _ in range(most - least):
                        copy = len(self._following)
                        after = leave | self.build(body, after)
                        self._place.update(zip(range(copy, len(self._following)), itertools.count(last), strict=False))
                        after = self._foremost(after)
                for _ in range(least):
                    after = self.build(body, after)
                return after
            case _:
                return self._marker(_END if tree == END else _START, after)

    def _foremost(self, numbers: Numbers) -> Numbers:
        """The numbers, of each place in copies that may be left out only that of the first copy.

        INVARIANT: more copies may follow the first one, so it begins what the others begin.
        """
        if len(numbers) < 2 or not self._place:
            return numbers
        first = {self._place.get(number, number): number for number in sorted(numbers)}
        return frozenset(first.values()) if len(first) < len(numbers) else numbers

    def by_class(self, masks: dict[Ranges, list[int]], n_classes: int) -> list[Numbers]:
        """The positions that read each class."""
        found: list[list[set[int]]] = [[] for _ in range(n_classes)]
        for ranges, positions in self._of_set.items():
            for c in masks[ranges]:
                found[c].append(positions)
        return [_NONE.union(*each) for each in found]

    def _expand(self, numbers: Numbers, at_start: bool, at_end: bool = False) -> Numbers:
        """The numbers without markers: what these lead to.

        at_end : whether the text is known to end here; then only `_MATCH` counts.
        """
        if self._kind.keys().isdisjoint(numbers):
            return numbers
        found: set[int] = set()
        agenda, seen = [*numbers], set(numbers)
        while agenda:
            number = agenda.pop()
            kind, following = self._kind.get(number), self._following[number]
            if kind is None:
                found.add(number)
                continue
            self._steps_left -= 1
            if kind == _START and not at_start:
                continue
            if kind == _END and not at_end:
                if _MATCH in self._expand(following, at_start, at_end=True):
                    found.add(_ENDED)
                continue
            agenda += following - seen
            seen |= following
        return frozenset(found)

    def _after(self, positions: Numbers) -> Numbers:
        """What may come behind any of some positions."""
        found = []
        for number in positions:
            known = self._expanded.get(number)
            if known is None:
                known = self._expanded[number] = self._expand(self._following[number], at_start=False)
            found.append(known)
        self._steps_left -= len(found)
        if self._steps_left < 0:
            raise LimitError(f"its automaton takes more than {MOST_STEPS:,} steps to build")
        return found[0] if len(found) == 1 else _NONE.union(*found)

    def determinise(
        self, first: Numbers, by_class: list[Numbers], max_states: int, is_search: bool
    ) -> tuple[list[list[int]], list[bool]]:
        """The subset construction; rows and is_accepting as in `ClassRows`."""
        start = self._expand(first, at_start=True)
        again = self._expand(first, at_start=False) if is_search else _NONE
        if is_search and _MATCH in start:
            start = _MATCHED
        number = {start: 0}
        states = [start]
        rows: list[list[int]] = []
        target_of: dict[Numbers, int] = {}  # positions that have read -> the state behind them
        for state in states:  # grows while it is read
            look()
            if is_search and state == _MATCHED:  # whatever follows
                rows.append([number[state]] * len(by_class))
                continue
            row: list[int] = []
            for positions in by_class:
                read = state & positions
                target = target_of.get(read)
                if target is None:
                    after = self._foremost(self._after(read) | again)
                    if is_search and _MATCH in after:
                        after = _MATCHED
                    if after:
                        target = number.setdefault(after, len(states))
                        if target == len(states):
                            states.append(after)
                            if target >= max_states:
                                raise LimitError(f"its automaton needs more than {max_states:,} states")
                    else:
                        target = -1
                    target_of[read] = target
                row.append(target)
            rows.append(row)
        return rows, [not state.isdisjoint((_MATCH, _ENDED)) for state in states]
