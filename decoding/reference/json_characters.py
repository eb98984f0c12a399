r"""Characters of JSON strings: how they are spelled, and automata that read one after the other.

A character is a Unicode scalar value. A *spelling* is the bytes of one character within a JSON
string: its UTF-8, a short escape as `\n`, or `\u` with four hexadecimal digits, twice for a
surrogate pair. A *range* is the first and the last of some characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeVar

import numpy as np

from maskwright.analysis.kept import cached_property
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.lengths import length_table
from maskwright.analysis.schema.shapes import Escapes, KeyAutomaton

T = TypeVar("T")

QUOTE, BACKSLASH, SPACE, DELETE = 0x22, 0x5C, 0x20, 0x7F
LAST = 0x10FFFF
FIRST_HIGH, FIRST_LOW, LAST_LOW, FIRST_WIDE = 0xD800, 0xDC00, 0xDFFF, 0x10000

Range = tuple[int, int]
Ranges = tuple[Range, ...]

ALL: Ranges = ((0, FIRST_HIGH - 1), (LAST_LOW + 1, LAST))
"""All characters."""

SHORT_ESCAPES = {
    ord('"'): '"',
    ord("\\"): "\\",
    ord("/"): "/",
    ord("b"): "\b",
    ord("f"): "\f",
    ord("n"): "\n",
    ord("r"): "\r",
    ord("t"): "\t",
}
"""The byte behind the backslash -> the character."""

MINIMAL_ESCAPES = {
    **{character: f"\\u{character:04x}" for character in range(SPACE)},
    **{ord(character): "\\" + chr(byte) for byte, character in SHORT_ESCAPES.items() if character != "/"},
}
"""The character -> its escape, where escapes are minimal."""

_HEX = b"0123456789abcdefABCDEF"
_LENGTHS = ((0, 0x00, 0, 0x7F), (1, 0xC0, 0x80, 0x7FF), (2, 0xE0, 0x800, 0xFFFF), (3, 0xF0, FIRST_WIDE, LAST))
"""For each length of UTF-8: the bytes behind the first, the first byte's bits, the characters."""


def spelled(spelling: bytes, escapes: Escapes = "any") -> Ranges:
    """The characters of which some bytes are the spelling, or its beginning.

    spelling : at least one byte, none of them a quotation mark that ends the string.
    escapes : those that there are: see `Texts`.

    Returns () if no character is spelled so.

    >>> spelled(b"a"), spelled(b"\\\\u00"), spelled(b"\\\\udc")
    (((97, 97),), ((0, 255),), ())
    """
    if spelling[0] != BACKSLASH:
        return _of_utf8(spelling)
    if escapes != "any":
        text = spelling.decode("latin-1")
        if escapes != "minimal":  # then the digits may be capitals
            text = text[:2] + text[2:].lower()
        minimal = tuple((one, one) for one, escape in MINIMAL_ESCAPES.items() if escape.startswith(text))
        if escapes == "minimal":
            return minimal
        is_unit = spelling[1:2] in (b"", b"u")
        return minimal + tuple(c for one in spelled(spelling) for c in _clipped(*one, DELETE, LAST) if is_unit)
    if len(spelling) == 1:
        return ALL
    if spelling[1] != ord("u"):
        character = SHORT_ESCAPES.get(spelling[1])
        return ((ord(character), ord(character)),) if character and len(spelling) == 2 else ()
    units = _units(spelling[2:6])
    if units is None:
        return ()
    first, last = units
    if len(spelling) <= 6:
        wide = _clipped(first, last, FIRST_HIGH, FIRST_LOW - 1)
        pairs = tuple((_pair(a, FIRST_LOW), _pair(b, LAST_LOW)) for a, b in wide)
        return _clipped(first, last, 0, FIRST_HIGH - 1) + _clipped(first, last, LAST_LOW + 1, 0xFFFF) + pairs
    low = None if spelling[6:8] != b"\\u"[: len(spelling) - 6] else _units(spelling[8:])
    if low is None or not FIRST_HIGH <= first < FIRST_LOW:
        return ()
    return tuple((_pair(first, a), _pair(first, b)) for a, b in _clipped(*low, FIRST_LOW, LAST_LOW))


def left(spelling: bytes) -> int:
    """The fewest bytes that complete a spelling of which `spelled` has some; 0 if it is whole."""
    if spelling[0] != BACKSLASH:
        return 1 + (spelling[0] >= 0xC2) + (spelling[0] >= 0xE0) + (spelling[0] >= 0xF0) - len(spelling)
    if spelling[1:2] != b"u":
        return 2 - len(spelling)
    units = _units(spelling[2:6])
    is_half = units is not None and FIRST_HIGH <= units[0] < FIRST_LOW
    return (12 if is_half else 6) - len(spelling)


