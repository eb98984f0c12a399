"""The oracle's lexer: longest match, and all lexemes that a prefix may become.

In: a grammar, a prefix, a parse. Out: lexemes, readings.

The lexer does not simulate anything. It takes concrete strings C, lexes prefix + C, and keeps the
lexemes that begin in the prefix (a *reading*). The terminals that compete where a lexeme begins may
depend on the parser's state (`competing`). The parser then takes each lexeme before the next one is
read. Stacks on which different terminals compete may read the text in different ways.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from lark.utils import get_regexp_width
from numpy.typing import NDArray

from maskwright.analysis.grammar.grammar import Grammar, Layout, Terminal
from maskwright.validation.oracle_parsing import Mode, Parse, Parser, Step, as_column
from maskwright.validation.oracle_patterns import N_CODE_POINTS, Members, Pattern, with_flags

Lexeme: TypeAlias = tuple[int, int, int, Mode]
"""Terminal, begin, end (offsets in characters), and the terminals that competed."""

_MEMO_LENGTH = 120
"""The readings of longer texts, in characters, are not worth remembering."""
_MEMO_SIZE = 1 << 16
"""Most texts whose readings are remembered."""

LexemeReading: TypeAlias = tuple[Step, ...]
"""The lexemes that begin in a prefix, as the parser sees them."""
Head: TypeAlias = tuple[tuple[int, Mode], ...]
"""The terminals of a reading, each with the terminals that competed."""
MayBackUp: TypeAlias = Callable[[str, int, int, int, Mode], bool]
"""A function of text, begin, terminal, end and mode: whether the lexer may back up to `end`."""


def as_step(layout: Layout | None, lexeme: Lexeme, text: str) -> Step:
    """A finished lexeme as the parser sees it.

    text : the text in which the lexeme's offsets are. A newline's column comes from it.
    """
    terminal, begin, end, mode = lexeme
    if layout is None or terminal != layout.newline:
        return Step(terminal, mode)
    _, line_feed, margin = text[begin:end].rpartition("\n")
    # Lark's Indenter counts all that follows the line feed, even a comment, and fails without one
    column = as_column(layout, margin)
    return Step(terminal, mode, column if line_feed else None)


def may_end(layout: Layout | None, terminal: int, lexeme: str) -> bool:
    """Whether a lexeme can end where it does.

    False only for the layout's newline without a line feed: it has no column, so it is no newline.
    """
    return layout is None or terminal != layout.newline or "\n" in lexeme


@lru_cache(maxsize=8)
def lexer_of(grammar: Grammar) -> Lexer:
    """The lexer of a grammar, from a cache of 8.

    What a lexer remembers does not change its answers. Cost: 3 s for python.lark, the first time.
    """
    return Lexer(grammar)


class Lexer:
    """Longest match over the terminals that compete, and the readings of a text that may go on.

    Raises: MissingExtraError if a pattern needs the package regex, and it is not installed.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.layout = grammar.layout
        self.ignored = grammar.ignored
        self.patterns = patterns_of(grammar)
        for pattern in self.patterns.values():
            pattern.scan("", 0)  # says now, not in the midst of a text, that regex is missing
        self.context = max((pattern.looks_back for pattern in self.patterns.values()), default=0)
        classes = _classes([members for pattern in self.patterns.values() for members in pattern.members])
        self._class_of = classes
        first = np.unique(classes, return_index=True)[1]
        self.representatives = sorted((chr(c) for c in first if not 0xD800 <= c < 0xE000), key=_separators_first)
        self._beginning: dict[tuple[str, int, Mode], list[int]] = {}
        self._last_suffix: dict[int, str] = {}
        self._readings: dict[tuple[str, int], list[LexemeReading]] = {}

    def scan(self, text: str, begin: int, mode: Mode) -> tuple[int | None, int, list[int]]:
        """The longest match at `begin` if the text ended here.

        text : the text. begin : an offset in it, in characters. mode : the terminals that compete.

        Returns: (terminal, end, open). The terminal is None if nothing matches; `end` is `begin`
            then. `open` has the terminals whose match at `begin` could change if the text went on.
        """
        winner, longest, open_ones = None, begin, []
        for number in self._candidates(text[max(0, begin - self.context) : begin + 1], min(begin, self.context), mode):
            pattern = self.patterns[number]
            end, is_open = pattern.scan(text, begin)
            if end > longest and may_end(self.layout, number, text[begin:end]):
                winner, longest = number, end
            if is_open:
                open_ones.append(number)
        return winner, longest, open_ones

    def _candidates(self, text: str, begin: int, mode: Mode) -> list[int]:
        """The competing terminals that the character at `begin` does not rule out, by rank."""
        key = text, begin, mode
        if key not in self._beginning:
            competing = (n for n in self.patterns if mode is None or n in mode)
            self._beginning[key] = [n for n in competing if self.patterns[n].scan(text, begin) != (-1, False)]
        return self._beginning[key]

    def step(self, lexeme: Lexeme, text: str) -> Step:
        """A finished lexeme as the parser sees it, see `as_step`."""
        return as_step(self.layout, lexeme, text)

    def at_end_of_text(self, text: str, start: int, parser: Parser, parse: Parse) -> Iterator[list[Lexeme]]:
        """The lexemes of a whole text, for each way in which the parser's stacks read it.

        Nothing if the text does not lex. Where a longer match is under way and fails only because
        the text ends, the lexer backs up, unless nothing but the end can make that match fail.

        text : the text.
        start : offset of the first lexeme, in characters.
        parser, parse : the parser, and its parse before the first lexeme.
        """
        return self._chains(text, start, len(text), parser, parse, self._can_fail)

    def _chains(
        self, text: str, start: int, limit: int, parser: Parser, parse: Parse, may_back_up: MayBackUp
    ) -> Iterator[list[Lexeme]]:
        """The lexemes that begin before `limit`, for each way in which the stacks read the text.

        may_back_up : asked where a longer match is still under way at the end of the text. If it
            says no, that way is dropped.
        """
        agenda: list[tuple[list[Lexeme], int, Parse]] = [([], start, parse)]
        while agenda:
            chain, begin, parse = agenda.pop()
            if begin >= limit:
                yield chain
                continue
            for mode in parser.modes(parse):
                terminal, end, open_ones = self.scan(text, begin, mode)
                if terminal is None:
                    continue
                if open_ones and end < len(text) and not may_back_up(text, begin, terminal, end, mode):
                    continue
                lexeme = terminal, begin, end, mode
                after = parser.before_next(parse, self.step(lexeme, text)) if end < limit else parse
                if after is not None:
                    agenda.append(([*chain, lexeme], end, after))

    @lru_cache(maxsize=4096)  # noqa: B019 (an oracle lives as long as its tests)
    def _can_fail(self, text: str, begin: int, terminal: int, end: int, mode: Mode) -> bool:
        """Whether some string that can be lexed itself makes the lexeme at `begin` this one."""
        wholes = (text + tail for tail in self._tails(text, end))
        return any(self.scan(whole, begin, mode) == (terminal, end, []) and self._lexes(whole, end) for whole in wholes)

    def _tails(self, text: str, begin: int) -> Iterator[str]:
        """Strings that may follow a text, in which what ends at `begin` could still become longer.

        They are one to four repetitions of one character of each class, and what completes the
        lexemes behind `begin`, with one more character or without.
        """
        for times in range(1, 5):
            yield from (c * times for c in self.representatives)
        while begin < len(text):
            terminal, end, open_ones = self.scan(text, begin, None)
            for number in open_ones:
                for suffix in self._completing(number, text, begin):
                    yield from (suffix + more for more in ("", *self.representatives))
            if terminal is None:
                return
            begin = end

    def _lexes(self, text: str, begin: int) -> bool:
        """Whether lexemes, legal or not, lead to the end or to one that may grow."""
        while begin < len(text):
            terminal, end, open_ones = self.scan(text, begin, None)
            if open_ones:
                return True
            if terminal is None:
                return False
            begin = end
        return True

    def _behind(self, text: str, lexeme: Lexeme) -> frozenset[int] | None:
        """The terminals that may begin where a lexeme ends; None if one of them is ignored."""
        _, _, end, mode = lexeme
        found: set[int] = set()
        for whole in self._ended(text, lexeme) if end == len(text) else (text,):
            winner, _, open_ones = self.scan(whole, end, mode)
            found |= {*open_ones, *(() if winner is None else (winner,))}
            if found & self.ignored:
                return None
        return frozenset(found)

    def _ended(self, text: str, lexeme: Lexeme) -> Iterator[str]:
        """The text with what makes its last lexeme end where the text ends.

        That is one character, or several where a longer match must fail first.
        """
        terminal, begin, end, mode = lexeme
        for more in self.representatives:
            winner, longest, open_ones = self.scan(text + more, begin, mode)
            if (winner, longest) == (terminal, end):
                tails = self._tails(text + more, end) if open_ones else ("",)
                wholes = (text + more + tail for tail in tails)
                yield from (whole for whole in wholes if self.scan(whole, begin, mode) == (terminal, end, []))

    def readings(self, text: str, start: int, parser: Parser, parse: Parse) -> list[LexemeReading]:
        """All readings of ``text[start:]``, over all strings that could follow the text.

        text : a prefix of a text.
        start : offset of the first lexeme, in characters.
        parser, parse : the parser, and its parse before the first lexeme.
        """
        if len(text) > _MEMO_LENGTH or parser.is_modal:
            return self._find_readings(text, start, parser, parse)
        if (text, start) not in self._readings:
            if len(self._readings) >= _MEMO_SIZE:
                self._readings.clear()
            self._readings[text, start] = self._find_readings(text, start, parser, parse)
        return self._readings[text, start]

    def _find_readings(self, text: str, start: int, parser: Parser, parse: Parse) -> list[LexemeReading]:
        found: dict[LexemeReading, frozenset[int] | None] = {}
        heads: set[Head] = set()

        def add(chains: Iterator[list[Lexeme]], continuation: str) -> None:
            for chain in chains:
                heads.add(tuple((terminal, mode) for terminal, _, _, mode in chain))
                reading = self._reading(chain, text, start, continuation, parser, parse)
                known = found.get(reading, frozenset())
                is_ignored = chain and chain[-1][0] in self.ignored
                behind = self._behind(text + continuation, chain[-1]) if is_ignored and known is not None else None
                found[reading] = None if known is None or behind is None else known | behind

        add(self.at_end_of_text(text, start, parser, parse), "")
        undecided: list[tuple[int, Head, int]] = []
        is_sure = True
        agenda: list[tuple[Head, int, Parse]] = [((), start, parse)]
        while agenda:  # the lexemes if each longer match under way fails
            head, begin, before = agenda.pop()
            for mode in parser.modes(before) if begin < len(text) else ():
                terminal, end, open_ones = self.scan(text, begin, mode)
                undecided += [(begin, (*head, (number, mode)), number) for number in open_ones]
                backs_up = bool(open_ones) and end < len(text)
                if terminal is None or (backs_up and not self._can_fail(text, begin, terminal, end, mode)):
                    continue
                is_sure &= not backs_up and not (terminal in open_ones and self.patterns[terminal].looks_ahead)
                after = parser.before_next(before, self.step((terminal, begin, end, mode), text))
                if after is not None:
                    agenda.append(((*head, (terminal, mode)), end, after))
        if not is_sure:
            for c in self.representatives:
                add(self._decided(text + c, start, len(text), parser, parse), c)
        for begin, head, number in undecided:  # the lexemes if this longer match is completed
            is_newline = self.layout is not None and number == self.layout.newline
            for suffix in self._completing(number, text, begin):
                # one reading for these terminals is enough, but of a newline every column is needed
                if head in heads and not is_newline:
                    break
                # a longer match of an earlier lexeme may fail only behind this one
                for more in ("",) if is_sure else ("", *self.representatives):
                    whole = text + suffix + more
                    add(self._decided(whole, start, len(text), parser, parse), suffix + more)
        return [
            reading if behind is None else (*reading[:-1], reading[-1]._replace(behind=behind))
            for reading, behind in found.items()
        ]

    def _completing(self, number: int, text: str, begin: int) -> Iterator[str]:
        """Strings that complete this terminal's match at `begin`; the last successful one first."""
        pattern = self.patterns[number]
        for suffix in (self._last_suffix.get(number, ""), *pattern.suffixes):
            end = pattern.end(text + suffix, begin)
            if suffix and end >= (0 if pattern.looks_ahead else len(text)):
                self._last_suffix[number] = suffix
                yield suffix

    def _decided(self, text: str, start: int, limit: int, parser: Parser, parse: Parse) -> Iterator[list[Lexeme]]:
        """The lexemes that begin before `limit`; nothing if they do not lex or are undecided."""
        return self._chains(text, start, limit, parser, parse, lambda *_: False)

    def _reading(
        self, chain: list[Lexeme], text: str, start: int, continuation: str, parser: Parser, parse: Parse
    ) -> LexemeReading:
        """Lexemes as the parser sees them; a last newline says what can still extend it."""
        steps = [self.step(lexeme, text + continuation) for lexeme in chain]
        if steps and self.layout is not None and steps[-1].terminal == self.layout.newline:
            terminal, begin, end, mode = chain[-1]
            longer = [*chain[:-1], (terminal, begin, end + 1, mode)]
            decided = (
                (more, self._decided(text + continuation + more, start, len(text), parser, parse)) for more in " \t\f"
            )
            steps[-1] = steps[-1]._replace(grows="".join(more for more, chains in decided if longer in chains))
        return tuple(steps)

    @lru_cache(maxsize=8192)  # noqa: B019
    def completions(self, incomplete: bytes) -> list[str]:
        """One character of each class among those whose UTF-8 begins with these bytes.

        incomplete : the bytes of an incomplete character, at least one.
        """
        n_bytes = 2 if incomplete[0] < 0xE0 else 3 if incomplete[0] < 0xF0 else 4
        missing = n_bytes - len(incomplete)
        code = incomplete[0] & (0x7F >> n_bytes)
        for byte in incomplete[1:]:
            code = code << 6 | byte & 0x3F
        low = max(code << 6 * missing, {2: 0x80, 3: 0x800, 4: 0x10000}[n_bytes])
        codes = np.arange(low, min((code + 1) << 6 * missing, N_CODE_POINTS))
        codes = codes[(codes < 0xD800) | (codes >= 0xE000)]
        first = np.unique(self._class_of[codes], return_index=True)[1]
        return [chr(codes[i]) for i in first]


