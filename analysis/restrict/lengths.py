"""Lengths: the lexemes of a terminal have so many characters and no more.

A restriction ``length:WHITESPACE=..8``, or such an option line of the grammar file, leaves out each
text with a lexeme of WHITESPACE that is longer. What is left is read as before: a lexeme that is
too long is not cut in two. So under longest match a bound on an ignored terminal bounds the run of
it, not each piece of the run.

The terminal keeps the lexemes that are within the bounds. All others become lexemes of a second
terminal, which competes where the first one does and which no rule takes (`Terminal.beyond`).
Lexing "nfa" reads a text in every way that there is, so it has no such terminal, and a run may be
several lexemes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from maskwright.analysis.errors import GrammarError, UnknownNameError
from maskwright.analysis.grammar.grammar import Grammar, Lengths
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.lexing.messages import naming
from maskwright.analysis.lexing.terminals import compile_terminal, length_automaton
from maskwright.analysis.marks import PART_FLAGS
from maskwright.analysis.regex.dfa import difference, intersect
from maskwright.analysis.restrict.words import assemble, unused_name

PREFIX = "length:"


def bound_lengths(grammar: Grammar, bounds: Mapping[str, str]) -> Grammar:
    """The grammar whose terminals have lexemes of certain lengths, in characters.

    bounds : for names of terminals what is written behind the ``=``, see `Lengths.read`.

    Raises: UnknownNameError, TerminalError and LimitError as `bound_length`; GrammarError as it
    does, and for a bound that is none.
    """
    for name, text in bounds.items():
        try:
            lengths = Lengths.read(name, text)
        except GrammarError as error:
            raise GrammarError(f"grammar {grammar.name}: {error}") from error
        grammar = bound_length(grammar, name, lengths)
    return grammar


def bound_length(grammar: Grammar, name: str, lengths: Lengths) -> Grammar:
    """The grammar in which one terminal has lexemes of certain lengths only.

    A bound that leaves out no lexeme changes nothing.

    Raises: UnknownNameError for a name that is no terminal's; GrammarError for a bound that no
    lexeme is within, or that is the terminal's second, for a terminal of the layout, and for one
    that stands for a part; TerminalError and LimitError as `compile_terminal`: the automaton counts
    characters.
    """
    number = grammar.terminal_number.get(name)
    if number is None or grammar.terminals[number].beyond:
        known = [terminal.name for terminal in grammar.terminals if not terminal.beyond]
        raise UnknownNameError(
            f"grammar {grammar.name} uses no terminal {name[:40]!r} to bound" + suggestion(name[:200], known)
        )
    terminal = grammar.terminals[number]
    layout = grammar.layout
    if layout is not None and number in (layout.newline, layout.indent, layout.dedent):
        raise GrammarError(
            f"grammar {grammar.name}: terminal {name} is part of the layout, so its length cannot be bounded; bound blanks between "
            "lexemes by their own terminal"
        )
    if terminal.flags == PART_FLAGS:
        raise GrammarError(
            f"grammar {grammar.name}: {name} stands for a part, so its length cannot be bounded; bound the part's terminals"
        )
    if terminal.lengths is not None:
        raise GrammarError(
            f"grammar {grammar.name}: the length of {name} is {terminal.lengths} already, by a restriction or a line of its file; "
            f"load the grammar with {PREFIX}{name}={lengths} alone, which overrides such a line"
        )
    every = compile_terminal(terminal, where=grammar.name)
    with naming(f"{PREFIX}{name}={lengths}", terminal.pattern or ""):
        within = length_automaton(lengths)
        kept, others = intersect(every, within), difference(every, within)
    if kept.is_empty:
        example = every.shortest().decode("utf-8")
        raise GrammarError(
            f"grammar {grammar.name}: no lexeme of {name} has a length of {lengths}; a shortest one, {example[:40]!r}, has {len(example)} "
            "characters"
        )
    if others.is_empty:
        return grammar
    parts = list(enumerate(grammar.terminals))
    parts[number] = number, replace(terminal, lengths=lengths)
    if grammar.lexing != "nfa":
        other = unused_name(f"{name}__OTHER_LENGTHS", set(grammar.terminal_number))
        fresh = grammar.n_terminals + grammar.n_nonterminals
        parts.append((fresh, replace(terminal, name=other, lengths=lengths, beyond=name)))
    return assemble(grammar, parts, grammar.rules)
