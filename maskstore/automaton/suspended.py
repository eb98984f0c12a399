"""Suspended parses: what has to be seen of a parser's stack before it is known whether the parser accepts a sequence.

An LR parser that reads a sequence from a stack of which it knows nothing asks for one cell (LR state) after the other, from the top
down. Between two of them it is in a *configuration* (cells still to discard, nonterminal to push on the next, rest of the sequence); with
conflicts, or at the end check for several terminals, in a set of them: a *suspended state*. All states reachable over all stacks
that the LR(0) automaton knows are followed here, once; then

- a state that accepts (or refuses) every stack that can still follow is decided early,
- states that agree on all stacks that can follow their last cell are merged.

Rests that read alike from a place are explored once (`twins`).

At the first cell these are the facts "always", "never" and "jointly legal" of streamlining (DESIGN's exact LR deciders).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.automaton import _parse_kernels as kernels
from maskwright.maskstore.automaton.levels import Levels
from maskwright.maskstore.automaton.pair_classes import PairClasses
from maskwright.maskstore.automaton.twins import Twins
from maskwright.maskstore.tokens import _kernels
from maskwright.maskstore.tokens.rests import WHATEVER, Rests

NEVER_LEGAL = -1
_compiled: Any = kernels
"""The same for calls with unpacked arguments, which numba's stubs do not describe."""

Progress = Callable[[int, int], None]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


def flatten_tables(tables: LrTables, mode_of_state: Int32) -> Int32:
    """LALR tables as one int32 array: a header of `HEADER` levels, then the tables one after the other, then each state's lexing mode."""
    parts: list[tuple[int, Int32]] = [
        (kernels.ACTION, tables.action),
        (kernels.GOTO, tables.goto),
        (kernels.RULE_LHS, tables.rule_lhs),
        (kernels.RULE_LENGTH, tables.rule_length),
        (kernels.ALTERNATIVES, tables.alternatives),
        (kernels.DEFAULT, tables.default_rule),
        (kernels.PREDECESSOR_START, tables.predecessor_start),
        (kernels.PREDECESSORS, tables.predecessors),
        (kernels.MODE, mode_of_state),
    ]
    header = np.zeros(kernels.HEADER, np.int32)
    header[kernels.N_STATES] = len(tables.action)
    header[kernels.N_COLUMNS] = tables.action.shape[1]
    header[kernels.N_NONTERMINALS] = tables.goto.shape[1]
    header[kernels.N_RULES] = len(tables.rule_lhs)
    at = kernels.HEADER
    flat = [header]
    for place, part in parts:
        header[place] = at
        flat.append(part.astype(np.int32).ravel())
        at += part.size
    if tables.goto.shape[1] >= 1 << 18 or int(tables.rule_length.max(initial=0)) >= 1 << 12:
        raise LimitError(
            "the grammar has 2^18 nonterminals or more, or a rule of 4,096 symbols or more: too large to suspend its parses"
        )
    return np.concatenate(flat)


@dataclass(frozen=True)
class Suspended:
    """All suspended states of some rests, closed over all stacks, decided early and merged.

    root_of : for each root asked about its number among the distinct ones, or NEVER_LEGAL.
    root_start : (n_distinct + 1,) int64. root_cell, root_state : int32; the cells on which a distinct root is not refused by every stack
        below, and what it becomes there: ACCEPTED or a suspended state.
    step_keys : int64, step_result : int32, step_slots : int32; hash table (`slot_of`): state * n_cells + cell -> REFUSED, ACCEPTED or a
        state, the least of its class.
    n_pairs, n_classes : pairs of state and last cell, before and after merging. n_early : pairs decided early.
    """

    lr: Int32
    root_of: Int32
    root_start: Int64
    root_cell: Int32
    root_state: Int32
    step_keys: Int64
    step_result: Int32
    step_slots: Int32
    n_states: int
    n_pairs: int
    n_edges: int
    n_classes: int
    n_early: int


