"""Where bytes of JSON texts stand: inside or outside strings, and in how many brackets."""

from __future__ import annotations

import re
from typing import NamedTuple

from maskwright.analysis.marks import MARK

OUTSIDE, IN_STRING, BEHIND_BACKSLASH = range(3)


class Place(NamedTuple):
    """A place in a JSON text.

    inside : OUTSIDE a string, IN_STRING, or BEHIND_BACKSLASH in one.
    depth : the number of open brackets; negative if more were closed than opened.
    """

    inside: int
    depth: int


START = Place(OUTSIDE, 0)
"""The start of a text, and where it may end."""

_OUTSIDE = re.compile(rb'["\[\]{}\xf8-\xff]')
_INSIDE = re.compile(rb'["\\]')
_SPACE = b" \t\n\r"


def place_after(data: bytes, place: Place) -> Place:
    r"""Where a text is behind more bytes.

    data : bytes of a JSON text, in which a mark may stand for a value.

    Example:
        >>> place_after(b'{"a\\"b": [', START)
        Place(inside=0, depth=2)
    """
    inside, depth = place
    at, n = 0, len(data)
    while at < n:
        if inside == BEHIND_BACKSLASH:
            inside, at = IN_STRING, at + 1
            continue
        found = (_INSIDE if inside else _OUTSIDE).search(data, at)
        if found is None:
            break
        byte = data[found.start()]
        at = found.end()
        if byte == 0x22:
            inside = OUTSIDE if inside else IN_STRING
        elif byte == 0x5C:
            inside = BEHIND_BACKSLASH
        elif byte >= MARK:
            at += 2
        else:
            depth += 1 if byte in b"[{" else -1
    return place if (inside, depth) == place else Place(inside, depth)


def closes(data: bytes, place: Place) -> bool:
    """Whether some bytes close all that is open at a place, and nothing but white space is behind.

    At START nothing is open: there they are whole values, or white space.

    data : bytes of a JSON text, without marks.

    Example:
        >>> closes(b'"}] ', Place(IN_STRING, 2)), closes(b"] ]", Place(OUTSIDE, 1))
        (True, False)
    """
    said, here = data.rstrip(_SPACE), place
    for at in range(len(said)):
        if here.depth < 0 or (at and here == START != place):
            return False
        here = place_after(said[at : at + 1], here)
    return here == START


def may_begin_value(before: bytes, place: Place) -> bool:
    """Whether a value may begin behind some bytes, as far as brackets and strings tell.

    Example:
        >>> may_begin_value(b'": ', Place(IN_STRING, 1)), may_begin_value(b"a", START)
        (True, False)
    """
    if place_after(before, place).inside:
        return False
    said = before.rstrip(_SPACE)
    return not said or said[-1:] in (b":", b"[", b",")
