"""The jitted engine: reading tokens and finding masks for many texts at once, without Python objects.

`table` is one flat int32 array with everything that does not change (`engine_table`): LALR tables, transducer, look-ups, stack
automaton, tokens' bytes. `memory` is one flat int32 array with a region for each text; a region begins with the places below, then
the history, then the arena; CACHE is the place of a cache of runs elsewhere in memory (0: none, -1: wanted). Arena records have three
places: a stack frame (LR state, frame below, height), an open indent (column,
indent below, -), or a member of a list of stacks (frame, next member, -1 - length). Records never change, so a stack is copied by copying
its number.

PERF: a call from Python costs about 100 ns and 50 ns for each array; hence two or three arrays (numba 0.68).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from maskwright.analysis.lexing.transducer import DEAD, RESTART
from maskwright.analysis.lr.tables import ACCEPT, CONFLICT
from maskwright.maskstore._engine_kernels import edge_slot
from maskwright.maskstore._parse_kernels import (
    ACTION,
    ALTERNATIVES,
    DEFAULT,
    GOTO,
    N_COLUMNS,
    N_NONTERMINALS,
    N_STATES,
    RULE_LENGTH,
    RULE_LHS,
)
from maskwright.maskstore.engine_table import (
    AFTER_NEWLINE,
    AGAIN,
    BYTE_CLASS,
    DEDENT,
    EDGE_PAIRS,
    EDGES,
    END_OUTPUT,
    ENDING_START,
    ENDINGS,
    EOS,
    EOS_IN_MASKS,
    FALLBACK,
    INDENT,
    IS_NEWLINE,
    LOOKUP_START,
    LOOKUPS,
    MASKS,
    MODE_OF_STATE,
    MODE_STATE,
    N_CLASSES,
    N_EDGE_SLOTS,
    N_EOS,
    N_MODES,
    N_ROOTS,
    N_SET_WORDS,
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
    SET_BITS,
    SHIFT_BITS,
    STATE_FLAGS,
    SYMBOL_COLUMN,
    SYMBOL_DEPTH,
    TAB_LENGTH,
    TOKEN_BYTES,
    TOKEN_START,
    VIEW_START,
)

# places in a text's region
(
    LEXER, COLUMN, DEPTH, INDENTS, STACKS, FINISHED, USED, CAPACITY, N_HISTORY, MAX_HISTORY, HISTORY_AT, ARENA, CACHE,
) = range(13)  # fmt: skip
REGION_HEADER = 16
SAVED = 6
"""The first places of a region are what a token changes and a rollback restores."""

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

LINE_FEED = 10
SPACE = 32
TAB = 9

CACHE_STRIDE = 16
"""A run over more frames than this looks for its continuation in the cache."""

CACHED_RUNS = 32


@njit(cache=True, nogil=True)
def reset(table, memory, region):  # type: ignore[no-untyped-def]
    """Back to the start of the text; the region's capacity, history's length and arena's place are set."""
    memory[region + LEXER] = 0
    memory[region + COLUMN] = 0
    memory[region + DEPTH] = 0
    memory[region + INDENTS] = 0
    memory[region + STACKS] = 2
    memory[region + FINISHED] = 0
    memory[region + USED] = 3
    memory[region + N_HISTORY] = 0
    memory[region + HISTORY_AT] = 0
    forget_runs(table, memory, region, 0)
    arena = region + np.int64(memory[region + ARENA])
    # the indent of column 0, the start state, and the list of just that stack
    record(memory, arena, 0, 0, NO_FRAME, 0)
    record(memory, arena, 1, 0, NO_FRAME, 0)
    record(memory, arena, 2, 1, NO_FRAME, -2)


@njit(cache=True, nogil=True)
def record(memory, arena, number, first, second, third):  # type: ignore[no-untyped-def]
    """Write an arena record."""
    at = arena + 3 * number
    memory[at] = first
    memory[at + 1] = second
    memory[at + 2] = third


@njit(cache=True, nogil=True)
def push(memory, arena, number, state, frame):  # type: ignore[no-untyped-def]
    """Record `number` becomes the LR state on top of a frame."""
    at = arena + 3 * number
    memory[at] = state
    memory[at + 1] = frame
    memory[at + 2] = memory[arena + 3 * frame + 2] + 1


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def shift_one(table, memory, arena, used, capacity, frame, column):  # type: ignore[no-untyped-def]
    """A stack after a terminal, and the arena's records in use: ILLEGAL, NO_ROOM, TOO_MANY (a conflict), ENDED or the frame."""
    columns = table[N_COLUMNS]
    begin = used
    while True:
        state = memory[arena + 3 * frame]
        rule = table[table[DEFAULT] + state]
        if rule < 0:
            action = table[table[ACTION] + state * columns + column]
            if action == 0:
                return ILLEGAL, begin
            if action >= ACCEPT:
                if action == ACCEPT:
                    return ENDED, begin
                return TOO_MANY, begin
            if action > 0:
                if used + 1 > capacity:
                    return NO_ROOM, begin
                push(memory, arena, used, np.int64(action - 1), frame)
                return used, used + 1
            rule = -action - 1
        for _ in range(table[table[RULE_LENGTH] + rule]):
            frame = np.int64(memory[arena + 3 * frame + 1])
        state = memory[arena + 3 * frame]
        # what this reduction popped and was made by this call is free again
        used = max(begin, frame + 1)
        if used + 1 > capacity:
            return NO_ROOM, begin
        target = table[table[GOTO] + state * table[N_NONTERMINALS] + table[table[RULE_LHS] + rule]]
        push(memory, arena, used, np.int64(target), frame)
        frame = used
        used += 1


