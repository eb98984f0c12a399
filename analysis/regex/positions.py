"""From a tree without look-arounds but ``^`` and ``$`` to a deterministic automaton over classes.

The tree becomes a position automaton: one position for each set of characters in it, copies of
repetitions included. A set of positions is an integer, one bit each, so a step of the subset
construction is a few operations on integers.

This does what `determinise` does, for most patterns in a tenth of the time. `determinise` knows all
look-arounds.

Source: V. Glushkov, The abstract theory of automata (1961). We build from the end of the pattern
backwards, and keep loops and anchors as positions that read nothing (*markers*).
"""

from __future__ import annotations

from typing import NamedTuple

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.bounds import too_many_positions
from maskwright.analysis.regex.charset import Ranges, partition
from maskwright.analysis.regex.tree import ANY, Chars, Choice, Look, Node, Repeat, Sequence, children, sets, size

START = Look(ANY, ahead=False, negated=True)
"""The start of the text."""

END = Look(ANY, ahead=True, negated=True)
"""The end of the text."""

MOST_STEPS = 600_000
"""BOUND: positions that are stepped through, as if there were up to `_CHEAP`.

This takes about half a second.
"""

_CHEAP = 4096  # positions whose sets are still cheap; with n of them a step counts 1 + n // _CHEAP

_MATCH, _ENDED = 1, 2  # the bits for: matched here; matched if the text ends here
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
    if isinstance(tree, Look):
        return tree in (START, END)
    if isinstance(tree, Repeat) and tree.mode != "greedy":
        return False
    return isinstance(tree, Chars | Sequence | Choice | Repeat) and all(map(is_plain, children(tree)))


def run(tree: Node, max_states: int, *, is_search: bool) -> ClassRows:
    """The automaton of the texts that match as a whole, or in which a match is found.

    tree : as `is_plain` says.
    is_search : whether a match may stand anywhere in the text.

    Raises: LimitError if more than `max_states` states are needed, if repetitions unfold to more
    than 4 * `max_states` positions, or if it takes more than `MOST_STEPS` steps.
    Cost: that of the subset construction, exponential at worst.
    """
    if size(tree) > 4 * max_states:
        raise too_many_positions(max_states)
    bounds, class_of, masks, n_classes = partition(sets(tree))
    positions = _Positions()
    first = positions.build(tree, _MATCH)
    rows, is_accepting = positions.determinise(first, positions.by_class(masks, n_classes), max_states, is_search)
    return ClassRows(bounds, class_of, rows, is_accepting)


class _Positions:
    """The positions and markers of a tree, by the number of their bit."""

    def __init__(self) -> None:
        self._following: list[int] = [0, 0]  # what may come behind a position or marker
        self._kind: dict[int, str] = {}  # of markers
        self._markers = 0
        self._of_set: dict[Ranges, int] = {}
        self._expanded: dict[int, int] = {}
        self._steps_left = MOST_STEPS

    def _marker(self, kind: str, following: int) -> int:
        number = len(self._following)
        self._following.append(following)
        self._kind[number] = kind
        self._markers |= 1 << number
        return number

    def build(self, tree: Node, after: int) -> int:
        """The bits with which `tree` begins, if what is behind it begins with those of `after`."""
        match tree:
            case Chars(ranges):
                bit = 1 << len(self._following)
                self._following.append(after)
                self._of_set[ranges] = self._of_set.get(ranges, 0) | bit
                return bit
            case Sequence(parts):
                for part in reversed(parts):
                    after = self.build(part, after)
                return after
            case Choice(options):
                found = 0
                for option in options:
                    found |= self.build(option, after)
                return found
            case Repeat(body=body, least=least, most=most):
                leave = after
                if most is None:
                    loop = self._marker(_LOOP, 0)
                    begin = self.build(body, 1 << loop)
                    self._following[loop] = leave | begin
                    # the last of the copies that there must be is the one that is repeated
                    after, least = (begin, least - 1) if least else (1 << loop, 0)
                else:
                    for _ in range(most - least):
                        after = leave | self.build(body, after)
                for _ in range(least):
                    after = self.build(body, after)
                return after
            case _:
                return 1 << self._marker(_END if tree == END else _START, after)

    def by_class(self, masks: dict[Ranges, list[int]], n_classes: int) -> list[int]:
        """The positions that read each class."""
        found = [0] * n_classes
        for ranges, positions in self._of_set.items():
            for c in masks[ranges]:
                found[c] |= positions
        return found

    def _expand(self, bits: int, at_start: bool, at_end: bool = False) -> int:
        """The bits without markers: what these lead to.

        at_end : whether the text is known to end here; then only `_MATCH` counts.
        """
        todo = bits & self._markers
        if not todo:
            return bits
        found, seen = bits ^ todo, 0
        while todo:
            bit = todo & -todo
            seen |= bit
            todo ^= bit
            number = bit.bit_length() - 1
            self._steps_left -= 1
            kind, following = self._kind[number], self._following[number]
            if kind == _START and not at_start:
                continue
            if kind == _END and not at_end:
                if self._expand(following, at_start, at_end=True) & _MATCH:
                    found |= _ENDED
                continue
            markers = following & self._markers
            found |= following ^ markers
            todo |= markers & ~seen
        return found

    def _after(self, bits: int) -> int:
        """What may come behind any of some positions."""
        found = 0
        cost = 1 + len(self._following) // _CHEAP
        while bits:
            bit = bits & -bits
            bits ^= bit
            number = bit.bit_length() - 1
            known = self._expanded.get(number)
            if known is None:
                known = self._expanded[number] = self._expand(self._following[number], at_start=False)
            found |= known
            self._steps_left -= cost
        if self._steps_left < 0:
            raise LimitError(f"its automaton takes more than {MOST_STEPS:,} steps to build")
        return found

    def determinise(
        self, first: int, by_class: list[int], max_states: int, is_search: bool
    ) -> tuple[list[list[int]], list[bool]]:
        """The subset construction; rows and is_accepting as in `ClassRows`."""
        start = self._expand(first, at_start=True)
        again = self._expand(first, at_start=False) if is_search else 0
        if is_search and start & _MATCH:
            start = _MATCH
        number = {start: 0}
        states = [start]
        rows: list[list[int]] = []
        target_of: dict[int, int] = {}  # positions that have read -> the state behind them
        for state in states:  # grows while it is read
            look()
            if is_search and state == _MATCH:  # whatever follows
                rows.append([number[state]] * len(by_class))
                continue
            row: list[int] = []
            for positions in by_class:
                read = state & positions
                target = target_of.get(read)
                if target is None:
                    after = self._after(read) | again
                    if is_search and after & _MATCH:
                        after = _MATCH
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
        return rows, [bool(state & (_MATCH | _ENDED)) for state in states]
