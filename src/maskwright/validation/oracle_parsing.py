"""The oracle's parser. In: a grammar, lexemes. Out: parses.

It runs Lark's own LALR(1) item sets over linked stacks that never change, with layout as in Lark.
The oracle's parser tells its lexer the *mode*, the terminals that compete where a lexeme begins,
and is told lexemes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from lark.common import ParserConf
from lark.grammar import NonTerminal
from lark.grammar import Rule as LarkRule
from lark.grammar import Terminal as LarkTerminal
from lark.parsers.lalr_analysis import LALR_Analyzer

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.columns import MOST_COLUMN, Column
from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Layout, Terminal
from maskwright.analysis.grammar.normalise import productive_symbols, reduce
from maskwright.analysis.lr.acyclic import without_endless
from maskwright.validation.oracle_live import Futures, Stack
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


Stacks: TypeAlias = tuple[Stack, ...]
Configuration: TypeAlias = "tuple[int, Parse]"
"""The offset where the next lexeme begins (characters), and the parse before it."""


MAX_STACKS = 2_000
"""Most stacks (readings of a text) that are followed side by side."""
MAX_STEPS = 1_000_000
"""Most steps before one terminal."""


ENDED = -1
"""The LR state after the end of the text."""


class Parse(NamedTuple):
    """What the parser knows after some lexemes.

    stacks : its stacks of LR states; several if the text has several readings.
    columns : the columns of the open indents, the innermost last; the first is column 0.
    depth : number of open brackets.
    """

    stacks: Stacks
    columns: tuple[Column, ...] = (Column(),)
    depth: int = 0


@lru_cache(maxsize=8)
def parser_of(grammar: Grammar, conflicts: Conflicts) -> Parser:
    """The parser of a grammar, from a cache of 8. A parser does not change once it is built.

    Raises: as `Parser`. Cost: 2 s for python.lark, the first time.
    """
    return Parser(grammar, conflicts)


class Parser:
    """Lark's LALR(1) item sets, run over shared stacks, with layout as in Lark's `Indenter`.

    If following every action would not end, the parser uses the rules of `without_endless`, which
    have the same texts.

    grammar : any grammar.
    conflicts : as in `Grammar`. "all" follows every action. "shift" shifts rather than reduces, and
        reduces by the first rule.
    """

    def __init__(self, grammar: Grammar, conflicts: Conflicts) -> None:
        self.grammar = grammar
        self.layout = grammar.layout
        self.is_modal = is_modal(grammar)
        self._modes: dict[int, Mode] = {}
        brackets = () if self.layout is None else self.layout.brackets
        self.bracket_change = {opening: 1 for opening, _ in brackets} | {closing: -1 for _, closing in brackets}
        n = grammar.n_terminals
        if conflicts == "all":
            grammar = without_endless(reduce(grammar))
        alive = productive_symbols(grammar)

        def symbol(number: int) -> LarkTerminal | NonTerminal:
            return LarkTerminal(f"T{number}") if number < n else NonTerminal(f"n{number}")

        rules = [
            LarkRule(NonTerminal(f"n{rule.lhs}"), list(map(symbol, rule.rhs)), order)
            for order, rule in enumerate(dict.fromkeys(grammar.rules))
            if rule.lhs in alive and all(s < n or s in alive for s in rule.rhs)
        ]
        start = f"n{grammar.start}"
        analyzer: Any = LALR_Analyzer(ParserConf(rules, {}, [start]))
        analyzer.compute_lr0_states()
        analyzer.compute_reads_relations()
        analyzer.compute_includes_lookback()
        analyzer.compute_lookaheads()
        # the order of the item sets is not fixed, but no result depends on the numbers
        number = {id(items): i for i, items in enumerate(analyzer.lr0_itemsets)}
        self.shifts: dict[int, dict[str, int]] = {}
        self.reduces: dict[int, dict[str, list[tuple[int, str]]]] = {}
        is_decided = False
        for items in analyzer.lr0_itemsets:
            to = {terminal.name: number[id(after)] for terminal, after in items.transitions.items()}
            by: dict[str, list[tuple[int, str]]] = {}
            for terminal, found in items.lookaheads.items():
                ordered = sorted(found, key=lambda rule: rule.order)
                if conflicts == "shift":
                    is_decided |= terminal.name in to or len(ordered) > 1
                    ordered = [] if terminal.name in to else ordered[:1]
                by[terminal.name] = [(len(rule.expansion), rule.origin.name) for rule in ordered]
            self.shifts[number[id(items)]], self.reduces[number[id(items)]] = to, by
        taken = set[str]().union(*self.shifts.values(), *self.reduces.values())
        self._refused = frozenset(number for number in range(n) if f"T{number}" not in taken)
        first = analyzer.lr0_start_states[start]
        self.shifts[number[id(first.transitions[NonTerminal(start)])]]["$END"] = ENDED
        self.futures = (
            Futures(self.shifts, self.reduces, [*(f"T{t}" for t in range(n)), "$END"], ENDED) if is_decided else None
        )
        """Says from which stacks a text can be finished; None if no conflict was decided."""
        self.initial = Parse(((number[id(first)], None),))
        inserted = () if self.layout is None else (self.layout.indent, self.layout.dedent)
        self.lexable = [number for number in range(n) if number not in inserted and number not in grammar.ignored]

    def shift(self, stacks: Stacks, symbol: str) -> Stacks:
        """The stacks after a terminal; () if no stack accepts it.

        symbol : "T" and the terminal's number, or "$END" for the end of the text.

        Raises: LimitError for more than `MAX_STACKS` stacks or `MAX_STEPS` steps.
        """
        found: list[Stack] = []
        agenda = list(stacks)
        seen = list(stacks)
        steps = 0
        while agenda:
            steps += 1
            stack = agenda.pop()
            after = self.shifts[stack[0]].get(symbol)
            if after is not None and (after == ENDED or self.futures is None or self.futures.is_live((after, stack))):
                _add(found, (after, stack))
            for length, origin in self.reduces[stack[0]].get(symbol, ()):
                below: Stack | None = stack
                for _ in range(length):
                    assert below is not None
                    below = below[1]
                assert below is not None
                reduced = self.shifts[below[0]][origin], below
                if len(stacks) == 1 and not agenda and not found:
                    # usually there is one stack, which ends in a shift; then `seen` is not needed
                    agenda.append(reduced)
                elif _add(seen, reduced):
                    agenda.append(reduced)
                if len(seen) > MAX_STACKS or steps > MAX_STEPS:
                    raise LimitError(f"grammar {self.grammar.name} has more than {MAX_STACKS} readings of a text")
        return tuple(found)

    def mode(self, state: int) -> Mode:
        """The terminals that compete where a lexeme begins in an LR state."""
        if state not in self._modes:
            names = (*self.shifts[state], *self.reduces[state])
            acceptable = frozenset(int(name[1:]) for name in names if name.startswith("T"))
            self._modes[state] = competing(self.grammar, acceptable, self._refused)
        return self._modes[state]

    def modes(self, parse: Parse) -> tuple[Mode, ...]:
        """The distinct modes of the stacks; (None,) if all terminals compete everywhere."""
        return tuple(dict.fromkeys(self.mode(stack[0]) for stack in parse.stacks)) if self.is_modal else (None,)

    def only(self, parse: Parse, mode: Mode) -> Parse:
        """The parse with only those stacks that are in a mode."""
        if not self.is_modal:
            return parse
        return parse._replace(stacks=tuple(stack for stack in parse.stacks if self.mode(stack[0]) == mode))

    def before_next(self, parse: Parse, step: Step) -> Parse | None:
        """The parse after a lexeme, if the parser decides which terminals compete next.

        If it does not, the parse is returned unchanged. None if the lexeme is not accepted.
        """
        return self.step(parse, step) if self.is_modal else parse

    def step(self, parse: Parse, step: Step) -> Parse | None:
        """The parse after a finished lexeme, on the stacks in its mode; None if it is not accepted.

        Raises: LimitError as `shift`.
        """
        terminal, column = step.terminal, step.column
        parse = self.only(parse, step.mode)
        if terminal in self.grammar.ignored:
            return parse
        is_newline = self.layout is not None and terminal == self.layout.newline
        if is_newline and parse.depth > 0:
            return parse
        stacks = self.shift(parse.stacks, f"T{terminal}")
        if not stacks:
            return None
        if is_newline:
            return None if column is None else self._indent(parse._replace(stacks=stacks), column)
        # a closing bracket that closes nothing changes nothing
        return Parse(stacks, parse.columns, max(0, parse.depth + self.bracket_change.get(terminal, 0)))

    def _indent(self, parse: Parse, column: Column) -> Parse | None:
        """The parse after a newline that ends at a column; None if the column is refused.

        The wide and the narrow column must agree on how far in the line is.
        """
        assert self.layout is not None
        stacks, columns = parse.stacks, parse.columns
        if column.wide > columns[-1].wide:
            if column.narrow <= columns[-1].narrow or column.wide >= MOST_COLUMN:
                return None
            stacks, columns = self.shift(stacks, f"T{self.layout.indent}"), (*columns, column)
        while column.wide < columns[-1].wide:
            stacks, columns = self.shift(stacks, f"T{self.layout.dedent}"), columns[:-1]
        return parse._replace(stacks=stacks, columns=columns) if stacks and column == columns[-1] else None

    def last_step(self, parse: Parse, step: Step) -> Iterator[Parse]:
        """All possible parses after the last lexeme of a prefix.

        There are several if the lexeme is a newline that can still grow to other columns.
        """
        columns: set[Column | None] = {step.column}
        if step.column is not None and step.grows:
            assert self.layout is not None
            begins = {step.column}
            if "\f" in step.grows and self.layout.tabs == "consistent":
                begins.add(Column())
            for begin in begins:
                columns |= {begin, *_further(step.grows.replace("\f", ""), begin, parse.columns, self.layout)}
        for column in sorted(columns, key=lambda column: column or Column(-1)):
            after = self.step(parse, step._replace(column=column))
            if after is not None:
                yield after

    def leads_on(self, parse: Parse, behind: frozenset[int] | None = None) -> bool:
        """Whether the text may end here, or the parser accepts some terminal next.

        behind : the terminals that may come next; None for any.
        """
        newline = -1 if self.layout is None or parse.depth == 0 else self.layout.newline
        # in brackets a newline is ignored, and anything may follow it
        behind = None if behind is None or newline in behind else behind
        following = [n for n in self.lexable if n != newline and (behind is None or n in behind)]
        return self.accepts_end(parse) or any(
            self.shift(self.only(parse, mode).stacks, f"T{number}")
            for mode in self.modes(parse)
            for number in following
            if mode is None or number in mode
        )

    def accepts_end(self, parse: Parse) -> bool:
        """Whether the text may end here, after a dedent for each open indent."""
        stacks = parse.stacks
        for _ in parse.columns[1:]:
            assert self.layout is not None
            stacks = self.shift(stacks, f"T{self.layout.dedent}")
        return bool(self.shift(stacks, "$END"))


@lru_cache(maxsize=4096)
def _further(blanks: str, begin: Column, opened: tuple[Column, ...], layout: Layout) -> frozenset[Column]:
    """Columns that some blanks lead to, any number of each: open ones, and one further in than all.

    One that is further in than all open ones stands for all such columns.
    """
    top, agenda, further = opened[-1], [begin], set[Column]()
    for column in agenda:  # grows during the loop
        for blank in blanks:
            after = as_column(layout, blank, column)
            if after.wide > top.wide and after.narrow > top.narrow:
                further.add(after)
            elif after not in agenda:
                agenda.append(after)
    return frozenset({*agenda} & {*opened}) | frozenset(sorted(further)[:1])


def merged(configurations: Iterable[Configuration]) -> list[Configuration]:
    """Configurations in order of offset, with those that differ only in their stacks made one.

    configurations : pairs of an offset and a parse, in any order.
    """
    found: dict[tuple[int, tuple[Column, ...], int], list[Stack]] = {}
    for begin, parse in sorted(configurations, key=lambda configuration: configuration[0]):
        stacks = found.setdefault((begin, parse.columns, parse.depth), [])
        for stack in parse.stacks:
            _add(stacks, stack)
    return [(begin, Parse(tuple(stacks), columns, depth)) for (begin, columns, depth), stacks in found.items()]


def _add(stacks: list[Stack], stack: Stack) -> bool:
    """Add a stack unless an equal one is there; returns whether it was added."""
    if any(_is_same(stack, other) for other in stacks):
        return False
    stacks.append(stack)
    return True


def _is_same(first: Stack | None, second: Stack | None) -> bool:
    # `first == second` would compare the stacks recursively, as deep as they are
    while first is not second:
        if first is None or second is None or first[0] != second[0]:
            return False
        first, second = first[1], second[1]
    return True
