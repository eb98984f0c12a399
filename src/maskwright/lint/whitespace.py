"""Where blanks may be emitted without end: nothing stops a model that has begun to emit them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from maskwright.analysis.grammar.lark_files import rule_name
from maskwright.analysis.grammar.normalise import deriving
from maskwright.analysis.graphs import components, reachable
from maskwright.analysis.lexing.terminals import compile_terminal
from maskwright.analysis.regex.dfa import Dfa, concatenate, difference
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, listed

BLANKS = b" \t\n\r\f\v"
"""The bytes that count as blanks."""
MORE_BLANKS = "a model that has begun to emit blanks may go on until the token limit: every mask allows more of them"
"""What blanks without end mean for masks."""


def endless_whitespace(facts: Facts) -> Iterator[Finding]:
    """Ignored terminals, other terminals, and rules that match blanks of any length."""
    grammar = facts.grammar
    layout = grammar.layout
    inserted = () if layout is None else (layout.indent, layout.dedent)
    # terminal that matches some blanks -> whether of any length
    only = {t: only_blanks(dfa) for t, dfa in enumerate(facts.automata) if dfa is not None and t not in facts.faulty}
    blank = {t: is_infinite(dfa) for t, dfa in only.items() if not dfa.is_empty}
    ignored = [t for t in sorted(grammar.ignored) if t in blank and t not in facts.used]
    if ignored and not (len(ignored) == 1 and _is_bounded(facts, ignored[0])):
        why = "any number of times in a row, though each is short: a bound inside the terminal bounds nothing"
        remedy = "write the blanks that are needed into the rules, optional and bounded, in place of %ignore; "
        remedy += "or bound them by a restriction"
        if any(blank[t] for t in ignored):
            why, name = "of any length", grammar.terminals[ignored[0]].name
            if len(ignored) == 1:
                remedy += f" (length:{name}=..8) or a line (// maskwright: length {name} = ..8)"
        message = f"blanks are ignored between any two lexemes, {why} ({listed([facts.name(t) for t in ignored])})"
        yield facts.finding("endless-whitespace", "info", ignored[0], message, MORE_BLANKS, remedy)
    for terminal, is_long in blank.items():
        # A verbatim terminal is text within a text, where blanks are like any other bytes.
        if is_long and terminal in facts.used - grammar.ignored - grammar.verbatim:
            message = f"terminal {facts.name(terminal)} matches blanks of any length"
            decoding = "a model that has begun to emit blanks there may go on until the token limit"
            remedy = "bound its repetition: {1,8} in place of + or *"
            yield facts.finding("endless-whitespace", "info", terminal, message, decoding, remedy)
    yield from _endless_rules(facts, {t for t in blank if t not in grammar.ignored} | set(inserted))


def _is_bounded(facts: Facts, terminal: int) -> bool:
    """Whether the longest run of a terminal's blanks is one lexeme, of a bounded length."""
    found = facts.grammar.terminals[terminal]
    if found.lengths is None or found.lengths.most is None or facts.grammar.lexing == "nfa":
        return False
    whole = compile_terminal(replace(found, lengths=None))
    blanks = only_blanks(whole)
    return difference(concatenate(blanks, blanks), whole).is_empty


def only_blanks(dfa: Dfa) -> Dfa:
    """The automaton of the texts that are blanks only."""
    table = dfa.next_state.copy()
    table[:, np.setdiff1d(np.arange(256), np.frombuffer(BLANKS, np.uint8))] = -1
    return Dfa.minimal(table, dfa.is_accepting)


def is_infinite(dfa: Dfa) -> bool:
    """Whether an automaton whose states are all useful has a cycle."""
    successors = [np.unique(row[row >= 0]).tolist() for row in dfa.next_state]
    return any(len(part) > 1 or part[0] in successors[part[0]] for part in components(successors))


def _endless_rules(facts: Facts, blank: set[int]) -> Iterator[Finding]:
    """Rules that repeat themselves around blanks only."""
    rules = facts.reduced
    derives = deriving(rules, blank)  # symbols that derive some string of blanks, or the empty string
    within = [rule for rule in rules.rules if derives.issuperset(rule.rhs)]
    users: dict[int, list[int]] = {}
    for rule in within:
        for symbol in rule.rhs:
            users.setdefault(symbol, []).append(rule.lhs)
    # those of them that derive a string of at least one blank
    visible = [t for t in blank if facts.automata[t] is not None]
    something = set(reachable(visible, lambda symbol: users.get(symbol, ())))
    inner: list[list[int]] = [[] for _ in range(rules.n_terminals + rules.n_nonterminals)]
    for rule in within:
        inner[rule.lhs] += filter(rules.is_nonterminal, rule.rhs)
    part_of = {symbol: part[0] for part in components(inner) for symbol in part}
    growing = {  # left-hand sides of rules that lead back to themselves, with a blank beside
        rule.lhs
        for rule in within
        for at, symbol in enumerate(rule.rhs)
        if rules.is_nonterminal(symbol) and part_of[symbol] == part_of[rule.lhs]
        if not something.isdisjoint(rule.rhs[:at] + rule.rhs[at + 1 :])
    }
    for name in dict.fromkeys(rule_name(rules.symbol_name(symbol)) for symbol in sorted(growing)):
        message = f"rule {name!r} repeats blanks without end"
        decoding = "a model that has begun to emit blanks there may go on until the token limit"
        remedy = "bound the repetition: item~0..4 in place of item*"
        yield facts.finding("endless-whitespace", "info", facts.at_rule(name), message, decoding, remedy)
