"""The memory of a text, and a workspace: where each thing stands in them.

`memory` is one text: one flat int32 array. A header (`TOP` and so on), the frame below all, the
history, then the *arena*, which grows: frames, forks, cells and states, which never change once a
byte is read. A state is a number of threads and the threads. A *thread* is readings of the text
that stand at the same place of the schema: `THREAD` integers.

A *frame* is an object or an array under way, with those around it: a frame is not changed by a
member but replaced by a new one, so a copy of a text's state is a number.

A *link* is a frame, or a *fork*: several frames, for readings that differ only in what is around
them. Threads have links, and frames have them to what is around, so alternatives inside one another
do not multiply: each level has its own. A fork is the number of its frames, `FORK_SHAPE`, and they.
INVARIANT: all frames of one level of nesting have read the same text. So those of one shape agree,
but for what `told_apart` tells, and for the alternatives that are out (`_alternative_kernels`).

A *cell* is one remembered key or item: the cell before it, `CELL_SHAPE`, two hashes, and the number
of characters of an item.

`work` is a workspace: scratch, and the masks that have been made, for one vocabulary. Whoever fills
masks has one alone.

The kernels of this folder use the same names for the same arguments:

voc, table, automata : (n,) int32; see `maskstore/schema/layout.py`.
memory, work : (n,) int32; see above.
at, to : the offset in `work` of a thread that is read, or of those that are written.
frame, link, shape, node : offsets, of the first two in `memory`, of the others in `table`.
"""

from __future__ import annotations

from maskwright.maskstore.schema.layout import MOST_SHAPES

# ---- A text's memory.

TOP = 0
"""The first free integer of the arena."""
STATE = 1
"""The offset of the text's state."""
FINISHED, N_HISTORY, NEXT, MAX_HISTORY = 2, 3, 4, 5
"""Whether the text has ended; the states that `rollback` can restore, and the next one's place."""
LIMIT = 6
"""Frames before this one are marked when they are read; 0 for none."""
BASE, PARTS, WHOLES, IS_DEEP = 7, 8, 9, 10
N_MARKS = 5
"""The marks. The level from which depth is counted; by depth, bits: whether frames were asked what
they let follow, and anything else; whether any were deeper than `MOST_DEPTH`. With LIMIT `N_MARKS`
integers."""
N_SAID = 11
"""The tokens and other pieces that the text was made of."""
ROOT_FRAME = N_SAID + 1
HISTORY = ROOT_FRAME + 13

MOST_DEPTH = 30
"""Frames deeper than this are not asked about; what reads them is not kept."""

# ---- A frame.

PARENT, SHAPE, COUNT, MISSING, REMEMBERED, HOLDS, RANK, LEVEL, OPENED, CHANGED, N_OTHER, N_SCARCE, BITS = range(13)
"""The link to what is around it; its shape, -1 for the frame below all; its members or items; the
required keys that are not there yet, or for an array the items that are contained; its newest cell,
or -1; whether it or one around it has a cell (`HOLDS_ANY`, `HOLDS_SCARCE`); the least rank that may
come; the number of frames around it; the memory's TOP when it was opened, and when it was changed,
which count within one call; the members whose key is not named, and those of them from whose key's
end finitely many keys go on, itself among them; its bits, of the keys or items that have been
there."""
HOLDS_ANY, HOLDS_SCARCE = 1, 2
"""Bits of HOLDS: a cell; one of those that N_SCARCE counts."""
MARKED = MISSING
FRAME = BITS
CELL_SHAPE, FORK_SHAPE = -2, -3
CELL, FORK = 5, 2
"""The integers of a cell; those of a fork before its frames."""

# ---- A thread.

