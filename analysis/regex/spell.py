"""From a tree to the minimal automaton over bytes.

The automaton over classes of characters is made minimal before it is spelled out in bytes. Then so
is the result, up to the order of its states: states between characters say different things of
strings of characters, and nodes within a character are equal only if they lead to the same states.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex import positions
from maskwright.analysis.regex.bounds import check_least
from maskwright.analysis.regex.charset import LAST
from maskwright.analysis.regex.dfa import MAX_STATES, Dfa
from maskwright.analysis.regex.machine import determinise
from maskwright.analysis.regex.minimise import column_classes, in_order, merged_rows, numbered_rows
from maskwright.analysis.regex.positions import ClassRows
from maskwright.analysis.regex.simplify import merged, shortest_found, without_ends
from maskwright.analysis.regex.tree import ANY, Node, Repeat, sequence

Table = npt.NDArray[np.int32]

MOST_STATES_OF_LOOKS = 8_000
"""BOUND: the states of an automaton with look-arounds; its threads explode within half a second."""

_ANYTHING = Repeat(ANY, 0, None)


def spell(tree: Node, max_states: int = MAX_STATES, *, is_search: bool = False) -> Dfa:
    """The UTF-8 of the texts that a tree matches as a whole, or in which it finds a match.

    tree : as for `determinise`. Its look-arounds do not see beyond the text.
    max_states : the most states of each automaton on the way.
    is_search : whether a match may stand anywhere in the text.

    Raises: LimitError if an automaton grows past `max_states`, or takes too many steps.
    Cost: that of the subset construction, exponential at worst; then O(states * classes) a round of
    making it minimal.
    """
    check_least(without_ends(tree)[0], max_states, is_search=is_search)
    tree = merged(shortest_found(tree) if is_search else tree)
    if positions.is_plain(tree):
        return in_bytes(positions.run(tree, max_states, is_search=is_search), max_states)
    around = (_ANYTHING,) if is_search else ()
    found, _ = determinise(sequence(*around, tree, *around, positions.END), min(max_states, MOST_STATES_OF_LOOKS))
    return in_bytes(found, max_states)


@lru_cache(maxsize=1)
def valid_utf8() -> Dfa:
    """All strings: the UTF-8 of Unicode scalar values, each in its shortest form."""
    return spell(_ANYTHING)


def of_columns(rows: list[list[int]], is_accepting: list[bool], column_of: npt.NDArray[np.intp]) -> Dfa:
    """The minimal automaton of one over classes of bytes.

    rows : for each state the next one by column, -1 for none. State 0 is initial.
    is_accepting : whether each state accepts.
    column_of : (256,) intp; the column of each byte, -1 for bytes that lead nowhere.
    """
    rows, labels = merged_rows(rows, [accepts - 1 for accepts in is_accepting])
    small = np.array([[*row, -1] for row in rows], np.int32)
    return _as_dfa(small[:, column_of], labels)


def in_bytes(found: ClassRows, max_states: int) -> Dfa:
    """The minimal automaton over bytes of an automaton over classes.

    Raises: LimitError if more than `max_states` states are needed.
    """
    rows, labels = merged_rows(found.rows, [accepts - 1 for accepts in found.is_accepting])
    n_ascii = bisect_left(found.bounds, 128)  # intervals that begin there
    ascii_classes = found.class_of[:n_ascii]
    lengths = [end - start for start, end in pairwise([*found.bounds[:n_ascii], 128])]
    table = np.full((len(rows), 256), -1, np.int32)
    small = np.array(rows, np.int32).reshape(len(rows), -1)
    table[:, :128] = np.repeat(small[:, ascii_classes], lengths, axis=1)
    tail = n_ascii if found.bounds[n_ascii : n_ascii + 1] == [128] else n_ascii - 1
    inner = _beyond_ascii(table, small, [128, *found.bounds[tail + 1 :]], found.class_of[tail:], max_states)
    return _as_dfa(np.vstack([table, inner]), labels)


def _beyond_ascii(table: Table, small: Table, bounds: list[int], class_of: list[int], max_states: int) -> Table:
    """Fills in the leads of longer characters. Returns the rows of the nodes within these.

    table : (n_states, 256) int32; written to.
    small : (n_states, n_classes) int32; the next state by class.
    bounds, class_of : the classes from character 128 on, as in `ClassRows`.
    """
    local: dict[int, int] = {}  # classes that occur, by number
    numbers = [-1 if c < 0 else local.setdefault(c, len(local)) for c in class_of]
    targets = np.full((len(small), len(local) + 1), -1, np.int32)  # the last one for no character
    targets[:, :-1] = small[:, list(local)]
    rows_of: dict[bytes, list[int]] = {}  # what the characters lead to -> states where they do
    for state, after in enumerate(targets):
        rows_of.setdefault(after.tobytes(), []).append(state)
    rows_of.pop(np.full(len(local) + 1, -1, np.int32).tobytes(), None)
    if not rows_of:
        return table[:0]
    blocks = trie(np.array(bounds, np.int64).tobytes(), np.array(numbers, np.int64).tobytes())
    number: dict[bytes, int] = {np.full(64, -1, np.int32).tobytes(): -1}  # span of a node -> its state
    spans: list[npt.NDArray[np.int32]] = []

    def nodes(after: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The nodes of some spans of 64 states."""
        found = []
        for span in after:
            key = span.tobytes()
            node = number.get(key)
            if node is None:
                node = number[key] = len(table) + len(spans)
                spans.append(span)  # INVARIANT: nothing writes to it later
                if node >= max_states:
                    raise LimitError(f"its automaton needs more than {max_states:,} states over UTF-8 bytes")
            found.append(node)
        return np.array(found, np.int32)

    for states in rows_of.values():
        one_left = nodes(targets[states[0]][blocks.one_left])
        two_left = nodes(one_left[blocks.two_left])
        three_left = nodes(two_left[blocks.three_left])
        leads = one_left[blocks.leads_c2_to_df], two_left[blocks.leads_e0_to_ef], three_left
        table[states, 0xC2:0xF5] = np.concatenate(leads)
    inner = np.full((len(spans), 256), -1, np.int32)
    inner[:, 0x80:0xC0] = spans
    return inner


