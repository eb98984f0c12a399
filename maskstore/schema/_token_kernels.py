"""Kernels that tell what each token is to JSON: string content, the end of a string, structure."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32_2D, Int64, UInt8
from maskwright.analysis.jit import kernel
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._hash_kernels import HASH_FACTOR_1, next_hash
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, QUOTE, SPACE, next_utf8

N_QUOTES, HAS_ESCAPE, N_WORDS, IS_OUTSIDE, OPENS, HASH, KIND, CONTENT_END, N_UNITS, IS_HARD = range(10)
"""What is known of a token, all of it in one column of `facts`: the number of quotation marks;
whether it has a backslash; how often it has one of the words; whether it may begin outside of
strings; whether it may begin a key without ending it (`layout.OPENERS`); the first hash of what its
first string says, -1 if that has an escape; what it is inside a string, one of the kinds below; the
offset behind its first whole content, and the number of characters of that; of one that ends a
string, whether its hash does not say all (`layout.CLOSER`)."""
N_FACTS = 10
NO_CONTENT, WHOLE, PARTIAL, ENDS = range(4)
"""Inside a string: nothing; content up to the token's end; the same, but for a character or an
escape that is not whole; content, then a quotation mark, and what may stand behind one."""
_PARTIAL, _WRONG = -1, -2
_E, _U, _SLASH = 69, 117, 47
_COMMA, _COLON, _BRACKET, _BRACE = 44, 58, 93, 125


@kernel(forceinline=True)
def is_space(byte: int) -> bool:
    """Whether a byte is JSON's white space."""
    return byte in (32, 9, 10, 13)


@kernel(forceinline=True)
def is_structure(byte: int) -> bool:
    """Whether a byte may stand outside of strings, but for letters and quotation marks."""
    return is_space(byte) or 48 <= byte <= 58 or 43 <= byte <= 46 or byte in (91, _BRACKET, 123, _BRACE)


@kernel(forceinline=True)
def is_same(data: UInt8, at: int, words: UInt8, begin: int, n: int) -> bool:
    """Whether n bytes of both are the same."""
    k = 0
    while k < n and data[at + k] == words[begin + k]:
        k += 1
    return k == n


@kernel()
def is_piece(data: UInt8, at: int, end: int, words: UInt8) -> bool:
    """Whether letters are a piece of a word, or the E of a number."""
    for begin in range(len(words) - (end - at) + 1):
        if is_same(data, at, words, begin, end - at):
            return True
    return end - at == 1 and data[at] == _E


@kernel()
def stands_outside(data: UInt8, at: int, end: int, words: UInt8) -> bool:
    """Whether bytes may stand outside of strings, up to a quotation mark.

    True for some that may not as well.
    """
    while at < end and data[at] != QUOTE:
        begin = at
        while at < end and 97 <= data[at] | 32 <= 122:  # letters
            at += 1
        if at == begin and not is_structure(data[at]):
            return False
        if at == begin:
            at += 1
        elif not is_piece(data, begin, at, words):
            return False
    return True


@kernel()
def stands_behind_string(data: UInt8, at: int, end: int, words: UInt8) -> bool:
    """Whether bytes may stand behind a string's end. True for some that may not as well."""
    first = at
    while first < end and is_space(data[first]):
        first += 1
    if first < end and data[first] not in (_COMMA, _COLON, _BRACKET, _BRACE):
        return False
    return stands_outside(data, at, end, words)


@kernel()
def may_stand_for(code: int, escapes: int, is_second: bool) -> bool:
    r"""Whether ``\uXXXX`` is an escape, or the first of two; is_second : or the second one."""
    if is_second:
        return 0xDC00 <= code < 0xE000
    if escapes == layout.ANY_ESCAPES:
        return not 0xDC00 <= code < 0xE000
    is_control = code < SPACE and code not in (8, 9, 10, 12, 13)
    if escapes == layout.MINIMAL_ESCAPES:
        return is_control
    return is_control or code == 0x7F or (code >= 0x80 and not 0xDC00 <= code < 0xE000)


@kernel()
def read_unit(data: UInt8, at: int, end: int, escapes: int, is_second: bool) -> int:
    r"""The code of ``XXXX`` behind ``\u``, or `_PARTIAL`, or `_WRONG`."""
    code, n = 0, 0
    while n < 4 and at + n < end:
        byte = data[at + n]
        if 48 <= byte <= 57:
            code = 16 * code + byte - 48
        elif 97 <= byte <= 102 or (65 <= byte <= 70 and escapes != layout.MINIMAL_ESCAPES):
            code = 16 * code + (byte | 32) - 87
        else:
            return _WRONG
        n += 1
    size = 1 << 4 * (4 - n)
    for each in range(code * size, (code + 1) * size):
        if may_stand_for(each, escapes, is_second):
            return each if n == 4 else _PARTIAL
    return _WRONG


