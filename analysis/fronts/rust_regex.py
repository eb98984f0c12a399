r"""Regular expressions of Rust's crate regex-syntax, for llguidance: a pattern to an `Expr`.

The reader is that of ECMA 262 (`regex.ecma`) with what differs.

Rust's differ from Python's: ``\d``, ``\w`` and ``\s`` are Unicode's sets, classes nest and have the
operators ``&&``, ``--`` and ``~~``, and there are ``\x{41}``, ``\u{41}`` and ``[[:alpha:]]``. Case
is ignored by Unicode's simple case folding.

A pattern is the set of its texts, as in llguidance: lazy quantifiers and the flag U change nothing.

Refused, with the place: anchors and word boundaries (llguidance refuses look-arounds too),
``\p{...}`` of other properties than those of `regex.properties`, and the flags R and -u.

Source: docs.rs/regex, section Syntax; llguidance, docs/syntax.md.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache

from maskwright.analysis.fronts.expressions import Expr, characters, from_tree, sequence
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.nesting import MOST_NESTED
from maskwright.analysis.regex.charset import EVERYTHING, Ranges, complement, difference, normalise
from maskwright.analysis.regex.ecma import Item, PatternError, PatternReader
from maskwright.analysis.regex.properties import general_category, property_of
from maskwright.analysis.regex.tree import Chars, Node, Repeat

_POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": ((48, 57),),
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_SPACES: Ranges = (
    *((9, 13), (32, 32), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
)
_ALPHABETIC_SYMBOLS: Ranges = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Characters of Other_Alphabetic that are neither letters nor marks."""
_NOT_LINE_FEED = complement(((10, 10),))
_FLAGS = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_GROUP_NAME = re.compile(r"\?P?<[A-Za-z_][A-Za-z0-9_.\[\]]*>")
_BLANKS = re.compile(r"(?:\s+|#[^\n]*)*")
_POSIX_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")


def read_rust_regex(reader: Reader, start: int, end: int, flags: str) -> Expr:
    """The expression of a pattern that stands in a text.

    start, end : offsets of the pattern. flags : letters of ``imsux`` for the whole pattern.

    Raises: GrammarError, with the place in the text, for bad syntax and for what is refused.
    """
    if "l" in flags:
        raise reader.error("the flag l is not supported, nor is it in llguidance", start - 1)
    try:
        found = from_tree(_Reader(reader.text[:end], start, frozenset(flags) - {"u"}).parse())
    except PatternError as error:
        raise reader.error(error.what, error.offset) from None
    assert found is not None, "nothing looks around"
    return found


def without_case(text: str) -> Expr:
    """A text in which case is ignored."""
    return sequence([characters(without_case_of(((ord(c), ord(c)),))) for c in text])


@lru_cache(maxsize=1)
def _cases() -> tuple[tuple[tuple[int, str], ...], dict[str, tuple[int, ...]]]:
    """Simple case folding: (character, what it folds to) for those with case, and the inverse.

    Where the full folding has several characters, the simple one is the lower case if that is one
    character, else none.
    """
    folds: dict[int, str] = {}
    for code in range(0x110000):
        character = chr(code)
        if character.casefold() != character or character.upper() != character or character.lower() != character:
            full, low = character.casefold(), character.lower()
            folds[code] = full if len(full) == 1 else low if len(low) == 1 else character
    classes: dict[str, list[int]] = {}
    for code, fold in folds.items():
        classes.setdefault(fold, []).append(code)
    return tuple(folds.items()), {fold: tuple(codes) for fold, codes in classes.items()}


def without_case_of(ranges: Ranges) -> Ranges:
    """A set of characters with all others that differ from one of them in case only."""
    folds, classes = _cases()
    lows = [low for low, _ in ranges]
    more: list[int] = []
    for code, fold in folds:
        at = bisect_right(lows, code) - 1
        if at >= 0 and code <= ranges[at][1]:
            more += classes[fold]
    return normalise([*ranges, *((code, code) for code in more)])


@lru_cache(maxsize=8)
def perl_class(letter: str) -> Ranges:
    r"""The characters of ``\d``, ``\s`` or ``\w``, or of their negations, as Rust has them."""
    if letter.isupper():
        return complement(perl_class(letter.lower()))
    if letter == "d":
        return general_category("Nd")
    if letter == "s":
        return _SPACES
    parts = [pair for name in ("L", "M", "Nd", "Nl", "Pc") for pair in general_category(name)]
    return normalise([*parts, *_ALPHABETIC_SYMBOLS, (0x200C, 0x200D)])


