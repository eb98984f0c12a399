"""Sets of Unicode scalar values, exactly as Python's `re` sees them.

A set is a tuple of inclusive ranges ``((low, high), ...)``: sorted, disjoint, not adjacent, without
surrogates. Equal sets are therefore equal tuples. Categories and case do not come from tables of
our own: `re` itself is asked, once, which characters it matches. So the answer is that of the
running Python and its Unicode version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from maskwright.analysis.kept import Kept

Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
EVERYTHING: Ranges = ((0, 0xD7FF), (0xE000, LAST))


def normalise(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same characters as sorted, disjoint, merged ranges.

    Surrogates are dropped, because UTF-8 cannot encode them.

    ranges : inclusive ranges of code points in any order; they may overlap.
    """
    pieces: list[tuple[int, int]] = []
    for low, high in ranges:
        if low <= 0xD7FF:
            pieces.append((low, min(high, 0xD7FF)))
        if high >= 0xE000:
            pieces.append((max(low, 0xE000), high))
    pieces.sort()
    merged: list[tuple[int, int]] = []
    for low, high in pieces:
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All scalar values that are not in `ranges`."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return normalise(gaps)


def difference(ranges: Ranges, removed: Ranges) -> Ranges:
    """The characters of `ranges`, which are as of `normalise`, that are not in `removed`."""
    return complement(normalise([*complement(ranges), *removed]))


def partition(sets: Iterable[Ranges]) -> tuple[list[int], list[int], dict[Ranges, list[int]], int]:
    """The coarsest partition of the scalar values that respects some sets.

    Returns the first characters of its intervals, ascending from 0 on; the class of each interval,
    numbered by first occurrence, -1 for the surrogates; the classes of each set; their number.

    >>> partition([((0, 90),), ((65, 90),)])
    ([0, 65, 91, 55296, 57344], [0, 1, 2, -1, 2], {((0, 90),): [0, 1], ((65, 90),): [1]}, 3)
    """
    numbered = {ranges: number for number, ranges in enumerate(dict.fromkeys(sets))}
    changes = {0: 0, 0xD800: 0, 0xE000: 0}  # a character -> the sets that begin or end there
    for ranges, number in numbered.items():
        for low, high in ranges:
            changes[low] = changes.get(low, 0) ^ 1 << number
            changes[high + 1] = changes.get(high + 1, 0) ^ 1 << number
    changes.pop(LAST + 1, None)
    bounds = sorted(changes)
    number_of: dict[int, int] = {}
    class_of: list[int] = []
    inside = 0
    for bound in bounds:
        inside ^= changes[bound]
        class_of.append(-1 if bound == 0xD800 else number_of.setdefault(inside, len(number_of)))
    classes = {
        ranges: [c for inside, c in number_of.items() if inside >> number & 1] for ranges, number in numbered.items()
    }
    return bounds, class_of, classes, len(number_of)


@lru_cache(maxsize=1)
def _every_character() -> str:
    """All code points in order, as one text."""
    return np.arange(LAST + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


@lru_cache(maxsize=32)
def category(letter: str, ascii_only: bool) -> Ranges:
    r"""The characters of ``\d``, ``\D``, ``\s``, ``\S``, ``\w`` or ``\W``.

    letter : one of ``dDsSwW``.
    ascii_only : whether the flag ASCII holds.

    Example:
        >>> category("d", True)
        ((48, 57),)
    """
    if letter.isupper():
        return complement(category(letter.lower(), ascii_only))
    text = _every_character()[:128] if ascii_only else _every_character()
    found = re.finditer(rf"\{letter}+", text, re.ASCII if ascii_only else re.UNICODE)
    return normalise((match.start(), match.end() - 1) for match in found)


@lru_cache(maxsize=1)
def _cased() -> tuple[str, Ranges]:
    """All characters for which case can make a difference, as a text and as a set.

    It may hold more characters than those.
    """
    text = _every_character()
    cased: set[str] = set()
    for start in range(0, LAST + 1, 256):
        block = text[start : start + 256]
        if block != block.lower() or block != block.upper() or block != block.casefold():
            for character in block:
                images = {character.lower(), character.upper(), character.title(), character.casefold()}
                if images != {character}:
                    cased |= {character, *"".join(images)}
    ordered = "".join(sorted(cased))
    return ordered, normalise((ord(character), ord(character)) for character in ordered)


@Kept
def ignoring_case(exact: Ranges, class_source: str, ascii_only: bool) -> Ranges:
    r"""The characters that a class matches under the flag IGNORECASE.

    `re` is asked about characters with case only: for all others the flag changes nothing.

    exact : what the class matches without the flag.
    class_source : source text of the class, such as "[k]".
    ascii_only : whether the flag ASCII holds.

    Example:
        >>> [chr(low) for low, high in ignoring_case(((107, 107),), "[k]", False)]
        ['K', 'k', '\u212a']
    """
    text, cased = _cased()
    flags = re.IGNORECASE | (re.ASCII if ascii_only else re.UNICODE)
    found = re.findall(class_source, text, flags)
    return normalise([*difference(exact, cased), *((ord(character), ord(character)) for character in found)])
