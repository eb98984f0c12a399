"""Bytes within strings: of values and of keys, with their escapes."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._automaton_kernels import can_have_length, next_state
from maskwright.decoding.schema._frame_kernels import (
    is_any_literal_open,
    is_any_open,
    is_literal_open,
    is_open,
    is_remembered,
    mark,
)
from maskwright.decoding.schema._left_kernels import hash_of_character, is_character_left, is_key_left
from maskwright.decoding.schema._literal_kernels import byte_of, literal_character, n_behind_first, narrow
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._hash_kernels import HASH_FACTOR_1, HASH_FACTOR_2, next_hash
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, DELETE, QUOTE, SPACE, next_utf8

DEAD, GOES_ON, CLOSED = 0, 1, 2
"""What a byte within a string does."""

FIRST_SURROGATE, FIRST_LOW, LAST_SURROGATE, FIRST_WIDE, LAST_CHARACTER = 0xD800, 0xDC00, 0xDFFF, 0x10000, 0x10FFFF


@kernel(forceinline=True)
def add_to_hash(work: Int32, to: int, byte: int) -> None:
    """Add a byte to the hashes of what a thread's string says."""
    work[to + c.HASH_1] = next_hash(int(work[to + c.HASH_1]), HASH_FACTOR_1, int(byte))
    work[to + c.HASH_2] = next_hash(int(work[to + c.HASH_2]), HASH_FACTOR_2, int(byte))


@kernel(forceinline=True)
def narrow_thread(table: Int32, work: Int32, to: int, literals: int, byte: int) -> None:
    """Leave a thread those of its literals that go on with a byte."""
    low, high = narrow(table, literals, work[to + c.LOW], work[to + c.HIGH], work[to + c.DEPTH], byte)
    work[to + c.LOW] = low
    work[to + c.HIGH] = high
    work[to + c.DEPTH] += 1


@kernel
def has_room(table: Int32, automata: Int32, shape: int, state: int, length: int) -> bool:
    """Whether a string of STRINGS can still end, behind `length` characters."""
    automaton, lengths = table[shape + layout.STRING_AUTOMATON], table[shape + layout.STRING_LENGTHS]
    least, most = table[shape + layout.STRING_LEAST], table[shape + layout.STRING_MOST]
    return can_have_length(automata, automaton, lengths, state, least, most, length)


@kernel
def read_content(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, byte: int) -> bool:
    """Whether a thread within a string can take one more byte of what the string says."""
    shape = work[to + c.SHAPE_OF]
    if work[to + c.MODE] == c.STRING:
        if work[to + c.IS_OFF] != 0:
            add_to_hash(work, to, byte)
        if table[shape + layout.KIND] == layout.STRING_LITERALS:
            narrow_thread(table, work, to, table[shape + layout.LITERALS], byte)
            return is_any_literal_open(table, memory, work[to + c.LINK], shape, work[to + c.LOW], work[to + c.HIGH])
        automaton = table[shape + layout.STRING_AUTOMATON]
        if automaton >= 0:
            state = next_state(automata, automaton, work[to + c.AUTOMATON], byte)
            work[to + c.AUTOMATON] = state
            return state != 0 and has_room(table, automata, shape, state, work[to + c.LENGTH])
        utf8 = next_utf8(work[to + c.UTF8], byte)
        work[to + c.UTF8] = utf8
        if utf8 >= 0 and is_last(table, memory, work, to):
            return is_character_left(memory, work[to + c.LINK], utf8, work[to + c.HASH_1], work[to + c.HASH_2])
        return utf8 >= 0
    return read_key_content(table, automata, memory, work, to, byte)


@kernel(forceinline=True)
def is_last(table: Int32, memory: Int32, work: Int32, at: int) -> bool:
    """Whether an item that must differ can only end behind the character under way.

    It is a string of any content that comes to its greatest length. A mask is made as if no item
    had been there.
    """
    is_item = work[at + c.MODE] == c.STRING and work[at + c.IS_OFF] != 0 and memory[c.LIMIT] == 0
    return is_item and work[at + c.LENGTH] == table[work[at + c.SHAPE_OF] + layout.STRING_MOST]


