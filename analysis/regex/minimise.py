"""Deterministic automata made minimal and canonical; partitions that are refined."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.graphs import predecessors, reachable, ways

Table = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


def minimise(next_state: Table, is_accepting: Flags) -> tuple[Table, Flags]:
    """The minimal, trimmed automaton, its states numbered breadth-first in the order of columns.

    next_state : (n, n_columns) int32; the next state, -1 for no transition. State 0 is initial.
    is_accepting : (n,) bool.

    Returns next_state : (m, n_columns) int32 and is_accepting : (m,) bool of the m states that
    remain.
    Cost: O(n * n_classes) a round, n_classes being the number of distinct columns. Late rounds look
    at few states.
    """
    table, labels = minimise_labelled(next_state, is_accepting.astype(np.int32) - 1)
    return table, labels == 0


def minimise_labelled(next_state: Table, labels: npt.NDArray[np.int32]) -> tuple[Table, npt.NDArray[np.int32]]:
    """As `minimise`, for an automaton that says more of a string than whether it is accepted.

    next_state : (n, n_columns) int32; the next state, -1 for no transition. State 0 is initial.
    labels : (n,) int32; what a string is that ends in a state, -1 for none that is accepted.

    Returns next_state : (m, n_columns) int32 and labels : (m,) int32 of the m states that remain;
    one state with label -1 if no string is accepted.
    Cost: as `minimise`.
    """
    classes, representatives = column_classes(next_state)
    rows, found = merged_rows(next_state[:, representatives].tolist(), labels.tolist())
    table, order = in_order(np.array(rows, np.int32), slice(None))
    return table[:, classes], np.array(found, np.int32)[order]


def merged_rows(rows: list[list[int]], labels: list[int]) -> tuple[list[list[int]], list[int]]:
    """The minimal, trimmed automaton of one with few columns, its states in no special order.

    rows : for each state the next one by column, -1 for none. State 0 is initial.
    labels : as for `minimise_labelled`.

    Returns both of the states that can accept; state 0 is initial.
    """
    n = len(rows)
    distance = distances(rows, (label >= 0 for label in labels))
    if 0 not in distance:
        return [[-1] * len(rows[0])], [-1]
    if len(distance) < n:
        rows = [[target if target in distance else n for target in row] for row in rows]
    else:
        rows = [[n if target < 0 else target for target in row] for row in rows]
    rows.append([n] * len(rows[0]))
    past = max(labels) + 1  # an accepting state has distance 0, and then its label counts
    start = [label if label >= 0 else past + distance.get(state, -1 - past) for state, label in enumerate(labels)]
    block = _refine(rows, [*start, -1])
    first: dict[int, int] = {}  # a block -> one state of it
    for state, at in enumerate(block):
        if at != block[n]:
            first.setdefault(at, state)
    number = {at: i for i, at in enumerate(first)} | {block[n]: -1}
    merged = [[number[block[target]] for target in rows[state]] for state in first.values()]
    return merged, [labels[state] for state in first.values()]


def in_order(table: Table, representatives: slice | npt.NDArray[np.intp]) -> tuple[Table, list[int]]:
    """The states that are reached, numbered breadth-first in the order of columns.

    table : (n, n_columns) int32; the next state, -1 for no transition. State 0 is initial.
    representatives : the first column of each class of equal columns, sorted; or all columns.

    Returns next_state : (m, n_columns) int32; and for each of the m states its old number.
    """
    rows = table[:, representatives].tolist()
    order = reachable([0], lambda state: [target for target in rows[state] if target >= 0])
    number = np.full(len(rows) + 1, -1, np.int32)  # the last one for -1
    number[order] = np.arange(len(order))
    return number[table[order]], order


def column_classes(next_state: Table) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The classes of equal columns of a table.

    next_state : (n, n_columns) int32.

    Returns classes : (n_columns,) intp, the class of each column, numbered by first occurrence; and
    representatives : (n_classes,) intp, the first column of each class.
    """
    return numbered_rows(next_state.T)


def sorted_columns(next_state: Table) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """As `column_classes`, with the classes in the order of their columns.

    Columns are compared from the first row down.

    PERF: gives what ``np.unique(next_state, axis=1)`` gives, which compares columns of a tall table
    value by value.
    """
    return sorted_rows((next_state.T + 1).astype(">u4", order="C"))


def sorted_rows(rows: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """As `numbered_rows`, with the numbers in the order of the rows' bytes."""
    numbers, first = numbered_rows(rows)
    keys = [row.tobytes() for row in rows[first]]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)
    return np.argsort(order)[numbers], first[order]


