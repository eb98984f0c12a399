"""LR tables on which a parser takes fewer steps and reaches the same stacks.

Most reductions of an expression only rename: a name becomes an atom, then a power, a factor, and so
on up to a test. Each is a rule of one symbol, and the next terminal decides on all of them. Where
these steps are the same whatever lies below, one step replaces them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.tokens.feasible import states_below


def shortened(tables: LrTables) -> LrTables:
    """Tables for decoders, and for exploring what stacks allow (`with_few_rules`).

    After each shift of a terminal, stacks are the same as under `tables`. We add synthetic rules
    that do several unit reductions at once. Such a rule pops as many states as the first of its
    reductions, and pushes the left side of the last.
    """
    return _past_units(replace(tables, goto=_past_chains(tables)), tables)


def with_few_rules(shorter: LrTables, tables: LrTables, most_rules: int) -> LrTables:
    """`shortened` tables in which no state reduces by many more rules than before.

    shorter : `shortened(tables)`; not changed.
    most_rules : a state that would reduce by more rules keeps those that it has.
    """
    # a state reduces by no more rules than it has terminals at which it reduces
    most = (shorter.action < 0).sum(axis=1)
    states = [
        state
        for state in np.flatnonzero(most > most_rules).tolist()
        if len(np.unique(shorter.action[state][shorter.action[state] < 0])) > most_rules
    ]
    if not states:
        return shorter
    action = shorter.action.copy()
    action[states] = tables.action[states]
    return replace(shorter, action=action)


def _past_chains(tables: LrTables) -> Int32:
    """Gotos past states that only reduce one symbol to another.

    Whatever comes next, such a state is replaced by the goto of the other symbol. So no stack after
    a shift has the state because of this goto.

    Returns (n_states, n_nonterminals) int32, -1 for none.
    """
    goto = tables.goto.copy()
    side = np.where(tables.rule_length[tables.default_rule] == 1, tables.rule_lhs[tables.default_rule], -1)
    side[tables.default_rule < 0] = -1
    rows, columns = np.nonzero(goto >= 0)
    # Each round goes twice as far. What is left after that many rounds leads into a cycle of such
    # states, which would reduce for ever. `loops` refuses cycles that a text can reach, so no stack
    # has these states: they stay where decided conflicts or dead ends took away what had led there.
    for _ in range(goto.shape[1].bit_length() + 1):
        further = np.where(side[goto[rows, columns]] >= 0, goto[rows, side[goto[rows, columns]]], -1)
        rows, columns = rows[further >= 0], columns[further >= 0]
        goto[rows, columns] = further[further >= 0]
    goto[rows, columns] = tables.goto[rows, columns]
    return goto


def _past_units(shorter: LrTables, tables: LrTables) -> LrTables:
    """Reductions that also do the unit reductions which must follow before the same terminal.

    shorter : the tables to change. tables : what the parser must do.
    """
    action = tables.action.copy()
    lengths, sides = tables.rule_length.tolist(), tables.rule_lhs.tolist()
    rule_of: dict[tuple[int, int], int] = {}
    is_renamed = _renamed_somewhere(tables)
    # the other states reduce by their default rule, without a look at the next terminal
    states = np.flatnonzero(tables.default_rule < 0).tolist() if any(is_renamed) else []
    for state in states:
        row = tables.action[state]
        for code in sorted({code for code in row.tolist() if code < 0}):
            rule = -code - 1
            if not is_renamed[sides[rule]]:
                continue
            below = states_below(state, lengths[rule], tables.predecessor_start, tables.predecessors)
            for columns, side in _renamed(tables, below, np.flatnonzero(row == code), sides[rule]):
                number = rule_of.setdefault((lengths[rule], side), len(lengths) + len(rule_of))
                action[state, columns] = -number - 1
    added = np.array(list(rule_of), np.int32).reshape(-1, 2)
    return replace(
        shorter,
        action=action,
        rule_length=np.append(tables.rule_length, added[:, 0]).astype(np.int32),
        rule_lhs=np.append(tables.rule_lhs, added[:, 1]).astype(np.int32),
    )


def _renamed_somewhere(tables: LrTables) -> list[bool]:
    """For each nonterminal whether some state that it leads to has a unit reduction."""
    is_unit = np.append(tables.rule_length == 1, False)  # the last one for what is no reduction
    units = is_unit[np.where(tables.action < 0, -tables.action - 1, -1)].any(axis=1)
    found: list[bool] = ((tables.goto >= 0) & units[tables.goto]).any(axis=0).tolist()
    return found


def _renamed(tables: LrTables, below: Int32, columns: Int64, pushed: int) -> Iterator[tuple[Int64, int]]:
    """What unit reductions turn a nonterminal into, by the next terminal.

    below : (n,) int32; the states on which the nonterminal is pushed.
    columns : the next terminals.
    pushed : the nonterminal.

    Yields columns, and the nonterminal that the stack ends with before them. It is the same on all
    states of `below`. Columns before which nothing is renamed are left out.
    """
    is_unit = np.append(tables.rule_length == 1, False)
    # columns with the same reductions so far, the nonterminal to push then, and those before it
    agenda = [(columns, pushed, frozenset[int]())]
    while agenda:
        columns, pushed, met = agenda.pop()
        under = below[tables.goto[below, pushed] >= 0]
        following = tables.action[np.ix_(tables.goto[under, pushed], columns)]
        code = following[0] if len(under) else np.zeros(len(columns), np.int32)
        same = (following == code).all(axis=0) & (code < 0)
        goes_on = same & is_unit[np.where(same, -code - 1, -1)]
        for rule in np.unique(-code[goes_on] - 1).tolist():
            side = int(tables.rule_lhs[rule])
            here = goes_on & (code == -rule - 1)
            if side in met or (tables.goto[under, side] < 0).any():
                goes_on &= ~here
            else:
                agenda.append((columns[here], side, met | {pushed}))
        if met and not goes_on.all():
            yield columns[~goes_on], pushed
