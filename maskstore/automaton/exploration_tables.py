"""What an exploration of configuration sets knows, as tuples of arrays that compiled code reads and writes.

An `Exploration` is a tuple of tuples of arrays. Python makes tables larger between two calls (`Exploration.with_room`); compiled code
writes into them, and their numbers of rows into `sizes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.automaton._hash_kernels import free_slots, grown

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

REFUSED = 0
ACCEPTED = 1
FIRST_STATE = 2
"""ConfigurationSets states are numbered from here."""

NOTHING = -1
"""In place of a nonterminal to push: the parse has not begun."""

REFUSED_CONTINUATION = -(1 << 30)
"""In place of a continuation: no stack accepts it."""

# what kernels return in place of a number
DONE = 0
PAUSED = -1
"""To be called again, for nothing but a pause."""
ENDLESS = -2
"""Reductions did not come to an end."""
TOO_DEEP = -3
"""A parse needs longer scratch stacks; the same call with such ones goes on."""
FULL_CONFIGURATIONS, FULL_SETS, FULL_STATES, FULL_STEPS, FULL_PAIRS, FULL_EDGES, FULL_REPRESENTATIVES = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
)
"""A table may be full before the next step; the same call with a larger one goes on."""

IS_ACCEPTED = -1
"""In place of a number of configurations: whatever lies below, the continuation is accepted."""

# indices of `sizes`
N_CONFIGURATIONS, N_STATES, N_MEMBERS, N_SETS, N_STEPS, N_PAIRS, N_EDGES, NEXT_PAIR, N_REPRESENTATIVES, N_KNOWN = range(
    10
)

MAX_POPS = 4096
"""More than the cells that a rule discards."""
MAX_NONTERMINALS = 1 << 18

FIRST_CAPACITY = 1 << 16
FIRST_DEPTH = 512
MAX_FOUND = 256
"""Configurations that one step may lead to."""
MAX_BRANCHES = 64
MAX_STEPS = 100_000
"""Without a shift, or with other readings still to follow."""


class Parser(NamedTuple):
    """LALR tables, as `LrTables` has them. mode : (n_states,) int32; the lexing mode of each state."""

    action: Int32
    goto: Int32
    rule_lhs: Int32
    rule_length: Int32
    alternatives: Int32
    default_rule: Int32
    predecessor_start: Int32
    predecessors: Int32
    mode: Int32


class Continuations(NamedTuple):
    """Continuation r is the symbol symbol[r], and then continuation after[r].

    symbol, after : (n_continuations,) int32; see `tokens.continuations`.
    """

    symbol: Int32
    after: Int32


class Positions(NamedTuple):
    """Where a parse may go on reading, see `equivalence`.

    start : (n_states + 1,) int32. The positions after a cell was read are start[cell] to start[cell + 1].
    keys, numbers : int32; each position's key, nonterminal * MAX_POPS + cells to discard, and the
        number of the set of states that can be on top there.
    shape : (n_columns, n_sets, 2) int32. Where one of a set of states is on top: the number of a
        column's shape, and the number of the list of states that it is shifted to.
    """

    start: Int32
    keys: Int32
    numbers: Int32
    shape: Int32


class Known(NamedTuple):
    """Facts: with a certain state on top, a continuation is equivalent to another.

    keys : int64; `continuation_key`. continuation : int32; the other one.
    """

    keys: Int64
    continuation: Int32
    slots: Int32


class Representatives(NamedTuple):
    """Which of equivalent continuations was met first.

    keys : int64; the shape of the first symbol and the outcomes. continuation : int32; the first one with this key.
    """

    keys: Int64
    continuation: Int32
    slots: Int32


class Configurations(NamedTuple):
    """parts : (capacity, 3) int32; the continuation to read, the cells to discard before that, and the nonterminal to push then."""

    keys: Int64
    parts: Int32
    slots: Int32


class TerminalSets(NamedTuple):
    """Sets of terminals. hashes : int64. bits : (capacity, n_words) uint64."""

    hashes: Int64
    bits: UInt64
    slots: Int32


class States(NamedTuple):
    """State s is the configuration set items[start[s] : start[s + 1]], ascending."""

    hashes: Int64
    start: Int64
    items: Int32
    slots: Int32


class Steps(NamedTuple):
    """keys : int64; state * n_cells + cell. result : int32; REFUSED, ACCEPTED or the state that follows."""

    keys: Int64
    result: Int32
    slots: Int32


class Pairs(NamedTuple):
    """Pairs (state, last cell read). keys : int64; state * n_cells + cell. edge_start : int64; where each pair's edges begin."""

    keys: Int64
    edge_start: Int64
    slots: Int32


