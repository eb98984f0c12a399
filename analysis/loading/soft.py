"""Soft keywords: literals that may also be what a pattern means, such as `_` or `match` in Python.

Under longest match a literal wins over a pattern, so a keyword is never a name unless a rule says
so. Lark's own parsers avoid this by lexing only what the parser can take; python.lark reads
`for _ in x` only because of that. A soft keyword states it in the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from maskwright.analysis.errors import GrammarError, LimitError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar, Rule, Terminal
from maskwright.analysis.lexing.terminals import compile_terminal
from maskwright.analysis.regex.dfa import difference


def soften(grammar: Grammar, keywords: Iterable[str]) -> Grammar:
    """The grammar in which each keyword may stand wherever a pattern may that matches it.

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
