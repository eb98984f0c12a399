"""What is a grammar?

One immutable `Grammar` in BNF, with its terminals' patterns, ignored terminals and layout; its rules normalised; what a `.lark` file holds
where, and what it says about itself. Knows nothing of automata, nor of how files are read (`loading`).
"""

from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Layout, Lexing, Reserved, Rule, Terminal
from maskwright.analysis.grammar.normalise import normalise, reduce

__all__ = ["Conflicts", "Grammar", "Layout", "Lexing", "Reserved", "Rule", "Terminal", "normalise", "reduce"]