@kernel
def read_key_content(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, byte: int) -> bool:
    """`read_content` of a key."""
    shape, frame = work[to + c.SHAPE_OF], work[to + c.LINK]
    is_alive = False
    if work[to + c.IS_OFF] == 0:
        mark(memory, frame, 2)
        narrow_thread(table, work, to, table[shape + layout.KEYS], byte)
        if work[to + c.LOW] >= work[to + c.HIGH]:
            work[to + c.IS_OFF] = 1
            work[to + c.LOW] = 0
            work[to + c.HIGH] = 0
            work[to + c.DEPTH] = 0
        is_alive = is_any_open(table, memory, frame, shape, work[to + c.LOW], work[to + c.HIGH])
    if work[to + c.LENGTH] != 0:
        if table[shape + layout.TRACKS_KEYS] != 0:
            add_to_hash(work, to, byte)
        automaton = table[shape + layout.KEY_AUTOMATON]
        if automaton >= 0:
            state = next_state(automata, automaton, work[to + c.AUTOMATON], byte)
            work[to + c.AUTOMATON] = state
            if state != 0 and not is_alive:
                first, second = work[to + c.HASH_1], work[to + c.HASH_2]
                is_alive = is_key_left(automata, automaton, state, memory, frame, first, second)
        else:
            utf8 = next_utf8(work[to + c.UTF8], byte)
            work[to + c.UTF8] = utf8
            is_alive = utf8 >= 0
    return is_alive


@kernel
def read_character(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, code: int) -> bool:
    """`read_content` of all bytes of a character."""
    n = n_behind_first(code)
    for k in range(n, -1, -1):  # noqa: SIM110 (for compiled code)
        if not read_content(table, automata, memory, work, to, byte_of(code, n, k)):
            return False
    return True


# ---- Characters that an escape may still spell.


@kernel
def is_free(table: Int32, work: Int32, at: int) -> bool:
    """Whether any character may come next in a string."""
    shape = work[at + c.SHAPE_OF]
    if work[at + c.MODE] == c.STRING:
        return table[shape + layout.KIND] != layout.STRING_LITERALS and table[shape + layout.STRING_AUTOMATON] < 0
    return work[at + c.LENGTH] != 0 and table[shape + layout.KEY_AUTOMATON] < 0


@kernel
def has_automaton_character(
    table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, low: int, high: int
) -> bool:
    """Whether a character from `low` to `high` may come next in a string or key of an automaton."""
    shape, start, is_value = work[at + c.SHAPE_OF], work[at + c.AUTOMATON], work[at + c.MODE] == c.STRING
    automaton = table[shape + (layout.STRING_AUTOMATON if is_value else layout.KEY_AUTOMATON)]
    if start == 0:
        return False
    code = low
    while code <= high:
        n = n_behind_first(code)
        state, k = start, n + 1
        while state != 0 and k > 0:
            k -= 1
            state = next_state(automata, automaton, state, byte_of(code, n, k))
        if state != 0:
            if is_value:
                if has_room(table, automata, shape, state, work[at + c.LENGTH]):
                    return True
            else:
                first = hash_of_character(int(work[at + c.HASH_1]), HASH_FACTOR_1, code)
                second = hash_of_character(int(work[at + c.HASH_2]), HASH_FACTOR_2, code)
                if is_key_left(automata, automaton, state, memory, work[at + c.LINK], first, second):
                    return True
        # none with the same bytes up to the one that was refused
        code = (code | ((1 << 6 * k) - 1)) + 1
    return False


@kernel
def has_new_character(memory: Int32, work: Int32, at: int, low: int, high: int) -> bool:
    """Whether a character from `low` to `high` ends an item that has not been there."""
    for code in range(low, high + 1):
        first = hash_of_character(int(work[at + c.HASH_1]), HASH_FACTOR_1, code)
        second = hash_of_character(int(work[at + c.HASH_2]), HASH_FACTOR_2, code)
        if not is_remembered(memory, work[at + c.LINK], first, second):
            return True
    return False


