"""Keys and items that have been there: tokens that would say one again are taken out of a mask.

Kept masks know nothing of what a text remembers, since it is different in each text. So a mask is
made as if nothing were remembered, and then the few tokens that may say something again are read
for good: those that end a key or an item with a hash that is remembered, those with an escape
before that end, and those that hold a whole string. Where items are words, or strings of a greatest
length, a token can decide on one without a quotation mark: all that may are read there.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine.quick import NOT_QUICK
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._alternative_kernels import has_bit, set_bit
from maskwright.decoding.schema._frame_kernels import (
    frame_at,
    frames_around,
    has_remembered_length,
    is_remembered,
    is_tracked,
    n_frames,
)
from maskwright.decoding.schema._read_kernels import clear_if_refused, refuse, refuse_trie
from maskwright.decoding.schema._scarce_kernels import BITS_OF_HASH, refuse_scarce
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._hash_kernels import HASH_FACTOR_1, HASH_FACTOR_2, next_hash

QUICK_CELLS = 400
"""The most remembered keys and items that are asked about while the GIL is held, those of several
readings counted several times."""
NOTHING_LEFT = -1
"""What `refuse_repeats` returns where no token is left."""


@kernel
def has_limits(table: Int32, memory: Int32, link: int) -> bool:
    """Whether items here must differ, and some are words or strings of a greatest length."""
    for k in range(n_frames(memory, link)):
        frame = frame_at(memory, link, k)
        if is_tracked(table, memory, frame) and table[memory[frame + c.SHAPE] + layout.TRACKS_ITEMS] > 1:
            return True
    return False


@kernel
def refuse_repeats(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, may_take_long: bool
) -> int:
    """Take out of a mask what would say a remembered key or item again.

    may_take_long : whether many tokens, keys and items may be asked about; NOT_QUICK is the error
        where not.

    Returns OK, NOTHING_LEFT or an error.
    """
    manifold = voc[layout.MANIFOLD]
    code = refuse(voc, table, automata, memory, work, words, manifold, manifold + voc[layout.N_MANIFOLD], 1)
    if code != c.OK:
        return code
    state = memory[c.STATE]
    is_asked, is_limited, is_scarce = False, False, False
    for k in range(memory[state]):
        at = state + 1 + k * c.THREAD
        link = memory[at + c.LINK]
        is_limited = is_limited or has_limits(table, memory, link)
        # PERF: within a string that is no key and no item, no token ends one
        is_inside = memory[at + c.MODE] == c.STRING and memory[at + c.IS_OFF] == 0
        for number in range(n_frames(memory, link)):
            held = memory[frame_at(memory, link, number) + c.HOLDS]
            is_asked = is_asked or (not is_inside and held != 0)
            is_scarce = is_scarce or held & c.HOLDS_SCARCE != 0
    if not is_limited and not is_asked and not is_scarce:
        return c.OK
    if is_limited and not may_take_long:
        return NOT_QUICK
    is_outside, is_noted, is_partial = False, False, False
    for k in range(memory[state]):
        at = state + 1 + k * c.THREAD
        mode = memory[at + c.MODE]
        is_inside = mode in (c.STRING, c.KEY_STRING)
        is_outside = is_outside or not is_inside
        may_end = is_inside and may_end_said(table, memory, at)
        work[work[c.MASKS] + k] = 1 if may_end else 0
        is_noted = is_noted or may_end
        # within an escape or a character many tokens are read
        is_partial = is_partial or (may_end and (memory[at + c.ESCAPE] != c.NO_ESCAPE or memory[at + c.UTF8] != 0))
    if is_outside or is_noted:
        n_cells = note_remembered(memory, work)
        if not may_take_long and (n_cells > QUICK_CELLS or is_partial):
            return NOT_QUICK
    if is_scarce:
        code = refuse_scarce(voc, table, automata, memory, work, words, may_take_long)
        if code != c.OK:
            return code
    for k in range(memory[state]):
        if work[work[c.MASKS] + k] != 0:
            code = refuse_closers(voc, table, automata, memory, work, words, k)
            if code != c.OK:
                return code
    if is_outside and is_limited:
        code = refuse_trie(voc, voc[layout.STRUCTURE], table, automata, memory, work, words)
    for number in range(voc[layout.N_QUOTED] if is_outside and not is_limited else 0):
        quoted = voc[layout.QUOTED] + layout.QUOTED_SIZE * number
        hash_1 = voc[quoted + 1]
        if code == c.OK and (hash_1 < 0 or has_bit(work, work[c.LOOPS], hash_1 & (BITS_OF_HASH - 1))):
            code = clear_if_refused(voc, table, automata, memory, work, words, voc[quoted])
    if code != c.OK:
        return code
    for k in range(voc[layout.N_ROW_WORDS]):
        if words[k] != 0:
            return c.OK
    return NOTHING_LEFT


@kernel
def note_remembered(memory: Int32, work: Int32) -> int:
    """Write which hashes a text remembers, as bits of their lowest part: to LOOPS.

    Returns how many cells were seen; those of several readings count several times.
    """
    n = 0
    for k in range(BITS_OF_HASH >> 5):
        work[work[c.LOOPS] + k] = 0
    state = memory[c.STATE]
    for k in range(memory[state]):
        size = frames_around(memory, work, memory[state + 1 + k * c.THREAD + c.LINK])
        for number in range(size):
            cell = memory[work[work[c.FRONT_1] + number] + c.REMEMBERED]
            while cell >= 0:
                n += 1
                set_bit(work, work[c.LOOPS], memory[cell + 2] & (BITS_OF_HASH - 1))
                cell = memory[cell]
        if size < 0:  # more frames than fit: any hash may be there
            for word in range(BITS_OF_HASH >> 5):
                work[work[c.LOOPS] + word] = -1
    return n


@kernel
def refuse_closers(
    voc: Int32, table: Int32, automata: Int32, memory: Int32, work: Int32, words: Int32, thread: int
) -> int:
    """`refuse_repeats` for a thread within a string, by number. Returns OK or an error.

    thread : one of those that `may_end_said` names.
    """
    at = memory[c.STATE] + 1 + thread * c.THREAD
    frame, shape = memory[at + c.LINK], memory[at + c.SHAPE_OF]
    is_key = memory[at + c.MODE] == c.KEY_STRING
    if not is_key and table[shape + layout.KIND] == layout.STRINGS:
        most = table[shape + layout.STRING_MOST]
        is_near = 0 <= most <= memory[at + c.LENGTH] + voc[layout.MOST_BYTES]
        if is_near and has_remembered_length(memory, frame, most):
            # what makes the item as long as it can be may make it one that has been there
            code = refuse_trie(voc, voc[layout.FULL], table, automata, memory, work, words)
            if code != c.OK:
                return code
    if memory[at + c.ESCAPE] != c.NO_ESCAPE or memory[at + c.UTF8] != 0:
        # tokens that end an escape or a character first are no closers
        return refuse_trie(voc, voc[layout.SPECIAL], table, automata, memory, work, words)
    if is_among(memory, work, thread):  # a token that was looked at is not looked at again
        return c.OK
    contents = voc[layout.CONTENTS]
    for number in range(voc[layout.N_CONTENTS]):
        closer = voc[contents + number]
        if is_repeated(voc, memory, work, at, closer):
            end = voc[contents + number + 1]
            code = refuse(voc, table, automata, memory, work, words, closer, end, layout.CLOSER)
            if code != c.OK:
                return code
    hard, end = voc[contents + voc[layout.N_CONTENTS]], voc[layout.CLOSERS] + layout.CLOSER * voc[layout.N_CLOSERS]
    return refuse(voc, table, automata, memory, work, words, hard, end, layout.CLOSER)


@kernel
def may_end_said(table: Int32, memory: Int32, at: int) -> bool:
    """Whether a thread's string may end as a key or an item that has been there.

    True for some that may not: where items have limits, whatever has been there.
    """
    if memory[at + c.MODE] == c.KEY_STRING:
        return memory[at + c.LENGTH] != 0 and memory[memory[at + c.LINK] + c.REMEMBERED] >= 0
    if memory[at + c.IS_OFF] == 0:
        return False
    return memory[memory[at + c.LINK] + c.REMEMBERED] >= 0 or has_limits(table, memory, memory[at + c.LINK])


@kernel
def is_among(memory: Int32, work: Int32, thread: int) -> bool:
    """Whether a thread before one says the same, so that the tokens that end it are the same.

    A note of the threads that `refuse_closers` looks at stands in MASKS.
    """
    state, asked = memory[c.STATE] + 1, work[c.MASKS]
    at = state + thread * c.THREAD
    for before in range(thread):
        one = state + before * c.THREAD
        is_same = memory[one + c.HASH_1] == memory[at + c.HASH_1] and memory[one + c.HASH_2] == memory[at + c.HASH_2]
        if is_same and work[asked + before] != 0:
            return True
    return False


@kernel
def is_repeated(voc: Int32, memory: Int32, work: Int32, at: int, closer: int) -> bool:
    """Whether what a thread's string says has been there, if a closer that is not hard ends it.

    Other threads that say the same are asked as well.
    """
    data = voc[layout.TOKEN_BYTES] + voc[voc[layout.TOKEN_START] + voc[closer]]
    first, second = int(memory[at + c.HASH_1]), int(memory[at + c.HASH_2])
    for k in range(voc[closer + 3]):
        first = next_hash(first, HASH_FACTOR_1, int(voc[data + k]))
    if not has_bit(work, work[c.LOOPS], first & (BITS_OF_HASH - 1)):
        return False
    for k in range(voc[closer + 3]):
        second = next_hash(second, HASH_FACTOR_2, int(voc[data + k]))
    state = memory[c.STATE]
    for thread in range(memory[state]):
        one = state + 1 + thread * c.THREAD
        link, mode = memory[one + c.LINK], memory[one + c.MODE]
        is_single = mode in (c.STRING, c.KEY_STRING) and memory[link + c.SHAPE] != c.FORK_SHAPE
        if is_single and is_remembered(memory, link, first, second):
            return True
    return False
