"""Smaller tables for the same language: what the parser cannot tell apart becomes one.

This applies to states, terminals, nonterminals and rules. The partition is the coarsest one with

- s ~ s': for every terminal t and nonterminal A, action[s, t] ~ action[s', t] and
  goto[s, A] ~ goto[s', A]; and the two are entered on equivalent symbols;
- t ~ t': both are terminals, or both are END, and action[s, t] ~ action[s, t'] for every state s;
- A ~ A': goto[s, A] ~ goto[s, A'] for every state s;
- r ~ r': equivalent left sides and equal lengths.

Two cells' actions are equivalent if they are the same sets up to classes (shifts to equivalent
states, reductions by equivalent rules, accepting, none). Gotos are equivalent if both are missing
or lead to equivalent states.

The merged tables are right on every stack, real or not. Proof: let h replace each state of a stack,
and a terminal, by its class. Consider *one action* on stack g before t and on h(g) before h(t). The
same can happen on both: an error; accepting; a shift, after which the stacks are g s and h(g s); or
a reduction. The reduction pops equally many states, or finds too few on both. Then it pushes
goto[b, A] on what is left of the one and h(goto[b, A]) = goto[h(b), h(A)] on what is left of the
other, or it is stuck on both. So h is a bisimulation between the two parsers from any stack: they
do the same, action for action, and accept the same terminal sequences. QED.

Feasible stacks are kept too: a path of merged `predecessors` up from state 0 is the image of a path
of the full ones. We lift it from the bottom. If an edge on a symbol leaves a class, then each state
of the class has an edge on each equivalent symbol, into the same class. The lifted path also ends
on a symbol equivalent to the one on which the merged path ends. State 0 stays alone, since only
state 0 goes to the accepting state, which alone accepts.

The partition is found without the full tables, which have states times symbols cells. What splits
it are the transitions, and the sets of terminals before which states reduce by a class of rules.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.grammar.grammar import Conflicts
from maskwright.analysis.lr.automaton import Automaton, bits, from_bits
from maskwright.analysis.lr.encoding import (
    ACCEPT,
    CONFLICT,
    Alternatives,
    Array,
    LrTables,
    finish_tables,
)
from maskwright.analysis.lr.lookaheads import Lookaheads
from maskwright.analysis.regex.minimise import Blocks


@dataclass(frozen=True)
class Partition:
    """The class of each state, column, nonterminal and rule, numbered by least member.

    states : (n_states,) int32. -1 for a state to be left out.
    columns : (T + 1,) int32, END's the last. -1 for a column without any action, i.e. a terminal
        that no text can use.
    nonterminals : (n_nonterminals,) int32.
    rules : (n_rules,) int32.
    """

    states: Array
    columns: Array
    nonterminals: Array
    rules: Array

    @classmethod
    def of_states(cls, states: Array, rows: Rows) -> Partition:
        """The partition in which all but the states stay as they are."""
        sizes = rows.n_terminals + 1, rows.n_nonterminals, len(rows.rule_lhs)
        return cls(states, *(np.arange(size, dtype=np.int32) for size in sizes))


@dataclass(frozen=True)
class Rows:
    """What a parser does in each state, without the cells in which it does nothing.

    Symbols are numbered as in grammars: the terminal columns, then the nonterminals.

    source, symbol, target : (n,) int32; the transitions, ordered by source and then by symbol.
    reduces : for each state rules, with the terminals before which it reduces by them, as bits; END
        is bit n_terminals.
    accepting : the states that accept.
    rule_lhs, rule_length, terminal_column, origin : as in `LrTables`.
    accessing : for each state the symbol that leads to it, -1 for state 0.
    """

    n_terminals: int
    n_nonterminals: int
    source: Array
    symbol: Array
    target: Array
    reduces: list[list[tuple[int, int]]]
    accepting: frozenset[int]
    accessing: list[int]
    rule_lhs: Array
    rule_length: Array
    terminal_column: Array
    origin: Array

    @classmethod
    def of_automaton(cls, automaton: Automaton, sets: Lookaheads, conflicts: Conflicts) -> Rows:
        """The rows of an automaton's tables.

        sets : as `lookaheads(automaton)`. conflicts : "all" keeps all actions of a cell, "shift"
        the one that `build_lr_tables` says.
        """
        grammar = automaton.grammar
        n_terminals, rules = grammar.n_terminals, grammar.rules
        reduces = []
        for state, found in enumerate(zip(automaton.completed, sets, strict=True)):
            taken = automaton.shifted[state] | (state == automaton.accepting) << n_terminals
            row = []
            for rule, terminals in zip(*found, strict=True):
                if conflicts == "shift":
                    terminals &= ~taken
                    taken |= terminals
                row += [(rule, terminals)] * bool(terminals)
            reduces.append(row)
        return cls(
            n_terminals,
            grammar.n_nonterminals,
            automaton.source,
            automaton.symbol,
            automaton.target,
            reduces,
            frozenset({automaton.accepting}),
            list(automaton.accessing),
            np.array([rule.lhs - n_terminals for rule in rules], np.int32),
            np.array([len(rule.rhs) for rule in rules], np.int32),
            np.where(automaton.is_used, np.arange(n_terminals), -1).astype(np.int32),
            np.arange(automaton.n_states, dtype=np.int32),
        )

    @classmethod
    def of_tables(cls, tables: LrTables) -> Rows:
        """The rows of tables."""
        n_terminals = tables.n_terminals
        several = tables.action >= CONFLICT
        first = tables.action.copy()
        first[several] = tables.alternatives[first[several] - CONFLICT + 1]  # a shift or ACCEPT comes first
        next_state = np.where((first > 0) & (first < ACCEPT), first - 1, -1)[:, :-1]
        next_state = np.concatenate([next_state, tables.goto], axis=1)
        source, symbol = (found.astype(np.int32) for found in np.nonzero(next_state >= 0))
        reduces = []
        for state, row in enumerate(tables.action):
            look()
            found: dict[int, int] = {}
            for column in np.unique(row, return_index=True)[1].tolist():
                actions = tables.actions(state, column)
                if any(action < 0 for action in actions):
                    held = np.packbits(row == row[column], bitorder="little").tobytes()
                    for rule in (-action - 1 for action in actions if action < 0):
                        found[rule] = found.get(rule, 0) | int.from_bytes(held, "little")
            reduces.append(sorted(found.items()))
        return cls(
            n_terminals,
            tables.n_nonterminals,
            source,
            symbol,
            next_state[source, symbol],
            reduces,
            frozenset(np.flatnonzero((first == ACCEPT).any(axis=1)).tolist()),
            [symbol - (symbol > n_terminals) for symbol in tables.accessing.tolist()],
            tables.rule_lhs,
            tables.rule_length,
            tables.terminal_column,
            tables.origin,
        )


def coarsest_partition(tables: LrTables) -> Partition:
    """The coarsest partition of the module's definition.

    Cost: O(m log m) for m transitions and sets of terminals, and the cells.
    """
    return find_partition(Rows.of_tables(tables))


def bisimulate(tables: LrTables) -> LrTables:
    """The tables of the coarsest partition: the same language, action for action.

    The language is over `terminal_column`. States, columns, nonterminals and rules are numbered by
    the least member of their class. END stays alone and last; state 0 stays 0.

    Cost: as `coarsest_partition`.
    """
    rows = Rows.of_tables(tables)
    return write_tables(rows, find_partition(rows))


def find_partition(rows: Rows) -> Partition:
    """The coarsest partition of a parser's states and symbols, refined until nothing splits.

    Two states are equivalent if they are entered on equivalent symbols, shift and go on the same
    symbols to equivalent states, and for each class of rules reduce by one of them before the same
    terminals. Two terminals are equivalent if each state shifts both or none, to equivalent states,
    and if each of those sets of terminals holds both or none.

    Cost: O(m log m) for m transitions and sets of terminals.
    """
    n_states, n_terminals = len(rows.reduces), rows.n_terminals
    symbols, targets, sources = rows.symbol.tolist(), rows.target.tolist(), rows.source.tolist()
    begins = list(pairwise(np.searchsorted(rows.source, np.arange(n_states + 1)).tolist()))
    lhs: list[int] = (n_states + n_terminals + rows.rule_lhs).tolist()
    length: list[int] = rows.rule_length.tolist()
    # States, terminals and nonterminals are nodes of one graph, numbered in this order.
    blocks = Blocks([0] * n_states + [1] * n_terminals + [2] * rows.n_nonterminals)
    of = blocks.of
    transitions_on: list[list[int]] = [[] for _ in range(n_terminals + rows.n_nonterminals)]
    dependents: list[set[int]] = [set() for _ in of]
    """For each node those whose signature depends on its block."""
    for number, (source, symbol, target) in enumerate(zip(sources, symbols, targets, strict=True)):
        transitions_on[symbol].append(number)
        dependents[target] |= {source, n_states + symbol}
    for state, symbol in enumerate(rows.accessing):
        if symbol >= 0:
            dependents[n_states + symbol].add(state)
        for rule, _ in rows.reduces[state]:
            dependents[lhs[rule]].add(state)

    def before(state: int) -> dict[tuple[int, int], int]:
        """For each class of rules the terminals before which the state reduces by it."""
        found: dict[tuple[int, int], int] = {}
        for rule, terminals in rows.reduces[state]:
            key = of[lhs[rule]], length[rule]
            found[key] = found.get(key, 0) | terminals
        return found

    def signature(node: int) -> Hashable:
        if node >= n_states:
            return tuple([(sources[i], of[targets[i]]) for i in transitions_on[node - n_states]])
        row, symbol = slice(*begins[node]), rows.accessing[node]
        entered_on = of[n_states + symbol] if symbol >= 0 else -1
        after = tuple([of[target] for target in targets[row]])
        return node in rows.accepting, entered_on, tuple(symbols[row]), after, frozenset(before(node).items())

    used: set[int] = set()
    dirty: Iterable[int] = range(len(of))
    while dirty:
        look()
        new = {terminals for state in dirty if state < n_states for terminals in before(state).values()} - used
        moved = blocks.refine(dirty, signature)
        moved += _split_by_sets(blocks, range(n_states, n_states + n_terminals), sorted(new))
        used |= new
        dirty = {dependent for node in moved for dependent in dependents[node]}

    live = from_bits(sorted({symbol for symbol in symbols if symbol < n_terminals}), n_terminals)
    for terminals in used:
        live |= terminals
    columns = [of[n_states + terminal] if live >> terminal & 1 else -1 for terminal in range(n_terminals)]
    rules = [(of[left], n) for left, n in zip(lhs, length, strict=True)]
    return Partition(
        _by_least(of[:n_states]), _by_least([*columns, -2]), _by_least(of[n_states + n_terminals :]), _by_least(rules)
    )


def _split_by_sets(blocks: Blocks, terminals: range, sets: Sequence[int]) -> list[int]:
    """Splits terminals by which of some sets hold them. Returns as `Blocks.refine`.

    terminals : their nodes. sets : as bits, the first terminal's is bit 0.
    """
    moved: list[int] = []
    width = len(terminals) // 8 + 1
    for begin in range(0, len(sets) if terminals else 0, 1024):
        data = b"".join(terminals_of_set.to_bytes(width, "little") for terminals_of_set in sets[begin : begin + 1024])
        held = np.frombuffer(data, np.uint8).reshape(-1, width)
        members = np.packbits(np.unpackbits(held, axis=1, bitorder="little")[:, : len(terminals)], axis=0).T
        keys = [row.tobytes() for row in members]
        moved += blocks.refine(terminals, lambda node: keys[node - terminals.start])  # noqa: B023
    return moved


def write_tables(rows: Rows, classes: Partition) -> LrTables:
    """The tables in which what a partition says is equivalent is one."""
    n_terminals = rows.n_terminals
    state_of, rule_of = _least(classes.states), _least(classes.rules)
    shape = len(state_of), int(classes.columns.max()) + 1
    number = np.full(len(classes.states), -1, np.int32)
    number[state_of] = np.arange(len(state_of), dtype=np.int32)
    row, reached = number[rows.source], classes.states[rows.target]
    gotos = (row >= 0) & (rows.symbol >= n_terminals)
    goto = np.full((shape[0], int(classes.nonterminals.max()) + 1), -1, np.int32)
    goto[row[gotos], classes.nonterminals[rows.symbol[gotos] - n_terminals]] = reached[gotos]
    shifts = (row >= 0) & (rows.symbol < n_terminals)
    columns_of = cache(lambda terminals: np.unique(classes.columns[bits(terminals)]))
    parts = [(row[shifts], classes.columns[rows.symbol[shifts]], reached[shifts] + 1)]
    for merged, state in enumerate(state_of.tolist()):
        actions = {ACCEPT: 1 << n_terminals} if state in rows.accepting else {}
        for rule, terminals in rows.reduces[state]:
            reduction = -int(classes.rules[rule]) - 1
            actions[reduction] = actions.get(reduction, 0) | terminals
        for plain, terminals in actions.items():
            columns = columns_of(terminals)
            parts.append((np.full(len(columns), merged), columns, np.full(len(columns), plain)))
    action, alternatives = _as_cells(shape, *map(np.concatenate, zip(*parts, strict=True)))
    entered = np.concatenate([classes.columns[:-1], shape[1] + classes.nonterminals, np.array([-1], np.int32)])
    return finish_tables(
        action,
        goto,
        classes.nonterminals[rows.rule_lhs[rule_of]],
        rows.rule_length[rule_of],
        alternatives,
        entered[[rows.accessing[state] for state in state_of.tolist()]],
        np.append(classes.columns, np.int32(-1))[rows.terminal_column],
        rows.origin[state_of],
    )


def _as_cells(
    shape: tuple[int, int], rows: npt.NDArray[np.int_], columns: npt.NDArray[np.int_], actions: npt.NDArray[np.int_]
) -> tuple[Array, Alternatives]:
    """The table that holds some plain actions, and the cells of it with several.

    rows, columns, actions : (n,) integers; no action is twice in a cell.
    """
    cells = rows.astype(np.int64) * shape[1] + columns
    table = np.zeros(shape, np.int32)
    table.flat[cells] = actions
    order = np.argsort(cells, kind="stable")
    cells, alternatives = cells[order], Alternatives()
    several: dict[int, list[int]] = {}
    for at in np.flatnonzero(cells[1:] == cells[:-1]).tolist():
        several.setdefault(int(cells[at]), [int(actions[order[at]])]).append(int(actions[order[at + 1]]))
    for cell, members in several.items():
        table.flat[cell] = alternatives.encode(members)
    return table, alternatives


def _least(classes: Array) -> npt.NDArray[np.intp]:
    """The least member of each class, without class -1."""
    values, first = np.unique(classes, return_index=True)
    return first[values >= 0]


def _by_least(keys: Sequence[Hashable]) -> Array:
    """Equal numbers for equal keys, by first occurrence; -1 stays."""
    number: dict[Hashable, int] = {}
    return np.array([-1 if key == -1 else number.setdefault(key, len(number)) for key in keys], np.int32)