def _units(digits: bytes) -> Range | None:
    """The least and the greatest 16-bit number that begin with some of four hexadecimal digits."""
    if len(digits) > 4 or any(digit not in _HEX for digit in digits):
        return None
    left = 4 * (4 - len(digits))
    value = int(digits or b"0", 16)
    return value << left, ((value + 1) << left) - 1 if digits else 0xFFFF


def _pair(high: int, low: int) -> int:
    return FIRST_WIDE + ((high - FIRST_HIGH) << 10) + (low - FIRST_LOW)


def _clipped(first: int, last: int, least: int, most: int) -> Ranges:
    first, last = max(first, least), min(last, most)
    return ((first, last),) if first <= last else ()


def _of_utf8(spelling: bytes) -> Ranges:
    """The characters whose UTF-8 begins so, without those that must be escaped."""
    lead = spelling[0]
    if lead < 0x80:
        return () if len(spelling) > 1 or lead < SPACE or lead == QUOTE else ((lead, lead),)
    n = 1 if 0xC2 <= lead < 0xE0 else 2 if 0xE0 <= lead < 0xF0 else 3 if 0xF0 <= lead < 0xF5 else 0
    if len(spelling) > n + 1 or not n or any(not 0x80 <= byte < 0xC0 for byte in spelling[1:]):
        return ()
    value = lead & (0x3F >> n)
    for byte in spelling[1:]:
        value = value << 6 | byte & 0x3F
    left = 6 * (n + 1 - len(spelling))
    _, _, least, most = _LENGTHS[n]
    first, last = value << left, ((value + 1) << left) - 1
    parts = [_clipped(first, last, a, b) for a, b in ALL]
    return tuple(clipped for part in parts for one in part for clipped in _clipped(*one, least, most))


def is_in(character: int, ranges: Ranges) -> bool:
    """Whether a character is in one of some ranges."""
    return any(first <= character <= last for first, last in ranges)


_ANY_ASCII = np.where(np.arange(256) < 0x80, 0, -1)[None]


