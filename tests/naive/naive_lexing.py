"""The lexer of the naive engine: which terminals compete where, and which of them a lexeme becomes, by derivatives of their patterns."""

from __future__ import annotations

import itertools
from functools import cached_property, lru_cache, reduce
from typing import Any, Literal

from lark.utils import get_regexp_width
from naive_regex import NONE, Regex, compile_pattern, derivative, is_nullable, of_lengths

from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.encoding import ACCEPT, LrTables
from maskwright.analysis.lr.lookaheads import lookaheads
from maskwright.analysis.lr.tables import build_lr_tables, tables_of
from maskwright.validation.oracle_live import Futures

Lexeme = tuple[int, bool]
"""A lexeme under way: the union's state, and whether it has a line feed."""


def futures_of(tables: LrTables) -> Futures:
    """What the stacks of a parser with one action a cell can come to."""
    shifts: dict[int, dict[Any, int]] = {}
    reduces: dict[int, dict[Any, list[tuple[int, Any]]]] = {}
    for state in range(tables.n_states):
        shifts[state] = {f"n{a}": int(after) for a, after in enumerate(tables.goto[state]) if after >= 0}
        reduces[state] = {}
        for column in range(tables.n_terminals + 1):
            for action in tables.actions(state, column):
                if action < 0:
                    body = int(tables.rule_length[-action - 1]), f"n{tables.rule_lhs[-action - 1]}"
                    reduces[state].setdefault(column, []).append(body)
                else:
                    shifts[state][column] = -1 if action == ACCEPT else action - 1
    return Futures(shifts, reduces, range(tables.n_terminals + 1), -1)


def regex_of(terminal: Terminal) -> Regex:
    regex = compile_pattern(terminal.pattern or "")
    return regex if terminal.lengths is None else of_lengths(regex, *terminal.lengths, bool(terminal.beyond))


