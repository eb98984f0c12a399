"""The memory of a text, the results of the engine's functions, and their limits, as constants.

What the table holds, with its flags, is in `maskstore/table/schema.py`.

`memory` is one flat int32 array with a *region* for each text. A region has four parts, in this
order:

1. the header: the fields below, `REGION_HEADER` integers;
2. the history: `SAVED` integers for each token that can be taken back;
3. scratch: `scratch_size` integers in which functions keep intermediate values;
4. the *arena* of records.

An arena record has three integers. It is one of these:

- a stack frame: its LR state; the number of the frame below it; its height, which is the number of
  frames below it;
- an open indent: its wide column; the number of the indent below it; what `close_blocks` remembers
  of its end, or 0. The next record holds its narrow column: narrow column, -1, 0;
- a member of a list of stacks: the number of a top frame; the number of the next member; -1 - the
  number of members from this one to the end of the list.

Reading never changes a record in use, except for what an open indent remembers. So a stack is
copied by copying its number. Records are numbered in order of creation. The records in use
therefore end at the newest one.

*Stacks* are all parses of a text that are under way, as one integer. If there is one parse, it is
the number of the top frame of its stack. If there are several, it is LIST - the number of the first
member of a list. Example: 7 is the stack whose top frame is record 7; -25 is the list that begins
at record 9.

The engine's kernels use the same names for the same arguments:

table : (n,) int32; the engine's table (`maskstore/table/schema.py`).
memory : (m,) int32; the regions of all texts.
region : the index in `memory` at which a text's region begins.
arena : the index in `memory` at which its arena begins.
used, capacity : the number of the first free record, and the number of records that the arena has
    room for.
column : a column of the LR action table. It stands for one or several terminals, or for the end of
    the text.

Knows nothing of how any of this is computed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.table.schema import AGAIN, ALTERNATIVES, DEFAULT

# ---- Fields of a region. A token changes the first SAVED of them, and a rollback restores these.

LEXER = 0
"""The lexer's state."""
COLUMN, NARROW = 1, 2
"""The column of the newline under way: wide and narrow (see `analysis.grammar.columns`)."""
DEPTH = 3
"""The number of open brackets of the layout."""
INDENTS = 4
"""The number of the innermost open indent's record."""
STACKS = 5
"""The stacks of the text, encoded as the module's docstring says."""
FINISHED = 6
"""1 once an end-of-text token was read, else 0."""
USED = 7
"""The number of records in use."""
CAPACITY = 8
"""The number of records that the arena has room for."""
N_HISTORY, MAX_HISTORY, HISTORY_AT = 9, 10, 11
"""The tokens that can be taken back now, the most that can ever be, and where the next one goes.

HISTORY_AT is an index in the history, from 0 to MAX_HISTORY - 1.
"""
ARENA = 12
"""The offset of the arena from the region's start."""
CACHE = 13
"""The index in `memory` of the cache of walks. 0: there is none. -1: one is wanted."""
AFTER_NEWLINE_STACKS = 14
"""The stacks after a newline, before its column is obeyed; or an error; or 0 if not known.

Several look-ups need the same stacks, and so do successive bytes of an indentation.
"""
END_VERDICT = 15
"""The latest answer of `can_end` for the current stacks, with the lexer's output at the end.

Encoded as `2 * output + may_end + 1`; 0 means not yet computed. The answer holds only where the end
of the text makes the lexer emit that output.
"""

DRAFT_LEXER, DRAFT_COLUMN, DRAFT_NARROW, DRAFT_DEPTH, DRAFT_INDENTS, DRAFT_STACKS = 16, 17, 18, 19, 20, 21
"""The *draft*: the state after what is being read, until it is known to be legal."""
DRAFT_USED, DRAFT_AFTER_NEWLINE = 22, 23
"""The draft's USED and AFTER_NEWLINE_STACKS."""
LAST_WAS_NEWLINE = 24
"""Part of the draft: 1 if the last terminal read was a newline with its column, else 0."""

WRITTEN = 25
"""1 if the bitmask that is being filled holds some masks already, else 0."""
N_COLLECTED, COLLECTED = 26, 27
"""How many masks are noted, to be written to the bitmask; and the first of their numbers."""
MOST_COLLECTED = 16
"""The most masks that can be noted. When there are more, those noted are written first."""

SPENT_BEFORE = COLLECTED + MOST_COLLECTED
"""What SPENT begins with: 0, or more while a call may spend less than MOST_SPENT."""

REGION_HEADER = SPENT_BEFORE + 1
"""The number of fields."""

N_STATE_FIELDS = 6
"""The number of fields at the beginning, LEXER to STACKS, that the draft has too."""
SAVED = N_STATE_FIELDS + 1
"""The number of fields that the history keeps for each token: the state and FINISHED."""
N_DRAFT = WRITTEN - DRAFT_LEXER
"""The number of fields of the draft."""