@njit(cache=True, nogil=True)
def shift_all(table, memory, arena, used, capacity, stacks, column):  # type: ignore[no-untyped-def]
    """`shift_one` for a list of stacks, following all actions of conflicts; the result is a list without equal stacks."""
    agenda = np.empty(4 * MAX_STACKS, np.int32)
    found = np.empty(MAX_STACKS, np.int32)
    n_found = 0
    columns = table[N_COLUMNS]
    begin = used
    member = stacks
    steps = 0
    while member >= 0:
        agenda[0] = memory[arena + 3 * member]
        member = np.int64(memory[arena + 3 * member + 1])
        n = 1
        while n > 0:
            n -= 1
            frame = np.int64(agenda[n])
            steps += 1
            if n + 16 > agenda.shape[0] or steps > 64 * MAX_STACKS:
                return TOO_MANY, begin
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
                    if n + count > agenda.shape[0]:
                        return TOO_MANY, begin
            for i in range(count):
                each = action if first == 0 else table[first + i]
                if each == ACCEPT:
                    return ENDED, begin
                if used + 1 > capacity:
                    return NO_ROOM, begin
                if each > 0:
                    push(memory, arena, used, np.int64(each - 1), frame)
                    new = True
                    for k in range(n_found):
                        if same_stack(memory, arena, np.int64(found[k]), used):
                            new = False
                            break
                    if new:
                        if n_found + 1 > MAX_STACKS:
                            return TOO_MANY, begin
                        found[n_found] = used
                        n_found += 1
                        used += 1
                    continue
                below = frame
                for _ in range(table[table[RULE_LENGTH] - each - 1]):
                    below = np.int64(memory[arena + 3 * below + 1])
                state = memory[arena + 3 * below]
                target = table[table[GOTO] + state * table[N_NONTERMINALS] + table[table[RULE_LHS] - each - 1]]
                push(memory, arena, used, np.int64(target), below)
                agenda[n] = used
                n += 1
                used += 1
    if n_found == 0:
        return ILLEGAL, begin
    head = NO_FRAME
    for k in range(n_found - 1, -1, -1):
        if used + 1 > capacity:
            return NO_ROOM, begin
        record(memory, arena, used, np.int64(found[k]), head, -1 - (n_found - k))
        head = used
        used += 1
    return head, used


@njit(cache=True, nogil=True)
def shift(table, memory, arena, used, capacity, stacks, column):  # type: ignore[no-untyped-def]
    """The list of stacks after a terminal."""
    if column < 0:
        return ILLEGAL, used
    if memory[arena + 3 * stacks + 1] < 0:
        frame, after = shift_one(table, memory, arena, used, capacity, np.int64(memory[arena + 3 * stacks]), column)
        if frame >= 0:
            if after + 1 > capacity:
                return NO_ROOM, used
            record(memory, arena, after, frame, NO_FRAME, -2)
            return after, after + 1
        if frame != TOO_MANY:
            return frame, used
    return shift_all(table, memory, arena, used, capacity, stacks, column)


@njit(cache=True, nogil=True)
def indent(table, memory, arena, used, capacity, stacks, indents, column):  # type: ignore[no-untyped-def]
    """After a newline that ended at a column: one indent, nothing, or dedents down to a column that is open.

    Returns the stacks (or an error), the open indents and the records in use.
    """
    top = np.int64(memory[arena + 3 * indents])
    if column > top:
        stacks, used = shift(table, memory, arena, used, capacity, stacks, np.int64(table[INDENT]))
        if stacks < 0:
            return stacks, indents, used
        if used + 1 > capacity:
            return NO_ROOM, indents, used
        record(memory, arena, used, column, indents, 0)
        return stacks, used, used + 1
    while column < top:
        stacks, used = shift(table, memory, arena, used, capacity, stacks, np.int64(table[DEDENT]))
        if stacks < 0:
            return stacks, indents, used
        indents = np.int64(memory[arena + 3 * indents + 1])
        top = np.int64(memory[arena + 3 * indents])
    if column != top:
        return ILLEGAL, indents, used
    return stacks, indents, used


