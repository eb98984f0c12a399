r"""From a pattern's text to a tree, as ECMA 262 reads it with the flag `u`.

JSON Schema says that patterns are ECMA 262. Python's `re` reads many of them otherwise: there
``\d`` matches Arabic digits, ``$`` matches before a newline at the end, ``\/`` and ``\cJ`` mean
something else, and ``(?<name>...)`` is an error.

What the flag `u` forbids but most validators take is read as without it (ECMA 262, annex B):
``\-`` and other signs behind a backslash, a lone ``{``, ``}`` or ``]``, ``a{,2}``, a hyphen beside
a class, as in ``[\w-a]``, and look-aheads that are repeated.

Source: ECMA 262, 15th edition, sections 22.2.1, 22.2.2 and B.1.2.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from maskwright.analysis.nesting import MOST_NESTED
from maskwright.analysis.regex import charset
from maskwright.analysis.regex.charset import Ranges
from maskwright.analysis.regex.positions import END, START
from maskwright.analysis.regex.simplify import looks_ahead_behind
from maskwright.analysis.regex.tree import EMPTY, Chars, Choice, Look, Node, Repeat, sequence

DIGITS: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE: Ranges = charset.normalise(
    (ord(one), ord(one))
    for one in "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
)
NEWLINES: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))

_DOT = Chars(charset.complement(NEWLINES))
_CLASSES = {"d": DIGITS, "w": WORD, "s": SPACE}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_QUANTIFIER = re.compile(r"\{(\d+)(,(\d*))?\}")
_GROUP = re.compile(r"\?(?:<([^>=!]*)>|([:=!]|<=|<!))")
_HEX = "0123456789abcdefABCDEF"

MOST_REPEATED = 1 << 20
"""The greatest number of copies that a quantifier may ask for."""


class PatternError(Exception):
    """A pattern that ECMA 262 does not allow, or that no automaton reads.

    what : the reason, in words.
    offset : where, in characters.
    """

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what, offset)
        self.what, self.offset = what, offset


def parse(pattern: str) -> Node:
    r"""The tree of a pattern; anchors have become look-arounds.

    Raises: PatternError for what is no pattern, and for back-references, which no automaton reads.

    Example:
        >>> parse(r"\d").ranges
        ((48, 57),)
    """
    return _Parser(pattern).parse()


def _look(body: Node, ahead: bool, negated: bool) -> Look:
    return Look(body, ahead=ahead, negated=negated)


def _boundary(is_wanted: bool) -> Node:
    """`\\b` or `\\B`: whether just one of the characters beside the position is one of a word."""

    def sides(before: bool, after: bool) -> Node:
        word = Chars(WORD)
        return sequence(_look(word, ahead=False, negated=not before), _look(word, ahead=True, negated=not after))

    return Choice((sides(True, not is_wanted), sides(False, is_wanted)))


@lru_cache(maxsize=64)
def _property(name: str) -> Ranges | None:
    r"""The characters of ``\p{name}``; None if the name is not known.

    Known are the general categories, `Any`, `ASCII`, and `Assigned`, in the running Python's
    version of Unicode.
    """
    if name == "Any":
        return charset.EVERYTHING
    if name == "ASCII":
        return ((0, 127),)
    _, has_key, value = name.rpartition("=")
    if has_key and name.partition("=")[0] not in {"General_Category", "gc"}:
        return None
    value = _LONG_NAMES.get(value, value)
    if value == "Assigned":
        return charset.complement(_category("Cn"))
    if value == "LC":
        return charset.normalise([*_category("Lu"), *_category("Ll"), *_category("Lt")])
    return _category(value) or None


def _category(prefix: str) -> Ranges:
    """The characters whose general category begins with `prefix`."""
    table = _categories()
    found = [pair for name, ranges in table.items() if name.startswith(prefix) and prefix for pair in ranges]
    return charset.normalise(found)


@lru_cache(maxsize=1)
def _categories() -> dict[str, list[tuple[int, int]]]:
    """General category -> ranges of code points."""
    table: dict[str, list[tuple[int, int]]] = {}
    start, last = 0, unicodedata.category("\0")
    for code in range(1, charset.LAST + 2):
        name = unicodedata.category(chr(code)) if code <= charset.LAST else ""
        if name != last:
            table.setdefault(last, []).append((start, code - 1))
            start, last = code, name
    return table


_LONG_NAMES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd",
    "Letter_Number": "Nl", "Other_Number": "No", "Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf", "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm",
    "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So", "Separator": "Z",
    "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp", "Other": "C", "Control": "Cc",
    "cntrl": "Cc", "Format": "Cf", "Surrogate": "Cs", "Private_Use": "Co", "Unassigned": "Cn",
}  # fmt: skip


class _Parser:
    """A recursive descent over the pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def parse(self) -> Node:
        tree = self._choice()
        if self.at < len(self.text):
            raise PatternError("a ) that closes nothing", self.at)
        return tree

    def _next(self, expected: str) -> bool:
        """Whether `expected` stands here; it is passed."""
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self._next("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self._quantified())
        return sequence(*parts)

    def _quantified(self) -> Node:
        start = self.at
        part = self._atom()
        if self.at == len(self.text):
            return part
        letter = self.text[self.at]
        counted = _QUANTIFIER.match(self.text, self.at)
        if letter in "*+?":
            self.at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[letter]
        elif counted:
            self.at = counted.end()
            if max(len(counted[1]), len(counted[3] or "")) > 7:
                raise PatternError(f"more than {MOST_REPEATED:,} repetitions", counted.start())
            least = int(counted[1])
            most = least if counted[2] is None else int(counted[3]) if counted[3] else None
            if most is not None and most < least:
                raise PatternError(f"the quantifier {counted[0]} has its bounds in the wrong order", counted.start())
            if max(least, most or 0) > MOST_REPEATED:
                raise PatternError(f"more than {MOST_REPEATED:,} repetitions", counted.start())
        else:
            return part
        self._next("?")  # which match is tried first makes no difference to whether there is one
        if self.text.startswith(("^", "$", "\\b", "\\B", "(?<=", "(?<!"), start):
            raise PatternError("nothing to repeat", start)
        if isinstance(part, Look):
            return part if least else EMPTY
        return Repeat(part, least, most)

    def _atom(self) -> Node:
        start = self.at
        letter = self.text[start]
        self.at += 1
        if letter == "(":
            return self._group(start)
        if letter == "[":
            return Chars(self._set(start))
        if letter == "\\":
            return self._escape(start)
        if letter == ".":
            return _DOT
        if letter == "^":
            return START
        if letter == "$":
            return END
        if letter in "*+?" or (letter == "{" and _QUANTIFIER.match(self.text, start)):
            raise PatternError("nothing to repeat", start)
        return self._character(ord(letter), start)

    def _character(self, code: int, start: int) -> Node:
        if 0xD800 <= code <= 0xDFFF:
            raise PatternError("half a surrogate pair, which no text has", start)
        return Chars(((code, code),))

    def _group(self, start: int) -> Node:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise PatternError(f"more than {MOST_NESTED} groups inside one another", start)
        kind = ""
        if self.text.startswith("?", self.at):
            found = _GROUP.match(self.text, self.at)
            if not found:
                raise PatternError(
                    "a group (?...) that ECMA 262 does not know; flags such as (?i) are none of it", start
                )
            self.at, kind = found.end(), found[2] or ""
        body = self._choice()
        if not self._next(")"):
            raise PatternError("a ( that is not closed", start)
        self.depth -= 1
        if kind in {"", ":"}:
            return body
        if kind.startswith("<") and looks_ahead_behind(body, is_behind=True):
            raise PatternError("a look-ahead (or $, \\b) inside a look-behind, of which no automaton is known", start)
        return _look(body, ahead="<" not in kind, negated="!" in kind)

    def _escape(self, start: int) -> Node:
        if self.at == len(self.text):
            raise PatternError("a \\ with nothing behind it", start)
        letter = self.text[self.at]
        if letter in "bB":
            self.at += 1
            return _boundary(letter == "b")
        if letter in "123456789" or (letter == "k" and "(?<" in self.text):
            raise PatternError("a back-reference, which no automaton reads", start)
        found = self._class_escape(start)
        return Chars(found) if found is not None else self._character(self._code(start), start)

    def _class_escape(self, start: int) -> Ranges | None:
        """The set of an escape such as ``\\d``, which is passed; None if it is not one."""
        letter = self.text[self.at]
        if letter.lower() in _CLASSES:
            self.at += 1
            found = _CLASSES[letter.lower()]
            return charset.complement(found) if letter.isupper() else found
        if letter not in "pP" or not self.text.startswith("{", self.at + 1):
            return None
        end = self.text.find("}", self.at)
        name = self.text[self.at + 2 : end] if end > 0 else ""
        ranges = _property(name) if name else None
        if ranges is None:
            raise PatternError(f"the property {name!r} of characters is not known", start)
        self.at = end + 1
        return charset.complement(ranges) if letter == "P" else ranges

    def _code(self, start: int) -> int:
        """The character that an escape stands for; `at` is behind the backslash."""
        letter = self.text[self.at]
        self.at += 1
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "0" and not self.text[self.at : self.at + 1].isdigit():
            return 0
        if letter == "c" and self.text[self.at : self.at + 1].isascii() and self.text[self.at : self.at + 1].isalpha():
            self.at += 1
            return ord(self.text[self.at - 1]) % 32
        if letter == "x":
            return self._hexadecimal(2, start)
        if letter == "u":
            return self._unicode(start)
        if letter.isalnum():
            remedy = {"A": "; write ^", "Z": "; write $", "z": "; write $"}.get(letter, "")
            raise PatternError(f"the escape \\{letter}, which ECMA 262 does not know{remedy}", start)
        return ord(letter)

    def _hexadecimal(self, n: int, start: int) -> int:
        digits = self.text[self.at : self.at + n]
        if len(digits) < n or any(digit not in _HEX for digit in digits):
            raise PatternError(f"an escape that needs {n} hexadecimal digits", start)
        self.at += n
        return int(digits, 16)

    def _unicode(self, start: int) -> int:
        if self._next("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at : end] if end > 0 else ""
            if not digits or any(digit not in _HEX for digit in digits) or int(digits, 16) > charset.LAST:
                raise PatternError("an escape \\u{...} that names no character", start)
            self.at = end + 1
            return int(digits, 16)
        code = self._hexadecimal(4, start)
        if 0xD800 <= code <= 0xDBFF and self.text.startswith("\\u", self.at):
            begin, self.at = self.at, self.at + 2
            low = self._hexadecimal(4, start)
            if 0xDC00 <= low <= 0xDFFF:
                return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            self.at = begin
        return code

    def _set(self, start: int) -> Ranges:
        negated = self._next("^")
        pieces: list[tuple[int, int]] = []
        while not self._next("]"):
            if self.at >= len(self.text):
                raise PatternError("a [ that is not closed", start)
            first = self._set_item()
            if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
                self.at += 1
                if self.at >= len(self.text):
                    raise PatternError("a [ that is not closed", start)
                last = self._set_item()
                if isinstance(first, int) and isinstance(last, int):
                    if last < first:
                        raise PatternError("a range whose end is before its start", start)
                    pieces.append((first, last))
                    continue
                pieces.append((45, 45))
                pieces.extend(((last, last),) if isinstance(last, int) else last)
            pieces.extend(((first, first),) if isinstance(first, int) else first)
        found = charset.normalise(pieces)
        return charset.complement(found) if negated else found

    def _set_item(self) -> int | Ranges:
        start = self.at
        letter = self.text[start]
        self.at += 1
        if letter != "\\":
            return ord(letter)
        if self.at == len(self.text):
            raise PatternError("a \\ with nothing behind it", start)
        if self._next("b"):
            return 8
        found = self._class_escape(start)
        return found if found is not None else self._code(start)
