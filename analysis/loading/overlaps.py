"""Terminals with texts in common: soft keywords, and terminals that match the same texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar, Rule, Terminal
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.modes import lexing_modes
from maskwright.analysis.lexing.terminals import compile_terminal, refused_before
from maskwright.analysis.lr.tables import build_merged_tables
from maskwright.analysis.regex.dfa import difference
from maskwright.analysis.restrict.words import assemble


def soften(grammar: Grammar, keywords: Iterable[str]) -> Grammar:
    """The grammar in which each keyword may stand wherever a pattern may that matches it.

    Soft keywords are literals that may also be what a pattern means, such as `_` or `match` in
    Python. Under longest match a literal wins over a pattern, so a keyword is never a name unless a
    rule says so. Lark's own parsers avoid this by lexing only what the parser can take; python.lark
    reads `for _ in x` only because of that. A soft keyword states it in the rules.

    Each such pattern P is replaced in all rules by a new nonterminal, which is P or one of the
    keywords. A rule that says the same with the keyword instead of P is dropped: it would be a
    second reading of the same text.

    keywords : string literals of the grammar, without flags: a keyword is each literal of this
        text. One with the flag i has several texts, and a pattern must match all of them.

    Raises: GrammarError for a keyword that is no string literal of the grammar, or that no pattern
    matches.
    """
    literals: dict[str, list[int]] = {}
    for number, terminal in enumerate(grammar.terminals):
        if terminal.literal is not None:
            literals.setdefault(terminal.literal, []).append(number)
    softened: dict[int, list[int]] = {}
    for keyword in sorted(set(keywords)):
        if keyword not in literals:
            raise GrammarError(
                f"grammar {grammar.name}: soft keyword {keyword!r} is not a string literal of its rules; write it as it stands there"
            )
        for literal in literals[keyword]:
            for pattern in _patterns_of(grammar, literal):
                softened.setdefault(pattern, []).append(literal)
    first = grammar.n_terminals + grammar.n_nonterminals
    choices = {pattern: [pattern, *sorted(found)] for pattern, found in sorted(softened.items())}
    either = {pattern: first + i for i, pattern in enumerate(choices)}
    rules = [Rule(rule.lhs, tuple(either.get(symbol, symbol) for symbol in rule.rhs)) for rule in grammar.rules]
    general = {(rule.lhs, rule.rhs) for rule, old in zip(rules, grammar.rules, strict=True) if rule != old}
    kept = [
        rule
        for rule, old in zip(rules, grammar.rules, strict=True)
        if rule != old
        or not any((rule.lhs, _with(rule.rhs, soft, either[p])) in general for p in softened for soft in softened[p])
    ]
    kept += [Rule(either[pattern], (symbol,)) for pattern, symbols in choices.items() for symbol in symbols]
    names = [" or ".join(grammar.terminals[symbol].name for symbol in symbols) for symbols in choices.values()]
    return replace(grammar, nonterminals=(*grammar.nonterminals, *names), rules=tuple(dict.fromkeys(kept)))


def _with(symbols: tuple[int, ...], old: int, new: int) -> tuple[int, ...]:
    """The symbols with `new` instead of `old`."""
    return tuple(new if symbol == old else symbol for symbol in symbols)


def _patterns_of(grammar: Grammar, literal: int) -> list[int]:
    """The patterns that match all texts of a literal. Raises: GrammarError if there is none."""
    keyword = grammar.terminals[literal]
    others: list[bytes] = []
    found = []
    for number, terminal in enumerate(grammar.terminals):
        if terminal.literal is None and number not in grammar.ignored:
            other = _unmatched(terminal, keyword, grammar.name)
            if other is None:
                found.append(number)
            else:
                others.append(other)
    if found:
        return found
    shown = f"{keyword.literal!r}{keyword.flags}"
    if not keyword.flags:
        raise GrammarError(f"grammar {grammar.name}: no pattern matches soft keyword {shown}, so it cannot be one")
    texts = ", ".join(repr(text.decode("utf-8", "replace")) for text in dict.fromkeys(others)) or "none is there"
    raise GrammarError(
        f"grammar {grammar.name}: no pattern matches all texts of soft keyword {shown} (not {texts}), so it cannot be one; give the "
        "pattern the flag, as in /[a-z]+/i"
    )


def _unmatched(terminal: Terminal, keyword: Terminal, where: str) -> bytes | None:
    """A text of a literal that a pattern does not match; None if it matches all.

    A terminal without an automaton accepts nothing; compiling the grammar reports why it has none.
    """
    text = str(keyword.literal).encode("utf-8", "surrogatepass")
    try:
        pattern = compile_terminal(terminal, where=where)
        if not keyword.flags:
            # PERF: not `re`, which may backtrack without end
            return None if pattern.matches(text) else text
        rest = difference(compile_terminal(keyword, where=where), pattern)
        return None if rest.is_empty else rest.shortest()
    except (TerminalError, LimitError):
        return text


def join_equal(grammar: Grammar) -> Grammar:
    """The grammar in which terminals that match the same texts, and compete somewhere, are one.

    Of a text that several terminals match, a lexer can emit one of them only. If the parser cannot
    take that one, though it could take another, the text would be refused, and masks would let in
    its beginnings (LALR states share lookaheads, so that the state alone does not say which can be
    taken). So the rules read one terminal instead: whichever of its uses the parser can take
    counts, and where that is open until later, the rules have a conflict, which is treated as any
    other.

    Example: under contextual lexing, `start: (a | "x" a SEMI) END`, `a: NAME`, `SEMI: ";"`,
    `END: ";"`: behind a NAME both may come, as far as the LALR state knows.

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
    groups: dict[object, list[int]] = {}
    for number, terminal in enumerate(grammar.terminals):
        if number in in_rules and number not in apart and not terminal.is_declared and terminal.lengths is None:
            groups.setdefault(_texts(grammar, number), []).append(number)
    return [group for group in groups.values() if len(group) > 1]


def _texts(grammar: Grammar, number: int) -> object:
    """Equal exactly for terminals of equal texts, refused alike: the one text, or the automaton."""
    terminal = grammar.terminals[number]
    if terminal.literal is not None and not terminal.flags:
        return terminal.literal.encode("utf-8", "surrogatepass")
    try:
        found = compile_terminal(terminal, where=grammar.name)
        refused = refused_before(terminal)
    except (TerminalError, LimitError):
        return number
    text = found.shortest()
    # each state of an automaton of one text has one way on, or none
    is_one = (found.next_state >= 0).sum() == len(text)
    return (found, refused) if refused else text if is_one else found
