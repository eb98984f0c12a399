"""What Python calls: a text begins, is masked, takes tokens or bytes, and moves to new memory."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.schema.spacing import GOES_ON
from maskwright.decoding.schema._automaton_kernels import end_of
from maskwright.decoding.schema._begin_kernels import begin_text
from maskwright.decoding.schema._frame_kernels import frame_words, is_literal_open, set_bit
from maskwright.decoding.schema._literal_kernels import literal_length
from maskwright.decoding.schema._memo_kernels import reset_memo
from maskwright.decoding.schema._read_kernels import keep_state, note_history, read
from maskwright.decoding.schema._repeat_kernels import refuse_repeats
from maskwright.decoding.schema._space_kernels import space_ends, space_state
from maskwright.decoding.schema._union_kernels import write_masks
from maskwright.decoding.schema.constants import (
    AFTER,
    AFTER_END,
    AUTOMATON,
    CELL,
    CELL_SHAPE,
    CHANGED,
    DEAD_END,
    DEPTH,
    FINISHED,
    FORK,
    FORK_SHAPE,
    FRAME,
    HISTORY,
    ILLEGAL,
    LIMIT,
    LINK,
    LOW,
    MAX_HISTORY,
    MODE,
    N_HISTORY,
    N_SAID,
    NEXT,
    NO_ROOM,
    NO_TEXT,
    NOT_COMPLETE,
    NUMBER,
    OK,
    OPENED,
    OUT_OF_RANGE,
    PARENT,
    REMEMBERED,
    ROOT_FRAME,
    SHAPE,
    SHAPE_OF,
    SPELLING,
    STATE,
    THREAD,
    THREADS_1,
    TOP,
)
from maskwright.maskstore.schema.layout import (
    EOS,
    LITERALS,
    MOST_WORDS,
    N_EOS,
    N_ROW_WORDS,
    N_TOKENS,
    NUMBER_AUTOMATON,
    ROOT,
    TOKEN_BYTES,
    TOKEN_START,
)


@kernel(entry=True)
def begin(table: Int32, memory: Int32, work: Int32, max_history: int) -> int:
    """Put a text at its start, without history. Returns OK."""
    memory[FINISHED] = 0
    memory[N_HISTORY] = 0
    memory[N_SAID] = 0
    memory[NEXT] = 0
    memory[MAX_HISTORY] = max_history
    memory[LIMIT] = 0
    for k in range(FRAME):
        memory[ROOT_FRAME + k] = 0
    memory[ROOT_FRAME + PARENT] = -1
    memory[ROOT_FRAME + SHAPE] = -1
    memory[ROOT_FRAME + REMEMBERED] = -1
    memory[TOP] = HISTORY + max_history
    at = work[THREADS_1]
    begin_text(table, work, at, ROOT_FRAME, table[ROOT])
    keep_state(memory, work, at, 1)
    return OK


@kernel(entry=True)
def forget_all(work: Int32) -> int:
    """Forget all masks that a workspace has kept. Returns OK."""
    reset_memo(work)
    return OK


@kernel
def can_thread_end(table: Int32, automata: Int32, memory: Int32, at: int) -> bool:
    """Whether the text may end with a thread, which stands in `memory`."""
    link, mode, shape = memory[at + LINK], memory[at + MODE], memory[at + SHAPE_OF]
    if link != ROOT_FRAME:
        return False
    state = space_state(table, memory, link, AFTER, memory[at + AUTOMATON] if mode == AFTER else 0)
    if mode not in (AFTER, NUMBER, SPELLING) or space_ends(table, state) & GOES_ON == 0:
        return False
    if mode == AFTER:
        return True
    if mode == NUMBER:
        return end_of(automata, table[shape + NUMBER_AUTOMATON], memory[at + AUTOMATON]) != 0
    if literal_length(table, table[shape + LITERALS], memory[at + LOW]) != memory[at + DEPTH]:
        return False
    return is_literal_open(table, memory, link, shape, memory[at + LOW])


@kernel
def is_complete(table: Int32, automata: Int32, memory: Int32) -> bool:
    """Whether the text may end here."""
    state = memory[STATE]
    for k in range(memory[state]):  # noqa: SIM110 (for compiled code)
        if can_thread_end(table, automata, memory, state + 1 + k * THREAD):
            return True
    return False


@kernel(entry=True)
def can_end(table: Int32, automata: Int32, memory: Int32) -> int:
    """OK if the text is legal as a whole, else ILLEGAL."""
    return OK if memory[FINISHED] != 0 or is_complete(table, automata, memory) else ILLEGAL


@kernel(entry=True)
def fill(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32) -> int:
    """Write the mask of the tokens that may come next. Returns OK, DEAD_END or an error.

    words : (at least N_ROW_WORDS,) int32; written.
    """
    return fill_text(voc, table, automata, memory, work, words, True)


@kernel(forceinline=True)
def fill_text(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, may_take_long: bool
) -> int:
    """`fill`. may_take_long : whether what takes long may be done; if not, that is NOT_QUICK."""
    n_words = voc[N_ROW_WORDS]
    if memory[FINISHED] != 0:
        for k in range(len(words)):
            words[k] = 0
        return OK
    if memory[TOP] + 8 * table[MOST_WORDS] > len(memory):
        return NO_ROOM
    found = write_masks(voc, table, automata, memory, work, words, may_take_long)
    if found < 0:
        return -1 - found
    behind = words[n_words:]  # PERF: over a view the compiler vectorises the loop
    for k in range(len(behind)):
        behind[k] = 0
    code = refuse_repeats(voc, table, automata, memory, work, words, may_take_long)
    if code > OK:
        return code
    is_any = found > 0 and code == OK
    if voc[N_EOS] > 0 and is_complete(table, automata, memory):
        is_any = True
        for k in range(voc[N_EOS]):
            set_bit(words, 0, voc[voc[EOS] + k])
    return OK if is_any else DEAD_END


@kernel(entry=True)
def read_bytes(table: Int32, automata: Int32, memory: Int32, work: Int32, data: Int32, commit: bool) -> int:
    """Read bytes as one token. data : (n,) int32. See `read`."""
    if memory[FINISHED] != 0:
        return AFTER_END
    return read(table, automata, memory, work, data, 0, len(data), commit)


@kernel(entry=True)
def read_token(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, token: int, commit: bool) -> int:
    """Read a token: OK or an error. The text changes only if it is legal and `commit` is true."""
    if token < 0 or token >= voc[N_TOKENS]:
        return OUT_OF_RANGE
    if memory[FINISHED] != 0:
        return AFTER_END
    start, end = voc[TOKEN_BYTES] + voc[voc[TOKEN_START] + token], voc[TOKEN_BYTES] + voc[voc[TOKEN_START] + token + 1]
    if start < end:
        return read(table, automata, memory, work, voc, start, end, commit)
    for k in range(voc[N_EOS]):
        if voc[voc[EOS] + k] == token:
            if not is_complete(table, automata, memory):
                return NOT_COMPLETE
            if commit:
                note_history(memory, memory[STATE])
                memory[FINISHED] = 1
            return OK
    return NO_TEXT


@kernel(entry=True)
def rollback(memory: Int32, n: int) -> int:
    """Go back by n tokens; the caller knows that there are so many. Returns OK."""
    place = memory[NEXT] - n
    if place < 0:
        place += memory[MAX_HISTORY]
    memory[STATE] = memory[HISTORY + place]
    memory[NEXT] = place
    memory[N_HISTORY] -= n
    memory[N_SAID] -= n
    memory[FINISHED] = 0
    return OK


# ---- Memory: all that is in use moves to an empty one.

MOVED = -16
"""SHAPE of what has moved: MOVED - its new offset."""


@kernel
def move_state(memory: Int32, into: Int32, state: int) -> int:
    """Move a state, whose links are left as they are. Returns its new offset."""
    if memory[state] <= MOVED:
        return MOVED - memory[state]
    place = into[TOP]
    n = 1 + memory[state] * THREAD
    for k in range(n):
        into[place + k] = memory[state + k]
    into[TOP] = place + n
    memory[state] = MOVED - place
    return place


@kernel
def move_record(table: Int32, memory: Int32, into: Int32, record: int) -> int:
    """Move a frame, fork or cell, whose links are left as they are. Returns its new offset."""
    if record < HISTORY:  # none, or the frame below all
        return record
    shape = memory[record + SHAPE]
    if shape <= MOVED:
        return MOVED - shape
    n = record_words(table, memory, record)
    place = into[TOP]
    for k in range(n):
        into[place + k] = memory[record + k]
    into[TOP] = place + n
    memory[record + SHAPE] = MOVED - place
    return place


@kernel
def record_words(table: Int32, memory: Int32, record: int) -> int:
    """The integers of a frame, fork or cell."""
    shape = memory[record + SHAPE]
    if shape == CELL_SHAPE:
        return CELL
    return FORK + memory[record] if shape == FORK_SHAPE else frame_words(table, shape)


@kernel(entry=True)
def move(table: Int32, memory: Int32, into: Int32) -> int:
    """Move what a text has in use to other memory, at least as large. Returns OK.

    The old memory is ruined.

    Source: C. J. Cheney, A nonrecursive list compacting algorithm, 1970: what has moved is a queue
    of records whose links have not.
    """
    most = memory[MAX_HISTORY]
    for k in range(HISTORY):
        into[k] = memory[k]
    states = HISTORY + most
    into[TOP] = states
    into[STATE] = move_state(memory, into, memory[STATE])
    for back in range(1, memory[N_HISTORY] + 1):
        place = memory[NEXT] - back
        if place < 0:
            place += most
        into[HISTORY + place] = move_state(memory, into, memory[HISTORY + place])
    record = into[TOP]
    while states < record:
        for k in range(into[states]):
            thread = states + 1 + k * THREAD
            into[thread + LINK] = move_record(table, memory, into, into[thread + LINK])
        states += 1 + into[states] * THREAD
    while record < into[TOP]:
        shape = into[record + SHAPE]
        if shape == FORK_SHAPE:
            for k in range(into[record]):
                into[record + FORK + k] = move_record(table, memory, into, into[record + FORK + k])
        else:
            into[record] = move_record(table, memory, into, into[record])  # PARENT, or the cell before
            if shape >= 0:
                into[record + REMEMBERED] = move_record(table, memory, into, into[record + REMEMBERED])
                into[record + OPENED] = 0
                into[record + CHANGED] = 0
        record += record_words(table, into, record)
    return OK