class _Tables:
    """The growing tables of an exploration."""

    def __init__(self, lr: Int32, rests: Rests, twins: Twins) -> None:
        self.lr = lr
        self.twins = twins
        self.rest_symbol = np.array(rests.symbols or [0], np.int32)
        self.rest_next = np.array(rests.nexts or [0], np.int32)
        self.n_cells = int(lr[kernels.N_STATES])
        self.n_known = 0
        self.known_keys = np.zeros(8, np.int64)
        self.known_rest = np.zeros(8, np.int32)
        self.known_slots = free_slots(8)
        self.sizes = np.zeros(16, np.int64)
        capacity = 1 << 16
        self.conf_keys = np.zeros(capacity, np.int64)
        self.conf_parts = np.zeros((capacity, 3), np.int32)
        self.conf_slots = free_slots(capacity)
        self.set_keys = np.zeros(capacity, np.int64)
        self.set_bits = np.zeros((capacity, rests.n_words), np.uint64)
        self.set_slots = free_slots(capacity)
        self.starts = np.zeros(capacity + 1, np.int64)
        self.items = np.zeros(capacity, np.int32)
        self.hashes = np.zeros(capacity, np.int64)
        self.state_slots = free_slots(capacity)
        self.twin_keys = np.zeros(capacity, np.int64)
        self.twin_rest = np.zeros(capacity, np.int32)
        self.twin_slots = free_slots(capacity)
        self.step_keys = np.zeros(capacity, np.int64)
        self.step_result = np.zeros(capacity, np.int32)
        self.step_slots = free_slots(capacity)
        self.pair_keys = np.zeros(capacity, np.int64)
        self.pair_slots = free_slots(capacity)
        self.edge_start = np.zeros(capacity + 1, np.int64)
        self.edges = np.zeros(capacity, np.int32)
        self.scratch = scratch(kernels.FIRST_DEPTH)
        self.sizes[kernels.N_SUSPENDED] = kernels.FIRST_STATE
        for row in rests.set_bits():
            kernels.terminal_set(row, self.sizes, self.set_keys, self.set_bits, self.set_slots)

    def parsing(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self.lr, self.rest_symbol, self.rest_next, self.known_keys, self.known_rest, self.known_slots, self.twins.where,
            self.twins.outcomes, self.twin_keys, self.twin_rest, self.twin_slots, self.sizes, self.conf_keys,
            self.conf_parts, self.conf_slots, self.set_keys, self.set_bits, self.set_slots,
            self.starts, self.items, self.hashes, self.state_slots, self.step_keys, self.step_result, self.step_slots,
            self.pair_keys, self.pair_slots,
        )  # fmt: skip

    @property
    def n_bytes(self) -> int:
        return sum(v.nbytes for v in vars(self).values() if isinstance(v, np.ndarray))

    def grow(self, which: int) -> None:
        sizes = self.sizes
        if which == 1:
            self.conf_keys, self.conf_parts = doubled(self.conf_keys), doubled(self.conf_parts)
            self.conf_slots = free_slots(len(self.conf_keys))
            kernels.refill(self.conf_keys, sizes[kernels.N_CONFIGURATIONS], self.conf_slots)
        elif which == 2:
            self.set_keys, self.set_bits = doubled(self.set_keys), doubled(self.set_bits)
            self.set_slots = free_slots(len(self.set_keys))
            kernels.refill_hashed(self.set_keys, 0, sizes[kernels.N_SETS], self.set_slots)
        elif which == 3:
            self.hashes, self.starts, self.items = doubled(self.hashes), doubled(self.starts), doubled(self.items)
            self.state_slots = free_slots(len(self.hashes))
            kernels.refill_hashed(self.hashes, kernels.FIRST_STATE, sizes[kernels.N_SUSPENDED], self.state_slots)
        elif which == 4:
            self.step_keys, self.step_result = doubled(self.step_keys), doubled(self.step_result)
            self.step_slots = free_slots(len(self.step_keys))
            kernels.refill(self.step_keys, sizes[kernels.N_STEPS], self.step_slots)
        elif which == 5:
            self.pair_keys, self.edge_start = doubled(self.pair_keys), doubled(self.edge_start)
            self.pair_slots = free_slots(len(self.pair_keys))
            kernels.refill(self.pair_keys, sizes[kernels.N_PAIRS], self.pair_slots)
        elif which == 6:
            self.edges = doubled(self.edges)
        elif which == 7:
            self.twin_keys, self.twin_rest = doubled(self.twin_keys), doubled(self.twin_rest)
            self.twin_slots = free_slots(len(self.twin_keys))
            kernels.refill(self.twin_keys, sizes[kernels.N_TWINS], self.twin_slots)

    def learn(self, rest_of: Int32, top_of: Int32, rest_after: Int32) -> None:
        """Facts for `rest_after`: behind this state on top the first rest may be read as the second."""
        codes = np.where(rest_of >= 0, rest_of.astype(np.int64) * 2, -rest_of.astype(np.int64) * 2 + 1)
        n = self.n_known + len(codes)
        while n > len(self.known_keys):
            self.known_keys, self.known_rest = doubled(self.known_keys), doubled(self.known_rest)
            self.known_slots = free_slots(len(self.known_keys))
            kernels.refill(self.known_keys, self.n_known, self.known_slots)
        self.known_keys[self.n_known : n] = codes * self.n_cells + top_of
        self.known_rest[self.n_known : n] = rest_after
        kernels.add_keys(self.known_keys, self.n_known, n, self.known_slots)
        self.n_known = n


