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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, ERROR, Alternatives, Array, LrTables, finish_tables
from maskwright.analysis.regex.minimise import number_rows


@dataclass(frozen=True)
class Partition:
    """The class of each state, column, nonterminal and rule, numbered by least member.

    states : (n_states,) int32.
    columns : (T + 1,) int32, END's the last. -1 for a column without any action, i.e. a terminal
        that no text can use.
    nonterminals : (n_nonterminals,) int32.
    rules : (n_rules,) int32.
    """

    states: Array
    columns: Array
    nonterminals: Array
    rules: Array


def coarsest_partition(tables: LrTables) -> Partition:
    """The coarsest partition of the module's definition: its greatest fixed point.

    Each round splits classes by what their members do up to the classes of the round before. So a
    pair that is split is inequivalent, and when nothing is split any more the definition holds.

    Cost: O(cells) a round; about ten rounds on grammars of programming languages.
    """
    n_states, n_columns = tables.action.shape
    states = np.zeros(n_states, np.int32)
    columns = np.zeros(n_columns, np.int32)
    columns[-1] = 1
    nonterminals = np.zeros(tables.n_nonterminals, np.int32)
    counts: tuple[int, ...] = ()
    while True:
        look()
        rules = _number(nonterminals[tables.rule_lhs], tables.rule_length)
        action, _ = _actions_up_to(tables, states, rules)
        goto = np.where(tables.goto >= 0, states[tables.goto], np.int32(-1))
        states = _number(states, _entered(tables, columns, nonterminals), action, goto)
        columns = _number(columns, action.T)
        nonterminals = _number(nonterminals, goto.T)
        before, counts = counts, tuple(int(classes.max(initial=-1)) for classes in (states, columns, nonterminals))
        if counts == before:
            break
    is_live = (tables.action != ERROR).any(axis=0)
    live_columns = np.full(n_columns, -1, np.int32)
    live_columns[is_live] = _number(columns[is_live])
    return Partition(states, live_columns, nonterminals, rules)


def bisimulate(tables: LrTables) -> LrTables:
    """The tables of the coarsest partition: the same language, action for action.

    The language is over `terminal_column`. States, columns, nonterminals and rules are numbered by
    the least member of their class. END stays alone and last; state 0 stays 0.

    Cost: as `coarsest_partition`.
    """
    classes = coarsest_partition(tables)
    state_of, column_of, nonterminal_of, rule_of = map(
        _representatives, (classes.states, classes.columns, classes.nonterminals, classes.rules)
    )
    action, alternatives = _actions_up_to(tables, classes.states, classes.rules)
    goto = tables.goto[np.ix_(state_of, nonterminal_of)]
    return finish_tables(
        action[np.ix_(state_of, column_of)],
        np.where(goto >= 0, classes.states[goto], -1).astype(np.int32),
        classes.nonterminals[tables.rule_lhs[rule_of]],
        tables.rule_length[rule_of],
        alternatives,
        _entered(tables, classes.columns, classes.nonterminals)[state_of],
        np.append(classes.columns, np.int32(-1))[tables.terminal_column],
        tables.origin[state_of],
    )


def _entered(tables: LrTables, columns: Array, nonterminals: Array) -> Array:
    """`LrTables.accessing` with classes instead of symbols."""
    n_columns = columns.max() + 1
    entered: Array = np.concatenate([columns, n_columns + nonterminals, np.array([-1], np.int32)])[tables.accessing]
    return entered


def _actions_up_to(tables: LrTables, states: Array, rules: Array) -> tuple[Array, Alternatives]:
    """All actions with classes instead of members: equal numbers for equal sets of actions.

    Returns (n_states, T + 1) int32, and the alternatives that these numbers refer to.
    """
    alternatives = Alternatives()
    # for each list of actions its new number, at the index where the list begins
    after = np.zeros_like(tables.alternatives)
    at = 0
    while at < len(after):
        look()
        end = at + 1 + int(tables.alternatives[at])
        after[at] = alternatives.encode(_plain_up_to(tables.alternatives[at + 1 : end], states, rules).tolist())
        at = end
    several = tables.action >= CONFLICT
    action = _plain_up_to(np.where(several, ERROR, tables.action), states, rules)
    action[several] = after[tables.action[several] - CONFLICT]
    return action, alternatives


def _plain_up_to(action: Array, states: Array, rules: Array) -> Array:
    """Plain actions with classes instead of members."""
    is_shift = (action > 0) & (action < ACCEPT)
    is_reduction = action < 0
    action = action.copy()
    action[is_shift] = states[action[is_shift] - 1] + 1
    action[is_reduction] = -rules[-action[is_reduction] - 1] - 1
    return action


def _number(*parts: Array) -> Array:
    """Equal numbers for equal rows of the arrays side by side, by first occurrence."""
    n_rows = len(parts[0])
    return number_rows(np.concatenate([part.reshape(n_rows, -1) for part in parts], axis=1)).astype(np.int32)


def _representatives(classes: Array) -> npt.NDArray[np.intp]:
    """The least member of each class, without class -1."""
    values, first = np.unique(classes, return_index=True)
    return first[values >= 0]
