"""The tables of an exploration of configuration sets, as tuples of arrays for kernels.

An `Exploration` is a tuple of tables (`tokens._hash_kernels`). Python makes full ones larger
between two calls of kernels (`Exploration.with_room`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int32_2D, Int32_3D, Int64, Int64_2D, UInt64, UInt64_2D
from maskwright.analysis.errors import LimitError
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.tokens._hash_kernels import (
    Keys,
    Map,
    Runs,
    add_steps,
    doubled,
    grown,
    no_keys,
    no_rows,
    no_runs,
    no_values,
)

REFUSED = 0
ACCEPTED = 1
FIRST_STATE = 2
"""Configuration sets are numbered from here, and so are the pairs that edges lead to."""

NOTHING = -1
"""Instead of a nonterminal to push: the parse has not begun."""

REFUSED_CONTINUATION = -(1 << 30)
"""Instead of a continuation: no stack accepts it."""

# codes that kernels return instead of a number
DONE = 0
PAUSED = -1
"""The kernel has paused. Call it again."""
ENDLESS = -2
"""A parse takes too many steps (MAX_STEPS) or readings (MAX_BRANCHES, MAX_FOUND)."""
TOO_DEEP = -3
"""A parse needs longer scratch stacks. The same call with longer ones goes on."""
NO_SETS = -4
"""A step needs more room for sets of terminals. The same call with a larger table goes on."""
FULL_CONFIGURATIONS, FULL_SETS, FULL_STATES, FULL_STEPS, FULL_PAIRS, FULL_EDGES, FULL_REPRESENTATIVES = range(1, 8)
"""A table may be full before the next step. The same call with a larger table goes on."""

IS_ACCEPTED = -1
"""Instead of a number of configurations: the continuation is accepted, whatever lies below."""

# indices of `Exploration.cursor`
NEXT_PAIR, N_EDGES, N_STEPS = range(3)

MAX_POPS = 4096
"""Rules must be shorter: the key of a configuration has 12 bits for the cells to discard."""
MAX_NONTERMINALS = 1 << 18
"""There must be fewer nonterminals: the key of a configuration has 18 bits for them."""

FIRST_CAPACITY = 1 << 12
"""Rows that each table has room for at first."""
MOST_FIRST = 1 << 22
"""The most rows that a table has room for at first because of its continuations."""
FIRST_DEPTH = 64
"""Cells that a scratch stack has room for at first."""
MAX_RULES = 32
"""Most rules by which a state may reduce if some of them stand for several reductions."""
MAX_FOUND = 256
"""Most configurations in which one step can end."""
MAX_BRANCHES = 256
"""Most readings that one step follows at once."""
MAX_STEPS = 100_000
"""Most actions of one step since the last shift that left no other reading waiting."""


class Parser(NamedTuple):
    """LALR tables, as in `LrTables`.

    mode : (n_states,) int32; the lexing mode of each state.
    acts : (n_states, n_words) uint64; bit i of word w tells whether the state has an action before
        column 64 w + i.
    """

    action: Int32_2D
    goto: Int32_2D
    rule_lhs: Int32
    rule_length: Int32
    alternatives: Int32
    default_rule: Int32
    predecessor_start: Int32
    predecessors: Int32
    mode: Int32
    acts: UInt64_2D


class Continuations(NamedTuple):
    """Continuation r is symbol[r], then next_continuation[r]. See `tokens.continuations`.

    symbol, next_continuation : (n_continuations,) int32.
    """

    symbol: Int32
    next_continuation: Int32


class Positions(NamedTuple):
    """Where a parse may go on reading, see `equivalence`.

    start : (n_states + 1,) int32; after cell c was read, the positions are start[c] : start[c + 1].
    keys, numbers : (n_positions,) int32; each position's key, nonterminal * MAX_POPS + cells to
        discard, and the number of the set of states that can be on top there.
    shape : (n_columns, n_sets, 2) int32; for a column and a set of states on top, the number of the
        column's shape and the number of the list of states that the column is shifted to. -1 for
        columns that no continuation reads.
    """

    start: Int32
    keys: Int32
    numbers: Int32
    shape: Int32_3D


class TerminalSets(NamedTuple):
    """Sets of terminals by number, as `Runs`: lookahead sets, and parts of them.

    items : uint64, n_words of each set; bit i of word w is column 64 w + i.
    """

    hashes: Int64
    start: Int64
    items: UInt64
    slots: Int32
    size: Int64


class Steps(NamedTuple):
    """The steps that are known, as a hash table with linear probing, at most half full.

    slots : (n_slots, 2) int64, n_slots a power of two; state * n_cells + cell, and the result:
        REFUSED, ACCEPTED or the next state. Both are beside each other, because tables are larger
        than caches and nearly all time goes into looking up steps. 0 where free: no key is 0, since
        states begin with FIRST_STATE.
    """

    slots: Int64_2D


class Pairs(NamedTuple):
    """Pairs (state, last cell read) by number.

    keys : (capacity,) int64; state * n_cells + cell.
    edge_start : (capacity + 1,) int64; where each pair's edges begin.
    """

    keys: Int64
    edge_start: Int64
    slots: Int32
    size: Int64


class Followed(NamedTuple):
    """The pairs of an exploration that is done, with what follows each.

    after : (n_edges,) int32; for each edge of a pair, one for each predecessor of its cell in their
        order, REFUSED, ACCEPTED or the configuration set that follows, of equivalent ones the
        least.
    """

    pairs: Pairs
    after: Int32


class Scratch(NamedTuple):
    """Memory that one step works in.

    stack : (depth,) int32; the stack of the parse in progress.
    branches : (MAX_BRANCHES, depth) int32; the stacks of parses still to be followed.
    heights, continuations : (MAX_BRANCHES,) int32; the heights of these stacks, and what is left to
        read.
    found : (MAX_FOUND,) int32; the configurations in which the step ends.
    bits : (n_words,) uint64; a set of terminals.
    """

    stack: Int32
    branches: Int32_2D
    heights: Int32
    continuations: Int32
    found: Int32
    bits: UInt64


class Exploration(NamedTuple):
    """All tables of an exploration.

    outcomes : (capacity,) int32; see `equivalence.Equivalence`.
    known : facts: with a certain state on top, a continuation is equivalent to another
        (`continuation_key`).
    representatives : of each class of equivalent continuations the first that was met. The key is
        the number of the first symbol's shape, and of the outcomes.
    configurations : the continuation to read, the cells to discard before that, and the nonterminal
        to push then, as one number (`configuration`).
    states : configuration sets: numbers of configurations, ascending in each.
    edges : (capacity,) int32; for each pair, and each predecessor of its cell, REFUSED, ACCEPTED or
        FIRST_STATE + the pair that follows.
    cursor : (3,) int64; the next pair, and how many edges and steps there are.
    """

    parser: Parser
    continuations: Continuations
    positions: Positions
    outcomes: Int32
    known: Map
    representatives: Map
    configurations: Keys
    sets: TerminalSets
    states: Runs
    steps: Steps
    pairs: Pairs
    edges: Int32
    scratch: Scratch
    cursor: Int64

    def with_room(self, full: int) -> Exploration:
        """The same exploration with one table twice as large. full : one of the FULL_ codes."""
        if full == FULL_STEPS:
            larger = np.zeros((2 * len(self.steps.slots), 2), np.int64)
            add_steps(self.steps.slots, larger)
            return self._replace(steps=Steps(larger))
        if full == FULL_EDGES:
            return self._replace(edges=doubled(self.edges))
        name = _TABLES[full]
        return self._replace(**{name: grown(getattr(self, name))})

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for part in self for array in (part if isinstance(part, tuple) else (part,)))


_TABLES = {
    FULL_CONFIGURATIONS: "configurations",
    FULL_SETS: "sets",
    FULL_STATES: "states",
    FULL_PAIRS: "pairs",
    FULL_REPRESENTATIVES: "representatives",
}
"""By FULL_ code: the name of the table."""


def new_exploration(
    parser: Parser, continuations: Continuations, positions: Positions, outcomes: Int32, n_words: int
) -> Exploration:
    """An exploration that knows nothing yet.

    outcomes : (capacity,) int32; see `equivalence.Equivalence`.
    n_words : 64-bit words of a set of terminals.
    """
    n = FIRST_CAPACITY

    def room(each: int, least: int) -> int:
        # PERF: with the same room for all tables, a sixth of the time goes into enlarging them.
        # They come to three to ten rows for each continuation, ten pairs, and a hundred steps
        return max(least, min(MOST_FIRST, 1 << (each * len(continuations.symbol)).bit_length()))

    # of rows one step may need many, see `_explore_kernels.lack_of_room`
    n_pairs, n_edges, n_steps, n_rows = room(8, n // 4), room(64, n // 4), room(32, n // 4), room(4, n)
    return Exploration(
        parser=parser,
        continuations=continuations,
        positions=positions,
        outcomes=outcomes,
        known=no_values(8),
        representatives=no_values(n_rows),
        configurations=no_keys(n_rows),
        sets=TerminalSets(*no_runs(n, 0)[:2], np.zeros(n * n_words, np.uint64), *no_rows(n)),
        states=no_runs(n_rows, n_rows, FIRST_STATE),
        steps=Steps(np.zeros((2 * n_steps, 2), np.int64)),
        pairs=Pairs(np.zeros(n_pairs, np.int64), np.zeros(n_pairs + 1, np.int64), *no_rows(n_pairs)),
        edges=np.zeros(n_edges, np.int32),
        scratch=new_scratch(FIRST_DEPTH, n_words),
        cursor=np.zeros(3, np.int64),
    )


def new_scratch(depth: int, n_words: int) -> Scratch:
    """Scratch for stacks of up to `depth` cells. n_words : 64-bit words of a set of terminals."""
    return Scratch(
        np.zeros(depth, np.int32),
        np.zeros((MAX_BRANCHES, depth), np.int32),
        np.zeros(MAX_BRANCHES, np.int32),
        np.zeros(MAX_BRANCHES, np.int32),
        np.zeros(MAX_FOUND, np.int32),
        np.zeros(n_words, np.uint64),
    )


def check_size(tables: LrTables) -> None:
    """Refuse tables whose numbers do not fit the keys of configurations.

    Raises: LimitError if there are MAX_NONTERMINALS nonterminals or more, or a rule of MAX_POPS
        symbols or more.
    """
    longest = int(tables.rule_length.max(initial=0))
    if tables.n_nonterminals >= MAX_NONTERMINALS or longest >= MAX_POPS:
        raise LimitError(
            f"the grammar has {tables.n_nonterminals:,} nonterminals and a rule of {longest:,} symbols, expected fewer than "
            f"{MAX_NONTERMINALS:,} and {MAX_POPS:,}; split long rules, and long lists of alternatives, into several rules"
        )


def parser_of(tables: LrTables, mode_of_state: Int32) -> Parser:
    """The tables for kernels. mode_of_state : (n_states,) int32; the lexing mode of each state.

    BOUND: the tables have passed `check_size`.
    """
    arrays: list[Any] = [getattr(tables, name) for name in Parser._fields[:-2]]
    n_states, n_columns = tables.action.shape
    acts = np.zeros((n_states, -(-n_columns // 64) * 64), np.bool_)
    acts[:, :n_columns] = tables.action != 0
    bits = np.packbits(acts, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    columns: list[Any] = [*(np.array(array, np.int32) for array in (*arrays, mode_of_state)), bits]
    return Parser(*columns)
