"""What the oracle's parser tells its lexer, and what it gets: the terminals that compete where a lexeme begins, and lexemes."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import NamedTuple, TypeAlias

from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.grammar.grammar import Grammar, Layout, Terminal
from maskwright.validation.oracle_patterns import first_bytes, with_flags

Mode: TypeAlias = (
    frozenset[int] | None
)  # the terminals that compete where a lexeme begins; None: all of them, everywhere


class Step(NamedTuple):
    """A lexeme as the parser sees it, read by the stacks on which these terminals compete.

    Only of a newline: its column, and whether more spaces, tabs or form feeds may still follow. Only of an ignored lexeme that is the last
    of a prefix: the terminals that may begin directly behind it, None for any.
    """

    terminal: int
    mode: Mode = None
    column: Column | None = None
    by_space: bool = False
    by_tab: bool = False
    by_form_feed: bool = False
    behind: frozenset[int] | None = None


def as_column(layout: Layout, margin: str, begin: Column = Column()) -> Column:  # noqa: B008
    """The columns that blanks and tabs lead to. As CPython has it, a form feed makes all before it forgotten."""
    if layout.tabs == "lark":
        column = begin.wide + margin.count(" ") + margin.count("\t") * layout.tab_length
        return Column(column, column)
    _, form_feed, rest = margin.rpartition("\f")
    begin = Column() if form_feed else begin
    blank = "".join(character for character in rest if character in " \t")
    lines = (" " * begin.wide + blank).expandtabs(8), " " * begin.narrow + blank
    return Column(len(lines[0]), len(lines[1]))


def is_modal(grammar: Grammar) -> bool:
    """Is what competes where a lexeme begins up to the parser?"""
    return grammar.lexing == "contextual" or bool(grammar.verbatim)


def competing(grammar: Grammar, takes: frozenset[int], refused: frozenset[int]) -> Mode:
    """The terminals that compete where a lexeme begins and the parser has an action for those in `takes`.

    Where it can take a verbatim terminal: those that it can take, but nothing ignored and no newline of the layout, and of the terminals
    that it never takes (`refused`) those that begin like none of these verbatim ones. Elsewhere no verbatim ones; all others, or in
    contextual lexing those that it can take, the ignored, the newline, the reserved ones and those in no rule.
    """
    if not is_modal(grammar):
        return None
    lexable = frozenset(number for number, terminal in enumerate(grammar.terminals) if terminal.pattern is not None)
    between = grammar.ignored | (frozenset() if grammar.layout is None else {grammar.layout.newline})
    if takes & grammar.verbatim:
        begins = frozenset[int]().union(*(_first_bytes(grammar.terminals[t]) for t in takes & grammar.verbatim))
        others = refused & lexable - between - grammar.verbatim
        alone = frozenset(t for t in others if not begins & _first_bytes(grammar.terminals[t]))
        return takes & lexable - between | alone
    if grammar.lexing != "contextual":
        return lexable - grammar.verbatim
    in_rules = frozenset(symbol for rule in grammar.rules for symbol in rule.rhs)
    return (takes | between | reserved(grammar) | lexable - in_rules) & lexable - grammar.verbatim


@lru_cache(maxsize=1024)
def _first_bytes(terminal: Terminal) -> frozenset[int]:
    return first_bytes(terminal)


@lru_cache(maxsize=8)
def reserved(grammar: Grammar) -> frozenset[int]:
    """String literals that a pattern also matches, and these patterns, but where rules that are alike otherwise offer both.

    Of the literals those that `Grammar.reserved` names.
    """
    if grammar.reserved == "none":
        return frozenset()
    rules = {(rule.lhs, rule.rhs) for rule in grammar.rules}
    found: set[int] = set()
    for (keyword, one), (number, other) in product(enumerate(grammar.terminals), repeat=2):
        if one.literal is None or other.literal is not None or other.pattern is None:
            continue
        if grammar.reserved == "words" and not one.literal.isidentifier():
            continue
        if re.fullmatch(with_flags(other.pattern, other.flags), one.literal) is None:
            continue
        places = ((lhs, rhs, at) for lhs, rhs in rules for at, symbol in enumerate(rhs) if symbol == keyword)
        if not any((lhs, (*rhs[:at], number, *rhs[at + 1 :])) in rules for lhs, rhs, at in places):
            found |= {keyword, number}
    return frozenset(found)
