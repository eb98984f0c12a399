"""Which continuations are equivalent, so that only one of them is explored (`configuration_sets`).

Two continuations are *equivalent* at a position if the parser accepts both or neither, whatever
lies deeper on its stack. One of them, the representative, is explored, and its result is used for
all. Example: a soft keyword and NAME are equivalent wherever the grammar takes both in the same
way.

A *position* is where a parser goes on reading. It is either a state on top of the stack; or, where
a configuration waits for the next cell, the last cell read, the number of cells still to discard
below it, and the nonterminal to push then. At a position some states can be on top, and reductions
before the first symbol lead to others. Two continuations are equivalent if in each of these states

- their first symbols do the same: nothing, the same reductions, or shifts, and
- in every state entered by a shift, what follows has the same result: it is decided alike, or it is
  the same configuration set.

The first is the *shape* of a symbol at a position. The second are the *outcomes* of a continuation,
in the order in which the shape meets its shifts. Both are numbered, so finding a representative
takes one look-up. Without this, each of sql's hundred soft keywords has configuration sets of its
own.

Before a literal of a row of optional ones, the parser may reduce all that stand before it. So there
is a shape for each two of them, as long as they are apart. Shapes are therefore made of *chunks*,
which they share: what up to 64 states do, those of one word of bits.

The states on top are over-approximated: all stacks of the LR(0) automaton count, as in `feasible`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int32_2D, Int64, UInt64
from maskwright.analysis.components import components
from maskwright.analysis.errors import LimitError
from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, LrTables
from maskwright.maskstore.automaton import exploration_tables
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, MAX_POPS, REFUSED
from maskwright.maskstore.tokens._hash_kernels import free_slots, grown, number_of_run
from maskwright.maskstore.tokens.feasible import reducing_states

FIRST_RUNS = 1 << 7
"""Lists of results that there is room for at first: a power of two."""
FULL_SHAPES, FULL_TARGETS, FULL_CHUNKS = 1, 2, 3
"""Codes of full tables that `_number_shapes` returns."""
BYTES_LIMIT = 3 << 30
"""Most bytes of the shapes."""
STATE = 1 << 29
"""In a chunk: STATE + s begins the part that says what state s does."""


class Positions:
    """Where a parser may go on reading, and the states that can be on top there.

    start : (n_states + 1,) int32; after cell c was read, the positions are start[c] : start[c + 1].
    keys, numbers : (n_positions,) int32; each position's key, nonterminal * MAX_POPS + cells to
        discard, and the number of its set of states.
    set_start, members : (n_sets + 1,), (n,) int32; the sets of states. Set s is
        members[set_start[s] : set_start[s + 1]]. Set s < n_states is state s alone.
    rule_start, rules, set_after : (n_states + 1,), (n,), (n,) int32; for each state the rules that
        it may reduce by, and for each rule the set of states that can be on top after the
        reduction.
    order : (n_sets,) int32; all sets, those that reductions lead to first, as far as there are no
        cycles. is_cyclic : whether there are some.

    tables : the LALR tables, which have passed `exploration_tables.check_size`.
    """

    def __init__(self, tables: LrTables) -> None:
        n = tables.n_states
        below = tables.below
        goto: list[list[int]] = tables.goto.tolist()
        states, self.rules = reducing_states(tables)
        reductions = list(
            zip(
                (tables.rule_length[self.rules] - 1).tolist(),
                tables.rule_lhs[self.rules].tolist(),
                states.tolist(),
                strict=True,
            )
        )
        agenda = list(dict.fromkeys(each for each in reductions if each[0] >= 0))
        met = set(agenda)
        for pops, pushed, cell in agenda:  # grows while it is read
            new = [key for under in below[cell] if pops and (key := (pops - 1, pushed, under)) not in met]
            met.update(new)
            agenda += new
        # sets of states as bits. Positions with fewer cells to discard come first: what can be on
        # top is the union over the cells that can lie below
        tops: dict[tuple[int, int, int], int] = {}
        for pops, pushed, cell in sorted(agenda):
            found = 0
            for under in below[cell]:
                if pops:
                    found |= tops[pops - 1, pushed, under]
                elif goto[under][pushed] >= 0:
                    found |= 1 << goto[under][pushed]
            tops[pops, pushed, cell] = found
        number = {1 << state: state for state in range(n)}
        ordered = sorted((cell, pushed * MAX_POPS + pops, found) for (pops, pushed, cell), found in tops.items())
        self.keys = np.array([key for _, key, _ in ordered], np.int32)
        self.numbers = np.array([number.setdefault(found, len(number)) for _, _, found in ordered], np.int32)
        self.start = np.searchsorted([cell for cell, _, _ in ordered], np.arange(n + 1)).astype(np.int32)
        after = []
        for pops, pushed, state in reductions:
            at_once = 1 << goto[state][pushed] if goto[state][pushed] >= 0 else 0
            found = tops[pops, pushed, state] if pops >= 0 else at_once
            after.append(number.setdefault(found, len(number)))
        self.rule_start = np.searchsorted(states, np.arange(n + 1)).astype(np.int32)
        self.set_after = np.array(after, np.int32)
        width = (n + 7) // 8
        data = np.frombuffer(b"".join(found.to_bytes(width, "little") for found in number), np.uint8)
        is_member = np.unpackbits(data.reshape(-1, width), axis=1, count=n, bitorder="little")
        of_set, members = np.nonzero(is_member)
        self.set_start = np.searchsorted(of_set, np.arange(len(number) + 1)).astype(np.int32)
        self.members = members.astype(np.int32)
        parts = components([self._successors(number, n) for number in range(self.n_sets)])
        self.order = np.array([number for component in parts for number in component], np.int32)
        self.is_cyclic = len(parts) < self.n_sets

    def _successors(self, number: int, n_states: int) -> list[int]:
        """The sets that a set's states are in after a reduction; of several states: each alone."""
        begins, ends = (self.rule_start, self.set_after) if number < n_states else (self.set_start, self.members)
        found: list[int] = ends[begins[number] : begins[number + 1]].tolist()
        return found

    @property
    def n_sets(self) -> int:
        """The number of sets of states."""
        return len(self.set_start) - 1


