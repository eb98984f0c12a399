"""Where does a lexeme end, and which terminals compete for it?

In: a grammar's terminals, and what a parser can take where. Out: an automaton for each terminal, and the lexer as a transducer over bytes.
Of rules it knows only which terminals they use, and which literals beside a pattern.
"""

from maskwright.analysis.lexing.post import post_terminals
from maskwright.analysis.lexing.terminals import (
    compile_pattern,
    compile_terminal,
    compile_terminals,
    lookahead_beyond_end,
)

__all__ = ["compile_pattern", "compile_terminal", "compile_terminals", "lookahead_beyond_end", "post_terminals"]