@njit(cache=True, nogil=True)
def emit(table, memory, arena, used, capacity, stacks, indents, depth, column, begin, end, fresh):  # type: ignore[no-untyped-def]
    """Feed emitted terminals, table[begin:end], to parser and layout.

    fresh : whether the last thing fed was a newline with its column. Returns stacks (or an error), indents, depth, fresh and records in
    use.
    """
    for i in range(begin, end):
        symbol = table[i]
        if symbol == table[NEWLINE]:
            if depth > 0:
                continue
            stacks, used = shift(
                table, memory, arena, used, capacity, stacks, np.int64(table[table[SYMBOL_COLUMN] + symbol])
            )
            if stacks < 0:
                return stacks, indents, depth, fresh, used
            stacks, indents, used = indent(table, memory, arena, used, capacity, stacks, indents, column)
            if stacks < 0:
                return stacks, indents, depth, fresh, used
            fresh = np.int64(1)
            continue
        stacks, used = shift(
            table, memory, arena, used, capacity, stacks, np.int64(table[table[SYMBOL_COLUMN] + symbol])
        )
        if stacks < 0:
            return stacks, indents, depth, fresh, used
        depth = max(np.int64(0), depth + table[table[SYMBOL_DEPTH] + symbol])
        fresh = np.int64(0)
    return stacks, indents, depth, fresh, used


@njit(cache=True, nogil=True)
def accepts_any(table, memory, arena, used, capacity, stacks, members):  # type: ignore[no-untyped-def]
    """Whether some terminal of a set can be shifted: OK, ILLEGAL, or an error."""
    words = table[N_SET_WORDS]
    bits = table[SET_BITS] + members * words
    member = stacks
    while member >= 0:
        state = memory[arena + 3 * memory[arena + 3 * member]]
        for w in range(words):
            if table[bits + w] & table[table[SHIFT_BITS] + state * words + w] != 0:
                return OK
        member = np.int64(memory[arena + 3 * member + 1])
    for column in range(table[N_COLUMNS]):
        if (table[bits + (column >> 5)] >> (column & 31)) & 1:
            found, _ = shift(table, memory, arena, used, capacity, stacks, np.int64(column))
            if found >= 0 or found == ENDED:
                return OK
            if found != ILLEGAL:
                return found
    return ILLEGAL


@njit(cache=True, nogil=True)
def mode_state(table, memory, arena, stacks):  # type: ignore[no-untyped-def]
    """The lexer state in which a lexeme begins: under contextual lexing the parser's state chooses it. DEAD if stacks disagree."""
    n_modes = table[N_MODES]
    if n_modes == 1:
        return np.int64(0)
    found = np.int64(-1)
    member = stacks
    while member >= 0:
        mode = table[table[MODE_OF_STATE] + memory[arena + 3 * memory[arena + 3 * member]]]
        if found >= 0 and found != mode:
            return np.int64(SPLIT)
        found = np.int64(mode)
        member = np.int64(memory[arena + 3 * member + 1])
    return np.int64(table[table[MODE_STATE] + found])


@njit(cache=True, nogil=True)
def read_byte(  # type: ignore[no-untyped-def]
    table, memory, arena, capacity, byte, state, column, depth, indents, stacks, used, fresh, again
):  # fmt: skip
    """Feed one byte to lexer, layout and parser. again : (n,) int32, scratch for the bytes that a backed-up contextual lexer reads anew.

    Returns the lexer's state (or an error) and the rest of what it takes.
    """
    classes = np.int64(table[N_CLASSES])
    waiting = 0
    while True:
        if state == 0:
            state = mode_state(table, memory, arena, stacks)
            if state < 0:
                return state, column, depth, indents, stacks, used, fresh
        place = state * classes + table[table[BYTE_CLASS] + byte]
        output = table[table[OUTPUT] + place]
        after = np.int64(table[table[NEXT_STATE] + place])
        if after == DEAD:
            return np.int64(ILLEGAL), column, depth, indents, stacks, used, fresh
        if output != 0:
            stacks, indents, depth, fresh, used = emit(
                table, memory, arena, used, capacity, stacks, indents, depth, column,
                np.int64(table[OUTPUT_SYMBOLS]) + table[table[OUTPUT_START] + output],
                np.int64(table[OUTPUT_SYMBOLS]) + table[table[OUTPUT_START] + output + 1], fresh,
            )  # fmt: skip
            if stacks < 0:
                return stacks, column, depth, indents, stacks, used, fresh
        if after == RESTART:
            begin = np.int64(table[table[PENDING_START] + state])
            end = np.int64(table[table[PENDING_START] + state + 1])
            if waiting + 1 + end - begin > again.shape[0]:
                return np.int64(TOO_MANY), column, depth, indents, stacks, used, fresh
            again[waiting] = byte
            waiting += 1
            for i in range(end - 1, begin - 1, -1):
                again[waiting] = table[table[PENDING] + i]
                waiting += 1
            after = np.int64(0)
        elif table[table[STATE_FLAGS] + after] & IS_NEWLINE:
            if byte == LINE_FEED:
                column = np.int64(0)
            elif byte == SPACE:
                column += 1
            elif byte == TAB:
                column += table[TAB_LENGTH]
        state = after
        if waiting == 0:
            return state, column, depth, indents, stacks, used, fresh
        waiting -= 1
        byte = np.int64(again[waiting])