class Equivalence:
    """The shapes of some symbols at all positions, and the outcomes of continuations met so far.

    positions : for the kernels.
    outcomes : (capacity,) int32; outcomes[continuation] is the index in this array at which the
        continuation's part begins, or -1 if it has none. The part has one number for each list of
        states that the first symbol is shifted to. Equal numbers mean equal outcomes, 0 means that
        all are refused.
    """

    def __init__(
        self, tables: LrTables, n_continuations: int, columns: Iterable[int], bytes_limit: int = BYTES_LIMIT
    ) -> None:
        """columns : the columns with which continuations begin.

        bytes_limit : the most bytes of the shapes.

        Raises: LimitError if they have more.
        """
        positions = Positions(tables)
        self._check(4 * 2 * tables.action.shape[1] * positions.n_sets, bytes_limit)
        shape_of = np.full((tables.action.shape[1], positions.n_sets, 2), -1, np.int32)
        self._lists: dict[int, tuple[Int32, Int32]] = {}
        """For each column the lists of states that it is shifted to, end to end; where each begins.

        A state is an index among the states that the column enters. The index after the last one
        stands for accepting.
        """
        acting = np.flatnonzero((tables.default_rule < 0) & (tables.action != 0).any(axis=1)).astype(np.int32)
        acts = _Acts(tables.action, tables.alternatives, tables.default_rule, tables.accessing, acting)
        sets = _Sets(
            positions.rule_start,
            positions.rules,
            positions.set_after,
            positions.set_start,
            positions.members,
            positions.order,
            positions.is_cyclic,
        )
        runs = {FULL_SHAPES: _no_runs(), FULL_TARGETS: _no_runs(), FULL_CHUNKS: _no_runs()}
        sizes = np.zeros((3, 1), np.int64)
        for column in columns:
            # what is numbered keeps its number
            while (full := _number_shapes(column, acts, sets, *runs.values(), *sizes, shape_of[column])) != 0:
                runs[full] = grown(runs[full], int(sizes[full - 1, 0]))
                self._check(
                    shape_of.nbytes + sum(each.nbytes for table in runs.values() for each in table), bytes_limit
                )
            starts = runs[FULL_TARGETS].start[: sizes[FULL_TARGETS - 1, 0] + 1].astype(np.int32)
            self._lists[column] = runs[FULL_TARGETS].items[: starts[-1]].copy(), starts
        self.positions = exploration_tables.Positions(positions.start, positions.keys, positions.numbers, shape_of)
        self.outcomes = np.full(n_continuations, -1, np.int32)
        self._n_outcomes = n_continuations
        self._runs = _no_runs()
        self._n_runs = np.zeros(1, np.int64)

    @staticmethod
    def _check(n_bytes: int, limit: int) -> None:
        if n_bytes > limit:
            raise LimitError(
                f"this grammar's terminals do too many different things in its parser's states (more than {limit >> 20} MiB of tables)"
            )

    def add(self, column: int, continuations: Int32, results: Int32) -> None:
        """Add the outcomes of continuations that begin with a column.

        continuations : (n,) int32.
        results : (n, n_entered) int32; for each state entered by the column, in ascending order,
            the result of what follows: REFUSED, ACCEPTED or a configuration set.
        """
        lists, starts = self._lists[column]
        part = np.zeros((len(continuations), len(starts) - 1), np.int32)
        while not _number_outcomes(results, lists, starts, self._runs, self._n_runs, part):
            self._runs = grown(self._runs, int(self._n_runs[0]))
        start = self._n_outcomes
        self._n_outcomes += part.size
        while len(self.outcomes) < self._n_outcomes:
            self.outcomes = np.concatenate([self.outcomes, np.zeros_like(self.outcomes)])
        self.outcomes[start : self._n_outcomes] = part.reshape(-1)
        self.outcomes[continuations] = start + np.arange(len(continuations), dtype=np.int32) * part.shape[1]


