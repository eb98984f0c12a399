"""What symbols do at each position, numbered: the *shapes* of `equivalence`, and lists of results.

In: LALR tables, the sets of states of `Positions`. Out: numbers; what is equal has one number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int32_2D, UInt64
from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, REFUSED
from maskwright.maskstore.tokens._hash_kernels import Runs, number_of_run

FULL_SHAPES, FULL_TARGETS, FULL_CHUNKS = 1, 2, 3
"""Codes of full tables that `number_shapes` returns."""
STATE = 1 << 29
"""In a chunk: STATE + s begins the part that says what state s does."""


class Acts(NamedTuple):
    """What the parser does before a column; the arrays are those of `LrTables`.

    acting : (n_acting,) int32; the states that do something before some column, and look at it.
    """

    action: Int32_2D
    alternatives: Int32
    default: Int32
    accessing: Int32
    acting: Int32


class Sets(NamedTuple):
    """The sets of states of `Positions`, which has these arrays."""

    rule_start: Int32
    rules: Int32
    set_after: Int32
    set_start: Int32
    members: Int32
    order: Int32
    is_cyclic: bool


class Scratch(NamedTuple):
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


@kernel(entry=True)
def number_outcomes(results: Int32_2D, lists: Int32, starts: Int32, runs: Runs, part: Int32_2D) -> bool:
    """Write the number of what each continuation results in, for each list of states.

    results : (n, n_entered) int32; for each state entered the result of what follows.
    lists, starts : the lists of states; list i is lists[starts[i] : starts[i + 1]]. State n_entered
        stands for accepting.
    runs : the lists of results met; changed.
    part : (n, n_lists) int32, written; 1 + the number of the list of results, 0 where all refuse.

    Returns whether there was room. What is numbered keeps its number.
    """
    for number in range(starts.shape[0] - 1):
        length = starts[number + 1] - starts[number]
        for row in range(results.shape[0]):
            run = runs.size[0]
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
            found = number_of_run(runs.items[begin : begin + length], length, runs)
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
def _write_shape(column, acts, bits, chunks, scratch):  # type: ignore[no-untyped-def]
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
            number = number_of_run(scratch.chunk, n, chunks)
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
    most = 64  # the states of a chunk
    for state in acts.acting:
        code = acts.action[state, column]
        most += 1 if code < CONFLICT else acts.alternatives[code - CONFLICT]
    return Scratch(
        entered_index,
        np.full(n_entered + 1, -1, np.int32),
        np.empty(most, np.int32),
        np.empty(1 + n_words, np.int32),
        np.empty(n_entered + 1, np.int32),
        np.zeros(n_words, np.uint64),
        np.zeros(n_words, np.int32),
    )


@kernel(entry=True, allocates=True)
def number_shapes(
    column: int,
    acts: Acts,
    sets: Sets,
    shapes: Runs,
    targets: Runs,
    chunks: Runs,
    shape_of: Int32_2D,
) -> int:
    """Number a column's shape at each set of states, and the list of states that it is shifted to.

    shapes : the shapes met, each as the number of its set and of its chunks; changed.
    chunks : the chunks of shapes; changed.
    targets : written; the column's lists of states. They are indices as in `Equivalence._lists`.
    shape_of : (n_sets, 2) int32, written; the numbers.

    Returns 0, or which table has no room.
    """
    n_sets = shape_of.shape[0]
    targets.slots[:] = -1
    targets.size[0] = 0
    bits = np.zeros((n_sets, max(1, (acts.acting.shape[0] + 63) // 64)), np.uint64)
    for i in range(acts.acting.shape[0]):
        if acts.action[acts.acting[i], column] != 0:
            bits[acts.acting[i], i >> 6] = np.uint64(1) << np.uint64(i & 63)
    _close(column, acts, sets, bits)
    scratch = _scratch(column, acts, bits.shape[1])
    for number in range(n_sets):
        n_shape, n_shifts = _write_shape(column, acts, bits[number], chunks, scratch)
        if n_shape < 0:
            return FULL_CHUNKS
        scratch.shape[0] = number
        found = number_of_run(scratch.shape, n_shape, shapes)
        if found < 0:
            return FULL_SHAPES
        shape_of[number, 0] = found
        found = number_of_run(scratch.shifts, n_shifts, targets)
        if found < 0:
            return FULL_TARGETS
        shape_of[number, 1] = found
    return 0
