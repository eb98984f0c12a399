"""Write the engine's table (see `schema`).

In: a closed stack automaton with its parser and lexer, and a vocabulary. Out: one int32 array.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.automaton.closure import Closure
from maskwright.maskstore.automaton.stack_automaton import StackAutomaton
from maskwright.maskstore.table import _table_kernels as kernels
from maskwright.maskstore.table import schema
from maskwright.maskstore.tokens.classes import TokenClasses
from maskwright.maskstore.tokens.feasible import surely_shifted
from maskwright.maskstore.tokens.token_walk import flat, starts_of
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import flags_of, n_words, packed, words_of


@dataclass(frozen=True, slots=True)
class MaskRows:
    """The masks of an engine's table by number: mask m is a row, which others share, and some ids.

    The masks of a grammar are unions of the same large sets and a few tokens. Such a set is all
    tokens that go on with a name, or all that go on with a string. With V = 131,072 tokens, the
    masks of python.lark take 47 MB as bitmasks, and 5 MB as rows and ids. This is small enough for
    a processor's cache, and reading masks is where the time goes.

    It is rows[row[m]], or nothing if row[m] is -1, and ids[begin[m] : begin[m] + count[m]].

    rows : (n_rows, n_words) uint32; bit i of word w, the little end first, is token 32 w + i.
    row, begin, count : (n_masks,) int32.
    ids : (n_ids,) int32, ascending within a mask.
    """

    rows: npt.NDArray[np.uint32]
    row: Int32
    begin: Int32
    count: Int32
    ids: Int32


def most_ids(n_words: int) -> int:
    """The most tokens of a mask without a row.

    So many ids take as long to add as a row: 2 ns for an id, 1 ns for 8 words. n_words : words of a
    row.
    """
    return max(8, n_words // 16)


def most_ids_more(n_words: int) -> int:
    """The most ids that a mask has beside its row. n_words : words of a row."""
    return max(4, n_words // 32)


def share_rows(closure: Closure, classes: TokenClasses, n_words: int) -> MaskRows:
    """The masks of a closure as rows and ids.

    The rows are not the fewest possible: each mask joins the row that suits it best, larger masks
    first. The choice is made over classes of tokens, each of which counts as its tokens.

    closure, classes : its masks are sets of these classes.
    n_words : words of a row.

    Cost: O(masks x rows of like size x words of classes), 0.1 s for python.lark at V = 131,072.
    """
    counts, at = closure.mask_count, closure.mask_at
    weights = _weights(classes.sizes, closure.dense.shape[1])
    sizes = np.zeros(len(counts), np.int64)
    kernels.mask_sizes(counts, at, closure.dense, closure.mask_ids, classes.sizes, weights, sizes)
    large = np.flatnonzero(sizes > most_ids(n_words))
    words = np.zeros((len(large), closure.dense.shape[1]), np.uint32)
    kernels.write_rows(counts[large], at[large], closure.dense, closure.mask_ids, words)
    order = np.argsort(-sizes[large], kind="stable")
    row_of = np.full(len(large), -1, np.int32)
    rows = np.zeros((64, words.shape[1]), np.uint32)
    kept = np.zeros((64, 2), np.int64)
    n_rows = done = 0
    while True:
        done, n_rows = kernels.share_rows(
            words, sizes[large], order, done, row_of, rows, kept, n_rows, most_ids_more(n_words), weights
        )
        if done == len(large):
            break
        rows, kept = np.concatenate([rows, np.zeros_like(rows)]), np.concatenate([kept, np.zeros_like(kept)])
    rows = rows[:n_rows]
    row = np.full(len(counts), -1, np.int32)
    row[large] = row_of
    words &= ~rows[row_of]
    beside_of = np.full(len(counts), -1, np.int64)
    beside_of[large] = np.arange(len(large))
    start, none = np.zeros(len(counts) + 1, np.int64), np.zeros(0, np.int32)
    kernels.list_classes(counts, at, closure.dense, closure.mask_ids, beside_of, words, start, none)
    listed = np.zeros(int(start[-1]), np.int32)
    kernels.list_classes(counts, at, closure.dense, closure.mask_ids, beside_of, words, start, listed)
    ids, begin = classes.tokens(listed, start)
    return MaskRows(classes.rows(rows, n_words), row, begin[:-1].astype(np.int32), np.diff(begin).astype(np.int32), ids)


def _weights(sizes: Int64, n_words: int) -> npt.NDArray[np.int32]:
    """The numbers of tokens of four classes at a time: (8 n_words, 16) int32.

    sizes : (n_classes,) int64; the number of tokens of each class.
    n_words : words of a bitmask of classes.

    Row n has classes 4 n to 4 n + 3, of which bits 4 n mod 32 and so on of a word tell. Column b is
    for those with the bits of b.
    """
    padded = np.zeros(32 * n_words, np.int64)
    padded[: len(sizes)] = sizes
    bits = np.arange(16)[None, :] >> np.arange(4)[:, None] & 1
    return (padded.reshape(-1, 4) @ bits).astype(np.int32)


class TableWriter:
    """The parts of a table end to end, behind a header."""

    def __init__(self) -> None:
        self.header = np.zeros(schema.HEADER, np.int32)
        self.parts: list[Int32] = []
        self.size = schema.HEADER

    def add(self, offset: int, part: npt.ArrayLike) -> None:
        """Add the next part, in the order of `PARTS`. offset : its own in the header."""
        if offset != self._order[len(self.parts)]:
            raise AssertionError(f"part {schema.PARTS[offset].name} is not the next one of the schema")
        array = np.asarray(part, np.int32).ravel()  # C-contiguous
        self.header[offset] = self.size
        self.parts.append(array)
        self.size += len(array)

    _order = tuple(schema.PARTS)

    def done(self) -> Int32:
        """The table, read-only."""
        if self.size >= 1 << 31:
            raise LimitError(f"the engine's table would have {self.size:,} integers; it can have at most 2^31 - 1")
        table: Int32 = np.concatenate([self.header, *self.parts])
        table.setflags(write=False)
        return table


def part_of(table: Int32, offset: int) -> Int32:
    """The integers of a part of a table, flat. offset : its own in the header."""
    order = list(schema.PARTS)
    after = order.index(offset) + 1
    return table[table[offset] : table[order[after]] if after < len(order) else len(table)]


def engine_table(grammar: Grammar, vocabulary: Vocabulary, automaton: StackAutomaton) -> Int32:
    """The table of a stack automaton: (n,) int32, read-only, as `schema` describes it.

    Raises: LimitError if it would have 2^31 integers or more, the automaton has too many nodes to
        number its edges in 31 bits, or the vocabulary has 2 GiB of text or more.
    """
    tables, required = automaton.tables, automaton.required
    transducer = required.transducer
    table = TableWriter()
    header = table.header
    _add_parser(table, automaton.shorter)
    header[schema.N_CLASSES] = transducer.next_state.shape[1]
    header[schema.N_LEXER_STATES] = transducer.n_states
    table.add(schema.BYTE_CLASS, transducer.byte_class)
    table.add(schema.NEXT_STATE, transducer.next_state)
    table.add(schema.OUTPUT, transducer.output)
    starts, symbols = flat(transducer.outputs)
    table.add(schema.OUTPUT_START, starts)
    table.add(schema.OUTPUT_SYMBOLS, symbols)
    table.add(schema.END_OUTPUT, transducer.end_output)
    table.add(
        schema.STATE_FLAGS,
        transducer.may_end_newline * schema.MAY_END_NEWLINE + transducer.is_newline * schema.IS_NEWLINE,
    )
    layout = grammar.layout
    header[schema.TAB_LENGTH] = layout.tab_length if layout else 1
    header[schema.TABS] = schema.CONSISTENT_TABS if layout and layout.tabs == "consistent" else schema.LARK_TABS
    header[schema.NEWLINE] = layout.newline if layout else schema.NONE
    header[schema.INDENT] = tables.terminal_column[layout.indent] if layout else schema.NONE
    header[schema.DEDENT] = tables.terminal_column[layout.dedent] if layout else schema.NONE
    table.add(schema.SYMBOL_COLUMN, tables.terminal_column)
    table.add(schema.SYMBOL_DEPTH, [required.bracket.get(t, 0) for t in range(grammar.n_terminals)])
    _add_modes(table, grammar, automaton)
    _add_endings(table, automaton)
    _add_lookups(table, automaton)
    _add_open(table, automaton)
    _add_edges(table, automaton.closure)
    _add_masks(table, share_rows(automaton.closure, required.classes, n_words(vocabulary.size)))
    _add_tokens(table, vocabulary)
    header[schema.N_WORDS] = n_words(vocabulary.size)
    header[schema.EOS_IN_MASKS] = layout is None
    return table.done()


def _add_parser(table: TableWriter, tables: LrTables) -> None:
    """Add the LALR tables."""
    header = table.header
    header[schema.N_STATES], header[schema.N_COLUMNS] = tables.action.shape
    header[schema.N_NONTERMINALS] = tables.goto.shape[1]
    header[schema.N_RULES] = len(tables.rule_lhs)
    for offset in next(iter(schema.SECTIONS.values())):
        if offset in schema.PARTS:
            table.add(offset, getattr(tables, schema.PARTS[offset].name))


def _add_modes(table: TableWriter, grammar: Grammar, automaton: StackAutomaton) -> None:
    """Add what depends on lexing modes.

    These are the mode of each LR state, the lexer state in which lexemes begin in each mode, and
    what a lexer that backs up reads anew. FALLBACK says for each lexer state where OUTPUT_SYMBOLS
    has the terminal to emit; -1 if none is emitted.
    """
    transducer = automaton.required.transducer
    table.header[schema.N_MODES] = transducer.n_modes
    table.add(schema.MODE_STATE, transducer.mode_state)
    table.add(schema.MODE_OF_STATE, automaton.required.modes.of_state)
    _, symbols = flat(transducer.outputs)
    symbol_at: list[int] = [
        -1
        if transducer.n_modes == 1 or terminal < 0 or terminal in grammar.ignored
        else int(np.flatnonzero(symbols == terminal)[0])
        for terminal in transducer.fallback
    ]
    table.add(schema.FALLBACK, symbol_at)
    starts, pending = flat(transducer.pending)
    table.add(schema.PENDING_START, starts)
    table.add(schema.PENDING, pending)
    # BOUND: each byte read anew may make the lexer back up again, over one lexeme's pending bytes
    table.header[schema.AGAIN] = 0 if transducer.n_modes == 1 else 4 * (transducer.longest_pending + 2)


def _add_endings(table: TableWriter, automaton: StackAutomaton) -> None:
    """Add what the lexeme under way may become, by lexer state.

    An ending is a list of alternatives. Each has a code, a count n, and n terminals that come
    first. The code is twice the number of a lookahead set + whether the newline is in it, or -1 for
    anything.
    """
    required, tables = automaton.required, automaton.tables
    ending_of, endings = required.endings
    # lookahead sets of open continuations keep their numbers. Number 0 stands for "whatever comes":
    # no decoder looks it up
    sets: dict[frozenset[int], int] = {}
    if automaton.open_roots:
        sets = {columns: number for number, columns in enumerate(required.continuations.sets)}
    table.header[schema.AFTER_NEWLINE] = sets.setdefault(required.after_newline, len(sets))
    encoded_endings: list[list[int]] = []
    for ending in endings:
        encoded: list[int] = []
        # a lexer with modes asks the parser where it backs up, so decoders read the pending bytes
        # anew themselves
        for symbols, members in ending if required.transducer.n_modes == 1 else ending[:1]:
            code = -1
            if members is not None:
                columns = required.columns_of(members)
                code = 2 * sets.setdefault(columns, len(sets)) + (required.newline in members)
            encoded += [code, len(symbols), *symbols]
        encoded_endings.append(encoded)
    starts, members_flat = flat([encoded_endings[ending] for ending in ending_of.tolist()])
    table.add(schema.ENDING_START, starts)
    table.add(schema.ENDINGS, members_flat)
    n_columns = tables.n_terminals + 1
    table.header[schema.N_SET_WORDS] = n_words(n_columns)
    table.add(schema.SET_BITS, [words_of(columns, n_columns).view(np.int32) for columns in sets])
    table.add(schema.SHIFT_BITS, surely_shifted(tables, required.reductions).view(np.int32))


def _add_lookups(table: TableWriter, automaton: StackAutomaton) -> None:
    """Add the look-ups of each lexer state and depth case, and the line breaks that they use."""
    lists = [lookups for of_state in automaton.depth_cases for lookups in of_state]
    used = {one.line_breaks for lookups in lists for one in lookups}
    number = {breaks: i for i, breaks in enumerate([0, *sorted(used - {0})])}
    table.add(schema.DEPTH_CASE_START, starts_of(automaton.depth_cases))
    table.add(schema.LOOKUP_START, starts_of(lists))
    table.add(schema.LOOKUPS, [(number[one.line_breaks], one.root, one.own) for lookups in lists for one in lookups])
    of_number = [automaton.line_breaks[breaks] for breaks in number]
    breaks = [one for each in of_number for one in each]
    starts, symbols = flat([before for before, _ in breaks])
    ends = pairwise(starts.tolist())
    table.add(schema.LINE_BREAKS_START, starts_of(of_number))
    table.add(schema.LINE_BREAKS, [(*ends_of, *move) for ends_of, (_, move) in zip(ends, breaks, strict=True)])
    table.add(schema.LINE_BREAK_SYMBOLS, symbols)


def _add_open(table: TableWriter, automaton: StackAutomaton) -> None:
    """Add what an automaton that is not closed leaves to the parser.

    These are the continuations, and for each open root its pairs of a continuation and a mask. A
    look-up's root is -1 - n for open root n. A continuation is as in `Continuations`: a symbol and
    the continuation after it, or -1 - the number of a set.
    """
    continuations = automaton.required.continuations
    is_open = bool(automaton.open_roots)
    table.add(schema.CONTINUATION_SYMBOL, continuations.symbols if is_open else [])
    table.add(schema.CONTINUATION_NEXT, continuations.next_continuation if is_open else [])
    table.add(schema.OPEN_START, starts_of([items for items, _ in automaton.open_roots]))
    none = np.zeros(0, np.int32)
    columns = [np.concatenate([none, *parts]) for parts in zip(*automaton.open_roots, strict=True)] or [none, none]
    table.add(schema.OPEN_ITEMS, np.stack(columns, axis=1))


def _add_edges(table: TableWriter, closure: Closure) -> None:
    """Add the edges by number: rows of roots, then defaults and exceptions of the other nodes.

    A number stands for a distinct (node, mask). Number 0 is (0, 0), which decides everything and
    allows nothing more. A root's edges are a dense row: cells that it does not list refuse all
    tokens. The most common edge of another node is its default. Its other edges are in a hash table
    of (node * n_cells + cell, number).
    """
    n_cells = int(table.header[schema.N_STATES])
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
    table.add(schema.EDGE_PAIRS, np.stack([distinct >> 32, distinct & 0xFFFFFFFF], axis=1))
    cut = int(np.searchsorted(key, (n_roots + 1) * n_cells))
    rows = np.zeros(n_roots * n_cells, np.int32)
    rows[key[:cut] - n_cells] = number[:cut]
    table.add(schema.ROOTS, rows)
    table.header[schema.N_ROOTS] = n_roots
    node_of = key[cut:] // n_cells - n_roots - 1
    nodes = np.zeros((closure.n_nodes - n_roots - 1, 2), np.int32)
    kernels.choose_defaults(node_of, number[cut:], nodes)
    is_exception = number[cut:] != nodes[node_of, 0]
    nodes[node_of[is_exception], 1] = 1
    keys = key[cut:][is_exception].astype(np.int32)
    # PERF: every other key that is looked up has the default, and its search ends at the next free
    # slot. It takes six slots if seven tenths are full, and 2.5 if half are. But the table should
    # stay small
    slots = np.full((max(8, len(keys) * 10 // 7), 2), -1, np.int32)
    kernels.fill_edges(keys, number[cut:][is_exception], slots)
    table.header[schema.N_NODES] = closure.n_nodes
    table.add(schema.NODES, nodes)
    table.header[schema.N_EDGE_SLOTS] = len(slots)
    table.add(schema.EDGES, slots)


def _add_masks(table: TableWriter, masks: MaskRows) -> None:
    """Add the masks. Each is a row or -1, where its ids begin in MASK_IDS, and their count."""
    table.header[schema.N_MASKS] = len(masks.row)
    table.add(schema.MASKS, np.stack([masks.row, masks.begin, masks.count], axis=1))
    table.add(schema.ROWS, masks.rows.view(np.int32))
    table.add(schema.MASK_IDS, masks.ids)


def _add_tokens(table: TableWriter, vocabulary: Vocabulary) -> None:
    """Add the tokens' bytes, and the end-of-text tokens."""
    if len(vocabulary.flat[1]) >= 1 << 31:
        raise LimitError("the vocabulary has 2 GiB of text or more")
    offsets, words = vocabulary.flat_words
    table.header[schema.N_TOKENS] = vocabulary.size
    table.add(schema.TOKEN_START, offsets)
    table.add(schema.TOKEN_BYTES, words)
    table.header[schema.N_EOS] = len(vocabulary.eos)
    table.add(schema.EOS, sorted(vocabulary.eos))


