"""Parses of one text for which different terminals compete: does a conflict lead to them?

A contextual lexer asks the parser which terminals compete. Where conflicts leave several parses,
these must agree. If they may not agree, conflicts are decided as Lark decides them, by shifting,
when the grammar is loaded. So no text gets stuck half-way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lexing.lexemes import check_literals
from maskwright.analysis.lexing.modes import Modes, lexing_modes
from maskwright.analysis.lexing.transducer import STATE_LIMIT
from maskwright.analysis.lr.acyclic import without_endless
from maskwright.analysis.lr.agreement import Disagreement, disagreement
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.encoding import ACCEPT, LrTables
from maskwright.analysis.lr.lookaheads import lookaheads
from maskwright.analysis.lr.loops import endless_cycle
from maskwright.analysis.lr.tables import build_merged_tables, tables_of

MAX_PAIRS = 20_000
"""The most pairs of states that `tops_in_step` follows."""


def find_split(tables: LrTables, modes: Modes) -> Disagreement | None:
    """The first conflict found after which parses of one text may stand in different modes.

    modes : of the lexer; `modes.of_state` has the states of `tables`.

    Returns None as a proof that there is none.

    Cost: as `disagreement`; nothing without conflicts, or with one mode.
    """
    return disagreement(tables, modes.of_state) if len(modes) > 1 and tables.n_conflicts else None


def default_conflicts(grammar: Grammar) -> Conflicts:
    """What a grammar's parser does with conflicts unless the author says otherwise.

    Returns "all" if one lexer can serve all parses, else "shift". "shift" also if the rules have
    endless derivations on which lexing might depend, see `is_lexed_by_endless_rules`. "all" for a
    grammar that cannot be compiled: the error appears when it is compiled.

    Cost: that of the LALR tables, and that of `disagreement` if they have conflicts.
    """
    if grammar.lexing == "nfa" or (grammar.lexing == "longest" and not grammar.verbatim):
        return "all"
    try:
        check_literals(grammar, STATE_LIMIT)  # PERF: the tables of so many take long
        if is_lexed_by_endless_rules(grammar):
            return "shift"
        tables = build_merged_tables(grammar, "all").tables
        if tables.n_conflicts == 0:
            return "all"
        modes = lexing_modes(grammar, tables.action != 0, tables.terminal_column, tables.accessing)
        return "shift" if find_split(tables, modes) is not None else "all"
    except MaskwrightError:
        return "all"


def is_lexed_by_endless_rules(grammar: Grammar) -> bool:
    """Whether a grammar has endless derivations, and lexing by context might depend on them.

    Under "all" its parser has other rules for the same terminal sequences (`acyclic`), hence other
    states. Other terminals might compete in these states than in those of Lark's parser, so the
    texts might differ. Lexing does not depend on the rules if after the same terminals the states
    of both parsers are always in one mode (`tops_in_step`): then each lexeme is the same for both.
    True also if that is not known.

    Raises: GrammarError, LimitError and TerminalError as `reduce`, `build_automaton` and
        `lexing_modes`.
    """
    if grammar.lexing == "nfa" or (grammar.lexing == "longest" and not grammar.verbatim):
        return False
    rules = reduce(grammar)
    if endless_cycle(rules) is None:
        return False
    automata = build_automaton(rules), build_automaton(without_endless(rules))
    sets = [lookaheads(automaton) for automaton in automata]
    larks, ours = tables_of(automata[0], sets[0], "shift"), tables_of(automata[1], sets[1], "all")
    acceptable = np.concatenate([larks.action != 0, ours.action != 0])
    modes = lexing_modes(
        grammar, acceptable, larks.terminal_column, np.concatenate([larks.accessing, ours.accessing])
    ).of_state.tolist()
    pairs = tops_in_step(larks, ours)
    return pairs is None or any(modes[one] != modes[larks.n_states + other] for one, other in pairs)


def tops_in_step(first: LrTables, second: LrTables) -> set[tuple[int, int]] | None:
    """The pairs of states that may be on top after the same terminals, the starts among them.

    Each parser reads the terminals with its own tables. We follow only the tops of their stacks: a
    reduction may uncover any state that the automaton allows there. So we may find pairs that no
    text leads to, but we miss none.

    first, second : tables over the same terminals, with a column for each (`terminal_column` is the
        same in both).

    Returns pairs (state of `first`, state of `second`); None if there are more than MAX_PAIRS. A
    pair stands for texts that both parsers have read so far. What only one of them can go on with
    is not followed.

    Cost: O(pairs * terminals), and for each state and terminal the states that reductions lead
        through.
    """
    one_after, other_after = _tops_after(first), _tops_after(second)
    met = {(0, 0)}

    def after(pair: tuple[int, int]) -> set[tuple[int, int]]:
        if len(met) > MAX_PAIRS:
            return set()
        found = {
            (one, other)
            for column in range(first.n_terminals)
            for one in one_after(pair[0], column)
            for other in other_after(pair[1], column)
        }
        met.update(found)
        return found

    reachable([(0, 0)], after)
    return None if len(met) > MAX_PAIRS else met


def _tops_after(tables: LrTables) -> Callable[[int, int], frozenset[int]]:
    """What a parser can have on top one terminal later, if only the top of its stack is known.

    The function takes a state and a column, and gives no states if the parser refuses the terminal
    whatever lies below.
    """
    lengths: list[int] = tables.rule_length.tolist()
    symbols: list[int] = tables.rule_lhs.tolist()

    @cache
    def below(state: int, depth: int) -> frozenset[int]:
        """The states that can lie `depth` states below `state`."""
        if depth == 0:
            return frozenset({state})
        return frozenset(one for above in below(state, depth - 1) for one in tables.below[above])

    @cache
    def uncovered(top: int, rule: int) -> frozenset[int]:
        """The states that a reduction puts on top."""
        after = tables.goto[list(below(top, lengths[rule])), symbols[rule]]
        return frozenset(after[after >= 0].tolist())

    def reduced(column: int, top: int) -> Iterator[int]:
        """The states that reductions before a terminal put on top."""
        for action in tables.actions(top, column):
            yield from uncovered(top, -action - 1) if action < 0 else ()

    @cache
    def after(state: int, column: int) -> frozenset[int]:
        actions = [tables.actions(top, column) for top in reachable([state], partial(reduced, column))]
        return frozenset(action - 1 for row in actions for action in row if 0 < action < ACCEPT)

    return after


def refuse_split(grammar: Grammar, tables: LrTables, modes: Modes) -> None:
    """Refuses a grammar whose parses one lexer cannot serve.

    tables, modes : the grammar's parser and lexer; `modes.of_state` has the states of `tables`.

    Raises: LimitError if parses of one text may stand in different modes, or if conflicts are "all"
        and `is_lexed_by_endless_rules`; also what `is_lexed_by_endless_rules` raises.
    """
    if grammar.conflicts == "all" and is_lexed_by_endless_rules(grammar):
        raise LimitError(
            f"grammar {grammar.name}: its rules have endless derivations of one text (lint: endless-derivation), and the terminals that "
            "compete depend on them; load the grammar with conflicts='shift', which decides conflicts as Lark does, or with "
            "lexing='longest', or take the cycle out of the rules"
        )
    found = find_split(tables, modes)
    if found is not None:
        raise LimitError(f"grammar {grammar.name}: {described(grammar, tables, found)}")


def described(grammar: Grammar, tables: LrTables, found: Disagreement) -> str:
    """A disagreement in words, with advice. tables : those that it was found in."""
    terminal = {column: number for number, column in enumerate(tables.terminal_column.tolist()) if column >= 0}
    names = [grammar.display_name(terminal[column]) for column in found.columns]
    read = f"the conflict before {names[0]}" + (f" and then {' '.join(names[1:])}" if names[1:] else "")
    do = "stand where different terminals compete" if found.states else "may stand where different terminals compete"
    return (
        f"after {read}, parses of one text {do}, and one lexer cannot serve both; load the grammar with conflicts='shift', "
        "which decides conflicts as Lark does, or with lexing='longest', or left-factor the rules"
    )
