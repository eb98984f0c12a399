"""Numbers for continuations, for line breaks, and for what pairs of sequence and ending require.

See `requirements`. Callers own all arrays and have checked them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.maskstore.tokens._hash_kernels import Keys, number_of_key

DONE, PAUSED, FULL = range(3)
"""What `require_keys` returns: all keys are done; it has paused; some table needs room."""

# indices of `Required.cursor`
KEY, DEPTH, WORK, NEED = range(4)
"""The next key and depth case; units of work since the call; rows for which there must be room."""

WHATEVER = -1
"""See `continuations.WHATEVER`."""
NOT_NUMBERED = 0
"""In `EndingTable.number`: this set has not been asked for yet. No set has this number."""


class Emitted(NamedTuple):
    """The sequences of a walk, and what their symbols mean to a parser and to brackets.

    parent, last : (n,) int32; the sequence before the last symbol, and this symbol. A parent
        comes before its children.
    length : (n,) int32; how many symbols a sequence has.
    depth, lowest, n_depth_cases : (n,) int32; how brackets stand after each, see
        `requirements.Requirements`.
    column, bracket : (n_terminals,) int32; the parser's column of a terminal, or -1; 1 for an
        opening bracket and -1 for a closing one.
    move : (n_events,) int32; the number of the move of each newline event.
    mode_code : the symbol of mode 0; terminals and events come before it.
    n_columns : the parser's columns.
    newline : the layout's newline terminal, or -1.
    """

    parent: Int32
    last: Int32
    length: Int32
    depth: Int32
    lowest: Int32
    n_depth_cases: Int32
    column: Int32
    bracket: Int32
    move: Int32
    mode_code: int
    n_columns: int
    newline: int


class EndingTable(NamedTuple):
    """What lexemes may become. Ending e has alternatives start[e] to start[e + 1] - 1.

    start : (n_endings + 1,) int32.
    more_start, more : (n_alternatives + 1,), (n,) int32; the symbols that an alternative reads.
    set_of : (n_alternatives,) int32; its lookahead set as columns, -1 for whatever comes, -2 for a
        set without a column.
    has_newline : (n_alternatives,) int32; 1 if the newline is in its lookahead set.
    number : (n_sets,) int32, changed; -1 - s for the set that is asked for as the s-th, s = 1, 2,
        ..., or NOT_NUMBERED.
    after_newline : the set of the columns that can be next after a newline.
    n_sets : (1,) int64, changed; the next s (0 is whatever comes).
    """

    start: Int32
    more_start: Int32
    more: Int32
    set_of: Int32
    has_newline: Int32
    number: Int32
    after_newline: int
    n_sets: Int64


class Required(NamedTuple):
    """What keys require: the pairs of line breaks and continuation of depth case d of key k are
    at start[i] to start[i + 1] - 1, where i = first[k] + min(d, n_depth_cases[k] - 1).

    first, n_depth_cases : (n_keys,) int32.
    start : (capacity,) int64.
    line_breaks, continuation : (capacity,) int32.
    sizes : (2,) int64; how many depth cases of all keys there are, and how many alternatives.
    breaks_of : (capacity,) int32; for each node of the trie of line breaks the number of the list
        that ends there, or -1.
    node_of : (capacity,) int32; for each list of line breaks its node.
    n_breaks : (1,) int64; how many lists there are.
    cursor : (4,) int64, 0 at first; see the indices above.
    """

    first: Int32
    n_depth_cases: Int32
    start: Int64
    line_breaks: Int32
    continuation: Int32
    sizes: Int64
    breaks_of: Int32
    node_of: Int32
    n_breaks: Int64
    cursor: Int64


@kernel
def number_of_pair(first, second, table):  # type: ignore[no-untyped-def]
    """The number of a pair, the next one if it has none.

    Its key is first * 2^32, and the low 32 bits of second.

    BOUND: the caller has seen to it that there is room for one more.
    """
    return number_of_key((np.int64(first) << np.int64(32)) | (np.int64(second) & np.int64(0xFFFFFFFF)), table)


@kernel(entry=True)
def number_before(symbols: Int32, n: int, continuation: int, table: Keys) -> int:
    """The continuation that reads symbols[:n], then goes on as `continuation`."""
    for i in range(n - 1, -1, -1):
        continuation = number_of_pair(symbols[i], continuation, table)
    return continuation


@kernel(entry=True)
def measure_sequences(emitted: Emitted) -> None:
    """Write `length`, `depth`, `lowest` and `n_depth_cases` of all sequences."""
    n_terminals = emitted.column.shape[0]
    emitted.n_depth_cases[0] = 1
    for number in range(1, emitted.parent.shape[0]):
        before = emitted.parent[number]
        symbol = emitted.last[number]
        emitted.length[number] = emitted.length[before] + 1
        depth, lowest, cases = emitted.depth[before], emitted.lowest[before], emitted.n_depth_cases[before]
        if emitted.newline >= 0:
            if n_terminals <= symbol < emitted.mode_code:
                cases = max(cases, 2 - lowest)
            elif symbol < n_terminals:
                depth += emitted.bracket[symbol]
                lowest = min(lowest, depth)
        emitted.depth[number] = depth
        emitted.lowest[number] = lowest
        emitted.n_depth_cases[number] = cases


@kernel
def depth_cases_of(sequence, ending, emitted, endings):  # type: ignore[no-untyped-def]
    """How many numbers of open brackets make a difference. From the last on, no newline counts."""
    most = emitted.n_depth_cases[sequence]
    if emitted.newline < 0:
        return most
    n_terminals = emitted.column.shape[0]
    for alternative in range(endings.start[ending], endings.start[ending + 1]):
        depth, lowest = emitted.depth[sequence], emitted.lowest[sequence]
        for i in range(endings.more_start[alternative], endings.more_start[alternative + 1]):
            symbol = endings.more[i]
            if n_terminals <= symbol < emitted.mode_code:
                most = max(most, 2 - lowest)
            elif symbol < n_terminals:
                depth += emitted.bracket[symbol]
                lowest = min(lowest, depth)
        if endings.has_newline[alternative] != 0:
            most = max(most, 2 - lowest)
    return most


@kernel
def number_of_set(columns, endings):  # type: ignore[no-untyped-def]
    """The continuation that asks for a set of columns."""
    if endings.number[columns] == NOT_NUMBERED:
        endings.number[columns] = -1 - endings.n_sets[0]
        endings.n_sets[0] += 1
    return np.int64(endings.number[columns])


@kernel
def read_symbols(symbols, begin, end, depth, part, n_part, node, emitted, breaks):  # type: ignore[no-untyped-def]
    """Read symbols[begin:end] with `depth` brackets open, behind the line breaks of a trie's node.

    part : scratch; its first n_part columns were read since the last line break.

    Returns the depth, the columns in `part`, and the node; -1 instead of the depth if no parser
    reads the symbols.
    """
    n_terminals = emitted.column.shape[0]
    for i in range(begin, end):
        symbol = symbols[i]
        if symbol >= emitted.mode_code:
            part[n_part] = emitted.n_columns + symbol - emitted.mode_code
            n_part += 1
        elif symbol >= n_terminals:
            if depth == 0:
                if emitted.column[emitted.newline] < 0:
                    return np.int64(-1), n_part, node
                for at in range(n_part):
                    node = number_of_pair(node, part[at], breaks)
                node = number_of_pair(node, -1 - emitted.move[symbol - n_terminals], breaks)
                n_part = np.int64(0)
        else:
            depth = max(np.int64(0), depth + emitted.bracket[symbol])
            if emitted.column[symbol] < 0:
                return np.int64(-1), n_part, node
            part[n_part] = emitted.column[symbol]
            n_part += 1
    return depth, n_part, node


@kernel
def is_behind_newline(part, n_part, node, n_columns):  # type: ignore[no-untyped-def]
    """Whether a line break came last, but for required modes."""
    is_behind = node != 0
    for i in range(n_part):
        is_behind = is_behind and part[i] >= n_columns
    return is_behind


@kernel
def add_alternative(alternative, depth, part, n_part, node, emitted, endings, continuations, found):  # type: ignore[no-untyped-def]
    """Note line breaks and continuation of what was read and an alternative's lookahead set."""
    columns = endings.set_of[alternative]
    if depth > 0 and endings.has_newline[alternative] != 0:
        columns = -1  # the newline is dropped, and anything may come
    if columns < -1:
        return
    end = np.int64(WHATEVER)
    if columns >= 0:
        end = number_of_set(columns, endings)
    elif is_behind_newline(part, n_part, node, emitted.n_columns):
        # after a newline whose column is known no indent can come any more, and perhaps nothing
        # else is acceptable
        end = number_of_set(endings.after_newline, endings)
    for i in range(n_part - 1, -1, -1):
        end = number_of_pair(part[i], end, continuations)
    number = found.breaks_of[node]
    if number < 0:
        number = found.n_breaks[0]
        found.breaks_of[node] = number
        found.node_of[number] = node
        found.n_breaks[0] += 1
    for i in range(found.start[found.sizes[0]], found.sizes[1]):
        if found.line_breaks[i] == number and found.continuation[i] == end:
            return
    found.line_breaks[found.sizes[1]] = number
    found.continuation[found.sizes[1]] = end
    found.sizes[1] += 1