@kernel
def has_character(table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, low: int, high: int) -> bool:
    """Whether a character from `low` to `high` may come next in the string of a thread."""
    if low > high:
        return False
    if is_free(table, work, at):
        return not is_last(table, memory, work, at) or has_new_character(memory, work, at, low, high)
    shape, frame = work[at + c.SHAPE_OF], work[at + c.LINK]
    is_value = work[at + c.MODE] == c.STRING
    if is_value and table[shape + layout.KIND] != layout.STRING_LITERALS:
        return has_automaton_character(table, automata, memory, work, at, low, high)
    if not is_value and work[at + c.IS_OFF] == 0:
        mark(memory, frame, 2)
    literals = table[shape + (layout.LITERALS if is_value else layout.KEYS)]
    for number in range(work[at + c.LOW], work[at + c.HIGH]):
        code = literal_character(table, literals, number, work[at + c.DEPTH])
        if low <= code <= high:
            if is_value and is_literal_open(table, memory, frame, shape, number):
                return True
            if not is_value and is_open(table, memory, frame, shape, number):
                return True
    if is_value or work[at + c.LENGTH] == 0:
        return False
    return has_automaton_character(table, automata, memory, work, at, low, high)


@kernel
def can_be_unit(table: Int32, automata: Int32, memory: Int32, work: Int32, at: int, low: int, high: int) -> bool:
    r"""Whether some `\u` escape of a unit from `low` to `high` spells a character that may come.

    That is the character itself, or for the first half of a pair one of those of its pairs. Where
    not all escapes are allowed, it is a control character without a letter of its own, or, unless
    they are minimal, no printable ASCII.
    """
    if table[layout.ESCAPES] != layout.ANY_ESCAPES:
        if (
            has_character(table, automata, memory, work, at, low, min(high, 7))
            or has_character(table, automata, memory, work, at, max(low, 11), min(high, 11))
            or has_character(table, automata, memory, work, at, max(low, 14), min(high, SPACE - 1))
        ):
            return True
        low = max(low, DELETE)
        if table[layout.ESCAPES] == layout.MINIMAL_ESCAPES or low > high:
            return False
    if has_character(table, automata, memory, work, at, low, min(high, FIRST_SURROGATE - 1)):
        return True
    if has_character(table, automata, memory, work, at, max(low, LAST_SURROGATE + 1), high):
        return True
    first, last = max(low, FIRST_SURROGATE), min(high, FIRST_LOW - 1)
    if first > last:
        return False
    begin, end = first - FIRST_SURROGATE << 10, (last - FIRST_SURROGATE << 10) | 0x3FF
    return has_character(table, automata, memory, work, at, FIRST_WIDE + begin, FIRST_WIDE + end)


@kernel
def can_be_escaped(table: Int32, automata: Int32, memory: Int32, work: Int32, at: int) -> bool:
    """Whether some character that may come next in a string has an escape."""
    if table[layout.ESCAPES] == layout.ANY_ESCAPES:
        return can_be_unit(table, automata, memory, work, at, 0, 0xFFFF)
    return (
        has_character(table, automata, memory, work, at, 0, SPACE - 1)
        or can_be_unit(table, automata, memory, work, at, DELETE, 0xFFFF)
        or has_character(table, automata, memory, work, at, QUOTE, QUOTE)
        or has_character(table, automata, memory, work, at, BACKSLASH, BACKSLASH)
    )


@kernel(forceinline=True)
def hex_digit(byte: int) -> int:
    """The value of a hexadecimal digit, or -1."""
    if 48 <= byte <= 57:
        return byte - 48
    if 65 <= byte <= 70:
        return byte - 55
    if 97 <= byte <= 102:
        return byte - 87
    return -1


@kernel
def unescaped_letter(byte: int) -> int:
    """The character that a byte behind a backslash spells; -1 for none, and for u."""
    if byte in (QUOTE, BACKSLASH, 47):
        return byte
    if byte == 98:
        return 8
    if byte == 102:
        return 12
    if byte == 110:
        return 10
    if byte == 114:
        return 13
    return 9 if byte == 116 else -1


