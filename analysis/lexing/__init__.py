"""What a terminal is as a set of byte strings. In: patterns (Python `re`) and literals. Out: minimal byte automata.

parse (text -> tree) -> rewrite (lazy, possessive, atomic -> look-aheads) -> machine, determinise (subset construction
over classes of characters) -> utf8 (characters -> bytes) -> minimise -> `Dfa`. Knows nothing of rules.
"""

from maskwright.analysis.lexing.dfa import Dfa, complement, concatenate, difference, intersect, union
from maskwright.analysis.lexing.post import post_terminals
from maskwright.analysis.lexing.terminals import (
    compile_pattern,
    compile_terminal,
    compile_terminals,
    lookahead_beyond_end,
)

__all__ = [
    "Dfa",
    "compile_pattern",
    "compile_terminal",
    "compile_terminals",
    "complement",
    "concatenate",
    "difference",
    "intersect",
    "lookahead_beyond_end",
    "post_terminals",
    "union",
]