@njit(cache=True, nogil=True)
def back_up(  # type: ignore[no-untyped-def]
    table, memory, arena, capacity, state, column, depth, indents, stacks, used, fresh, again
):  # fmt: skip
    """End the lexeme under way at its last possible end, and read what is pending anew (contextual lexing). Results as `read_byte`."""
    terminal = np.int64(table[table[FALLBACK] + state])
    if terminal >= 0:
        stacks, indents, depth, fresh, used = emit(
            table, memory, arena, used, capacity, stacks, indents, depth, column,
            np.int64(table[OUTPUT_SYMBOLS]) + terminal, np.int64(table[OUTPUT_SYMBOLS]) + terminal + 1, fresh,
        )  # fmt: skip
        if stacks < 0:
            return stacks, column, depth, indents, stacks, used, fresh
    begin = np.int64(table[table[PENDING_START] + state])
    end = np.int64(table[table[PENDING_START] + state + 1])
    state = np.int64(0)
    for i in range(begin, end):
        state, column, depth, indents, stacks, used, fresh = read_byte(
            table,
            memory,
            arena,
            capacity,
            np.int64(table[table[PENDING] + i]),
            state,
            column,
            depth,
            indents,
            stacks,
            used,
            fresh,
            again,
        )
        if state < 0:
            break
    return state, column, depth, indents, stacks, used, fresh


@njit(cache=True, nogil=True)
def can_go_on(table, memory, arena, used, capacity, state, stacks, indents, depth, column, fresh, again):  # type: ignore[no-untyped-def]
    """Whether the lexeme under way may become something that the parser accepts, or be backed up over: OK, ILLEGAL or an error."""
    while True:
        at = np.int64(table[table[ENDING_START] + state])
        while at < table[table[ENDING_START] + state + 1]:
            members = np.int64(table[table[ENDINGS] + at])
            n = np.int64(table[table[ENDINGS] + at + 1])
            begin = np.int64(table[ENDINGS]) + at + 2
            at += 2 + n
            after, _, inside, new, more = emit(
                table, memory, arena, used, capacity, stacks, indents, depth, column, begin, begin + n, fresh
            )
            if after == ILLEGAL:
                continue
            if after < 0:
                return after
            # a set's number is doubled, and one more if the newline is in it: in brackets it is dropped and anything may come
            if members >= 0 and not (members & 1 and inside > 0):
                answer = accepts_any(table, memory, arena, more, capacity, after, members >> 1)
            elif new != 0:
                answer = accepts_any(table, memory, arena, more, capacity, after, np.int64(table[AFTER_NEWLINE]))
            else:
                answer = np.int64(OK)
            if answer != ILLEGAL:
                return answer
        if table[N_MODES] == 1 or table[table[PENDING_START] + state] == table[table[PENDING_START] + state + 1]:
            return np.int64(ILLEGAL)
        state, column, depth, indents, stacks, used, fresh = back_up(
            table, memory, arena, capacity, state, column, depth, indents, stacks, used, fresh, again
        )
        if state < 0:
            return state


@njit(cache=True, nogil=True)
def can_end(table, memory, region):  # type: ignore[no-untyped-def]
    """Whether the text so far is legal as it stands: OK, ILLEGAL or an error."""
    arena = region + np.int64(memory[region + ARENA])
    capacity = np.int64(memory[region + CAPACITY])
    state = np.int64(memory[region + LEXER])
    column = np.int64(memory[region + COLUMN])
    depth = np.int64(memory[region + DEPTH])
    indents = np.int64(memory[region + INDENTS])
    stacks = np.int64(memory[region + STACKS])
    used = np.int64(memory[region + USED])
    fresh = np.int64(0)
    again = memory[:0]
    if table[AGAIN] > 0:
        again = np.empty(table[AGAIN], np.int32)
    while table[table[END_OUTPUT] + state] == RESTART:
        state, column, depth, indents, stacks, used, fresh = back_up(
            table, memory, arena, capacity, state, column, depth, indents, stacks, used, fresh, again
        )
        if state < 0:
            return state
    output = table[table[END_OUTPUT] + state]
    if output < 0:
        return np.int64(ILLEGAL)
    begin = np.int64(table[OUTPUT_SYMBOLS]) + table[table[OUTPUT_START] + output]
    end = np.int64(table[OUTPUT_SYMBOLS]) + table[table[OUTPUT_START] + output + 1]
    stacks, indents, _, _, used = emit(
        table, memory, arena, used, capacity, stacks, indents, depth, column, begin, end, fresh
    )
    if stacks < 0:
        return stacks
    while memory[arena + 3 * indents + 1] >= 0:
        stacks, used = shift(table, memory, arena, used, capacity, stacks, np.int64(table[DEDENT]))
        if stacks < 0:
            return stacks
        indents = np.int64(memory[arena + 3 * indents + 1])
    found, _ = shift(table, memory, arena, used, capacity, stacks, np.int64(table[N_COLUMNS] - 1))
    return np.int64(OK) if found == ENDED else found


