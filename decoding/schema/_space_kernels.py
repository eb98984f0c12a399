"""White space: its automaton, as the methods of `analysis.schema.spacing.Spacing` say."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.schema.spacing import CLOSES, DEEPEST_INDENT
from maskwright.decoding.schema._frame_kernels import can_frame_end, can_go_on, frame_at, mark, n_frames
from maskwright.decoding.schema.constants import AFTER, LEVEL, SHAPE
from maskwright.maskstore.schema.layout import INDENT, N_SPACES, OUTER_SPACE, SPACING, SPACING_ROW

BLANK, TAB, LINE_FEED, RETURN = 32, 9, 10, 13


@kernel(forceinline=True)
def space_state(table: Int32, memory: Int32, link: int, mode: int, state: int) -> int:
    """The state of the white space of a thread. state : its own; 0 where white space begins.

    What begins behind a value is said here, since only the frame says whether the text has ended.
    """
    if state == 0 and mode == AFTER and table[OUTER_SPACE] != 0:
        frame = frame_at(memory, link, 0)
        mark(memory, frame, 1)
        if memory[frame + SHAPE] < 0:
            return table[OUTER_SPACE]
    return state


@kernel(forceinline=True)
def space_ends(table: Int32, state: int) -> int:
    """What may come in a state."""
    within = state - table[N_SPACES]
    if within < 0:
        return table[table[SPACING] + SPACING_ROW * state + 4]
    return within & 3 if table[INDENT] < 0 or within < 4 else 0


@kernel(forceinline=True)
def space_leads(table: Int32, state: int) -> int:
    """What may come in a state, or behind more white space."""
    within = state - table[N_SPACES]
    return table[table[SPACING] + SPACING_ROW * state + 5] if within < 0 else within & 3


@kernel(forceinline=True)
def next_space(table: Int32, memory: Int32, link: int, state: int, byte: int) -> int:
    """The state behind a byte of white space, or -1."""
    n, indent = table[N_SPACES], table[INDENT]
    if state >= n:
        is_indent = byte == BLANK or (byte == TAB and indent < 0)
        return state - 4 if is_indent and state - n >= 4 else -1
    column = 0 if byte == BLANK else 1 if byte == TAB else 2 if byte == LINE_FEED else 3
    found = table[table[SPACING] + SPACING_ROW * state + column]
    if found >= -1:
        return found
    ends, left = -1 - found, DEEPEST_INDENT
    if indent >= 0:
        left = indent * (memory[frame_at(memory, link, 0) + LEVEL] - (1 if ends == CLOSES else 0))
    return n + 4 * left + ends


@kernel(forceinline=True)
def known_space(table: Int32, state: int, longest: int) -> int:
    """A state that goes on alike, whatever token comes. longest : the bytes of the longest one."""
    within = state - table[N_SPACES]
    return state - within + min(within, 4 * (longest + 1) + (within & 3))


@kernel
def may_follow(table: Int32, memory: Int32, link: int, end: int) -> bool:
    """Whether in some frame of a link a closing bracket may come, or for GOES_ON a member."""
    for k in range(n_frames(memory, link)):
        frame = frame_at(memory, link, k)
        mark(memory, frame, 1)
        if end == CLOSES:
            if can_frame_end(table, memory, frame):
                return True
        elif can_go_on(table, memory, frame, memory[frame + SHAPE]):
            return True
    return False
