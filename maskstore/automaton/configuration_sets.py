"""How much of its stack a parser must see before it is decided whether it accepts a continuation.

Take an LR parser that knows nothing of its stack. To read a continuation it asks for one cell (LR
state) after the other, from the top down. Between two cells it is in a *configuration*: a number of
cells still to discard, a nonterminal to push onto the next cell, and what is left of the
continuation. With conflicts, or with several terminals in a lookahead set, it can be in several
configurations at once: a *configuration set*. This module follows all of these sets once, over all
stacks that the LR(0) automaton allows. Then

- a set that accepts, or refuses, every stack that can still follow is decided early;
- sets that agree on all stacks that can follow their last cell are merged.

Example: with `[` on top of the stack, a JSON parser reads NUMBER and RSQB of the continuation
NUMBER, RSQB, RBRACE, and reduces the list. Whether RBRACE may follow depends on the next cell. On
the stack of `{"k": [` it is `:`, and RBRACE is accepted.

The configuration sets are the states of an automaton that reads stacks, and the code calls them
states. Of equivalent continuations only one is explored (`equivalence`).

The results at the first cell are the verdicts of streamlining: always, never and jointly legal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.errors import LimitError
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.automaton import _explore_kernels as kernels
from maskwright.maskstore.automaton import exploration_tables as exploring
from maskwright.maskstore.automaton.equivalence import BYTES_LIMIT, Equivalence
from maskwright.maskstore.automaton.levels import Levels
from maskwright.maskstore.automaton.pair_classes import PairClasses
from maskwright.maskstore.tokens._hash_kernels import add_keys, with_room
from maskwright.maskstore.tokens.classes import numbered
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations

NEVER_LEGAL = -1
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ConfigurationSets:
    """The configuration sets of some continuations, closed over all stacks.

    Pairs (configuration set, last cell read) are decided early where possible; the others are
    merged. A *root* is a continuation with the states that can be on top where it begins.
    Equivalent roots share one number: they are one *distinct* root.

    root_of : (n_roots,) int32; the number of each root among the distinct ones, or NEVER_LEGAL.
    root_start : (n_distinct + 1,) int64. The rows of distinct root r are root_start[r] to
        root_start[r + 1].
    root_cell, root_state : (n_rows,) int32; a first cell on which some stack accepts the root, and
        the result there: ACCEPTED or a configuration set.
    followed : what follows each pair of a configuration set and a cell.
    n_states, n_edges : configuration sets, and the edges between pairs.
    n_pairs, n_classes : pairs (configuration set, last cell), and the classes of those that are not
        decided.
    n_early : pairs that are decided early.
    """

    parser: exploring.Parser
    root_of: Int32
    root_start: Int64
    root_cell: Int32
    root_state: Int32
    followed: exploring.Followed
    n_states: int
    n_pairs: int
    n_edges: int
    n_classes: int
    n_early: int


class _Work:
    """An exploration in progress."""

    def __init__(
        self,
        parser: exploring.Parser,
        continuations: Continuations,
        next_continuation: Int32,
        equivalence: Equivalence,
        bytes_limit: int,
    ) -> None:
        self.equivalence = equivalence
        self.bytes_limit = bytes_limit
        self.n_cells = len(parser.action)
        sequences = exploring.Continuations(continuations.symbols, next_continuation)
        self.x = exploring.new_exploration(
            parser, sequences, equivalence.positions, equivalence.outcomes, continuations.n_words
        )
        for row in continuations.set_bits():
            self.x = self.x._replace(sets=with_room(self.x.sets, 1))
            kernels.number_of_set(row, self.x.sets)

    @property
    def n_pairs(self) -> int:
        """The number of pairs so far."""
        return int(self.x.pairs.size[0])

    def go_on(self, code: int) -> None:
        """Make ready for another call of a kernel that stopped with a code.

        Raises: LimitError if another call cannot help, or the tables are past their limit.
        """
        if code == exploring.ENDLESS:
            raise LimitError(
                f"the grammar's parser reduces more than {exploring.MAX_STEPS} times while it reads a token, or has more than "
                f"{exploring.MAX_BRANCHES} readings at once: the grammar is too ambiguous, or a token opens and closes too much; make the "
                "rules less ambiguous, load the grammar with conflicts='shift', or use a vocabulary without such tokens"
            )
        if code == exploring.TOO_DEEP:
            # BOUND: each of a continuation's symbols adds one cell when it is shifted, and at most
            # MAX_STEPS actions come between two shifts
            scratch = self.x.scratch
            self.x = self.x._replace(scratch=exploring.new_scratch(2 * len(scratch.stack), len(scratch.bits)))
        if code == exploring.NO_SETS:
            code = exploring.FULL_SETS
        if code > 0:
            self.x = self.x.with_room(code)
            self.check_size()

    def check_size(self) -> None:
        """Raises: LimitError if the tables take more than the limit of bytes."""
        if self.x.n_bytes > self.bytes_limit:
            raise LimitError(
                f"this grammar's sequences need too many configuration sets (more than {self.bytes_limit >> 20} MiB of tables)"
            )

    def add_outcomes(self, column: int, continuations: Int32, results: Int32) -> None:
        """See `Equivalence.add`."""
        self.equivalence.add(column, continuations, results)
        if self.x.outcomes is not self.equivalence.outcomes:
            self.x = self.x._replace(outcomes=self.equivalence.outcomes)

    def learn(self, continuation_of: Int32, top_of: Int32, continuation_after: Int32) -> None:
        """Note facts for `continuation_after`: pairs of continuations that are equivalent.

        continuation_of, top_of, continuation_after : (n,) int32; a continuation, the state on top,
            and the equivalent continuation.
        """
        if not len(continuation_of):
            return
        codes = 2 * np.abs(continuation_of.astype(np.int64)) + (continuation_of < 0)
        known = with_room(self.x.known, len(codes))
        begin = int(known.size[0])
        end = begin + len(codes)
        known.keys[begin:end] = codes * self.n_cells + top_of
        known.value[begin:end] = continuation_after
        add_keys(known.keys, begin, end, known.slots)
        known.size[0] = end
        if known is not self.x.known:
            self.x = self.x._replace(known=known)


PAUSE = 1 << 20
"""Units of work after which a kernel returns, so that Ctrl-C is obeyed.