class Edges(NamedTuple):
    """after : int32; for each predecessor of a pair's cell REFUSED, ACCEPTED or FIRST_STATE + the pair that follows."""

    after: Int32


class Scratch(NamedTuple):
    """Stacks that one step works on.

    stack : (depth,) int32. branches : (MAX_BRANCHES, depth) int32; parses still to be followed, with their heights and continuations.
    found : (MAX_FOUND,) int32; configurations. bits : (n_words,) uint64.
    """

    stack: Int32
    branches: Int32
    heights: Int32
    continuations: Int32
    found: Int32
    bits: UInt64


class Exploration(NamedTuple):
    """All of an exploration.

    outcomes : int32, see `equivalence.Equivalence`. sizes : (16,) int64; how many rows of each table are in use, by the indices above.
    """

    parser: Parser
    continuations: Continuations
    positions: Positions
    outcomes: Int32
    known: Known
    representatives: Representatives
    configurations: Configurations
    sets: TerminalSets
    states: States
    steps: Steps
    pairs: Pairs
    edges: Edges
    scratch: Scratch
    sizes: Int64

    def with_room(self, full: int) -> Exploration:
        """The same with a larger table. full : one of the FULL_ codes."""
        name, size = _TABLES[full]
        first = FIRST_STATE if full == FULL_STATES else 0
        return self._replace(**{name: grown(getattr(self, name), int(self.sizes[size]), first)})

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for part in self for array in (part if isinstance(part, tuple) else (part,)))


_TABLES = {
    FULL_CONFIGURATIONS: ("configurations", N_CONFIGURATIONS),
    FULL_SETS: ("sets", N_SETS),
    FULL_STATES: ("states", N_STATES),
    FULL_STEPS: ("steps", N_STEPS),
    FULL_PAIRS: ("pairs", N_PAIRS),
    FULL_EDGES: ("edges", N_EDGES),
    FULL_REPRESENTATIVES: ("representatives", N_REPRESENTATIVES),
}
"""By code: the table, and where `sizes` counts its rows."""


def new_exploration(
    parser: Parser, continuations: Continuations, positions: Positions, outcomes: Int32, n_words: int
) -> Exploration:
    """One that knows nothing yet. n_words : of a set of terminals."""
    n = FIRST_CAPACITY
    keys, numbers = np.zeros((5, n), np.int64), np.zeros((5, n), np.int32)
    sizes = np.zeros(16, np.int64)
    sizes[N_STATES] = FIRST_STATE
    return Exploration(
        parser=parser,
        continuations=continuations,
        positions=positions,
        outcomes=outcomes,
        known=Known(np.zeros(8, np.int64), np.zeros(8, np.int32), free_slots(8)),
        representatives=Representatives(keys[0], numbers[0], free_slots(n)),
        configurations=Configurations(keys[1], np.zeros((n, 3), np.int32), free_slots(n)),
        sets=TerminalSets(keys[2], np.zeros((n, n_words), np.uint64), free_slots(n)),
        states=States(keys[3], np.zeros(n + 1, np.int64), numbers[1], free_slots(n)),
        steps=Steps(keys[4], numbers[2], free_slots(n)),
        pairs=Pairs(np.zeros(n, np.int64), np.zeros(n + 1, np.int64), free_slots(n)),
        edges=Edges(numbers[3]),
        scratch=new_scratch(FIRST_DEPTH, n_words),
        sizes=sizes,
    )


def new_scratch(depth: int, n_words: int) -> Scratch:
    """For stacks of up to `depth` cells."""
    return Scratch(
        np.zeros(depth, np.int32),
        np.zeros((MAX_BRANCHES, depth), np.int32),
        np.zeros(MAX_BRANCHES, np.int32),
        np.zeros(MAX_BRANCHES, np.int32),
        np.zeros(MAX_FOUND, np.int32),
        np.zeros(n_words, np.uint64),
    )


def check_size(tables: LrTables) -> None:
    """Raises LimitError if the numbers of some tables do not fit the keys of configurations."""
    longest = int(tables.rule_length.max(initial=0))
    if tables.n_nonterminals >= MAX_NONTERMINALS or longest >= MAX_POPS:
        raise LimitError(
            f"the grammar has {tables.n_nonterminals:,} nonterminals and a rule of {longest:,} symbols, expected fewer than "
            f"{MAX_NONTERMINALS:,} and {MAX_POPS:,}; divide long rules, and lists of alternatives, among several rules"
        )


def parser_of(tables: LrTables, mode_of_state: Int32) -> Parser:
    """The tables for kernels. BOUND: they have been through `check_size`."""
    arrays: list[Any] = [getattr(tables, name) for name in Parser._fields[:-1]]
    return Parser(*(np.array(array, np.int32) for array in (*arrays, mode_of_state)))
