"""What begins: a text, a value, an item."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema._automaton_kernels import next_state
from maskwright.decoding.schema._frame_kernels import (
    add_item,
    can_be_item,
    can_end_with,
    contained_node,
    is_any_literal_open,
    item_node,
    item_state,
    open_frame,
)
from maskwright.decoding.schema._literal_kernels import narrow
from maskwright.decoding.schema.constants import (
    ARRAY_FIRST,
    AUTOMATON,
    COUNT,
    DEPTH,
    HIGH,
    IS_OFF,
    KEY,
    LINK,
    LOW,
    MARKED,
    MODE,
    NUMBER,
    OBJECT_FIRST,
    SHAPE,
    SHAPE_OF,
    SPELLING,
    STRING,
    THREAD,
    VALUE,
)
from maskwright.maskstore.schema._utf8_kernels import QUOTE
from maskwright.maskstore.schema.layout import (
    ARRAYS,
    BY_STATES,
    HAS_CONTAINED,
    IS_TEXT,
    KIND,
    LITERALS,
    MOVES,
    NODE_SHAPES,
    NODE_SIZE,
    NUMBER_AUTOMATON,
    NUMBERS,
    OBJECTS,
    OUTER_SPACE,
    SPACE_STARTS,
    SPELLINGS,
    STRING_LITERALS,
    STRINGS,
    TRACKS_ITEMS,
)

BRACE, BRACKET = 123, 91


@kernel(forceinline=True)
def begin_thread(work: Int32, to: int, link: int, mode: int, shape: int) -> None:
    """Write a thread that has read nothing of its string, number or white space."""
    for k in range(THREAD):
        work[to + k] = 0
    work[to + LINK] = link
    work[to + MODE] = mode
    work[to + SHAPE_OF] = shape


@kernel
def begin_gap(table: Int32, work: Int32, to: int, link: int, mode: int, shape: int) -> None:
    """Write a thread that stands where white space begins, but for AFTER."""
    begin_thread(work, to, link, mode, shape)
    work[to + AUTOMATON] = table[SPACE_STARTS + mode]


@kernel
def begin_text(table: Int32, work: Int32, to: int, frame: int, node: int) -> None:
    """Write the thread of a text at its start. frame : the one below all."""
    if table[IS_TEXT] != 0:
        begin_thread(work, to, frame, NUMBER, table[node + NODE_SHAPES])
        work[to + AUTOMATON] = 1
    else:
        begin_thread(work, to, frame, VALUE, node)
        work[to + AUTOMATON] = table[OUTER_SPACE]


@kernel
def begin_value(
    table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, link: int, node: int, tracked: int, byte: int
) -> int:
    """Write the threads of the values of a node that begin with a byte. Returns their number.

    tracked : the shape of the array whose items are remembered, if this is one of them; else 0.
    """
    n = 0
    for k in range(table[node + NODE_SIZE]):
        shape = table[node + NODE_SHAPES + k]
        kind = table[shape + KIND]
        here = to + n * THREAD
        if byte == QUOTE:
            if kind == STRINGS:
                begin_thread(work, here, link, STRING, shape)
                work[here + IS_OFF] = tracked
                work[here + AUTOMATON] = 1
                n += 1
            elif kind == STRING_LITERALS:
                high = table[table[shape + LITERALS]]
                if is_any_literal_open(table, memory, link, shape, 0, high):
                    begin_thread(work, here, link, STRING, shape)
                    work[here + IS_OFF] = tracked
                    work[here + HIGH] = high
                    n += 1
        elif byte == BRACE:
            if kind == OBJECTS:
                begin_gap(table, work, here, open_frame(table, memory, link, shape), OBJECT_FIRST, 0)
                n += 1
        elif byte == BRACKET:
            if kind == ARRAYS:
                begin_gap(table, work, here, open_frame(table, memory, link, shape), ARRAY_FIRST, 0)
                n += 1
        elif kind == NUMBERS:
            state = next_state(automata, table[shape + NUMBER_AUTOMATON], 1, byte)
            if state != 0:
                begin_thread(work, here, link, NUMBER, shape)
                work[here + AUTOMATON] = state
                n += 1
        elif kind == SPELLINGS:
            literals = table[shape + LITERALS]
            low, high = narrow(table, literals, 0, table[literals], 0, byte)
            if is_any_literal_open(table, memory, link, shape, low, high):
                begin_thread(work, here, link, SPELLING, shape)
                work[here + IS_OFF] = tracked
                work[here + LOW] = low
                work[here + HIGH] = high
                work[here + DEPTH] = 1
                n += 1
    return n


@kernel
def begin_read(
    table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, frame: int, node: int, tracked: int, byte: int
) -> int:
    """As `begin_item`, of an item of a node. frame : that with the item."""
    if byte >= 0:
        return begin_value(table, automata, memory, work, to, frame, node, tracked, byte)
    begin_gap(table, work, to, frame, KEY, node)
    work[to + MODE] = VALUE
    work[to + IS_OFF] = tracked
    return 1


@kernel
def begin_item(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, frame: int, byte: int) -> int:
    """Write the threads before the next item of an array, or with its first byte.

    Returns their number.

    byte : the item's first byte, or -1 for the threads before it.
    """
    shape = memory[frame + SHAPE]
    count, marked = memory[frame + COUNT], memory[frame + MARKED]
    tracked = shape if table[shape + TRACKS_ITEMS] != 0 else 0
    n = 0
    if table[shape + HAS_CONTAINED] == BY_STATES:
        state = item_state(table, memory, frame, shape)
        for k in range(table[state + 1]):
            move = state + MOVES * (k + 1)
            if can_be_item(table, memory, frame, shape, table[move]):
                after = add_item(table, memory, frame, table[move + 1] - marked)
                here = to + n * THREAD
                n += begin_read(table, automata, memory, work, here, after, table[move], tracked, byte)
        return n
    for contained in range(2):
        node = contained_node(table, shape, count) if contained else item_node(table, shape, count)
        if not can_be_item(table, memory, frame, shape, node):
            continue
        if not can_end_with(table, shape, count + 1, marked + contained):
            continue
        after = add_item(table, memory, frame, contained)
        n += begin_read(table, automata, memory, work, to + n * THREAD, after, node, tracked, byte)
    return n
