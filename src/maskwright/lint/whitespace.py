"""Where blanks may be emitted without end: nothing stops a model that has begun to emit them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from maskwright.analysis.grammar.lark_files import rule_name
from maskwright.analysis.grammar.normalise import deriving
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lexing.terminals import compile_terminal
from maskwright.analysis.regex.dfa import Dfa, concatenate, difference
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, listed

BLANKS = b" \t\n\r\f\v"
"""The bytes that count as blanks."""


def endless_whitespace(facts: Facts) -> Iterator[Finding]:
    """Ignored terminals, other terminals, and rules that match blanks of any length."""
    grammar = facts.grammar
    layout = grammar.layout
    inserted = () if layout is None else (layout.indent, layout.dedent)
    blank: dict[int, bool] = {}  # terminal that matches some blanks -> whether of any length
    for number, dfa in enumerate(facts.automata):
        if dfa is not None and number not in facts.faulty:
            only = only_blanks(dfa)
            if not only.is_empty:
                blank[number] = is_infinite(only)
    ignored = [t for t in sorted(grammar.ignored) if t in blank and t not in facts.used]
    if ignored and not (len(ignored) == 1 and _is_bounded(facts, ignored[0])):
        is_endless = [t for t in ignored if blank[t]]
        why = (
            "of any length"
            if is_endless
            else "any number of times in a row, though each is short: a bound inside the terminal bounds nothing"
        )
        name = grammar.terminals[ignored[0]].name
        yield facts.finding(
            "endless-whitespace",
            "info",
            facts.at_terminal(ignored[0]),
            f"blanks are ignored between any two lexemes, {why} ({listed([facts.name(t) for t in ignored])})",
            "a model that has begun to emit blanks may go on until the token limit: every mask allows more of them",
            "write the blanks that are needed into the rules, optional and bounded, in place of %ignore; or bound them by a restriction"
            + (
                f" (length:{name}=..8) or a line (// maskwright: length {name} = ..8)"
                if is_endless and len(ignored) == 1
                else ""
            ),
        )
    for terminal, is_long in blank.items():
        # A verbatim terminal is text within a text, where blanks are like any other bytes.
        if is_long and terminal in facts.used - grammar.ignored - grammar.verbatim:
            yield facts.finding(
                "endless-whitespace",
                "info",
                facts.at_terminal(terminal),
                f"terminal {facts.name(terminal)} matches blanks of any length",
                "a model that has begun to emit blanks there may go on until the token limit",
                "bound its repetition: {1,8} in place of + or *",
            )
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
    return _cyclic(dict(enumerate(successors))) is not None


def _endless_rules(facts: Facts, blank: set[int]) -> Iterator[Finding]:
    """Rules that repeat themselves around blanks only."""
    rules = facts.reduced
    visible = {t for t in blank if facts.automata[t] is not None}
    derives = deriving(rules, blank)  # symbols that derive some string of blanks, or the empty string
    users: dict[int, list[int]] = {}
    for rule in rules.rules:
        if derives.issuperset(rule.rhs):
            for symbol in rule.rhs:
                users.setdefault(symbol, []).append(rule.lhs)
    # those of them that derive a string of at least one blank
    something = set(reachable(visible, lambda symbol: users.get(symbol, ())))
    whole: dict[int, list[int]] = {}
    growing: dict[int, list[int]] = {}
    for rule in rules.rules:
        if not all(symbol in derives for symbol in rule.rhs):
            continue
        for position, symbol in enumerate(rule.rhs):
            if rules.is_nonterminal(symbol):
                whole.setdefault(rule.lhs, []).append(symbol)
                others = rule.rhs[:position] + rule.rhs[position + 1 :]
                if any(other in something for other in others):
                    growing.setdefault(rule.lhs, []).append(symbol)
    reported: set[str] = set()
    for source, targets in sorted(growing.items()):
        name = rule_name(rules.symbol_name(source))
        if name in reported or source not in reachable(targets, lambda symbol: whole.get(symbol, ())):
            continue
        reported.add(name)
        symbol = facts.grammar.n_terminals + facts.grammar.nonterminals.index(rules.symbol_name(source))
        yield facts.finding(
            "endless-whitespace",
            "info",
            facts.at_rule(symbol),
            f"rule {name!r} repeats blanks without end",
            "a model that has begun to emit blanks there may go on until the token limit",
            "bound the repetition: item~0..4 in place of item*",
        )


def _cyclic(graph: dict[int, list[int]]) -> int | None:
    """A node on a cycle, or before one; None if there is no cycle.

    Nodes that no edge leaves are removed until none is left.
    """
    n_ways = {node: len(targets) for node, targets in graph.items()}
    before: dict[int, list[int]] = {}
    for node, targets in graph.items():
        for target in targets:
            before.setdefault(target, []).append(node)
    agenda = [node for node, n in n_ways.items() if not n]
    for node in agenda:  # grows while it is read
        for other in before.get(node, ()):
            n_ways[other] -= 1
            if not n_ways[other]:
                agenda.append(other)
    return next((node for node, n in n_ways.items() if n), None)
