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
is a shape for each two of them, whose length is their distance. Shapes are therefore made of
*chunks*, which they share: what up to 64 states do, those of one word of bits.

The states on top are over-approximated: all stacks of the LR(0) automaton count, as in `feasible`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.errors import LimitError
from maskwright.analysis.graphs import components
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.automaton import exploration_tables
from maskwright.maskstore.automaton._shape_kernels import (
    FULL_CHUNKS,
    FULL_SHAPES,
    FULL_TARGETS,
    Acts,
    Sets,
    number_outcomes,
    number_shapes,
)
from maskwright.maskstore.automaton.exploration_tables import MAX_POPS
from maskwright.maskstore.tokens._hash_kernels import grown, no_runs
from maskwright.maskstore.tokens.feasible import reducing_states

FIRST_RUNS = 1 << 7
"""Lists of results that there is room for at first: a power of two."""
BYTES_LIMIT = 3 << 30
"""Most bytes of the shapes, and of the tables of the exploration."""


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
        parts = components(self._successors(n))
        self.order = np.array([number for component in parts for number in component], np.int32)
        self.is_cyclic = len(parts) < self.n_sets

    def _successors(self, n_states: int) -> list[list[int]]:
        """The sets that a set's states are in after a reduction; of several states: each alone."""
        after: list[int] = self.set_after.tolist()
        members: list[int] = self.members.tolist()
        found = [after[i:j] for i, j in pairwise(self.rule_start.tolist())]
        return found + [members[i:j] for i, j in pairwise(self.set_start[n_states:].tolist())]

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
        acts = Acts(tables.action, tables.alternatives, tables.default_rule, tables.accessing, acting)
        sets = Sets(*(getattr(positions, name) for name in Sets._fields))
        runs = {full: no_runs(FIRST_RUNS, 4 * FIRST_RUNS) for full in (FULL_SHAPES, FULL_TARGETS, FULL_CHUNKS)}
        for column in columns:
            # what is numbered keeps its number
            while (full := number_shapes(column, acts, sets, *runs.values(), shape_of[column])) != 0:
                tables_bytes = {key: sum(each.nbytes for each in table) for key, table in runs.items()}
                # the table that is full is there twice while it grows
                self._check(shape_of.nbytes + sum(tables_bytes.values()) + 2 * tables_bytes[full], bytes_limit)
                runs[full] = grown(runs[full])
            targets = runs[FULL_TARGETS]
            starts = targets.start[: targets.size[0] + 1].astype(np.int32)
            self._lists[column] = targets.items[: starts[-1]].copy(), starts
        self.positions = exploration_tables.Positions(positions.start, positions.keys, positions.numbers, shape_of)
        self.outcomes = np.full(n_continuations, -1, np.int32)
        self._n_outcomes = n_continuations
        self._runs = no_runs(FIRST_RUNS, 4 * FIRST_RUNS)

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
        while not number_outcomes(results, lists, starts, self._runs, part):
            self._runs = grown(self._runs)
        start = self._n_outcomes
        self._n_outcomes += part.size
        while len(self.outcomes) < self._n_outcomes:
            self.outcomes = np.concatenate([self.outcomes, np.zeros_like(self.outcomes)])
        self.outcomes[start : self._n_outcomes] = part.reshape(-1)
        # INVARIANT: each column is shifted to some list of states, be it an empty one
        self.outcomes[continuations] = np.arange(start, self._n_outcomes, part.shape[1], dtype=np.int32)
