"""Single words of a grammar: the terminals that a rule of words derives, and lists of words.

A list makes its words string literals, which win over patterns under longest match. The literals
may stand wherever a pattern stands that matches them, so `os` is still a name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Grammar, Layout, Rule, Terminal
from maskwright.analysis.grammar.normalise import deriving, reachable_symbols, renumber
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lexing.terminals import compile_terminal
from maskwright.analysis.regex.dfa import Dfa


def single_terminals(grammar: Grammar, symbol: int) -> tuple[int, ...] | None:
    """The terminals that a symbol derives, in order.

    None if it derives anything but single terminals.
    """
    found: dict[int, None] = {}
    seen = {symbol}
    agenda = [symbol]
    for at in agenda:  # grows while it is read
        if not grammar.is_nonterminal(at):
            found[at] = None
            continue
        for rule in grammar.rules_of[at]:
            if len(rule.rhs) != 1:
                return None
            if rule.rhs[0] not in seen:
                seen.add(rule.rhs[0])
                agenda.append(rule.rhs[0])
    return tuple(found)


def unused_name(name: str, taken: set[str]) -> str:
    """A name that is not in `taken`: the given one with as many ``_`` behind it as needed.

    taken : the name is added to it.
    """
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def rules_below(grammar: Grammar, symbol: int) -> list[Rule]:
    """The rules that a symbol leads to, breadth-first."""
    rules_of = grammar.rules_of
    below = reachable([symbol], lambda at: [s for rule in rules_of.get(at, ()) for s in rule.rhs])
    return [rule for at in below for rule in rules_of.get(at, ())]


def with_substitutes(
    grammar: Grammar, rules: Sequence[Rule], either: Mapping[int, tuple[int, ...]], fresh: Iterator[int]
) -> tuple[list[Rule], list[tuple[int, str]]]:
    """Rules in which any symbol of `either[t]` may stand wherever symbol t stands.

    rules : the rules to rewrite, over the grammar's symbols.
    either : for some symbols, their substitutes, at least one each.
    fresh : numbers for new nonterminals.

    Returns the rules, and number and name of the new nonterminals.
    """
    standing: dict[int, int] = {}
    found: list[Rule] = []
    for rule in rules:
        if len(rule.rhs) == 1:  # needs no new nonterminal
            found += [Rule(rule.lhs, (s,)) for s in either.get(rule.rhs[0], rule.rhs)]
            continue
        body = []
        for symbol in rule.rhs:
            options = either.get(symbol, (symbol,))
            if len(options) > 1 and symbol not in standing:
                standing[symbol] = next(fresh)
            body.append(standing.get(symbol, options[0]))
        found.append(Rule(rule.lhs, tuple(body)))
    found += [Rule(new, (s,)) for old, new in standing.items() for s in either[old]]
    return found, [(new, grammar.symbol_name(old)) for old, new in standing.items()]


def without_terminals(grammar: Grammar, gone: Set[int]) -> Grammar | None:
    """The grammar without the alternatives that need one of some terminals, and what only they use.

    None if the start symbol has no text without them. What never ends in any case stays.

    gone : terminals that are neither ignored nor the layout's.
    """
    every = frozenset(range(grammar.n_terminals))
    lost = gone | (deriving(grammar, every) - deriving(grammar, every - gone))
    if grammar.start in lost:
        return None
    left = [rule for rule in grammar.rules if lost.isdisjoint(rule.rhs)]
    apart = {rule.lhs for rule in left} - reachable_symbols(grammar)  # rules of restrictions
    below: dict[int, list[int]] = {}
    for rule in left:
        below.setdefault(rule.lhs, []).extend(rule.rhs)
    used = set(reachable([grammar.start, *apart], lambda symbol: below.get(symbol, ())))
    layout = grammar.layout
    kept = used | grammar.ignored | grammar.verbatim | (every - {s for rule in grammar.rules for s in rule.rhs} - gone)
    if layout is not None:
        kept |= {layout.newline, layout.indent, layout.dedent, *(t for pair in layout.brackets for t in pair)}
    terminals = [(t, terminal) for t, terminal in enumerate(grammar.terminals) if t in kept]
    found = assemble(grammar, terminals, (rule for rule in left if rule.lhs in used))
    return renumber(found, found.rules, {})


def assemble(
    grammar: Grammar,
    terminals: Iterable[tuple[int, Terminal]],
    rules: Iterable[Rule],
    more: Iterable[tuple[int, str]] = (),
    joined: Mapping[int, int] | None = None,
) -> Grammar:
    """A grammar of these terminals and rules, renumbered from 0.

    terminals : pairs of a terminal's old number and the terminal. `rules` and the grammar's other
        members use the old numbers.
    rules : productions over the old numbers; duplicates are dropped.
    more : number and name of each nonterminal that the grammar does not have.
    joined : terminals that are not among `terminals` -> those that stand in their stead.
    """
    terminals = list(terminals)
    nonterminals = [*enumerate(grammar.nonterminals, grammar.n_terminals), *more]
    number = {old: new for new, (old, _) in enumerate([*terminals, *nonterminals])}
    number |= {old: number[to] for old, to in (joined or {}).items()}
    layout = grammar.layout
    if layout is not None:
        brackets = tuple((number[opening], number[closing]) for opening, closing in layout.brackets)
        members = (number[layout.newline], number[layout.indent], number[layout.dedent])
        layout = Layout(*members, brackets, layout.tab_length, layout.tabs)
    return replace(
        grammar,
        terminals=tuple(terminal for _, terminal in terminals),
        nonterminals=tuple(name for _, name in nonterminals),
        rules=tuple(dict.fromkeys(Rule(number[rule.lhs], tuple(number[s] for s in rule.rhs)) for rule in rules)),
        start=number[grammar.start],
        ignored=frozenset(number[t] for t in grammar.ignored),
        verbatim=frozenset(number[t] for t in grammar.verbatim),
        layout=layout,
    )


def _automata(grammar: Grammar) -> dict[int, Dfa]:
    """Of the terminals that are patterns, spell text, and stand between others in the rules."""
    return {
        t: compile_terminal(terminal, where=grammar.name)
        for t, terminal in enumerate(grammar.terminals)
        if terminal.literal is None
        and not terminal.is_declared
        and t not in grammar.ignored | grammar.verbatim
        and t != grammar.newline
    }


def allow_only(grammar: Grammar, name: str, symbol: int, entries: Sequence[str]) -> Grammar:
    """The grammar in which `symbol`, words with dots between them, is one of the entries.

    The entry ``a.*`` stands for ``a`` and for all that begins with ``a.``.

    name : the restriction's name, for messages.
    symbol : number of the rule or terminal.
    entries : the list.

    Raises: GrammarError for an entry that the symbol cannot be, and for a symbol that is no rule of
    words.
    """
    shown = grammar.symbol_name(symbol)
    reached = rules_below(grammar, symbol)
    firsts = {rule.rhs[:1] for rule in reached if rule.lhs == symbol}
    first = next(iter(firsts)) if len(firsts) == 1 else ()
    word = symbol if single_terminals(grammar, symbol) is not None else first[0] if first else symbol
    words = single_terminals(grammar, word)
    if words is None:
        raise GrammarError(
            f"grammar {grammar.name}: {name} is a list for {shown}, whose alternatives do not all begin with one rule of single words; "
            f'write it as in: {shown}: name ("." name)*'
        )
    literals = {t.literal: i for i, t in enumerate(grammar.terminals) if t.literal is not None}
    dot = literals.get(".") if any(literals.get(".") in rule.rhs for rule in reached) else None
    wide: list[tuple[str, ...]] = []
    exact: list[tuple[str, ...]] = []
    for entry in entries:
        parts = tuple(entry.split(".")) if dot is not None else (entry,)
        (wide if dot is not None and parts[-1] == "*" else exact).append(parts)
    wide = [parts[:-1] for parts in dict.fromkeys(wide)]
    if () in wide:
        raise GrammarError(
            f"grammar {grammar.name}: {name} has '*', which cannot be a {shown}: it lacks a word; to allow all, give no list"
        )
    automata = _automata(grammar)
    fresh = itertools.count(grammar.n_terminals + grammar.n_nonterminals)
    taken = set(grammar.terminal_number)
    added: dict[str, tuple[int, Terminal]] = {}
    number = {text: t for text, t in literals.items() if t in words}
    for text in dict.fromkeys(part for parts in (*wide, *exact) for part in parts):
        kind = next((t for t in words if t in automata and automata[t].matches(text.encode("utf-8", "replace"))), None)
        if text in number:
            continue
        if kind is None or text in literals:
            why = (
                f"{text!r} is a keyword"
                if text in literals
                else f"{text!r} is not one of its words"
                if text
                else "it lacks a word"
            )
            entry = next(".".join(parts) for parts in (*wide, *exact) if text in parts)
            raise GrammarError(f"grammar {grammar.name}: {name} has {entry!r}, which cannot be a {shown}: {why}")
        new = Terminal(
            unused_name(f"WORD_{text.upper()}" if text.isidentifier() else "WORD", taken), re.escape(text), "", text
        )
        number[text] = next(fresh)
        added[text] = (number[text], replace(new, priority=grammar.terminals[kind].priority))
    either = {
        t: (t, *soft)
        for t in automata
        if (soft := tuple(number[text] for text in added if automata[t].matches(text.encode())))
    }
    more_words = next(fresh)
    kept = [rule for rule in grammar.rules if rule.lhs != symbol]
    if wide and dot is not None:
        kept += [Rule(more_words, (dot, word)), Rule(more_words, (more_words, dot, word))]
    rules, more = with_substitutes(grammar, kept, either, fresh)

    def body(parts: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(s for part in parts for s in (*(() if dot is None else (dot,)), number[part]))[dot is not None :]

    for parts in exact:
        if not any(parts[: len(prefix)] == prefix for prefix in wide):
            rules.append(Rule(symbol, body(parts)))
    for prefix in wide:
        if not any(prefix[: len(other)] == other for other in wide if other != prefix):
            rules += [Rule(symbol, body(prefix)), Rule(symbol, (*body(prefix), more_words))]
    if wide and dot is not None:
        if word == symbol:
            raise GrammarError(f"grammar {grammar.name}: {name} cannot have entries with '*', as {shown} is one word")
        more.append((more_words, f"{shown}.*"))
    terminals = [*enumerate(grammar.terminals), *added.values()]
    return assemble(grammar, terminals, rules, more)
