"""From a grammar to its LALR(1) tables."""

from __future__ import annotations

from typing import get_args

import numpy as np

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import Automaton, build_automaton
from maskwright.analysis.lr.bisimulation import Partition, Rows, write_tables
from maskwright.analysis.lr.domination import prune
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.lookaheads import Lookaheads, lookaheads
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
