"""What the memory of a text holds, what the engine's functions return, and how much they may do: constants of all engine files.

`memory` is one flat int32 array with a *region* for each text. A region begins with the fields below, then comes the history (`SAVED`
integers for each token that can be taken back), then scratch (`scratch_size`), then the *arena* of records.

An arena record has three integers. It is

- a stack frame: LR state, the frame below it, height;
- an open indent: its wide column, the indent below it, nothing; the record behind it has its narrow column: narrow column, -1, 0;
- a member of a list of stacks: a frame, the next member, -1 - length.

Records never change, so a stack is copied by copying its number. They are numbered in order of creation. The records in use therefore end
at the newest one.

*Stacks* are the parses of a text that are under way: the number of a stack's top frame if there is one parse; LIST - the number of a
list's first member if there are several.

Knows nothing of how any of this is computed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.table.schema import AGAIN, ALTERNATIVES, DEFAULT

# ---- Fields of a region. The first SAVED are what a token changes and a rollback restores.

LEXER = 0
"""The lexer's state."""
COLUMN, NARROW = 1, 2
"""The column of the newline under way, with tabs as the layout counts them and with tabs of 1 (see `analysis.grammar.columns`)."""
DEPTH = 3
"""Open brackets of the layout."""
INDENTS = 4
"""The innermost open indent."""
STACKS = 5
FINISHED = 6
"""1 once an end-of-text token was read."""
USED = 7
"""Records in use."""
CAPACITY = 8
"""Records that there is room for."""
N_HISTORY, MAX_HISTORY, HISTORY_AT = 9, 10, 11
"""Tokens that can be taken back, the most that can ever be, and where in the history the next one is kept."""
ARENA = 12
"""Where the arena begins, from the region's start."""
CACHE = 13
"""Where elsewhere in memory the cache of walks is; 0: there is none, -1: one is wanted."""
AFTER_NEWLINE_STACKS = 14
"""The stacks after a newline (before its column is obeyed) or an error, 0 if not known.

Several look-ups, and the bytes of an indentation one after the other, ask for the same."""
END_VERDICT = 15
"""What `can_end` said of AFTER_NEWLINE_STACKS: 2 * the lexer's output at the end + whether the text may end + 1; 0: not asked yet."""

DRAFT_LEXER, DRAFT_COLUMN, DRAFT_NARROW, DRAFT_DEPTH, DRAFT_INDENTS, DRAFT_STACKS = 16, 17, 18, 19, 20, 21
"""The *draft*: the state after what is being read, until it is known to be legal."""
DRAFT_USED, DRAFT_AFTER_NEWLINE = 22, 23
LAST_WAS_NEWLINE = 24
"""Of the draft: whether the last thing read was a newline with its column."""

WRITTEN = 25
"""Whether the bitmask that is being filled holds anything yet."""
N_COLLECTED, COLLECTED = 26, 27
"""How many masks are to be written to it, and their numbers."""
MOST_COLLECTED = 16

REGION_HEADER = COLLECTED + MOST_COLLECTED

N_STATE = 6
"""The first fields, which the draft has, too."""
SAVED = N_STATE + 1
KEPT = WRITTEN - DRAFT_LEXER
"""Fields of the draft."""

# ---- Results
OK = 0
ILLEGAL = -1
NO_ROOM = -2
TOO_MANY = -3
OUT_OF_RANGE = -4
NO_TEXT = -5
AFTER_END = -6
NOT_COMPLETE = -7
DEAD_END = -8
IDLE = -9
ENDED = -10
"""In place of a stack: the text was accepted as a whole."""
SPLIT = -11
"""The parses of an ambiguous text stand where different terminals compete."""
TOO_LONG = -12
"""More reductions than were to be tried; or more steps than a text asks for, see BELOW."""

WANTS_CACHE = 1
"""All is well, and a cache of walks would help."""

LIST = -16
"""Stacks below this are lists."""

RECORD = 3
"""Integers of an arena record."""
BELOW_AT, HEIGHT_AT = 1, 2
"""Where in a record the number of the one below it is, and its third integer: a frame's height."""
NO_FRAME = -1

# ---- Limits

MAX_STACKS = 1024

NATURAL = np.int64(0x7FFFFFFF)
"""`x & NATURAL` is x, for what cannot be negative.

PERF: a compiler that knows so leaves out what makes negative indices count from the end, in an index made of it too. (An expression: as a
function it would be compiled for each constant that it is called with.)
"""

FEW_REDUCTIONS = 32
"""What is tried first where one of several terminals is to be found that can be shifted: a nested construct may need thousands."""

STRIDE = 64
"""As a limit of reductions: none, but after so many `is_endless` is asked."""

SPENT, LOWEST, SINCE = 1, 2, 3
BELOW = 3 + KEPT
"""Places right below the arena: KEPT of the state under way, and above them what `is_endless` counts, named from the arena down.

A table from a file may reduce for ever, and a text may make work without end. So whoever reads or fills begins with SPENT = 0, and all
loops whose steps are not bounded by the load-time checks (`maskstore/table/check.py`) pay for them: a unit for STRIDE reductions, for
CACHE_STRIDE steps of a walk down the stack, for a symbol of a continuation or of line breaks, for 16 steps of `shift_all`. Past
MOST_SPENT the result is TOO_LONG.
"""

MOST_SPENT = 1 << 24
"""Some seconds."""

MOST_SINCE = 1 << 14
"""Strides of reductions in which a stack may not get lower than it was: a million reductions that neither read nor uncover anything."""

LONG_WALK = 48
"""A walk over more frames than this looks for its continuation in the cache, at heights that CACHE_STRIDE divides."""

CACHE_STRIDE = 16

REMEMBERED_BITS = 15
MOST_REMEMBERED = (1 << REMEMBERED_BITS) - 1
"""Two of what a block remembers of its ends fit into a place."""

INDENT_ZONE = 128
"""Records of a settled slot (`_slot_kernels`) that only open indents use. As many places behind its header say where their frames are."""

CACHED_WALKS = 24
"""The oldest gives way to a new one: the lexer states that nested constructs of one kind go through, each with two heights and more."""


def scratch_size(table: npt.NDArray[np.int32]) -> int:
    """Places before the arena in which functions keep what they have to keep: no memory is allocated for it, so a GPU can run them.

    From the arena down: BELOW places, AGAIN bytes to be read anew (`read_byte`), and 5 MAX_STACKS of
    stacks where the grammar has conflicts (`shift_all`).
    """
    has_conflicts = bool(table[DEFAULT] > table[ALTERNATIVES])
    return BELOW + int(table[AGAIN]) + (5 * MAX_STACKS if has_conflicts else 0)