@njit(cache=True, nogil=True)
def read_byte_of(table, at):  # type: ignore[no-untyped-def]
    """Byte `at` of the tokens' text, four to a place."""
    return (table[table[TOKEN_BYTES] + (at >> 2)] >> (8 * (at & 3))) & 255


@njit(cache=True, nogil=True)
def read_bytes(table, data, from_tokens, begin, end, memory, region, commit):  # type: ignore[no-untyped-def]
    """Feed bytes; the region changes only if they are legal and `commit` holds.

    data : int32 bytes; with from_tokens they are the tokens' and data is not used. Returns OK or an error.
    """
    arena = region + np.int64(memory[region + ARENA])
    capacity = np.int64(memory[region + CAPACITY])
    state = np.int64(memory[region + LEXER])
    column = np.int64(memory[region + COLUMN])
    depth = np.int64(memory[region + DEPTH])
    indents = np.int64(memory[region + INDENTS])
    stacks = np.int64(memory[region + STACKS])
    used = np.int64(memory[region + USED])
    fresh = np.int64(0)
    again = memory[:0]
    if table[AGAIN] > 0:
        again = np.empty(table[AGAIN], np.int32)
    for at in range(begin, end):
        byte = np.int64(read_byte_of(table, at)) if from_tokens else np.int64(data[at])
        state, column, depth, indents, stacks, used, fresh = read_byte(
            table, memory, arena, capacity, byte, state, column, depth, indents, stacks, used, fresh, again
        )
        if state < 0:
            return state
    answer = can_go_on(table, memory, arena, used, capacity, state, stacks, indents, depth, column, fresh, again)
    if answer != OK or not commit:
        return answer
    remember(memory, region)
    memory[region + LEXER] = state
    memory[region + COLUMN] = column
    memory[region + DEPTH] = depth
    memory[region + INDENTS] = indents
    memory[region + STACKS] = stacks
    memory[region + USED] = used
    return OK


@njit(cache=True, nogil=True)
def remember(memory, region):  # type: ignore[no-untyped-def]
    """Add what a rollback restores to the history, which holds the last MAX_HISTORY tokens."""
    longest = memory[region + MAX_HISTORY]
    if longest == 0:
        return
    at = np.int64(memory[region + HISTORY_AT])
    for i in range(SAVED):
        memory[region + REGION_HEADER + at * SAVED + i] = memory[region + i]
    memory[region + HISTORY_AT] = (at + 1) % longest
    memory[region + N_HISTORY] = min(longest, memory[region + N_HISTORY] + 1)


@njit(cache=True, nogil=True)
def rollback(table, memory, region, n):  # type: ignore[no-untyped-def]
    """Take back the last n tokens, 1 <= n <= those remembered."""
    longest = memory[region + MAX_HISTORY]
    at = (memory[region + HISTORY_AT] - n) % longest
    for i in range(SAVED):
        memory[region + i] = memory[region + REGION_HEADER + at * SAVED + i]
    memory[region + HISTORY_AT] = at
    memory[region + N_HISTORY] -= n
    forget_runs(table, memory, region, memory[region + USED])


@njit(cache=True, nogil=True)
def read_token(table, memory, region, token, commit):  # type: ignore[no-untyped-def]
    """Feed one token, end-of-text tokens included. Returns OK or an error."""
    if token < 0 or token >= table[N_TOKENS]:
        return OUT_OF_RANGE
    if memory[region + FINISHED]:
        return AFTER_END
    for i in range(table[N_EOS]):
        if table[table[EOS] + i] == token:
            answer = can_end(table, memory, region)
            if answer == ILLEGAL:
                return NOT_COMPLETE
            if answer == OK and commit:
                remember(memory, region)
                memory[region + FINISHED] = 1
            return answer
    begin = np.int64(table[table[TOKEN_START] + token])
    end = np.int64(table[table[TOKEN_START] + token + 1])
    if begin == end:
        return NO_TEXT
    return read_bytes(table, memory, True, begin, end, memory, region, commit)


@njit(cache=True, nogil=True)
def clear(words):  # type: ignore[no-untyped-def]
    """Empty a bitmask."""
    for w in range(words.shape[0]):
        words[w] = 0


