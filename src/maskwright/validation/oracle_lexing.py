"""The oracle's lexing: longest match over all terminals by Python's `re`, and all that a text may still become.

The lexer here never simulates anything: it takes concrete continuations C, lexes prefix + C, and keeps the lexemes that begin in the
prefix (a *reading*).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from lark.utils import get_regexp_width
from numpy.typing import NDArray

from maskwright.analysis.grammar.grammar import Grammar, Layout, Terminal
from maskwright.validation.oracle_patterns import N_CODE_POINTS, Members, Pattern, with_flags

Lexeme: TypeAlias = tuple[int, int, int]  # terminal, begin, end

_MEMO_LENGTH = 120  # characters: longer tails are not worth remembering
_MEMO_SIZE = 1 << 16


class Step(NamedTuple):
    """A lexeme as the parser sees it. Only of a newline: its column, and whether more spaces or tabs may still follow."""

    terminal: int
    column: int | None = None
    by_space: bool = False
    by_tab: bool = False


Reading: TypeAlias = tuple[Step, ...]


def as_step(layout: Layout | None, lexeme: Lexeme, text: str) -> Step:
    """A lexeme as the parser sees it, if it is finished."""
    terminal, begin, end = lexeme
    if layout is None or terminal != layout.newline:
        return Step(terminal)
    _, line_feed, margin = text[begin:end].rpartition("\n")
    # Lark's Indenter counts all of what follows the line feed, be it a comment, and fails without a line feed
    column = margin.count(" ") + margin.count("\t") * layout.tab_length
    return Step(terminal, column if line_feed else None)


@lru_cache(maxsize=8)
def lexer_of(grammar: Grammar) -> Lexer:
    """The lexer of a grammar. What it remembers does not change what it says. Cost: 3 s for python.lark, the first time."""
    return Lexer(grammar)


class Lexer:
    """Longest match over all terminals, and the readings of a text that may go on."""

    def __init__(self, grammar: Grammar) -> None:
        self.layout = grammar.layout
        lexable = [number for number, terminal in enumerate(grammar.terminals) if terminal.pattern is not None]
        self.ranked = sorted(lexable, key=lambda number: rank(grammar.terminals[number]))
        self.patterns = {number: Pattern(grammar.terminals[number]) for number in lexable}
        for pattern in self.patterns.values():
            pattern.unfinished  # noqa: B018 (finds what the pattern looks at)
        self.context = max((pattern.looks_back for pattern in self.patterns.values()), default=0)
        classes = _classes([members for pattern in self.patterns.values() for members in pattern.members])
        self._class_of = classes
        first = np.unique(classes, return_index=True)[1]
        self.representatives = sorted((chr(c) for c in first if not 0xD800 <= c < 0xE000), key=_separators_first)
        self._beginning: dict[str, list[int]] = {}
        self._last_suffix: dict[int, str] = {}
        self._readings: dict[tuple[str, int], list[Reading]] = {}

    def scan(self, text: str, begin: int) -> tuple[int | None, int, list[int]]:
        """The longest match at `begin` if the text ended here (terminal, end), and the terminals whose match there
        could still change if it went on."""
        winner, longest, open_ones = None, begin, []
        for number in self._candidates(text[max(0, begin - self.context) : begin + 1], min(begin, self.context)):
            pattern = self.patterns[number]
            match = pattern.complete.match(text, begin)
            if match and match.end() > longest:
                winner, longest = number, match.end()
            if pattern.unfinished.match(text, begin, partial=True):
                open_ones.append(number)
        return winner, longest, open_ones

    def _candidates(self, key: str, begin: int) -> list[int]:
        """The terminals that one character does not rule out, the strongest first."""
        if key not in self._beginning:
            patterns = ((number, self.patterns[number]) for number in self.ranked)
            self._beginning[key] = [
                number
                for number, pattern in patterns
                if pattern.complete.match(key, begin) or pattern.unfinished.match(key, begin, partial=True)
            ]
        return self._beginning[key]

    def step(self, lexeme: Lexeme, text: str) -> Step:
        return as_step(self.layout, lexeme, text)

    def at_end_of_text(self, text: str, start: int) -> list[Lexeme] | None:
        """The lexemes of a whole text, or None if it does not lex.

        Where the longest match under way fails only because the text ends, it is backed up, unless nothing else could
        have made it fail.
        """
        chain = []
        while start < len(text):
            terminal, end, open_ones = self.scan(text, start)
            if terminal is None or (open_ones and end < len(text) and not self._can_fail(text, start, terminal, end)):
                return None
            chain.append((terminal, start, end))
            start = end
        return chain

    @lru_cache(maxsize=4096)  # noqa: B019 (an oracle lives as long as its tests)
    def _can_fail(self, text: str, begin: int, terminal: int, end: int) -> bool:
        """Is there a continuation after which the lexeme at `begin` is this one and nothing else can become of it?"""
        tails = (c * times for times in range(1, 5) for c in self.representatives)
        return any(self.scan(text + tail, begin) == (terminal, end, []) for tail in tails)

    def readings(self, text: str, start: int) -> list[Reading]:
        """All that continuations can make of the lexemes that begin in ``text[start:]``."""
        if len(text) > _MEMO_LENGTH:
            return self._find_readings(text, start)
        if (text, start) not in self._readings:
            if len(self._readings) >= _MEMO_SIZE:
                self._readings.clear()
            self._readings[text, start] = self._find_readings(text, start)
        return self._readings[text, start]

    def _find_readings(self, text: str, start: int) -> list[Reading]:
        found: dict[Reading, None] = {}
        heads: set[tuple[int, ...]] = set()  # the readings' terminals

        def add(chain: list[Lexeme] | None, continuation: str) -> None:
            if chain is not None:
                heads.add(tuple(terminal for terminal, _, _ in chain))
                found[self._reading(chain, text, start, continuation)] = None

        add(self.at_end_of_text(text, start), "")
        head: tuple[int, ...] = ()
        undecided: list[tuple[int, tuple[int, ...], int]] = []
        begin, is_sure = start, True
        while begin < len(text):  # the lexemes if all that is under way fails
            terminal, end, open_ones = self.scan(text, begin)
            undecided += [(begin, head, number) for number in open_ones]
            backs_up = bool(open_ones) and end < len(text)
            if terminal is None or (backs_up and not self._can_fail(text, begin, terminal, end)):
                break
            is_sure &= not backs_up and not (terminal in open_ones and self.patterns[terminal].looks_ahead)
            head, begin = (*head, terminal), end
        if not is_sure:
            for c in self.representatives:
                add(self._decided(text + c, start, len(text)), c)
        for begin, head, number in undecided:  # the lexemes if this one is completed
            is_newline = self.layout is not None and number == self.layout.newline
            for suffix in self._completing(number, text, begin):
                if (*head, number) in heads and not is_newline:  # of a newline every column is wanted
                    break
                add(self._decided(text + suffix, start, len(text)), suffix)
        return list(found)

    def _completing(self, number: int, text: str, begin: int) -> Iterator[str]:
        """Continuations that complete this terminal's match at `begin`; the one that helped last comes first."""
        pattern = self.patterns[number]
        for suffix in (self._last_suffix.get(number, ""), *pattern.suffixes):
            match = pattern.complete.match(text + suffix, begin)
            if suffix and match and (match.end() >= len(text) or pattern.looks_ahead):
                self._last_suffix[number] = suffix
                yield suffix

    def _decided(self, text: str, start: int, limit: int) -> list[Lexeme] | None:
        """The lexemes that begin before `limit`, None if they do not lex or are not decided yet."""
        chain = []
        while start < limit:
            terminal, end, open_ones = self.scan(text, start)
            if terminal is None or (open_ones and end < len(text)):
                return None
            chain.append((terminal, start, end))
            start = end
        return chain

    def _reading(self, chain: list[Lexeme], text: str, start: int, continuation: str) -> Reading:
        steps = [self.step(lexeme, text + continuation) for lexeme in chain]
        if steps and self.layout is not None and steps[-1].terminal == self.layout.newline:
            n = len(text)
            grows = [self._decided(text + continuation + more, start, n) for more in " \t"]
            longer = [other is not None and other[-1] == (*chain[-1][:2], chain[-1][2] + 1) for other in grows]
            steps[-1] = steps[-1]._replace(by_space=longer[0], by_tab=longer[1])
        return tuple(steps)

    def completions(self, rest: bytes) -> list[str]:
        """One character of every class among those whose UTF-8 begins with these bytes."""
        return _completions(self, rest)