# ---- Results
OK = 0
"""Success, or "yes"."""
ILLEGAL = -1
"""The grammar refuses what was read; or "no"."""
NO_ROOM = -2
"""The arena is full. The caller frees records or enlarges the region, and tries again."""
TOO_MANY = -3
"""The text has more than MAX_STACKS parses, or following them takes too many steps.

From `shift_one`: there is a conflict.
"""
OUT_OF_RANGE = -4
"""The vocabulary lacks the token."""
NO_TEXT = -5
"""The token has no bytes and does not end a text."""
AFTER_END = -6
"""An end-of-text token was read before."""
NOT_COMPLETE = -7
"""An end-of-text token where the text may not end."""
DEAD_END = -8
"""The mask is empty."""
IDLE = -9
"""In an array of results: the slot has no text, or no work was done for it."""
ENDED = -10
"""Returned instead of stacks: the parser accepted the text as a whole."""
SPLIT = -11
"""The parses of an ambiguous text are in states that select different modes of the lexer."""
TOO_LONG = -12
"""More reductions than the limit allows; or more steps than a text can need, see N_BELOW_ARENA."""

WANTS_CACHE = 1
"""Success, and a cache of walks would help."""

TABLE_AT, MEMORY_AT, WORDS_AT, N_ADDRESSES = range(0, 8, 2)
"""What a matcher's quick calls take: the address of each array, and the number of its elements.

All are 0 if nothing is to be quick.
"""

MOST_QUICK_FRAMES, MOST_QUICK_BYTES, MOST_QUICK_SPENT = 256, 256, 256
"""The most that quick calls follow: frames of a stack, bytes of a token, and units of SPENT, which
are 16,000 reductions and take 80 us."""

LIST = -16
"""Stacks of this value or less are lists. Values between this and 0 are results."""

RECORD = 3
"""The number of integers of an arena record."""
BELOW_AT, HEIGHT_AT = 1, 2
"""Offsets in a record of its second and third integers: the record below it, a frame's height."""
NO_FRAME = -1
"""The number below the lowest frame, the outermost indent or the last member of a list."""

# ---- Limits

MAX_STACKS = 1024
"""The most parses of one text that are followed."""

NATURAL = np.int64(0x7FFFFFFF)
"""`x & NATURAL` is x for every x that is not negative.

PERF: it tells the compiler that x is not negative. The compiler then leaves out the code that makes
negative indices count from the end, also for an index computed from x. (It is an expression because
a function would be compiled for each constant that it is called with.)
"""

FEW_REDUCTIONS = 32
"""The limit of reductions for each terminal in the first attempt of `accepts_any`.

A nested construct may need thousands of reductions. So all terminals are tried with few first.
"""

STRIDE = 64
"""The number of reductions after which `is_endless` is asked. As a limit it means no limit."""

SPENT, LOWEST, SINCE = 1, 2, 3
N_BELOW_ARENA = 3 + N_DRAFT
"""The number of integers directly below the arena with a fixed use.

The lowest N_DRAFT of them hold a copy of the draft. Above these are the counters of `is_endless`.
SPENT, LOWEST and SINCE are their offsets from the arena, counted downwards.

A table from a file may reduce for ever, and a text may make work without end. So every function
that reads or fills begins with SPENT = SPENT_BEFORE. All loops whose steps are not bounded by the
load-time checks (`maskstore/table/check.py`) pay for them: one unit for STRIDE reductions, for
CACHE_STRIDE steps of a walk down the stack, for a symbol of a continuation or of line breaks, and
for 16 steps of `shift_all`, or 256 stacks that it compares a new one with. Past MOST_SPENT the
result is TOO_LONG.
"""

MOST_SPENT = 1 << 24
"""The most units that one call may spend: some seconds."""

MOST_SINCE = 1 << 14
"""The most strides of reductions in a row that do not bring the stack to a new lowest height.

That is a million reductions that neither read nor uncover anything.
"""

LONG_WALK = 48
"""A walk over more frames than this looks for the rest of the walk in the cache.

It does so at heights that CACHE_STRIDE divides.
"""

CACHE_STRIDE = 16

REMEMBERED_BITS = 15
"""The bits of one answer of `close_blocks` that an open indent remembers.

Two such answers fit into one integer of a record.
"""
MOST_REMEMBERED = (1 << REMEMBERED_BITS) - 1
"""The greatest such answer."""

INDENT_ZONE = 128
"""The number of records of a settled slot (`_slot_kernels`) that only open indents use.

As many integers behind the slot's header hold the numbers of the indents' frames.
"""

CACHED_WALKS = 24
"""The number of walks that a cache holds. A new one replaces the oldest.

It is enough for the lexer states that nested constructs of one kind go through, each with two
heights and more.
"""


def scratch_size(table: npt.NDArray[np.int32]) -> int:
    """The number of integers of scratch before a region's arena.

    Functions keep intermediate values there. They allocate no memory, so a GPU can run them.

    From the arena down there are: N_BELOW_ARENA integers with a fixed use; AGAIN bytes to be read
    again (`read_byte`); and, if the grammar has conflicts, 5 MAX_STACKS stacks (`shift_all`).

    table : (n,) int32; the engine's table.
    """
    has_conflicts = bool(table[DEFAULT] > table[ALTERNATIVES])
    return N_BELOW_ARENA + int(table[AGAIN]) + (5 * MAX_STACKS if has_conflicts else 0)
