"""From a grammar to its LALR(1) tables."""

from __future__ import annotations

from typing import get_args

import numpy as np

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import Automaton, bits, build_automaton
from maskwright.analysis.lr.domination import prune
from maskwright.analysis.lr.encoding import ACCEPT, ERROR, Alternatives, Array, LrTables, finish_tables
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
    grammar = automaton.grammar
    n_terminals = grammar.n_terminals
    action = np.zeros((automaton.n_states, n_terminals + 1), np.int32)
    action[:, :n_terminals] = automaton.transitions[:, :n_terminals] + 1
    action[automaton.accepting, n_terminals] = ACCEPT
    alternatives = Alternatives()
    columns_of: dict[int, list[int]] = {}
    for state, (rules, terminals) in enumerate(zip(automaton.completed, sets, strict=True)):
        if not rules:
            continue
        row = action[state]
        several: dict[int, list[int]] = {}
        for rule, terminal_set in zip(rules, terminals, strict=True):
            columns = columns_of.get(terminal_set)
            if columns is None:
                columns = columns_of[terminal_set] = bits(terminal_set)
            free = row[columns] == ERROR
            if free.all():
                row[columns] = -(rule + 1)
                continue
            for column in columns:
                if row[column] == ERROR:
                    row[column] = -(rule + 1)
                else:
                    several.setdefault(column, [int(row[column])]).append(-(rule + 1))
        if conflicts == "all":
            for column in sorted(several):
                row[column] = alternatives.encode(several[column])
    accessing: Array = np.array(automaton.accessing, np.int32)
    accessing[accessing >= n_terminals] += 1
    return finish_tables(
        action,
        automaton.transitions[:, n_terminals:],
        np.array([rule.lhs - n_terminals for rule in grammar.rules], np.int32),
        np.array([len(rule.rhs) for rule in grammar.rules], np.int32),
        alternatives,
        accessing,
        np.where(automaton.is_used, np.arange(n_terminals), -1).astype(np.int32),
        np.arange(automaton.n_states, dtype=np.int32),
    )
