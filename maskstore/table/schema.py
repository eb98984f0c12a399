"""The schema of the engine's table: where each number and part is, and what it may hold.

A table is one flat int32 array. A call from Python to compiled code pays for each array, and this
layout can be copied to a GPU as it is. The table begins with a header of `HEADER` integers. Some of
them are numbers (how many states there are), some are settings (how far a tab goes), and the others
say where a part begins. The parts follow one another without a gap, in the order of `PARTS`.

This is the only description. `write` fills a table by these names. `check` compares a table from a
file with these types. Compiled code takes the offsets from here. docs/internals/table.md is this
file as a page. Offsets are written out because they are in files: a new entry gets a free offset,
and no entry ever changes its offset.

Example: `table[table[RULE_LHS] + r]` is the left side of rule r, since `table[RULE_LHS]` says where
that part begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from maskwright.analysis.lexing.encoding import MAX_PENDING
from maskwright.maskstore.tokens.events import ABSOLUTE

HEADER = 96
"""Integers before the first part. There can be no more offsets than these."""

MOST_AT_ONCE = 1024
"""BOUND: symbols that one step of the lexer emits, and integers of a state's endings.

A lexer backs up over a dozen lexemes at most.
"""


# Types of values. They name what they count by a word. There are as many "states" as the header's
# number of that name says. A word without a number, as "outputs", counts the rows of the part whose
# shape begins with it.


@dataclass(frozen=True, slots=True)
class Index:
    """An index among some things: from 0 to their number less one.

    of : the word for the things.
    codes : the meanings of -1, -2, ...
    """

    of: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Either:
    """An index of one of two kinds: n >= 0 is number n of `first`, -1 - n number n of `second`."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A count of some things, or where a run of them begins or ends: from 0 to their number.

    Their number itself is allowed. of : the word for the things.
    """

    of: str


@dataclass(frozen=True, slots=True)
class Starts:
    """Where each run of some things begins, and last where the last run ends.

    The values ascend from 0 to the number of the things.

    of : the word for the things.
    least, most : how many members a run has. most : None for no limit.
    is_first_empty : whether the first run must be empty.
    """

    of: str
    least: int = 0
    most: int | None = None
    is_first_empty: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `least` to `most`, both included. It is not an index."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Bits:
    """32 members of a set as bits, the least in the lowest bit.

    No bit past the last member is set. of : the word for the members.
    """

    of: str


@dataclass(frozen=True, slots=True)
class Coded:
    """Several things in one integer; `check` has a function for each part with such a column.

    says : what they are.
    """

    says: str


Values: TypeAlias = Index | Either | Bound | Starts | Number | Bits | Coded


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the table.

    name : its name on the page and in errors.
    shape : what each axis counts, as a word. "states+1" is one more than there are states. A word
        that no number has counts this part's rows.
    columns : the type of each column of the last axis, or one type for all of them.
    says : what the part means.
    """

    name: str
    shape: tuple[str, ...]
    columns: tuple[Values, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A number or a setting in the header.

    name : its name on the page and in errors, and for a number the word that it counts.
    says : what it means.
    least : the least value that a number may have.
    """

    name: str
    says: str
    least: int = 0


NUMBERS: dict[int, Entry] = {}
SETTINGS: dict[int, Entry] = {}
PARTS: dict[int, Part] = {}
"""By offset in the header. The parts are in the order in which they follow one another."""

SECTIONS: dict[str, list[int]] = {}
"""The offsets of all entries by section, as the page presents them."""


def _section(title: str) -> None:
    """Begin a section of the page."""
    SECTIONS[title] = []


def _claim(offset: int) -> None:
    """Put an offset into the last section. No other entry may have it."""
    if not 0 <= offset < HEADER or offset in NUMBERS or offset in SETTINGS or offset in PARTS:
        raise AssertionError(f"offset {offset} of the header is taken or outside of it")
    SECTIONS[next(reversed(SECTIONS))].append(offset)


def _number(offset: int, name: str, says: str, least: int = 0) -> int:
    _claim(offset)
    NUMBERS[offset] = Entry(name, says, least)
    return offset


def _setting(offset: int, name: str, says: str) -> int:
    _claim(offset)
    SETTINGS[offset] = Entry(name, says)
    return offset


def _part(offset: int, name: str, shape: tuple[str, ...], columns: Values | tuple[Values, ...], says: str) -> int:
    _claim(offset)
    PARTS[offset] = Part(name, shape, columns if isinstance(columns, tuple) else (columns,), says)
    return offset


_section("The LALR parser (`analysis.lr.encoding.LrTables`, some reductions at once: `shortcuts`)")

N_STATES = _number(0, "states", "LR states; 0 is the start", least=1)
N_COLUMNS = _number(
    1, "columns", "terminals that the parser knows, and the end of the text, which is the last", least=1
)
N_NONTERMINALS = _number(2, "nonterminals", "left sides of rules", least=1)
N_RULES = _number(11, "rules", "rules, with those that stand for several reductions", least=1)

ACTION = _part(
    3, "action", ("states", "columns"), Coded("0 error, s + 1 shift to state s, -(r + 1) reduce by rule r, ACCEPT, CONFLICT + i"),
    "what the parser does in a state before a terminal; i is where ALTERNATIVES has the actions of a conflict",
)  # fmt: skip
GOTO = _part(4, "goto", ("states", "nonterminals"), Index("states", ("none",)), "the state after a nonterminal")
RULE_LHS = _part(5, "rule_lhs", ("rules",), Index("nonterminals"), "the left side of each rule")
RULE_LENGTH = _part(6, "rule_length", ("rules",), Number(0, (1 << 12) - 1), "how many symbols are on its right")
ALTERNATIVES = _part(
    7, "alternatives", ("alternatives",), Coded("a count n, then n actions"), "the actions of conflicts, one list after the other"
)  # fmt: skip
DEFAULT = _part(
    8, "default_rule", ("states",), Index("rules", ("look at the terminal",)), "the rule by which a state reduces whatever comes next"
)  # fmt: skip
PREDECESSOR_START = _part(
    9, "predecessor_start", ("states+1",), Starts("predecessors"), "each state's run in PREDECESSORS"
)
PREDECESSORS = _part(
    10, "predecessors", ("predecessors",), Index("states"), "the states that can lie directly below a state"
)

_section("The lexer (`analysis.lexing.encoding.Transducer`)")

N_LEXER_STATES = _number(60, "lexer states", "states of the lexer; 0 is where the text begins", least=1)
N_CLASSES = _number(17, "classes", "classes of bytes that all lexer states read alike", least=1)
N_MODES = _number(
    61, "modes", "sets of terminals that compete where a lexeme begins; 1 if they do not depend on the parser", least=1
)

BYTE_CLASS = _part(16, "byte_class", ("256",), Index("classes"), "the class of each byte")
NEXT_STATE = _part(
    18, "next_state", ("lexer states", "classes"), Index("lexer states", ("the text is not legal", "back up: see FALLBACK")),
    "the state after a byte of a class",
)  # fmt: skip
OUTPUT = _part(19, "output", ("lexer states", "classes"), Index("outputs"), "what that byte makes the lexer emit")
OUTPUT_START = _part(
    20, "output_start", ("outputs+1",), Starts("output symbols", most=MOST_AT_ONCE),
    "each output's run in OUTPUT_SYMBOLS; output 0 is nothing",
)  # fmt: skip
OUTPUT_SYMBOLS = _part(
    21, "output_symbols", ("output symbols",), Index("terminals"), "terminals, in the order in which they are emitted"
)
END_OUTPUT = _part(
    22, "end_output", ("lexer states",), Index("outputs", ("the text may not end here", "back up: see FALLBACK")),
    "what the end of the text makes the lexer emit",
)  # fmt: skip
STATE_FLAGS = _part(
    23, "state_flags", ("lexer states",), Number(0, 3),
    "MAY_END_NEWLINE: the layout's newline may end exactly here (no engine reads it) + IS_NEWLINE: the lexeme under way "
    "may become the layout's newline, or is one if it ends here",
)  # fmt: skip
SYMBOL_COLUMN = _part(
    26, "symbol_column", ("terminals",), Index("columns", ("no rule has it",)), "the parser's column of each terminal"
)
SYMBOL_DEPTH = _part(
    27, "symbol_depth", ("terminals",), Number(-1, 1), "1 for an opening bracket of the layout, -1 for a closing one"
)
MODE_STATE = _part(62, "mode_state", ("modes",), Index("lexer states"), "where a lexeme begins in each mode")
MODE_OF_STATE = _part(63, "mode_of_state", ("states",), Index("modes"), "the mode that each LR state asks for")
FALLBACK = _part(
    64, "fallback", ("lexer states",), Index("output symbols", ("an ignored lexeme",)),
    "where OUTPUT_SYMBOLS has the terminal that is emitted where the lexer backs up to the lexeme's last end",
)  # fmt: skip
PENDING_START = _part(
    65, "pending_start", ("lexer states+1",), Starts("pending", most=MAX_PENDING), "each state's run in PENDING"
)
PENDING = _part(66, "pending", ("pending",), Number(0, 255), "the bytes behind that end, which are then read anew")

_section("What the lexeme under way may become")

N_SET_WORDS = _number(29, "set words", "words of a set of columns: ceil(columns / 32)")
ENDING_START = _part(
    24,
    "ending_start",
    ("lexer states+1",),
    Starts("endings", least=2, most=MOST_AT_ONCE),
    "each state's run in ENDINGS",
)
ENDINGS = _part(
    25, "endings", ("endings",), Coded("twice a set + whether the layout's newline is in it, or -1 for anything; a count n; n terminals"),
    "one after the other: n terminals that come first, and the set of columns of which one is next",
)  # fmt: skip
SET_BITS = _part(28, "set_bits", ("sets", "set words"), Bits("columns"), "sets of columns")
SHIFT_BITS = _part(
    30, "shift_bits", ("states", "set words"), Bits("columns"), "the columns that each LR state shifts, whatever lies below it"
)  # fmt: skip

_section("Look-ups: which questions a lexer state asks of the parser's stack")

N_ROOTS = _number(39, "roots", "nodes of the stack automaton at which a walk begins")
DEPTH_CASE_START = _part(
    31, "depth_case_start", ("lexer states+1",), Starts("depth cases", least=1),
    "each state's run in LOOKUP_START, one for each depth of brackets; the last for all deeper ones",
)  # fmt: skip
LOOKUP_START = _part(32, "lookup_start", ("depth cases+1",), Starts("lookups"), "each run in LOOKUPS")
LOOKUPS = _part(
    33, "lookups", ("lookups", "3"), (Index("line break lists"), Either("roots+1", "open roots"), Index("masks")),
    "line breaks that come first; then where a walk begins, 0 for nowhere, or an open root; then a mask that needs no walk",
)  # fmt: skip
LINE_BREAKS_START = _part(
    34, "line_breaks_start", ("line break lists+1",), Starts("line breaks", least=1, is_first_empty=True),
    "the line breaks of each list; list 0 has none",
)  # fmt: skip
LINE_BREAKS = _part(
    35, "line_breaks", ("line breaks", "5"),
    (Bound("line break symbols"), Bound("line break symbols"), Number(ABSOLUTE, 7), Number(0, (1 << 31) - 1), Number(0, (1 << 31) - 1)),
    "a line break: where the symbols before it begin and end in LINE_BREAK_SYMBOLS, and how far it is indented (`tokens.events.Move`)",
)  # fmt: skip
LINE_BREAK_SYMBOLS = _part(
    36,
    "line_break_symbols",
    ("line break symbols",),
    Index("symbols"),
    "columns, or columns + m: the next lexeme is read in mode m",
)

_section("Open roots: what an automaton that is not closed leaves to the parser (empty otherwise)")

CONTINUATION_SYMBOL = _part(
    68, "continuation_symbol", ("continuations",), Index("symbols"), "the first symbol of a continuation"
)
CONTINUATION_NEXT = _part(
    69, "continuation_next", ("continuations",), Either("continuations", "sets"),
    "what comes after it: a continuation made before it, or a set of which one column is next",
)  # fmt: skip
OPEN_START = _part(70, "open_start", ("open roots+1",), Starts("open items"), "each open root's run in OPEN_ITEMS")
OPEN_ITEMS = _part(
    71, "open_items", ("open items", "2"), (Either("continuations", "sets"), Index("masks")),
    "a continuation or set that the parser is asked about, and the mask that it allows",
)  # fmt: skip

_section("The stack automaton: walks over LR states, from the top of the stack down")

N_NODES = _number(41, "nodes", "its nodes; 0 ends a walk, then come the roots, then inner nodes", least=1)
N_EDGE_SLOTS = _number(43, "slots", "of the hash table of edges")
EDGE_PAIRS = _part(
    37, "edge_pairs", ("pairs", "2"), (Index("nodes"), Index("masks")),
    "the distinct edges: the node that one leads to, and the mask that it adds",
)  # fmt: skip
ROOTS = _part(38, "roots", ("roots", "states"), Index("pairs"), "the edge of each root for each LR state on top")
NODES = _part(
    40, "nodes", ("inner nodes", "2"), (Index("pairs"), Number(0, 1)),
    "the edge of an inner node that most LR states have, and whether some have another, in EDGES",
)  # fmt: skip
EDGES = _part(
    42, "edges", ("slots", "2"), Coded("node * states + LR state, or -1 for a free slot; an index of EDGE_PAIRS"),
    "the other edges, a hash table with open addressing (`_table_kernels.edge_slot`)",
)  # fmt: skip

_section("Masks")

N_MASKS = _number(45, "masks", "masks; 0 is empty", least=1)
N_WORDS = _number(58, "words", "words of a mask: ceil(tokens / 32)")
MASKS = _part(
    44, "masks", ("masks", "3"), (Index("rows", ("none",)), Bound("ids"), Bound("ids")),
    "a row, and where its other tokens begin in MASK_IDS, and how many they are",
)  # fmt: skip
ROWS = _part(46, "rows", ("rows", "words"), Bits("tokens"), "what several masks have in common")
MASK_IDS = _part(47, "mask_ids", ("ids",), Index("tokens"), "tokens of masks beside their rows")

_section("The vocabulary")

N_TOKENS = _number(50, "tokens", "the vocabulary's size")
N_EOS = _number(52, "eos", "end-of-text tokens")
TOKEN_START = _part(
    48, "token_start", ("tokens+1",), Coded("where a token's bytes begin: an ascent from 0"),
    "by token, in bytes from the beginning of TOKEN_BYTES",
)  # fmt: skip
TOKEN_BYTES = _part(
    49, "token_bytes", ("byte words",), Coded("four bytes, the first in the lowest"),
    "the tokens' bytes end to end; special tokens have none",
)  # fmt: skip
EOS = _part(51, "eos", ("eos",), Index("tokens"), "end-of-text tokens, ascending")

_section("The layout, and other settings")

TAB_LENGTH = _setting(53, "tab length", "columns that a tab adds; 1 without a layout")
TABS = _setting(72, "way to count tabs", "LARK_TABS or CONSISTENT_TABS")
NEWLINE = _setting(54, "newline", "the layout's newline, a terminal, or NONE")
INDENT = _setting(55, "indent", "the column of its INDENT, or NONE")
DEDENT = _setting(56, "dedent", "the column of its DEDENT, or NONE")
AFTER_NEWLINE = _setting(
    57, "set after a newline", "the set (of SET_BITS) of what may follow a line break in the first column"
)
EOS_IN_MASKS = _setting(
    59, "end-of-text tokens in masks",
    "1 if masks say where a text may end; 0 under a layout, where open blocks decide it",
)  # fmt: skip
AGAIN = _setting(67, "room for bytes to read anew", "the most bytes that wait to be read anew at one time")

# values of TABS
LARK_TABS, CONSISTENT_TABS = 0, 1

# flags of STATE_FLAGS
MAY_END_NEWLINE, IS_NEWLINE = 1, 2

NONE = -9
"""Instead of a terminal or a column: there is none."""
