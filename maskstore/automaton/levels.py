"""The order in which continuations are explored: shorter ones first, one of equivalent ones.

In: roots. Out: for each length the continuations to explore.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.automaton import _level_kernels as kernels
from maskwright.maskstore.tokens._hash_kernels import doubled, grown, no_runs
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations

FIRST_ROOM = 1 << 7
"""Leaders, and results of continuations, that there is room for at first: a power of two."""


class Levels:
    """The continuations to explore, shorter ones first, each with the states that can be on top.

    Two continuations that begin with the same symbol are equivalent if what follows has the same
    result in every state that the symbol leads to. Only the first of them, the *leader*, is
    explored. Shorter continuations come before longer ones, and those of one length in the order of
    their numbers.

    next_continuation : (n_continuations,) int32; the leader of what follows the first symbol.
    roots : (n_roots, 2) int32; a continuation and its kind.
    n_levels : 1 + the most symbols of a continuation.
    """

    def __init__(
        self,
        tables: LrTables,
        mode_of_state: Int32,
        continuations: Continuations,
        roots: npt.ArrayLike,
        allowed: npt.NDArray[np.bool_],
    ) -> None:
        self.allowed = allowed
        self.roots = np.reshape(roots, (-1, 2)).astype(np.int32)
        self.next_continuation = continuations.next_continuation
        self._symbols = continuations.symbols
        # continuation c and set -1 - s are at c and -1 - s of these arrays: sets come last
        n_all = len(continuations) + len(continuations.sets)
        self._leader = np.full(n_all, WHATEVER, np.int32)
        is_root = np.zeros((len(allowed), n_all), np.bool_)
        is_root[self.roots[:, 1], self.roots[:, 0]] = True
        self._levels, before = _by_length(self.roots[:, 0], self.next_continuation, n_all)
        self.n_levels = len(self._levels)
        n_columns = tables.action.shape[1]
        # without the states of dead ends there may be modes that no state is in any more
        n_modes = max(int(mode_of_state.max()), int(self._symbols.max(initial=0)) - n_columns) + 1
        self.n_columns = n_columns
        in_mode = mode_of_state == np.arange(n_modes)[:, None]
        # a mode symbol reads nothing: the state on top stays
        is_accessed = np.concatenate([tables.accessing == np.arange(n_columns)[:, None], in_mode])
        symbol, entered = np.nonzero(is_accessed)
        self._facts = kernels.Facts(
            is_root,
            _bits(allowed),
            _bits(is_accessed),
            _bits(np.concatenate([tables.action.T != 0, in_mode])),
            self._symbols,
            self._symbols[before],
            self.next_continuation[before],
            np.searchsorted(symbol, np.arange(len(is_accessed) + 1)).astype(np.int32),
            entered.astype(np.int32),
            n_columns,
        )
        self._n_entered: list[int] = np.diff(self._facts.entered_start).tolist()
        self._behind = np.arange(1, max(self._n_entered) + 1)
        begin, end = np.zeros((2, n_all), np.int64)
        tops, results = np.zeros((2, FIRST_ROOM), np.int32)
        self._known = kernels.Known(begin, end, tops, results, np.zeros(1, np.int64))
        hashes, start, items, slots, size = no_runs(FIRST_ROOM, 4 * FIRST_ROOM)
        self._leaders = kernels.Leaders(hashes, start, items, np.zeros(FIRST_ROOM, np.int32), slots, size)
        self._fresh = np.zeros(0, np.int32)
        self._n_states = len(tables.action)
        row, at = np.full((2, n_all), -1, np.int32)
        states, inner = np.zeros((2, 1 << 8, self._facts.allowed.shape[1]), np.uint8)
        self._explored = kernels.Explored(row, at, states, inner, np.zeros(1, np.int64))

    def leader(self, continuations: Int32) -> Int32:
        """The leaders of continuations: (n,) int32; REFUSED_CONTINUATION for those of no stack."""
        return self._leader[continuations]

    def begin(self, level: int) -> tuple[Int32, Int32]:
        """The pairs (leader, state on top) to explore for the continuations of a level.

        A pair that was explored for a root only is here again if a longer continuation now ends in
        it, so that its result is learned.

        Returns two arrays (n,) int32: the leaders and the states.
        """
        members = self._levels[level]
        if level == 0:
            self._leader[members] = members
        else:
            self._lead(members)
        leaders = self._leader[members]
        while len(self._explored.states) < self._explored.n_rows[0] + len(members):
            self._explored = self._explored._replace(
                states=doubled(self._explored.states), inner=doubled(self._explored.inner)
            )
        found = np.empty(len(members), np.int32)
        fresh, inner = np.zeros((2, len(members), self._facts.allowed.shape[1]), np.uint8)
        n = kernels.fresh_pairs(members, leaders, self._facts, self._explored, found, fresh, inner)
        if not n:
            return found[:0], found[:0]
        at, states = np.nonzero(np.unpackbits(fresh[:n], axis=1, count=self._n_states, bitorder="little"))
        return found[at], states.astype(np.int32)

    def _lead(self, members: Int32) -> None:
        """Find the leaders of the continuations of a level."""
        fresh, items = np.empty(len(members), np.int32), np.empty(1 + self._n_states, np.int32)
        done = np.zeros(2, np.int64)
        while (
            code := kernels.lead(
                members,
                self.next_continuation,
                self._leader,
                self._facts,
                self._known,
                self._leaders,
                done,
                fresh,
                items,
            )
        ) == kernels.FULL:
            self._leaders = grown(self._leaders)
        # INVARIANT: shorter continuations come first
        assert code == 0
        self._fresh = fresh[: done[1]]

    def is_inner(self, continuation_of: Int32, top_of: Int32) -> npt.NDArray[np.bool_]:
        """For each continuation and state on top, whether a longer continuation can get there.

        continuation_of, top_of : (n,) int32. Returns (n,) bool.
        """
        words = self._explored.inner[self._explored.row[continuation_of], top_of >> 3]
        return np.asarray(words >> (top_of & 7) & 1, np.bool_)

    def met(self) -> Iterator[tuple[int, Int32, Int32]]:
        """The leaders since the last call, by the column that they begin with.

        Yields the column; the leaders, (n,) int32; and the results of what follows, (n, n_entered)
        int32, one for each state entered by the column.
        """
        leaders, fresh = self._leaders, self._fresh
        if not len(fresh):
            return
        begin = leaders.start[fresh]
        symbols = leaders.items[begin]
        by_column = symbols.argsort(kind="stable")
        columns = symbols[by_column]
        bounds = [0, *((columns[1:] != columns[:-1]).nonzero()[0] + 1).tolist(), len(columns)]
        for i, j in pairwise(bounds):
            mine, column = by_column[i:j], int(columns[i])
            results = leaders.items[begin[mine, None] + self._behind[: self._n_entered[column]]]
            yield column, leaders.leader[fresh[mine]], results
        self._fresh = fresh[:0]

    def learn(self, continuation_of: Int32, top_of: Int32, results: Int32) -> None:
        """Note the results of continuations with a state on top.

        continuation_of, top_of, results : (n,) int32; a result is REFUSED, ACCEPTED or a
            configuration set. Those of a continuation are beside each other, by state.
        """
        done = np.zeros(1, np.int64)
        while not kernels.learn(continuation_of, top_of, results, self._known, done):
            self._known = self._known._replace(tops=doubled(self._known.tops), results=doubled(self._known.results))


def _by_length(roots: Int32, next_continuation: Int32, n_all: int) -> tuple[list[Int32], Int64]:
    """The continuations that roots end in, by how many symbols they read.

    n_all : continuations and sets.

    Returns for each length continuations or sets, ascending, without WHATEVER; and all that read a
    symbol, sorted by what follows it.
    """
    n = len(next_continuation)
    is_met = np.zeros(n_all, np.bool_)
    length = np.zeros(n_all, np.int32)
    here = roots
    while len(here):
        is_met[here] = True
        after = next_continuation[here[here >= 0]]
        here = after[~is_met[after]]
    is_met[WHATEVER] = False
    met = np.flatnonzero(is_met[:n])
    here, at = next_continuation[met], met
    while len(at):
        length[at] += 1
        at, here = at[here >= 0], next_continuation[here[here >= 0]]
    levels = [(np.flatnonzero(is_met[n:]) - (n_all - n)).astype(np.int32)]
    order = np.argsort(length[met], kind="stable")
    bounds = np.searchsorted(length[met][order], np.arange(1, int(length.max(initial=0)) + 2)).tolist()
    levels += [met[order[i:j]].astype(np.int32) for i, j in pairwise(bounds)]
    return levels, met[np.argsort(next_continuation[met], kind="stable")]


def _bits(truths: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Rows of truths as bits: (n_rows, n_bytes) uint8; bit i of byte b is column 8 b + i.

    C-contiguous, also where `truths` is not.
    """
    return np.ascontiguousarray(np.packbits(truths, axis=1, bitorder="little"))