class _Acts(NamedTuple):
    """What the parser does before a column; the arrays are those of `LrTables`.

    acting : (n_acting,) int32; the states that do something before some column, and look at it.
    """

    action: Int32_2D
    alternatives: Int32
    default: Int32
    accessing: Int32
    acting: Int32


class _Sets(NamedTuple):
    """The sets of states of `Positions`, which has these arrays."""

    rule_start: Int32
    rules: Int32
    set_after: Int32
    set_start: Int32
    members: Int32
    order: Int32
    is_cyclic: bool


class _Scratch(NamedTuple):
    """Memory in which shapes of one column are written.

    entered_index : (n_states,) int32; the index of each state among those entered by the column.
    order : (n_entered + 1,) int32, -1 between two shapes; when each was met.
    chunk, shape, shifts : int32; what is being written.
    words, numbers : (n_words,) uint64, int32; for each word of bits its last chunk without shifts.
    """

    entered_index: Int32
    order: Int32
    chunk: Int32
    shape: Int32
    shifts: Int32
    words: UInt64
    numbers: Int32


class _Runs(NamedTuple):
    """Lists of results by number: list i is items[start[i] : start[i + 1]].

    hashes : (capacity,) int64; of a list's members.
    start, items : (capacity + 1,) int64, int32.
    slots : the hash table.
    """

    hashes: Int64
    start: Int64
    items: Int32
    slots: Int32


def _no_runs() -> _Runs:
    """An empty table of lists."""
    return _Runs(
        np.zeros(FIRST_RUNS, np.int64),
        np.zeros(FIRST_RUNS + 1, np.int64),
        np.zeros(4 * FIRST_RUNS, np.int32),
        free_slots(FIRST_RUNS),
    )


