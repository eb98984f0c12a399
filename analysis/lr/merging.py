"""The tables of `bisimulation`'s coarsest partition, made without the full tables.

The full tables have states times symbols cells. Instead we split the automaton's transitions and
lookahead sets up to the same partition. Two states are equivalent if they are entered on equivalent
symbols, shift and go on the same symbols to equivalent states, and for each class of rules reduce
by one of them before the same terminals. Two terminals are equivalent if each state shifts both or
none, to equivalent states, and if each of those sets of terminals holds both or none.

A grammar with conflicts, all of which are followed, does need the full tables, since superfluous
actions are pruned there (`domination`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import Automaton, bits, build_automaton
from maskwright.analysis.lr.bisimulation import Partition, bisimulate
from maskwright.analysis.lr.domination import prune
from maskwright.analysis.lr.encoding import ACCEPT, Alternatives, Array, LrTables, can_follow, finish_tables
from maskwright.analysis.lr.lookaheads import Lookaheads, has_conflicts, lookaheads
from maskwright.analysis.lr.loops import refuse_endless_tables
from maskwright.analysis.lr.tables import tables_of
from maskwright.analysis.regex.minimise import Blocks, first_of_each

MAX_MERGED_CELLS = 1 << 25
"""The most merged states times symbols: 128 MiB in a store, several times that in the making."""

CanFollow = Callable[[int, int], bool]
"""`can_follow(first, second)`, see `encoding.can_follow`."""


@dataclass(frozen=True)
class Merged:
    """The merged tables of a grammar.

    tables : as `bisimulate(build_lr_tables(grammar, conflicts))`.
    can_follow : as `encoding.can_follow` of the full tables.
    is_decided : whether some cell had several actions, of which one is left.
    """

    tables: LrTables
    can_follow: CanFollow
    is_decided: bool = False


def build_merged_tables(grammar: Grammar, conflicts: Conflicts) -> Merged:
    """The merged LALR(1) tables of a grammar.

    conflicts : "all" or "shift", see `build_lr_tables`.

    Raises: GrammarError and LimitError as `build_lr_tables`; LimitError if the merged tables have
        more than MAX_MERGED_CELLS cells.
    Cost: O(m log m) for m transitions and lookahead sets, and the merged tables' cells. For the
        last grammar that was asked for, a look-up.
    """
    found = _merged(grammar, conflicts)
    if isinstance(found, str):
        raise LimitError(found)
    return found


@lru_cache(maxsize=1)
def _merged(grammar: Grammar, conflicts: Conflicts) -> Merged | str:
    """`build_merged_tables`, or in words which limit it goes past.

    PERF: loading a grammar asks for its tables (`splits.default_conflicts`), and then compiling it.
    """
    try:
        return _made(grammar, conflicts)
    except LimitError as error:
        return str(error)


def forget() -> None:
    """Forget the last grammar's tables, as where the time of making them is measured."""
    _merged.cache_clear()


def _made(grammar: Grammar, conflicts: Conflicts) -> Merged:
    grammar = parsed_grammar(grammar, conflicts)
    automaton = build_automaton(grammar)
    sets = lookaheads(automaton)
    if conflicts == "all" and has_conflicts(automaton, sets):
        full = prune(automaton, tables_of(automaton, sets, conflicts))
        tables = bisimulate(full)
        _check_size(grammar, tables.n_states, tables.n_terminals + 1 + tables.n_nonterminals)
        return Merged(tables, can_follow(full))
    if conflicts == "shift":
        refuse_endless_tables(grammar, lambda: tables_of(automaton, sets, conflicts))
    is_decided = conflicts == "shift" and has_conflicts(automaton, sets)
    return Merged(merge(automaton, sets, conflicts), _can_follow(automaton, sets), is_decided)