def scratch(depth: int) -> tuple[npt.NDArray[Any], ...]:
    """What one step of a parse works in, on stacks of up to `depth` cells."""
    return (
        np.zeros(depth, np.int32),
        np.zeros((kernels.MAX_BRANCHES, depth), np.int32),
        np.zeros(kernels.MAX_BRANCHES, np.int32),
        np.zeros(kernels.MAX_BRANCHES, np.int32),
        np.zeros(256, np.int32),
    )


def free_slots(capacity: int) -> Int32:
    return np.full(2 * capacity, -1, np.int32)


def doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([array, np.zeros_like(array)])


BYTES_LIMIT = 3 << 30
PAUSE = 1 << 20
"""Work after which a kernel comes back, some tenths of a second at most: a pause in which Ctrl-C is obeyed."""

STEPS = 100
"""Of the progress that is reported for one length of rests: half while their first steps are made, half for what follows them."""

_NO_REST = 1 << 30

_TOO_MANY = "the parses of this grammar's sequences suspend in too many ways (more than {} MiB of tables)"


def explore(
    tables: LrTables,
    mode_of_state: Int32,
    rests: Rests,
    roots: Sequence[tuple[int, int]],
    allowed: npt.NDArray[np.bool_],
    progress: Progress | None = None,
    bytes_limit: int = BYTES_LIMIT,
) -> Suspended:
    """Close the suspended states of some roots over all stacks.

    mode_of_state : (n_states,) int32; a rest's symbol past the columns, n_columns + m, asks for mode m on top.
    roots : rest, and row of `allowed`. allowed : (n_kinds, n_states) bool; the states that can be on top when a root's rest begins.

    progress : called with the steps done and all steps, STEPS for each length of rests, at least at each PAUSE.

    Shorter rests come first: what they are equivalent to after each state makes the longer ones that end in them fewer.

    Raises LimitError where one token takes too many reductions or readings, or the tables more than `bytes_limit` bytes.
    """
    n_columns = tables.action.shape[1]
    columns = sorted({symbol for symbol in rests.symbols if symbol < n_columns})
    work = _Tables(flatten_tables(tables, mode_of_state), rests, Twins(tables, max(1, len(rests.symbols)), columns))
    levels = Levels(tables, mode_of_state, rests, roots, allowed)
    found: list[tuple[Int32, Int32, Int32]] = []
    classes = PairClasses()
    first_rest = np.full(1 << 10, _NO_REST, np.int32)
    first_rest[: kernels.FIRST_STATE] = kernels.REFUSED_REST, WHATEVER
    for level in range(levels.n_levels):
        rest_new, top_new = levels.begin(level)
        if not len(rest_new):
            continue
        work.rest_next = levels.next_rest
        for column, met, results in levels.met():
            work.twins.add(column, met, results)
        report = _Within(level, levels.n_levels, progress)
        pair_new = _explore_tops(work, rest_new, top_new, bytes_limit, report)
        n_before = int(work.sizes[kernels.NEXT_PAIR])
        while (code := _compiled.explore(*work.parsing(), work.edge_start, work.edges, *work.scratch, PAUSE)) != 0:
            _after(code, work, bytes_limit)
            done, known = work.sizes[kernels.NEXT_PAIR], work.sizes[kernels.N_PAIRS]
            report.half(1, int(done) - n_before, int(known) - n_before)
        report.end()
        classes.extend(work.n_cells, int(work.sizes[kernels.N_PAIRS]), work.pair_keys, work.edge_start, work.edges)
        found.append((rest_new, top_new, pair_new))
        mine = classes.of_pair[pair_new]
        # the first rest met in a class stands for all
        while len(first_rest) <= classes.n_classes + kernels.FIRST_STATE:
            first_rest = np.concatenate([first_rest, np.full_like(first_rest, _NO_REST)])
        fresh = np.flatnonzero(first_rest[mine] == _NO_REST)[::-1]
        first_rest[mine[fresh]] = rest_new[fresh]
        needed = levels.is_inner(rest_new, top_new)
        levels.learn(rest_new[needed], top_new[needed], classes.least[mine[needed]])
        work.learn(rest_new[needed], top_new[needed], first_rest[mine[needed]])
    if work.n_bytes > bytes_limit:
        raise LimitError(_TOO_MANY.format(bytes_limit >> 20))
    none = np.zeros(0, np.int32)
    rest_of, top_of, pair_of = (
        (np.concatenate([none, *parts]) for parts in zip(*found, strict=True)) if found else (none,) * 3
    )
    return _merged(work, classes, levels, rest_of, top_of, pair_of)


class _Within:
    """Progress within one level, of which nobody knows beforehand how much it is: it never goes back."""

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


