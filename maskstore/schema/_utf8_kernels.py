"""Bytes of strings: UTF-8 byte by byte, without overlong forms and surrogates.

Source: The Unicode Standard, version 15, table 3-7.
"""

from __future__ import annotations

from maskwright.analysis.jit import kernel

QUOTE, BACKSLASH, SPACE, DELETE = 34, 92, 32, 127
"""Bytes; those below a blank are not allowed in strings."""
N_UTF8_STATES = 8
"""0: between characters. 1, 2, 3: so many bytes are left of a character. 4 to 7: behind the first
byte E0, ED, F0 or F4, of whose second byte not all values are allowed."""


@kernel(forceinline=True)
def next_utf8(state: int, byte: int) -> int:
    """The state behind a byte, or -1 if it cannot stand there."""
    if state == 0:
        if byte < 0x80:
            return 0
        if byte < 0xC2:
            return -1
        if byte <= 0xDF:
            return 1
        if byte == 0xE0:
            return 4
        if byte == 0xED:
            return 5
        if byte <= 0xEF:
            return 2
        if byte == 0xF0:
            return 6
        if byte <= 0xF3:
            return 3
        return 7 if byte == 0xF4 else -1
    if byte < 0x80 or byte > 0xBF:
        return -1
    if state <= 3:
        return state - 1
    if state == 4:
        return 1 if byte >= 0xA0 else -1
    if state == 5:
        return 1 if byte < 0xA0 else -1
    if state == 6:
        return 2 if byte >= 0x90 else -1
    return 2 if byte < 0x90 else -1
