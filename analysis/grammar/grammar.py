"""The one grammar object that everything else works on.

A `Grammar` is a context-free grammar in plain BNF. Its symbols are integers: terminals are
`0 .. n_terminals - 1`, nonterminals are `n_terminals .. n_terminals + n_nonterminals - 1`. A
`Grammar` is immutable, and its digest depends on its content only (`Grammar.digest`). It can be
written to JSON and read back without the file that it came from.

Example: with terminals A and B and the nonterminal s, A is 0, B is 1 and s is 2. The rule
`s : A s B` is `Rule(2, (0, 2, 1))`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast, get_args

from maskwright.analysis.arguments import as_integer, as_pairs, clip
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, TAB_STOP, Column, Tabs, column_after, compare
from maskwright.analysis.grammar.terminal import INT32, Lengths, Terminal, typed
from maskwright.analysis.kept import cached_property

__all__ = [
    "INT32",
    "NO_TERMINAL",
    "Conflicts",
    "Grammar",
    "Layout",
    "Lengths",
    "Lexing",
    "Line",
    "Reserved",
    "Rule",
    "Terminal",
]

Lexing = Literal["longest", "contextual", "nfa"]
Conflicts = Literal["all", "shift"]
Reserved = Literal["none", "words", "all"]

_MAX_TAB_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Rule:
    """A production `lhs -> rhs` over symbol numbers; `rhs` may be empty."""

    lhs: int
    rhs: tuple[int, ...]


class Line(NamedTuple):
    """What the beginning of a line does to the open blocks.

    inserted : the terminals that come: one indent, nothing, or dedents.
    columns : of the blocks that are open then, the outermost first.
    """

    inserted: tuple[int, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Indentation as data: what a subclass of Lark's `Indenter` says in code.

    After each newline lexeme outside brackets, the column of the new line is compared with the
    stack of open columns. The comparison yields one `indent`, nothing, or one or more `dedent`.
    Inside brackets, newlines are dropped. Blanks at the end of the text have no column: all columns
    that are open are closed there.

    newline, indent, dedent : terminal numbers.
    brackets : pairs of terminal numbers, each an opening and a closing bracket.
    tab_length : columns that a tab counts if `tabs` is "lark".
    tabs : "lark": a tab counts `tab_length` columns wherever it stands. "consistent": tabs and
        blanks must agree, as in CPython (see `columns`).

    NumPy integers are accepted and become plain integers. `Grammar` checks that the numbers are in
    range.

    Raises: GrammarError if a number is not an integer, or if `brackets` does not consist of pairs.
    Source: Lark 1.3, `lark.indenter.Indenter` (which counts blanks at the end of the text as an
    indent); CPython, Parser/lexer/lexer.c.
    """

    newline: int
    indent: int
    dedent: int
    brackets: tuple[tuple[int, int], ...]
    tab_length: int = TAB_STOP
    tabs: Tabs = "lark"

    def __post_init__(self) -> None:
        for member in ("newline", "indent", "dedent", "tab_length"):
            value = as_integer(f"the layout's {member}", getattr(self, member), GrammarError)
            object.__setattr__(self, member, value)
        brackets = tuple(
            (
                as_integer("a bracket of the layout", opening, GrammarError),
                as_integer("a bracket of the layout", closing, GrammarError),
            )
            for opening, closing in as_pairs(
                "the layout's brackets", self.brackets, "pairs of terminals' numbers", GrammarError
            )
        )
        object.__setattr__(self, "brackets", brackets)

    def column_after(self, text: bytes, column: Column = FIRST_COLUMN) -> Column:
        """The column that a newline lexeme has reached after more of its bytes.

        text : the next bytes of the newline lexeme.
        column : the column before them.
        """
        return column_after(text, column, self.tabs, self.tab_length)

    def compare(self, column: Column, opened: Column) -> int | None:
        """1 if a line at `column` is further in than `opened`, 0 if equal, -1 if less far in.

        None means that the text is refused, because the two ways to count tabs do not agree.

        >>> layout = Layout(0, 1, 2, (), tabs="consistent")
        >>> tab, four, eight = map(layout.column_after, (b"\\t", b"    ", b"        "))
        >>> both = layout.column_after(b"\\t    ")
        >>> [layout.compare(a, b) for a, b in ((tab, four), (both, tab), (eight, tab), (four, tab))]
        [None, 1, None, -1]
        """
        return compare(column, opened)

    def line_at(self, columns: tuple[Column, ...], column: Column) -> Line | None:
        """What a line that begins at a column does, outside brackets; None if it is refused.

        columns : of the open blocks, the outermost first; at least one.

        >>> layout = Layout(0, 1, 2, ())
        >>> none, two, four = map(layout.column_after, (b"", b"  ", b"    "))
        >>> layout.line_at((none, two), four).inserted, layout.line_at((none, four), none).inserted
        ((1,), (2,))
        >>> layout.line_at((none, four), two)
        """
        order = self.compare(column, columns[-1])
        if order == 1:
            return Line((self.indent,), (*columns, column))
        if order is None or column not in columns:
            return None
        n_closed = len(columns) - 1 - columns.index(column)
        return Line((self.dedent,) * n_closed, columns[: len(columns) - n_closed])