@kernel
def read_escape(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, byte: int) -> bool:
    """Whether a thread within an escape can take one more byte."""
    escape = work[to + c.ESCAPE]
    is_any = table[layout.ESCAPES] == layout.ANY_ESCAPES
    if escape == c.BEHIND_BACKSLASH:
        if byte == 117:  # u
            work[to + c.ESCAPE] = c.UNIT
            work[to + c.CODE] = 0
            return is_any or can_be_unit(table, automata, memory, work, to, 0, 0xFFFF)
        work[to + c.ESCAPE] = c.NO_ESCAPE
        code = unescaped_letter(byte)
        return code >= 0 and (byte != 47 or is_any) and read_content(table, automata, memory, work, to, code)
    if escape == c.LOW_BACKSLASH:
        work[to + c.ESCAPE] = c.LOW_U
        return byte == BACKSLASH
    if escape == c.LOW_U:
        work[to + c.ESCAPE] = c.LOW_UNIT
        return byte == 117
    digit = hex_digit(byte)
    if digit < 0 or (byte < 97 and digit > 9 and table[layout.ESCAPES] == layout.MINIMAL_ESCAPES):
        return False
    if escape < c.LOW_BACKSLASH:
        return read_unit_digit(table, automata, memory, work, to, digit)
    return read_low_digit(table, automata, memory, work, to, digit)


@kernel
def read_unit_digit(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, digit: int) -> bool:
    r"""`read_escape` of a digit of a character's `\u`, or of the first half of a pair."""
    code = work[to + c.CODE] << 4 | digit
    n = work[to + c.ESCAPE] - c.UNIT + 1
    work[to + c.CODE] = code
    work[to + c.ESCAPE] += 1
    if n < 4:
        shift = 4 * (4 - n)
        return can_be_unit(table, automata, memory, work, to, code << shift, (code + 1 << shift) - 1)
    if table[layout.ESCAPES] != layout.ANY_ESCAPES and not can_be_unit(table, automata, memory, work, to, code, code):
        return False
    if FIRST_SURROGATE <= code <= LAST_SURROGATE:
        work[to + c.ESCAPE] = c.LOW_BACKSLASH
        return code < FIRST_LOW and can_be_unit(table, automata, memory, work, to, code, code)
    work[to + c.ESCAPE] = c.NO_ESCAPE
    work[to + c.CODE] = 0
    return read_character(table, automata, memory, work, to, code)


@kernel
def read_low_digit(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, digit: int) -> bool:
    r"""`read_escape` of a digit of the second half of a pair. CODE: the halves, 16 bits each."""
    n = work[to + c.ESCAPE] - c.LOW_UNIT + 1
    if n == 1:
        work[to + c.CODE] <<= 12  # the high half without its first four bits, which are always D
    half = (work[to + c.CODE] & 0xFFF) << 4 | digit
    high = (work[to + c.CODE] >> 12 & 0xFFF) | 0xD000
    shift = 4 * (4 - n)
    low, last = max(half << shift, FIRST_LOW), min((half + 1 << shift) - 1, LAST_SURROGATE)
    if low > last:
        return False
    base = FIRST_WIDE + (high - FIRST_SURROGATE << 10) - FIRST_LOW
    if n < 4:
        work[to + c.CODE] = (high & 0xFFF) << 12 | half
        work[to + c.ESCAPE] += 1
        return has_character(table, automata, memory, work, to, base + low, base + last)
    work[to + c.ESCAPE] = c.NO_ESCAPE
    work[to + c.CODE] = 0
    return read_character(table, automata, memory, work, to, base + half)


@kernel
def read_string_byte(table: Int32, automata: Int32, memory: Int32, work: Int32, to: int, byte: int) -> int:
    """What one more byte does to a thread within a string: DEAD, GOES_ON or CLOSED."""
    if work[to + c.ESCAPE] != c.NO_ESCAPE:
        return GOES_ON if read_escape(table, automata, memory, work, to, byte) else DEAD
    if work[to + c.UTF8] == 0 and (byte < 0x80 or byte >= 0xC0):  # a character begins, or the string ends
        if byte == QUOTE:
            return CLOSED
        if byte < SPACE:
            return DEAD
        shape = work[to + c.SHAPE_OF]
        if work[to + c.MODE] == c.STRING and table[shape + layout.KIND] != layout.STRING_LITERALS:
            most = table[shape + layout.STRING_MOST]
            if most >= 0 or work[to + c.LENGTH] < table[shape + layout.STRING_LEAST]:
                work[to + c.LENGTH] += 1
                if 0 <= most < work[to + c.LENGTH]:
                    return DEAD
        if byte == BACKSLASH:
            work[to + c.ESCAPE] = c.BEHIND_BACKSLASH
            return GOES_ON if can_be_escaped(table, automata, memory, work, to) else DEAD
    return GOES_ON if read_content(table, automata, memory, work, to, byte) else DEAD
