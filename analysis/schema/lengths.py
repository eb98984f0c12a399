"""How many characters the strings of an automaton can have, from each of its states, and how many
strings go on from there.

In: a `Dfa` over valid UTF-8. Out: a `LengthTable`, by which a string can be kept within a range of
lengths without a dead end; the strings that are left, so that a unique array finds new items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.graphs import predecessors
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import column_classes

MOST_ENTRIES = 1 << 24
"""BOUND: the entries of a table."""
MOST_ROWS = 1 << 15
"""BOUND: the rows of a table; they take about half a second."""


class LengthTable(NamedTuple):
    """The numbers of further characters with which a string can end.

    next_length : (m + p, n_states) int32, read-only; for k < m + p the least k' >= k such that from
        the state some accepted string has exactly k' further characters, -1 if there is none. In a
        state within a character, the characters that begin after it are counted.
    preperiod : m.
    period : p, at least 1.

    For a greater k, the answer is that for m + (k - m) % p, with the difference added back unless
    it is -1 (`after`).
    """

    next_length: npt.NDArray[np.int32]
    preperiod: int
    period: int

    def after(self, k: int, state: int) -> int:
        """The least number of further characters, at least k, with which a string can end.

        Returns -1 if there is none.
        """
        shift = k - self.preperiod - (k - self.preperiod) % self.period if k >= self.preperiod else 0
        found = int(self.next_length[k - shift, state])
        return found if found < 0 else found + shift


def characters(dfa: Dfa) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The steps of an automaton by whole characters.

    dfa : over valid UTF-8.

    Returns is_inside : (n_states,) bool, whether a state is within a character; and sources,
    targets : (n_steps,) int64, sorted and distinct: from a state to a state between characters, by
    one more character or, from within a character, by the rest of it.
    """
    table = dfa.next_state
    is_inside = np.any(table[:, 0x80:0xC0] >= 0, axis=1)
    n = dfa.n_states
    rows, columns = np.nonzero(table >= 0)
    codes = np.unique(rows.astype(np.int64) * n + table[rows, columns])
    sources, targets = codes // n, codes % n
    for _ in range(3):  # a character has at most four bytes
        inner = is_inside[targets]
        if not inner.any():
            break
        begin = np.searchsorted(codes // n, np.arange(n + 1))
        counts = np.where(inner, begin[targets + 1] - begin[targets], 1)
        steps = np.repeat(np.arange(len(targets)), counts)
        offset = np.arange(len(steps)) - np.repeat(np.cumsum(counts) - counts, counts)
        following = (codes % n)[np.minimum(begin[targets[steps]] + offset, len(codes) - 1)]
        after = np.where(inner[steps], following, targets[steps])
        joined = np.unique(sources[steps] * n + after)
        sources, targets = joined // n, joined % n
    return is_inside, sources, targets


@Kept
def length_table(dfa: Dfa) -> LengthTable:
    """The table of an automaton over valid UTF-8.

    Raises: LimitError if the table has more than `MOST_ROWS` rows or `MOST_ENTRIES` entries, which
    happens where loops of many different lengths lie beside each other.
    Cost: O((m + p) * (states + steps)).
    """
    n = dfa.n_states
    is_inside, sources, targets = characters(dfa)
    # those between characters first ask themselves, those within wait for the rest of theirs
    begins, firsts = np.unique(sources, return_index=True)
    between = dfa.is_accepting  # between characters: with exactly k further characters
    rows: list[npt.NDArray[np.bool_]] = []
    known: dict[bytes, int] = {}
    while (key := between.tobytes()) not in known:
        known[key] = len(rows)
        reached = np.zeros(n, np.bool_)  # the states that reach one of `between` by one step
        if len(sources):
            reached[begins] = np.logical_or.reduceat(between[targets], firsts)
        rows.append(np.where(is_inside, reached, between))
        if len(rows) >= MOST_ROWS or (len(rows) + 1) * n > MOST_ENTRIES:
            raise LimitError(
                f"the lengths of its strings repeat so late that their table has more than {MOST_ROWS:,} rows or "
                f"{MOST_ENTRIES:,} entries; make its repetitions shorter, or their lengths more alike"
            )
        between = np.where(is_inside, False, reached)
    m, p = known[key], len(rows) - known[key]
    # that there is none is the greatest of all numbers as long as these have no sign
    numbers = np.arange(m + 2 * p, dtype=np.uint32)[:, None]
    ends = np.where(np.vstack([*rows, *rows[m:]]), numbers, np.uint32(0xFFFFFFFF))  # behind come the rows from m on
    table = np.ascontiguousarray(np.minimum.accumulate(ends[::-1])[::-1][: m + p]).view(np.int32)
    table.flags.writeable = False
    return LengthTable(table, m, p)


def lengths_exist(dfa: Dfa, least: int, most: int | None) -> bool:
    """Whether some string of the set has at least `least` and at most `most` characters.

    most : None for no limit.

    Raises: LimitError as `length_table`.
    """
    if least == 0 and most is None:
        return not dfa.is_empty
    found = length_table(dfa).after(least, 0)
    return found >= 0 and (most is None or found <= most)


# -- how many strings

FOR_EVER = (1 << 31) - 1
"""Infinitely many strings, however they go on (`strings_left`)."""
ENDLESS = FOR_EVER - 1
"""Infinitely many strings, of which some beginnings may have finitely many."""


def goes_on_for_ever(automaton: Dfa) -> bool:
    """Whether infinitely many strings begin like each prefix of a string."""
    return bool((strings_left(automaton) == FOR_EVER).all())


@Kept
def strings_left(automaton: Dfa) -> npt.NDArray[np.int32]:
    """The number of strings that go on from each state of an automaton: (n,) int32, read-only.

    automaton : every state can reach one that accepts. A string that ends in a state counts.

    It is `ENDLESS` for infinitely many, and `FOR_EVER` if they are so behind whatever comes. What
    no text can have so many of, from `ENDLESS` on, counts as infinitely many.

    Cost: O(states * classes of bytes).
    """
    classes, columns = column_classes(automaton.next_state)
    widths = np.bincount(classes).tolist()
    ways = [
        [(target, width) for target, width in zip(row, widths, strict=True) if target >= 0]
        for row in automaton.next_state[:, columns].tolist()
    ]
    after = [{target for target, _ in pairs} for pairs in ways]
    before = predecessors(after)
    waiting = [len(targets) for targets in after]
    order = [state for state, n in enumerate(waiting) if not n]
    found = np.full(len(ways), FOR_EVER, np.int32)
    for state in order:  # grows while it is read; states that reach a cycle never come
        total = int(automaton.is_accepting[state]) + sum([width * int(found[target]) for target, width in ways[state]])
        found[state] = min(total, ENDLESS)
        for one in before[state]:
            waiting[one] -= 1
            if not waiting[one]:
                order.append(one)
    for state in order:  # grows again, by those from which one of these is reached
        for one in before[state]:
            if found[one] == FOR_EVER:
                found[one] = ENDLESS
                order.append(one)
    found.flags.writeable = False
    return found


def least_left(automaton: Dfa, left: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The fewest strings that go on behind one more character, from each state: (n,) int32.

    automaton : over valid UTF-8. left : what `strings_left` says of it.

    In a state within a character it is behind the rest of that. `FOR_EVER` where none can come.
    """
    found = np.full(len(left), FOR_EVER, np.int32)
    if left[0] != FOR_EVER:
        _, sources, targets = characters(automaton)
        np.minimum.at(found, sources, left[targets])
    return found