def used_tokens(table: Int32) -> Int32:
    """The tokens that a mask of a table has, and those that end a text: (n,) int32, ascending."""
    is_used = np.zeros(32 * int(table[schema.N_WORDS]), bool)
    rows = _rows(table)
    if len(rows):
        is_used |= flags_of(np.bitwise_or.reduce(rows, axis=0))
    is_used[part_of(table, schema.MASK_IDS)] = True
    is_used[part_of(table, schema.EOS)] = True
    return np.flatnonzero(is_used).astype(np.int32)


def with_tokens(table: Int32, ids: Int32, vocabulary: Vocabulary) -> Int32:
    """A table with some of its tokens, numbered anew.

    ids : (n,) int32, ascending; the tokens, `used_tokens` among them.
    vocabulary : token i is what ids[i] was.

    The masks are the same, but for the numbers of their tokens.
    """
    words = n_words(len(ids))
    rows = np.zeros((len(_rows(table)), words), np.uint32)
    for old, new in zip(_rows(table), rows, strict=True):
        new[:] = packed(flags_of(old)[ids])
    offsets, data = vocabulary.flat_words
    changed: dict[int, npt.ArrayLike] = {
        schema.ROWS: rows.view(np.int32),
        schema.MASK_IDS: np.searchsorted(ids, part_of(table, schema.MASK_IDS)),
        schema.TOKEN_START: offsets,
        schema.TOKEN_BYTES: data,
        schema.EOS: np.array(vocabulary.eos, np.int32),
    }
    writer = TableWriter()
    writer.header[:] = table[: schema.HEADER]
    writer.header[schema.N_TOKENS], writer.header[schema.N_WORDS] = len(ids), words
    for offset in schema.PARTS:
        writer.add(offset, changed.get(offset, part_of(table, offset)))
    return writer.done()


def _rows(table: Int32) -> npt.NDArray[np.uint32]:
    """The rows of masks: (n_rows, n_words) uint32."""
    return part_of(table, schema.ROWS).view(np.uint32).reshape(-1, int(table[schema.N_WORDS]))
