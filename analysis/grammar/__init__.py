"""What is a grammar?

In: rules, terminals, options. Out: one immutable `Grammar` in BNF with its terminals' patterns,
ignored terminals and layout; copies of it with normalised rules; where a `.lark` file defines what,
and which options it states. Knows nothing of automata, nor of how grammar files are loaded
(`loading`).
"""

from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Layout, Lexing, Reserved, Rule, Terminal

__all__ = ["Conflicts", "Grammar", "Layout", "Lexing", "Reserved", "Rule", "Terminal"]
