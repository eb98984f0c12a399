"""Contextual lexing: which terminals compete where a lexeme begins, by the state of the parser.

Only terminals that the parser could take in its present state compete, so that ``/`` may begin a regular expression here and divide
there, and ``>>`` may close two lists. Some terminals compete everywhere all the same:

- those whose presence changes nothing, because no other terminal begins like them,
- ignored terminals and the layout's newline,
- string literals that a pattern also matches (keywords), and that pattern: a keyword is reserved, and ``isz`` is a name even where
  only ``is`` could come. If some rule offers the keyword and the pattern as alternatives, the grammar has made it soft.

(Lark's contextual lexer lets only acceptable terminals compete, and so reads ``x = y isz`` under python.lark.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, UnionDfa, build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_terminals

MODE_LIMIT = 256


@dataclass(frozen=True)
class Modes:
    """competing : for each mode the terminals that compete. of_state : (n_lr_states,) int32; the mode of each state of the parser."""

    competing: tuple[frozenset[int], ...]
    of_state: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.competing)


def one_mode(grammar: Grammar, n_lr_states: int) -> Modes:
    """Longest-match lexing: all terminals compete everywhere."""
    every = frozenset(t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared)
    return Modes((every,), np.zeros(n_lr_states, np.int32))


def contextual_modes(
    grammar: Grammar, acceptable: npt.NDArray[np.bool_], terminal_column: npt.NDArray[np.int32]
) -> Modes:
    """The modes of contextual lexing.

    acceptable : (n_lr_states, n_columns) bool; for which columns each state of the parser has an action. terminal_column :
    (n_terminals,) int32, -1 for terminals in no rule.

    Raises LimitError for more than MODE_LIMIT modes.
    """
    nfa = build_terminal_nfa(compile_terminals(grammar))
    union = build_union_dfa(nfa, [terminal.name for terminal in grammar.terminals])
    every = frozenset(t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared)
    always = every - _contested(nfa, union) | grammar.ignored | _reserved(grammar, union)
    if grammar.layout is not None:
        always |= {grammar.layout.newline}
    optional = sorted(every - always)
    number: dict[frozenset[int], int] = {}
    of_state = np.zeros(len(acceptable), np.int32)
    for state, row in enumerate(acceptable):
        chosen = frozenset(t for t in optional if terminal_column[t] >= 0 and row[terminal_column[t]])
        of_state[state] = number.setdefault(always | chosen, len(number))
    if len(number) > MODE_LIMIT:
        raise LimitError(
            f"grammar {grammar.name}: contextual lexing has {len(number)} different sets of competing terminals; at most {MODE_LIMIT} are "
            "supported: load the grammar with lexing='longest'"
        )
    return Modes(tuple(number), of_state)


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
    alone: dict[int, set[int]] = {}
    for rule in grammar.rules:
        if len(rule.rhs) == 1 and rule.rhs[0] < grammar.n_terminals:
            alone.setdefault(rule.lhs, set()).add(rule.rhs[0])
    found: set[int] = set()
    for accepting in union.accepting:
        literals = [t for t in accepting if grammar.terminals[t].literal is not None]
        patterns = [t for t in accepting if grammar.terminals[t].literal is None]
        for literal in literals:
            for pattern in patterns:
                if not any({literal, pattern} <= terminals for terminals in alone.values()):
                    found |= {literal, pattern}
    return frozenset(found)