class _Reader(PatternReader):
    """Reads one pattern."""

    escapes: Mapping[str, int] = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "a": 7}
    digits: Mapping[str, int] = {"x": 2, "u": 4, "U": 8}
    in_braces = "xuU"
    class_of = staticmethod(perl_class)
    property_name = re.compile(r"\{([^}]*)\}|(.)")
    no_range = ("-]", "--")
    repeats_once = False

    closes_nothing = "this closing parenthesis closes no group"
    open_group = "expected ')' to close a group of the pattern"
    open_class = "this class of the pattern has no closing bracket"
    backslash_at_end = "the pattern ends in a backslash"
    nothing_to_repeat = "there is nothing to repeat before this"
    wrong_bounds = "the repetition {} has fewer at most than at least"
    too_deep = f"groups are nested more than {MOST_NESTED} deep; give the inner ones a name, as rules of their own"
    unknown_property = (
        "the property {!r:.42} is not supported; supported are general categories, scripts and binary properties"
    )

    def skip(self) -> None:
        if "x" in self.flags:
            self.match(_BLANKS)

    def repeated(self, part: Node, least: int, most: int | None, start: int) -> Node:
        body, depth = part, 0
        while isinstance(body, Repeat):
            body, depth = body.body, depth + 1
        if depth > MOST_NESTED:
            raise PatternError("too many repetitions of repetitions", start)
        return Repeat(part, least, most)

    def atom(self, start: int) -> Node | None:
        found = super().atom(start)
        if self.text[start] == "{":
            raise PatternError(r"this { begins no repetition such as {2,3}; write \{ for the sign itself", start)
        return found

    def dot(self) -> Ranges:
        return EVERYTHING if "s" in self.flags else _NOT_LINE_FEED

    def cased(self, ranges: Ranges) -> Ranges:
        return ranges  # sets are complete as they are read

    def anchor(self, letter: str, start: int) -> Node:
        raise PatternError(
            f"{letter} is not supported, nor is it in llguidance: a terminal is matched as a whole", start
        )

    def character(self, code: int, start: int) -> Node:
        """One character, with its other cases where case is ignored.

        Sets are complete as they are read.
        """
        return Chars(without_case_of(((code, code),))) if "i" in self.flags else super().character(code, start)

    def kind_of_group(self, start: int) -> str | None:
        if self.next != "?" or self.match(_GROUP_NAME) is not None:
            return ""
        found = self.match(_FLAGS)
        if found is None:
            raise PatternError("look-arounds and other groups (? are not supported, nor are they in llguidance", start)
        added, removed = found[1], found[2] or ""
        for letter in added + removed:
            if letter not in "imsUux":
                raise PatternError(f"the flag {letter!r} is not supported; known are i, m, s, U, u and x", start)
        if "u" in removed:
            raise PatternError("the flag -u, for bytes that are no characters, is not supported", start)
        self.flags = (self.flags | set(added) - {"u"}) - set(removed)
        return "" if found[3] == ":" else None

    def escaped(self, start: int) -> Node:
        if self.next and self.next in "bBAzZ<>":
            raise PatternError(
                f"\\{self.next} is not supported, nor is it in llguidance: a pattern sees only its own text", start
            )
        found = self.escape(start)
        return self.character(found, start) if isinstance(found, int) else Chars(found)

    def other_escape(self, letter: str, start: int) -> int:
        if letter.isascii() and letter.isalnum():
            raise PatternError(f"unknown escape \\{letter} in a pattern", start)
        return ord(letter)

    def code(self, letter: str, start: int) -> int:
        code = super().code(letter, start)
        if 0xD800 <= code <= 0xDFFF:
            raise PatternError(f"the escape {self.text[start : self.at]} stands for no character of Unicode", start)
        return code

    def property(self, name: str) -> Ranges | None:
        found = property_of(name.removeprefix("^"), is_loose=True)
        if found and "i" in self.flags:
            found = without_case_of(found)
        return complement(found) if found is not None and name.startswith("^") else found

    def bracketed(self, start: int) -> Ranges:
        """A class in brackets, with classes in it and the operators between its parts."""
        self.enter(start)
        is_negated = self.take("^")
        total: Ranges | None = None
        operator = ""
        pairs: list[tuple[int, int]] = []
        is_first = True
        while True:
            self.skip()
            if is_first or not self.starts(("]", "&&", "--", "~~")):
                is_first = False
                pairs += self.member(start)
                continue
            part = normalise(pairs)
            total = _combined(total, operator, without_case_of(part) if "i" in self.flags else part)
            pairs = []
            if self.take("]"):
                self.depth -= 1
                return complement(total) if is_negated else total
            operator = self.text[self.at : self.at + 2]
            self.at += 2

    def member(self, start: int) -> Ranges:
        at = self.at
        if (posix := self.match(_POSIX_CLASS)) is not None:
            if posix[2] not in _POSIX:
                raise PatternError(f"unknown class [:{posix[2]}:]", at)
            return complement(_POSIX[posix[2]]) if posix[1] else _POSIX[posix[2]]
        return self.bracketed(at) if self.take("[") else super().member(start)

    def no_range_between(self, first: Item, last: Item, start: int, at: int) -> Ranges:
        raise PatternError(f"the range {self.text[at : self.at]} is none: it needs two characters in order", at)


def _combined(total: Ranges | None, operator: str, right: Ranges) -> Ranges:
    """What an operator makes of the part before it and the part behind it."""
    if total is None:
        return right
    common = difference(total, complement(right))
    if operator == "&&":
        return common
    return difference(total, right) if operator == "--" else difference(normalise((*total, *right)), common)
