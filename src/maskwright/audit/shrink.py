"""Shorten a text while it still shows something: delta debugging.

We remove lines, words, characters, and pairs of brackets.

Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (2002), ddmin.
PAPER: we only remove chunks and never test a chunk alone. We first try ends of the text, and other
texts that are known to be short. We remove brackets two by two.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

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


class _Search:
    """The shortest text so far that shows it. Each text is tried once, within a budget.

    tests : left. end : time to stop at.
    """

    def __init__(self, best: bytes, shows: Shows, tests: int, end: float) -> None:
        self.best, self.shows, self.tests, self.end = best, shows, tests, end
        self.known: dict[bytes, bool] = {}

    def takes(self, text: bytes) -> bool:
        """Whether a shorter text shows it; it is the best one then."""
        if text not in self.known:
            if self.tests <= 0 or time.monotonic() > self.end:
                raise _OverError
            self.tests -= 1
            self.known[text] = self.shows(text)
        if self.known[text]:
            self.best = text
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
    search = _Search(text, shows, tests, time.monotonic() + seconds)
    try:
        shorter = (other for other in sorted({b"", *others}, key=lambda one: (len(one), one)) if len(other) < len(text))
        any(map(search.takes, shorter))
        any(map(search.takes, _ends(search.best)))
        before = None
        while before != search.best:
            before = search.best
            _remove_chunks(search, _LINES)
            _remove_chunks(search, _WORDS)
            while any(map(search.takes, _without_brackets(search.best))):
                pass
            _remove_chunks(search, _CHARACTERS)
            any(map(search.takes, _without_stretch(search.best)))
    except _OverError:
        pass
    return search.best


def _ends(text: bytes) -> Iterator[bytes]:
    """The last line alone, then the last two, four and so on."""
    begins = [match.start() for match in _LINES.finditer(text)]
    n = 1
    while n < len(begins):
        yield text[begins[-n] :]
        n *= 2


def _remove_chunks(search: _Search, units: re.Pattern[bytes]) -> None:
    """Remove ever smaller chunks of units, down to single ones."""
    pieces = units.findall(search.best)
    size = len(pieces) // 2
    while size:
        at = 0
        is_shorter = False
        while at < len(pieces):
            kept = pieces[:at] + pieces[at + size :]
            if search.takes(b"".join(kept)):
                pieces, is_shorter = kept, True
            else:
                at += size
        # What could not go before may go now that others are gone.
        size = size if is_shorter and size == 1 else size // 2
    if len(pieces) == 1:
        search.takes(b"")


def _without_stretch(text: bytes) -> Iterator[bytes]:
    """A short text without each stretch, the longest first.

    This finds what can only go together, such as a line and the indentation of the next one.
    """
    for units in (_WORDS, _CHARACTERS):
        pieces = units.findall(text)
        n = len(pieces)
        if n > WINDOWED:
            return
        for length in range(n, 0, -1):
            for begin in range(n - length + 1):
                yield b"".join(pieces[:begin] + pieces[begin + length :])


def _without_brackets(text: bytes) -> Iterator[bytes]:
    """A text without each pair of brackets, with or without their content, or with something short.

    The latter is for brackets where there must be something.
    """
    for begin, end in _brackets(text):
        for middle in (b"", text[begin + 1 : end], *_SHORT):
            yield text[:begin] + middle + text[end + 1 :]


def _brackets(text: bytes) -> Sequence[tuple[int, int]]:
    """The pairs of matching brackets, as offsets, the longest first."""
    found, opened = [], []
    for at, byte in enumerate(text):
        if byte in _PAIRS:
            opened.append(at)
        elif opened and byte == _PAIRS[text[opened[-1]]]:
            found.append((opened.pop(), at))
    return sorted(found, key=lambda pair: pair[0] - pair[1])