@njit(cache=True, nogil=True)
def add_words(words, row):  # type: ignore[no-untyped-def]
    """OR a row into words."""
    # PERF: over two views the loop is vectorised; with offsets in the indices, or as a slice assignment, it takes 5-8 times as long
    # (85 against 480 and 770 ns for 1,000 words, numba 0.68)
    for w in range(row.shape[0]):
        words[w] |= row[w]


@njit(cache=True, nogil=True)
def add_tokens(table, mask, words):  # type: ignore[no-untyped-def]
    """OR a mask of the pool into words."""
    place = np.int64(table[table[MASKS] + 2 * mask])
    count = np.int64(table[table[MASKS] + 2 * mask + 1])
    if count < 0:
        add_words(words, table[place : place + np.int64(table[N_WORDS])])
    else:
        ids = table[place : place + count]
        for i in range(count):
            token = ids[i]
            words[token >> 5] |= np.int32(1) << np.int32(token & 31)


@njit(cache=True, nogil=True)
def add_first(table, mask, words):  # type: ignore[no-untyped-def]
    """`add_tokens` into words that hold nothing of use yet."""
    place = np.int64(table[table[MASKS] + 2 * mask])
    if table[table[MASKS] + 2 * mask + 1] < 0:
        n = np.int64(table[N_WORDS])
        row = table[place : place + n]
        for w in range(n):
            words[w] = row[w]
        for w in range(n, words.shape[0]):
            words[w] = 0
    else:
        clear(words)
        add_tokens(table, mask, words)


@njit(cache=True, nogil=True)
def run(table, memory, region, node, frame, words, is_empty):  # type: ignore[no-untyped-def]
    """Add the tokens that a stack allows, from a root node of the automaton. Returns whether words are still empty.

    words : (>= n_words,) int32; holds nothing of use while is_empty.

    Right-recursive texts (nested ternaries, lambdas) make a run go down the whole stack. What a node adds from a frame down never
    changes, so past CACHE_STRIDE frames it is kept, for one frame of each run: the next run finds it after a few more steps.
    """
    arena = region + np.int64(memory[region + ARENA])
    n_cells = np.int64(table[N_STATES])
    n_roots = np.int64(table[N_ROOTS])
    n_slots = np.int64(table[N_EDGE_SLOTS])
    edges = np.int64(table[EDGES])
    nodes = np.int64(table[NODES]) - 2 * (n_roots + 1)
    pairs = np.int64(table[EDGE_PAIRS])
    pair = pairs + 2 * table[table[ROOTS] + (node - 1) * n_cells + memory[arena + 3 * frame]]
    steps = 1
    kept = 0
    while True:
        node = np.int64(table[pair])
        mask = np.int64(table[pair + 1])
        if mask > 0:
            if is_empty:
                add_first(table, mask, words)
                is_empty = False
            else:
                add_tokens(table, mask, words)
            if kept > 0:
                add_tokens(table, mask, memory[kept : kept + np.int64(table[N_WORDS])])
        if node == 0:
            return is_empty
        frame = np.int64(memory[arena + 3 * frame + 1])
        if frame < 0:
            return is_empty  # only a table that no closure made leads below the stack
        steps += 1
        if steps > CACHE_STRIDE and memory[arena + 3 * frame + 2] % CACHE_STRIDE == 0:
            if memory[region + CACHE] == 0:
                memory[region + CACHE] = -1  # the caller makes one
            elif memory[region + CACHE] > 0 and frame < memory[region + USED]:
                width = 2 + np.int64(table[N_WORDS])
                slot = memory[region + CACHE] + (frame * 31 + node * 7) % CACHED_RUNS * width
                if memory[slot] == frame and memory[slot + 1] == node:
                    if is_empty:
                        clear(words)
                    add_words(words, memory[slot + 2 : slot + width])
                    if kept > 0 and kept != slot + 2:
                        add_words(memory[kept : kept + width - 2], memory[slot + 2 : slot + width])
                    return False
                if kept == 0:
                    kept = slot + 2
                    memory[slot] = frame
                    memory[slot + 1] = node
                    clear(memory[slot + 2 : slot + width])
        pair = pairs + 2 * table[nodes + 2 * node]
        if table[nodes + 2 * node + 1] != 0:
            # exceptions from the node's default edge
            key = np.int32(node * n_cells + memory[arena + 3 * frame])
            at = edge_slot(key, n_slots)
            while True:
                found = table[edges + 2 * at]
                if found == key:
                    pair = pairs + 2 * table[edges + 2 * at + 1]
                    break
                if found < 0:
                    break
                at = at + 1 if at + 1 < n_slots else 0


@njit(cache=True, nogil=True)
def feed(table, memory, arena, used, capacity, stacks, symbol):  # type: ignore[no-untyped-def]
    """`shift` of a column; or, for a symbol past the columns, the question whether the next lexeme is read in that mode."""
    if symbol < table[N_COLUMNS]:
        return shift(table, memory, arena, used, capacity, stacks, symbol)
    if mode_state(table, memory, arena, stacks) != table[table[MODE_STATE] + symbol - table[N_COLUMNS]]:
        return np.int64(ILLEGAL), used
    return stacks, used


