"""Terminals that match the same texts are one terminal to the lexer, where they compete.

Of a text that several terminals match, a lexer can emit one of them only. If the parser cannot take
that one, though it could take another, the text would be refused, and masks would let in its
beginnings (LALR states share lookaheads, so that the state alone does not say which can be taken).
So the rules read one terminal instead: whichever of its uses the parser can take counts, and where
that is open until later, the rules have a conflict, which is treated as any other.

Example: under contextual lexing, `start: (a | "x" a SEMI) END`, `a: NAME`, `SEMI: ";"`, `END: ";"`:
behind a NAME both may come, as far as the LALR state knows.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from maskwright.analysis.errors import LimitError, MaskwrightError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.modes import lexing_modes
from maskwright.analysis.lexing.terminals import compile_terminal
from maskwright.analysis.lr.tables import build_merged_tables
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.restrict.words import assemble


def join_equal(grammar: Grammar) -> Grammar:
    """The grammar in which terminals that match the same texts, and compete somewhere, are one.

    That is the one that wins over the others. Left apart are ignored, verbatim and declared
    terminals, those of the layout, and those of bounded length. Under "nfa" both are followed, and
    the grammar stays as it is. `Grammar.plain` has the terminals as they were.

    Cost: the automata of the terminals, which are kept for who compiles the grammar; where some are
    equal, under contextual lexing the LALR tables. Patterns are foreign: nothing here backtracks.
    """
    if grammar.lexing == "nfa":
        return grammar
    found = grammar
    while True:
        joined = _joined(found)
        if not joined:
            return found if found is grammar else replace(found, plain=grammar.plain or grammar)
        kept = [(number, terminal) for number, terminal in enumerate(found.terminals) if number not in joined]
        found = assemble(found, kept, found.rules, joined=joined)


def _joined(grammar: Grammar) -> dict[int, int]:
    """Each terminal that is to be read as another one -> that other one, the strongest."""
    groups = equal_groups(grammar)
    if not groups:
        return {}
    rank = terminal_rank(grammar.terminals)
    competing: tuple[frozenset[int], ...] = (frozenset(range(grammar.n_terminals)),)
    if grammar.lexing == "contextual":
        try:
            tables = build_merged_tables(grammar, grammar.conflicts).tables
            competing = lexing_modes(grammar, tables.action != 0, tables.terminal_column, tables.accessing).competing
        except MaskwrightError:
            return {}  # compiling the grammar reports it
    found: dict[int, int] = {}
    for group in groups:
        of = {terminal: terminal for terminal in group}
        for one, other in combinations(sorted(group, key=rank.__getitem__), 2):
            if of[one] != of[other] and any(one in mode and other in mode for mode in competing):
                first, last = sorted((of[one], of[other]), key=rank.__getitem__)
                of = {terminal: first if to == last else to for terminal, to in of.items()}
        found |= {terminal: to for terminal, to in of.items() if to != terminal}
    return found


def equal_groups(grammar: Grammar) -> list[list[int]]:
    """The terminals that match the same texts, in groups of two or more; see `join_equal`.

    A terminal without an automaton is in none: compiling the grammar says why it has none.
    """
    layout = grammar.layout
    apart = set(grammar.ignored | grammar.verbatim)
    if layout is not None:
        apart |= {layout.newline, layout.indent, layout.dedent, *(t for pair in layout.brackets for t in pair)}
    in_rules = {symbol for rule in grammar.rules for symbol in rule.rhs}
    groups: dict[Dfa | bytes | int, list[int]] = {}
    for number, terminal in enumerate(grammar.terminals):
        if number in in_rules and number not in apart and not terminal.is_declared and terminal.lengths is None:
            groups.setdefault(_texts(grammar, number), []).append(number)
    return [group for group in groups.values() if len(group) > 1]


def _texts(grammar: Grammar, number: int) -> Dfa | bytes | int:
    """Equal exactly for terminals of equal texts: the text if there is one, else the automaton."""
    terminal = grammar.terminals[number]
    if terminal.literal is not None and not terminal.flags:
        return terminal.literal.encode("utf-8", "surrogatepass")
    try:
        found = compile_terminal(terminal, where=grammar.name)
    except (TerminalError, LimitError):
        return number
    text = found.shortest()
    # each state of an automaton of one text has one way on, or none
    return text if (found.next_state >= 0).sum() == len(text) else found
