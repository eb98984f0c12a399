"""The order in which continuations are explored: shorter ones first, one of equivalent ones.

In: roots. Out: for each length the continuations to explore.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, REFUSED_CONTINUATION
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


class Levels:
    """The continuations to explore, shorter ones first, each with the states that can be on top.

    Two continuations that begin with the same symbol are equivalent if what follows has the same
    result in every state that the symbol leads to. Only the first of them, the *leader*, is
    explored. Shorter continuations come before longer ones, and those of one length in the order of
    their numbers.

    next_continuation : (n_continuations,) int32; the leader of what follows the first symbol.
    leader : continuation -> its leader, or REFUSED_CONTINUATION if no stack accepts it.
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
        self.roots: list[tuple[int, int]] = [(c, kind) for c, kind in np.reshape(roots, (-1, 2)).tolist()]
        self.symbols: list[int] = continuations.symbols.tolist()
        self.next_continuation = continuations.next_continuation
        next_continuation: list[int] = self.next_continuation.tolist()
        self.leader: dict[int, int] = {WHATEVER: WHATEVER}
        self.leaders: list[int] = []
        self._leader_of_key: dict[tuple[int, bytes], int] = {}
        self._met: dict[int, list[tuple[int, Int32]]] = {}
        self._known: dict[int, tuple[Int32, Int32]] = {}
        """By continuation the states on top, ascending, and their results."""
        self._before: dict[int, set[int]] = {}
        self._kinds: dict[int, set[int]] = {}
        length = {WHATEVER: 0}
        for continuation, kind in self.roots:
            self._kinds.setdefault(continuation, set()).add(kind)
            chain = []
            here = continuation
            while here not in length and here >= 0:
                chain.append(here)
                after = next_continuation[here]
                self._before.setdefault(after, set()).add(self.symbols[here])
                here = after
            n = length.setdefault(here, 0)
            for here in reversed(chain):
                n += 1
                length[here] = n
        self.n_levels = 1 + max(length.values())
        self._levels: list[list[int]] = [[] for _ in range(self.n_levels)]
        for continuation in sorted(length):
            if continuation != WHATEVER:
                self._levels[length[continuation]].append(continuation)
        n_columns = tables.action.shape[1]
        # without the states of dead ends there may be modes that no state is in any more
        n_modes = max(int(mode_of_state.max()) + 1, max(self.symbols, default=0) - n_columns + 1)
        self.n_columns = n_columns
        in_mode = [mode_of_state == mode for mode in range(n_modes)]
        # a mode symbol reads nothing: the state on top stays
        self._accessed = [np.flatnonzero(tables.accessing == c) for c in range(n_columns)]
        self._accessed += [np.flatnonzero(states) for states in in_mode]
        self._accepted = [np.full(len(states), ACCEPTED, np.int32) for states in self._accessed]
        self._acts = np.concatenate([tables.action != 0, np.stack(in_mode, axis=1)], axis=1)
        self._explored: dict[int, npt.NDArray[np.bool_]] = {}
        self._inner: dict[int, npt.NDArray[np.bool_]] = {}

    def begin(self, level: int) -> tuple[Int32, Int32]:
        """The pairs (leader, state on top) to explore for the continuations of a level.

        A pair that was explored for a root only is here again if a longer continuation now ends in
        it, so that its result is learned.

        Returns two arrays (n,) int32: the leaders and the states.
        """
        wanted: dict[int, tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]] = {}
        n_states = len(self._acts)
        for continuation in self._levels[level]:
            leader = continuation
            if continuation >= 0:
                symbol = self.symbols[continuation]
                after = self.leader[int(self.next_continuation[continuation])]
                self.next_continuation[continuation] = after
                results = self._results_behind(symbol, after)
                if after == REFUSED_CONTINUATION or (after != WHATEVER and not results.any()):
                    self.leader[continuation] = REFUSED_CONTINUATION
                    continue
                leader = self._leader_of_key.setdefault((symbol, results.tobytes()), continuation)
                if leader == continuation and symbol < self.n_columns:
                    self._met.setdefault(symbol, []).append((continuation, results))
            self.leader[continuation] = leader
            if leader not in self._explored:
                self.leaders.append(leader)
                self._explored[leader] = np.zeros(n_states, np.bool_)
                self._inner[leader] = np.zeros(n_states, np.bool_)
            outer, inner = wanted.setdefault(leader, (np.zeros(n_states, np.bool_), np.zeros(n_states, np.bool_)))
            for before in self._before.get(continuation, ()):
                inner[self._accessed[before]] = True
            for kind in self._kinds.get(continuation, ()):
                outer |= self.allowed[kind]
        fresh: dict[int, Int64] = {}
        for leader, (outer, inner) in wanted.items():
            if leader >= 0:
                outer &= self._acts[:, self.symbols[leader]]  # the other states refuse it at once
            # a pair that was a root's only, and is now inside a longer continuation, is explored
            # again
            fresh[leader] = np.flatnonzero((outer & ~self._explored[leader]) | (inner & ~self._inner[leader]))
            self._inner[leader] |= inner
            self._explored[leader] |= outer | inner
        return (
            np.repeat(np.array(list(fresh), np.int32), [len(one) for one in fresh.values()]),
            np.concatenate([np.zeros(0, np.int64), *fresh.values()]).astype(np.int32),
        )

    def is_inner(self, continuation_of: Int32, top_of: Int32) -> npt.NDArray[np.bool_]:
        """For each continuation and state on top, whether a longer continuation can get there.

        continuation_of, top_of : (n,) int32. Returns (n,) bool.
        """
        continuations, inverse = np.unique(continuation_of, return_inverse=True)
        table = np.stack([self._inner[continuation] for continuation in continuations.tolist()])
        return np.asarray(table[inverse.reshape(-1), top_of], np.bool_)

    def met(self) -> Iterator[tuple[int, Int32, Int32]]:
        """The leaders since the last call, by the column that they begin with.

        Yields the column; the leaders, (n,) int32; and the results of what follows, (n, n_entered)
        int32, one for each state entered by the column.
        """
        for column, found in sorted(self._met.items()):
            leaders = np.array([leader for leader, _ in found], np.int32)
            yield column, leaders, np.stack([results for _, results in found])
        self._met = {}

    def _results_behind(self, symbol: int, after: int) -> Int32:
        """The result of continuation `after` in each state that a symbol leads to: (n,) int32.

        (0,) if all refuse it.
        """
        if after == WHATEVER:
            return self._accepted[symbol]
        accessed = self._accessed[symbol]
        if after == REFUSED_CONTINUATION or not len(accessed):
            return np.zeros(0, np.int32)
        tops, results = self._known[after]
        at = np.minimum(np.searchsorted(tops, accessed), len(tops) - 1)
        # INVARIANT: shorter continuations come first
        assert (tops[at] == accessed).all()
        found: Int32 = results[at]
        return found

    def learn(self, continuation_of: Int32, top_of: Int32, results: Int32) -> None:
        """Note the results of continuations with a state on top.

        continuation_of, top_of, results : (n,) int32; a result is REFUSED, ACCEPTED or a
            configuration set. Those of a continuation are beside each other, by state.
        """
        begins = np.flatnonzero(np.diff(continuation_of, prepend=REFUSED_CONTINUATION))
        for begin, end in pairwise([*begins.tolist(), len(continuation_of)]):
            continuation = int(continuation_of[begin])
            tops, found = top_of[begin:end], results[begin:end]
            known = self._known.get(continuation)
            if known is not None:  # results of other states
                tops, firsts = np.unique(np.concatenate([known[0], tops]), return_index=True)
                found = np.concatenate([known[1], found])[firsts]
            self._known[continuation] = tops, found
