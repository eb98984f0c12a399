"""What begins: a value, an item."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._automaton_kernels import next_state
from maskwright.decoding.schema._frame_kernels import (
    add_item,
    can_be_item,
    can_end_with,
    is_any_literal_open,
    item_node,
    item_state,
    open_frame,
)
from maskwright.decoding.schema._literal_kernels import narrow
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._utf8_kernels import QUOTE

BRACE, BRACKET = 123, 91


@kernel(forceinline=True)
def begin_thread(work: Int32, to: int, link: int, mode: int, shape: int) -> None:
    """Write a thread that has read nothing of its string, number or white space."""
    for k in range(c.THREAD):
        work[to + k] = 0
    work[to + c.LINK] = link
    work[to + c.MODE] = mode
    work[to + c.SHAPE_OF] = shape


@kernel
def begin_gap(table: Int32, work: Int32, to: int, link: int, mode: int, shape: int) -> None:
    """Write a thread that stands where white space begins, but for AFTER."""
    begin_thread(work, to, link, mode, shape)
    work[to + c.AUTOMATON] = table[layout.SPACE_STARTS + mode]


@kernel
def begin_value(
    table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, link: int, node: int, tracked: int, byte: int
) -> int:
    """Write the threads of the values of a node that begin with a byte. Returns their number.

    tracked : the shape of the array whose items are remembered, if this is one of them; else 0.
    """
    n = 0
    for k in range(table[node + layout.NODE_SIZE]):
        shape = table[node + layout.NODE_SHAPES + k]
        kind = table[shape + layout.KIND]
        here = to + n * c.THREAD
        if byte == QUOTE:
            high = table[table[shape + layout.LITERALS]] if kind == layout.STRING_LITERALS else 0
            if kind not in (layout.STRINGS, layout.STRING_LITERALS) or (
                kind == layout.STRING_LITERALS and not is_any_literal_open(table, memory, link, shape, 0, high)
            ):
                continue
            begin_thread(work, here, link, c.STRING, shape)
            work[here + c.IS_OFF], work[here + c.HIGH], work[here + c.AUTOMATON] = tracked, high, 1
        elif byte in (BRACE, BRACKET):
            if kind != (layout.OBJECTS if byte == BRACE else layout.ARRAYS):
                continue
            mode = c.OBJECT_FIRST if byte == BRACE else c.ARRAY_FIRST
            begin_gap(table, work, here, open_frame(table, memory, link, shape), mode, 0)
        elif kind == layout.NUMBERS:
            state = next_state(automata, table[shape + layout.NUMBER_AUTOMATON], 1, byte)
            if state == 0:
                continue
            begin_thread(work, here, link, c.NUMBER, shape)
            work[here + c.AUTOMATON] = state
        elif kind == layout.SPELLINGS:
            literals = table[shape + layout.LITERALS]
            low, high = narrow(table, literals, 0, table[literals], 0, byte)
            if not is_any_literal_open(table, memory, link, shape, low, high):
                continue
            begin_thread(work, here, link, c.SPELLING, shape)
            work[here + c.IS_OFF], work[here + c.LOW], work[here + c.HIGH], work[here + c.DEPTH] = tracked, low, high, 1
        else:
            continue
        n += 1
    return n


@kernel
def begin_read(
    table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, frame: int, node: int, tracked: int, byte: int
) -> int:
    """As `begin_item`, of an item of a node. frame : that with the item."""
    if byte >= 0:
        return begin_value(table, automata, memory, work, to, frame, node, tracked, byte)
    begin_gap(table, work, to, frame, c.KEY, node)
    work[to + c.MODE] = c.VALUE
    work[to + c.IS_OFF] = tracked
    return 1


@kernel
def begin_item(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, frame: int, byte: int) -> int:
    """Write the threads before the next item of an array, or with its first byte.

    Returns their number.

    byte : the item's first byte, or -1 for the threads before it.
    """
    shape = memory[frame + c.SHAPE]
    count, marked = memory[frame + c.COUNT], memory[frame + c.MARKED]
    tracked = shape if table[shape + layout.TRACKS_ITEMS] != 0 else 0
    n = 0
    if table[shape + layout.HAS_CONTAINED] == layout.BY_STATES:
        state = item_state(table, memory, frame, shape)
        for k in range(table[state + 1]):
            move = state + layout.MOVES * (k + 1)
            if can_be_item(table, memory, frame, shape, table[move]):
                after = add_item(table, memory, frame, table[move + 1] - marked)
                here = to + n * c.THREAD
                n += begin_read(table, automata, memory, work, here, after, table[move], tracked, byte)
        return n
    for contained in range(2):
        node = item_node(table, shape, count, contained)
        is_item = can_be_item(table, memory, frame, shape, node)
        if is_item and can_end_with(table, shape, count + 1, marked + contained):
            after = add_item(table, memory, frame, contained)
            n += begin_read(table, automata, memory, work, to + n * c.THREAD, after, node, tracked, byte)
    return n
