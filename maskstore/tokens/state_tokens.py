"""The tokens of a lexer state, in groups that require the same of the parser; by depth case.

All states are put together at once: a grammar has hundreds, and each has few tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int64
from maskwright.maskstore.tokens._continuation_kernels import Required
from maskwright.maskstore.tokens.events import Move

LineBreak = tuple[tuple[int, ...], Move]
"""Symbols read before a newline that ends in the token, and what the token does to its column."""
LineBreaks = tuple[LineBreak, ...]

NO_LINE_BREAKS = 0


@dataclass(frozen=True)
class DepthCase:
    """A lexer state's tokens while a certain number of brackets is open.

    The tokens of group[i] are allowed where the parser accepts continuation group_continuation[i]
    behind line breaks group_line_breaks[i]. A group may occur more than once: one of its
    continuations is enough.

    line_breaks : the numbers of the lists of line breaks that occur, ascending.
    group_line_breaks : (n,) int32; the number of a list of line breaks.
    group_continuation : (n,) int32; a continuation, see `Continuations`.
    group : (n,) int32; a group, see `StateTokens`.
    """

    line_breaks: tuple[int, ...]
    group_line_breaks: Int32
    group_continuation: Int32
    group: Int32


@dataclass(frozen=True)
class StateTokens:
    """The groups of tokens that do the same in a lexer state, and its depth cases.

    members : (n_allowed,) int32; classes of tokens (`Requirements.classes`), sorted by group.
    member_start : (n_groups + 1,) int64; group i is members[member_start[i] : member_start[i + 1]].
    depth_cases : depth_cases[d] is for d open brackets, the last one for any more.
    """

    members: Int32
    member_start: Int64
    depth_cases: tuple[DepthCase, ...]


class StateKeys:
    """The keys of the groups of each lexer state, and how many depth cases a state has.

    n_depth_cases : (n_states,) int32; at least 1.
    """

    def __init__(self, distinct: Int64, keys_of_state: Sequence[Int64], required: Required, n_breaks: int) -> None:
        """distinct : (n_keys,) int64, ascending; the keys that `required` is about.

        keys_of_state : for each state the key of each group.
        n_breaks : the number of lists of line breaks.
        """
        sizes = np.array([len(keys) for keys in keys_of_state], np.int64)
        self._state = np.repeat(np.arange(len(sizes)), sizes)
        self._group = np.arange(len(self._state)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._key = np.searchsorted(distinct, np.concatenate([np.zeros(0, np.int64), *keys_of_state]))
        self._required, self._n_breaks = required, n_breaks
        self.n_depth_cases = np.ones(len(sizes), np.int32)
        np.maximum.at(self.n_depth_cases, self._state, required.n_depth_cases[self._key])

    def states(
        self,
        groups_of_state: Sequence[tuple[Int32, Int64]],
        end_class: int,
        to_end: Sequence[Sequence[Sequence[int]]],
    ) -> list[StateTokens]:
        """What is known of each state's tokens.

        groups_of_state : for each state the classes of tokens sorted by group, and where each group
            begins.
        end_class : the class of the tokens that end the text, which is one more group of each
            state; -1 if there is none.
        to_end : for each state and each depth case the continuations by which a text may end there.
        """
        groups = groups_of_state if end_class < 0 else _with_end(groups_of_state, end_class)
        cases: list[list[DepthCase]] = [[] for _ in groups]
        n_groups = [len(starts) - 1 for _, starts in groups_of_state]
        for depth in range(int(self.n_depth_cases.max(initial=1))):
            of_depth = np.flatnonzero(self.n_depth_cases > depth).tolist()
            to_end_here = [(state, each) for state in of_depth if to_end for each in to_end[state][depth]]
            for state, case in zip(of_depth, self._cases(depth, of_depth, n_groups, to_end_here), strict=True):
                cases[state].append(case)
        return [StateTokens(*group, tuple(case)) for group, case in zip(groups, cases, strict=True)]

    def _cases(
        self, depth: int, of_depth: list[int], n_groups: Sequence[int], to_end: Sequence[tuple[int, int]]
    ) -> list[DepthCase]:
        """The depth cases of some states, ascending, for one number of open brackets.

        to_end : pairs of a state, ascending, and a continuation by which a text may end there.
        """
        required = self._required
        here = self.n_depth_cases[self._state] > depth
        key, state, group = self._key[here], self._state[here], self._group[here]
        row = required.first[key] + np.minimum(depth, required.n_depth_cases[key] - 1)
        begin = required.start[row]
        counts = required.start[row + 1] - begin
        ends = np.cumsum(counts)
        at = np.repeat(begin - (ends - counts), counts) + np.arange(int(counts.sum()))
        state, group = np.repeat(state, counts), np.repeat(group, counts).astype(np.int32)
        breaks, continuation = required.line_breaks[at], required.continuation[at]
        if to_end:
            states, more = np.array(to_end, np.int32).T
            place = np.searchsorted(state, states, side="right")
            at = place + np.arange(len(place))
            breaks = _inserted(breaks, at, NO_LINE_BREAKS)
            continuation = _inserted(continuation, at, more)
            group = _inserted(group, at, np.array(n_groups, np.int32)[states])
            state = _inserted(state, at, states)
        n_breaks = self._n_breaks
        distinct = np.unique(state * n_breaks + breaks)
        breaks_of: list[int] = (distinct % n_breaks).tolist()
        wanted = np.array(of_depth)
        first, last = (np.searchsorted(state, wanted, side).tolist() for side in ("left", "right"))
        first_breaks, last_breaks = (np.searchsorted(distinct, (wanted + i) * n_breaks).tolist() for i in (0, 1))
        return [
            DepthCase(tuple(breaks_of[i:j]), breaks[begin:end], continuation[begin:end], group[begin:end])
            for i, j, begin, end in zip(first_breaks, last_breaks, first, last, strict=True)
        ]


def _inserted(array: npt.NDArray[Any], at: Int64, values: npt.NDArray[Any] | int) -> npt.NDArray[Any]:
    """An array and more values. at : (n,) int64, ascending; where they are afterwards."""
    found = np.empty(len(array) + len(at), array.dtype)
    is_old = np.ones(len(found), np.bool_)
    is_old[at] = False
    found[is_old] = array
    found[at] = values
    return found


def _with_end(groups_of_state: Sequence[tuple[Int32, Int64]], end_class: int) -> list[tuple[Int32, Int64]]:
    """The groups of each state and one more, with the class of the tokens that end the text."""
    last = np.array([end_class], np.int32)
    members = np.concatenate([each for classes, _ in groups_of_state for each in (classes, last)])
    ends = np.array([len(classes) + 1 for classes, _ in groups_of_state], np.int64)
    starts = np.concatenate([each for i, (_, own) in enumerate(groups_of_state) for each in (own, ends[i : i + 1])])
    found, begin, first = [], 0, 0
    for classes, own in groups_of_state:
        end, next_first = begin + len(classes) + 1, first + len(own) + 1
        found.append((members[begin:end], starts[first:next_first]))
        begin, first = end, next_first
    return found
