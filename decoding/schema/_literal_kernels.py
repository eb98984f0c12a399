"""Literals: those that begin with what has been read."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel


@kernel
def narrow(table: Int32, literals: int, low: int, high: int, depth: int, byte: int) -> tuple[int, int]:
    """Of the literals `low` to `high`, which agree in `depth` bytes, those that go on with a byte.

    Literals are sorted, so these are neighbours again.
    """
    starts = literals + 1
    data = starts + table[literals] + 1
    begin, end = low, high
    while begin < end:
        middle = (begin + end) >> 1
        at = table[starts + middle] + depth
        if at < table[starts + middle + 1] and table[data + at] >= byte:
            end = middle
        else:
            begin = middle + 1
    last, end = begin, high
    while last < end:
        middle = (last + end) >> 1
        if table[data + table[starts + middle] + depth] > byte:
            end = middle
        else:
            last = middle + 1
    return begin, last


@kernel(forceinline=True)
def literal_length(table: Int32, literals: int, number: int) -> int:
    """The bytes of a literal."""
    return table[literals + 2 + number] - table[literals + 1 + number]


@kernel(forceinline=True)
def literal_byte(table: Int32, literals: int, number: int, depth: int) -> int:
    """A byte of a literal."""
    return table[literals + 2 + table[literals] + table[literals + 1 + number] + depth]


@kernel
def literal_character(table: Int32, literals: int, number: int, depth: int) -> int:
    """The character of a literal that begins at a byte; -1 at its end or where none begins."""
    if depth >= literal_length(table, literals, number):
        return -1
    first = literal_byte(table, literals, number, depth)
    if first < 0x80:
        return first
    if first < 0xC0:
        return -1
    n = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
    found = first & (0x3F >> n)
    for k in range(n):
        found = found << 6 | (literal_byte(table, literals, number, depth + 1 + k) & 0x3F)
    return found


@kernel(forceinline=True)
def n_behind_first(code: int) -> int:
    """The bytes of a character in UTF-8 behind its first one."""
    return 0 if code < 0x80 else 1 if code < 0x800 else 2 if code < 0x10000 else 3


@kernel(forceinline=True)
def byte_of(code: int, n: int, k: int) -> int:
    """The byte of a character in UTF-8 that has k of its n + 1 bytes behind it."""
    if k < n:
        return 0x80 | (code >> 6 * k & 0x3F)
    return code if n == 0 else (0x100 - (0x80 >> n)) | code >> 6 * n
