"""What a grammar is, and where it comes from.

In: a `.lark` file, text, or name. Out: one immutable `Grammar` in BNF, with its terminals' patterns, ignored terminals and layout.
"""

from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Layout, Lexing, Reserved, Rule, Terminal
from maskwright.analysis.grammar.lark_loader import Indenter, load_grammar, parse_grammar
from maskwright.analysis.grammar.normalise import normalise, reduce

__all__ = [
    "Conflicts",
    "Grammar",
    "Indenter",
    "Layout",
    "Lexing",
    "Reserved",
    "Rule",
    "Terminal",
    "load_grammar",
    "normalise",
    "parse_grammar",
    "reduce",
]
