"""What Python calls: a text begins, is masked, takes tokens or bytes, and moves to new memory."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.schema.spacing import GOES_ON
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import set_bit
from maskwright.decoding.schema._automaton_kernels import end_of
from maskwright.decoding.schema._begin_kernels import begin_thread
from maskwright.decoding.schema._frame_kernels import frame_words
from maskwright.decoding.schema._memo_kernels import reset_memo
from maskwright.decoding.schema._read_kernels import keep_state, note_history, read
from maskwright.decoding.schema._repeat_kernels import refuse_repeats
from maskwright.decoding.schema._space_kernels import space_ends, space_state
from maskwright.decoding.schema._step_kernels import can_literal_end
from maskwright.decoding.schema._union_kernels import write_masks
from maskwright.maskstore.schema import layout


@kernel(entry=True)
def begin(table: Int32, memory: Int32, work: Int32, max_history: int) -> int:
    """Put a text at its start, without history. Returns OK."""
    for k in range(c.HISTORY):
        memory[k] = 0
    memory[c.MAX_HISTORY] = max_history
    memory[c.ROOT_FRAME + c.PARENT] = -1
    memory[c.ROOT_FRAME + c.SHAPE] = -1
    memory[c.ROOT_FRAME + c.REMEMBERED] = -1
    memory[c.TOP] = c.HISTORY + max_history
    at = work[c.THREADS_1]
    if table[layout.IS_TEXT] != 0:
        begin_thread(work, at, c.ROOT_FRAME, c.NUMBER, table[table[layout.ROOT] + layout.NODE_SHAPES])
    else:
        begin_thread(work, at, c.ROOT_FRAME, c.VALUE, table[layout.ROOT])
    work[at + c.AUTOMATON] = 1 if table[layout.IS_TEXT] != 0 else table[layout.OUTER_SPACE]
    keep_state(memory, work, at, 1)
    return c.OK


@kernel(entry=True)
def forget_all(work: Int32) -> int:
    """Forget all masks that a workspace has kept. Returns OK."""
    reset_memo(work)
    return c.OK


@kernel
def can_thread_end(table: Int32, automata: Int32, memory: Int32, at: int) -> bool:
    """Whether the text may end with a thread, which stands in `memory`."""
    link, mode, shape = memory[at + c.LINK], memory[at + c.MODE], memory[at + c.SHAPE_OF]
    if link != c.ROOT_FRAME or mode not in (c.AFTER, c.NUMBER, c.SPELLING):
        return False
    state = space_state(table, memory, link, c.AFTER, memory[at + c.AUTOMATON] if mode == c.AFTER else 0)
    if space_ends(table, state) & GOES_ON == 0:
        return False
    if mode == c.NUMBER:
        return end_of(automata, table[shape + layout.NUMBER_AUTOMATON], memory[at + c.AUTOMATON]) != 0
    return mode == c.AFTER or can_literal_end(table, memory, memory, at)


@kernel
def is_complete(table: Int32, automata: Int32, memory: Int32) -> bool:
    """Whether the text may end here."""
    state = memory[c.STATE]
    for k in range(memory[state]):  # noqa: SIM110 (for compiled code)
        if can_thread_end(table, automata, memory, state + 1 + k * c.THREAD):
            return True
    return False


@kernel(entry=True)
def can_end(table: Int32, automata: Int32, memory: Int32) -> int:
    """OK if the text is legal as a whole, else ILLEGAL."""
    return c.OK if memory[c.FINISHED] != 0 or is_complete(table, automata, memory) else c.ILLEGAL


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
    n_words = voc[layout.N_ROW_WORDS]
    if memory[c.FINISHED] != 0:
        for k in range(len(words)):
            words[k] = 0
        return c.OK
    if memory[c.TOP] + 8 * table[layout.MOST_WORDS] > len(memory):
        return c.NO_ROOM
    found = write_masks(voc, table, automata, memory, work, words, may_take_long)
    if found < 0:
        return -1 - found
    behind = words[n_words:]  # PERF: over a view the compiler vectorises the loop
    for k in range(len(behind)):
        behind[k] = 0
    code = refuse_repeats(voc, table, automata, memory, work, words, may_take_long)
    if code > c.OK:
        return code
    is_any = found > 0 and code == c.OK
    if voc[layout.N_EOS] > 0 and is_complete(table, automata, memory):
        is_any = True
        for k in range(voc[layout.N_EOS]):
            set_bit(words, 0, voc[voc[layout.EOS] + k])
    return c.OK if is_any else c.DEAD_END


@kernel(entry=True)
def read_bytes(table: Int32, automata: Int32, memory: Int32, work: Int32, data: Int32, commit: bool) -> int:
    """Read bytes as one token. data : (n,) int32. See `read`."""
    if memory[c.FINISHED] != 0:
        return c.AFTER_END
    return read(table, automata, memory, work, data, 0, len(data), commit)


@kernel(entry=True)
def read_token(voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, token: int, commit: bool) -> int:
    """Read a token: OK or an error. The text changes only if it is legal and `commit` is true."""
    if token < 0 or token >= voc[layout.N_TOKENS]:
        return c.OUT_OF_RANGE
    if memory[c.FINISHED] != 0:
        return c.AFTER_END
    start, end = (
        voc[layout.TOKEN_BYTES] + voc[voc[layout.TOKEN_START] + token],
        voc[layout.TOKEN_BYTES] + voc[voc[layout.TOKEN_START] + token + 1],
    )
    if start < end:
        return read(table, automata, memory, work, voc, start, end, commit)
    for k in range(voc[layout.N_EOS]):
        if voc[voc[layout.EOS] + k] == token:
            if not is_complete(table, automata, memory):
                return c.NOT_COMPLETE
            if commit:
                note_history(memory, memory[c.STATE])
                memory[c.FINISHED] = 1
            return c.OK
    return c.NO_TEXT


@kernel(entry=True)
def rollback(memory: Int32, n: int) -> int:
    """Go back by n tokens; the caller knows that there are so many. Returns OK."""
    place = memory[c.NEXT] - n
    if place < 0:
        place += memory[c.MAX_HISTORY]
    memory[c.STATE] = memory[c.HISTORY + place]
    memory[c.NEXT] = place
    memory[c.N_HISTORY] -= n
    memory[c.N_SAID] -= n
    memory[c.FINISHED] = 0
    return c.OK


# ---- Memory: all that is in use moves to an empty one.

MOVED = -16
"""SHAPE of what has moved: MOVED - its new offset."""


@kernel
def move_state(memory: Int32, into: Int32, state: int) -> int:
    """Move a state, whose links are left as they are. Returns its new offset."""
    if memory[state] <= MOVED:
        return MOVED - memory[state]
    place = into[c.TOP]
    n = 1 + memory[state] * c.THREAD
    for k in range(n):
        into[place + k] = memory[state + k]
    into[c.TOP] = place + n
    memory[state] = MOVED - place
    return place


@kernel
def move_record(table: Int32, memory: Int32, into: Int32, record: int) -> int:
    """Move a frame, fork or cell, whose links are left as they are. Returns its new offset."""
    if record < c.HISTORY:  # none, or the frame below all
        return record
    shape = memory[record + c.SHAPE]
    if shape <= MOVED:
        return MOVED - shape
    n = record_words(table, memory, record)
    place = into[c.TOP]
    for k in range(n):
        into[place + k] = memory[record + k]
    into[c.TOP] = place + n
    memory[record + c.SHAPE] = MOVED - place
    return place


@kernel
def record_words(table: Int32, memory: Int32, record: int) -> int:
    """The integers of a frame, fork or cell."""
    shape = memory[record + c.SHAPE]
    if shape == c.CELL_SHAPE:
        return c.CELL
    return c.FORK + memory[record] if shape == c.FORK_SHAPE else frame_words(table, shape)


@kernel(entry=True)
def move(table: Int32, memory: Int32, into: Int32) -> int:
    """Move what a text has in use to other memory, at least as large. Returns OK.

    The old memory is ruined.

    Source: C. J. Cheney, A nonrecursive list compacting algorithm, 1970: what has moved is a queue
    of records whose links have not.
    """
    most = memory[c.MAX_HISTORY]
    for k in range(c.HISTORY):
        into[k] = memory[k]
    states = c.HISTORY + most
    into[c.TOP] = states
    into[c.STATE] = move_state(memory, into, memory[c.STATE])
    for back in range(1, memory[c.N_HISTORY] + 1):
        place = memory[c.NEXT] - back
        if place < 0:
            place += most
        into[c.HISTORY + place] = move_state(memory, into, memory[c.HISTORY + place])
    record = into[c.TOP]
    while states < record:
        for k in range(into[states]):
            thread = states + 1 + k * c.THREAD
            into[thread + c.LINK] = move_record(table, memory, into, into[thread + c.LINK])
        states += 1 + into[states] * c.THREAD
    while record < into[c.TOP]:
        shape = into[record + c.SHAPE]
        if shape == c.FORK_SHAPE:
            for k in range(into[record]):
                into[record + c.FORK + k] = move_record(table, memory, into, into[record + c.FORK + k])
        else:
            into[record] = move_record(table, memory, into, into[record])  # PARENT, or the cell before
            if shape >= 0:
                into[record + c.REMEMBERED] = move_record(table, memory, into, into[record + c.REMEMBERED])
                into[record + c.OPENED] = 0
                into[record + c.CHANGED] = 0
        record += record_words(table, into, record)
    return c.OK
