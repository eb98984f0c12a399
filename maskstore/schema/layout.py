"""The arrays that the schema engine reads, as constants: where each thing stands in them.

Three flat int32 arrays belong together:

- `table`: one schema. A header (`ROOT` and so on), then nodes, shapes and literals, each at an
  offset that others name.
- `automata`: the automata of that schema, each at an offset.
- `voc`: one vocabulary, for texts of certain escapes. A header (`N_TOKENS` and so on), then tries
  and rows of bits.

-1 stands for nothing where an offset or a limit may be missing. A *content id* is a number that two
things of one process share only if they are equal: results that depend on the thing alone are kept
under its number, for all schemas.
"""

from __future__ import annotations

# ---- The header of a table.

ROOT = 0
"""The offset of the node of the whole text."""
SPACING = 1
"""The offset of the white space's automaton: of its rows, each `SPACING_ROW` integers."""
IS_TEXT = 2
"""1 if the text is no JSON: the root is a node with one shape NUMBERS, which reads all of it."""
MOST_WORDS = 3
"""The most integers that one byte adds to a text's memory, for each frame of its threads; without
what the end of a key adds in an object of alternatives (MOST_ADDED)."""
SPACING_ID = 4
"""The content id of the white space."""
ESCAPES = 5
"""Which escapes strings have, one of the three below: see `Texts` in `analysis.schema.shapes`."""
N_SPACES, INDENT, SPACE_STARTS = 6, 7, 8
"""Of the white space (`Spacing` in `analysis.schema.spacing`): the number of rows, the blanks of a
level, and where it begins for each mode of a thread that may read some: before a value (behind a
colon), behind one, behind `{`, behind the comma of an object, behind a key, behind `[`."""
OUTER_SPACE = SPACE_STARTS + 6
"""The state in which white space begins around the whole text."""
TABLE_HEADER = OUTER_SPACE + 1
ANY_ESCAPES, MINIMAL_ESCAPES, NATURAL_ESCAPES = 0, 1, 2

SPACING_ROW = 6
"""For each state of the white space what `Spacing.rows` says."""

# ---- A node: its content id, the number of its shapes, the offsets of its shapes.

NODE_ID, NODE_SIZE, NODE_SHAPES = 0, 1, 2
MOST_SHAPES = 512
"""BOUND: the shapes of a node."""
MOST_APART = 32
"""Where a node has more shapes of objects, those that are simple become one: their union."""

# ---- A shape: its kind, its content id, then by kind.

KIND, SHAPE_ID = 0, 1
STRINGS, STRING_LITERALS, SPELLINGS, NUMBERS, OBJECTS, ARRAYS = range(6)

# STRINGS: automaton, least, most, lengths
STRING_AUTOMATON, STRING_LEAST, STRING_MOST, STRING_LENGTHS = 2, 3, 4, 5
# NUMBERS: automaton
NUMBER_AUTOMATON = 2
# STRING_LITERALS and SPELLINGS: literals; the number of each in a set of unique items, or -1; the
# offsets of lists of the alternatives of the object around it that each leaves, or -1
LITERALS, UNIQUE_NUMBERS, LEAVES = 2, 3, 4

# OBJECTS
N_KEYS, KEYS, N_WORDS, N_REQUIRED, LEAST, MOST = 2, 3, 4, 5, 6, 7
N_OTHERS, OTHERS, KEY_AUTOMATON = 8, 9, 10
REQUIRED, VALUES, RANKS, NEXT_REQUIRED, N_RANKED, TRACKS_KEYS, N_NAMES, N_WANTED, ALTERNATIVES = range(11, 20)
# KEYS: literals. N_WORDS: the words of bits of a frame. N_WANTED: how many members are wanted: the
# bits of these are the last word, N_REQUIRED counts them. OTHERS: the offset of the nodes of the
# classes, and behind these of those for each of them. REQUIRED: that of the required keys' bits.
# VALUES: of the keys' nodes. RANKS: of the keys' ranks, or -1. N_RANKED: the number of ranks.
# NEXT_REQUIRED: for each rank the least one from there on of a required key, or N_RANKED.
# TRACKS_KEYS: whether other keys are remembered. N_NAMES: the number of other keys, -1 for
# infinitely many. ALTERNATIVES: -1, or of a union the offset of its N alternatives.

N_CLASSES_OF_OTHERS, CLASSES, RULES, MOST_ADDED, EACH = 1, 2, 3, 4, 5
EACH_SIZE = 3
# Of alternatives: N; the number of classes of them whose other keys have the same node, and their
# offset: for each that node, and N bits; the offset of each key's rules; the most integers that
# the end of a key adds to a text's memory; then for each alternative the least number of members,
# the list of the keys that it requires, and whether it has other keys.
# The rules of a key: their number, and for each a node, or -1, and a list of alternatives, in which
# the key's member is of that node: of what they have of other keys it is none. A list: its size,
# and then it.

# ARRAYS (LEAST and MOST as those of objects)
N_PREFIX, PREFIX, ITEMS, N_UNIQUE = 2, 3, 4, 5
HAS_CONTAINED, CONTAINED_LEAST, CONTAINED_MOST, CONTAINED_PREFIX, CONTAINED_ITEMS = 8, 9, 10, 11, 12
TRACKS_ITEMS = 13
BY_STATES, ITEM_STATES = 2, CONTAINED_PREFIX
MOVES = 2
# Where HAS_CONTAINED is BY_STATES, items have states (`analysis.schema.shapes.ItemState`), and a
# frame has the number of one in place of the items that are contained. ITEM_STATES: the offset of
# the states' offsets. A state: whether the array may end, the number of moves, and behind these
# `MOVES` integers for each of them: its node, and the state behind it.
# N_UNIQUE: the number of values that items may have, where they are finitely many and must differ;
# else 0. TRACKS_ITEMS: whether items are remembered since they must differ; 2 if there are words
# among them, or strings of a greatest length, which come to their end without a quotation mark.