@kernel(entry=True)
def _number_outcomes(
    results: Int32_2D, lists: Int32, starts: Int32, runs: _Runs, n_runs: Int64, part: Int32_2D
) -> bool:
    """Write the number of what each continuation results in, for each list of states.

    results : (n, n_entered) int32; for each state entered the result of what follows.
    lists, starts : the lists of states; list i is lists[starts[i] : starts[i + 1]]. State n_entered
        stands for accepting.
    runs, n_runs : the lists of results met, and how many there are; changed.
    part : (n, n_lists) int32, written; 1 + the number of the list of results, 0 where all refuse.

    Returns whether there was room. What is numbered keeps its number.
    """
    for number in range(starts.shape[0] - 1):
        length = starts[number + 1] - starts[number]
        for row in range(results.shape[0]):
            run = n_runs[0]
            begin = runs.start[run]
            if run == runs.hashes.shape[0] or begin + length > runs.items.shape[0]:
                return False
            is_refused = True
            for i in range(length):
                state = lists[starts[number] + i]
                result = ACCEPTED if state == results.shape[1] else results[row, state]
                runs.items[begin + i] = result
                is_refused = is_refused and result == REFUSED
            if is_refused:
                part[row, number] = 0
                continue
            found = number_of_run(runs.items[begin : begin + length], length, runs, n_runs)
            if found < 0:
                return False
            part[row, number] = 1 + found
    return True


@kernel
def _close(column, acts, sets, bits):  # type: ignore[no-untyped-def]
    """Add to each set of acting states those that reductions before the column lead to.

    bits : (n_sets, n_words) uint64; bit i of a set's row is acting state i. Changed until nothing
        is added.
    """
    action, alternatives, default = acts.action, acts.alternatives, acts.default
    rule_start, rules, set_after, set_start, members, order, is_cyclic = sets
    n_states = action.shape[0]
    grew = True
    while grew:
        grew = False
        # PERF: in this order one round is enough where there are no cycles
        for at in range(order.shape[0]):
            number = order[at]
            if number >= n_states:
                for i in range(set_start[number], set_start[number + 1]):
                    grew |= _add_bits(bits[members[i]], bits[number])
                continue
            rule = default[number]
            code = action[number, column]
            if rule < 0 and code >= 0 and code < CONFLICT:
                continue
            count = 1
            if rule < 0 and code >= CONFLICT:
                count = alternatives[code - CONFLICT]
            for i in range(count):
                if default[number] < 0:
                    rule = -1 - (code if code < CONFLICT else alternatives[code - CONFLICT + 1 + i])
                if rule < 0:
                    continue
                for r in range(rule_start[number], rule_start[number + 1]):
                    if rules[r] == rule:
                        grew |= _add_bits(bits[set_after[r]], bits[number])
        grew &= is_cyclic


@kernel
def _add_bits(more, bits):  # type: ignore[no-untyped-def]
    """Add bits to others, (n_words,) uint64 both. Returns whether some are new."""
    grew = False
    for w in range(bits.shape[0]):
        if more[w] & ~bits[w] != 0:
            bits[w] |= more[w]
            grew = True
    return grew


@kernel
def _write_chunk(column, acts, word, bits, n_shifts, scratch):  # type: ignore[no-untyped-def]
    """Write the acting states of a word with what they do: -1 - rule, or the number of a target.

    Targets are the states that the column is shifted to, in the order in which a shape meets them.

    word : which word. bits : uint64; the states among acting states 64 * word and on.
    n_shifts : targets met before.
    Written: scratch.chunk, and behind the first n_shifts scratch.shifts.

    Returns the length of the chunk, the targets met by now, and whether the chunk has shifts.
    """
    chunk, order, shifts = scratch.chunk, scratch.order, scratch.shifts
    n = 0
    is_shifted = False
    for i in range(64):
        if (bits >> np.uint64(i)) & np.uint64(1) == 0:
            continue
        state = acts.acting[64 * word + i]
        code = acts.action[state, column]
        chunk[n] = STATE + state
        n += 1
        for j in range(1 if code < CONFLICT else acts.alternatives[code - CONFLICT]):
            each = code if code < CONFLICT else acts.alternatives[code - CONFLICT + 1 + j]
            if each > 0:
                is_shifted = True
                target = order.shape[0] - 1 if each == ACCEPT else scratch.entered_index[each - 1]
                if order[target] < 0:
                    order[target] = n_shifts
                    shifts[n_shifts] = target
                    n_shifts += 1
                each = order[target]
            chunk[n] = each
            n += 1
    return n, n_shifts, is_shifted


