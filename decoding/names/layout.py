"""The arrays of names' kernels, as constants: where each thing stands. All are flat int32.

lexer : how lexemes grow, by state of the union automaton (`analysis.lexing.lexemes`). A header of
    the offsets below, then what they name.
names : the names of one terminal, sorted by their bytes. A header, then what it names.
trie : the vocabulary's tokens (`maskstore.schema.layout` says how its columns are to be read).
rows : scratch. Row d says how the lexer stands behind d bytes of a token.
data : the bytes of the lexeme under way, then those of a token.
"""

from __future__ import annotations

from maskwright.decoding.engine.constants import N_DRAFT

# ---- lexer

N_CLASSES, CLASS_OF, NEXT, WINNER, GROWS, LIVE_START, LIVE, KIND, UNDER_WAY, HAS_MODES = range(10)
"""How many byte classes; (256,) the class of each byte; (n, N_CLASSES) the next state or -1; (n,)
the terminal that wins in a state or -1; (n,) whether any byte leads on; (n + 1,) and (members,) the
terminals that win there or further on; (n_terminals,) the kinds below; (n_lexer_states,) the
union's state of each lexer state, or -1; and whether there are several modes."""
LEXER_HEADER = 10

READ, IGNORED, NEWLINE_KIND, UNREAD = range(4)
"""Kinds of terminals: the parser reads it; ignored; the layout's newline; no text spells it."""

# ---- names

N_NAMES, TERMINAL, NAME_START, NAME_DATA, COUNT_ROW, COUNTS = range(6)
"""How many names; their terminal; (n + 1,) where each begins in NAME_DATA; their bytes; (union
states,) the row of COUNTS for lexemes that begin in a state, or -1 where none was made yet;
(rows, n + 1) how many of the names before each are lexemes of the terminal that begin there."""
NAMES_HEADER = 6

# ---- trie

N_NODES, TRIE_BYTE, TRIE_END, TRIE_FIRST, TRIE_IDS = range(5)
TRIE_HEADER = 5

# ---- a row of `rows`

STATE, BEGIN, LAST_END, LAST_WINNER, IS_NAME, LOW, HIGH, DRAFT = range(8)
"""The union's state; where in `data` the lexeme begins, -1 for one that began before; where it
could have ended last, what won there (-1: nowhere), and whether that is one of the names; the names
that begin with the lexeme, from LOW to before HIGH; then a copy of the engine's draft."""
ROW = DRAFT + N_DRAFT
ENDS = ROW
"""Behind the fields of a row: the end of the subtree of its node."""
ROW_SIZE = ROW + 1

# ---- results, beside those of the engine

UNDECIDED, FREE, REFUSED = 1, 2, 3
"""The held lexeme is not over; it is a name, or another terminal; it is neither."""
WANTS_COUNTS = 4
"""A row of COUNTS is missing: for lexemes that begin in the state that `rows[0]` holds then."""