def patterns_of(grammar: Grammar) -> dict[int, Pattern]:
    """The patterns of the terminals; among matches of equal length that of the first one wins."""
    lexable = [number for number, terminal in enumerate(grammar.terminals) if terminal.pattern is not None]
    ranked = sorted(lexable, key=lambda number: _rank(grammar.terminals[number]))
    return {number: Pattern(grammar.terminals[number]) for number in ranked}


def _rank(terminal: Terminal) -> tuple[int, bool, int, int, str, str]:
    pattern = terminal.pattern or ""
    width = get_regexp_width(with_flags(pattern, terminal.flags))[1]
    length = len(pattern if terminal.literal is None else terminal.literal)
    return (
        -terminal.priority,
        terminal.literal is None,
        -width,
        -length,
        terminal.beyond or terminal.name,
        terminal.beyond,
    )


def _separators_first(character: str) -> tuple[int, int]:
    order = " \n;,()\t"
    return order.index(character) if character in order else len(order), ord(character)


def _classes(members: list[Members]) -> NDArray[np.uint64]:
    """(0x110000,) uint64; a number for each character, equal iff they belong to the same sets.

    The numbers are random sums (XOR), so a false equality is possible but has no practical chance.
    """
    draw = random.Random(0)
    found = np.zeros(N_CODE_POINTS, dtype=np.uint64)
    for distinct in {m.tobytes(): m for m in members}.values():
        found[distinct] ^= np.uint64(draw.getrandbits(64))
    return found