@njit(cache=True, nogil=True)
def accepts_rest(table, memory, region, stacks, rest):  # type: ignore[no-untyped-def]
    """Whether the parser accepts a rest: OK, ILLEGAL or an error."""
    arena = region + np.int64(memory[region + ARENA])
    capacity = np.int64(memory[region + CAPACITY])
    # the stacks behind a newline are past USED; a list is made after its stacks
    used = max(np.int64(memory[region + USED]), stacks + 1)
    while rest >= 0:
        stacks, used = feed(table, memory, arena, used, capacity, stacks, np.int64(table[table[REST_SYMBOL] + rest]))
        if stacks == ENDED:
            return np.int64(OK)
        if stacks < 0:
            return stacks
        rest = np.int64(table[table[REST_NEXT] + rest])
    if rest == -1:
        return np.int64(OK)
    return np.int64(accepts_any(table, memory, arena, used, capacity, stacks, -rest - 1))


@njit(cache=True, nogil=True)
def pass_newlines(table, memory, region, path):  # type: ignore[no-untyped-def]
    """The list of stacks behind the newlines of a path, or an error."""
    arena = region + np.int64(memory[region + ARENA])
    capacity = np.int64(memory[region + CAPACITY])
    used = np.int64(memory[region + USED])
    indents = np.int64(memory[region + INDENTS])
    stacks = np.int64(memory[region + STACKS])
    for newline in range(table[table[PATH_START] + path], table[table[PATH_START] + path + 1]):
        place = table[PATHS] + 4 * newline
        for i in range(table[place], table[place + 1]):
            stacks, used = feed(table, memory, arena, used, capacity, stacks, np.int64(table[table[PATH_SYMBOLS] + i]))
            if stacks < 0:
                return stacks
        stacks, used = shift(
            table, memory, arena, used, capacity, stacks, np.int64(table[table[SYMBOL_COLUMN] + table[NEWLINE]])
        )
        if stacks < 0:
            return stacks
        column = np.int64(table[place + 3])
        if table[place + 2] == 0:
            column += memory[region + COLUMN]
        stacks, indents, used = indent(table, memory, arena, used, capacity, stacks, indents, column)
        if stacks < 0:
            return stacks
    return stacks


@njit(cache=True, nogil=True)
def fill(table, memory, region, words):  # type: ignore[no-untyped-def]
    """Write the mask of the tokens allowed next. words : (>= n_words,) int32. Returns OK, WANTS_CACHE (all the same OK) or an error."""
    if memory[region + FINISHED]:
        return AFTER_END
    arena = region + np.int64(memory[region + ARENA])
    state = np.int64(memory[region + LEXER])
    view = np.int64(table[table[VIEW_START] + state])
    n_views = table[table[VIEW_START] + state + 1] - view
    view += min(memory[region + DEPTH], n_views - 1)
    is_empty = True
    for lookup in range(table[table[LOOKUP_START] + view], table[table[LOOKUP_START] + view + 1]):
        at = table[LOOKUPS] + 3 * lookup
        stacks = np.int64(memory[region + STACKS])
        if table[at] > 0:
            stacks = pass_newlines(table, memory, region, np.int64(table[at]))
            if stacks == ILLEGAL:
                continue
            if stacks < 0:
                return stacks
        if table[at + 2] > 0:
            if is_empty:
                add_first(table, np.int64(table[at + 2]), words)
                is_empty = False
            else:
                add_tokens(table, np.int64(table[at + 2]), words)
        if table[at + 1] > 0:
            member = stacks
            while member >= 0:
                is_empty = run(
                    table,
                    memory,
                    region,
                    np.int64(table[at + 1]),
                    np.int64(memory[arena + 3 * member]),
                    words,
                    is_empty,
                )
                member = np.int64(memory[arena + 3 * member + 1])
        elif table[at + 1] < 0:
            root = -np.int64(table[at + 1]) - 1
            for item in range(table[table[OPEN_START] + root], table[table[OPEN_START] + root + 1]):
                place = table[OPEN_ITEMS] + 2 * item
                answer = accepts_rest(table, memory, region, stacks, np.int64(table[place]))
                if answer == OK:
                    if is_empty:
                        add_first(table, np.int64(table[place + 1]), words)
                        is_empty = False
                    else:
                        add_tokens(table, np.int64(table[place + 1]), words)
                elif answer != ILLEGAL:
                    return answer
    if table[EOS_IN_MASKS] == 0 and table[N_EOS] > 0 and not is_empty:
        # under layout the masks say only that the text or a block may end: dedents down to the first column come before the end
        token = table[table[EOS]]
        if (words[token >> 5] >> np.int32(token & 31)) & 1:
            answer = can_end(table, memory, region)
            if answer == ILLEGAL:
                for i in range(table[N_EOS]):
                    token = table[table[EOS] + i]
                    words[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))
                is_empty = True
                for w in range(words.shape[0]):
                    if words[w] != 0:
                        is_empty = False
                        break
            elif answer != OK:
                return answer
    if is_empty:
        clear(words)
        return DEAD_END
    return WANTS_CACHE if memory[region + CACHE] < 0 else OK


