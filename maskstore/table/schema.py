"""The parts of an engine's table: what each counts, and between which numbers its values lie.

The table's numbers and parts are described here once, in the words of `engine_table`'s header; whoever adds a part there describes it
here. Parts lie end to end in the order of `PARTS`. `tablecheck` holds a table to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from maskwright.maskstore.automaton import _parse_kernels as lr
from maskwright.maskstore.table import engine_table as places
from maskwright.maskstore.tokens.events import ABSOLUTE


@dataclass(frozen=True, slots=True)
class Part:
    """shape : what the lengths count, in words of `NUMBERS`; x+1 is one more than x; a word that is not there is found from the length.

    columns : for each column of the last axis, or for all alike, the least value and the word for one more than the greatest.
    """

    name: str
    shape: tuple[str, ...]
    columns: tuple[tuple[int, str], ...]


ANY = (-(1 << 31), "2^31")

NUMBERS: Mapping[int, str] = {
    lr.N_STATES: "states",
    lr.N_COLUMNS: "columns",
    lr.N_NONTERMINALS: "nonterminals",
    lr.N_RULES: "rules",
    places.N_CLASSES: "classes",
    places.N_LEXER_STATES: "lexer states",
    places.N_SET_WORDS: "set words",
    places.N_ROOTS: "roots",
    places.N_NODES: "nodes",
    places.N_EDGE_SLOTS: "slots",
    places.N_MASKS: "masks",
    places.N_TOKENS: "tokens",
    places.N_EOS: "eos",
    places.N_WORDS: "words",
    places.N_MODES: "modes",
}

NEVER_NONE = ("states", "columns", "nonterminals", "rules", "classes", "lexer states", "nodes", "masks", "modes")
"""What there is at least one of."""

PARTS: Mapping[int, Part] = {
    lr.ACTION: Part("action", ("states", "columns"), (ANY,)),
    lr.GOTO: Part("goto", ("states", "nonterminals"), ((-1, "states"),)),
    lr.RULE_LHS: Part("rule_lhs", ("rules",), ((0, "nonterminals"),)),
    lr.RULE_LENGTH: Part("rule_length", ("rules",), ((0, "2^12"),)),
    lr.ALTERNATIVES: Part("alternatives", ("alternatives",), (ANY,)),
    lr.DEFAULT: Part("default_rule", ("states",), ((-1, "rules"),)),
    lr.PREDECESSOR_START: Part("predecessor_start", ("states+1",), ((0, "predecessors+1"),)),
    lr.PREDECESSORS: Part("predecessors", ("predecessors",), ((0, "states"),)),
    lr.MODE: Part("mode", ("states",), ((0, "modes"),)),
    places.BYTE_CLASS: Part("byte_class", ("256",), ((0, "classes"),)),
    places.NEXT_STATE: Part("next_state", ("lexer states", "classes"), ((-2, "lexer states"),)),
    places.OUTPUT: Part("output", ("lexer states", "classes"), ((0, "outputs"),)),
    places.OUTPUT_START: Part("output_start", ("outputs+1",), ((0, "output symbols+1"),)),
    places.OUTPUT_SYMBOLS: Part("output_symbols", ("output symbols",), ((0, "terminals"),)),
    places.END_OUTPUT: Part("end_output", ("lexer states",), ((-2, "outputs"),)),
    places.STATE_FLAGS: Part("state_flags", ("lexer states",), ((0, "4"),)),
    places.SYMBOL_COLUMN: Part("symbol_column", ("terminals",), ((-1, "columns"),)),
    places.SYMBOL_DEPTH: Part("symbol_depth", ("terminals",), ((-1, "2"),)),
    places.MODE_STATE: Part("mode_state", ("modes",), ((0, "lexer states"),)),
    places.MODE_OF_STATE: Part("mode_of_state", ("states",), ((0, "modes"),)),
    places.FALLBACK: Part("fallback", ("lexer states",), ((-1, "output symbols"),)),
    places.PENDING_START: Part("pending_start", ("lexer states+1",), ((0, "pending+1"),)),
    places.PENDING: Part("pending", ("pending",), ((0, "256"),)),
    places.ENDING_START: Part("ending_start", ("lexer states+1",), ((0, "endings+1"),)),
    places.ENDINGS: Part("endings", ("endings",), (ANY,)),
    places.SET_BITS: Part("set_bits", ("sets", "set words"), (ANY,)),
    places.SHIFT_BITS: Part("shift_bits", ("states", "set words"), (ANY,)),
    places.VIEW_START: Part("view_start", ("lexer states+1",), ((0, "views+1"),)),
    places.LOOKUP_START: Part("lookup_start", ("views+1",), ((0, "lookups+1"),)),
    places.LOOKUPS: Part("lookups", ("lookups", "3"), ((0, "paths"), ANY, (0, "masks"))),
    places.PATH_START: Part("path_start", ("paths+1",), ((0, "newlines+1"),)),
    places.PATHS: Part(
        "paths",
        ("newlines", "5"),
        ((0, "path symbols+1"), (0, "path symbols+1"), (ABSOLUTE, "8"), (0, "2^31"), (0, "2^31")),
    ),
    places.PATH_SYMBOLS: Part("path_symbols", ("path symbols",), ((0, "symbols"),)),
    places.REST_SYMBOL: Part("rest_symbol", ("rests",), ((0, "symbols"),)),
    places.REST_NEXT: Part("rest_next", ("rests",), (ANY,)),
    places.OPEN_START: Part("open_start", ("open roots+1",), ((0, "open items+1"),)),
    places.OPEN_ITEMS: Part("open_items", ("open items", "2"), (ANY, (0, "masks"))),
    places.EDGE_PAIRS: Part("edge_pairs", ("pairs", "2"), ((0, "nodes"), (0, "masks"))),
    places.ROOTS: Part("roots", ("roots", "states"), ((0, "pairs"),)),
    places.NODES: Part("nodes", ("inner nodes", "2"), ((0, "pairs"), (0, "2"))),
    places.EDGES: Part("edges", ("slots", "2"), (ANY,)),
    places.MASKS: Part("masks", ("masks", "3"), ((-1, "rows"), (0, "ids+1"), (0, "ids+1"))),
    places.ROWS: Part("rows", ("rows", "words"), (ANY,)),
    places.MASK_IDS: Part("mask_ids", ("ids",), ((0, "tokens"),)),
    places.TOKEN_START: Part("token_start", ("tokens+1",), (ANY,)),
    places.TOKEN_BYTES: Part("token_bytes", ("byte words",), (ANY,)),
    places.EOS: Part("eos", ("eos",), ((0, "tokens"),)),
}

STARTS: Mapping[int, tuple[int, int]] = {
    lr.PREDECESSOR_START: (lr.PREDECESSORS, 0),
    places.OUTPUT_START: (places.OUTPUT_SYMBOLS, 0),
    places.PENDING_START: (places.PENDING, 0),
    places.ENDING_START: (places.ENDINGS, 2),
    places.VIEW_START: (places.LOOKUP_START, 1),
    places.LOOKUP_START: (places.LOOKUPS, 0),
    places.PATH_START: (places.PATHS, 0),
    places.OPEN_START: (places.OPEN_ITEMS, 0),
}
"""Parts that ascend from 0 to the number of rows of another, and how far each step goes at least."""

SETTINGS = (
    places.TAB_LENGTH,
    places.TABS,
    places.NEWLINE,
    places.INDENT,
    places.DEDENT,
    places.AFTER_NEWLINE,
    places.EOS_IN_MASKS,
    places.AGAIN,
)
"""The other places of the header, each with a check of its own."""