@kernel
def has_room(need, continuations, breaks, found):  # type: ignore[no-untyped-def]
    """Whether each table has room for some more rows."""
    return (
        continuations.size[0] + need <= continuations.keys.shape[0]
        and breaks.size[0] + need <= breaks.keys.shape[0]
        and found.sizes[1] + need <= found.line_breaks.shape[0]
        and found.sizes[0] + 2 <= found.start.shape[0]
    )


@kernel(entry=True)
def require_keys(
    keys: Int64,
    emitted: Emitted,
    endings: EndingTable,
    continuations: Keys,
    breaks: Keys,
    found: Required,
    symbols: Int32,
    part: Int32,
    pause: int,
) -> int:
    """Work out what keys require, from `found.cursor` on.

    keys : (n,) int64, ascending; sequence * n_endings + ending.
    continuations : pairs of a symbol and the continuation after it.
    breaks : the trie of line breaks: pairs of a node and a column, or of a node and -1 - a move.
        Node 0, its root, is pair (-1, -1).
    found : written; `breaks_of` and `node_of` have as much room as `breaks`.
    symbols, part : scratch, with room for the longest sequence and the longest `more`.
    pause : units of work after which the kernel returns.

    Returns DONE, PAUSED or FULL; with FULL `found.cursor` says how much room is needed.
    """
    cursor = found.cursor
    cursor[WORK] = 0
    n_endings = endings.start.shape[0] - 1
    while cursor[KEY] < keys.shape[0]:
        key = keys[cursor[KEY]]
        sequence, ending = key // n_endings, key % n_endings
        length = np.int64(emitted.length[sequence])
        at = sequence
        for i in range(length - 1, -1, -1):
            symbols[i] = emitted.last[at]
            at = np.int64(emitted.parent[at])
        first, last = endings.start[ending], endings.start[ending + 1]
        need = np.int64(2)
        for alternative in range(first, last):
            need += 2 + length + endings.more_start[alternative + 1] - endings.more_start[alternative]
        n_depth_cases = np.int64(depth_cases_of(sequence, ending, emitted, endings))
        if cursor[DEPTH] == 0:
            found.first[cursor[KEY]] = found.sizes[0]
            found.n_depth_cases[cursor[KEY]] = n_depth_cases
        while cursor[DEPTH] < n_depth_cases:
            if not has_room(need, continuations, breaks, found):
                cursor[NEED] = need
                return FULL
            for alternative in range(first, last):
                depth, n_part, node = read_symbols(
                    symbols, 0, length, cursor[DEPTH], part, np.int64(0), np.int64(0), emitted, breaks
                )
                if depth >= 0:
                    depth, n_part, node = read_symbols(
                        endings.more,
                        endings.more_start[alternative],
                        endings.more_start[alternative + 1],
                        depth,
                        part,
                        n_part,
                        node,
                        emitted,
                        breaks,
                    )
                if depth >= 0:
                    add_alternative(
                        alternative, depth, part, n_part, node, emitted, endings, continuations, found
                    )  # fmt: skip
            found.sizes[0] += 1
            found.start[found.sizes[0]] = found.sizes[1]
            cursor[DEPTH] += 1
            cursor[WORK] += need
            if cursor[WORK] > pause:
                return PAUSED
        cursor[DEPTH] = 0
        cursor[KEY] += 1
    return DONE