# ---- Literals: their number n, n + 1 offsets of bytes, their bytes (an integer each). Sorted.

# ---- An automaton: a header, the class of each byte, the rows of its states, their ends.

N_STATES, N_CLASSES, AUTOMATON_ID, CLASS_OF = 0, 1, 2, 3
AUTOMATON_HEADER = 3 + 256
# State 0 is dead and state 1 initial. The row of a state: the next state by class. The end of a
# state: 0 if nothing ends there, else 1 + the class of the key, or 1. Behind these, in an automaton
# of keys, for each state the fewest keys that go on behind one more character, and for each state
# those that go on from it (`analysis.schema.lengths`: `least_left`, `strings_left`).

# ---- Lengths of an automaton: m, p, then m + p rows, each of a number for each state (that of
# state 0 included): see `analysis.schema.lengths`.

LENGTHS_HEADER = 2

# ---- The header of a vocabulary's tables.

N_TOKENS, N_ROW_WORDS, N_EOS, EOS = 0, 1, 2, 3
FULL, STRUCTURE, SPECIAL, TAILS = 4, 5, 7, 8
"""The tries: of all tokens; of those that can stand outside of strings; of those
with a quotation mark or a backslash; of what stands behind the first quotation mark."""
CONTENT_ROW = 9
"""The row of the tokens that are string content."""
LENGTH_ROWS, N_LENGTHS = 10, 11
"""The offsets of the rows of the tokens that are string content of at most k characters, for k = 0
to N_LENGTHS, the most that a token has."""
CLOSERS, N_CLOSERS, N_TAILS = 12, 13, 14
"""The tokens that end a string: for each of them `CLOSER` integers."""
TOKEN_START, TOKEN_BYTES = 15, 16
MOST_BYTES = 17
"""The bytes of the longest token."""
SIGNATURES, PURE = 18, 19
"""By node of FULL: the groups (`GROUPS`) of the bytes below it, as bits; whether all below it is
string content. Before SIGNATURES stands the group of each byte."""
QUOTED, N_QUOTED = 20, 21
"""The tokens outside of strings that may hold a whole string, with two quotation marks or more: for
each of them `QUOTED_SIZE` integers."""
MANIFOLD, N_MANIFOLD = 22, 23
"""The tokens that may hold two whole keys or items: with three quotation marks, or two words."""
BRANCHES = 24
"""The offset of 258 offsets. Those of number b and the one behind it bound the children, in FULL,
of the node that byte b leads to from the root, for b = 256 of the root: each a byte and a node."""
BEHIND_SPACE = 25
"""The trie of the tokens of STRUCTURE without the white space with which they begin."""
PLAIN_ROW, GROUP_ROWS = 26, 27
"""The row of string content without escapes; for each of 32 groups `GROUP_SIZE` integers."""
CONTENTS, N_CONTENTS = 28, 29
"""The closers by what they say before the quotation mark: for each such content the offset of the
first one, and then that of the first hard one. Hard ones stand behind all others."""
OPENERS, N_OPENERS = 30, 31
"""The tokens that may begin a key without ending it, but for those of MANIFOLD: with one quotation
mark outside of strings, or two within one, and more behind the last one."""
VOCABULARY_HEADER = 32

GROUP_SIZE, GROUP_FIRST, GROUP_REST, GROUP_COUNT = 3, 0, 1, 2
"""The rows of the tokens whose first byte is of the group, and of those with such a byte behind it;
the number of the first ones. A row is 0 where no token has such a byte."""
QUOTED_SIZE = 2
"""A token; the first hash of what its first string says, -1 if that has an escape."""
CLOSER = 5
"""A token; the number of its tail; the characters before its first quotation mark, and the bytes;
whether it is hard: there is an escape among them, or behind it more than structure."""

# ---- A trie, in preorder, at an offset: its number of nodes and the offsets of four columns.

TRIE_SIZE, TRIE_BYTE, TRIE_END, TRIE_TOKENS, TRIE_IDS = 0, 1, 2, 3, 4
# Node 0 is the root. BYTE: the byte that leads to a node. END: the node behind its subtree. Tokens
# that end at node n are IDS[TOKENS[n] : TOKENS[n + 1]].

GROUPS = (
    "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ", "0123456789",
    *" -_./:,@#+=()!?;%$'", "&*~", "[]{}", "|<>^`",
)  # fmt: skip
"""Printable characters in at most 27 groups."""
DELETE_GROUP, WIDE_GROUP, NO_GROUP = 27, 28, 31
"""The group of byte 127; that of the bytes of characters beyond ASCII, but for some first bytes;
that of quotation marks, backslashes and control characters."""
WIDE_GROUPS = ((29, b"\xe2"), (30, b"\xc2\xe1\xe3\xef"))
"""The other groups of first bytes: those of U+2028 and U+2029, which `.` is not, and those of the
characters that are white space."""
ANY_WIDE = 0x70000000
"""The bits of the groups of bytes beyond ASCII."""
