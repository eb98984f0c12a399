"""The jitted engine: reading tokens and finding masks for many texts at once, without Python objects.

`table` is one flat int32 array with everything that does not change (`maskstore/table/schema.py`): LALR tables, transducer, look-ups, stack
automaton, tokens' bytes. `memory` is one flat int32 array with a region for each text; a region begins with the places below, then
the history, then scratch (`scratch_size`), then the arena; CACHE is the place of a cache of runs elsewhere in memory (0: none, -1:
wanted). Arena records have three places: a stack frame (LR state, frame below, height), an open indent (wide column, indent below, -), its
narrow column in the record behind it (narrow column, -1, 0), or a member of a list of stacks (frame, next member, -1 - length). Records
never change, so a stack is copied by copying its number.

"Stacks" are the readings of a text: the number of a stack's top frame if there is one reading, LIST - the number of a list's first
member if there are several. What is made last has the greatest number, so the records in use end behind it.

PERF: a call from Python costs about 100 ns and 50 ns for each array; hence two or three arrays (numba 0.68). Results of several values and
long lists of arguments cost as much as the work (620 against 220 ns a token of python.lark, when both were tried); hence the state under
way is in the region too, in the W_ places, and functions return one number. A call from compiled code passes each array as seven numbers,
10 ns and more; hence `forceinline` for functions on the way of most tokens, as long as it does not take long to compile.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.columns import FORM_FEED, LINE_FEED, MOST_COLUMN, SPACE, TAB, TAB_STOP
from maskwright.analysis.jit import kernel
from maskwright.analysis.lexing.transducer import DEAD, RESTART
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.maskstore.table._table_kernels import edge_slot
from maskwright.maskstore.table.schema import (
    ACTION,
    AFTER_NEWLINE,
    AGAIN,
    ALTERNATIVES,
    BYTE_CLASS,
    DEDENT,
    DEFAULT,
    EDGE_PAIRS,
    EDGES,
    END_OUTPUT,
    ENDING_START,
    ENDINGS,
    EOS,
    EOS_IN_MASKS,
    FALLBACK,
    GOTO,
    INDENT,
    IS_NEWLINE,
    LARK_TABS,
    LOOKUP_START,
    LOOKUPS,
    MASK_IDS,
    MASKS,
    MODE_OF_STATE,
    MODE_STATE,
    N_CLASSES,
    N_COLUMNS,
    N_EDGE_SLOTS,
    N_EOS,
    N_MODES,
    N_NONTERMINALS,
    N_ROOTS,
    N_SET_WORDS,
    N_STATES,
    N_TOKENS,
    N_WORDS,
    NEWLINE,
    NEXT_STATE,
    NODES,
    OPEN_ITEMS,
    OPEN_START,
    OUTPUT,
    OUTPUT_START,
    OUTPUT_SYMBOLS,
    PATH_START,
    PATH_SYMBOLS,
    PATHS,
    PENDING,
    PENDING_START,
    REST_NEXT,
    REST_SYMBOL,
    ROOTS,
    ROWS,
    RULE_LENGTH,
    RULE_LHS,
    SET_BITS,
    SHIFT_BITS,
    STATE_FLAGS,
    SYMBOL_COLUMN,
    SYMBOL_DEPTH,
    TAB_LENGTH,
    TABS,
    TOKEN_BYTES,
    TOKEN_START,
    VIEW_START,
)
from maskwright.maskstore.tokens.events import PLAIN

# places in a text's region
(
    LEXER, COLUMN, NARROW, DEPTH, INDENTS, STACKS, FINISHED, USED, CAPACITY, N_HISTORY, MAX_HISTORY, HISTORY_AT, ARENA, CACHE, AFTER, ENDS,
    W_LEXER, W_COLUMN, W_NARROW, W_DEPTH, W_INDENTS, W_STACKS, W_USED, W_AFTER, W_FRESH, WRITTEN, N_MARKED, MARKED,
) = range(28)  # fmt: skip
MOST_MARKED = 16
REGION_HEADER = MARKED + MOST_MARKED
N_STATE = 6
"""The first places of a region, which have their like among the W_ places."""

SAVED = N_STATE + 1
"""The first places of a region are what a token changes and a rollback restores.

COLUMN and NARROW: the column of the newline under way (see `analysis.grammar.columns`).
AFTER: the stacks after a newline (before its column is obeyed) or an error, 0 if not known: several look-ups, and the bytes of an
indentation one after the other, ask for the same. ENDS: 0, or what `can_end` said of these stacks: 1 + 2 the number of the lexer's output
at the end + whether the text may end. W_ places: the state after what is being read, until it is known to be legal; W_FRESH:
the last thing read was a newline with its column.
MARKED: numbers of masks to be written to a bitmask; WRITTEN: whether the bitmask holds anything yet.
"""

KEPT = WRITTEN - W_LEXER
"""The W_ places."""

# results
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
WANTS_CACHE = 1

MAX_STACKS = 1024
NO_FRAME = -1
SPLIT = -11
"""The readings of an ambiguous text stand where different terminals compete."""

ENDED = -10
"""In place of a stack: the text was accepted as a whole."""

TOO_LONG = -12
"""More reductions than were to be tried; or more steps than a text asks for, see BELOW."""

LIST = -16
"""Stacks below this are lists."""

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
CACHE_STRIDE steps of a run, for a symbol of a rest or a path, for 16 steps of `shift_all`. Past MOST_SPENT the result is TOO_LONG.
"""

MOST_SPENT = 1 << 24
"""Some seconds."""

MOST_SINCE = 1 << 14
"""Strides of reductions in which a stack may not get lower than it was: a million reductions that neither read nor uncover anything."""

LONG_RUN = 48
"""A run over more frames than this looks for its continuation in the cache, at heights that CACHE_STRIDE divides."""

CACHE_STRIDE = 16

REMEMBERED_BITS = 15
MOST_REMEMBERED = (1 << REMEMBERED_BITS) - 1
"""Two of what a block remembers of its ends fit into a place."""

INDENT_ZONE = 128
"""Records of a settled slot (`_slot_kernels`) that only open indents use. As many places behind its header say where their frames are."""

CACHED_RUNS = 24
"""The oldest gives way to a new one: the lexer states that nested constructs of one kind go through, each with two heights and more."""


def scratch_size(table: npt.NDArray[np.int32]) -> int:
    """Places before the arena in which functions keep what they have to keep: no memory is allocated for it, so a GPU can run them.

    From the arena down: BELOW places, AGAIN bytes to be read anew (`read_byte`), and 5 MAX_STACKS of
    stacks where the grammar has conflicts (`shift_all`).
    """
    has_conflicts = bool(table[DEFAULT] > table[ALTERNATIVES])
    return BELOW + int(table[AGAIN]) + (5 * MAX_STACKS if has_conflicts else 0)


@kernel
def reset(table, memory, region):  # type: ignore[no-untyped-def]
    """Back to the start of the text; the region's capacity, history's length and arena's place are set."""
    memory[region + LEXER] = 0
    memory[region + COLUMN] = 0
    memory[region + NARROW] = 0
    memory[region + DEPTH] = 0
    memory[region + INDENTS] = 0
    memory[region + STACKS] = 2
    memory[region + FINISHED] = 0
    memory[region + USED] = 3
    memory[region + AFTER] = 0
    memory[region + ENDS] = 0
    memory[region + N_HISTORY] = 0
    memory[region + HISTORY_AT] = 0
    forget_runs(table, memory, region, 0)
    arena = region + np.int64(memory[region + ARENA])
    # the indent of column 0 and the start state
    record(memory, arena, 0, 0, NO_FRAME, 0)
    record(memory, arena, 1, 0, NO_FRAME, 0)
    record(memory, arena, 2, 0, NO_FRAME, 0)


@kernel
def record(memory, arena, number, first, second, third):  # type: ignore[no-untyped-def]
    """Write an arena record."""
    at = arena + 3 * number
    memory[at] = first
    memory[at + 1] = second
    memory[at + 2] = third


