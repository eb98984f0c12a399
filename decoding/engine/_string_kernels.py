"""Behind which of many byte strings may the text end, or go on by some bytes?

A composition asks this of the text of a part, for the first bytes of tokens that leave it.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._draft_kernels import begin_draft, spend_nothing
from maskwright.decoding.engine._end_kernels import can_end, can_go_on, end_draft
from maskwright.decoding.engine._lexer_kernels import read_byte
from maskwright.decoding.engine._mask_kernels import fill, write_one
from maskwright.decoding.engine._text_kernels import read_plain
from maskwright.maskstore.composition.strings import (
    BEGIN,
    COMMON,
    END,
    ENDS,
    FIELDS,
    IS_TOKEN,
    KIND,
    NUMBER,
    TOKENS_BEGIN,
    TOKENS_END,
)
from maskwright.maskstore.table import schema

MAY_END, SOME = 1, 2
"""What `fill_part` tells: the text is legal as a whole; its mask is not empty."""

STATE = 1 + c.N_DRAFT
"""The length of `state`: a result, and a copy of the draft."""


@kernel
def ends_draft(table, memory, region):  # type: ignore[no-untyped-def]
    """`end_draft`, which keeps its answer where the draft has the text's own stacks."""
    kept = np.int64(table[(table[schema.END_OUTPUT] & c.NATURAL) + (memory[region + c.DRAFT_LEXER] & c.NATURAL)])
    if kept < 0 or memory[region + c.DRAFT_STACKS] != memory[region + c.STACKS]:
        return np.int64(end_draft(table, memory, region))
    if (memory[region + c.END_VERDICT] - 1) >> 1 == kept:
        return np.int64(c.ILLEGAL if memory[region + c.END_VERDICT] & 1 else c.OK)
    code = np.int64(end_draft(table, memory, region))
    if c.ILLEGAL <= code <= c.OK:
        memory[region + c.END_VERDICT] = 1 + 2 * kept + (code == c.OK)
    return code


@kernel
def goes_on(table, memory, region, tails, state):  # type: ignore[no-untyped-def]
    """Whether one of some bytes may come behind the draft: OK, ILLEGAL or an error.

    tails : (n,) int32; the bytes, the likely ones first.
    """
    for i in range(c.N_DRAFT):
        state[1 + i] = memory[region + c.DRAFT_LEXER + i]
    for tail in range(tails.shape[0]):
        for i in range(c.N_DRAFT):
            memory[region + c.DRAFT_LEXER + i] = state[1 + i]
        code = np.int64(read_byte(table, memory, region, np.int64(tails[tail])))
        if code == c.OK:
            code = np.int64(can_go_on(table, memory, region))
        if code != c.ILLEGAL:
            return code
    return np.int64(c.ILLEGAL)


@kernel
def read_strings(table, memory, region, strings, tails, allowed, words, state):  # type: ignore[no-untyped-def]
    """Add the tokens of the strings whose answer is yes: OK or an error.

    strings : as `strings_array` makes it.
    tails : (n,) int32; the further bytes of the kind GOES_ON.
    allowed : the mask of the text. It may be `words`, unless a token is also a string's number.
    words : the mask to which tokens are added.
    state : (STATE,) int32; room.
    """
    at = np.int64(0)
    # `shared` bytes of this string are those of the last one that was refused, at its byte `wrong`
    shared = np.int64(0)
    wrong = np.int64(0)
    n = np.int64(strings[0])
    while at < n:
        one = 1 + FIELDS * at
        begin = np.int64(strings[one + BEGIN])
        end = np.int64(strings[one + END])
        shared = min(shared, np.int64(strings[one + COMMON]))
        number = np.int64(strings[one + NUMBER])
        kind = np.int64(strings[one + KIND])
        code = np.int64(c.ILLEGAL)
        if number >= 0 and (allowed[number >> 5] >> np.int32(number & 31)) & 1 == 0:
            pass
        elif kind == IS_TOKEN:
            code = np.int64(c.OK if number >= 0 else c.ILLEGAL)
        elif shared <= wrong:
            begin_draft(memory, region)
            spend_nothing(memory, region)
            place = read_plain(table, strings, False, begin, end, memory, region)
            code = np.int64(c.OK)
            while place < end:
                code = np.int64(read_byte(table, memory, region, np.int64(strings[place])))
                if code != c.OK:
                    break
                place = read_plain(table, strings, False, place + 1, end, memory, region)
            if code == c.ILLEGAL:
                shared = end - begin
                wrong = place - begin
            elif code == c.OK and kind == ENDS:
                code = np.int64(ends_draft(table, memory, region))
            elif code == c.OK:
                code = np.int64(goes_on(table, memory, region, tails, state))
        if code == c.OK:
            for i in range(strings[one + TOKENS_BEGIN], strings[one + TOKENS_END]):
                token = np.int64(strings[i])
                words[token >> 5] |= np.int32(np.uint32(1) << np.uint32(token & 31))
        elif code != c.ILLEGAL:
            return code
        at += 1
    return np.int64(c.OK)


@kernel(entry=True)
def fill_part(
    table: Int32,
    memory: Int32,
    region: int,
    strings: Int32,
    tails: Int32,
    allowed: Int32,
    words: Int32,
    n_tokens: int,
    state: Int32,
) -> int:
    """Write the mask of a text that is part of another one: OK, WANTS_CACHE or an error.

    No end-of-text token is in it. The tokens of strings whose answer is yes are.

    strings, tails : as of `read_strings`.
    allowed : written; the mask of the text's own tokens.
    words : the mask to write. It may be `allowed` if `n_tokens` is negative.
    n_tokens : how many of the tokens of `allowed` go into `words`; negative: they are one array.
    state : (STATE,) int32; state[0] becomes MAY_END, if the text is legal as a whole, plus SOME if
        the mask is not empty.
    """
    state[0] = 0
    code = np.int64(can_end(table, memory, region))
    if code == c.OK:
        state[0] = MAY_END
    elif code != c.ILLEGAL:
        return code
    filled = np.int64(fill(table, memory, region, allowed))
    if filled != c.OK and filled not in (c.WANTS_CACHE, c.DEAD_END):
        return filled
    for i in range(table[schema.N_EOS]):
        token = np.int64(table[table[schema.EOS] + i])
        allowed[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))
    if n_tokens >= 0:
        n_words = (n_tokens + 31) >> 5
        write_one(words, allowed[:n_words])
        if n_tokens & 31:
            words[n_words - 1] &= np.int32((np.int64(1) << (n_tokens & 31)) - 1)
    code = np.int64(read_strings(table, memory, region, strings, tails, allowed, words, state))
    if code != c.OK:
        return code
    for w in range(words.shape[0]):
        if words[w] != 0:
            state[0] |= SOME
            break
    return np.int64(c.WANTS_CACHE if filled == c.WANTS_CACHE else c.OK)