@kernel
def _write_shape(column, acts, bits, chunks, n_chunks, scratch):  # type: ignore[no-untyped-def]
    """Write the numbers of a shape's chunks to scratch.shape, behind its first number.

    bits : (n_words,) uint64; the acting states of the set.

    Returns the length of the shape, -1 if `chunks` has no room; and how many targets are in
    scratch.shifts.
    """
    n_shape = 1
    n_shifts = 0
    for word in range(bits.shape[0]):
        if bits[word] == 0:
            continue
        # PERF: sets that come one after the other often have the same states in a word
        if bits[word] == scratch.words[word]:
            number = np.int64(scratch.numbers[word])
        else:
            n, n_shifts, is_shifted = _write_chunk(column, acts, word, bits[word], n_shifts, scratch)
            number = number_of_run(scratch.chunk, n, chunks, n_chunks)
            if number < 0:
                return -1, n_shifts
            if not is_shifted:
                scratch.words[word] = bits[word]
                scratch.numbers[word] = number
        scratch.shape[n_shape] = number
        n_shape += 1
    for i in range(n_shifts):
        scratch.order[scratch.shifts[i]] = -1
    return n_shape, n_shifts


@kernel(allocates=True)
def _scratch(column, acts, n_words):  # type: ignore[no-untyped-def]
    """Memory for the shapes of a column."""
    entered_index = np.full(acts.action.shape[0], -1, np.int32)
    n_entered = 0
    for state in range(acts.action.shape[0]):
        if acts.accessing[state] == column:
            entered_index[state] = n_entered
            n_entered += 1
    most = 64
    for state in acts.acting:
        code = acts.action[state, column]
        most += 1 if code < CONFLICT else acts.alternatives[code - CONFLICT]
    return _Scratch(
        entered_index,
        np.full(n_entered + 1, -1, np.int32),
        np.empty(most, np.int32),
        np.empty(1 + n_words, np.int32),
        np.empty(n_entered + 1, np.int32),
        np.zeros(n_words, np.uint64),
        np.zeros(n_words, np.int32),
    )


@kernel(entry=True, allocates=True)
def _number_shapes(
    column: int,
    acts: _Acts,
    sets: _Sets,
    shapes: _Runs,
    targets: _Runs,
    chunks: _Runs,
    n_shapes: Int64,
    n_targets: Int64,
    n_chunks: Int64,
    shape_of: Int32_2D,
) -> int:
    """Number a column's shape at each set of states, and the list of states that it is shifted to.

    shapes, n_shapes : the shapes met, each as the number of its set and of its chunks, and how many
        there are; changed. chunks, n_chunks : the same for the chunks of shapes.
    targets, n_targets : written; the column's lists of states. They are indices as in
        `Equivalence._lists`.
    shape_of : (n_sets, 2) int32, written; the numbers.

    Returns 0, or which table has no room.
    """
    n_sets = shape_of.shape[0]
    targets.slots[:] = -1
    n_targets[0] = 0
    bits = np.zeros((n_sets, max(1, (acts.acting.shape[0] + 63) // 64)), np.uint64)
    for i in range(acts.acting.shape[0]):
        if acts.action[acts.acting[i], column] != 0:
            bits[acts.acting[i], i >> 6] = np.uint64(1) << np.uint64(i & 63)
    _close(column, acts, sets, bits)
    scratch = _scratch(column, acts, bits.shape[1])
    for number in range(n_sets):
        n_shape, n_shifts = _write_shape(column, acts, bits[number], chunks, n_chunks, scratch)
        if n_shape < 0:
            return FULL_CHUNKS
        scratch.shape[0] = number
        found = number_of_run(scratch.shape, n_shape, shapes, n_shapes)
        if found < 0:
            return FULL_SHAPES
        shape_of[number, 0] = found
        found = number_of_run(scratch.shifts, n_shifts, targets, n_targets)
        if found < 0:
            return FULL_TARGETS
        shape_of[number, 1] = found
    return 0