NO_TERMINAL = -9
"""Stands for a terminal that a grammar does not have. It is the number of no terminal."""


@dataclass(frozen=True)
class Grammar:
    """A context-free grammar with its terminals' patterns, ignored terminals and layout.

    name : the name that messages show.
    terminals : the terminals, by number. Their names are distinct.
    nonterminals : names of the nonterminals; name i is symbol `n_terminals + i`.
    rules : the productions, in order.
    start : number of the start symbol, a nonterminal.
    ignored : numbers of the ignored terminals.
    layout : indentation as data; None if the grammar has none.
    lexing : how a text becomes lexemes. "longest": the longest match. Ties go to the higher
        priority, then to string literals, then by Lark's order. "contextual": the same among the
        terminals that the parser can take. "nfa": every way to cut the text into lexemes.
    text : the text of the grammar file; "" if there is none.
    unused_terminals : names that the text defines though neither the rules nor `%ignore` nor
        another terminal needs them. They are not among `terminals`.
    conflicts : what an LALR parser does where several actions are possible. "all": it follows each
        action that a text may need, on several stacks. "shift": it shifts rather than reduces, and
        reduces by the first rule, as Lark does. Has no effect if lexing is "nfa".
    verbatim : numbers of terminals for texts within texts, such as the inside of a string with
        holes. They are lexed only where the parser can take one of them. There, only terminals that
        the parser can take compete, and nothing is ignored. Has no effect if lexing is "nfa": a
        verbatim text may then be read as anything else as well.
    reserved : which string literals compete everywhere under contextual lexing. "none"; "words":
        those that are words and that a pattern matches too; "all": all that a pattern matches. See
        `lexing.modes`. Has no effect under the other lexings.
    plain : the grammar before keywords of it were made soft and equal terminals one, which is the
        one that lexing "nfa" reads. None if there are none. Equality, digest and files leave it
        out.

    Raises: GrammarError if a symbol number is out of range or of the wrong kind; if two terminals
    have one name; if a terminal's priority, line or column is not a 32-bit number; if the layout
    gives one terminal two roles, or has a tab length outside 1 .. 1000, an unknown value of `tabs`,
    or consistent tabs with a tab length other than 8; if a verbatim terminal is declared, ignored,
    or the layout's newline.
    """

    kind: ClassVar[Literal["grammar"]] = "grammar"
    """Which kind of constraint it is, as reports and files name it."""

    name: str
    terminals: tuple[Terminal, ...]
    nonterminals: tuple[str, ...]
    rules: tuple[Rule, ...]
    start: int
    ignored: frozenset[int] = frozenset()
    layout: Layout | None = None
    lexing: Lexing = "longest"
    text: str = field(default="", repr=False)
    unused_terminals: tuple[str, ...] = ()
    conflicts: Conflicts = "all"
    verbatim: frozenset[int] = frozenset()
    reserved: Reserved = "none"
    plain: Grammar | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        n_symbols = len(self.terminals) + len(self.nonterminals)
        if not self.is_nonterminal(self.start) or self.start >= n_symbols:
            raise GrammarError(f"grammar {self.name}: start symbol number {self.start} is not a nonterminal")
        for rule in self.rules:
            if not (self.n_terminals <= rule.lhs < n_symbols and all(0 <= symbol < n_symbols for symbol in rule.rhs)):
                raise GrammarError(f"grammar {self.name}: rule {rule} uses a symbol number outside 0..{n_symbols - 1}")
        if not all(0 <= t < self.n_terminals for t in self.ignored):
            raise GrammarError(f"grammar {self.name}: an ignored symbol is not a terminal")
        if len(self.terminal_number) < self.n_terminals:
            names = [terminal.name for terminal in self.terminals]
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise GrammarError(f"grammar {self.name}: two terminals are named {twice!r}")
        for terminal in self.terminals:
            if not all(number in INT32 for number in (terminal.priority, terminal.line, terminal.column)):
                raise GrammarError(
                    f"grammar {self.name}: terminal {terminal.name} has a priority or place that is not a 32-bit number"
                )
        if self.layout is not None:
            self._check_layout(self.layout)
        for number in sorted(self.verbatim):
            if not 0 <= number < self.n_terminals:
                raise GrammarError(f"grammar {self.name}: a verbatim symbol is not a terminal")
            name = self.terminals[number].name
            if self.terminals[number].is_declared:
                raise GrammarError(f"grammar {self.name}: terminal {name} cannot be verbatim: no text matches it")
            if number in self.ignored or (self.layout is not None and number == self.layout.newline):
                raise GrammarError(
                    f"grammar {self.name}: terminal {name} is ignored or the layout's newline; it cannot be verbatim as well"
                )

    def _check_layout(self, layout: Layout) -> None:
        brackets = [terminal for pair in layout.brackets for terminal in pair]
        members = (layout.newline, layout.indent, layout.dedent, *brackets)
        if not all(0 <= t < self.n_terminals for t in members):
            raise GrammarError(f"grammar {self.name}: the layout names a symbol that is not a terminal")
        if len(set(members)) < len(members):
            raise GrammarError(f"grammar {self.name}: the layout gives one terminal two roles")
        if not 1 <= layout.tab_length <= _MAX_TAB_LENGTH:
            raise GrammarError(
                f"grammar {self.name}: the layout's tab length is {clip(layout.tab_length)}; expected 1 to {_MAX_TAB_LENGTH}"
            )
        if not isinstance(layout.tabs, str) or layout.tabs not in get_args(Tabs):
            raise GrammarError(
                f"grammar {self.name}: the layout's tabs are {clip(layout.tabs)}; expected {' or '.join(get_args(Tabs))}"
            )
        if layout.tabs == "consistent" and layout.tab_length != TAB_STOP:
            raise GrammarError(
                f"grammar {self.name}: the layout's tab length is {layout.tab_length}, but consistent tabs advance to multiples of "
                f"{TAB_STOP} columns, as in CPython; leave the tab length out, or set tabs to 'lark'"
            )

    @property
    def newline(self) -> int:
        """The number of the layout's newline terminal, or NO_TERMINAL."""
        return self.layout.newline if self.layout else NO_TERMINAL

    @property
    def n_terminals(self) -> int:
        """The number of terminals."""
        return len(self.terminals)

    @property
    def n_nonterminals(self) -> int:
        """The number of nonterminals."""
        return len(self.nonterminals)

    def is_nonterminal(self, symbol: int) -> bool:
        """Whether a symbol number is a nonterminal's."""
        return symbol >= len(self.terminals)

    def symbol_name(self, symbol: int) -> str:
        """The name of a terminal or nonterminal, by its number."""
        n = len(self.terminals)
        return self.terminals[symbol].name if symbol < n else self.nonterminals[symbol - n]

    def display_name(self, symbol: int) -> str:
        """The name of a symbol for messages; for an anonymous terminal, what it matches.

        >>> terminals = (Terminal("__ANON_0", "[+]=", literal="+="), Terminal("__ANON_1", "[0-9]+"))
        >>> grammar = Grammar("g", terminals, ("start",), (Rule(2, (0, 1)),), start=2)
        >>> [grammar.display_name(symbol) for symbol in range(3)]
        ['"+="', '/[0-9]+/', 'start']
        """
        name = self.symbol_name(symbol)
        if symbol < self.n_terminals and self.terminals[symbol].beyond:
            found = self.terminals[symbol]
            whole = self.terminal_number.get(found.beyond)
            shown = found.beyond if whole is None else self.display_name(whole)
            return f"{shown} of other lengths than {found.lengths}"
        if self.is_nonterminal(symbol) or not name.startswith("__"):
            return name
        terminal = self.terminals[symbol]
        if terminal.literal is not None:
            shown = '"' + terminal.literal.replace("\\", "\\\\").replace('"', '\\"') + '"'
        elif terminal.pattern is not None:
            shown = f"/{terminal.pattern}/"
        else:
            return name
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown) + terminal.flags

    @cached_property
    def terminal_number(self) -> Mapping[str, int]:
        """The map from the name of a terminal to its number."""
        return {terminal.name: number for number, terminal in enumerate(self.terminals)}

    @cached_property
    def rules_of(self) -> Mapping[int, tuple[Rule, ...]]:
        """The map from each nonterminal to its rules, in the grammar's order."""
        table: dict[int, list[Rule]] = {len(self.terminals) + i: [] for i in range(len(self.nonterminals))}
        for rule in self.rules:
            table[rule.lhs].append(rule)
        return {lhs: tuple(rules) for lhs, rules in table.items()}

    def rule_text(self, rule: Rule) -> str:
        """A rule as text, such as `expr : expr PLUS term`."""
        return f"{self.symbol_name(rule.lhs)} : {' '.join(map(self.symbol_name, rule.rhs))}".rstrip()

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def with_rules(self, nonterminals: tuple[str, ...], rules: tuple[Rule, ...], start: int) -> Grammar:
        """A copy with the same terminals and other rules.

        The copy is not checked to have the same language: that is the caller's duty.

        nonterminals : names of the new nonterminals, numbered from `n_terminals`.
        rules : the new productions.
        start : number of the new start symbol.
        """
        return replace(self, nonterminals=nonterminals, rules=rules, start=start)

    def to_dict(self) -> dict[str, Any]:
        """A copy made of JSON's types, without `plain`; `from_dict` reads it back."""
        layout = self.layout
        return {
            "name": self.name,
            "lexing": self.lexing,
            "conflicts": self.conflicts,
            "text": self.text,
            "start": self.start,
            "terminals": [terminal.to_list() for terminal in self.terminals],
            "nonterminals": list(self.nonterminals),
            "rules": [[rule.lhs, *rule.rhs] for rule in self.rules],
            "ignored": sorted(self.ignored),
            "unused_terminals": list(self.unused_terminals),
            # left out if they have the old default: most grammars' digests and files stay the same
            **({"verbatim": sorted(self.verbatim)} if self.verbatim else {}),
            **({"reserved": self.reserved} if self.reserved != _unsaid_reserved(self.lexing) else {}),
            "layout": None
            if layout is None
            else {
                "newline": layout.newline,
                "indent": layout.indent,
                "dedent": layout.dedent,
                "brackets": [list(pair) for pair in layout.brackets],
                "tab_length": layout.tab_length,
                **({"tabs": layout.tabs} if layout.tabs != "lark" else {}),
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Grammar:
        """The grammar that `to_dict` wrote.

        Raises: GrammarError if `data` does not have the shape that `to_dict` writes, or if the
        grammar is not valid (see `Grammar`).
        """
        typed(data, dict, "the whole")
        try:
            parts = {key: data[key] for key in _KEYS}
        except KeyError as error:
            raise GrammarError(f"not a grammar written by maskwright: it has no {error}") from error
        lexing = _choice(parts["lexing"], Lexing, "lexing")
        rules = [_items(rule, int, "a rule") for rule in _items(parts["rules"], list, "rules")]
        if not all(rules):
            raise GrammarError("not a grammar written by maskwright: a rule has no left side")
        return cls(
            name=typed(parts["name"], str, "name"),
            lexing=lexing,
            text=typed(parts["text"], str, "text"),
            start=typed(parts["start"], int, "start"),
            terminals=tuple(map(Terminal.from_list, _items(parts["terminals"], list, "terminals"))),
            nonterminals=_items(parts["nonterminals"], str, "nonterminals"),
            rules=tuple(Rule(rule[0], rule[1:]) for rule in rules),
            ignored=frozenset(_items(parts["ignored"], int, "ignored")),
            layout=None if parts["layout"] is None else _layout(typed(parts["layout"], dict, "layout")),
            unused_terminals=_items(parts["unused_terminals"], str, "unused_terminals"),
            conflicts=_choice(parts["conflicts"], Conflicts, "conflicts"),
            verbatim=frozenset(_items(data.get("verbatim", []), int, "verbatim")),
            reserved=_choice(data.get("reserved", _unsaid_reserved(lexing)), Reserved, "reserved"),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the grammar's content.

        Equal grammars have equal digests on every machine.
        """
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def __str__(self) -> str:
        return (
            f"<Grammar {self.name}: {self.n_terminals} terminals, {self.n_nonterminals} nonterminals, "
            f"{len(self.rules)} rules, start {self.symbol_name(self.start)!r}>"
        )

    def __hash__(self) -> int:
        return hash((self.name, self.lexing, self.text, len(self.terminals), len(self.rules)))


_T = TypeVar("_T")
_KEYS = (
    "name",
    "lexing",
    "conflicts",
    "text",
    "start",
    "terminals",
    "nonterminals",
    "rules",
    "ignored",
    "unused_terminals",
    "layout",
)


def _unsaid_reserved(lexing: str) -> str:
    """The value of `reserved` in a dictionary that has no such key.

    Grammars written before this option reserve all literals under contextual lexing.
    """
    return "all" if lexing == "contextual" else "none"


def _choice(value: object, choices: Any, what: str) -> Any:
    """The value, if it is one of a Literal's choices."""
    if typed(value, str, what) not in get_args(choices):
        raise GrammarError(f"not a grammar written by maskwright: {what} is {value!r}")
    return value


def _items(value: object, kind: type[_T], what: str) -> tuple[_T, ...]:
    """The members of a list, if all are of type `kind`."""
    return tuple(typed(item, kind, f"a member of {what}") for item in typed(value, list, what))


def _layout(data: dict[str, Any]) -> Layout:
    if set(data) - {"tabs"} != {"newline", "indent", "dedent", "brackets", "tab_length"}:
        raise GrammarError(f"not a grammar written by maskwright: the layout has the members {sorted(map(str, data))}")
    pairs = [_items(pair, int, "a bracket pair") for pair in _items(data["brackets"], list, "brackets")]
    if not all(len(pair) == 2 for pair in pairs):
        raise GrammarError("not a grammar written by maskwright: a bracket pair does not have two members")
    number = {key: typed(data[key], int, f"the layout's {key}") for key in data if key not in ("brackets", "tabs")}
    tabs = typed(data.get("tabs", "lark"), str, "the layout's tabs")
    return Layout(**number, brackets=tuple((opening, closing) for opening, closing in pairs), tabs=cast(Tabs, tabs))
