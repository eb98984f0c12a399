"""The one grammar object that everything else works on.

A `Grammar` is context-free, in plain BNF over integer symbols: terminals are ``0 .. n_terminals-1``, nonterminals
``n_terminals .. n_terminals+n_nonterminals-1``. It is immutable, hashable by content (`Grammar.digest`) and can be written to and
read from JSON without the file it came from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from maskwright.analysis.errors import GrammarError

Lexing = Literal["longest", "contextual", "nfa"]


@dataclass(frozen=True, slots=True)
class Terminal:
    """A named set of strings, given by a Python regular expression or by a literal.

    pattern : source for Python's `re`, or None for a declared terminal, which no text matches (layout inserts it).
    flags : the sorted letters of `re`'s flags that hold for the whole pattern, e.g. ``"is"``.
    literal : the string, when the terminal is a string literal of the grammar.
    priority : Lark's priority; higher wins.
    line, column : where it is defined, counted from 1; 0 if unknown (imported from another file).
    """

    name: str
    pattern: str | None
    flags: str = ""
    literal: str | None = None
    priority: int = 0
    line: int = 0
    column: int = 0

    @property
    def is_declared(self) -> bool:
        return self.pattern is None


@dataclass(frozen=True, slots=True)
class Rule:
    """A production ``lhs -> rhs`` over symbol numbers."""

    lhs: int
    rhs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Indentation as data: what Lark's `Indenter` subclass would say in code.

    After each lexeme of `newline` outside brackets, its column (spaces and tabs after the last line feed, a tab counting
    `tab_length` columns) is compared with the stack of open columns and yields one `indent`, nothing, or some `dedent`.
    Inside brackets newlines are dropped. All members but `tab_length` are terminal numbers.

    Source: Lark 1.3, `lark.indenter.Indenter`.
    """

    newline: int
    indent: int
    dedent: int
    brackets: tuple[tuple[int, int], ...]
    tab_length: int = 8


@dataclass(frozen=True)
class Grammar:
    """A context-free grammar with its terminals' patterns, ignored terminals and layout."""

    name: str
    terminals: tuple[Terminal, ...]
    nonterminals: tuple[str, ...]
    rules: tuple[Rule, ...]
    start: int
    ignored: frozenset[int] = frozenset()
    layout: Layout | None = None
    lexing: Lexing = "nfa"
    text: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        n_symbols = len(self.terminals) + len(self.nonterminals)
        if not self.is_nonterminal(self.start) or self.start >= n_symbols:
            raise GrammarError(f"grammar {self.name}: start symbol number {self.start} is not a nonterminal")
        for rule in self.rules:
            if not self.is_nonterminal(rule.lhs) or not all(0 <= symbol < n_symbols for symbol in (rule.lhs, *rule.rhs)):
                raise GrammarError(f"grammar {self.name}: rule {rule} uses a symbol number outside 0..{n_symbols - 1}")
        if not all(0 <= t < self.n_terminals for t in self.ignored):
            raise GrammarError(f"grammar {self.name}: an ignored symbol is not a terminal")
        if self.layout is not None:
            members = (self.layout.newline, self.layout.indent, self.layout.dedent, *sum(self.layout.brackets, ()))
            if not all(0 <= t < self.n_terminals for t in members):
                raise GrammarError(f"grammar {self.name}: the layout names a symbol that is not a terminal")

    @property
    def n_terminals(self) -> int:
        return len(self.terminals)

    @property
    def n_nonterminals(self) -> int:
        return len(self.nonterminals)

    def is_nonterminal(self, symbol: int) -> bool:
        return symbol >= len(self.terminals)

    def symbol_name(self, symbol: int) -> str:
        n = len(self.terminals)
        return self.terminals[symbol].name if symbol < n else self.nonterminals[symbol - n]

    @cached_property
    def terminal_number(self) -> Mapping[str, int]:
        """Name of a terminal -> its number."""
        return {terminal.name: number for number, terminal in enumerate(self.terminals)}

    @cached_property
    def rules_of(self) -> Mapping[int, tuple[Rule, ...]]:
        """Nonterminal -> its rules, in the grammar's order."""
        table: dict[int, list[Rule]] = {len(self.terminals) + i: [] for i in range(len(self.nonterminals))}
        for rule in self.rules:
            table[rule.lhs].append(rule)
        return {lhs: tuple(rules) for lhs, rules in table.items()}

    def rule_text(self, rule: Rule) -> str:
        return f"{self.symbol_name(rule.lhs)} : {' '.join(map(self.symbol_name, rule.rhs))}".rstrip()

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def with_rules(self, nonterminals: tuple[str, ...], rules: tuple[Rule, ...], start: int) -> Grammar:
        """The same terminals under other rules (the caller proves that the language is the same)."""
        return replace(self, nonterminals=nonterminals, rules=rules, start=start)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy; `from_dict` reads it back."""
        layout = self.layout
        return {
            "name": self.name,
            "lexing": self.lexing,
            "text": self.text,
            "start": self.start,
            "terminals": [
                [t.name, t.pattern, t.flags, t.literal, t.priority, t.line, t.column] for t in self.terminals
            ],
            "nonterminals": list(self.nonterminals),
            "rules": [[rule.lhs, *rule.rhs] for rule in self.rules],
            "ignored": sorted(self.ignored),
            "layout": None
            if layout is None
            else {
                "newline": layout.newline,
                "indent": layout.indent,
                "dedent": layout.dedent,
                "brackets": [list(pair) for pair in layout.brackets],
                "tab_length": layout.tab_length,
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Grammar:
        """Read back what `to_dict` wrote. Raises GrammarError when it is not of that shape."""
        try:
            layout = data["layout"]
            return cls(
                name=data["name"],
                lexing=data["lexing"],
                text=data["text"],
                start=data["start"],
                terminals=tuple(Terminal(*fields) for fields in data["terminals"]),
                nonterminals=tuple(data["nonterminals"]),
                rules=tuple(Rule(lhs, tuple(rhs)) for lhs, *rhs in data["rules"]),
                ignored=frozenset(data["ignored"]),
                layout=None
                if layout is None
                else Layout(
                    layout["newline"],
                    layout["indent"],
                    layout["dedent"],
                    tuple((opening, closing) for opening, closing in layout["brackets"]),
                    layout["tab_length"],
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise GrammarError(f"not a grammar written by maskwright: {error!r}") from error

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the grammar's content; equal for equal grammars on every machine."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def __str__(self) -> str:
        return (
            f"<Grammar {self.name}: {self.n_terminals} terminals, {self.n_nonterminals} nonterminals, "
            f"{len(self.rules)} rules, start {self.symbol_name(self.start)!r}>"
        )

    def __hash__(self) -> int:
        return hash(self.digest)
