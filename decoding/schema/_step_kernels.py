"""One byte: what a thread becomes."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.schema.spacing import CLOSES, GOES_ON
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import leave_listed, leave_others
from maskwright.decoding.schema._automaton_kernels import end_of, next_state
from maskwright.decoding.schema._begin_kernels import begin_gap, begin_item, begin_thread, begin_value
from maskwright.decoding.schema._frame_kernels import (
    NO_STRING,
    add_member,
    are_others_open,
    can_frame_end,
    can_go_on,
    frame_at,
    is_any_literal_open,
    is_full,
    is_literal_open,
    is_open,
    is_remembered,
    mark,
    n_frames,
    remember,
    replace_frame,
    told_apart,
    use_literal,
)
from maskwright.decoding.schema._left_kernels import remember_key
from maskwright.decoding.schema._literal_kernels import literal_byte, literal_length, narrow
from maskwright.decoding.schema._space_kernels import (
    BLANK,
    LINE_FEED,
    RETURN,
    TAB,
    may_follow,
    next_space,
    space_ends,
    space_leads,
    space_state,
)
from maskwright.decoding.schema._string_kernels import CLOSED, read_string_byte
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._utf8_kernels import QUOTE

COMMA, END_BRACE, END_BRACKET, COLON_BYTE = 44, 125, 93, 58


@kernel
def can_literal_end(table: Int32, memory: Int32, work: Int32, at: int) -> bool:
    """Whether a thread within a literal stands at the end of one that may stand here.

    work : where the thread is.
    """
    shape, low = work[at + c.SHAPE_OF], work[at + c.LOW]
    if literal_length(table, table[shape + layout.LITERALS], low) != work[at + c.DEPTH]:
        return False
    return is_literal_open(table, memory, work[at + c.LINK], shape, low)


@kernel
def can_string_end(table: Int32, automata: Int32, memory: Int32, work: Int32, at: int) -> bool:
    """Whether a value that is a string may end here."""
    shape = work[at + c.SHAPE_OF]
    if table[shape + layout.KIND] == layout.STRING_LITERALS:
        return can_literal_end(table, memory, work, at)
    automaton = table[shape + layout.STRING_AUTOMATON]
    if automaton >= 0 and end_of(automata, automaton, work[at + c.AUTOMATON]) == 0:
        return False
    return work[at + c.LENGTH] >= table[shape + layout.STRING_LEAST]


@kernel
def link_behind(table: Int32, memory: Int32, work: Int32, at: int) -> int:
    """The link around a string or a word that ends; -1 if that item has been there."""
    link, shape, number = work[at + c.LINK], work[at + c.SHAPE_OF], work[at + c.LOW]
    kind = table[shape + layout.KIND]
    if kind != layout.STRINGS:
        link = use_literal(table, memory, link, shape, number)
    if work[at + c.IS_OFF] == 0:
        return link
    if kind == layout.SPELLINGS:
        first = literal_byte(table, table[shape + layout.LITERALS], number, 0)
        return remember_item(table, memory, link, first, NO_STRING, -1)
    return remember_item(table, memory, link, work[at + c.HASH_1], work[at + c.HASH_2], work[at + c.LENGTH])


@kernel
def remember_item(table: Int32, memory: Int32, frame: int, hash_1: int, hash_2: int, length: int) -> int:
    """The frame of an array that remembers one more item, or -1 if that item has been there.

    A mask is made as if no item had been there: `_repeat_kernels` takes those tokens out again.
    """
    if memory[c.LIMIT] > 0:
        return frame
    if is_remembered(memory, frame, hash_1, hash_2):
        return -1
    found = replace_frame(table, memory, frame)
    remember(memory, found, hash_1, hash_2, length)
    return found


@kernel
def end_key(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int) -> int:
    """Turn a thread whose key has ended into those behind it.

    Returns their number: 0 if that key may not be there, more than 1 if it may be a wanted one.
    """
    frame, shape = work[to + c.LINK], work[to + c.SHAPE_OF]
    key = -1
    if work[to + c.IS_OFF] == 0 and work[to + c.LOW] < work[to + c.HIGH]:
        low = work[to + c.LOW]
        if literal_length(table, table[shape + layout.KEYS], low) == work[to + c.DEPTH]:
            key = low
    if key >= 0:
        mark(memory, frame, 2)
        if not is_open(table, memory, frame, shape, key):
            return 0
        if table[shape + layout.ALTERNATIVES] >= 0:
            return begin_by_rules(table, automata, memory, work, to, key, False)
        node = table[table[shape + layout.VALUES] + key]
        begin_gap(table, work, to, add_member(table, memory, frame, shape, key), c.COLON, node)
        return 1
    automaton, state = table[shape + layout.KEY_AUTOMATON], work[to + c.AUTOMATON]
    found = 1 if automaton < 0 else end_of(automata, automaton, state)
    if work[to + c.LENGTH] == 0 or found == 0:
        return 0
    first, second = work[to + c.HASH_1], work[to + c.HASH_2]
    # a mask is made as if no such key had been there; `_repeat_kernels` takes those out
    is_noted = table[shape + layout.TRACKS_KEYS] != 0 and memory[c.LIMIT] == 0
    if is_noted and is_remembered(memory, frame, first, second):
        return 0
    if table[shape + layout.ALTERNATIVES] >= 0:
        return begin_by_rules(table, automata, memory, work, to, -1, is_noted)
    n, n_wanted, there = 0, table[shape + layout.N_WANTED], told_apart(table, memory, frame)
    if n_wanted > 0:
        mark(memory, frame, 2)
    for wanted in range(-1, n_wanted):
        node = table[table[shape + layout.OTHERS] + (wanted + 1) * table[shape + layout.N_OTHERS] + found - 1]
        is_met = wanted >= 0 and (there >> wanted) & 1 != 0
        if node < 0 or is_met or (wanted < 0 < n_wanted and is_full(table, memory, frame, shape)):
            continue
        after = add_member(table, memory, frame, shape, -2 - wanted)
        if is_noted:
            remember_key(automata, automaton, state, memory, after, first, second)
        begin_gap(table, work, to + n * c.THREAD, after, c.COLON, node)
        n += 1
    return n


@kernel
def begin_by_rules(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, key: int, is_noted: bool) -> int:
    """`end_key` in an object of alternatives: a thread for each node that the member may be of.

    key : the named key, or -1. is_noted : whether it is remembered.

    Returns their number; if there are more than `MOST_READINGS`, some are left out.
    """
    frame, shape = work[to + c.LINK], work[to + c.SHAPE_OF]
    first, second = work[to + c.HASH_1], work[to + c.HASH_2]
    block, n = table[shape + layout.ALTERNATIVES], 0
    n_classes = table[block + layout.N_CLASSES_OF_OTHERS]
    rules = table[table[block + layout.RULES] + key] if key >= 0 else 0
    mark(memory, frame, 2)
    for rule in range(n_classes + (table[rules] if key >= 0 else 0)):
        at = rules + 1 + 2 * (rule - n_classes)
        if rule < n_classes:
            at = table[block + layout.CLASSES] + rule * (1 + (table[block] + 31 >> 5))
        if table[at] < 0 or n > c.MOST_READINGS:
            continue
        top, after = memory[c.TOP], add_member(table, memory, frame, shape, key)
        if rule < n_classes:
            is_left = leave_others(table, memory, shape, after, key, at)
        else:
            is_left = leave_listed(table, memory, frame, shape, after, table[at + 1])
        if not is_left:
            memory[c.TOP] = top
            continue
        if is_noted:
            remember_key(automata, -1, 0, memory, after, first, second)
        begin_gap(table, work, to + n * c.THREAD, after, c.COLON, table[at])
        n += 1
    return n


@kernel
def step_spacing(
    table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, byte: int, to: int, mode: int, link: int
) -> int:
    """A byte where white space may stand.

    Returns the number of threads if it is white space, 0 if it may not stand. For any other byte it
    returns -1 if the white space before it may end there, else 0.
    """
    state = space_state(table, memory, link, mode, work[at + c.AUTOMATON] if mode == work[at + c.MODE] else 0)
    if byte not in (BLANK, TAB, LINE_FEED, RETURN):
        end = CLOSES if byte in (END_BRACE, END_BRACKET) else GOES_ON
        return -1 if space_ends(table, state) & end != 0 else 0
    state = next_space(table, memory, link, state, byte)
    if state < 0:
        return 0
    leads, n = space_leads(table, state), 1
    if mode == c.ARRAY_FIRST and leads == GOES_ON:
        n = step_frames(table, automata, memory, work, to, link, mode, -1)
    elif (mode == c.OBJECT_FIRST and leads == GOES_ON) or (mode == c.AFTER and leads == CLOSES):
        if not may_follow(table, memory, link, leads):
            return 0
        begin_thread(work, to, link, c.KEY if mode == c.OBJECT_FIRST else mode, 0)
    else:
        begin_thread(work, to, link, mode, work[at + c.SHAPE_OF] if mode in (c.VALUE, c.COLON) else 0)
        work[to + c.IS_OFF] = work[at + c.IS_OFF] if mode == c.VALUE else 0
    for k in range(n):
        work[to + k * c.THREAD + c.AUTOMATON] = state
    return n


@kernel
def step_scalar(table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, byte: int, to: int) -> int:
    """A byte within a number, or `true`, `false` or `null`.

    Returns 1 if it goes on with it, -1 if it has ended before it, and 0 if neither can be.
    """
    shape = work[at + c.SHAPE_OF]
    if work[at + c.MODE] == c.NUMBER:
        automaton = table[shape + layout.NUMBER_AUTOMATON]
        state = next_state(automata, automaton, work[at + c.AUTOMATON], byte)
        if state == 0:
            return -1 if end_of(automata, automaton, work[at + c.AUTOMATON]) != 0 else 0
        begin_thread(work, to, work[at + c.LINK], c.NUMBER, shape)
        work[to + c.AUTOMATON] = state
        return 1
    literals = table[shape + layout.LITERALS]
    low, high = narrow(table, literals, work[at + c.LOW], work[at + c.HIGH], work[at + c.DEPTH], byte)
    link = work[at + c.LINK]
    if low >= high:
        return -1 if can_literal_end(table, memory, work, at) else 0
    if not is_any_literal_open(table, memory, link, shape, low, high):
        return 0
    begin_thread(work, to, link, c.SPELLING, shape)
    work[to + c.IS_OFF] = work[at + c.IS_OFF]
    work[to + c.LOW] = low
    work[to + c.HIGH] = high
    work[to + c.DEPTH] = work[at + c.DEPTH] + 1
    return 1


@kernel
def step_frame(
    table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, frame: int, mode: int, byte: int
) -> int:
    """Write what follows in a frame, at a byte that is no white space; or -1, as in `begin_item`.

    Returns the number of threads.
    """
    mark(memory, frame, 1)
    shape = memory[frame + c.SHAPE]
    if shape < 0:
        return 0
    is_object = table[shape + layout.KIND] == layout.OBJECTS
    if mode == c.ARRAY_FIRST and byte != END_BRACKET:
        return begin_item(table, automata, memory, work, to, frame, byte)
    if mode == c.AFTER and byte == COMMA:
        if not is_object:
            return begin_item(table, automata, memory, work, to, frame, -1)
        begin_gap(table, work, to, frame, c.KEY, 0)
        return 1 if can_go_on(table, memory, frame, shape) else 0
    if mode in (c.OBJECT_FIRST, c.KEY) and byte == QUOTE:
        begin_thread(work, to, frame, c.KEY_STRING, shape)
        work[to + c.HIGH] = table[shape + layout.N_KEYS]
        work[to + c.IS_OFF] = 1 if table[shape + layout.N_KEYS] == 0 else 0
        if are_others_open(table, memory, frame, shape):
            work[to + c.LENGTH] = 1 + told_apart(table, memory, frame)
        work[to + c.AUTOMATON] = 1
        return 1 if can_go_on(table, memory, frame, shape) else 0
    if mode == c.KEY or byte != (END_BRACE if is_object else END_BRACKET):
        return 0
    begin_thread(work, to, memory[frame + c.PARENT], c.AFTER, 0)
    return 1 if can_frame_end(table, memory, frame) else 0


@kernel
def step_frames(
    table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, link: int, mode: int, byte: int
) -> int:
    """`step_frame` of each frame of a link.

    Returns the number of threads; if there are more than `MOST_READINGS`, some are left out.
    """
    n = 0
    for k in range(n_frames(memory, link)):
        n += step_frame(table, automata, memory, work, to + n * c.THREAD, frame_at(memory, link, k), mode, byte)
        if n > c.MOST_READINGS:
            break
    return n


@kernel
def step(table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, byte: int, to: int) -> int:
    """Write the threads that a thread becomes at a byte.

    Returns their number; if there are more than `MOST_READINGS`, some are left out.
    """
    mode, link = work[at + c.MODE], work[at + c.LINK]
    if mode in (c.STRING, c.KEY_STRING):
        for k in range(c.THREAD):
            work[to + k] = work[at + k]
        result = read_string_byte(table, automata, memory, work, to, byte)
        if result != CLOSED:
            return result
        if mode == c.KEY_STRING:
            return end_key(table, automata, memory, work, to)
        link = link_behind(table, memory, work, to) if can_string_end(table, automata, memory, work, to) else -1
        if link < 0:
            return 0
        begin_thread(work, to, link, c.AFTER, 0)
        return 1
    if mode in (c.NUMBER, c.SPELLING):
        result = step_scalar(table, automata, memory, work, at, byte, to)
        if result >= 0:
            return result
        if mode == c.SPELLING:
            link = link_behind(table, memory, work, at)
            if link < 0:
                return 0
        mode = c.AFTER
    result = step_spacing(table, automata, memory, work, at, byte, to, mode, link)
    if result >= 0:
        return result
    if mode == c.VALUE:
        return begin_value(table, automata, memory, work, to, link, work[at + c.SHAPE_OF], work[at + c.IS_OFF], byte)
    if mode != c.COLON:
        return step_frames(table, automata, memory, work, to, link, mode, byte)
    if byte != COLON_BYTE:
        return 0
    begin_gap(table, work, to, link, c.VALUE, work[at + c.SHAPE_OF])
    return 1
