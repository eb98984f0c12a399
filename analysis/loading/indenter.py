"""Indentation by names of terminals, as a caller states it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from maskwright.analysis.arguments import as_integer, as_pairs, need_type
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.columns import TAB_STOP, Tabs


@dataclass(frozen=True, slots=True)
class Indenter:
    """Indentation as data, by names: what the members of a subclass of Lark's `Indenter` say.

    `load_grammar` makes a `Layout` of it.

    newline : the terminal whose lexemes end in a line's indentation.
    indent, dedent : two terminals of `%declare`.
    brackets : pairs of terminals between which newlines are dropped, each by name or by its literal
        text.
    tab_length : columns that a tab counts.
    tabs : "lark" or "consistent", which compares tabs and blanks as CPython does; see `Layout`.

    Raises: GrammarError for members of other types.

    Example: `Indenter("_NEWLINE", "_INDENT", "_DEDENT", (("(", ")"), ("[", "]")))`.
    """

    newline: str
    indent: str
    dedent: str
    brackets: tuple[tuple[str, str], ...] = ()
    tab_length: int = TAB_STOP
    tabs: Tabs = "lark"

    def __post_init__(self) -> None:
        for member in ("newline", "indent", "dedent"):
            need_type(f"the indenter's {member}", getattr(self, member), str, "a terminal's name", GrammarError)
        need_type("the indenter's tabs", self.tabs, str, "'lark' or 'consistent'", GrammarError)
        brackets = as_pairs(
            "the indenter's brackets", self.brackets, "pairs of terminals' names, as in [('(', ')')]", GrammarError
        )
        for name in chain.from_iterable(brackets):
            need_type("a bracket of the indenter", name, str, "a terminal's name or literal text", GrammarError)
        object.__setattr__(self, "brackets", brackets)
        object.__setattr__(self, "tab_length", as_integer("the indenter's tab_length", self.tab_length, GrammarError))
