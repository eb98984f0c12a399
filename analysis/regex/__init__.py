"""Which bytes does a pattern spell?

In: patterns as Python's `re` reads them. Out: minimal byte automata (`Dfa`). Knows nothing of terminals, rules or grammars.

parse (text -> tree) -> rewrite (lazy, possessive, atomic -> look-aheads) -> machine, determinise (subset construction over classes of
characters) -> utf8 (characters -> bytes) -> minimise -> `Dfa`.
"""

from maskwright.analysis.regex.dfa import Dfa, complement, concatenate, difference, intersect, union

__all__ = ["Dfa", "complement", "concatenate", "difference", "intersect", "union"]
