"""Masks: the stack automaton walks over a text's stacks and collects the tokens allowed next.

`constants` describes the arguments that all kernels share. In addition:

words : (>= n_words,) int32; the bitmask to write. Bit i of word w, the least significant first, is
    token 32 w + i.
mask, row, node, continuation : numbers of such parts of the table.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.grammar.columns import TAB_STOP
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._draft_kernels import (
    begin_draft,
    feed,
    feed_newline,
    has_spent,
    indent,
    know_newline,
    spend_nothing,
)
from maskwright.decoding.engine._end_kernels import can_end
from maskwright.decoding.engine._lexer_kernels import accepts_any, mode_state
from maskwright.decoding.engine._stack_kernels import below_of, first_stack, height_of, other_stacks, state_of
from maskwright.maskstore.table import schema
from maskwright.maskstore.table._table_kernels import edge_slot
from maskwright.maskstore.tokens.events import PLAIN


@kernel
def add_words(words, row):  # type: ignore[no-untyped-def]
    """OR a row into words. row : (n,) int32; n <= the length of words."""
    # PERF: over two views the compiler vectorises the loop. With offsets in the indices, or as a
    # slice assignment, it takes 5-8 times as long (85 against 480 and 770 ns for 1,000 words, numba
    # 0.68).
    for w in range(row.shape[0]):
        words[w] |= row[w]


@kernel
def add_ids(table, mask, words):  # type: ignore[no-untyped-def]
    """Add to words the ids that a mask has beside its row."""
    begin = np.int64(table[schema.MASK_IDS]) + table[table[schema.MASKS] + 3 * mask + 1]
    ids = table[begin : begin + table[table[schema.MASKS] + 3 * mask + 2]]
    for i in range(ids.shape[0]):
        # PERF: unsigned numbers take half the time, since no index can count from the end
        token = np.uint32(ids[i])
        words[np.uint64(token >> np.uint32(5))] |= np.int32(np.uint32(1) << (token & np.uint32(31)))


@kernel
def add_tokens(table, mask, words):  # type: ignore[no-untyped-def]
    """OR a mask, its row and its ids, into words."""
    row = np.int64(table[table[schema.MASKS] + 3 * mask])
    if row >= 0:
        n_words = np.int64(table[schema.N_WORDS])
        offset = np.int64(table[schema.ROWS]) + row * n_words
        add_words(words, table[offset : offset + n_words])
    add_ids(table, mask, words)


@kernel
def collect_mask(table, memory, region, mask, words):  # type: ignore[no-untyped-def]
    """Note a mask, to be written later, unless it is noted already.

    Nested constructs of one kind lead to the same mask at each depth. It is noted once.

    words : written to only if there is no room for another note (MOST_COLLECTED).
    """
    n = memory[region + c.N_COLLECTED]
    for i in range(n):
        if memory[region + c.COLLECTED + i] == mask:
            return
    if n == c.MOST_COLLECTED:
        write_collected(table, memory, region, words)
        n = memory[region + c.N_COLLECTED]
    memory[region + c.COLLECTED + n] = mask
    memory[region + c.N_COLLECTED] = n + 1


@kernel
def write_collected(table, memory, region, words):  # type: ignore[no-untyped-def]
    """OR the noted masks into words, and forget the notes.

    The first call for a bitmask overwrites what words held before.
    """
    n_words = np.int64(table[schema.N_WORDS])
    rows = np.int64(table[schema.ROWS])
    first = np.int64(-1)
    is_written = memory[region + c.WRITTEN] != 0
    for i in range(memory[region + c.N_COLLECTED]):
        row = np.int64(table[table[schema.MASKS] + 3 * memory[region + c.COLLECTED + i]])
        if row < 0 or row == first:
            continue
        offset = rows + row * n_words
        if is_written:
            add_words(words, table[offset : offset + n_words])
        elif first < 0:
            first = row
        else:
            begin = rows + first * n_words
            write_two(words, table[begin : begin + n_words], table[offset : offset + n_words])
            is_written = True
    if not is_written:
        begin = rows + first * n_words if first >= 0 else rows
        write_one(words, table[begin : begin + (n_words if first >= 0 else 0)])
    for i in range(memory[region + c.N_COLLECTED]):
        add_ids(table, np.int64(memory[region + c.COLLECTED + i]), words)
    memory[region + c.WRITTEN] = 1
    memory[region + c.N_COLLECTED] = 0


@kernel
def clear(words):  # type: ignore[no-untyped-def]
    """Set words to 0.

    PERF: a loop over a part, as `for w in range(n, words.shape[0])`, is not vectorised, since n
    might be negative (1,400 against 150 ns for 4,096 words). So callers pass a view of that part.
    """
    for w in range(words.shape[0]):
        words[w] = 0


@kernel
def write_one(words, row):  # type: ignore[no-untyped-def]
    """Set words to a row, with zeros behind it."""
    for w in range(row.shape[0]):
        words[w] = row[w]
    clear(words[row.shape[0] :])


@kernel
def write_two(words, a, b):  # type: ignore[no-untyped-def]
    """Set words to the union of two rows of equal length, with zeros behind it."""
    for w in range(a.shape[0]):
        words[w] = a[w] | b[w]
    clear(words[a.shape[0] :])


@kernel
def find_walk(memory, cache, width, frame, node):  # type: ignore[no-untyped-def]
    """The index in memory at which the cache has the walk from a frame and a node, or -1.

    A cache is one integer, which says where the oldest walk is, and then CACHED_WALKS entries: a
    frame, a node, and the words of the tokens that the walk from there collects.

    cache : the index in `memory` at which the cache begins.
    width : the integers of an entry, 2 + n_words.
    """
    for i in range(c.CACHED_WALKS):
        slot = cache + 1 + i * width
        if memory[slot] == frame and memory[slot + 1] == node:
            return slot
    return np.int64(-1)


@kernel
def next_edge(table, node, state):  # type: ignore[no-untyped-def]
    """The index in the table of a node's edge for an LR state.

    The edge's target is there, and its mask behind it.

    node : an inner node, neither 0 nor a root.
    """
    nodes = (table[schema.NODES] & c.NATURAL) - 2 * ((table[schema.N_ROOTS] & c.NATURAL) + 1)
    pairs = table[schema.EDGE_PAIRS] & c.NATURAL
    if table[nodes + 2 * node + 1] != 0:
        # these LR states do not take the node's default edge
        edges = table[schema.EDGES] & c.NATURAL
        n_slots = table[schema.N_EDGE_SLOTS] & c.NATURAL
        key = np.int32(node * (table[schema.N_STATES] & c.NATURAL) + state)
        at = edge_slot(key, n_slots)
        while True:
            found = table[edges + 2 * at]
            if found == key:
                return pairs + 2 * (table[edges + 2 * at + 1] & c.NATURAL)
            if found < 0:
                break
            at = at + 1 if at + 1 < n_slots else 0
    return pairs + 2 * (table[nodes + 2 * node] & c.NATURAL)


@kernel
def walk_stack(table, memory, region, node, frame, words):  # type: ignore[no-untyped-def]
    """Collect the masks of the tokens that a stack allows.

    A right-recursive text (nested ternaries, lambdas) makes a walk go down the whole stack. What
    the walk collects from a node and a frame down never changes. So past LONG_WALK frames each walk
    keeps it in the cache for one frame. The next walk then finds it after a few more steps.

    node : the root at which the walk begins.
    frame : the top frame of the stack.
    words : as of `collect_mask`.
    """
    arena = region + (memory[region + c.ARENA] & c.NATURAL)
    n_cells = table[schema.N_STATES] & c.NATURAL
    pairs = table[schema.EDGE_PAIRS] & c.NATURAL
    pair = pairs + 2 * (
        table[(table[schema.ROOTS] & c.NATURAL) + (node - 1) * n_cells + state_of(memory, arena, frame)] & c.NATURAL
    )
    steps = 1
    kept = 0
    while True:
        node = table[pair] & c.NATURAL
        mask = table[pair + 1] & c.NATURAL
        if mask > 0:
            collect_mask(table, memory, region, mask, words)
            if kept > 0:
                add_tokens(table, mask, memory[kept : kept + np.int64(table[schema.N_WORDS])])
        if node == 0:
            return
        frame = below_of(memory, arena, frame)
        if frame < 0:
            # only a table that the closure did not make leads below the stack
            return
        steps += 1
        if steps > c.LONG_WALK and height_of(memory, arena, frame) % c.CACHE_STRIDE == 0:
            has_spent(memory, region, 1)  # `find_masks` looks at what was spent
            if memory[region + c.CACHE] == 0:
                memory[region + c.CACHE] = -1  # the caller makes one (`Texts._lay_out`)
            elif memory[region + c.CACHE] > 0 and frame < memory[region + c.USED]:
                width = 2 + np.int64(table[schema.N_WORDS])
                cache = np.int64(memory[region + c.CACHE])
                slot = find_walk(memory, cache, width, frame, node)
                if slot >= 0:
                    write_collected(table, memory, region, words)
                    add_words(words, memory[slot + 2 : slot + width])
                    if kept > 0 and kept != slot + 2:
                        add_words(memory[kept : kept + width - 2], memory[slot + 2 : slot + width])
                    return
                if kept == 0:
                    oldest = max(0, memory[cache])
                    memory[cache] = oldest + 1 if oldest + 1 < c.CACHED_WALKS else 0
                    slot = cache + 1 + oldest * width
                    kept = slot + 2
                    memory[slot] = frame
                    memory[slot + 1] = node
                    write_one(memory[kept : slot + width], table[:0])
        pair = next_edge(table, node, state_of(memory, arena, frame))


@kernel
def feed_symbol(table, memory, region, symbol):  # type: ignore[no-untyped-def]
    """Feed a symbol of a continuation or of line breaks: OK or an error.

    symbol : a column, which is fed to the parser. From N_COLUMNS on it is N_COLUMNS plus a mode,
        and asks whether the next lexeme is read in that mode: OK, ILLEGAL or SPLIT.
    """
    if symbol < table[schema.N_COLUMNS]:
        return feed(table, memory, region, symbol)
    arena = region + np.int64(memory[region + c.ARENA])
    mode = mode_state(table, memory, arena, np.int64(memory[region + c.DRAFT_STACKS]))
    if mode == c.SPLIT:
        return np.int64(c.SPLIT)
    return np.int64(c.OK if mode == table[table[schema.MODE_STATE] + symbol - table[schema.N_COLUMNS]] else c.ILLEGAL)


@kernel
def accepts_continuation(table, memory, region, continuation):  # type: ignore[no-untyped-def]
    """Whether the parser accepts a continuation behind the draft: OK, ILLEGAL or an error.

    The draft is left as it was.

    continuation : the number of a continuation in the table. A negative one has no terminal to
        read: -1 - the number of its lookahead set, where set 0 asks nothing.
    """
    stacks = memory[region + c.DRAFT_STACKS]
    used = memory[region + c.DRAFT_USED]
    after = memory[region + c.DRAFT_AFTER_NEWLINE]
    code = np.int64(c.OK)
    while continuation >= 0 and code == c.OK:
        if has_spent(memory, region, 1):
            code = np.int64(c.TOO_LONG)
            break
        code = feed_symbol(table, memory, region, np.int64(table[table[schema.CONTINUATION_SYMBOL] + continuation]))
        continuation = np.int64(table[table[schema.CONTINUATION_NEXT] + continuation])
    if code == c.ENDED:
        code = np.int64(c.OK)
    elif code == c.OK and continuation < -1:
        code = accepts_any(
            table,
            memory,
            region,
            np.int64(memory[region + c.DRAFT_STACKS]),
            np.int64(memory[region + c.DRAFT_USED]),
            -continuation - 1,
        )
    memory[region + c.DRAFT_STACKS] = stacks
    memory[region + c.DRAFT_USED] = used
    memory[region + c.DRAFT_AFTER_NEWLINE] = after
    return code


@kernel
def read_line_breaks(table, memory, region, breaks):  # type: ignore[no-untyped-def]
    """Read some line breaks into the draft: OK or an error.

    breaks : the number of a list of line breaks (LINE_BREAKS_START).
    """
    for newline in range(
        table[table[schema.LINE_BREAKS_START] + breaks], table[table[schema.LINE_BREAKS_START] + breaks + 1]
    ):
        offset = table[schema.LINE_BREAKS] + 5 * newline
        if has_spent(memory, region, 1 + np.int64(table[offset + 1]) - np.int64(table[offset])):
            return np.int64(c.TOO_LONG)
        for i in range(table[offset], table[offset + 1]):
            code = feed_symbol(table, memory, region, np.int64(table[table[schema.LINE_BREAK_SYMBOLS] + i]))
            if code != c.OK:
                return code
        code = feed_newline(table, memory, region)
        if code != c.OK:
            return code
        # this is `Move.after`
        stop = np.int64(table[offset + 2])
        wide = np.int64(table[offset + 3])
        narrow = np.int64(table[offset + 4])
        if stop >= PLAIN:
            before = np.int64(memory[region + c.COLUMN])
            wide += before if stop == PLAIN else ((before + stop) // TAB_STOP + 1) * TAB_STOP
            narrow += memory[region + c.NARROW]
        code = indent(table, memory, region, wide, narrow)
        if code != c.OK:
            return np.int64(code)
    return np.int64(c.OK)


@kernel
def find_masks(table, memory, region, words):  # type: ignore[no-untyped-def]
    """Collect the masks of a text: OK or an error.

    words : as of `collect_mask`.
    """
    arena = region + np.int64(memory[region + c.ARENA])
    state = np.int64(memory[region + c.LEXER])
    depth_case = np.int64(table[table[schema.DEPTH_CASE_START] + state])
    n_depth_cases = table[table[schema.DEPTH_CASE_START] + state + 1] - depth_case
    depth_case += min(memory[region + c.DEPTH], n_depth_cases - 1)
    memory[region + c.WRITTEN] = 0
    memory[region + c.N_COLLECTED] = 0
    spend_nothing(memory, region)
    for lookup in range(
        table[table[schema.LOOKUP_START] + depth_case], table[table[schema.LOOKUP_START] + depth_case + 1]
    ):
        at = np.int64(table[schema.LOOKUPS]) + 3 * lookup
        breaks = np.int64(table[at])
        root = np.int64(table[at + 1])
        stacks = np.int64(memory[region + c.STACKS])
        if breaks > 0:
            begin_draft(memory, region)
            offset = table[schema.LINE_BREAKS] + 5 * table[table[schema.LINE_BREAKS_START] + breaks]
            if table[offset] == table[offset + 1]:
                code = know_newline(table, memory, region)
                if code != c.OK:
                    return code
                memory[region + c.AFTER_NEWLINE_STACKS] = memory[region + c.DRAFT_AFTER_NEWLINE]
                memory[region + c.USED] = memory[region + c.DRAFT_USED]
            code = read_line_breaks(table, memory, region, breaks)
            if code == c.ILLEGAL:
                continue
            if code != c.OK:
                return code
            stacks = np.int64(memory[region + c.DRAFT_STACKS])
        elif root < 0:
            begin_draft(memory, region)
        if table[at + 2] > 0:
            collect_mask(table, memory, region, np.int64(table[at + 2]), words)
        if root > 0:
            while stacks != 0:
                walk_stack(table, memory, region, root, first_stack(memory, arena, stacks), words)
                stacks = other_stacks(memory, arena, stacks)
                if memory[arena - c.SPENT] > c.MOST_SPENT:
                    return np.int64(c.TOO_LONG)
        elif root < 0:
            for item in range(table[table[schema.OPEN_START] - root - 1], table[table[schema.OPEN_START] - root]):
                offset = table[schema.OPEN_ITEMS] + 2 * item
                code = accepts_continuation(table, memory, region, np.int64(table[offset]))
                if code == c.OK:
                    collect_mask(table, memory, region, np.int64(table[offset + 1]), words)
                elif code != c.ILLEGAL:
                    return code
    return np.int64(c.OK)


@kernel
def finish_mask(table, memory, region, words, is_empty):  # type: ignore[no-untyped-def]
    """The result of `fill`, once the noted masks are written.

    Under a layout the masks do not know the open blocks. So the end-of-text tokens are taken out
    here if dedents cannot close these blocks.

    is_empty : whether no masks were noted.
    """
    if table[schema.EOS_IN_MASKS] == 0 and table[schema.N_EOS] > 0 and not is_empty:
        # here the masks say only that the text or a block may end: before the end of the text there
        # are dedents down to the first column
        token = table[table[schema.EOS]]
        if (words[token >> 5] >> np.int32(token & 31)) & 1:
            code = can_end(table, memory, region)
            if code == c.ILLEGAL:
                for i in range(table[schema.N_EOS]):
                    token = table[table[schema.EOS] + i]
                    words[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))
                is_empty = True
                for w in range(words.shape[0]):
                    if words[w] != 0:
                        is_empty = False
                        break
            elif code != c.OK:
                return code
    if is_empty:
        return np.int64(c.DEAD_END)
    return np.int64(c.WANTS_CACHE if memory[region + c.CACHE] < 0 else c.OK)


@kernel(entry=True)
def fill(table: Int32, memory: Int32, region: int, words: Int32) -> int:
    """Write the mask of the tokens allowed next.

    Returns OK; WANTS_CACHE, which means OK too; DEAD_END if the mask is empty; AFTER_END, and then
    nothing is written; or another error.

    words : (>= n_words,) int32; words past n_words become 0.
    """
    if memory[region + c.FINISHED]:
        return np.int64(c.AFTER_END)
    code = find_masks(table, memory, region, words)
    if code != c.OK:
        return code
    is_empty = memory[region + c.WRITTEN] == 0 and memory[region + c.N_COLLECTED] == 0
    write_collected(table, memory, region, words)
    return finish_mask(table, memory, region, words, is_empty)