LINK, MODE, SHAPE_OF, LOW, HIGH, DEPTH, ESCAPE, CODE, UTF8, LENGTH, IS_OFF, AUTOMATON, HASH_1, HASH_2 = range(14)
THREAD = 14
"""Its link; its mode; its shape or node; the literals LOW to HIGH that agree with the DEPTH bytes
read; the escape under way and its code; the state of UTF-8; the characters read, or for a key that
may be one of the others 1 + what `told_apart` tells, so that threads of different frames differ;
whether a key has left the named ones, or for an item that is remembered the array's shape; the
state of the automaton; a hash of what has been read."""
VALUE, AFTER, OBJECT_FIRST, KEY, COLON, ARRAY_FIRST, STRING, KEY_STRING, NUMBER, SPELLING = range(10)
"""The modes: before a value; behind one; behind `{`; behind the comma of an object; behind a key;
behind `[`; within a string, a key, a number, and `true`, `false` or `null`."""
MOST_READINGS = 2048
"""The most threads of a text after each byte, and the most frames of a fork."""
MOST_THREADS = 2 * MOST_READINGS + 2 * MOST_SHAPES
"""The room for threads: they are counted behind each thread, and behind each of its frames, which
may add all of a node's shapes, for the items of an array twice."""
NO_ESCAPE, BEHIND_BACKSLASH, UNIT, LOW_BACKSLASH, LOW_U, LOW_UNIT = 0, 1, 2, 6, 7, 8
"""Values of ESCAPE. UNIT + k: behind k digits of `\\u`. LOW_UNIT + k: behind k digits of the second
half of a pair."""

# ---- A workspace.

N_FOUND, DATA_TOP, N_USED = 0, 1, 2
"""The tokens in the list; the first free integer of the kept data; the slots in use."""
LIST, LIST_END, LEVELS, LEVELS_END, KEY_BUFFER, KEY_END = 3, 4, 5, 6, 7, 8
THREADS_1, THREADS_2, LOOPS, N_LOOPS, SAVED = 9, 10, 11, 12, 13
SLOTS, N_SLOTS, DATA, DATA_END = 14, 15, 16, 17
"""Offsets of the parts, and sizes."""
N_MISSES, N_ROWS, N_RESETS = 18, 19, 20
"""Counts, for whoever measures."""
RESERVE = 21
"""What one mask may add to the kept data but for keys: rows, and the bits of tails."""
STAMP, PLACES, CLASSES, FRONT_1, FRONT_2 = 22, 23, 24, 25, 26
"""For merging: what marks the places in use; `N_PLACES` places, each a stamp and a number; for each
thread `CLASS` integers. Two lists of frames."""
N_PLACES, CLASS = 8192, 3
LEADS, BASES, UTF8_STATES, MASKS = 27, 28, 29, 30
"""For the base of a row: the states that groups of characters lead to, what stands for these, and
the states within a character. The masks of a text's threads."""
BUSY = 31
"""Whether somebody works there without the GIL."""
WORK_HEADER = 32

SLOT = 3
"""A slot: a hash, the offset of the key, the value."""

# ---- Kept masks: rows of bits to unite, and ids beside them.

N_MASK_ROWS, IS_ANY, N_IDS, MASK_ROWS, MOST_ROWS = 0, 1, 2, 3, 4
"""A mask: the number of rows; whether it has a token; the number of ids; for each row, whether it
is in `work` and not in `voc`, and its offset; then the ids."""
MASK_HEADER = MASK_ROWS + 2 * MOST_ROWS

# ---- Addresses, each with the size of the array.

VOC_AT, TABLE_AT, AUTOMATA_AT, MEMORY_AT, WORK_AT, WORDS_AT, N_ADDRESSES = range(0, 14, 2)

# ---- Results.

OK, ILLEGAL, NO_ROOM, TOO_MANY, OUT_OF_RANGE, NO_TEXT, AFTER_END, NOT_COMPLETE, DEAD_END = range(9)
"""Minus what they are in `decoding.engine.constants`. NO_ROOM: the text's memory is full; the same
call succeeds with more. TOO_MANY: more readings than MOST_READINGS, or a walk that is too deep."""
