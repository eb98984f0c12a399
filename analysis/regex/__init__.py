"""Which bytes does a pattern spell?

In: patterns as Python's `re`, or ECMA 262, reads them. Out: minimal byte automata (`Dfa`). Knows
nothing of terminals, rules or grammars.

The steps for a terminal: `parse` (text to tree), `rewrite` (lazy, possessive and atomic parts to
look-aheads), `machine` (subset construction over classes of characters), `spell` (minimal, then
bytes), `Dfa`.

A whole text, or one in which something is found, goes a quicker way: `parse` or `ecma` (ECMA 262),
`simplify`, `positions` (subset construction without look-arounds), `spell` (minimal, then bytes).
`whole` does all of it for one expression.
"""

from maskwright.analysis.regex.dfa import Dfa, complement, concatenate, difference, intersect, union

__all__ = ["Dfa", "complement", "concatenate", "difference", "intersect", "union"]