@kernel
def push(memory, arena, number, state, frame):  # type: ignore[no-untyped-def]
    """Record `number` becomes the LR state on top of a frame."""
    at = arena + 3 * number
    memory[at] = state
    memory[at + 1] = frame
    memory[at + 2] = memory[arena + 3 * frame + 2] + 1


@kernel
def first_stack(memory, arena, stacks):  # type: ignore[no-untyped-def]
    """The top frame of the first of some stacks."""
    return stacks if stacks >= 0 else np.int64(memory[arena + 3 * (LIST - stacks)])


@kernel
def other_stacks(memory, arena, stacks):  # type: ignore[no-untyped-def]
    """The list of stacks without the first, or 0 if that was all. (Record 0 is an indent.)"""
    if stacks >= 0:
        return np.int64(0)
    after = np.int64(memory[arena + 3 * (LIST - stacks) + 1])
    return np.int64(0) if after < 0 else LIST - after


@kernel
def end_of(stacks):  # type: ignore[no-untyped-def]
    """The records in use end here once these stacks are made."""
    return (stacks if stacks >= 0 else LIST - stacks) + 1


@kernel
def is_error(stacks):  # type: ignore[no-untyped-def]
    """Whether there is a result in place of stacks."""
    return LIST < stacks < 0


@kernel
def same_stack(memory, arena, a, b):  # type: ignore[no-untyped-def]
    """Whether two frames hold equal stacks. Cost: O(what they do not share)."""
    while a != b:
        if (
            a < 0
            or b < 0
            or memory[arena + 3 * a] != memory[arena + 3 * b]
            or memory[arena + 3 * a + 2] != memory[arena + 3 * b + 2]
        ):
            return False
        a = np.int64(memory[arena + 3 * a + 1])
        b = np.int64(memory[arena + 3 * b + 1])
    return True


@kernel
def is_endless(memory, arena, frame, strides):  # type: ignore[no-untyped-def]
    """Whether reductions are to be given up, after STRIDE more. frame : the top now. strides : how often this was asked in one go."""
    height = memory[arena + 3 * frame + 2]
    if strides == 0 or height < memory[arena - LOWEST]:
        memory[arena - LOWEST] = height
        memory[arena - SINCE] = 0
    memory[arena - SINCE] += 1
    memory[arena - SPENT] += 1
    return memory[arena - SINCE] > MOST_SINCE or memory[arena - SPENT] > MOST_SPENT


@kernel
def shift_one(table, memory, arena, used, capacity, frame, column, limit):  # type: ignore[no-untyped-def]
    """The stack after a terminal, made of records from `used` on; ILLEGAL, NO_ROOM, TOO_MANY (a conflict), ENDED, or TOO_LONG after
    more than `limit` reductions, FEW_REDUCTIONS or STRIDE, which is without a limit for a parse that ends."""
    columns = table[N_COLUMNS] & NATURAL
    nonterminals = table[N_NONTERMINALS] & NATURAL
    defaults = table[DEFAULT] & NATURAL
    actions = table[ACTION] & NATURAL
    gotos = table[GOTO] & NATURAL
    lengths = table[RULE_LENGTH] & NATURAL
    symbols = table[RULE_LHS] & NATURAL
    begin = used
    strides = 0
    is_few = limit < STRIDE
    state = memory[arena + 3 * frame] & NATURAL
    while used < capacity:
        rule = np.int64(table[defaults + state])
        if rule < 0:
            action = np.int64(table[actions + state * columns + column])
            if action > 0:
                if action >= ACCEPT:
                    return ENDED if action == ACCEPT else TOO_MANY
                push(memory, arena, used, action - 1, frame)
                return used
            if action == 0:
                return ILLEGAL
            rule = -action - 1
        limit -= 1
        if limit < 0:
            if is_few or is_endless(memory, arena, frame, strides):
                return TOO_LONG
            strides += 1
            limit = STRIDE
        for _ in range(table[lengths + rule]):
            frame = np.int64(memory[arena + 3 * frame + 1])
        state = (
            table[gotos + (memory[arena + 3 * frame] & NATURAL) * nonterminals + (table[symbols + rule] & NATURAL)]
            & NATURAL
        )
        # what this reduction popped and was made by this call is free again
        used = max(begin, frame + 1)
        if used >= capacity:
            break
        push(memory, arena, used, state, frame)
        frame = used
        used += 1
    return NO_ROOM