class Characters:
    """An automaton over UTF-8, read character by character. State 0 is initial; -1 is none.

    dfa : None for the automaton with one state that reads all characters. Each of its states can
        reach one that accepts.
    accepting : whether each state accepts.

    rows : of the automaton, (n_states, 256) int32; of all characters those of one byte are enough.

    INVARIANT: it reads valid UTF-8 only.
    """

    def __init__(self, dfa: Dfa | None) -> None:
        self._dfa = dfa
        self.rows = _ANY_ASCII if dfa is None else dfa.next_state
        self.accepting: list[bool] = [True] if dfa is None else dfa.is_accepting.tolist()
        self._steps: dict[tuple[int, Ranges], dict[int, int]] = {}
        self._rests: dict[tuple[int, int, int, int], dict[int, int]] = {}

    @cached_property
    def _rows(self) -> list[list[int]] | None:
        return None if self._dfa is None else self._dfa.next_state.tolist()

    @classmethod
    def of_keys(cls, keys: KeyAutomaton) -> Characters:
        """The automaton of keys, which accepts those of all classes."""
        return cls(Dfa(keys.next_state, keys.ends >= 0))

    def after(self, state: int, text: bytes) -> int:
        """The state behind the UTF-8 of some characters, or -1."""
        if self._rows is not None:
            for byte in text:
                state = self._rows[state][byte]
                if state < 0:
                    break
        return state

    def steps(self, state: int, ranges: Ranges) -> dict[int, int]:
        """The states behind one character of some ranges -> by how many characters."""
        found = self._steps.get((state, ranges))
        if found is None:
            found = self._steps[state, ranges] = {}
            for first, last in ranges:
                _add(found, self._span(state, first, last))
        return found

    def _span(self, state: int, first: int, last: int) -> dict[int, int]:
        if self._rows is None:
            return {state: last - first + 1}
        found: dict[int, int] = {}
        for n, lead, least, most in _LENGTHS:
            for a, b in _clipped(first, last, least, most):
                _add(found, self._blocks(state, n, lead, a, b))
        return found

    def _blocks(self, state: int, n: int, bits: int, first: int, last: int) -> dict[int, int]:
        """The states behind one byte and `n` more. bits : of the byte, beside the number's."""
        assert self._rows is not None
        found: dict[int, int] = {}
        size = 1 << 6 * n
        for block in range(first // size, last // size + 1):
            after = self._rows[state][bits | block]
            if after >= 0:
                a, b = max(first - block * size, 0), min(last - block * size, size - 1)
                _add(found, self._rest(after, n, a, b))
        return found

    def _rest(self, state: int, n: int, first: int, last: int) -> dict[int, int]:
        """The states behind `n` bytes that continue a character."""
        if n == 0:
            return {state: 1}
        key = (state, n, first, last)
        if key not in self._rests:
            self._rests[key] = self._blocks(state, n - 1, 0x80, first, last)
        return self._rests[key]

    def after_each(self, state: int) -> Iterator[tuple[bytes, int]]:
        """Each character that may come, as UTF-8, and the state behind it; printable ones first."""
        if self._rows is None:
            ranges = (SPACE, 0x7F), (0, SPACE), (0x7F, FIRST_HIGH), (LAST_LOW + 1, LAST + 1)
            points = chain.from_iterable(range(*each) for each in ranges)
            yield from ((chr(point).encode(), state) for point in points)
            return
        order = (*range(SPACE, 0x7F), *range(SPACE), *range(0x7F, 0x100))
        todo = [(b"", state)]
        while todo:
            begun, at = todo.pop()
            if begun and len(begun) == 1 + (begun[0] >= 0xC2) + (begun[0] >= 0xE0) + (begun[0] >= 0xF0):
                yield begun, at
                continue
            row = self._rows[at]
            todo += [(begun + bytes([byte]), row[byte]) for byte in reversed(order) if row[byte] >= 0]

    def _nearest(self, state: int, least: int) -> int:
        """The fewest further characters, at least `least`, to an end of a string; -1 for none."""
        least = max(least, 0)
        return least if self._dfa is None else length_table(self._dfa).after(least, state)

    def goes_on(self, state: int, least: int, most: int | None, ranges: Ranges | None = None) -> bool:
        """Whether a string of some length leads from a state to one that accepts.

        least, most : its characters; most : None for no limit.
        ranges : of the first one, which there is; None if the string may also be empty.

        Raises: LimitError as `length_table`.
        """
        if ranges is not None:
            most = None if most is None else most - 1
            return any(self.goes_on(after, least - 1, most) for after in self.steps(state, ranges))
        if most is None and least <= 0:
            return True
        found = self._nearest(state, least)
        return found >= 0 and (most is None or found <= most)

    def strings(
        self, state: int, least: int, most: int | None, content: bytes = b"", ranges: Ranges | None = None
    ) -> Iterator[bytes]:
        """The strings that begin with `content`, which led to `state`; the shortest first.

        least, most, ranges : of what comes behind it, as of `goes_on`.
        """
        if ranges is None:
            length = self._nearest(state, least)
            while length >= 0 and (most is None or length <= most):
                begun = walked((content, state, length), self._longer)
                yield from (text for text, _, more in begun if not more)
                length = self._nearest(state, length + 1)
            return
        for first, last in ranges:
            left = sum(self.steps(state, ((first, last),)).values())
            for point in range(first, last + 1):
                if not left:
                    break
                character = chr(point).encode()
                after = self.after(state, character)
                if after >= 0:
                    left -= 1
                    behind = None if most is None else most - 1
                    yield from self.strings(after, least - 1, behind, content + character)

    def _longer(self, begun: tuple[bytes, int, int]) -> Iterator[tuple[bytes, int, int]]:
        """A text, its state and the number of characters to come, with one more of these."""
        text, state, more = begun
        if more:
            steps = self.steps(state, ALL).items()
            lives = {after: n for after, n in steps if self._nearest(after, more - 1) == more - 1}
            left = sum(lives.values())  # PERF: one character may lead on, of all that there are
            for character, after in self.after_each(state) if left else ():
                if after in lives:
                    yield text + character, after, more - 1
                    left -= 1
                    if not left:
                        break


def walked(start: T, after: Callable[[T], Iterator[T]]) -> Iterator[T]:
    """`start` and all that comes after it, depth first. Each is asked for when it is wanted."""
    yield start
    stack = [after(start)]
    while stack:
        one = next(stack[-1], None)
        if one is None:
            stack.pop()
        else:
            yield one
            stack.append(after(one))


def _add(found: dict[int, int], more: dict[int, int]) -> None:
    for state, n in more.items():
        found[state] = found.get(state, 0) + n
