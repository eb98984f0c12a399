r"""GBNF, the grammar language of llama.cpp: a text to a `Grammar`.

A rule is ``name ::= alternatives``. Its elements are texts ``"..."``, sets of characters ``[...]``
and ``[^...]``, ``.`` for any character, names of rules, and groups. Behind an element stand ``*``,
``+``, ``?``, ``{m}``, ``{m,}`` or ``{m,n}``. The escapes are ``\n \r \t \\ \" \[ \] \- \xHH \uHHHH
\UHHHHHHHH``. A rule ends with its line, but not inside a group or behind ``|`` and ``::=``. The
texts are those of the rule ``root``, character by character: there is no lexer (`scannerless`).

Where llama.cpp's parser goes a way of its own, we say so instead of following it:

- a rule that is defined twice is an error (there, the last definition wins);
- ``[]``, ``[^]`` and a range such as ``[z-a]`` are errors;
- a repetition of more than 2,000 is read as it is written (there, it has no upper limit);
- recursion on the left is read (there, it is an error);
- a character U+0000 is one like all others (there, a text ends at it).

Tokens, ``<name>`` and ``<[id]>``, stand for no text and are refused.

Source: llama.cpp, grammars/README.md and src/llama-grammar.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from maskwright.analysis.fronts.expressions import (
    EMPTY,
    Expr,
    characters,
    choice,
    literal,
    reference,
    repetition,
    sequence,
)
from maskwright.analysis.fronts.reading import Reader, undefined
from maskwright.analysis.fronts.scannerless import RuleSet, compile_rules
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.nesting import MOST_NESTED, on_own_stack
from maskwright.analysis.regex.charset import EVERYTHING, complement, normalise

SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_BLANKS = re.compile(r"(?:[ \t]+|#[^\r\n]*)*")


@on_own_stack
def parse_gbnf(text: str, name: str = "<gbnf>") -> Grammar:
    r"""The grammar of a text in GBNF.

    name : the grammar's name, which error messages show.

    Raises: GrammarError, with the place, for bad syntax, an undefined rule, a rule defined twice,
    or a token; EmptyLanguageError if `root` has no finite text; LimitError if repetitions unfold to
    too many rules.

    >>> print(parse_gbnf('root ::= "(" root ")" | [0-9]+'))
    <Grammar <gbnf>: 3 terminals, 1 nonterminals, 2 rules, start 'root'>
    """
    reader = Reader(text, name)
    return compile_rules(RuleReader(reader).read("root"), reader)


class RuleReader:
    """Reads the rules of a text in GBNF.

    A subclass reads a language that differs in some of it (`ebnf`): in the attributes here, and in
    the methods that it overrides.
    """

    name_of_rule = re.compile(r"[A-Za-z0-9_-]+")
    blanks = _BLANKS
    """What may stand between the elements of a rule, outside all groups."""
    signs: Mapping[str, str] = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
    """The letter of an escape -> its character."""
    signs_of_class = signs
    hexadecimal: Mapping[str, int | None] = {"x": 2, "u": 4, "U": 8}
    """The letter of an escape -> how many hexadecimal digits it has; None: all that follow."""
    known_escapes = r"; known are \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH"
    closed_on_line = ""
    """The characters that may not stand in a text in quotes or a class, line breaks or none."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._uses: list[Expr] = []

    def read(self, root: str) -> RuleSet:
        """The rules of the text. Raises: GrammarError. root : the rule of whole texts."""
        reader = self.reader
        rules: dict[str, Expr] = {}
        places: dict[str, int] = {}
        reader.match(SPACE)
        while reader.next:
            start = reader.at
            found = reader.match(self.name_of_rule)
            if found is None:
                raise reader.error(f"expected the name of a rule, found {reader.found}")
            name = found[0]
            self.refuse_options(name)
            reader.match(self.blanks)
            reader.expect("::=", f"behind the name {name[:60]!r}")
            if name in rules:
                line, _ = reader.place(places[name])
                raise reader.error(f"rule {name!r} is defined twice, first in line {line}", start)
            self.check_name(name, start)
            places[name] = start
            reader.match(SPACE)
            rules[name] = self._alternatives(self.blanks)
            self.check_end(name)
            reader.match(SPACE)
        for use in self._uses:
            if use.name not in rules:
                raise undefined(reader, use.name, use.offset, rules)
        if root not in rules:
            raise reader.error(f"there is no rule {root[:60]!r}, where the texts begin", 0)
        return RuleSet(rules, root, places)

    def refuse_options(self, name: str) -> None:
        """Raise GrammarError where options of a rule come next."""

    def check_name(self, name: str, start: int) -> None:
        """Raise GrammarError if a rule cannot have this name at this offset."""

    def check_end(self, name: str) -> None:
        """Raise GrammarError if a rule cannot end here."""
        if self.reader.next not in ("", "\r", "\n"):
            raise self.reader.error(
                f"expected an element of rule {name[:60]!r} or the end of its line, found {self.reader.found}"
            )

    def _alternatives(self, space: re.Pattern[str]) -> Expr:
        options = [self.sequence(space)]
        while self.reader.take("|"):
            self.reader.match(SPACE)
            options.append(self.sequence(space))
        return choice(options)

    def sequence(self, space: re.Pattern[str]) -> Expr:
        """Elements with what repeats them. space : what may stand between them."""
        reader = self.reader
        parts: list[Expr] = []
        while True:
            is_group = reader.next == "("
            if (part := self.element()) is None:
                break
            is_there = is_group or part is not EMPTY  # llama.cpp's parser repeats an empty group, but not ""
            reader.match(space)
            while reader.next and reader.next in "*+?{":
                start = reader.at
                if not is_there:
                    raise reader.error("there is nothing to repeat before this")
                least, most = reader.counts(SPACE)
                part, is_there = repetition(part, least, most), most != 0
                if part.depth > 4 * MOST_NESTED:
                    raise reader.error("too many repetitions of repetitions", start)
                reader.match(space)
            parts.append(part)
        if reader.next and reader.next in "*+?{":
            raise reader.error("there is nothing to repeat before this")
        return sequence(parts)

    def element(self) -> Expr | None:
        """The next element without what repeats it; None if none comes next."""
        reader = self.reader
        start = reader.at
        if (found := self.common_element()) is not None:
            return found
        if reader.take("."):
            return characters(EVERYTHING)
        if reader.next in ("<", "!"):
            shown = reader.text[start : start + 40].split(">")[0] + ">"
            raise reader.error(
                f"the token {shown} stands for no text, and masks here are over texts; say its text as a string, or leave it out"
            )
        name = reader.match(self.name_of_rule)
        return None if name is None else self.use(name[0], start)

    def use(self, name: str, start: int) -> Expr:
        """The element that is a rule."""
        self._uses.append(reference(name, start))
        return self._uses[-1]

    def common_element(self) -> Expr | None:
        """A text, a class or a group, if one comes next."""
        reader = self.reader
        start = reader.at
        if reader.take('"'):
            return self._text(start)
        if reader.take("["):
            return self._class(start)
        if not reader.take("("):
            return None
        reader.enter()
        reader.match(SPACE)
        inner = self.group()
        reader.expect(")", f"to close the group of line {reader.place(start)[0]}")
        reader.leave()
        return inner

    def group(self) -> Expr:
        """What stands in parentheses."""
        return self._alternatives(SPACE)

    def _text(self, start: int) -> Expr:
        reader = self.reader
        found = []
        while not reader.take('"'):
            self._check_open("text", "quote", start)
            found.append(chr(self._character(self.signs)))
        reader.check_literal(len(found), start)
        return literal("".join(found))

    def _check_open(self, what: str, closing: str, start: int) -> None:
        """Raise GrammarError where a text in quotes or a class ends too early."""
        if self.reader.next and self.reader.next not in self.closed_on_line:
            return
        where = (" on its line" + r"; write \n for a line feed" * (what == "text")) if self.closed_on_line else ""
        raise self.reader.error(f"this {what} has no closing {closing}{where}", start)

    def _class(self, start: int) -> Expr:
        reader = self.reader
        is_negated = reader.take("^")
        pairs: list[tuple[int, int]] = []
        while not reader.take("]"):
            at = reader.at
            low = high = self.class_character(start)
            if reader.starts("-") and not reader.starts("-]"):
                reader.take("-")
                high = self.class_character(start)
            if low > high:
                raise reader.error(
                    f"the range {reader.text[at : reader.at]} is empty: its ends are the wrong way round", at
                )
            pairs.append((low, high))
        if not pairs:
            return self.empty_class(is_negated, start)
        ranges = normalise(pairs)
        return characters(complement(ranges) if is_negated else ranges)

    def empty_class(self, is_negated: bool, start: int) -> Expr:
        """What a class without characters means. Raises: GrammarError."""
        raise self.reader.error("this set of characters is empty; write . for any character", start)

    def class_character(self, start: int) -> int:
        """The next character of a class that begins at an offset."""
        self._check_open("set of characters", "bracket", start)
        return self._character(self.signs_of_class)

    def _character(self, signs: Mapping[str, str]) -> int:
        reader = self.reader
        start = reader.at
        if not reader.take("\\"):
            reader.at += 1
            return ord(reader.text[start])
        letter = reader.next
        reader.at += len(letter)
        if letter in signs:
            return ord(signs[letter])
        if letter in self.hexadecimal:
            return reader.hexadecimal(self.hexadecimal[letter], start)
        raise reader.error(f"unknown escape {reader.text[start : start + 2]!r}{self.known_escapes}", start)
