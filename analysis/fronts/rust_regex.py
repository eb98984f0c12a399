r"""Regular expressions of Rust's crate regex-syntax, for llguidance: a pattern to an `Expr`.

They differ from Python's: ``\d``, ``\w`` and ``\s`` are Unicode's sets, classes nest and have the
operators ``&&``, ``--`` and ``~~``, and there are ``\x{41}``, ``\u{41}`` and ``[[:alpha:]]``. Case
is ignored by Unicode's simple case folding.

Refused, with the place: anchors and word boundaries (llguidance refuses look-arounds too), lazy
quantifiers, ``\p{...}`` of other properties than general categories, and the flags U, R and -u.

Source: docs.rs/regex, section Syntax; llguidance, docs/syntax.md.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.fronts.expressions import Expr, characters, choice, repetition, sequence
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.regex.charset import EVERYTHING, Ranges, complement, difference, normalise

_ESCAPES = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "a": 7}
_DIGITS = {"x": 2, "u": 4, "U": 8}
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
_LONG_NAMES = {
    "letter": "L",
    "mark": "M",
    "number": "N",
    "punctuation": "P",
    "symbol": "S",
    "separator": "Z",
    "other": "C",
    "uppercaseletter": "Lu",
    "lowercaseletter": "Ll",
    "titlecaseletter": "Lt",
    "modifierletter": "Lm",
    "otherletter": "Lo",
    "decimalnumber": "Nd",
    "letternumber": "Nl",
    "othernumber": "No",
}
_CATEGORIES = {unicodedata.category(chr(code)) for code in (*range(0x3000), 0xE000, 0xD800)} | {"Cn"}
_NOT_LINE_FEED = complement(((10, 10),))
_FLAGS = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_GROUP_NAME = re.compile(r"\?P?<[A-Za-z_][A-Za-z0-9_.\[\]]*>")
_BLANKS = re.compile(r"(?:\s+|#[^\n]*)*")


def read_rust_regex(reader: Reader, start: int, end: int, flags: str) -> Expr:
    """The expression of a pattern that stands in a text.

    start, end : offsets of the pattern. flags : letters of ``imsux`` for the whole pattern.

    Raises: GrammarError, with the place in the text, for bad syntax and for what is refused.
    """
    inner = Reader("", reader.name)
    inner.text, inner.at = reader.text[:end], start
    pattern = _Pattern(inner, frozenset(flags))
    found = pattern.alternatives()
    if inner.next:
        raise inner.error("this closing parenthesis closes no group")
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


@lru_cache(maxsize=64)
def general_category(name: str) -> Ranges:
    """The characters of a general category, such as "L" or "Lu"."""
    names, numbers = _categories()
    has = np.isin(numbers, [number for number, known in enumerate(names) if known.startswith(name)])
    bounds = np.flatnonzero(np.diff(has, prepend=False, append=False)).tolist()
    return normalise(zip(bounds[::2], [end - 1 for end in bounds[1::2]], strict=True))


@lru_cache(maxsize=1)
def _categories() -> tuple[tuple[str, ...], npt.NDArray[np.uint8]]:
    """The names of general categories, and (0x110000,) uint8: the number of each character's."""
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(unicodedata.category(chr(code)), len(numbers)) for code in range(0x110000)]
    return tuple(numbers), np.array(found, np.uint8)


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