def _can_follow(automaton: Automaton, sets: Lookaheads) -> CanFollow:
    """`encoding.can_follow` of the full tables."""
    n = automaton.grammar.n_terminals
    follows = [0] * n
    for symbol, shifts, reduces in zip(automaton.accessing, automaton.shifted, sets, strict=True):
        if 0 <= symbol < n:
            for terminals in (shifts, *reduces):
                follows[symbol] |= terminals
    shared: dict[int, bytes] = {}
    rows = [shared.setdefault(row, row.to_bytes(n // 8 + 1, "little")) for row in follows]
    used: list[bool] = automaton.is_used.tolist()

    def answer(first: int, second: int) -> bool:
        return used[first] and used[second] and bool(rows[first][second >> 3] >> (second & 7) & 1)

    return answer


def _check_size(grammar: Grammar, n_states: int, n_symbols: int) -> None:
    """Raises LimitError if there are more than MAX_MERGED_CELLS cells."""
    if n_states * n_symbols > MAX_MERGED_CELLS:
        raise LimitError(
            f"grammar {grammar.name}: its LR tables have {n_states} states over {n_symbols} symbols, {n_states * n_symbols} cells, past "
            f"the limit of {MAX_MERGED_CELLS}; merge rules that only lead to each other, or split the grammar"
        )


def merge(automaton: Automaton, sets: Lookaheads, conflicts: Conflicts) -> LrTables:
    """The merged tables of an automaton: `bisimulate(tables_of(automaton, sets, conflicts))`.

    sets : as `lookaheads(automaton)`.
    conflicts : under "all" no cell may have several actions, see `has_conflicts`.

    Raises: LimitError if the merged tables have more than MAX_MERGED_CELLS cells.
    """
    return _Merger(automaton, sets, conflicts).tables()


class _Merger:
    """Makes the merged tables of an automaton.

    shifted : for each state the terminals that it shifts, as bits.
    distinct : the different lookahead sets, as bits. number : set -> its index in `distinct`.
    reduces : for each state the rules that it reduces by, with the number of the set of terminals
        before which it does.
    rule_block : for each rule the class of its left side, and its length: equal for equivalent
        rules.
    """

    def __init__(self, automaton: Automaton, sets: Lookaheads, conflicts: Conflicts) -> None:
        self.automaton = automaton
        self.grammar = automaton.grammar
        self.conflicts = conflicts
        self.n_terminals = self.grammar.n_terminals
        self.symbols: list[int] = automaton.symbol.tolist()
        self.targets: list[int] = automaton.target.tolist()
        self.sources: list[int] = automaton.source.tolist()
        self.row_start: list[int] = automaton.row_start.tolist()
        self.shifted = automaton.shifted
        self.number: dict[int, int] = {}
        self.distinct: list[int] = []
        self.reduces = [
            self._reduces(state, *both) for state, both in enumerate(zip(automaton.completed, sets, strict=True))
        ]
        self.rule_block: list[tuple[int, int]] = []
        self._union: dict[tuple[int, int], int] = {}

    def _set_number(self, terminals: int) -> int:
        """The index of a set in `distinct`, new or known."""
        found = self.number.get(terminals)
        if found is None:
            found = self.number[terminals] = len(self.distinct)
            self.distinct.append(terminals)
        return found

    def _reduces(self, state: int, rules: Sequence[int], sets: Sequence[int]) -> list[tuple[int, int]]:
        """The rules that a state reduces by, each with the number of its lookahead set.

        Under "shift" a set has only the terminals before which the state does reduce by the rule.
        """
        taken = self.shifted[state] | (state == self.automaton.accepting) << self.n_terminals
        found = []
        for rule, terminals in zip(rules, sets, strict=True):
            if self.conflicts == "shift":
                terminals &= ~taken
                taken |= terminals
            if terminals:
                found.append((rule, self._set_number(terminals)))
        return found

    def _by_class(self, state: int) -> dict[tuple[int, int], int]:
        """For each class of rules the number of the set before which the state reduces by it."""
        found: dict[tuple[int, int], int] = {}
        for rule, terminals in self.reduces[state]:
            key = self.rule_block[rule]
            before = found.get(key)
            if before is None or before == terminals:
                found[key] = terminals
            else:
                pair = before, terminals
                if pair not in self._union:
                    self._union[pair] = self._set_number(self.distinct[before] | self.distinct[terminals])
                found[key] = self._union[pair]
        return found

    def partition(self) -> Partition:
        """The partition that `coarsest_partition` finds on the full tables."""
        grammar, automaton, n_terminals = self.grammar, self.automaton, self.n_terminals
        accessing, accepting = automaton.accessing, automaton.accepting
        states, terminals, nonterminals = (
            Blocks([0] * n) for n in (automaton.n_states, n_terminals, grammar.n_nonterminals)
        )
        below = automaton.below
        on_symbol: list[list[int]] = [[] for _ in range(automaton.n_symbols)]
        for number, symbol in enumerate(self.symbols):
            on_symbol[symbol].append(number)
        entered: list[list[int]] = [[] for _ in range(automaton.n_symbols)]
        for state, symbol in enumerate(accessing):
            if symbol >= 0:
                entered[symbol].append(state)
        rules_of: list[list[int]] = [[] for _ in range(grammar.n_nonterminals)]
        for number, rule in enumerate(grammar.rules):
            rules_of[rule.lhs - n_terminals].append(number)
        reducing: list[list[int]] = [[] for _ in grammar.rules]
        for state, found in enumerate(self.reduces):
            for number, _ in found:
                reducing[number].append(state)
        self.rule_block = [(0, len(rule.rhs)) for rule in grammar.rules]
        split_by: set[int] = set()
        uses: set[int] = set()

        def entered_on(state: int) -> tuple[int, int]:
            symbol = accessing[state]
            if symbol < 0:
                return (-1, 0)
            return (0, terminals.of[symbol]) if symbol < n_terminals else (1, nonterminals.of[symbol - n_terminals])

        def of_state(state: int) -> Hashable:
            row = slice(self.row_start[state], self.row_start[state + 1])
            return (
                state == accepting, entered_on(state), tuple(self.symbols[row]), tuple([states.of[t] for t in self.targets[row]]),
                frozenset(self._by_class(state).items()),
            )  # fmt: skip

        def of_symbol(symbol: int) -> Hashable:
            return tuple([(self.sources[i], states.of[self.targets[i]]) for i in on_symbol[symbol]])

        dirty_states: Iterable[int] = range(automaton.n_states)
        dirty_symbols: Iterable[int] = range(automaton.n_symbols)
        while dirty_states or dirty_symbols:
            look()
            for state in dirty_states:
                look()
                uses.update(self._by_class(state).values())
            moved = states.refine(dirty_states, of_state)
            new_terminals = terminals.refine((s for s in dirty_symbols if s < n_terminals), of_symbol)
            new_terminals += self._split_by_sets(terminals, sorted(uses - split_by))
            split_by |= uses
            new_nonterminals = nonterminals.refine(
                (s - n_terminals for s in dirty_symbols if s >= n_terminals), lambda i: of_symbol(n_terminals + i)
            )
            dirty_symbols = {accessing[state] for state in moved} - {-1}
            dirty = {lower for state in moved for lower in below[state]}
            for symbol in (*new_terminals, *(n_terminals + i for i in new_nonterminals)):
                dirty.update(entered[symbol])
            for i in new_nonterminals:
                for number in rules_of[i]:
                    self.rule_block[number] = nonterminals.of[i], self.rule_block[number][1]
                    dirty.update(reducing[number])
            dirty_states = dirty
        return self._partition(states, terminals, nonterminals)

    def _split_by_sets(self, blocks: Blocks, sets: Sequence[int]) -> list[int]:
        """Splits terminals by which of some sets hold them. Returns as `Blocks.refine`."""
        if not sets or not self.n_terminals:
            return []
        moved: list[int] = []
        width = self.n_terminals // 8 + 1
        for begin in range(0, len(sets), 1024):
            data = b"".join(self.distinct[number].to_bytes(width, "little") for number in sets[begin : begin + 1024])
            held = np.frombuffer(data, np.uint8).reshape(-1, width)
            members = np.packbits(np.unpackbits(held, axis=1, bitorder="little")[:, : self.n_terminals], axis=0).T
            moved += blocks.refine(range(self.n_terminals), [row.tobytes() for row in members].__getitem__)
        return moved

    def _partition(self, states: Blocks, terminals: Blocks, nonterminals: Blocks) -> Partition:
        """The blocks as classes, numbered by least member."""
        live = 0
        for terminals_of_state in {*self.shifted, *self.distinct}:
            live |= terminals_of_state
        is_live = [bool(live >> t & 1) for t in range(self.n_terminals)]
        of_terminal = [block if alive else -1 for block, alive in zip(terminals.of, is_live, strict=True)]
        return Partition(
            _by_least(states.of),
            _by_least([*of_terminal, len(terminals.members)]),
            _by_least(nonterminals.of),
            _by_least([(nonterminals.of[rule.lhs - self.n_terminals], len(rule.rhs)) for rule in self.grammar.rules]),
        )

    def tables(self) -> LrTables:
        """The tables of the partition.

        Raises: LimitError if they have more than MAX_MERGED_CELLS cells.
        """
        classes = self.partition()
        state_of, nonterminal_of, rule_of = map(first_of_each, (classes.states, classes.nonterminals, classes.rules))
        n_columns = int(classes.columns.max()) + 1
        _check_size(self.grammar, len(state_of), n_columns + len(nonterminal_of))
        action = np.zeros((len(state_of), n_columns), np.int32)
        goto = np.full((len(state_of), len(nonterminal_of)), -1, np.int32)
        self._fill(action, goto, classes, state_of)
        entered = np.concatenate([classes.columns, n_columns + classes.nonterminals, np.array([-1], np.int32)])
        accessing: Array = np.array(self.automaton.accessing, np.int32)
        accessing[accessing >= self.n_terminals] += 1
        return finish_tables(
            action,
            goto,
            classes.nonterminals[[self.grammar.rules[rule].lhs - self.n_terminals for rule in rule_of.tolist()]],
            np.array([len(self.grammar.rules[rule].rhs) for rule in rule_of.tolist()], np.int32),
            Alternatives(),
            entered[accessing[state_of]],
            np.where(self.automaton.is_used, classes.columns[:-1], -1).astype(np.int32),
            state_of.astype(np.int32),
        )

    def _fill(self, action: Array, goto: Array, classes: Partition, state_of: npt.NDArray[np.intp]) -> None:
        """Writes the actions and gotos of merged states. state_of : the least member of each."""
        automaton = self.automaton
        number = np.full(automaton.n_states, -1, np.int32)
        number[state_of] = np.arange(len(state_of), dtype=np.int32)
        row, reached = number[automaton.source], classes.states[automaton.target]
        shifts = (row >= 0) & (automaton.symbol < self.n_terminals)
        gotos = (row >= 0) & (automaton.symbol >= self.n_terminals)
        action[row[shifts], classes.columns[automaton.symbol[shifts]]] = reached[shifts] + 1
        goto[row[gotos], classes.nonterminals[automaton.symbol[gotos] - self.n_terminals]] = reached[gotos]
        if number[automaton.accepting] >= 0:
            action[number[automaton.accepting], -1] = ACCEPT
        column: list[int] = classes.columns.tolist()
        columns_of = [np.array(sorted({column[t] for t in bits(found)}), np.intp) for found in self.distinct]
        rule_class: list[int] = classes.rules.tolist()
        reductions = [
            (merged, rule_class[rule], columns_of[terminals])
            for merged, state in enumerate(state_of.tolist())
            for rule, terminals in self.reduces[state]
        ]
        sizes = [len(columns) for *_, columns in reductions]
        rows, rules = (np.repeat(np.array([each[i] for each in reductions], np.intp), sizes) for i in (0, 1))
        n_before = np.count_nonzero(action)
        action[rows, np.concatenate([np.zeros(0, np.intp), *(columns for *_, columns in reductions)])] = -rules - 1
        assert np.count_nonzero(action) == n_before + len(rows), "a cell has one action"


def _by_least(keys: Sequence[Hashable]) -> Array:
    """Equal numbers for equal keys, by first occurrence; -1 stays."""
    number: dict[Hashable, int] = {}
    return np.array([-1 if key == -1 else number.setdefault(key, len(number)) for key in keys], np.int32)
