"""What a grammar is, and where it comes from.

In: a `.lark` file, text, or name. Out: one immutable `Grammar` in BNF, with its terminals' patterns, ignored terminals and layout.
"""

from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Layout, Lexing, Reserved, Rule, Terminal
from maskwright.analysis.grammar.lark_loader import Indenter, load_grammar, parse_grammar
from maskwright.analysis.grammar.normalise import normalise, reduce
from maskwright.analysis.grammar.sources import GrammarSource, as_grammar

__all__ = [
    "Conflicts",
    "Grammar",
    "GrammarSource",
    "Indenter",
    "Layout",
    "Lexing",
    "Reserved",
    "Rule",
    "Terminal",
    "as_grammar",
    "load_grammar",
    "normalise",
    "parse_grammar",
    "reduce",
]
