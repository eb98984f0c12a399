"""Shorten a text while it still shows something: delta debugging.

We remove lines, words, characters, and pairs of brackets.

Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (2002), ddmin.
PAPER: we only remove chunks and never test a chunk alone. We first try ends of the text, and other
texts that are known to be short. We remove brackets two by two.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

Shows = Callable[[bytes], bool]
"""Whether a text shows it."""

TESTS = 4_000
"""Texts that are tried at most."""
WINDOWED = 40
"""Most words, or characters, of a text of which every stretch is tried."""

_LINES = re.compile(rb"[^\n]*\n|[^\n]+")
_WORDS = re.compile(rb"(?:\w|[\xc0-\xff][\x80-\xbf]*)+|[ \t]+|[^\w \t]", re.ASCII)
_CHARACTERS = re.compile(rb"[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]")
_PAIRS = {ord("("): ord(")"), ord("["): ord("]"), ord("{"): ord("}")}
_SHORT = (b"0", b"a")
"""Replacements for a pair of brackets and its content."""


class _OverError(Exception):
    """The budget is spent."""


@dataclass
class _Search:
    """`shows` with a memory and a budget. tests : left. end : time to stop at."""

    shows: Shows
    tests: int
    end: float
    known: dict[bytes, bool] = field(default_factory=dict)

    def __call__(self, text: bytes) -> bool:
        if text not in self.known:
            if self.tests <= 0 or time.monotonic() > self.end:
                raise _OverError
            self.tests -= 1
            self.known[text] = self.shows(text)
        return self.known[text]


def shrink(
    text: bytes, shows: Shows, *, others: Iterable[bytes] = (), tests: int = TESTS, seconds: float = 10.0
) -> bytes:
    """A minimal witness: a text that still shows it, as short as we can make it.

    Removing any one line, word, character or pair of brackets loses what it shows. In a short text
    removing any one stretch does too.

    text : must show it.
    shows : whether a text shows it.
    others : short texts that are tried first.
    tests, seconds : the budget. When it is spent, the shortest text so far is returned, which may
        not be minimal.
    """
    search = _Search(shows, tests, time.monotonic() + seconds)
    best = [text]
    try:
        for other in sorted({b"", *others}, key=lambda other: (len(other), other)):
            if len(other) < len(best[0]) and search(other):
                best[0] = other
                break
        _end_of(best, search)
        before = None
        while before != best[0]:
            before = best[0]
            for units in (_LINES, _WORDS):
                _remove_chunks(best, units, search)
            _remove_pairs(best, search)
            _remove_chunks(best, _CHARACTERS, search)
            _remove_windows(best, search)
    except _OverError:
        pass
    return best[0]


def _end_of(best: list[bytes], search: _Search) -> None:
    """Try the last line alone, then the last two, four and so on."""
    begins = [match.start() for match in _LINES.finditer(best[0])]
    n = 1
    while n < len(begins):
        end = best[0][begins[-n] :]
        if search(end):
            best[0] = end
            return
        n *= 2


def _remove_chunks(best: list[bytes], units: re.Pattern[bytes], search: _Search) -> None:
    """Remove ever smaller chunks of units, down to single ones."""
    pieces = units.findall(best[0])
    size = len(pieces) // 2
    while size:
        at = 0
        is_shorter = False
        while at < len(pieces):
            kept = pieces[:at] + pieces[at + size :]
            if search(b"".join(kept)):
                pieces, is_shorter = kept, True
                best[0] = b"".join(pieces)
            else:
                at += size
        # What could not go before may go now that others are gone.
        size = size if is_shorter and size == 1 else size // 2
    if len(pieces) == 1 and search(b""):
        best[0] = b""


def _remove_windows(best: list[bytes], search: _Search) -> None:
    """Try to remove each stretch of a short text.

    This finds what can only go together, such as a line and the indentation of the next one.
    """
    for units in (_WORDS, _CHARACTERS):
        pieces = units.findall(best[0])
        n = len(pieces)
        if n > WINDOWED:
            return
        for begin, end in sorted(((i, j) for i in range(n) for j in range(i + 1, n + 1)), key=lambda w: w[0] - w[1]):
            shorter = b"".join(pieces[:begin] + pieces[end:])
            if search(shorter):
                best[0] = shorter
                return


def _remove_pairs(best: list[bytes], search: _Search) -> None:
    """Remove brackets with or without their content, or replace both by something short.

    The latter is for brackets where there must be something.
    """
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for begin, end in _brackets(best[0]):
            text = best[0]
            for middle in (b"", text[begin + 1 : end], *_SHORT):
                shorter = text[:begin] + middle + text[end + 1 :]
                if search(shorter):
                    best[0], is_shorter = shorter, True
                    break
            if is_shorter:
                break


def _brackets(text: bytes) -> Sequence[tuple[int, int]]:
    """The pairs of matching brackets, as offsets, the longest first."""
    found, opened = [], []
    for at, byte in enumerate(text):
        if byte in _PAIRS:
            opened.append(at)
        elif opened and byte == _PAIRS[text[opened[-1]]]:
            found.append((opened.pop(), at))
    return sorted(found, key=lambda pair: pair[0] - pair[1])
