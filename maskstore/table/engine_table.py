"""The flat table that decoders read: LALR tables, lexer, look-ups, stack automaton and the tokens' bytes in one int32 array.

One array, because a call from Python to compiled code pays for each; flat, because the same layout can be copied to a GPU as it is.

Layout: `HEADER` places of numbers and offsets, then the LALR tables (`flatten_tables`), then the parts below. All offsets count places
from the array's start, but those inside OUTPUT_START, ENDING_START, LOOKUP_START, PATH_START and TOKEN_START, which count members of
the part that they lead to (bytes for the tokens). SHIFT_BITS are the terminals that a parser with a state on top shifts, whatever lies
below (`surely_shifted`).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.automaton._parse_kernels import HEADER, N_STATES
from maskwright.maskstore.automaton.closure import Closure
from maskwright.maskstore.automaton.stack_automaton import StackAutomaton
from maskwright.maskstore.automaton.suspended import flatten_tables
from maskwright.maskstore.table import _engine_kernels as kernels
from maskwright.maskstore.table.mask_rows import MaskRows, share_rows
from maskwright.maskstore.table.shortcuts import shortened
from maskwright.maskstore.tokens.feasible import surely_shifted
from maskwright.maskstore.tokens.token_walk import flat
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words

Int32 = npt.NDArray[np.int32]

# places in the header, after those of the LALR tables
(
    BYTE_CLASS, N_CLASSES, NEXT_STATE, OUTPUT, OUTPUT_START, OUTPUT_SYMBOLS, END_OUTPUT, STATE_FLAGS, ENDING_START, ENDINGS,
    SYMBOL_COLUMN, SYMBOL_DEPTH, SET_BITS, N_SET_WORDS, SHIFT_BITS, VIEW_START, LOOKUP_START, LOOKUPS, PATH_START, PATHS, PATH_SYMBOLS,
    EDGE_PAIRS, ROOTS, N_ROOTS, NODES, N_NODES, EDGES, N_EDGE_SLOTS, MASKS, N_MASKS, ROWS, MASK_IDS, TOKEN_START, TOKEN_BYTES, N_TOKENS,
    EOS, N_EOS,
    TAB_LENGTH, NEWLINE, INDENT, DEDENT, AFTER_NEWLINE, N_WORDS, EOS_IN_MASKS, N_LEXER_STATES,
    N_MODES, MODE_STATE, MODE_OF_STATE, FALLBACK, PENDING_START, PENDING, AGAIN, REST_SYMBOL, REST_NEXT,
    OPEN_START, OPEN_ITEMS, TABS,
) = range(16, 16 + 57)  # fmt: skip

# flags of a lexer state
MAY_END_NEWLINE, IS_NEWLINE = 1, 2

# how columns are counted
LARK_TABS, CONSISTENT_TABS = 0, 1

NONE = -9
"""A terminal number that no terminal has."""


class _Flat:
    """Parts end to end behind a header."""

    def __init__(self, start: Int32) -> None:
        self.header = start[:HEADER].copy()
        self.parts = [start[HEADER:]]
        self.size = len(start)

    def add(self, place: int, part: npt.ArrayLike) -> None:
        array = np.ascontiguousarray(part, np.int32).ravel()
        self.header[place] = self.size
        self.parts.append(array)
        self.size += len(array)

    def done(self) -> Int32:
        if self.size >= 1 << 31:
            raise LimitError(f"the engine's table would have {self.size:,} places; it can have 2^31 - 1")
        table: Int32 = np.concatenate([self.header, *self.parts])
        table.setflags(write=False)
        return table


def engine_table(grammar: Grammar, vocabulary: Vocabulary, automaton: StackAutomaton) -> Int32:
    """The table of a closed stack automaton."""
    tables, required = automaton.tables, automaton.required
    transducer = required.transducer
    table = _Flat(flatten_tables(shortened(tables), required.modes.of_state))
    header = table.header
    header[N_CLASSES] = transducer.next_state.shape[1]
    header[N_LEXER_STATES] = transducer.n_states
    table.add(BYTE_CLASS, transducer.byte_class)
    table.add(NEXT_STATE, transducer.next_state)
    table.add(OUTPUT, transducer.output)
    starts, symbols = flat(transducer.outputs)
    table.add(OUTPUT_START, starts)
    table.add(OUTPUT_SYMBOLS, symbols)
    table.add(END_OUTPUT, transducer.end_output)
    table.add(STATE_FLAGS, transducer.may_end_newline * MAY_END_NEWLINE + transducer.is_newline * IS_NEWLINE)
    layout = grammar.layout
    header[TAB_LENGTH] = layout.tab_length if layout else 1
    header[TABS] = CONSISTENT_TABS if layout and layout.tabs == "consistent" else LARK_TABS
    header[NEWLINE] = layout.newline if layout else NONE
    header[INDENT] = tables.terminal_column[layout.indent] if layout else NONE
    header[DEDENT] = tables.terminal_column[layout.dedent] if layout else NONE
    table.add(SYMBOL_COLUMN, tables.terminal_column)
    table.add(SYMBOL_DEPTH, [required.bracket.get(t, 0) for t in range(grammar.n_terminals)])
    _add_modes(table, grammar, automaton)
    _add_endings(table, automaton)
    _add_lookups(table, automaton)
    _add_open(table, automaton)
    _add_edges(table, automaton.closure)
    _add_masks(table, share_rows(automaton.closure))
    _add_tokens(table, vocabulary)
    header[N_WORDS] = n_words(vocabulary.size)
    header[EOS_IN_MASKS] = layout is None
    return table.done()


def _add_modes(table: _Flat, grammar: Grammar, automaton: StackAutomaton) -> None:
    """Contextual lexing: the mode of each LR state, where lexemes begin in each mode, and what a lexer that backs up reads anew.

    FALLBACK : by lexer state the place in OUTPUT_SYMBOLS of the terminal to emit, -1 for an ignored one.
    """
    transducer = automaton.required.transducer
    table.header[N_MODES] = transducer.n_modes
    table.add(MODE_STATE, transducer.mode_state)
    table.add(MODE_OF_STATE, automaton.required.modes.of_state)
    _, symbols = flat(transducer.outputs)
    place: list[int] = [
        -1
        if transducer.n_modes == 1 or terminal < 0 or terminal in grammar.ignored
        else int(np.flatnonzero(symbols == terminal)[0])
        for terminal in transducer.fallback
    ]
    table.add(FALLBACK, place)
    starts, pending = flat(transducer.pending)
    table.add(PENDING_START, starts)
    table.add(PENDING, pending)
    # BOUND: each byte read anew may make the lexer back up over one lexeme's pending bytes again
    table.header[AGAIN] = 0 if transducer.n_modes == 1 else 4 * (transducer.longest_pending + 2)


def _add_endings(table: _Flat, automaton: StackAutomaton) -> None:
    """What the lexeme under way may become, by lexer state: (twice the set's number + whether a newline is in it, or -1 for anything;
    how many terminals come first; those terminals)."""
    required, tables = automaton.required, automaton.tables
    ending_of, endings = required.endings
    # the sets of open rests have the numbers that they have there; number 0 stands for "whatever comes" and is not asked for
    sets: dict[frozenset[int], int] = {}
    if automaton.open_roots:
        sets = {columns: number for number, columns in enumerate(required.rests.sets)}
    table.header[AFTER_NEWLINE] = sets.setdefault(required.after_newline, len(sets))
    places: list[list[int]] = []
    for ending in endings:
        place: list[int] = []
        # a contextual lexer asks the parser where it backs up, so decoders read what is pending anew themselves
        for symbols, members in ending if required.transducer.n_modes == 1 else ending[:1]:
            code = -1
            if members is not None:
                columns = required.columns_of(members)
                code = 2 * sets.setdefault(columns, len(sets)) + (required.newline in members)
            place += [code, len(symbols), *symbols]
        places.append(place)
    starts, members_flat = flat([places[ending] for ending in ending_of.tolist()])
    table.add(ENDING_START, starts)
    table.add(ENDINGS, members_flat)
    n_columns = tables.n_terminals + 1
    words = (n_columns + 31) // 32
    table.header[N_SET_WORDS] = words
    table.add(SET_BITS, _bits([sorted(columns) for columns in sets], words))
    table.add(SHIFT_BITS, surely_shifted(tables).view(np.int32))


def _bits(members: list[list[int]], words: int) -> Int32:
    bits = np.zeros((len(members), words), np.uint32)
    for row, columns in enumerate(members):
        for column in columns:
            bits[row, column >> 5] |= np.uint32(1 << (column & 31))
    return bits.view(np.int32)


def _add_lookups(table: _Flat, automaton: StackAutomaton) -> None:
    used = [path for view in automaton.views for lookups in view for path in (one.path for one in lookups)]
    number = {path: i for i, path in enumerate([0, *sorted(set(used) - {0})])}
    view_starts, _views = flat([range(len(of_state)) for of_state in automaton.views])
    table.add(VIEW_START, view_starts)
    lists = [lookups for of_state in automaton.views for lookups in of_state]
    lookup_starts, _ = flat([range(len(lookups)) for lookups in lists])
    table.add(LOOKUP_START, lookup_starts)
    table.add(LOOKUPS, [(number[one.path], one.root, one.own) for lookups in lists for one in lookups])
    newlines = [automaton.paths[path] for path in number]
    path_starts, _ = flat([range(len(path)) for path in newlines])
    table.add(PATH_START, path_starts)
    before_starts, before = flat([symbols for path in newlines for symbols, _ in path])
    table.add(
        PATHS,
        [
            (begin, end, *move)
            for (begin, end), (_, move) in zip(
                pairwise(before_starts.tolist()), [newline for path in newlines for newline in path], strict=True
            )
        ],
    )
    table.add(PATH_SYMBOLS, before)


def _add_open(table: _Flat, automaton: StackAutomaton) -> None:
    """What an automaton that is not closed leaves to the parser: rests, and for each open root its (rest, mask) pairs.

    A look-up's root is -1 - n for open root n. A rest is as in `Rests`: a symbol and the rest after it, or -1 - the number of a set.
    """
    rests = automaton.required.rests
    is_open = bool(automaton.open_roots)
    table.add(REST_SYMBOL, rests.symbols if is_open else [])
    table.add(REST_NEXT, rests.nexts if is_open else [])
    starts, _ = flat([range(len(items)) for items, _ in automaton.open_roots])
    table.add(OPEN_START, starts)
    table.add(
        OPEN_ITEMS,
        [pair for items, masks in automaton.open_roots for pair in zip(items.tolist(), masks.tolist(), strict=True)],
    )


def _add_edges(table: _Flat, closure: Closure) -> None:
    """Edges by number of their distinct (target, mask); number 0 is (0, 0), which decides all and adds nothing.

    A root's edges are a dense row: cells that it does not list refuse all. Another node's most common edge is its default, the others
    are in a hash table of (node * n_cells + cell, number).
    """
    n_cells = int(table.header[N_STATES])
    n_roots = closure.n_roots
    if closure.n_nodes * n_cells >= 1 << 31:
        raise LimitError(
            f"the stack automaton has {closure.n_nodes:,} nodes over {n_cells} cells: too many to number in 31 bits"
        )
    order = np.argsort(closure.edge_key, kind="stable")
    key = closure.edge_key[order]
    both = (closure.edge_node[order].astype(np.int64) << 32) | closure.edge_mask[order]
    distinct, number = np.unique(np.append(both, 0), return_inverse=True)
    number = number.reshape(-1)[:-1].astype(np.int32)
    table.add(EDGE_PAIRS, np.stack([distinct >> 32, distinct & 0xFFFFFFFF], axis=1))
    cut = int(np.searchsorted(key, (n_roots + 1) * n_cells))
    rows = np.zeros(n_roots * n_cells, np.int32)
    rows[key[:cut] - n_cells] = number[:cut]
    table.add(ROOTS, rows)
    table.header[N_ROOTS] = n_roots
    node_of = key[cut:] // n_cells - n_roots - 1
    nodes = np.zeros((closure.n_nodes - n_roots - 1, 2), np.int32)
    kernels.choose_defaults(node_of, number[cut:], nodes)
    is_exception = number[cut:] != nodes[node_of, 0]
    nodes[np.unique(node_of[is_exception]), 1] = 1
    keys = key[cut:][is_exception].astype(np.int32)
    # PERF: every other key that is asked for has the default, and is looked for up to the next free place: six places on if seven tenths
    # are full, 2.5 if half are, but the table should stay small
    slots = np.full((max(8, len(keys) * 10 // 7), 2), -1, np.int32)
    kernels.fill_edges(keys, number[cut:][is_exception], slots)
    table.header[N_NODES] = closure.n_nodes
    table.add(NODES, nodes)
    table.header[N_EDGE_SLOTS] = len(slots)
    table.add(EDGES, slots)


def _add_masks(table: _Flat, masks: MaskRows) -> None:
    """Masks by number: the number of a row or -1, where in MASK_IDS the ids beside it begin, and how many they are."""
    table.header[N_MASKS] = len(masks.row)
    table.add(MASKS, np.stack([masks.row, masks.begin, masks.count], axis=1))
    table.add(ROWS, masks.rows.view(np.int32))
    table.add(MASK_IDS, masks.ids)


def _add_tokens(table: _Flat, vocabulary: Vocabulary) -> None:
    text = set(vocabulary.text_ids())
    tokens = [token if i in text else b"" for i, token in enumerate(vocabulary.tokens)]
    data = b"".join(tokens)
    if len(data) >= 1 << 31:
        raise LimitError("the vocabulary has 2 GiB of text or more")
    table.header[N_TOKENS] = vocabulary.size
    table.add(TOKEN_START, np.concatenate([[0], np.cumsum([len(token) for token in tokens])]))
    table.add(TOKEN_BYTES, np.frombuffer(data + bytes(-len(data) % 4), "<i4"))
    table.header[N_EOS] = len(vocabulary.eos)
    table.add(EOS, sorted(vocabulary.eos))
