"""What pairs of a sequence and an ending require: line breaks and continuations.

In: the sequences that tokens emit, and what the lexeme under way may become. Out: for each pair and
each number of open brackets the alternatives of which the parser must accept one. Knows nothing of
tokens and lexer states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maskwright.analysis.arrays import Int64
from maskwright.maskstore.tokens import _continuation_kernels as kernels
from maskwright.maskstore.tokens._continuation_kernels import EndingTable, Required
from maskwright.maskstore.tokens._hash_kernels import doubled, no_keys, with_room
from maskwright.maskstore.tokens.continuations import FIRST_CAPACITY
from maskwright.maskstore.tokens.events import ABSOLUTE, RESET, Move
from maskwright.maskstore.tokens.state_tokens import LineBreaks
from maskwright.maskstore.tokens.token_walk import starts_of

Ending = tuple[tuple[tuple[int, ...], frozenset[int] | None], ...]
"""What a lexeme may become: alternatives of symbols to read, and then one terminal of a set (None:
whatever comes)."""

PAUSE = 1 << 24
"""Units of work after which the kernel returns, so that Ctrl-C is obeyed: a tenth of a second."""


def require(keys: Int64, endings: Sequence[Ending], required: Any) -> tuple[Required, list[LineBreaks]]:
    """Work out what keys require, and number continuations and line breaks as they are met.

    keys : (n,) int64, ascending; sequence * len(endings) + ending.
    required : the `Requirements`: the sequences, and what their symbols mean to a parser.
        It has no continuations yet.

    Returns what each key requires, and the lists of line breaks by number; number 0 is empty.
    """
    newline, n_terminals, continuations = required.newline, required.codes.n_terminals, required.continuations
    moves = [
        move._replace(stop=ABSOLUTE) if move.stop == RESET else move  # a newline that ends has had its line feed
        for move in required.codes.moves.members
    ]
    move_number = {move: i for i, move in reversed(list(enumerate(moves)))}
    events = range(n_terminals, required.mode_code)
    parent, last = required.sequences
    length, depth, lowest, n_depth_cases = np.zeros((4, len(parent)), np.int32)
    emitted = kernels.Emitted(
        parent,
        last,
        length,
        depth,
        lowest,
        n_depth_cases,
        np.array(required.column_of, np.int32),
        np.array([required.bracket.get(t, 0) for t in range(n_terminals)], np.int32),
        np.array([move_number[moves[required.codes.decode(s)[1]]] for s in events], np.int32),
        required.mode_code,
        required.n_columns,
        newline,
    )
    kernels.measure_sequences(emitted)
    alternatives = [alternative for ending in endings for alternative in ending]
    columns_of = [None if last is None else required.columns_of(last) for _, last in alternatives]
    sets = list(dict.fromkeys([required.after_newline, *filter(None, columns_of)]))
    number = {columns: i for i, columns in enumerate(sets)}
    table = EndingTable(
        starts_of(endings),
        starts_of([more for more, _ in alternatives]),
        np.array([symbol for more, _ in alternatives for symbol in more], np.int32),
        np.array([-1 if each is None else number[each] if each else -2 for each in columns_of], np.int32),
        np.array([last is not None and newline in last for _, last in alternatives], np.int32),
        np.zeros(len(sets), np.int32),
        0,
        np.ones(1, np.int64),
    )
    most = int(emitted.length.max()) + int(np.diff(table.more_start).max(initial=0)) + 1
    found = _nothing(len(keys))
    breaks = no_keys(FIRST_CAPACITY)
    kernels.number_before(np.array([-1], np.int32), 1, -1, breaks)  # the root
    scratch = np.zeros((2, most), np.int32)
    while True:
        code = kernels.require_keys(
            keys, emitted, table, continuations.pairs, breaks, found, *scratch, PAUSE
        )  # fmt: skip
        if code == kernels.DONE:
            break
        if code == kernels.FULL:
            need = int(found.cursor[kernels.NEED])
            continuations.make_room(need)
            breaks = with_room(breaks, need)
            found = _larger(found, need, len(breaks.keys))
    numbered = sorted((-1 - number, i) for i, number in enumerate(table.number.tolist()) if number)
    for _, i in numbered:
        continuations.end(sets[i])
    return found, _line_breaks(breaks.keys, found.node_of[: int(found.n_breaks[0])].tolist(), moves)


def _nothing(n_keys: int) -> Required:
    """Empty tables, but for the empty list of line breaks, which is number 0."""
    n = max(16, 2 * n_keys)
    breaks_of, node_of = np.full(FIRST_CAPACITY, -1, np.int32), np.zeros(FIRST_CAPACITY, np.int32)
    breaks_of[0] = 0
    first, n_depth_cases = np.zeros((2, n_keys), np.int32)
    line_breaks, continuation = np.zeros((2, n), np.int32)
    return Required(
        first,
        n_depth_cases,
        np.zeros(n, np.int64),
        line_breaks,
        continuation,
        np.zeros(2, np.int64),
        breaks_of,
        node_of,
        np.ones(1, np.int64),
        np.zeros(4, np.int64),
    )


def _larger(found: Required, need: int, n_nodes: int) -> Required:
    """Tables with room for `need` more rows, and for n_nodes nodes of line breaks."""
    if len(found.start) < found.sizes[0] + 2:
        found = found._replace(start=doubled(found.start))
    while len(found.continuation) < found.sizes[1] + need:
        found = found._replace(line_breaks=doubled(found.line_breaks), continuation=doubled(found.continuation))
    more = n_nodes - len(found.node_of)
    return found._replace(
        breaks_of=np.append(found.breaks_of, np.full(more, -1, np.int32)),
        node_of=np.append(found.node_of, np.zeros(more, np.int32)),
    )


def _line_breaks(trie: Int64, nodes: Sequence[int], moves: Sequence[Move]) -> list[LineBreaks]:
    """The lists of line breaks that end in some nodes of a trie."""
    found = []
    for node in nodes:
        labels = []
        while node:
            pair = int(trie[node])
            node = pair >> 32
            labels.append((pair & 0xFFFFFFFF) - ((pair & 0x80000000) << 1))
        breaks, part = [], []
        for label in reversed(labels):
            if label >= 0:
                part.append(label)
            else:
                breaks.append((tuple(part), moves[-1 - label]))
                part = []
        found.append(tuple(breaks))
    return found