def _as_dfa(table: Table, labels: list[int]) -> Dfa:
    """The automaton with its states numbered breadth-first in the order of bytes.

    table : (n, 256) int32; minimal, but for states that are not reached.
    labels : of the first states, as `merged_rows` returns them; the others do not accept.
    """
    next_state, order = in_order(table, column_classes(table)[1])
    is_accepting = np.zeros(len(table), np.bool_)
    is_accepting[: len(labels)] = np.array(labels) >= 0
    is_accepting = is_accepting[order]
    next_state.flags.writeable = is_accepting.flags.writeable = False
    return Dfa(next_state, is_accepting)


Array = npt.NDArray[np.int64]


class Blocks(NamedTuple):
    """A partition of the characters from U+0080 on, as a trie over UTF-8 bytes.

    one_left : (n, 64) int64; a class for each last byte 0x80..0xBF, -1 for no character.
    two_left : (n, 64) int64; a row of `one_left` for each byte 0x80..0xBF.
    three_left : (n, 64) int64; a row of `two_left` for each byte 0x80..0xBF.
    leads_c2_to_df : (30,) int64; rows of `one_left`.
    leads_e0_to_ef : (16,) int64; rows of `two_left`.

    The leads 0xF0..0xF4 are the rows of `three_left`.
    """

    one_left: Array
    two_left: Array
    three_left: Array
    leads_c2_to_df: Array
    leads_e0_to_ef: Array


@Kept
def trie(bounds: bytes, class_of: bytes) -> Blocks:
    """The trie of a partition.

    All characters are cut into blocks of 64, the span of a last byte. Equal blocks are one node.
    Then blocks of 64 nodes are merged in the same way, and so on. This gives at most three levels,
    which all states with the same successors share. (Rust's utf8-ranges splits each range into byte
    sequences instead.)

    bounds, class_of : int64 arrays as bytes, as in `ClassRows`; the first bound is 128.

    Cost: O(number of intervals), cached.
    """
    starts, classes = np.frombuffer(bounds, dtype=np.int64), np.frombuffer(class_of, dtype=np.int64)
    starts, classes = np.append(starts, LAST + 1), np.append(classes, -1)
    blocks = starts >> 6
    # a block of one class has that class's row; those in which an interval begins are looked at
    mixed = np.unique(blocks[starts & 63 != 0])
    characters = (mixed[:, np.newaxis] << 6) + np.arange(64)
    rows = classes[np.searchsorted(starts, characters, side="right") - 1]
    one_class = np.arange(-1, int(classes.max()) + 1)
    whole = np.repeat(one_class, 64).reshape(-1, 64)
    number, one_left = _distinct(np.vstack([whole, rows]))
    one_of = np.zeros(5 << 12, np.int64)  # the row for class -1
    first = (starts + 63) >> 6  # the first whole block of each interval
    lengths = np.diff(np.append(first, len(one_of)))
    one_of[first[0] :] = np.repeat(classes + 1, lengths)
    one_of[mixed] = number[len(whole) :]
    nothing = one_of[0]  # the ASCII block, empty here
    leads_c2_to_df = one_of[2:32].copy()
    one_of[:32] = nothing  # no overlong form: two bytes spell these characters
    two_of, two_left = _distinct(one_of.reshape(-1, 64))
    leads_e0_to_ef = two_of[:16]
    two_of = two_of.copy()
    two_of[:16] = two_of[-1]  # no overlong form here either; the last block, above U+10FFFF, is empty
    return Blocks(one_left, two_left, two_of.reshape(-1, 64), leads_c2_to_df, leads_e0_to_ef)


def _distinct(rows: Array) -> tuple[Array, Array]:
    """The number of each row among the distinct rows, and the distinct rows."""
    number, first = numbered_rows(rows)
    return number.astype(np.int64), rows[first]
