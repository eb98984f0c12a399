r"""From a pattern's text to a tree, as ECMA 262 reads it with the flag `u`.

JSON Schema says that patterns are ECMA 262. Python's `re` reads many of them otherwise: there
``\d`` matches Arabic digits, ``$`` matches before a newline at the end, ``\/`` and ``\cJ`` mean
something else, and ``(?<name>...)`` is an error.

What the flag `u` forbids but most validators take is read as without it (ECMA 262, annex B):
``\-`` and other signs behind a backslash, a lone ``{``, ``}`` or ``]``, ``a{,2}``, a hyphen beside
a class, as in ``[\w-a]``, and look-aheads that are repeated. So are flags at the beginning, as in
``(?i)a``; ECMA 262 has only ``(?i:a)``. Case is ignored as Python does, which folds characters
nearly as ECMA 262 does.

Rust's patterns are read by the same `PatternReader`: `fronts.rust_regex` overrides what differs.
(Python's are read by Python's own parser: see `parse`.)

Source: ECMA 262, 15th edition, sections 22.2.1, 22.2.2 and B.1.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from maskwright.analysis.nesting import MOST_NESTED
from maskwright.analysis.regex import charset
from maskwright.analysis.regex.charset import Ranges
from maskwright.analysis.regex.cursor import Cursor
from maskwright.analysis.regex.positions import END, START
from maskwright.analysis.regex.properties import property_of
from maskwright.analysis.regex.tree import EMPTY, Chars, Choice, Look, Node, Repeat, boundary, looks_ahead, sequence

Item = int | Ranges
r"""A character, or a set that an escape such as ``\d`` stands for."""

_SPACE: Ranges = charset.normalise(
    (ord(one), ord(one))
    for one in "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
)
_CLASSES: dict[str, Ranges] = {"d": ((48, 57),), "s": _SPACE, "w": ((48, 57), (65, 90), (95, 95), (97, 122))}
_CLASSES["wi"] = (*_CLASSES["w"], (0x17F, 0x17F), (0x212A, 0x212A))  # those that fold to s and k: `WordCharacters`
_CLASSES |= {name.capitalize(): charset.complement(ranges) for name, ranges in _CLASSES.items()}
_NOT_NEWLINE = charset.complement(((10, 10), (13, 13), (0x2028, 0x2029)))
_QUANTIFIER = re.compile(r"([*+?])|\{([0-9]+)(,([0-9]*))?\}")
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_IN_BRACES = re.compile(r"\{([0-9A-Fa-f]+)\}")
_HEX = re.compile(r"[0-9A-Fa-f]*")
_GROUP = re.compile(r"\?(?:<([^>=!]*)>|([:=!]|<=|<!)|([is]*)(?:-([is]+))?:)")
_FLAGS = re.compile(r"\?([is]+)\)")

MOST_REPEATED = 1 << 20
"""The greatest number of copies that a quantifier may ask for."""


class PatternError(Exception):
    """A pattern that its dialect does not allow, or that no automaton reads.

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
    return PatternReader(pattern).parse()