class _Pattern:
    """One pattern. flags : those that hold at the present place."""

    def __init__(self, reader: Reader, flags: frozenset[str]) -> None:
        self.reader, self.flags = reader, flags - {"u"}

    def skip(self) -> None:
        """Reads over blanks and comments under the flag x."""
        if "x" in self.flags:
            self.reader.match(_BLANKS)

    def alternatives(self) -> Expr:
        """Alternatives up to the end or a closing parenthesis."""
        before = self.flags
        options = [self.sequence()]
        while self.reader.take("|"):
            options.append(self.sequence())
        self.flags = before
        return choice(options)

    def sequence(self) -> Expr:
        """Elements with their quantifiers."""
        parts: list[Expr] = []
        while True:
            self.skip()
            if self.reader.next in ("", "|", ")"):
                return sequence(parts)
            part = self.element()
            self.skip()
            while part is not None and self.reader.next and self.reader.next in "*+?{":
                part = repetition(part, *self.counts())
                if part.depth > 300:
                    raise self.reader.error("too many repetitions of repetitions")
                self.skip()
            if part is not None:
                parts.append(part)

    def counts(self) -> tuple[int, int | None]:
        """What repeats an element: the least and the most times."""
        reader, start = self.reader, self.reader.at
        found: tuple[int, int | None] | None = None
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if found is None and reader.take(sign):
                found = counts
        if found is None:
            reader.take("{")
            least = reader.count()
            most: int | None = least
            if reader.take(","):
                most = None if reader.next == "}" else reader.count()
            reader.expect("}", "at the end of a repetition")
            if most is not None and most < least:
                raise reader.error("this repetition has fewer at most than at least", start)
            found = least, most
        if reader.next == "?":
            raise reader.error(
                "a lazy quantifier is not supported, nor is it in llguidance; exclude what ends it", start
            )
        return found

    def element(self) -> Expr | None:
        """One element; None for flags that hold from here on."""
        reader, start = self.reader, self.reader.at
        character = reader.next
        if reader.take("("):
            return self.group(start)
        if character == "[":
            return characters(self.bracketed())
        if reader.take("."):
            return characters(EVERYTHING if "s" in self.flags else _NOT_LINE_FEED)
        if character == "\\":
            return characters(self.folded(self.escape(False)))
        if character in ("^", "$"):
            raise reader.error(
                f"{character} is not supported, nor is it in llguidance: a terminal is matched as a whole"
            )
        if character in ("*", "+", "?", "{"):
            raise reader.error("there is nothing to repeat before this")
        reader.at += 1
        return characters(self.folded(((ord(character), ord(character)),)))

    def folded(self, ranges: Ranges) -> Ranges:
        """A set with other cases of its characters, where case is ignored.

        Negated sets come here complete, and both cases are in them or neither.
        """
        if "i" not in self.flags or not ranges or len(ranges) > 1 or ranges[0][0] != ranges[0][1]:
            return ranges
        return without_case_of(ranges)

    def group(self, start: int) -> Expr | None:
        """A group behind its opening parenthesis, or flags, as in (?i)."""
        reader, before = self.reader, self.flags
        reader.enter()
        if reader.next == "?" and reader.match(_GROUP_NAME) is None:
            found = reader.match(_FLAGS)
            if found is None:
                raise reader.error(
                    "look-arounds and other groups (? are not supported, nor are they in llguidance", start
                )
            for letter in found[1] + (found[2] or ""):
                if letter not in "imsxu":
                    raise reader.error(f"the flag {letter!r} is not supported; known are i, m, s, u and x", start)
            if "u" in (found[2] or ""):
                raise reader.error("the flag -u, for bytes that are no characters, is not supported", start)
            self.flags = (self.flags | set(found[1]) - {"u"}) - set(found[2] or "")
            if found[3] == ")":
                reader.leave()
                return None
        inner = self.alternatives()
        reader.expect(")", "to close a group of the pattern", start)
        reader.leave()
        self.flags = before
        return inner

    def escape(self, in_class: bool) -> Ranges:
        """The characters of an escape."""
        reader, start = self.reader, self.reader.at
        reader.take("\\")
        letter = reader.next
        reader.at += 1
        if not letter:
            raise reader.error("the pattern ends in a backslash", start)
        if letter in "dDsSwW":
            return perl_class(letter)
        if letter in "pP":
            return self.property(letter == "P", start)
        if letter in _DIGITS:
            if reader.take("{"):
                code = reader.hexadecimal(None, start)
                reader.expect("}", "at the end of an escape")
            else:
                code = reader.hexadecimal(_DIGITS[letter], start)
            return ((code, code),)
        if letter in _ESCAPES:
            return ((_ESCAPES[letter],) * 2,)
        if letter in "bBAzZ<>" and not in_class:
            raise reader.error(
                f"\\{letter} is not supported, nor is it in llguidance: a pattern sees only its own text", start
            )
        if letter.isascii() and letter.isalnum():
            raise reader.error(f"unknown escape \\{letter} in a pattern", start)
        return ((ord(letter), ord(letter)),)

    def property(self, is_negated: bool, start: int) -> Ranges:
        r"""The characters of ``\p{...}`` behind its letter."""
        reader = self.reader
        if reader.take("{"):
            end = reader.text.find("}", reader.at)
            name = reader.text[reader.at : end] if end >= 0 else ""
            reader.at = end + 1 if end >= 0 else len(reader.text)
        else:
            name = reader.next
            reader.at += 1
        is_negated ^= name.startswith("^")
        name = name.removeprefix("^")
        short = _LONG_NAMES.get(re.sub(r"[ _-]", "", name).lower(), name)
        if short not in _CATEGORIES and short not in {category[0] for category in _CATEGORIES}:
            raise reader.error(
                f"the property {name[:40]!r} is not supported; supported are general categories, such as \\p{{L}} or \\p{{Nd}}",
                start,
            )
        found = general_category(short)
        if "i" in self.flags and found:
            found = without_case_of(found)
        return complement(found) if is_negated else found

    def bracketed(self) -> Ranges:
        """A class in brackets, with classes in it and the operators between its parts."""
        reader, start = self.reader, self.reader.at
        reader.take("[")
        reader.enter()
        is_negated = reader.take("^")
        total: Ranges | None = None
        operator = ""
        pairs: list[tuple[int, int]] = []
        is_first = True
        while True:
            self.skip()
            if not reader.next:
                raise reader.error("this class of the pattern has no closing bracket", start)
            ends = reader.next == "]" and not is_first
            sign = next((sign for sign in ("&&", "--", "~~") if reader.starts(sign) and not is_first), "")
            if ends or sign:
                part = normalise(pairs)
                if part and "i" in self.flags:
                    part = without_case_of(part)
                total = _combined(total, operator, part)
                operator, pairs = sign, []
                reader.at += len(sign) or 1
                if ends:
                    break
                continue
            is_first = False
            pairs += self.member(start)
        reader.leave()
        return complement(total) if is_negated else total

    def member(self, start: int) -> Ranges:
        """One member of a class: a character, a range, or a class."""
        reader, at = self.reader, self.reader.at
        if (posix := reader.match(re.compile(r"\[:(\^?)([a-z]+):\]"))) is not None:
            if posix[2] not in _POSIX:
                raise reader.error(f"unknown class [:{posix[2]}:]", at)
            return complement(_POSIX[posix[2]]) if posix[1] else _POSIX[posix[2]]
        if reader.next == "[":
            return self.bracketed()
        low = self.class_character()
        if len(low) != 1 or low[0][0] != low[0][1]:
            return low
        if (
            reader.next == "-"
            and not reader.starts("--")
            and reader.text[reader.at + 1 : reader.at + 2] not in ("]", "")
        ):
            reader.take("-")
            self.skip()
            high = self.class_character()
            if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                raise reader.error(
                    f"the range {reader.text[at : reader.at]} is none: it needs two characters in order", at
                )
            return ((low[0][0], high[0][0]),)
        return low

    def class_character(self) -> Ranges:
        """A character or an escape inside a class."""
        reader = self.reader
        if reader.next == "\\":
            return self.escape(True)
        if not reader.next:
            raise reader.error("this class of the pattern has no closing bracket")
        reader.at += 1
        code = ord(reader.text[reader.at - 1])
        return ((code, code),)


def _combined(total: Ranges | None, operator: str, right: Ranges) -> Ranges:
    """What an operator makes of the part before it and the part behind it."""
    if total is None:
        return right
    common = difference(total, complement(right))
    if operator == "&&":
        return common
    return difference(total, right) if operator == "--" else difference(normalise((*total, *right)), common)


def check_flags(reader: Reader, flags: str, at: int) -> None:
    """Raises GrammarError for flags behind a pattern that are not supported."""
    if "l" in flags:
        raise reader.error("the flag l is not supported, nor is it in llguidance", at)