def numbered_rows(rows: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """A number for each row; equal rows have equal numbers, in the order of first occurrence.

    rows : (n, width) of any dtype.

    Returns the numbers, (n,) intp; and the first row of each number, (n_numbers,) intp.
    """
    rows = np.ascontiguousarray(rows)
    # PERF: of equal neighbours, as most bytes of an automaton are, only the first is hashed
    is_bound = np.ones(len(rows) + 1, np.bool_)
    is_bound[1:-1] = (rows[1:] != rows[:-1]).any(axis=1)
    bounds = np.flatnonzero(is_bound)
    data, width = rows.tobytes(), rows.shape[1] * rows.itemsize
    first: dict[bytes, int] = {}
    firsts_of = [first.setdefault(data[i * width : (i + 1) * width], i) for i in bounds[:-1].tolist()]
    firsts = np.array(list(first.values()), np.intp)  # ascending
    return firsts.searchsorted(firsts_of).repeat(bounds[1:] - bounds[:-1]), firsts


def distances(rows: list[list[int]], is_accepting: Iterable[bool]) -> dict[int, int]:
    """The length of a shortest accepted string from each state that has one.

    rows : for each state the next one by column, -1 for none. is_accepting : whether each accepts.
    """
    before = predecessors([set(row) - {-1} for row in rows])
    accepting = (state for state, accepts in enumerate(is_accepting) if accepts)
    found: dict[int, int] = {}
    for state, after in ways(accepting, before.__getitem__).items():
        found[state] = 0 if state == after else found[after] + 1
    return found


def _refine(rows: list[list[int]], start: list[int]) -> list[int]:
    """The block of each state in the coarsest partition that refines `start` and is stable.

    Stable means that states of one block have, for each column, successors in one block. The start
    is the partition by distance to acceptance, which equivalent states share, so few rounds remain.
    """
    blocks = Blocks(start)
    of = blocks.of
    before = predecessors([set(row) for row in rows])
    dirty: Iterable[int] = range(len(rows))
    while dirty:
        moved = blocks.refine(dirty, lambda state: tuple([of[target] for target in rows[state]]))
        dirty = {source for state in moved for source in before[state]}
    return of


class Blocks:
    """A partition of 0 .. n - 1 that is refined.

    of : the block of each member. members : the members of each block.

    When a block splits, one part keeps its number: the part that was not looked at, or else the
    largest. So only what depends on the members of the other parts is to be looked at again.

    Source: J. Hopcroft, An n log n algorithm for minimizing states in a finite automaton (1971).
    """

    def __init__(self, start: Sequence[int]) -> None:
        """start : equal numbers for members of one block."""
        number: dict[int, int] = {}
        self.of = [number.setdefault(value, len(number)) for value in start]
        self.members: list[set[int]] = [set() for _ in number]
        for member, block in enumerate(self.of):
            self.members[block].add(member)

    def refine(self, looked_at: Iterable[int], signature: Callable[[int], Hashable]) -> list[int]:
        """Splits the blocks of some members by their signatures, which may depend on `of`.

        Returns the members that come into new blocks.

        INVARIANT: members of a block that are not looked at have one common signature.
        """
        parts_of: dict[int, dict[Hashable, set[int]]] = {}
        for member in looked_at:
            look()
            block = self.of[member]
            if len(self.members[block]) > 1:
                parts_of.setdefault(block, {}).setdefault(signature(member), set()).add(member)
        n_before = len(self.members)
        for block, parts in parts_of.items():
            remainder = self.members[block]
            if sum(map(len, parts.values())) < len(remainder):
                parts.pop(signature(_other_than(parts.values(), remainder)), None)
                # PERF: in place, since a large block may lose its members one by one
                remainder.difference_update(*parts.values())
            else:
                self.members[block] = remainder = max(parts.values(), key=len)
            self.members += [part for part in parts.values() if part is not remainder]
        for block in range(n_before, len(self.members)):
            for member in self.members[block]:
                self.of[member] = block
        return [member for part in self.members[n_before:] for member in part]


def _other_than(parts: Iterable[set[int]], whole: set[int]) -> int:
    """A member of a block that is in none of some parts. The block is as it was.

    PERF: `pop` goes on where it ended the last time, where an iteration would pass over all the
    members that are gone.
    """
    several = set().union(*parts)
    popped = [whole.pop()]
    while popped[-1] in several:
        popped.append(whole.pop())
    whole.update(popped)
    return popped[-1]
