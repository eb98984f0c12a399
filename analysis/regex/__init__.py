"""Which bytes does a pattern spell?

In: patterns as Python's `re` reads them. Out: minimal byte automata (`Dfa`). Knows nothing of
terminals, rules or grammars.

The steps: `parse` (text to tree), `rewrite` (lazy, possessive and atomic parts to look-aheads),
`machine` and `determinise` (subset construction over classes of characters), `utf8` (characters to
bytes), `minimise`, `Dfa`.
"""

from maskwright.analysis.regex.dfa import Dfa, complement, concatenate, difference, intersect, union

__all__ = ["Dfa", "complement", "concatenate", "difference", "intersect", "union"]
