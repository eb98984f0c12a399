"""From a grammar to its LALR(1) tables, full or merged by `bisimulation`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import Automaton, build_automaton
from maskwright.analysis.lr.bisimulation import Partition, Rows, bisimulate, find_partition, write_tables
from maskwright.analysis.lr.domination import prune
from maskwright.analysis.lr.encoding import LrTables, can_follow
from maskwright.analysis.lr.lookaheads import Lookaheads, has_conflicts, lookaheads
from maskwright.analysis.lr.loops import refuse_endless_tables


def build_lr_tables(grammar: Grammar, conflicts: Conflicts = "all") -> LrTables:
    """The LALR(1) tables of a grammar, with a column for each of its terminals.

    The rules are those of `parsed_grammar`: under "all" every sequence of reductions ends.

    conflicts : "all" keeps every action of a cell that some text may need, see `domination`.
        "shift" keeps one action: it prefers to accept, then to shift (as Lark does), then to reduce
        by the rule that comes first in the grammar (where Lark refuses the grammar).

    Raises: GrammarError if the language is empty, or if a parser of one action a cell could reduce
        for ever (`loops`); LimitError if the automaton is too large (`automaton.MAX_STATES`,
        `automaton.MAX_TRANSITIONS`, `automaton.MAX_CELLS`); MaskwrightError if `conflicts` is
        neither "all" nor "shift".
    Cost: python.lark (537 rules, 796 states) takes less than 0.1 s, 10,000 rules some seconds.
    """
    if conflicts not in get_args(Conflicts):
        raise MaskwrightError(
            f"conflicts is {conflicts!r}; expected one of {', '.join(map(repr, get_args(Conflicts)))}"
        )
    grammar = parsed_grammar(grammar, conflicts)
    automaton = build_automaton(grammar)
    tables = tables_of(automaton, lookaheads(automaton), conflicts)
    if conflicts == "shift":
        refuse_endless_tables(grammar, lambda: tables)
        return tables
    return prune(automaton, tables)


def tables_of(automaton: Automaton, sets: Lookaheads, conflicts: Conflicts) -> LrTables:
    """The tables of an automaton with its lookahead sets.

    sets : as `lookaheads(automaton)`.
    conflicts : "all" keeps all actions of a cell. "shift" keeps the one that `build_lr_tables`
        says.

    Raises: LimitError if the automaton has more than `automaton.MAX_CELLS` cells.
    """
    automaton.check_cells()
    rows = Rows.of_automaton(automaton, sets, conflicts)
    return write_tables(rows, Partition.of_states(np.arange(automaton.n_states, dtype=np.int32), rows))


MAX_MERGED_CELLS = 1 << 25
"""The most merged states times symbols: 128 MiB in a store, several times that in the making."""

CanFollow = Callable[[int, int], bool]
"""`can_follow(first, second)`, see `encoding.can_follow`."""


@dataclass(frozen=True)
class Merged:
    """The merged tables of a grammar.

    tables : as `bisimulate(build_lr_tables(grammar, conflicts))`.
    is_decided : whether some cell had several actions, of which one is left.
    """

    tables: LrTables
    is_decided: bool = False

    @cached_property
    def can_follow(self) -> CanFollow:
        """`encoding.can_follow`, the same of the merged tables and of the full ones.

        Equivalent terminals lead from any state to equivalent states.
        """
        return can_follow(self.tables)


def build_merged_tables(grammar: Grammar, conflicts: Conflicts) -> Merged:
    """The merged LALR(1) tables of a grammar, made without the full ones where that can be.

    A grammar with conflicts, all of which are followed, does need the full tables, since
    superfluous actions are pruned there (`domination`).

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
        tables = bisimulate(prune(automaton, tables_of(automaton, sets, conflicts)))
        _check_size(grammar, tables.n_states, tables.n_terminals + 1 + tables.n_nonterminals)
        return Merged(tables)
    if conflicts == "shift":
        refuse_endless_tables(grammar, lambda: tables_of(automaton, sets, conflicts))
    is_decided = conflicts == "shift" and has_conflicts(automaton, sets)
    return Merged(merge(automaton, sets, conflicts), is_decided)


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

    Raises: LimitError if the merged tables have more than MAX_MERGED_CELLS cells.
    """
    rows = Rows.of_automaton(automaton, sets, conflicts)
    classes = find_partition(rows)
    states, *symbols = (int(each.max()) + 1 for each in (classes.states, classes.columns, classes.nonterminals))
    _check_size(automaton.grammar, states, sum(symbols))
    return write_tables(rows, classes)
