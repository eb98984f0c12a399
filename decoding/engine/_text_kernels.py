"""Tokens: reading them byte by byte, and what a matcher calls from Python.

`table` is one flat int32 array with everything that does not change (`maskstore/table/schema.py`); `memory` is described in `region`.

PERF: a call from Python costs about 100 ns and 50 ns for each array; hence two or three arrays (numba 0.68). Results of several values and
long lists of arguments cost as much as the work (620 against 220 ns a token of python.lark, when both were tried); hence the draft is in
the region, too, and functions return one number. A call from compiled code passes each array as seven numbers, 10 ns and more; hence
`forceinline` for functions on the way of most tokens, as long as it does not take long to compile.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.decoding.engine._draft_kernels import begin_draft, spend_nothing
from maskwright.decoding.engine._end_kernels import can_end, can_go_on
from maskwright.decoding.engine._lexer_kernels import read_byte, step_column
from maskwright.decoding.engine._mask_kernels import fill
from maskwright.decoding.engine._memory_kernels import make_room, remember
from maskwright.decoding.engine.constants import (
    AFTER_END,
    AFTER_NEWLINE_STACKS,
    DRAFT_AFTER_NEWLINE,
    DRAFT_LEXER,
    DRAFT_STACKS,
    DRAFT_USED,
    END_VERDICT,
    FINISHED,
    ILLEGAL,
    LEXER,
    N_STATE,
    NATURAL,
    NO_ROOM,
    NO_TEXT,
    NOT_COMPLETE,
    OK,
    OUT_OF_RANGE,
    STACKS,
    USED,
)
from maskwright.maskstore.table.schema import (
    BYTE_CLASS,
    EOS,
    IS_NEWLINE,
    N_CLASSES,
    N_EOS,
    N_MODES,
    N_TOKENS,
    NEXT_STATE,
    OUTPUT,
    STATE_FLAGS,
    TOKEN_BYTES,
    TOKEN_START,
)


@kernel
def read_bytes(table, data, from_tokens, begin, end, memory, region, commit):  # type: ignore[no-untyped-def]
    """Feed bytes; the region changes only if they are legal and `commit` holds.

    data : int32 bytes; with from_tokens they are the tokens' and data is not used. Returns OK or an error.
    """
    begin_draft(memory, region)
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
    state = memory[region + DRAFT_LEXER] & NATURAL
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
    memory[region + DRAFT_LEXER] = state
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
        if memory[region + STACKS] != memory[region + DRAFT_STACKS]:
            memory[region + END_VERDICT] = 0  # BOUND: new stacks have a greater number than those that they come from
        for i in range(N_STATE):
            memory[region + LEXER + i] = memory[region + DRAFT_LEXER + i]
        memory[region + USED] = memory[region + DRAFT_USED]
        memory[region + AFTER_NEWLINE_STACKS] = memory[region + DRAFT_AFTER_NEWLINE]
    return code


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