@lru_cache(maxsize=8192)
def _completions(lexer: Lexer, rest: bytes) -> list[str]:
    n_bytes = 2 if rest[0] < 0xE0 else 3 if rest[0] < 0xF0 else 4
    missing = n_bytes - len(rest)
    code = rest[0] & (0x7F >> n_bytes)
    for byte in rest[1:]:
        code = code << 6 | byte & 0x3F
    low = max(code << 6 * missing, {2: 0x80, 3: 0x800, 4: 0x10000}[n_bytes])
    codes = np.arange(low, min((code + 1) << 6 * missing, N_CODE_POINTS))
    codes = codes[(codes < 0xD800) | (codes >= 0xE000)]
    first = np.unique(lexer._class_of[codes], return_index=True)[1]
    return [chr(codes[i]) for i in first]


def rank(terminal: Terminal) -> tuple[int, bool, int, int, str]:
    """What wins between matches of equal length comes first."""
    pattern = terminal.pattern or ""
    width = get_regexp_width(with_flags(pattern, terminal.flags))[1]
    length = len(pattern if terminal.literal is None else terminal.literal)
    return -terminal.priority, terminal.literal is None, -width, -length, terminal.name


def _separators_first(character: str) -> tuple[int, int]:
    order = " \n;,()\t"
    return order.index(character) if character in order else len(order), ord(character)


def _classes(members: list[Members]) -> NDArray[np.uint64]:
    """(0x110000,) numbers, equal for characters that belong to the same sets."""
    draw = random.Random(0)
    found = np.zeros(N_CODE_POINTS, dtype=np.uint64)
    for distinct in {m.tobytes(): m for m in members}.values():
        found[distinct] ^= np.uint64(draw.getrandbits(64))
    return found
