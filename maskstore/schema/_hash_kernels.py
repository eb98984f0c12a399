"""Hashes of what keys and items say, by which they are remembered."""

from __future__ import annotations

from maskwright.analysis.jit import kernel

HASH_FACTOR_1, HASH_FACTOR_2 = 0x2C1B3C6D, 0x297A2D39
"""Factors of two hashes of what a string says: 62 bits together."""


@kernel(forceinline=True)
def next_hash(value: int, factor: int, byte: int) -> int:
    """A hash of one more byte: 31 bits. For each byte another hash has another successor."""
    found = ((value ^ (byte + 1)) * factor) & 0x7FFFFFFF
    return found ^ (found >> 15)