@kernel()
def escape_end(data: UInt8, at: int, end: int, escapes: int) -> int:
    """The offset behind an escape at a backslash, or `_PARTIAL`, or `_WRONG`."""
    if at + 1 >= end:
        return _PARTIAL
    byte = data[at + 1]
    if byte != _U:
        is_plain = byte in (QUOTE, BACKSLASH, 98, 102, 110, 114, 116)
        return at + 2 if is_plain or (byte == _SLASH and escapes == layout.ANY_ESCAPES) else _WRONG
    code = read_unit(data, at + 2, end, escapes, False)
    if not 0xD800 <= code < 0xDC00:
        return at + 6 if code >= 0 else code
    if at + 6 >= end:
        return _PARTIAL
    if data[at + 6] != BACKSLASH or (at + 7 < end and data[at + 7] != _U):
        return _WRONG
    code = read_unit(data, min(at + 8, end), end, escapes, True)
    return at + 12 if code >= 0 else code


@kernel()
def read_content(data: UInt8, at: int, end: int, escapes: int, facts: Int32_2D, token: int) -> int:
    """Write CONTENT_END and N_UNITS of a token. Returns its kind; of `ENDS` it looks at no tail."""
    begin, n, kind = at, 0, WHOLE
    while kind == WHOLE and at < end:
        if data[at] == BACKSLASH:
            found = escape_end(data, at, end, escapes)
        elif data[at] == QUOTE or data[at] < SPACE:
            found = _WRONG
        else:
            found, state = at, 0
            while found < end and state >= 0:
                state = next_utf8(state, int(data[found]))
                found += 1
                if state == 0:
                    break
            found = _WRONG if state < 0 else _PARTIAL if state > 0 else found
        if found >= 0:
            at, n = found, n + 1
        elif found == _PARTIAL:
            kind = PARTIAL
        else:
            kind = ENDS if data[at] == QUOTE else NO_CONTENT
    facts[CONTENT_END, token], facts[N_UNITS, token] = at - begin, n
    return kind


@kernel(entry=True)
def find_facts(data: UInt8, starts: Int64, words: UInt8, escapes: int, facts: Int32_2D) -> int:
    """Write what each token is to JSON. Returns 0.

    data, starts : the tokens end to end, (n_bytes,); (n + 1,), where each begins.
    words : ``true false null``; a blank between two words.
    escapes : one of `layout.ANY_ESCAPES` and so on.
    facts : (N_FACTS, n) int32; written. See `N_QUOTES`.
    """
    for token in range(len(starts) - 1):
        at, end = starts[token], starts[token + 1]
        first, n_quotes, hashed, n_words = end, 0, 0, 0
        for k in range(at, end):
            if data[k] == QUOTE:
                first = min(first, k)
                n_quotes += 1
            elif n_quotes == 1:
                hashed = next_hash(hashed, HASH_FACTOR_1, int(data[k])) if hashed >= 0 and data[k] != BACKSLASH else -1
            if data[k] == BACKSLASH:
                facts[HAS_ESCAPE, token] = 1
            for begin, n in ((0, 4), (5, 5), (11, 4)):
                n_words += end - k >= n and is_same(data, k, words, begin, n)
        is_outside = stands_outside(data, at, end, words)
        facts[N_QUOTES, token], facts[N_WORDS, token], facts[HASH, token] = n_quotes, n_words, hashed
        facts[IS_OUTSIDE, token] = is_outside
        if at < end and data[end - 1] != QUOTE and (n_quotes == 1 or n_quotes == 2):
            is_key = n_quotes == 2 and stands_behind_string(data, first + 1, end, words)
            facts[OPENS, token] = is_outside or is_key
        kind = read_content(data, at, end, escapes, facts, token)
        tail = at + facts[CONTENT_END, token] + 1
        if kind == ENDS and not stands_behind_string(data, tail, end, words):
            kind = NO_CONTENT
        facts[KIND, token] = kind
        for k in range(at, end if kind == ENDS else at):
            is_plain = is_space(data[k]) or data[k] in (_COMMA, _COLON, 91, _BRACKET, 123, _BRACE, QUOTE)
            facts[IS_HARD, token] |= data[k] == BACKSLASH if k < tail else not is_plain
    return 0