It takes some tenths of a second at most.
"""

STEPS = 100
"""Steps of progress for each length of continuations: half for first cells, half for the rest."""

_NO_CONTINUATION = 1 << 30


def explore(
    tables: LrTables,
    mode_of_state: Int32,
    continuations: Continuations,
    roots: npt.ArrayLike,
    allowed: npt.NDArray[np.bool_],
    progress: Progress | None = None,
    bytes_limit: int = BYTES_LIMIT,
) -> ConfigurationSets:
    """Close the configuration sets of some roots over all stacks.

    Shorter continuations are explored first. What is learned about them merges longer ones that end
    in them.

    mode_of_state : (n_states,) int32; the lexing mode of each LR state. Symbol n_columns + m of a
        continuation requires a state of mode m on top.
    roots : (n_roots, 2) integers; the continuation and the kind of each, a row of `allowed`.
    allowed : (n_kinds, n_states) bool; the states that can be on top where a root of each kind
        begins.
    progress : called with the steps done and the steps in all, STEPS for each length of
        continuations, at least once in each PAUSE.
    bytes_limit : most bytes of the tables of the exploration, and of the shapes of `equivalence`.

    Raises: LimitError if one token takes too many reductions or readings, or the tables take more
        than `bytes_limit` bytes.
    """
    n_columns = tables.action.shape[1]
    columns = [symbol for symbol in np.unique(continuations.symbols).tolist() if symbol < n_columns]
    levels = Levels(tables, mode_of_state, continuations, roots, allowed)
    equivalence = Equivalence(tables, max(1, len(continuations)), columns, bytes_limit)
    work = _Work(
        exploring.parser_of(tables, mode_of_state), continuations, levels.next_continuation, equivalence, bytes_limit
    )
    found: list[tuple[Int32, Int32, Int32]] = []
    classes = PairClasses()
    first_continuation = np.full(1 << 10, _NO_CONTINUATION, np.int32)
    first_continuation[: exploring.FIRST_STATE] = exploring.REFUSED_CONTINUATION, WHATEVER
    for level in range(levels.n_levels):
        continuation_new, top_new = levels.begin(level)
        if not len(continuation_new):
            continue
        for column, met, results in levels.met():
            work.add_outcomes(column, met, results)
        report = _Within(level, levels.n_levels, progress)
        pair_new = _explore_tops(work, continuation_new, top_new, report)
        n_before = int(work.x.cursor[exploring.NEXT_PAIR])
        while (code := kernels.explore(work.x, PAUSE)) != exploring.DONE:
            work.go_on(code)
            report.half(1, int(work.x.cursor[exploring.NEXT_PAIR]) - n_before, work.n_pairs - n_before)
        report.end()
        pairs = work.x.pairs
        classes.extend(work.n_cells, work.n_pairs, pairs.keys, pairs.edge_start, work.x.edges)
        found.append((continuation_new, top_new, pair_new))
        mine = classes.of_pair[pair_new]
        # the first continuation that was met in a class represents all of it
        while len(first_continuation) <= classes.n_classes + exploring.FIRST_STATE:
            first_continuation = np.concatenate(
                [first_continuation, np.full_like(first_continuation, _NO_CONTINUATION)]
            )
        fresh = np.flatnonzero(first_continuation[mine] == _NO_CONTINUATION)[::-1]
        first_continuation[mine[fresh]] = continuation_new[fresh]
        needed = levels.is_inner(continuation_new, top_new)
        continuation_new, top_new, mine = continuation_new[needed], top_new[needed], mine[needed]
        levels.learn(continuation_new, top_new, classes.least[mine])
        work.learn(continuation_new, top_new, first_continuation[mine])
    work.check_size()
    none = np.zeros(0, np.int32)
    continuation_of, top_of, pair_of = (
        (np.concatenate([none, *parts]) for parts in zip(*found, strict=True)) if found else (none,) * 3
    )
    return _merged(work, classes, levels, continuation_of, top_of, pair_of)


class _Within:
    """Reports the progress within one level, whose work nobody knows beforehand. It never falls."""

    def __init__(self, level: int, n_levels: int, progress: Progress | None) -> None:
        self._begin, self._total = STEPS * level, STEPS * n_levels
        self._progress = progress
        self._most = 0

    def half(self, half: int, done: int, known: int) -> None:
        self._most = max(self._most, STEPS * (half * known + done) // (2 * max(known, 1)))
        self._tell(min(self._most, STEPS - 1))

    def end(self) -> None:
        self._tell(STEPS)

    def _tell(self, steps: int) -> None:
        if self._progress is not None:
            self._progress(self._begin + steps, self._total)


def _explore_tops(work: _Work, continuation_of: Int32, top_of: Int32, report: _Within) -> Int32:
    """The results of continuations, each with a state on top: (n,) int32.

    A result is REFUSED, ACCEPTED or FIRST_STATE + a pair. Of equivalent continuations only the
    representative is explored.
    """
    representative_of = np.zeros(len(continuation_of), np.int32)
    next_index = np.zeros(1, np.int64)
    while (
        code := kernels.representatives_of(continuation_of, top_of, next_index, representative_of, work.x)
    ) != exploring.DONE:
        work.go_on(code)
        report.half(0, 0, 1)
    keys = representative_of.astype(np.int64) * work.n_cells + top_of
    group, firsts = numbered(keys)
    is_open = representative_of[firsts] != exploring.REFUSED_CONTINUATION
    pair_of_group = np.full(len(firsts), exploring.REFUSED, np.int32)
    opened = firsts[is_open]
    pair_of_open = np.zeros(len(opened), np.int32)
    next_index[:] = 0
    representatives, tops = representative_of[opened], top_of[opened]
    until = PAUSE // kernels.NEW_STEP
    while (
        code := kernels.explore_tops(representatives, tops, next_index, pair_of_open, work.x, until)
    ) != exploring.DONE:
        work.go_on(code)
        report.half(0, int(next_index[0]), len(opened))
    pair_of_group[is_open] = pair_of_open
    return pair_of_group[group]


def _merged(
    work: _Work, classes: PairClasses, levels: Levels, continuation_of: Int32, top_of: Int32, pair_of: Int32
) -> ConfigurationSets:
    """The result. Steps lead to the least state of each class, and equal roots share a number."""
    n_edges = int(work.x.cursor[exploring.N_EDGES])
    edges = work.x.edges[:n_edges]
    known = classes.least[classes.of_pair]
    for begin in range(0, len(edges), PAUSE):
        part = edges[begin : begin + PAUSE]
        part[:] = known[part]
    state = classes.least[classes.of_pair[pair_of]]
    # by continuation, then top
    _, order = np.unique(continuation_of.astype(np.int64) * work.n_cells + top_of, return_index=True)
    leaders, kinds = levels.leader(levels.roots[:, 0]), levels.roots[:, 1]
    n_kinds = len(levels.allowed)
    distinct, first, number = np.unique(
        leaders.astype(np.int64) * n_kinds + kinds, return_index=True, return_inverse=True
    )
    by_first = np.argsort(first)
    leader, kind = np.divmod(distinct[by_first], n_kinds)
    # no continuation is REFUSED_CONTINUATION
    starts, ends = (np.searchsorted(continuation_of[order], leader, side=side) for side in ("left", "right"))
    which = np.repeat(np.arange(len(leader)), ends - starts)
    at = order[np.arange(len(which)) - np.repeat(np.cumsum(ends - starts) - ends, ends - starts)]
    is_legal = levels.allowed[kind[which], top_of[at]] & (state[at] != exploring.REFUSED)
    at, sizes = at[is_legal], np.bincount(which[is_legal], minlength=len(leader))
    numbers = np.full(len(leader), NEVER_LEGAL, np.int32)
    numbers[by_first[sizes > 0]] = np.arange((sizes > 0).sum())
    root_of = numbers[number.reshape(-1)]
    return ConfigurationSets(
        parser=work.x.parser,
        root_of=root_of,
        root_start=np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.int64),
        root_cell=top_of[at],
        root_state=state[at].astype(np.int32),
        followed=exploring.Followed(work.x.pairs, edges),
        n_states=int(work.x.states.size[0]) - exploring.FIRST_STATE,
        n_pairs=work.n_pairs,
        n_edges=n_edges,
        n_classes=classes.n_classes,
        n_early=int((classes.of_pair[2:] < exploring.FIRST_STATE).sum()),
    )
