"""The memory of a text, and a workspace: where each thing stands in them.

`memory` is one text: one flat int32 array. A header (`TOP` and so on), the frame below all, the
history, then the *arena*, which grows: frames, cells and states, which never change once a byte is
read. A state is a number of threads and the threads. A *thread* is one reading of the text: where
it stands in the schema, `THREAD` integers.

A *frame* is an object or an array under way, with the frame around it: a frame is not changed by a
member but replaced by a new one, so a copy of a text's state is a number.

A *cell* is one remembered key or item: the cell before it, `CELL_SHAPE`, two hashes, and the number
of characters of an item.

`work` is a workspace: scratch, and the masks that have been made, for one vocabulary. Whoever fills
masks has one alone.

The kernels of this folder use the same names for the same arguments:

voc, table, automata : (n,) int32; see `maskstore/schema/layout.py`.
memory, work : (n,) int32; see above.
at, to : the offset in `work` of a thread that is read, or of those that are written.
frame, shape, node : offsets, of a frame in `memory`, of the others in `table`.
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
N_MARKS, MARKS, MOST_MARKS = 7, 8, 60
"""The marks: a frame, and 1 if it was asked what it lets follow, 2 if anything else."""
N_SAID = MARKS + 2 * MOST_MARKS
"""The tokens and other pieces that the text was made of."""
ROOT_FRAME = N_SAID + 1
HISTORY = ROOT_FRAME + 8

# ---- A frame.

PARENT, SHAPE, COUNT, MISSING, REMEMBERED, RANK, ORIGIN, BITS = 0, 1, 2, 3, 4, 5, 6, 7
"""The frame around it; its shape, -1 for the frame below all; its members or items; the required
keys that are not there yet, or for an array the items that are contained; its newest cell, or -1;
the least rank that may come; the frame that it replaces, which counts within one call; its bits,
of the keys or items that have been there."""
MARKED = MISSING
FRAME = 7
CELL_SHAPE = -2
CELL = 5

# ---- A thread.

FRAME_OF, MODE, SHAPE_OF, LOW, HIGH, DEPTH, ESCAPE, CODE, UTF8, LENGTH, IS_OFF, AUTOMATON, HASH_1, HASH_2 = range(14)
THREAD = 14
"""Its frame; its mode; its shape or node; the literals LOW to HIGH that agree with the DEPTH bytes
read; the escape under way and its code; the state of UTF-8; the characters read, or for a key
whether it may be one of the others; whether a key has left the named ones, or a string is an item
that is remembered; the state of the
automaton; a hash of what has been read."""

VALUE, AFTER, OBJECT_FIRST, KEY, COLON, ARRAY_FIRST, STRING, KEY_STRING, NUMBER, SPELLING = range(10)
"""The modes: before a value; behind one; behind `{`; behind the comma of an object; behind a key;
behind `[`; within a string, a key, a number, and `true`, `false` or `null`."""

MOST_READINGS = 256
"""The most threads of a text, after each byte."""
MOST_THREADS = MOST_READINGS + 2 * MOST_SHAPES
"""The room for threads: the next ones are counted once all of a node's shapes are written, for the
items of an array twice."""

NO_ESCAPE, BEHIND_BACKSLASH, UNIT, LOW_BACKSLASH, LOW_U, LOW_UNIT = 0, 1, 2, 6, 7, 8
"""Values of ESCAPE. UNIT + k: behind k digits of `\\u`. LOW_UNIT + k: behind k digits of the second
half of a pair."""

# ---- A workspace.

N_FOUND, DATA_TOP, N_USED = 0, 1, 2
"""The tokens in the list; the first free integer of the kept data; the slots in use."""
LIST, LIST_END, LEVELS, LEVELS_END, KEY_BUFFER, KEY_END = 3, 4, 5, 6, 7, 8
THREADS_1, THREADS_2, LOOPS, N_LOOPS, SAVED_MARKS = 9, 10, 11, 12, 13
SLOTS, N_SLOTS, DATA, DATA_END = 14, 15, 16, 17
"""Offsets of the parts, and sizes."""
N_MISSES, N_ROWS, N_RESETS = 18, 19, 20
"""Counts, for whoever measures."""
RESERVE = 21
"""What one mask may add to the kept data but for keys: rows, and the bits of tails."""
WORK_HEADER = 32

SLOT = 3
"""A slot: a hash, the offset of the key, the value."""

# ---- Kept masks: rows of bits to unite, and ids beside them.

N_MASK_ROWS, IS_ANY, N_IDS, MASK_ROWS, MOST_ROWS = 0, 1, 2, 3, 4
"""A mask: the number of rows; whether it has a token; the number of ids; for each row, whether it
is in `work` and not in `voc`, and its offset; then the ids."""
MASK_HEADER = MASK_ROWS + 2 * MOST_ROWS

# ---- Results.

OK, ILLEGAL, NO_ROOM, TOO_MANY, DEAD_END, AFTER_END, NOT_COMPLETE, NO_TEXT, OUT_OF_RANGE = range(9)
"""NO_ROOM: the text's memory is full; the same call succeeds with more. TOO_MANY: more readings
than MOST_READINGS, or a walk that is too deep."""
