"""Contextual lexing: which terminals compete where a lexeme begins, by the state of the parser.

Only terminals that the parser could take in its present state compete, so that ``/`` may begin a regular expression here and divide
there, and ``>>`` may close two lists. Some terminals compete everywhere all the same:

- those whose presence changes nothing, because no other terminal begins like them,
- ignored terminals and the layout's newline,
- string literals that a pattern also matches (keywords), and that pattern: a keyword is reserved, and ``isz`` is a name even where
  only ``is`` could come. If some rule offers the keyword and the pattern as alternatives, the grammar has made it soft.

*Verbatim* terminals make modes under both lexings: a state of the parser that can take one of them is a mode of just the terminals that
it can take, and of those that no rule takes (option `refused`) and none of these verbatim ones begins like; elsewhere verbatim terminals
do not compete.

(Lark's contextual lexer lets only acceptable terminals compete, and so reads ``x = y isz`` under python.lark.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, UnionDfa, build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_terminals

MODE_LIMIT = 256


@dataclass(frozen=True)
class Modes:
    """competing : for each mode the terminals that compete. of_state : (n_lr_states,) int32; the mode of each state of the parser.
    may_follow : (n_terminals, n_modes) bool; whether the next lexeme after a terminal may be read in a mode.
    """

    competing: tuple[frozenset[int], ...]
    of_state: npt.NDArray[np.int32]
    may_follow: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.competing)


def lexing_modes(
    grammar: Grammar,
    acceptable: npt.NDArray[np.bool_],
    terminal_column: npt.NDArray[np.int32],
    accessing: npt.NDArray[np.int32],
) -> Modes:
    """The modes of a grammar's lexing, "longest" or "contextual".

    acceptable : (n_lr_states, n_columns) bool; for which columns each state of the parser has an action. terminal_column :
    (n_terminals,) int32, -1 for terminals in no rule. accessing : (n_lr_states,) int32; the symbol that leads there, as in `LrTables`.

    Raises LimitError for more than MODE_LIMIT modes, GrammarError where a verbatim terminal would lock out the layout's newline.
    """
    every = frozenset(t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared)
    common = always = every - grammar.verbatim
    silent = grammar.ignored if grammar.layout is None else grammar.ignored | {grammar.layout.newline}
    nfa = build_terminal_nfa(compile_terminals(grammar)) if grammar.lexing == "contextual" or grammar.verbatim else None
    if grammar.lexing == "contextual" and nfa is not None:
        start = tuple(int(nfa.initial[t]) for t in sorted(common))
        union = build_union_dfa(nfa, [terminal.name for terminal in grammar.terminals], starts=[start])
        always = common - _contested(nfa, union) | _reserved(grammar, union) | silent
    refused = sorted(t for t in common - silent if terminal_column[t] < 0)
    number: dict[frozenset[int], int] = {}
    of_state = np.zeros(len(acceptable), np.int32)
    for state, row in enumerate(acceptable):
        taken = frozenset(t for t in every if terminal_column[t] >= 0 and row[terminal_column[t]])
        verbatim = sorted(taken & grammar.verbatim)
        if verbatim and nfa is not None:
            if grammar.layout is not None and grammar.layout.newline in taken:
                name, newline = grammar.display_name(verbatim[0]), grammar.display_name(grammar.layout.newline)
                raise GrammarError(
                    f"grammar {grammar.name}: the parser may take the verbatim terminal {name} and the layout's newline {newline} in one "
                    "state, where no newline could be read; let the verbatim terminal begin behind a terminal of its own"
                )
            begins = (nfa.next_state[nfa.initial[verbatim]] >= 0).any(axis=0)
            alone = frozenset(t for t in refused if not (begins & (nfa.next_state[nfa.initial[t]] >= 0)).any())
            competing = taken - silent | alone
        else:
            competing = always | taken & common
        of_state[state] = number.setdefault(competing, len(number))
    if len(number) > MODE_LIMIT:
        advice = ": load the grammar with lexing='longest'" if grammar.lexing == "contextual" else ""
        raise LimitError(
            f"grammar {grammar.name}: {grammar.lexing} lexing has {len(number)} different sets of competing terminals; at most "
            f"{MODE_LIMIT} are supported{advice}"
        )
    return Modes(tuple(number), of_state, _may_follow(grammar, tuple(number), of_state, terminal_column, accessing))


def _may_follow(
    grammar: Grammar,
    competing: tuple[frozenset[int], ...],
    of_state: npt.NDArray[np.int32],
    terminal_column: npt.NDArray[np.int32],
    accessing: npt.NDArray[np.int32],
) -> npt.NDArray[np.bool_]:
    found = np.zeros((grammar.n_terminals, len(competing)), np.bool_)
    for state, symbol in enumerate(accessing.tolist()):
        found[terminal_column == symbol, of_state[state]] |= symbol >= 0
    for terminal in sorted(grammar.ignored):
        found[terminal] |= [terminal in mode for mode in competing]
    layout = grammar.layout
    if layout is not None:
        # after a newline an indent or dedents may be on top of the parser's stack, and in brackets it is ignored
        found[layout.newline] = found[[layout.newline, layout.indent, layout.dedent]].any(axis=0)
        found[layout.newline] |= [layout.newline in mode for mode in competing]
    return found


def _contested(nfa: TerminalNfa, union: UnionDfa) -> frozenset[int]:
    """Terminals that are alive beside another one after some byte."""
    reached = np.unique(union.next_state[union.next_state >= 0])
    found: set[int] = set()
    for state in reached.tolist():
        alive = {int(nfa.terminal[member]) for member in union.members[state]}
        if len(alive) > 1:
            found |= alive
    return frozenset(found)


def _reserved(grammar: Grammar, union: UnionDfa) -> frozenset[int]:
    """Literals that a pattern also matches, and those patterns, but for those that the rules offer as alternatives."""
    rules = {(rule.lhs, rule.rhs) for rule in grammar.rules}
    uses: dict[int, list[tuple[int, tuple[int, ...], int]]] = {}
    for rule in grammar.rules:
        for place, symbol in enumerate(rule.rhs):
            uses.setdefault(symbol, []).append((rule.lhs, rule.rhs, place))

    def is_soft(literal: int, pattern: int) -> bool:
        return any((lhs, (*rhs[:i], pattern, *rhs[i + 1 :])) in rules for lhs, rhs, i in uses.get(literal, ()))

    found: set[int] = set()
    for accepting in union.accepting:
        literals = [t for t in accepting if grammar.terminals[t].literal is not None]
        patterns = [t for t in accepting if grammar.terminals[t].literal is None]
        for literal in literals:
            for pattern in patterns:
                if not is_soft(literal, pattern):
                    found |= {literal, pattern}
    return frozenset(found)