class NaiveLexing:
    """A grammar's tables, with all actions, and the lexing that they ask for.

    A lexeme under way is a state of the union of all terminals' patterns, by number, and whether it has a line feed.
    """

    def __init__(self, grammar: Grammar, conflicts: Literal["all", "shift"] = "all") -> None:
        self.grammar = grammar
        self.layout = grammar.layout
        build_lr_tables(grammar, conflicts)  # refuses what cannot be read
        automaton = build_automaton(parsed_grammar(grammar, conflicts))
        self.tables = tables_of(automaton, lookaheads(automaton), conflicts)
        """With all actions, also those that the engine need not follow."""
        self.futures = futures_of(self.tables) if conflicts == "shift" else None
        """Asked of each stack where conflicts were decided: no text may end from it."""
        lexable = [t for t, terminal in enumerate(grammar.terminals) if terminal.pattern is not None]
        if any(grammar.terminals[t].flags for t in lexable):
            raise NotImplementedError("the naive engine does not know flags of patterns")
        self.terminals = sorted(lexable, key=self._rank)
        """The strongest first."""
        self.union: list[tuple[Regex, ...]] = [tuple(regex_of(grammar.terminals[t]) for t in self.terminals)]
        self._union_number = {self.union[0]: 0}
        self._next: dict[tuple[int, int], int] = {}
        self._reached: dict[Lexeme, frozenset[Lexeme]] = {}
        newline = () if self.layout is None else (self.layout.newline,)
        self.kept_out = self.grammar.ignored | frozenset(newline)
        """What is no part of the rules' text: ignored between lexemes, or there for the layout."""

    def _rank(self, terminal: int) -> tuple[int, bool, int, int, str, str]:
        found = self.grammar.terminals[terminal]
        pattern = found.pattern or ""
        width = get_regexp_width(pattern)[1] if found.literal is None else len(found.literal)
        return -found.priority, found.literal is None, -width, -len(pattern), found.beyond or found.name, found.beyond

    @lru_cache(maxsize=1 << 12)  # noqa: B019
    def competing(self, lr_state: int) -> frozenset[int]:
        """The terminals that compete where a lexeme begins in a state of the parser; with each its other lengths."""
        terminals = self.grammar.terminals
        found = self._competing(lr_state)
        whole = {terminals[t].name for t in found if not terminals[t].beyond}
        return frozenset(t for t in self.terminals if (terminals[t].beyond or terminals[t].name) in whole)

    def _competing(self, lr_state: int) -> frozenset[int]:
        takes = {t for t in self.terminals if self.column(t) >= 0 and self.tables.action[lr_state, self.column(t)] != 0}
        everywhere = frozenset(self.terminals) - self.grammar.verbatim
        if takes & self.grammar.verbatim:
            begins = frozenset[int]().union(*map(self.first_bytes, takes & self.grammar.verbatim))
            refused = (t for t in everywhere - self.kept_out if self.column(t) < 0)
            return frozenset(takes - self.kept_out).union(t for t in refused if not begins & self.first_bytes(t))
        if self.grammar.lexing != "contextual":
            return everywhere
        in_rules = {symbol for rule in self.grammar.rules for symbol in rule.rhs}
        return everywhere & (takes | self.kept_out | self.reserved | (everywhere - in_rules))

    @lru_cache(maxsize=1 << 12)  # noqa: B019
    def first_bytes(self, terminal: int) -> frozenset[int]:
        regex = regex_of(self.grammar.terminals[terminal])
        return frozenset(byte for byte in range(256) if derivative(regex, byte) != NONE)

    @cached_property
    def reserved(self) -> frozenset[int]:
        """Keywords and the patterns that match them too, unless rules that differ in nothing else offer both.

        None of them, those that are words, or all.
        """
        if self.grammar.reserved == "none":
            return frozenset()
        found: set[int] = set()
        for keyword, pattern in itertools.product(self.terminals, repeat=2):
            literal = self.grammar.terminals[keyword].literal
            if (
                literal is None
                or self.grammar.terminals[pattern].literal is not None
                or self.grammar.terminals[pattern].beyond
            ):
                continue
            if self.grammar.reserved == "words" and not literal.isidentifier():
                continue
            regex = compile_pattern(self.grammar.terminals[pattern].pattern or "")
            if is_nullable(reduce(derivative, literal.encode(), regex)) and not self.is_soft(keyword, pattern):
                found |= {keyword, pattern}
        return frozenset(found)

    def is_soft(self, keyword: int, pattern: int) -> bool:
        """Do the rules offer them as alternatives, here or there?"""
        rules = {(rule.lhs, rule.rhs) for rule in self.grammar.rules}
        return any(
            (lhs, (*rhs[:at], pattern, *rhs[at + 1 :])) in rules
            for lhs, rhs in rules
            for at in range(len(rhs))
            if rhs[at] == keyword
        )

    def begin(self, competing: frozenset[int]) -> int:
        """The union's state where a lexeme begins and only these compete."""
        regexes = zip(self.terminals, self.union[0], strict=True)
        return self._numbered(tuple(regex if t in competing else NONE for t, regex in regexes))

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """The same for all sets that compete in some state of the parser."""
        return tuple(sorted({self.begin(self.competing(state)) for state in range(len(self.tables.action))}))

    @lru_cache(maxsize=1 << 12)  # noqa: B019
    def begins_after(self, terminal: int) -> tuple[int, ...]:
        """The same for the states of the parser that may be on top after a terminal, layout included."""
        entered, stays = {terminal}, terminal in self.kept_out
        if self.layout is not None and terminal == self.layout.newline:
            entered |= {self.layout.indent, self.layout.dedent}
        columns = {self.column(t) for t in entered} - {-1}
        states = [s for s, symbol in enumerate(self.tables.accessing.tolist()) if symbol in columns]
        states += [s for s in range(len(self.tables.action)) if stays and terminal in self.competing(s)]
        return tuple(sorted({self.begin(self.competing(state)) for state in states}))

    def _numbered(self, union: tuple[Regex, ...]) -> int:
        if all(regex == NONE for regex in union):
            return -1
        number = self._union_number.setdefault(union, len(self.union))
        if number == len(self.union):
            self.union.append(union)
        return number

    def read(self, state: int, byte: int) -> int:
        """The union of the terminals that compete after one more byte; -1 if none is left."""
        if (state, byte) not in self._next:
            union = self.union[state] if state >= 0 else ()
            self._next[state, byte] = self._numbered(tuple(derivative(regex, byte) for regex in union))
        return self._next[state, byte]

    @cached_property
    def alphabet(self) -> bytes:
        """Bytes, one of each class that the terminals tell apart as first, second, ... byte; those that move columns always."""
        known: dict[tuple[int, ...], int] = {}
        found, agenda = {0, *self.begins} - {-1}, [0, *self.begins]
        while agenda:
            state = agenda.pop()
            for after in {self.read(state, byte) for byte in range(256)} - found - {-1}:
                found.add(after)
                agenda.append(after)
        for byte in (*b"\n \t\f", *range(256)):
            is_special = (byte if byte in b"\n \t\f" else -1,)
            known.setdefault(is_special + tuple(self.read(state, byte) for state in sorted(found)), byte)
        return bytes(sorted(known.values()))

    @lru_cache(maxsize=1 << 16)  # noqa: B019
    def winner_of(self, state: int, has_line_feed: bool) -> int:
        """The winner; a newline of the layout has no column without a line feed, so it leaves the place to the next best."""
        newline = -1 if self.layout is None or has_line_feed else self.layout.newline
        regexes = zip(self.terminals, self.union[state], strict=True)
        return next((t for t, regex in regexes if t != newline and is_nullable(regex)), -1)

    @lru_cache(maxsize=1 << 16)  # noqa: B019
    def grow(self, lexeme: Lexeme, byte: int) -> Lexeme | None:
        """A lexeme under way one byte on; None if it can become nothing then, as a newline of the layout to which no line feed comes."""
        after = self.read(lexeme[0], byte), lexeme[1] or byte == 10
        return after if after[0] >= 0 and self.ahead(after) else None

    def reached(self, lexeme: Lexeme) -> frozenset[Lexeme]:
        """What it may grow to, itself included."""
        if lexeme not in self._reached:
            found, agenda = {lexeme}, [lexeme]
            while agenda:
                here, has_line_feed = agenda.pop()
                for byte in self.alphabet:
                    place = self.read(here, byte), has_line_feed or byte == 10
                    if place[0] >= 0 and place not in found:
                        found.add(place)
                        agenda.append(place)
            self._reached[lexeme] = frozenset(found)
        return self._reached[lexeme]

    @lru_cache(maxsize=1 << 16)  # noqa: B019
    def ahead(self, lexeme: Lexeme) -> frozenset[int]:
        """The terminals that win at some place from here on."""
        return frozenset(self.winner_of(*place) for place in self.reached(lexeme)) - {-1}

    def scan(self, text: bytes, begin: int, state: int = 0) -> tuple[int, int, int]:
        """The longest match at `begin` (winner or -1, its end), and the union's state at the end of the text; -1 if all have failed.

        state : where the union begins; all terminals compete by default.
        """
        winner, end, lexeme = -1, begin, (state, False)
        for at in range(begin, len(text)):
            after = self.grow(lexeme, text[at])
            if after is None:
                return winner, end, -1
            lexeme = after
            found = self.winner_of(*lexeme)
            if found >= 0:
                winner, end = found, at + 1
        return winner, end, lexeme[0]

    @lru_cache(maxsize=1 << 16)  # noqa: B019
    def can_grow(self, lexeme: Lexeme) -> bool:
        return any(self.grow(lexeme, byte) for byte in self.alphabet)

    @lru_cache(maxsize=1 << 16)  # noqa: B019
    def can_fail(self, text: bytes, end: int, firsts: frozenset[int], begin: int = 0, anew: int = 0) -> bool:
        """May the lexeme under way over all of `text`, last complete at `end`, fail such that the bytes past `end` are read anew?

        firsts : the terminals that may come then. begin, anew : the union's states where the lexeme began and where the other reading
        begins. What else that one emits is not asked: it may end its lexemes anywhere, and go on in any state of the parser that its
        last terminal leads to.
        """
        readings = frozenset({(anew, False, True)})
        for byte in text[end:]:
            readings = self._anew(readings, byte, firsts)
        return self._fails((self.scan(text, 0, begin)[2], b"\n" in text), readings, firsts)

    def _fails(self, lexeme: Lexeme, readings: frozenset[tuple[int, bool, bool]], firsts: frozenset[int]) -> bool:
        """Are there bytes that make the lexeme fail before it wins, and that one of the readings survives?"""
        found, agenda = {(lexeme, readings)}, [(lexeme, readings)]
        while agenda:
            here, readings = agenda.pop()
            for byte in self.alphabet:
                after, others = self.grow(here, byte), self._anew(readings, byte, firsts)
                if after is None:
                    if others:
                        return True
                elif others and self.winner_of(*after) < 0 and (after, others) not in found:
                    found.add((after, others))
                    agenda.append((after, others))
        return False

    @lru_cache(maxsize=1 << 16)  # noqa: B019 (an engine lives as long as its test)
    def _anew(
        self, readings: frozenset[tuple[int, bool, bool]], byte: int, firsts: frozenset[int]
    ) -> frozenset[tuple[int, bool, bool]]:
        """Where lexers that may end a lexeme wherever it is complete are after one more byte, and whether in their first lexeme."""
        found = set()
        for *lexeme, is_first in readings:
            after = self.grow((lexeme[0], lexeme[1]), byte)
            if after is not None and (not is_first or self.ahead(after) & firsts):
                found.add((*after, is_first))
                winner = self.winner_of(*after)
                if winner >= 0 and (not is_first or winner in firsts):
                    found |= {(begin, False, False) for begin in self.begins_after(winner)}
        return frozenset(found)

    def column(self, terminal: int) -> int:
        return int(self.tables.terminal_column[terminal])