class PatternReader(Cursor):
    """A recursive descent over a pattern.

    A subclass reads a dialect that differs in some of it (`rust_regex` of the front ends): in the
    attributes here, and in the methods that it overrides. All methods raise PatternError.

    flags : those that hold at the present place. depth : how many groups it is in.
    """

    escapes: Mapping[str, int] = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "b": 8}
    """The letter of an escape -> its character."""
    digits: Mapping[str, int] = {"x": 2, "u": 4}
    """The letter of an escape -> how many hexadecimal digits it has."""
    in_braces = "u"
    """The letters whose digits may stand in braces, any number of them."""
    property_name = re.compile(r"\{([^}]+)\}")
    r"""What may follow ``\p``; its last group is the name."""
    no_range: tuple[str, ...] = ("-]",)
    """A hyphen in a class is not that of a range where the text goes on so."""
    repeats_once = True
    """Whether what is repeated can be repeated again only in a group."""

    closes_nothing = "a ) that closes nothing"
    open_group = "a ( that is not closed"
    open_class = "a [ that is not closed"
    backslash_at_end = "a \\ with nothing behind it"
    nothing_to_repeat = "nothing to repeat"
    wrong_bounds = "the quantifier {} has its bounds in the wrong order"
    too_deep = f"more than {MOST_NESTED} groups inside one another"
    unknown_property = "the property {!r} of characters is not known"

    def __init__(self, text: str, at: int = 0, flags: frozenset[str] = frozenset()) -> None:
        super().__init__(text, at)
        self.flags, self.depth = flags, 0

    def parse(self) -> Node:
        """The tree of what is left of the text."""
        tree = self._alternatives()
        if self.next:
            raise PatternError(self.closes_nothing, self.at)
        return tree

    def skip(self) -> None:
        """Reads over what means nothing."""

    def _alternatives(self) -> Node:
        options = [self._sequence()]
        while self.take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while True:
            self.skip()
            if self.next in ("", "|", ")"):
                return sequence(*parts)
            start = self.at
            part = self.atom(start)
            self.skip()
            while part is not None and (counts := self._counts()) is not None:
                part = self.repeated(part, *counts, start)
                self.skip()
                if self.repeats_once:
                    break
            if part is not None:
                parts.append(part)

    def _counts(self) -> tuple[int, int | None] | None:
        """The least and the most times of a quantifier; None if none comes next."""
        start = self.at
        found = self.match(_QUANTIFIER)
        if found is None:
            return None
        self.pass_lazy(start)
        if found[1]:
            return _SIGNS[found[1]]
        if any(len(number) > 7 or int(number) > MOST_REPEATED for number in (found[2], found[4] or "0")):
            raise PatternError(f"more than {MOST_REPEATED:,} repetitions", start)
        least = int(found[2])
        most = least if found[3] is None else int(found[4]) if found[4] else None
        if most is not None and most < least:
            raise PatternError(self.wrong_bounds.format(found[0]), start)
        return least, most

    def pass_lazy(self, start: int) -> None:
        """Reads over a ? behind a quantifier that begins at `start`."""
        self.take("?")  # which match is tried first makes no difference to whether there is one

    def repeated(self, part: Node, least: int, most: int | None, start: int) -> Node:
        """`least` to `most` times a part that begins at `start`."""
        if self.text.startswith(("^", "$", "\\b", "\\B", "(?<=", "(?<!"), start):
            raise PatternError(self.nothing_to_repeat, start)
        if isinstance(part, Look):
            return part if least else EMPTY
        return Repeat(part, least, most)

    def atom(self, start: int) -> Node | None:
        """A part without its quantifiers; None for what is none, such as flags."""
        if self.match(_QUANTIFIER):
            raise PatternError(self.nothing_to_repeat, start)
        letter = self.next
        self.at += 1
        match letter:
            case "(":
                return self._group(start)
            case "[":
                return Chars(self.bracketed(start))
            case "\\":
                return self.escaped(start)
            case ".":
                return Chars(self.dot())
            case "^" | "$":
                return self.anchor(letter, start)
        return self.character(ord(letter), start)

    def dot(self) -> Ranges:
        """The characters that a dot stands for."""
        return charset.EVERYTHING if "s" in self.flags else _NOT_NEWLINE

    def cased(self, ranges: Ranges) -> Ranges:
        """Characters, with those that differ from them in case only where that is ignored."""
        if "i" not in self.flags or not ranges:
            return ranges
        source = "".join([f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges])
        return charset.ignoring_case(charset.normalise(ranges), f"[{source}]", False)

    def class_of(self, letter: str) -> Ranges:
        r"""The characters of ``\d``, ``\s`` and ``\w``, and of their negations, by letter."""
        return _CLASSES[letter + "i" if letter in "wW" and "i" in self.flags else letter]

    def anchor(self, letter: str, start: int) -> Node:
        """What ^ or $ stands for."""
        return START if letter == "^" else END

    def character(self, code: int, start: int) -> Node:
        """One character."""
        if 0xD800 <= code <= 0xDFFF:
            raise PatternError("half a surrogate pair, which no text has", start)
        return Chars(self.cased(((code, code),)))

    def enter(self, start: int) -> None:
        """Goes one group deeper."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise PatternError(self.too_deep, start)

    def _group(self, start: int) -> Node | None:
        """A group, behind its parenthesis; None for flags that hold from here on."""
        self.enter(start)
        before = self.flags
        kind = self.kind_of_group(start)
        if kind is None:
            self.depth -= 1
            return None
        body = self._alternatives()
        if not self.take(")"):
            raise PatternError(self.open_group, start)
        self.depth -= 1
        self.flags = before
        if kind in {"", ":"}:
            return body
        if kind.startswith("<") and looks_ahead(body):
            raise PatternError("a look-ahead (or $, \\b) inside a look-behind, of which no automaton is known", start)
        return Look(body, ahead="<" not in kind, negated="!" in kind)

    def kind_of_group(self, start: int) -> str | None:
        """The sign behind ``(?`` that says what a group means, "" if there is none.

        Returns None if the group ends there, as flags do that hold from here on.
        """
        if self.next != "?":
            return ""
        if not start and (flags := self.match(_FLAGS)) is not None:
            self.flags = frozenset(flags[1])
            return None
        found = self.match(_GROUP)
        if found is None:
            raise PatternError(
                "a group (?...) that ECMA 262 does not know; flags are i and s, as in (?i:...), or first of all as in (?i)",
                start,
            )
        self.flags = (self.flags | set(found[3] or "")) - set(found[4] or "")
        return found[2] or ""

    def escaped(self, start: int) -> Node:
        """What an escape outside of classes stands for; its backslash is passed."""
        letter = self.next
        if self.take("b") or self.take("B"):
            return boundary(self.class_of("w"), letter == "b")
        if (letter and letter in "123456789") or (letter == "k" and "(?<" in self.text):
            raise PatternError("a back-reference, which no automaton reads", start)
        found = self.escape(start)
        return self.character(found, start) if isinstance(found, int) else Chars(found)

    def escape(self, start: int) -> Item:
        """The character or the set of an escape; its backslash is passed."""
        letter = self.next
        if not letter:
            raise PatternError(self.backslash_at_end, start)
        self.at += 1
        if letter in "dDsSwW":
            return self.class_of(letter)
        if letter in "pP" and (found := self.match(self.property_name)) is not None:
            ranges = self.property(name := found[found.lastindex or 0])
            if ranges is None:
                raise PatternError(self.unknown_property.format(name), start)
            return self.cased(charset.complement(ranges) if letter == "P" else ranges)
        if letter in self.escapes:
            return self.escapes[letter]
        return self._hexadecimal(letter, start) if letter in self.digits else self.other_escape(letter, start)

    def property(self, name: str) -> Ranges | None:
        """The characters of a property; None if it is not known."""
        return property_of(name)

    def other_escape(self, letter: str, start: int) -> int:
        """The character of an escape of no table; its letter is passed."""
        if letter == "0" and not self.next.isdigit():
            return 0
        if letter == "c" and self.next.isascii() and self.next.isalpha():
            self.at += 1
            return ord(self.text[self.at - 1]) % 32
        if letter.isalnum():
            remedy = {"A": "; write ^", "Z": "; write $", "z": "; write $"}.get(letter, "")
            raise PatternError(f"the escape \\{letter}, which ECMA 262 does not know{remedy}", start)
        return ord(letter)

    def _hexadecimal(self, letter: str, start: int) -> int:
        """The character of an escape in digits, or of two in a row; its letter is passed."""
        is_digits, code, begin = self.next != "{", self.code(letter, start), self.at  # braces never say half a pair
        if is_digits and 0xD800 <= code <= 0xDBFF and not self.starts("\\u{") and self.take("\\u"):
            low = self.code("u", start)
            if 0xDC00 <= low <= 0xDFFF:
                return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            self.at = begin
        return code

    def code(self, letter: str, start: int) -> int:
        """The number that an escape's digits say."""
        if letter in self.in_braces and self.next == "{":
            found = self.match(_IN_BRACES)
            digits, what = found[1] if found else "", f"an escape \\{letter}{{...}} that names no character"
        else:
            digits = self.text[self.at : self.at + self.digits[letter]]
            self.at += len(digits)
            what = f"an escape that needs {self.digits[letter]} hexadecimal digits"
            digits = digits if len(digits) == self.digits[letter] and _HEX.fullmatch(digits) else ""
        if not digits or int(digits, 16) > charset.LAST:
            raise PatternError(what, start)
        return int(digits, 16)

    def bracketed(self, start: int) -> Ranges:
        """The characters of a class that begins at `start`; its bracket is passed."""
        is_negated = self.take("^")
        pieces: list[tuple[int, int]] = []
        while not self.take("]"):
            pieces += self.member(start)
        found = charset.normalise(pieces)
        return charset.complement(found) if is_negated else found

    def member(self, start: int) -> Ranges:
        """A member of a class that begins at `start`: a character, a set, or a range."""
        at, first = self.at, self._item(start)
        if self.next != "-" or self.starts(self.no_range):
            return self._pairs(first)
        self.at += 1
        self.skip()
        last = self._item(start)
        if isinstance(first, int) and isinstance(last, int) and first <= last:
            return self.cased(((first, last),))
        return self.no_range_between(first, last, start, at)

    def no_range_between(self, first: Item, last: Item, start: int, at: int) -> Ranges:
        """What two members with a hyphen between them stand for that are no ends of a range.

        start : where the class begins. at : where the first member does.
        """
        if isinstance(first, int) and isinstance(last, int):
            raise PatternError("a range whose end is before its start", start)
        return (*self._pairs(first), (45, 45), *self._pairs(last))

    def _item(self, start: int) -> Item:
        """A character or an escape in a class that begins at `start`."""
        letter, at = self.next, self.at
        if not letter:
            raise PatternError(self.open_class, start)
        self.at += 1
        return self.escape(at) if letter == "\\" else ord(letter)

    def _pairs(self, item: Item) -> Ranges:
        return self.cased(((item, item),)) if isinstance(item, int) else item
