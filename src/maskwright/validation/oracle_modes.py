"""What the oracle's parser and lexer exchange: modes in one direction, lexemes in the other.

A mode is the set of the terminals that compete where a lexeme begins.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import NamedTuple, TypeAlias

from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.grammar.grammar import Grammar, Layout, Terminal
from maskwright.validation.oracle_patterns import first_bytes, with_flags

Mode: TypeAlias = frozenset[int] | None
"""The terminals that compete where a lexeme begins; None: all of them, everywhere."""


class Step(NamedTuple):
    """A lexeme as the parser sees it.

    terminal : its terminal.
    mode : the terminals that competed; only stacks in this mode read the lexeme.
    column : of a newline, the column that it ends at; else None, and None for a newline without a
        line feed.
    grows : of a newline, the blanks, tabs and form feeds with which it may go on.
    behind : of an ignored lexeme that is the last one of a prefix, the terminals that may begin
        directly after it; None for any, and for other lexemes.
    """

    terminal: int
    mode: Mode = None
    column: Column | None = None
    grows: str = ""
    behind: frozenset[int] | None = None


def as_column(layout: Layout, margin: str, begin: Column = Column()) -> Column:  # noqa: B008
    """The column that blanks and tabs lead to from another one.

    layout : says how to count, see `Layout.tabs`. Under "consistent", as in CPython, a form feed
        leads back to column 0.
    margin : the text after the last line feed; characters other than blanks, tabs and form feeds do
        not count.
    begin : the column before the margin.
    """
    if layout.tabs == "lark":
        column = begin.wide + margin.count(" ") + margin.count("\t") * layout.tab_length
        return Column(column, column)
    _, form_feed, after_form_feed = margin.rpartition("\f")
    begin = Column() if form_feed else begin
    blank = "".join(character for character in after_form_feed if character in " \t")
    lines = (" " * begin.wide + blank).expandtabs(8), " " * begin.narrow + blank
    return Column(len(lines[0]), len(lines[1]))


def is_modal(grammar: Grammar) -> bool:
    """Whether the parser's state decides which terminals compete where a lexeme begins."""
    return grammar.lexing == "contextual" or bool(grammar.verbatim)


def competing(grammar: Grammar, acceptable: frozenset[int], refused: frozenset[int]) -> Mode:
    """The terminals that compete where a lexeme begins, in a state of the parser.

    If the state takes a verbatim terminal, these are: the terminals that it takes, without ignored
    ones and the layout's newline; and those `refused` terminals that begin with another byte than
    each of its verbatim terminals. Otherwise, under contextual lexing: the terminals that it takes,
    the ignored ones, the newline, the reserved ones and those in no rule, but no verbatim ones.
    Otherwise all but the verbatim ones.

    Where a terminal competes, one of its other lengths does (`Terminal.beyond`), and nowhere else.

    acceptable : the terminals for which the parser has an action in the state.
    refused : the terminals for which it has an action in no state.

    Returns: None if all terminals compete in every state.
    """
    if not is_modal(grammar):
        return None
    lexable = frozenset(n for n, one in enumerate(grammar.terminals) if one.pattern is not None and not one.beyond)
    found = _competing(grammar, acceptable, refused, lexable)
    names = {grammar.terminals[number].name for number in found}
    return found | {number for number, one in enumerate(grammar.terminals) if one.beyond in names}


def _competing(
    grammar: Grammar, acceptable: frozenset[int], refused: frozenset[int], lexable: frozenset[int]
) -> frozenset[int]:
    between = grammar.ignored | (frozenset() if grammar.layout is None else {grammar.layout.newline})
    if acceptable & grammar.verbatim:
        begins = frozenset[int]().union(*(_first_bytes(grammar.terminals[t]) for t in acceptable & grammar.verbatim))
        others = refused & lexable - between - grammar.verbatim
        alone = frozenset(t for t in others if not begins & _first_bytes(grammar.terminals[t]))
        return acceptable & lexable - between | alone
    if grammar.lexing != "contextual":
        return lexable - grammar.verbatim
    in_rules = frozenset(symbol for rule in grammar.rules for symbol in rule.rhs)
    return (acceptable | between | reserved(grammar) | lexable - in_rules) & lexable - grammar.verbatim


@lru_cache(maxsize=1024)
def _first_bytes(terminal: Terminal) -> frozenset[int]:
    return first_bytes(terminal)


@lru_cache(maxsize=8)
def reserved(grammar: Grammar) -> frozenset[int]:
    """The reserved terminals: literals that a pattern matches too, and these patterns.

    `Grammar.reserved` says which literals count: none, words, or all. A pair of a literal and a
    pattern does not count if the grammar has some rule both with the literal and, otherwise equal,
    with the pattern instead.
    """
    if grammar.reserved == "none":
        return frozenset()
    rules = {(rule.lhs, rule.rhs) for rule in grammar.rules}
    found: set[int] = set()
    for (keyword, one), (number, other) in product(enumerate(grammar.terminals), repeat=2):
        if one.literal is None or other.literal is not None or other.pattern is None or other.beyond:
            continue
        if grammar.reserved == "words" and not one.literal.isidentifier():
            continue
        if re.fullmatch(with_flags(other.pattern, other.flags), one.literal) is None:
            continue
        occurrences = ((lhs, rhs, at) for lhs, rhs in rules for at, symbol in enumerate(rhs) if symbol == keyword)
        if not any((lhs, (*rhs[:at], number, *rhs[at + 1 :])) in rules for lhs, rhs, at in occurrences):
            found |= {keyword, number}
    return frozenset(found)