@njit(cache=True, nogil=True)
def forget_runs(table, memory, region, first):  # type: ignore[no-untyped-def]
    """Drop from the cache of runs what it holds of records from `first` on: they are about to change."""
    if memory[region + CACHE] > 0:
        for slot in range(CACHED_RUNS):
            at = memory[region + CACHE] + slot * (2 + np.int64(table[N_WORDS]))
            if memory[at] >= first:
                memory[at] = -1


@njit(cache=True, nogil=True)
def collect(table, memory, region, moved):  # type: ignore[no-untyped-def]
    """Drop the arena records that neither the text nor its history needs. moved : (capacity,) int32, scratch.

    INVARIANT: a record refers to earlier records only, so one pass down marks all and one pass up moves all.
    """
    arena = region + np.int64(memory[region + ARENA])
    used = np.int64(memory[region + USED])
    moved[:used] = -1
    longest = memory[region + MAX_HISTORY]
    for back in range(memory[region + N_HISTORY] + 1):
        at = region
        if back > 0:
            at = region + REGION_HEADER + ((memory[region + HISTORY_AT] - back) % longest) * SAVED
        moved[memory[at + INDENTS]] = 0
        moved[memory[at + STACKS]] = 0
    for number in range(used - 1, -1, -1):
        if moved[number] < 0:
            continue
        at = arena + 3 * number
        if memory[at + 1] >= 0:
            moved[memory[at + 1]] = 0
        if memory[at + 2] < 0:
            moved[memory[at]] = 0
    kept = 0
    for number in range(used):
        if moved[number] < 0:
            continue
        at = arena + 3 * number
        second = memory[at + 1]
        third = memory[at + 2]
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
        memory[at + STACKS] = moved[memory[at + STACKS]]
    memory[region + USED] = kept
    forget_runs(table, memory, region, 0)


@njit(cache=True, nogil=True)
def make_room(table, memory, region):  # type: ignore[no-untyped-def]
    """Free the records that nothing needs; whether that left half of the arena free, so that it need not grow."""
    collect(table, memory, region, np.empty(memory[region + CAPACITY], np.int32))
    return 2 * memory[region + USED] <= memory[region + CAPACITY]


@njit(cache=True, nogil=True)
def fill_one(table, memory, words):  # type: ignore[no-untyped-def]
    """`fill` for the text of a matcher, whose region is at 0."""
    code = fill(table, memory, np.int64(0), words)
    if code == NO_ROOM and make_room(table, memory, np.int64(0)):
        code = fill(table, memory, np.int64(0), words)
    return code


@njit(cache=True, nogil=True)
def advance_one(table, memory, token):  # type: ignore[no-untyped-def]
    """`read_token` for the text of a matcher."""
    code = read_token(table, memory, np.int64(0), np.int64(token), True)
    if code == NO_ROOM and make_room(table, memory, np.int64(0)):
        code = read_token(table, memory, np.int64(0), np.int64(token), True)
    return code


@njit(cache=True, nogil=True)
def fill_batch(table, memory, regions, words, results, begin, end):  # type: ignore[no-untyped-def]
    """`fill` for slots begin .. end - 1. words : (n_slots, >= n_words) int32; results : (n_slots,) int32, IDLE for those to leave alone.

    Returns whether all are OK.
    """
    fine = True
    for slot in range(begin, end):
        if results[slot] == IDLE:
            continue
        code = fill(table, memory, regions[slot], words[slot])
        if code == NO_ROOM and make_room(table, memory, regions[slot]):
            code = fill(table, memory, regions[slot], words[slot])
        results[slot] = code
        fine = fine and results[slot] == OK
    return fine


@njit(cache=True, nogil=True)
def advance_batch(table, memory, regions, tokens, results):  # type: ignore[no-untyped-def]
    """`read_token` for slots whose results are IDLE (token -1 = nothing to read); they hold what came of it. Returns whether all are OK."""
    fine = True
    for slot in range(regions.shape[0]):
        if results[slot] != IDLE:
            continue
        code = np.int64(OK)
        if tokens[slot] != -1:
            code = read_token(table, memory, regions[slot], tokens[slot], True)
            if code == NO_ROOM and make_room(table, memory, regions[slot]):
                code = read_token(table, memory, regions[slot], tokens[slot], True)
        results[slot] = code
        fine = fine and code == OK
    return fine