@kernel
def reduce_anyway(table, memory, arena, used, capacity, frame):  # type: ignore[no-untyped-def]
    """The top frame of a stack once all is reduced that is whatever comes, made of records from `used` on; or NO_ROOM, TOO_LONG."""
    begin = used
    n = 0
    state = memory[arena + 3 * frame] & NATURAL
    rule = np.int64(table[(table[DEFAULT] & NATURAL) + state])
    while rule >= 0:
        n += 1
        if n % STRIDE == 0 and is_endless(memory, arena, frame, n // STRIDE - 1):
            return np.int64(TOO_LONG)
        for _ in range(table[(table[RULE_LENGTH] & NATURAL) + rule]):
            frame = np.int64(memory[arena + 3 * frame + 1])
        state = (memory[arena + 3 * frame] & NATURAL) * (table[N_NONTERMINALS] & NATURAL) + (
            table[(table[RULE_LHS] & NATURAL) + rule] & NATURAL
        )
        state = table[(table[GOTO] & NATURAL) + state] & NATURAL
        used = max(begin, frame + 1)
        if used >= capacity:
            return np.int64(NO_ROOM)
        push(memory, arena, used, state, frame)
        frame = used
        rule = np.int64(table[(table[DEFAULT] & NATURAL) + state])
    return np.int64(frame)


@kernel
def shift_all(table, memory, arena, used, capacity, stacks, column):  # type: ignore[no-untyped-def]
    """`shift_one` for some stacks, following all actions of conflicts; of equal stacks one is kept."""
    agenda = arena - BELOW - np.int64(table[AGAIN]) - 5 * MAX_STACKS
    found_at = agenda + 4 * MAX_STACKS
    n_found = 0
    columns = table[N_COLUMNS]
    steps = 0
    popped = 0
    if memory[arena - SPENT] > MOST_SPENT:
        return TOO_LONG
    while stacks != 0:
        memory[agenda] = first_stack(memory, arena, stacks)
        stacks = other_stacks(memory, arena, stacks)
        n = 1
        while n > 0:
            n -= 1
            frame = np.int64(memory[agenda + n])
            steps += 1
            if n + 16 > 4 * MAX_STACKS or steps > 64 * MAX_STACKS:
                return TOO_MANY
            state = memory[arena + 3 * frame]
            rule = table[table[DEFAULT] + state]
            first = 0
            count = 1
            action = -(rule + 1)
            if rule < 0:
                action = table[table[ACTION] + state * columns + column]
                if action == 0:
                    continue
                if action >= CONFLICT:
                    first = table[ALTERNATIVES] + action - CONFLICT + 1
                    count = table[first - 1]
                    if n + count > 4 * MAX_STACKS:
                        return TOO_MANY
            for i in range(count):
                each = action if first == 0 else table[first + i]
                if each == ACCEPT:
                    return ENDED
                if used + 1 > capacity:
                    return NO_ROOM
                if each > 0:
                    push(memory, arena, used, np.int64(each - 1), frame)
                    new = True
                    for k in range(n_found):
                        if same_stack(memory, arena, np.int64(memory[found_at + k]), used):
                            new = False
                            break
                    if new:
                        if n_found + 1 > MAX_STACKS:
                            return TOO_MANY
                        memory[found_at + n_found] = used
                        n_found += 1
                        used += 1
                    continue
                below = frame
                length = table[table[RULE_LENGTH] - each - 1]
                popped += length
                if popped > 16 * STRIDE:
                    # long rules of many stacks
                    memory[arena - SPENT] += popped // 16
                    popped = 0
                    if memory[arena - SPENT] > MOST_SPENT:
                        return TOO_LONG
                for _ in range(length):
                    below = np.int64(memory[arena + 3 * below + 1])
                state = memory[arena + 3 * below]
                target = table[table[GOTO] + state * table[N_NONTERMINALS] + table[table[RULE_LHS] - each - 1]]
                push(memory, arena, used, np.int64(target), below)
                memory[agenda + n] = used
                n += 1
                used += 1
    memory[arena - SPENT] += steps // 16
    if n_found == 0:
        return ILLEGAL
    if n_found == 1:
        return np.int64(memory[found_at])
    head = NO_FRAME
    for k in range(n_found - 1, -1, -1):
        if used + 1 > capacity:
            return NO_ROOM
        record(memory, arena, used, np.int64(memory[found_at + k]), head, -1 - (n_found - k))
        head = used
        used += 1
    return LIST - head


@kernel
def shift(table, memory, arena, used, capacity, stacks, column, limit):  # type: ignore[no-untyped-def]
    """The stacks after a terminal, made of records from `used` on; or as `shift_one`. Several stacks know no limit."""
    if column < 0:
        return ILLEGAL
    if stacks >= 0:
        found = shift_one(table, memory, arena, used, capacity, stacks, column, limit)
        if found != TOO_MANY:
            return found
    return shift_all(table, memory, arena, used, capacity, stacks, column)


@kernel(forceinline=True)
def begin_work(memory, region):  # type: ignore[no-untyped-def]
    """The W_ places get the state of the text."""
    for i in range(N_STATE):
        memory[region + W_LEXER + i] = memory[region + LEXER + i]
    memory[region + W_USED] = memory[region + USED]
    memory[region + W_AFTER] = memory[region + AFTER]
    memory[region + W_FRESH] = 0


@kernel(forceinline=True)
def spend_nothing(memory, region):  # type: ignore[no-untyped-def]
    """Begin to count steps, see BELOW."""
    memory[region + (memory[region + ARENA] & NATURAL) - SPENT] = 0


@kernel
def has_spent(memory, region, steps):  # type: ignore[no-untyped-def]
    """Pay for steps; whether they were too many."""
    at = region + np.int64(memory[region + ARENA]) - SPENT
    memory[at] = min(memory[at] + steps, np.int64(MOST_SPENT + 1))
    return memory[at] > MOST_SPENT


@kernel
def stacks_after(table, memory, region, column):  # type: ignore[no-untyped-def]
    """The stacks under way after a terminal, or what came in place of them."""
    if column < 0:
        return np.int64(ILLEGAL)
    arena = region + (memory[region + ARENA] & NATURAL)
    used = memory[region + W_USED] & NATURAL
    capacity = memory[region + CAPACITY] & NATURAL
    stacks = np.int64(memory[region + W_STACKS])
    # PERF: `shift`, which would be one more call on the way
    if stacks >= 0:
        found = np.int64(shift_one(table, memory, arena, used, capacity, stacks, np.int64(column), np.int64(STRIDE)))
        if found != TOO_MANY:
            return found
    return np.int64(shift_all(table, memory, arena, used, capacity, stacks, np.int64(column)))


@kernel
def feed(table, memory, region, column):  # type: ignore[no-untyped-def]
    """Feed the parser a terminal: OK, or what came in place of stacks."""
    stacks = stacks_after(table, memory, region, column)
    if is_error(stacks):
        return stacks
    memory[region + W_STACKS] = stacks
    memory[region + W_USED] = end_of(stacks)
    memory[region + W_AFTER] = 0
    return np.int64(OK)


@kernel
def know_newline(table, memory, region):  # type: ignore[no-untyped-def]
    """W_AFTER becomes known. OK, NO_ROOM or TOO_LONG: what a call has spent says nothing of the text, so it is not kept."""
    if memory[region + W_AFTER] == 0:
        stacks = stacks_after(table, memory, region, np.int64(table[table[SYMBOL_COLUMN] + table[NEWLINE]]))
        if stacks in (NO_ROOM, TOO_LONG):
            return np.int64(stacks)
        memory[region + W_AFTER] = stacks
        if not is_error(stacks):
            memory[region + W_USED] = end_of(stacks)
    return np.int64(OK)


@kernel
def feed_newline(table, memory, region):  # type: ignore[no-untyped-def]
    """`feed` of the newline."""
    code = know_newline(table, memory, region)
    if code != OK:
        return code
    stacks = np.int64(memory[region + W_AFTER])
    if is_error(stacks):
        return stacks
    memory[region + W_STACKS] = stacks
    memory[region + W_AFTER] = 0
    return np.int64(OK)


@kernel
def indent(table, memory, region, wide, narrow):  # type: ignore[no-untyped-def]
    """After a newline that ended at a column: one indent, nothing, or dedents down to a column that is open. OK or an error."""
    arena = region + np.int64(memory[region + ARENA])
    indents = np.int64(memory[region + W_INDENTS])
    top = memory[arena + 3 * indents]
    if wide > top:
        if narrow <= memory[arena + 3 * indents + 3] or wide >= MOST_COLUMN:
            return np.int64(ILLEGAL)
        stacks = np.int64(memory[region + W_STACKS])
        if stacks >= 0:
            # PERF: asked at each line's end; where a state has no action, no reduction would help
            state = np.int64(memory[arena + 3 * stacks])
            if table[table[ACTION] + state * table[N_COLUMNS] + table[INDENT]] == 0:
                return np.int64(ILLEGAL)
        code = feed(table, memory, region, np.int64(table[INDENT]))
        if code != OK:
            return code
        used = np.int64(memory[region + W_USED])
        if used + 1 >= memory[region + CAPACITY]:
            return NO_ROOM
        record(memory, arena, used, np.int64(wide), indents, 0)
        record(memory, arena, used + 1, np.int64(narrow), NO_FRAME, 0)
        memory[region + W_INDENTS] = used
        memory[region + W_USED] = used + 2
        return OK
    # PERF: most columns asked for are no open indent's
    below = np.int64(indents)
    while wide < top:
        below = np.int64(memory[arena + 3 * below + 1])
        top = memory[arena + 3 * below]
    if wide != top or narrow != memory[arena + 3 * below + 3]:
        return np.int64(ILLEGAL)
    while indents != below:
        code = feed(table, memory, region, np.int64(table[DEDENT]))
        if code != OK:
            return code
        indents = np.int64(memory[arena + 3 * indents + 1])
    memory[region + W_INDENTS] = indents
    return np.int64(OK)


@kernel
def emit(table, memory, region, begin, end):  # type: ignore[no-untyped-def]
    """Feed emitted terminals, table[begin:end], to parser and layout. OK or an error."""
    for i in range(begin, end):
        symbol = table[i]
        is_newline = symbol == table[NEWLINE]
        if is_newline and memory[region + W_DEPTH] > 0:
            continue
        if is_newline:
            code = feed_newline(table, memory, region)
            if code == OK:
                wide, narrow = np.int64(memory[region + W_COLUMN]), np.int64(memory[region + W_NARROW])
                code = np.int64(indent(table, memory, region, wide, narrow))
        else:
            code = feed(table, memory, region, np.int64(table[table[SYMBOL_COLUMN] + symbol]))
        if code != OK:
            return code
        if not is_newline:
            memory[region + W_DEPTH] = max(0, memory[region + W_DEPTH] + table[table[SYMBOL_DEPTH] + symbol])
        memory[region + W_FRESH] = is_newline
    return np.int64(OK)


@kernel(forceinline=True)
def shifts_any(table, state, members):  # type: ignore[no-untyped-def]
    """Whether a parser with a state on top shifts some terminal of a set whatever lies below."""
    words = table[N_SET_WORDS] & NATURAL
    bits = (table[SET_BITS] & NATURAL) + members * words
    shifts = (table[SHIFT_BITS] & NATURAL) + state * words
    for w in range(words):  # noqa: SIM110
        # PERF: left early, and so no loop for vectors, which would take longer for a few words
        if table[bits + w] & table[shifts + w]:
            return True
    return False


@kernel
def accepts_any(table, memory, region, stacks, used, members):  # type: ignore[no-untyped-def]
    """Whether some terminal of a set can be shifted: OK, ILLEGAL, or an error."""
    arena = region + (memory[region + ARENA] & NATURAL)
    capacity = memory[region + CAPACITY] & NATURAL
    if stacks >= 0:
        if shifts_any(table, (memory[arena + 3 * stacks] & NATURAL), members):
            return np.int64(OK)
        stacks = reduce_anyway(table, memory, arena, used, capacity, stacks)
        if stacks < 0:
            return stacks
        used = max(used, stacks + 1)
    member = stacks
    while member != 0:
        if shifts_any(table, (memory[arena + 3 * first_stack(memory, arena, member)] & NATURAL), members):
            return np.int64(OK)
        member = other_stacks(memory, arena, member)
    words = table[N_SET_WORDS] & NATURAL
    bits = (table[SET_BITS] & NATURAL) + members * words
    for attempt in range(2):
        limit = np.int64(FEW_REDUCTIONS if attempt == 0 else STRIDE)
        is_too_long = False
        for w in range(words):
            left = (table[bits + w] & NATURAL) | (np.int64(table[bits + w] < 0) << 31)
            column = 32 * w
            while left != 0:
                if left & 255 == 0:
                    left >>= 8
                    column += 8
                    continue
                if left & 1:
                    found = shift(table, memory, arena, used, capacity, stacks, column, limit)
                    if not is_error(found) or found == ENDED:
                        return np.int64(OK)
                    if found == TOO_LONG and attempt == 0:
                        is_too_long = True
                    elif found != ILLEGAL:
                        return found
                left >>= 1
                column += 1
        if not is_too_long:
            break
    return np.int64(ILLEGAL)


@kernel
def mode_state(table, memory, arena, stacks):  # type: ignore[no-untyped-def]
    """The lexer state in which a lexeme begins: under contextual lexing the parser's state chooses it. SPLIT if stacks disagree."""
    if table[N_MODES] == 1:
        return np.int64(0)
    found = np.int64(-1)
    while stacks != 0:
        mode = table[table[MODE_OF_STATE] + memory[arena + 3 * first_stack(memory, arena, stacks)]]
        if found >= 0 and found != mode:
            return np.int64(SPLIT)
        found = np.int64(mode)
        stacks = other_stacks(memory, arena, stacks)
    return np.int64(table[table[MODE_STATE] + found])


@kernel(forceinline=True)
def read_byte(table, memory, region, byte):  # type: ignore[no-untyped-def]
    """Feed one byte to lexer, layout and parser: OK or an error. A contextual lexer that backs up reads what was pending anew."""
    again = region + (memory[region + ARENA] & NATURAL) - BELOW - (table[AGAIN] & NATURAL)
    classes = table[N_CLASSES] & NATURAL
    waiting = 0
    restarts = 0
    while True:
        state = memory[region + W_LEXER] & NATURAL
        if state == 0:
            arena = region + np.int64(memory[region + ARENA])
            state = mode_state(table, memory, arena, np.int64(memory[region + W_STACKS]))
            if state < 0:
                return state
        place = state * classes + table[table[BYTE_CLASS] + byte]
        output = np.int64(table[table[OUTPUT] + place])
        after = np.int64(table[table[NEXT_STATE] + place])
        if after == DEAD:
            return np.int64(ILLEGAL)
        if output != 0:
            symbols = np.int64(table[OUTPUT_SYMBOLS])
            code = emit(
                table,
                memory,
                region,
                symbols + table[table[OUTPUT_START] + output],
                symbols + table[table[OUTPUT_START] + output + 1],
            )
            if code != OK:
                return code
        if after == RESTART:
            begin = np.int64(table[table[PENDING_START] + state])
            end = np.int64(table[table[PENDING_START] + state + 1])
            # BOUND: a lexeme ends with each restart, so there are fewer than bytes to be read anew
            restarts += 1
            if waiting + 1 + end - begin > table[AGAIN] or restarts > table[AGAIN]:
                return np.int64(TOO_LONG)
            memory[again + waiting] = byte
            waiting += 1
            for i in range(end - 1, begin - 1, -1):
                memory[again + waiting] = table[table[PENDING] + i]
                waiting += 1
            after = np.int64(0)
        elif table[table[STATE_FLAGS] + after] & IS_NEWLINE:
            step_column(table, memory, region, byte)
        memory[region + W_LEXER] = after
        if waiting == 0:
            return np.int64(OK)
        waiting -= 1
        byte = np.int64(memory[again + waiting])


@kernel(forceinline=True)
def step_column(table, memory, region, byte):  # type: ignore[no-untyped-def]
    """The column after a byte of a newline lexeme."""
    if byte == LINE_FEED:
        memory[region + W_COLUMN] = 0
        memory[region + W_NARROW] = 0
    elif byte == SPACE:
        if memory[region + W_COLUMN] < MOST_COLUMN:
            memory[region + W_COLUMN] += 1
            memory[region + W_NARROW] += 1
    elif byte in (TAB, FORM_FEED):
        step_tab(table, memory, region, byte)


@kernel
def step_tab(table, memory, region, byte):  # type: ignore[no-untyped-def]
    """`step_column` of a tab and a form feed. BOUND: the wide column stops at MOST_COLUMN, and the narrow one is never greater."""
    wide = np.int64(memory[region + W_COLUMN])
    if table[TABS] == LARK_TABS:
        if byte == TAB:
            wide = min(wide + table[TAB_LENGTH], np.int64(MOST_COLUMN))
            memory[region + W_COLUMN] = wide
            memory[region + W_NARROW] = wide
    elif byte == FORM_FEED:
        memory[region + W_COLUMN] = 0
        memory[region + W_NARROW] = 0
    elif wide < MOST_COLUMN:
        memory[region + W_COLUMN] = min((wide // TAB_STOP + 1) * TAB_STOP, np.int64(MOST_COLUMN))
        memory[region + W_NARROW] += 1


@kernel
def back_up(table, memory, region):  # type: ignore[no-untyped-def]
    """End the lexeme under way at its last possible end, and read what is pending anew (contextual lexing). OK or an error."""
    state = np.int64(memory[region + W_LEXER])
    terminal = np.int64(table[table[FALLBACK] + state])
    if terminal >= 0:
        place = np.int64(table[OUTPUT_SYMBOLS]) + terminal
        code = emit(table, memory, region, place, place + 1)
        if code != OK:
            return code
    memory[region + W_LEXER] = 0
    for i in range(table[table[PENDING_START] + state], table[table[PENDING_START] + state + 1]):
        code = read_byte(table, memory, region, np.int64(table[table[PENDING] + i]))
        if code != OK:
            return code
    return np.int64(OK)


@kernel
def may_become(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the lexeme under way may become something that the parser accepts: OK, ILLEGAL or an error."""
    state = np.int64(memory[region + W_LEXER])
    at = np.int64(table[table[ENDING_START] + state])
    last = np.int64(table[table[ENDING_START] + state + 1])
    is_newline = at < last and table[table[ENDINGS] + at + 1] > 0 and table[table[ENDINGS] + at + 2] == table[NEWLINE]
    if is_newline and memory[region + W_DEPTH] == 0:
        code = know_newline(table, memory, region)
        if code != OK:
            return code
    depth = memory[region + W_DEPTH]
    indents = memory[region + W_INDENTS]
    stacks = memory[region + W_STACKS]
    used = memory[region + W_USED]
    after = memory[region + W_AFTER]
    fresh = memory[region + W_FRESH]
    answer = np.int64(ILLEGAL)
    while at < last and answer == ILLEGAL:
        members = np.int64(table[table[ENDINGS] + at])
        n = np.int64(table[table[ENDINGS] + at + 1])
        begin = np.int64(table[ENDINGS]) + at + 2
        at += 2 + n
        answer = np.int64(OK)
        if n > 0:
            answer = emit(table, memory, region, begin, begin + n)
        if answer == OK:
            # a set's number is doubled, and one more if the newline is in it: in brackets it is dropped and anything may come
            if members < 0 or (members & 1 and memory[region + W_DEPTH] > 0):
                members = np.int64(2 * table[AFTER_NEWLINE] if memory[region + W_FRESH] else -1)
            if members >= 0:
                answer = accepts_any(
                    table,
                    memory,
                    region,
                    np.int64(memory[region + W_STACKS]),
                    np.int64(memory[region + W_USED]),
                    members >> 1,
                )
        memory[region + W_DEPTH] = depth
        memory[region + W_INDENTS] = indents
        memory[region + W_STACKS] = stacks
        memory[region + W_USED] = used
        memory[region + W_AFTER] = after
        memory[region + W_FRESH] = fresh
    return answer


@kernel(forceinline=True)
def can_go_on(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the lexeme under way may become something that the parser accepts, or be backed up over: OK, ILLEGAL or an error."""
    # PERF: what `may_become` would find first, where it has to ask nothing else
    at = (table[ENDINGS] & NATURAL) + (
        table[(table[ENDING_START] & NATURAL) + (memory[region + W_LEXER] & NATURAL)] & NATURAL
    )
    stacks = np.int64(memory[region + W_STACKS])
    if table[at + 1] == 0 and memory[region + W_FRESH] == 0:
        members = np.int64(table[at])
        if members < 0 or (members & 1 and memory[region + W_DEPTH] > 0):
            return np.int64(OK)
        arena = region + (memory[region + ARENA] & NATURAL)
        if stacks >= 0 and shifts_any(table, (memory[arena + 3 * stacks] & NATURAL), members >> 1):
            return np.int64(OK)
        if members & 1:
            # PERF: a newline is most often what comes, and what comes of it is kept; else `may_become` asks for all
            code = know_newline(table, memory, region)
            if code != OK or not is_error(memory[region + W_AFTER]):
                return code
    answer = may_become(table, memory, region)
    if table[N_MODES] == 1 or answer != ILLEGAL:
        return answer
    kept = region + np.int64(memory[region + ARENA]) - BELOW
    left = np.int64(table[AGAIN])  # BOUND: a lexeme of pending bytes ends each time
    for i in range(KEPT):
        memory[kept + i] = memory[region + W_LEXER + i]
    while answer == ILLEGAL:
        state = np.int64(memory[region + W_LEXER])
        if table[table[PENDING_START] + state] == table[table[PENDING_START] + state + 1]:
            break
        left -= 1
        answer = back_up(table, memory, region) if left >= 0 else np.int64(TOO_LONG)
        if answer == OK:
            answer = may_become(table, memory, region)
        else:
            break
    for i in range(KEPT):
        memory[region + W_LEXER + i] = memory[kept + i]
    return answer


@kernel
def can_end(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the text so far is legal as it stands: OK, ILLEGAL or an error.

    PERF: asked for each mask behind a newline. The answer is kept until the stacks change, and each open block remembers what came of
    closing it (`close_blocks`).
    """
    kept = np.int64(table[(table[END_OUTPUT] & NATURAL) + (memory[region + LEXER] & NATURAL)])
    if kept >= 0 and (memory[region + ENDS] - 1) >> 1 == kept:
        return np.int64(ILLEGAL if memory[region + ENDS] & 1 else OK)
    begin_work(memory, region)
    spend_nothing(memory, region)
    left = np.int64(table[AGAIN])
    while table[(table[END_OUTPUT] & NATURAL) + (memory[region + W_LEXER] & NATURAL)] == RESTART:
        left -= 1
        code = back_up(table, memory, region) if left >= 0 else np.int64(TOO_LONG)
        if code != OK:
            return code
    output = np.int64(table[(table[END_OUTPUT] & NATURAL) + (memory[region + W_LEXER] & NATURAL)])
    if output < 0:
        return np.int64(ILLEGAL)
    # a newline that ends the text is behind its last line, whatever blanks follow
    memory[region + W_COLUMN] = 0
    memory[region + W_NARROW] = 0
    symbols = table[OUTPUT_SYMBOLS] & NATURAL
    starts = (table[OUTPUT_START] & NATURAL) + output
    begin = symbols + (table[starts] & NATURAL)
    end = symbols + (table[starts + 1] & NATURAL)
    has_newline = end > begin and table[end - 1] == table[NEWLINE]
    code = np.int64(OK)
    if end - has_newline > begin:
        code = emit(table, memory, region, begin, end - has_newline)
    if code == OK and has_newline and memory[region + W_DEPTH] == 0:
        code = feed_newline(table, memory, region)
    if code == OK:
        code = np.int64(close_blocks(table, memory, region))
    if kept >= 0 and ILLEGAL <= code <= OK:
        memory[region + ENDS] = 1 + 2 * kept + (code == OK)
    return code


@kernel(forceinline=True)
def frame_of_block(memory, region, indents):  # type: ignore[no-untyped-def]
    """The frame on top when a block's indent was made: the one before the record of the indent; NO_FRAME if a settled slot has lost it.

    INVARIANT: where nothing is to be rolled back, HISTORY_AT is 0, but in a settled slot.
    """
    if memory[region + MAX_HISTORY] == 0 and memory[region + HISTORY_AT] != 0 and indents < INDENT_ZONE:
        return np.int64(memory[region + REGION_HEADER + indents])
    return np.int64(indents - 1)


@kernel
def close_blocks(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the state under way may end the text once dedents have closed all blocks: OK, ILLEGAL or an error.

    Mostly the frame of a block's indent was made just before the record of the indent, and the dedent completes a rule that goes back to
    it. What follows then depends on the state after the dedent alone; so the record keeps, in its third place, 1 + 2 that state +
    whether the text may end, for the last two such states (a block may end behind a newline and, at the end of the text, without one).
    In a settled slot, where frames change places, the frame is looked up (`frame_of_block`).
    """
    arena = region + (memory[region + ARENA] & NATURAL)
    indents = memory[region + W_INDENTS] & NATURAL
    asked = np.int64(-1)  # the first block whose answer is not known
    key = np.int64(0)
    answer = np.int64(OK)
    while answer == OK and memory[arena + 3 * indents + 1] >= 0:
        answer = np.int64(feed(table, memory, region, np.int64(table[DEDENT])))
        if answer != OK:
            break
        stacks = np.int64(memory[region + W_STACKS])
        if asked < 0 and stacks >= 0:
            state = memory[arena + 3 * stacks] & NATURAL
            rule = np.int64(table[(table[DEFAULT] & NATURAL) + state])
            left = np.int64(table[(table[RULE_LENGTH] & NATURAL) + rule]) if rule >= 0 else np.int64(0)
            frame = stacks
            opened = frame_of_block(memory, region, indents)
            while left > 0 and frame > opened:
                frame = np.int64(memory[arena + 3 * frame + 1])
                left -= 1
            if frame == opened and opened >= 0:
                key = 1 + 2 * state
                known = memory[arena + 3 * indents + 2] & NATURAL
                for _ in range(2):
                    if known & MOST_REMEMBERED == key or known & MOST_REMEMBERED == key + 1:
                        return np.int64(ILLEGAL if known & 1 else OK)
                    known >>= REMEMBERED_BITS
                if key < MOST_REMEMBERED:
                    asked = indents
        indents = memory[arena + 3 * indents + 1] & NATURAL
    if answer == OK:
        answer = np.int64(feed(table, memory, region, np.int64(table[N_COLUMNS]) - 1))
        if answer == ENDED:
            answer = np.int64(OK)
        elif answer == OK:
            answer = np.int64(ILLEGAL)
    if asked >= 0 and ILLEGAL <= answer <= OK:
        known = (memory[arena + 3 * asked + 2] & NATURAL) & MOST_REMEMBERED
        memory[arena + 3 * asked + 2] = (known << REMEMBERED_BITS) + key + (answer == OK)
    return answer


@kernel
def read_bytes(table, data, from_tokens, begin, end, memory, region, commit):  # type: ignore[no-untyped-def]
    """Feed bytes; the region changes only if they are legal and `commit` holds.

    data : int32 bytes; with from_tokens they are the tokens' and data is not used. Returns OK or an error.
    """
    begin_work(memory, region)
    begin = read_plain(table, data, from_tokens, begin, end, memory, region)
    return read_rest(table, data, from_tokens, begin, end, memory, region, commit)


@kernel(forceinline=True)
def byte_at(table, data, from_tokens, at):  # type: ignore[no-untyped-def]
    """A byte of `read_bytes`."""
    if from_tokens:
        return (table[(table[TOKEN_BYTES] & NATURAL) + (at >> 2)] >> (8 * (at & 3))) & 255
    return np.int64(data[at]) & 255


@kernel(forceinline=True)
def read_plain(table, data, from_tokens, begin, end, memory, region):  # type: ignore[no-untyped-def]
    """Feed bytes as long as `read_byte` would only take the next state: how far that is. Arguments as of `read_bytes`."""
    classes = table[N_CLASSES] & NATURAL
    class_of = table[BYTE_CLASS] & NATURAL
    next_state = table[NEXT_STATE] & NATURAL
    output = table[OUTPUT] & NATURAL
    flags = table[STATE_FLAGS] & NATURAL
    is_contextual = table[N_MODES] > 1
    state = memory[region + W_LEXER] & NATURAL
    at = begin
    while at < end:
        byte = byte_at(table, data, from_tokens, at)
        step = state * classes + (table[class_of + byte] & NATURAL)
        after = np.int64(table[next_state + step])
        if after < 0 or table[output + step] != 0 or (is_contextual and state == 0):
            break
        if table[flags + after] & IS_NEWLINE:
            step_column(table, memory, region, byte)
        state = after
        at += 1
    memory[region + W_LEXER] = state
    return at


@kernel(forceinline=True)
def read_rest(table, data, from_tokens, begin, end, memory, region, commit):  # type: ignore[no-untyped-def]
    """What `read_bytes` does once the work is begun."""
    spend_nothing(memory, region)
    while begin < end:
        code = read_byte(table, memory, region, byte_at(table, data, from_tokens, begin))
        if code != OK:
            return code
        begin = read_plain(table, data, from_tokens, begin + 1, end, memory, region)
    code = can_go_on(table, memory, region)
    if code == OK and commit:
        remember(memory, region)
        if memory[region + STACKS] != memory[region + W_STACKS]:
            memory[region + ENDS] = 0  # BOUND: new stacks have a greater number than those that they come from
        for i in range(N_STATE):
            memory[region + LEXER + i] = memory[region + W_LEXER + i]
        memory[region + USED] = memory[region + W_USED]
        memory[region + AFTER] = memory[region + W_AFTER]
    return code


@kernel(forceinline=True)
def remember(memory, region):  # type: ignore[no-untyped-def]
    """Add what a rollback restores to the history, which holds the last MAX_HISTORY tokens."""
    longest = memory[region + MAX_HISTORY]
    if longest == 0:
        return
    at = np.int64(memory[region + HISTORY_AT])
    for i in range(SAVED):
        memory[region + REGION_HEADER + at * SAVED + i] = memory[region + i]
    memory[region + HISTORY_AT] = at + 1 if at + 1 < longest else 0
    if memory[region + N_HISTORY] < longest:
        memory[region + N_HISTORY] += 1


@kernel
def rollback(table, memory, region, n):  # type: ignore[no-untyped-def]
    """Take back the last n tokens, 1 <= n <= those remembered."""
    longest = memory[region + MAX_HISTORY]
    at = (memory[region + HISTORY_AT] - n) % longest
    for i in range(SAVED):
        memory[region + i] = memory[region + REGION_HEADER + at * SAVED + i]
    memory[region + AFTER] = 0
    memory[region + ENDS] = 0
    memory[region + HISTORY_AT] = at
    memory[region + N_HISTORY] -= n
    forget_runs(table, memory, region, memory[region + USED])


@kernel
def read_token(table, memory, region, token, commit):  # type: ignore[no-untyped-def]
    """Feed one token, end-of-text tokens included. Returns OK or an error."""
    if token < 0 or token >= table[N_TOKENS]:
        return OUT_OF_RANGE
    if memory[region + FINISHED]:
        return AFTER_END
    begin = np.int64(table[table[TOKEN_START] + token])
    end = np.int64(table[table[TOKEN_START] + token + 1])
    if begin < end:
        return read_bytes(table, memory, True, begin, end, memory, region, commit)
    for i in range(table[N_EOS]):
        if table[table[EOS] + i] == token:
            answer = can_end(table, memory, region)
            if answer == ILLEGAL:
                return NOT_COMPLETE
            if answer == OK and commit:
                remember(memory, region)
                memory[region + FINISHED] = 1
            return answer
    return NO_TEXT


@kernel
def add_words(words, row):  # type: ignore[no-untyped-def]
    """OR a row into words."""
    # PERF: over two views the loop is vectorised; with offsets in the indices, or as a slice assignment, it takes 5-8 times as long
    # (85 against 480 and 770 ns for 1,000 words, numba 0.68)
    for w in range(row.shape[0]):
        words[w] |= row[w]


@kernel
def add_ids(table, mask, words):  # type: ignore[no-untyped-def]
    """Add to words the ids that a mask has beside its row."""
    begin = np.int64(table[MASK_IDS]) + table[table[MASKS] + 3 * mask + 1]
    ids = table[begin : begin + table[table[MASKS] + 3 * mask + 2]]
    for i in range(ids.shape[0]):
        # PERF: unsigned, so that no index may count from the end: half the time
        token = np.uint32(ids[i])
        words[np.uint64(token >> np.uint32(5))] |= np.int32(np.uint32(1) << (token & np.uint32(31)))


@kernel
def add_tokens(table, mask, words):  # type: ignore[no-untyped-def]
    """OR a mask into words."""
    row = np.int64(table[table[MASKS] + 3 * mask])
    if row >= 0:
        n_words = np.int64(table[N_WORDS])
        place = np.int64(table[ROWS]) + row * n_words
        add_words(words, table[place : place + n_words])
    add_ids(table, mask, words)


@kernel
def mark(table, memory, region, mask, words):  # type: ignore[no-untyped-def]
    """Note a mask to be written. words : as in `fill`; written to when there is no room for more notes.

    Nested constructs of one kind mark the same mask at each depth: it is noted once.
    """
    n = memory[region + N_MARKED]
    for i in range(n):
        if memory[region + MARKED + i] == mask:
            return
    if n == MOST_MARKED:
        write_marked(table, memory, region, words)
        n = memory[region + N_MARKED]
    memory[region + MARKED + n] = mask
    memory[region + N_MARKED] = n + 1


@kernel
def write_marked(table, memory, region, words):  # type: ignore[no-untyped-def]
    """OR the masks noted into words; the first time, write over what words hold."""
    n_words = np.int64(table[N_WORDS])
    rows = np.int64(table[ROWS])
    first = np.int64(-1)
    is_written = memory[region + WRITTEN] != 0
    for i in range(memory[region + N_MARKED]):
        row = np.int64(table[table[MASKS] + 3 * memory[region + MARKED + i]])
        if row < 0 or row == first:
            continue
        place = rows + row * n_words
        if is_written:
            add_words(words, table[place : place + n_words])
        elif first < 0:
            first = row
        else:
            begin = rows + first * n_words
            write_two(words, table[begin : begin + n_words], table[place : place + n_words])
            is_written = True
    if not is_written:
        begin = rows + first * n_words if first >= 0 else rows
        write_one(words, table[begin : begin + (n_words if first >= 0 else 0)])
    for i in range(memory[region + N_MARKED]):
        add_ids(table, np.int64(memory[region + MARKED + i]), words)
    memory[region + WRITTEN] = 1
    memory[region + N_MARKED] = 0


@kernel
def write_one(words, row):  # type: ignore[no-untyped-def]
    """words = row, and 0 behind it."""
    for w in range(row.shape[0]):
        words[w] = row[w]
    for w in range(row.shape[0], words.shape[0]):
        words[w] = 0


@kernel
def write_two(words, a, b):  # type: ignore[no-untyped-def]
    """words = a | b, and 0 behind them."""
    for w in range(a.shape[0]):
        words[w] = a[w] | b[w]
    for w in range(a.shape[0], words.shape[0]):
        words[w] = 0


@kernel
def find_run(memory, cache, width, frame, node):  # type: ignore[no-untyped-def]
    """Where the cache has a run from a frame and a node, or -1."""
    for i in range(CACHED_RUNS):
        slot = cache + 1 + i * width
        if memory[slot] == frame and memory[slot + 1] == node:
            return slot
    return np.int64(-1)


@kernel
def next_edge(table, node, state):  # type: ignore[no-untyped-def]
    """Where the target and the mask of a node's edge are, for the LR state of the next frame. The node is no root."""
    nodes = (table[NODES] & NATURAL) - 2 * ((table[N_ROOTS] & NATURAL) + 1)
    pairs = table[EDGE_PAIRS] & NATURAL
    if table[nodes + 2 * node + 1] != 0:
        # exceptions from the node's default edge
        edges = table[EDGES] & NATURAL
        n_slots = table[N_EDGE_SLOTS] & NATURAL
        key = np.int32(node * (table[N_STATES] & NATURAL) + state)
        at = edge_slot(key, n_slots)
        while True:
            found = table[edges + 2 * at]
            if found == key:
                return pairs + 2 * (table[edges + 2 * at + 1] & NATURAL)
            if found < 0:
                break
            at = at + 1 if at + 1 < n_slots else 0
    return pairs + 2 * (table[nodes + 2 * node] & NATURAL)


@kernel
def run(table, memory, region, node, frame, words):  # type: ignore[no-untyped-def]
    """Mark the masks of the tokens that a stack allows, from a root node of the automaton.

    Right-recursive texts (nested ternaries, lambdas) make a run go down the whole stack. What a node adds from a frame down never
    changes, so past LONG_RUN frames it is kept, for one frame of each run: the next run finds it after a few more steps.
    """
    arena = region + (memory[region + ARENA] & NATURAL)
    n_cells = table[N_STATES] & NATURAL
    pairs = table[EDGE_PAIRS] & NATURAL
    pair = pairs + 2 * (table[(table[ROOTS] & NATURAL) + (node - 1) * n_cells + memory[arena + 3 * frame]] & NATURAL)
    steps = 1
    kept = 0
    while True:
        node = table[pair] & NATURAL
        mask = table[pair + 1] & NATURAL
        if mask > 0:
            mark(table, memory, region, mask, words)
            if kept > 0:
                add_tokens(table, mask, memory[kept : kept + np.int64(table[N_WORDS])])
        if node == 0:
            return
        frame = np.int64(memory[arena + 3 * frame + 1])
        if frame < 0:
            return  # only a table that no closure made leads below the stack
        steps += 1
        if steps > LONG_RUN and memory[arena + 3 * frame + 2] % CACHE_STRIDE == 0:
            has_spent(memory, region, 1)  # `find_masks` asks
            if memory[region + CACHE] == 0:
                memory[region + CACHE] = -1  # the caller makes one
            elif memory[region + CACHE] > 0 and frame < memory[region + USED]:
                width = 2 + np.int64(table[N_WORDS])
                cache = np.int64(memory[region + CACHE])
                slot = find_run(memory, cache, width, frame, node)
                if slot >= 0:
                    write_marked(table, memory, region, words)
                    add_words(words, memory[slot + 2 : slot + width])
                    if kept > 0 and kept != slot + 2:
                        add_words(memory[kept : kept + width - 2], memory[slot + 2 : slot + width])
                    return
                if kept == 0:
                    oldest = max(0, memory[cache])
                    memory[cache] = oldest + 1 if oldest + 1 < CACHED_RUNS else 0
                    slot = cache + 1 + oldest * width
                    kept = slot + 2
                    memory[slot] = frame
                    memory[slot + 1] = node
                    write_one(memory[kept : slot + width], table[:0])
        pair = next_edge(table, node, memory[arena + 3 * frame])


@kernel
def feed_symbol(table, memory, region, symbol):  # type: ignore[no-untyped-def]
    """`feed` of a column; or, for a symbol past the columns, the question whether the next lexeme is read in that mode."""
    if symbol < table[N_COLUMNS]:
        return feed(table, memory, region, symbol)
    arena = region + np.int64(memory[region + ARENA])
    mode = mode_state(table, memory, arena, np.int64(memory[region + W_STACKS]))
    if mode == SPLIT:
        return np.int64(SPLIT)
    return np.int64(OK if mode == table[table[MODE_STATE] + symbol - table[N_COLUMNS]] else ILLEGAL)


@kernel
def accepts_rest(table, memory, region, rest):  # type: ignore[no-untyped-def]
    """Whether the parser accepts a rest, from the state in the W_ places: OK, ILLEGAL or an error. The state is left as it was."""
    stacks = memory[region + W_STACKS]
    used = memory[region + W_USED]
    after = memory[region + W_AFTER]
    code = np.int64(OK)
    while rest >= 0 and code == OK:
        if has_spent(memory, region, 1):
            code = np.int64(TOO_LONG)
            break
        code = feed_symbol(table, memory, region, np.int64(table[table[REST_SYMBOL] + rest]))
        rest = np.int64(table[table[REST_NEXT] + rest])
    if code == ENDED:
        code = np.int64(OK)
    elif code == OK and rest < -1:
        code = accepts_any(
            table,
            memory,
            region,
            np.int64(memory[region + W_STACKS]),
            np.int64(memory[region + W_USED]),
            -rest - 1,
        )
    memory[region + W_STACKS] = stacks
    memory[region + W_USED] = used
    memory[region + W_AFTER] = after
    return code


@kernel
def pass_newlines(table, memory, region, path):  # type: ignore[no-untyped-def]
    """The newlines of a path, from the state in the W_ places: OK or an error."""
    for newline in range(table[table[PATH_START] + path], table[table[PATH_START] + path + 1]):
        place = table[PATHS] + 5 * newline
        if has_spent(memory, region, 1 + np.int64(table[place + 1]) - np.int64(table[place])):
            return np.int64(TOO_LONG)
        for i in range(table[place], table[place + 1]):
            code = feed_symbol(table, memory, region, np.int64(table[table[PATH_SYMBOLS] + i]))
            if code != OK:
                return code
        code = feed_newline(table, memory, region)
        if code != OK:
            return code
        # as in `Move.after`
        stop = np.int64(table[place + 2])
        wide = np.int64(table[place + 3])
        narrow = np.int64(table[place + 4])
        if stop >= PLAIN:
            before = np.int64(memory[region + COLUMN])
            wide += before if stop == PLAIN else ((before + stop) // TAB_STOP + 1) * TAB_STOP
            narrow += memory[region + NARROW]
        code = indent(table, memory, region, wide, narrow)
        if code != OK:
            return np.int64(code)
    return np.int64(OK)


@kernel
def find_masks(table, memory, region, words):  # type: ignore[no-untyped-def]
    """Mark the masks of a text. words : as in `fill`. OK or an error."""
    arena = region + np.int64(memory[region + ARENA])
    state = np.int64(memory[region + LEXER])
    view = np.int64(table[table[VIEW_START] + state])
    n_views = table[table[VIEW_START] + state + 1] - view
    view += min(memory[region + DEPTH], n_views - 1)
    memory[region + WRITTEN] = 0
    memory[region + N_MARKED] = 0
    spend_nothing(memory, region)
    for lookup in range(table[table[LOOKUP_START] + view], table[table[LOOKUP_START] + view + 1]):
        at = np.int64(table[LOOKUPS]) + 3 * lookup
        path = np.int64(table[at])
        root = np.int64(table[at + 1])
        stacks = np.int64(memory[region + STACKS])
        if path > 0:
            begin_work(memory, region)
            place = table[PATHS] + 5 * table[table[PATH_START] + path]
            if table[place] == table[place + 1]:
                code = know_newline(table, memory, region)
                if code != OK:
                    return code
                memory[region + AFTER] = memory[region + W_AFTER]
                memory[region + USED] = memory[region + W_USED]
            code = pass_newlines(table, memory, region, path)
            if code == ILLEGAL:
                continue
            if code != OK:
                return code
            stacks = np.int64(memory[region + W_STACKS])
        elif root < 0:
            begin_work(memory, region)
        if table[at + 2] > 0:
            mark(table, memory, region, np.int64(table[at + 2]), words)
        if root > 0:
            while stacks != 0:
                run(table, memory, region, root, first_stack(memory, arena, stacks), words)
                stacks = other_stacks(memory, arena, stacks)
                if memory[arena - SPENT] > MOST_SPENT:
                    return np.int64(TOO_LONG)
        elif root < 0:
            for item in range(table[table[OPEN_START] - root - 1], table[table[OPEN_START] - root]):
                place = table[OPEN_ITEMS] + 2 * item
                code = accepts_rest(table, memory, region, np.int64(table[place]))
                if code == OK:
                    mark(table, memory, region, np.int64(table[place + 1]), words)
                elif code != ILLEGAL:
                    return code
    return np.int64(OK)


@kernel
def fill(table, memory, region, words):  # type: ignore[no-untyped-def]
    """Write the mask of the tokens allowed next. words : (>= n_words,) int32. Returns OK, WANTS_CACHE (all the same OK) or an error."""
    if memory[region + FINISHED]:
        return np.int64(AFTER_END)
    code = find_masks(table, memory, region, words)
    if code != OK:
        return code
    is_empty = memory[region + WRITTEN] == 0 and memory[region + N_MARKED] == 0
    write_marked(table, memory, region, words)
    return finish_mask(table, memory, region, words, is_empty)


@kernel
def finish_mask(table, memory, region, words, is_empty):  # type: ignore[no-untyped-def]
    """What `fill` does once the marked masks are written. is_empty : whether there were none."""
    if table[EOS_IN_MASKS] == 0 and table[N_EOS] > 0 and not is_empty:
        # under layout the masks say only that the text or a block may end: dedents down to the first column come before the end
        token = table[table[EOS]]
        if (words[token >> 5] >> np.int32(token & 31)) & 1:
            code = can_end(table, memory, region)
            if code == ILLEGAL:
                for i in range(table[N_EOS]):
                    token = table[table[EOS] + i]
                    words[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))
                is_empty = True
                for w in range(words.shape[0]):
                    if words[w] != 0:
                        is_empty = False
                        break
            elif code != OK:
                return code
    if is_empty:
        return np.int64(DEAD_END)
    return np.int64(WANTS_CACHE if memory[region + CACHE] < 0 else OK)


@kernel
def forget_runs(table, memory, region, first):  # type: ignore[no-untyped-def]
    """Drop from the cache of runs what it holds of records from `first` on: they are about to change."""
    if memory[region + CACHE] > 0:
        for slot in range(CACHED_RUNS):
            at = memory[region + CACHE] + 1 + slot * (2 + np.int64(table[N_WORDS]))
            if memory[at] >= first:
                memory[at] = -1


@kernel
def collect(table, memory, region, moved):  # type: ignore[no-untyped-def]
    """Drop the arena records that neither the text nor its history needs. moved : (capacity,) int32, scratch.

    INVARIANT: a record refers to earlier records only, but for an indent's narrow column, right behind it, which refers to none; so one
    pass down marks all, indents by 1 and the others by 0, and one pass up moves all.
    """
    arena = region + np.int64(memory[region + ARENA])
    used = np.int64(memory[region + USED])
    moved[:used] = -1
    longest = memory[region + MAX_HISTORY]
    for back in range(memory[region + N_HISTORY] + 1):
        at = region
        if back > 0:
            at = region + REGION_HEADER + ((memory[region + HISTORY_AT] - back) % longest) * SAVED
        moved[memory[at + INDENTS]] = 1
        moved[end_of(np.int64(memory[at + STACKS])) - 1] = 0
    for number in range(used - 1, -1, -1):
        if moved[number] < 0:
            continue
        at = arena + 3 * number
        if memory[at + 1] >= 0:
            moved[memory[at + 1]] = moved[number]
        if moved[number] == 1:
            moved[number + 1] = 0  # its narrow column
        if memory[at + 2] < 0:
            moved[memory[at]] = 0
    kept = 0
    for number in range(used):
        if moved[number] < 0:
            continue
        at = arena + 3 * number
        second = memory[at + 1]
        # what a block remembers of its end (`close_blocks`) holds for the old numbers
        third = 0 if moved[number] == 1 else memory[at + 2]
        first = moved[memory[at]] if third < 0 else memory[at]
        record(
            memory, arena, kept, np.int64(first), np.int64(moved[second] if second >= 0 else second), np.int64(third)
        )
        moved[number] = kept
        kept += 1
    for back in range(memory[region + N_HISTORY] + 1):
        at = region
        if back > 0:
            at = region + REGION_HEADER + ((memory[region + HISTORY_AT] - back) % longest) * SAVED
        memory[at + INDENTS] = moved[memory[at + INDENTS]]
        stacks = memory[at + STACKS]
        memory[at + STACKS] = moved[stacks] if stacks >= 0 else LIST - moved[LIST - stacks]
    memory[region + USED] = kept
    memory[region + AFTER] = 0
    memory[region + ENDS] = 0
    forget_runs(table, memory, region, 0)


@kernel
def make_room(table, memory, region):  # type: ignore[no-untyped-def]
    """Free the records that nothing needs; whether that left half of the arena free, so that it need not grow."""
    collect(table, memory, region, np.empty(memory[region + CAPACITY], np.int32))
    return 2 * memory[region + USED] <= memory[region + CAPACITY]


@kernel
def fill_one(table, memory, words):  # type: ignore[no-untyped-def]
    """`fill` for the text of a matcher, whose region is at 0."""
    code = fill(table, memory, np.int64(0), words)
    if code == NO_ROOM and make_room(table, memory, np.int64(0)):
        code = fill(table, memory, np.int64(0), words)
    return code


@kernel
def advance_one(table, memory, token):  # type: ignore[no-untyped-def]
    """`read_token` for the text of a matcher."""
    code = read_token(table, memory, np.int64(0), np.int64(token), True)
    if code == NO_ROOM and make_room(table, memory, np.int64(0)):
        code = read_token(table, memory, np.int64(0), np.int64(token), True)
    return code


@kernel
def replay(table, memory, tokens, begin, words, result):  # type: ignore[no-untyped-def]
    """Fill, look a token up in the mask, and advance by it, for tokens[begin:] and the text of a matcher.

    tokens : (n,) int64, each in range. words : as in `fill`. Returns how far it came; result[0] is OK at the end, ILLEGAL before a token
    that the mask has not, or what `fill` or `read_token` stopped with; result[1] whether it was `fill`.
    """
    for at in range(begin, tokens.shape[0]):
        token = tokens[at]
        result[1] = 1
        result[0] = fill_one(table, memory, words)
        if result[0] != OK:
            return at
        result[1] = 0
        if not (words[token >> 5] >> np.int32(token & 31)) & 1:
            result[0] = ILLEGAL
            return at
        result[0] = advance_one(table, memory, token)
        if result[0] != OK:
            return at
    result[0] = OK
    return tokens.shape[0]