def _explore_tops(work: _Tables, rest_of: Int32, top_of: Int32, bytes_limit: int, report: _Within) -> Int32:
    """What becomes of rests, each with a state on top: REFUSED, ACCEPTED or FIRST_STATE + a pair; of twins once."""
    twin_of = np.zeros(len(rest_of), np.int32)
    next_place = np.zeros(1, np.int64)
    while (
        code := kernels.least_twins(
            rest_of, top_of, next_place, twin_of, work.rest_symbol, work.twins.where, work.twins.outcomes, work.sizes,
            work.twin_keys, work.twin_rest, work.twin_slots,
        )
    ) != 0:  # fmt: skip
        _after(code, work, bytes_limit)
        report.half(0, 0, 1)
    keys = twin_of.astype(np.int64) * work.n_cells + top_of
    group, firsts = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    n = _kernels.group_equal(keys, group, firsts, np.full(1 << max(4, (2 * len(keys)).bit_length()), -1, np.int32))
    is_open = twin_of[firsts[:n]] != kernels.REFUSED_REST
    pair_of_group = np.full(n, kernels.REFUSED, np.int32)
    opened = firsts[:n][is_open]
    pair_of_open = np.zeros(len(opened), np.int32)
    next_place[:] = 0
    twins, tops = twin_of[opened], top_of[opened]
    while (
        code := _compiled.explore_tops(
            twins, tops, next_place, pair_of_open, *work.parsing(), *work.scratch, PAUSE // kernels.NEW_STEP
        )
    ) != 0:  # fmt: skip
        _after(code, work, bytes_limit)
        report.half(0, int(next_place[0]), len(opened))
    pair_of_group[is_open] = pair_of_open
    return pair_of_group[group]


def _after(code: int, work: _Tables, bytes_limit: int) -> None:
    if code == kernels.ENDLESS:
        raise LimitError(
            f"while a token is read the grammar's parser reduces more than {kernels.MAX_STEPS} times, or has more than "
            f"{kernels.MAX_BRANCHES} readings at once: the grammar is too ambiguous, or a token opens and closes too much; make the "
            "rules less ambiguous, load the grammar with conflicts='shift', or use a vocabulary without such tokens"
        )
    if code == kernels.TOO_DEEP:
        # BOUND: a shift adds one cell for each of a rest's symbols, and between two there are at most MAX_STEPS
        work.scratch = scratch(2 * len(work.scratch[0]))
    if code > 0:
        work.grow(code)
        if work.n_bytes > bytes_limit:
            raise LimitError(_TOO_MANY.format(bytes_limit >> 20))


def _merged(
    work: _Tables, classes: PairClasses, levels: Levels, rest_of: Int32, top_of: Int32, pair_of: Int32
) -> Suspended:
    n_pairs = int(work.sizes[kernels.N_PAIRS])
    n_cells = work.n_cells
    n_steps = int(work.sizes[kernels.N_STEPS])
    kernels.merge_steps(
        n_steps,
        n_cells,
        work.step_keys,
        work.step_result,
        work.pair_keys,
        work.pair_slots,
        classes.of_pair,
        classes.least,
    )
    state = classes.least[classes.of_pair[pair_of]]
    _, order = np.unique(np.stack([rest_of, top_of]), axis=1, return_index=True)  # by rest, then by top
    rests, begins = np.unique(rest_of[order], return_index=True)
    of_rest = {
        int(rest): order[begin:end] for rest, begin, end in zip(rests, begins, [*begins[1:], len(order)], strict=False)
    }
    starts, cells, states = [0], [], []
    number: dict[tuple[int, int], int] = {}
    root_of = np.full(len(levels.roots), NEVER_LEGAL, np.int32)
    for root, (rest, kind) in enumerate(levels.roots):
        leader = levels.leader[rest]
        if leader == kernels.REFUSED_REST:
            continue
        if (leader, kind) not in number:
            at = of_rest.get(leader, order[:0])
            at = at[levels.allowed[kind][top_of[at]] & (state[at] != kernels.REFUSED)]
            if len(at):
                cells.append(top_of[at])
                states.append(state[at])
                starts.append(starts[-1] + len(at))
            number[leader, kind] = len(starts) - 2 if len(at) else NEVER_LEGAL
        root_of[root] = number[leader, kind]
    none = np.zeros(0, np.int32)
    return Suspended(
        lr=work.lr,
        root_of=root_of,
        root_start=np.array(starts, np.int64),
        root_cell=np.concatenate([none, *cells]),
        root_state=np.concatenate([none, *states]).astype(np.int32),
        step_keys=work.step_keys,
        step_result=work.step_result,
        step_slots=work.step_slots,
        n_states=int(work.sizes[kernels.N_SUSPENDED]) - kernels.FIRST_STATE,
        n_pairs=n_pairs,
        n_edges=int(work.sizes[kernels.N_EDGES]),
        n_classes=classes.n_classes,
        n_early=int((classes.of_pair[2:] < kernels.FIRST_STATE).sum()),
    )
