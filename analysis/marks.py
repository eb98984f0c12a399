"""Marks: what stands in a host's text for a part of another language.

A composition has a *host*, a grammar or a schema, in which parts of other languages stand. The
host's engine reads a part as its mark: three bytes that no UTF-8 text holds, so that no text can be
taken for one. Part k has the mark ``F8 40+k/64 40+k%64``.
"""

from __future__ import annotations

import secrets

MARK = 0xF8
"""The first byte of every mark. It and the bytes above it are in no UTF-8 text."""

MOST_PARTS = 64 * 64
"""The most parts of one composition."""

PART_FLAGS = "part"
"""The flags of a terminal that stands for a part; its pattern is the part's number."""

_FORMAT = f"\0part {secrets.token_hex(16)} "  # no schema of somebody else's says it


def mark(part: int) -> bytes:
    """The mark of a part.

    part : 0 to MOST_PARTS - 1.

    >>> part_of_mark(mark(65))
    65
    """
    return bytes((MARK, 0x40 + part // 64, 0x40 + part % 64))


def part_of_mark(data: bytes, at: int = 0) -> int:
    """The part whose mark stands at a place."""
    return 64 * (data[at + 1] - 0x40) + data[at + 2] - 0x40


def part_format(part: int) -> str:
    """The format by which a schema says, within this process, that a string is a part."""
    return f"{_FORMAT}{part}"


def part_of_format(name: str) -> int | None:
    """The part that a format stands for; None for any other format."""
    return int(name[len(_FORMAT) :]) if name.startswith(_FORMAT) else None
