"""Tokens: the engine reads them byte by byte.

`table` is one flat int32 array with everything that does not change (`maskstore/table/schema.py`).
`memory` and `region` are described in `constants`.

PERF: a call from Python costs about 100 ns, and 40 to 50 ns more for each array; so there are two
or three arrays (numba 0.68), and one where it counts (`_quick_kernels.py`). To return several
values, or to pass long lists of arguments, costs as much as the work itself (620 against 220 ns a
token of python.lark, when both were tried). So the draft is in the region too, and functions return
one number. A call from compiled code passes each array as seven numbers, which costs 10 ns and
more. So functions that most tokens call are inlined (`forceinline`), as long as that does not take
long to compile.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._draft_kernels import begin_draft, spend_nothing
from maskwright.decoding.engine._end_kernels import can_end, can_go_on
from maskwright.decoding.engine._lexer_kernels import read_byte, step_column
from maskwright.decoding.engine._mask_kernels import fill
from maskwright.decoding.engine._memory_kernels import make_room, remember
from maskwright.maskstore.table import schema


@kernel(entry=True)
def read_bytes(
    table: Int32, data: Int32, from_tokens: bool, begin: int, end: int, memory: Int32, region: int, commit: bool
) -> int:
    """Feed bytes: OK or an error.

    The text's state changes only if the bytes are legal and `commit` is true.

    data : (n,) int32; bytes. Not used if from_tokens is true.
    from_tokens : whether the bytes are those of the table's TOKEN_BYTES.
    begin, end : the indices of the first byte, and behind the last one.
    commit : whether the text's state becomes the draft.
    """
    begin_draft(memory, region)
    begin = read_plain(table, data, from_tokens, begin, end, memory, region)
    return read_remaining(table, data, from_tokens, begin, end, memory, region, commit)


@kernel(forceinline=True)
def byte_at(table, data, from_tokens, at):  # type: ignore[no-untyped-def]
    """The byte at an index. data, from_tokens : as of `read_bytes`."""
    if from_tokens:
        return (table[(table[schema.TOKEN_BYTES] & c.NATURAL) + (at >> 2)] >> (8 * (at & 3))) & 255
    return np.int64(data[at]) & 255


@kernel(forceinline=True)
def read_plain(table, data, from_tokens, begin, end, memory, region):  # type: ignore[no-untyped-def]
    """Feed bytes to the draft as long as `read_byte` would only take the next lexer state.

    Returns the index of the first byte that was not read. Arguments as of `read_bytes`.
    """
    classes = table[schema.N_CLASSES] & c.NATURAL
    class_of = table[schema.BYTE_CLASS] & c.NATURAL
    next_state = table[schema.NEXT_STATE] & c.NATURAL
    output = table[schema.OUTPUT] & c.NATURAL
    flags = table[schema.STATE_FLAGS] & c.NATURAL
    is_contextual = table[schema.N_MODES] > 1
    state = memory[region + c.DRAFT_LEXER] & c.NATURAL
    at = begin
    while at < end:
        byte = byte_at(table, data, from_tokens, at)
        step = state * classes + (table[class_of + byte] & c.NATURAL)
        after = np.int64(table[next_state + step])
        if after < 0 or table[output + step] != 0 or (is_contextual and state == 0):
            break
        if table[flags + after] & schema.IS_NEWLINE:
            step_column(table, memory, region, byte)
        state = after
        at += 1
    memory[region + c.DRAFT_LEXER] = state
    return at


@kernel(forceinline=True)
def read_remaining(table, data, from_tokens, begin, end, memory, region, commit):  # type: ignore[no-untyped-def]
    """Feed the bytes that `read_plain` left, then ask whether the text can go on: OK or an error.

    The draft must have begun. Arguments as of `read_bytes`.
    """
    spend_nothing(memory, region)
    while begin < end:
        code = read_byte(table, memory, region, byte_at(table, data, from_tokens, begin))
        if code != c.OK:
            return code
        begin = read_plain(table, data, from_tokens, begin + 1, end, memory, region)
    code = can_go_on(table, memory, region)
    if code == c.OK and commit:
        remember(memory, region)
        if memory[region + c.STACKS] != memory[region + c.DRAFT_STACKS]:
            # BOUND: comparing numbers is enough, since new stacks have a greater number than those
            # that they come from
            memory[region + c.END_VERDICT] = 0
        for i in range(c.N_STATE_FIELDS):
            memory[region + c.LEXER + i] = memory[region + c.DRAFT_LEXER + i]
        memory[region + c.USED] = memory[region + c.DRAFT_USED]
        memory[region + c.AFTER_NEWLINE_STACKS] = memory[region + c.DRAFT_AFTER_NEWLINE]
    return code


@kernel(entry=True)
def read_token(table: Int32, memory: Int32, region: int, token: int, commit: bool) -> int:
    """Feed one token, which may be an end-of-text token: OK or an error.

    The text's state changes only if the token is legal and `commit` is true.

    token : an integer; OUT_OF_RANGE if it is no id of the vocabulary.
    """
    if token < 0 or token >= table[schema.N_TOKENS]:
        return c.OUT_OF_RANGE
    if memory[region + c.FINISHED]:
        return c.AFTER_END
    begin = np.int64(table[table[schema.TOKEN_START] + token])
    end = np.int64(table[table[schema.TOKEN_START] + token + 1])
    if begin < end:
        return read_bytes(table, memory, True, begin, end, memory, region, commit)
    for i in range(table[schema.N_EOS]):
        if table[table[schema.EOS] + i] == token:
            answer = can_end(table, memory, region)
            if answer == c.ILLEGAL:
                return c.NOT_COMPLETE
            if answer == c.OK and commit:
                remember(memory, region)
                memory[region + c.FINISHED] = 1
            return answer
    return c.NO_TEXT


@kernel
def fill_one(table, memory, words):  # type: ignore[no-untyped-def]
    """`fill` for the text of a matcher, whose region is at 0. If need be, it frees records."""
    code = fill(table, memory, np.int64(0), words)
    if code == c.NO_ROOM and make_room(table, memory, np.int64(0)):
        code = fill(table, memory, np.int64(0), words)
    return code


@kernel
def advance_one(table, memory, token):  # type: ignore[no-untyped-def]
    """`read_token` for the text of a matcher. If need be, it frees records."""
    code = read_token(table, memory, np.int64(0), np.int64(token), True)
    if code == c.NO_ROOM and make_room(table, memory, np.int64(0)):
        code = read_token(table, memory, np.int64(0), np.int64(token), True)
    return code


@kernel(entry=True)
def replay(table: Int32, memory: Int32, tokens: Int64, begin: int, words: Int32, result: Int64) -> int:
    """Read tokens[begin:] into the text of a matcher, as long as the masks have them.

    For each token it fills the mask, looks the token up, and reads it. Returns how many of `tokens`
    are read, those before `begin` included.

    tokens : (n,) int64; ids of the vocabulary.
    words : as of `fill`.
    result : (2,) int64, written. result[0] is OK if all tokens were read; ILLEGAL if the mask lacks
        the next one; else what `fill` or `read_token` returned. result[1] is 1 if that was `fill`,
        else 0.
    """
    for at in range(begin, tokens.shape[0]):
        token = tokens[at]
        result[1] = 1
        result[0] = fill_one(table, memory, words)
        if result[0] != c.OK:
            return at
        result[1] = 0
        if not (words[token >> 5] >> np.int32(token & 31)) & 1:
            result[0] = c.ILLEGAL
            return at
        result[0] = advance_one(table, memory, token)
        if result[0] != c.OK:
            return at
    result[0] = c.OK
    return tokens.shape[0]
