"""The terminals of llguidance's Lark dialect as regular expressions."""

from __future__ import annotations

import itertools
import unicodedata

from maskwright.analysis.errors import LimitError, NestingError
from maskwright.analysis.fronts.automata import in_both, without
from maskwright.analysis.fronts.expressions import (
    EMPTY,
    Expr,
    characters,
    choice,
    literal,
    repetition,
    sequence,
)
from maskwright.analysis.fronts.llguidance_syntax import Alternatives, Atom, Document, Element
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.fronts.rust_regex import check_flags, perl_class, read_rust_regex, without_case
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.nesting import MOST_NESTED

MAX_SIZE = 100_000
"""The most positions of a terminal's expression."""
MAX_CHUNKS = 300
"""The most chunks of a substring."""

COMMON = {
    "DIGIT": r"[0-9]",
    "HEXDIGIT": r"[a-fA-F0-9]",
    "INT": r"[0-9]+",
    "SIGNED_INT": r"[+-]?[0-9]+",
    "DECIMAL": r"[0-9]+\.[0-9]*|\.[0-9]+",
    "_EXP": r"[eE][+-]?[0-9]+",
    "FLOAT": r"([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+",
    "SIGNED_FLOAT": r"[+-]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)",
    "NUMBER": r"[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+",
    "SIGNED_NUMBER": r"[+-]?([0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)",
    "ESCAPED_STRING": r'"([^"\\]|\\.)*"',
    "LCASE_LETTER": r"[a-z]",
    "UCASE_LETTER": r"[A-Z]",
    "LETTER": r"[A-Za-z]",
    "WORD": r"[A-Za-z]+",
    "CNAME": r"[_A-Za-z][_A-Za-z0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*[^*]*\*+([^/*][^*]*\*+)*/",
    "SQL_COMMENT": r"--[^\n]*",
}
"""The terminals that `%import common.X` has in llguidance, by pattern."""


class Terminals:
    """The terminals of a document, by name; each is worked out when it is first needed."""

    def __init__(self, reader: Reader, document: Document) -> None:
        self.reader, self.document = reader, document
        self.known: dict[str, Expr] = {}
        self.under_way: list[str] = []
        for name, at in document.imports.values():
            if name not in COMMON:
                raise reader.error(f"common has no terminal {name!r}{suggestion(name, list(COMMON))}", at)

    def knows(self, name: str) -> bool:
        """Whether a terminal has this name."""
        return name in self.document.terminals or name in self.document.imports

    def named(self, name: str, at: int) -> Expr:
        """The expression of a terminal. Raises GrammarError if it is not defined, or circular."""
        if name in self.known:
            return self.known[name]
        if not self.knows(name):
            known = [*self.document.terminals, *self.document.imports]
            hint = f"; {name} is a rule, and a terminal has no rules in it" if name in self.document.rules else ""
            raise self.reader.error(f"terminal {name!r} is not defined{hint or suggestion(name, known[:2000])}", at)
        if name in self.under_way:
            raise self.reader.error(f"terminal {name!r} needs itself: {' -> '.join([*self.under_way, name][-6:])}", at)
        if len(self.under_way) >= MOST_NESTED:
            raise NestingError(
                f"grammar {self.reader.name}: more than {MOST_NESTED} terminals stand inside one another, {name} in the last; "
                "write them flatter"
            )
        if name in self.document.imports:
            source = COMMON[self.document.imports[name][0]]
            found = read_rust_regex(Reader(source, f"common.{name}"), 0, len(source), "")
        else:
            self.under_way.append(name)
            found = self.alternatives(self.document.terminals[name].body)
            self.under_way.pop()
        self.known[name] = found
        return found

    def alternatives(self, body: Alternatives) -> Expr:
        """The expression of a body: each option has the texts of all of its sequences."""
        options = []
        for conjuncts in body:
            plain = [sequence(map(self.element, one)) for one in conjuncts if not _is_negated(one)]
            negated = [one[0] for one in conjuncts if _is_negated(one)]
            if not plain:
                at = negated[0].atom.at
                raise self.reader.error(
                    "~ alone also matches what is no text in UTF-8; join it with a pattern by &, as in /(?s:.*)/ & ~/.../",
                    at,
                )
            found = plain[0]
            for other in plain[1:]:
                found = in_both(found, other)
            for one in negated:
                if one.atom.of is not None:
                    found = without(found, self.atom(one.atom.of))
            options.append(self.checked(found))
        return choice(options)

    def checked(self, expr: Expr) -> Expr:
        """The expression itself. Raises LimitError if it is too large."""
        if expr.size > MAX_SIZE or len(str(expr.pattern)) > 10 * MAX_SIZE:
            where = f" of {self.under_way[-1]}" if self.under_way else ""
            raise LimitError(f"grammar {self.reader.name}: the pattern{where} has more than {MAX_SIZE} positions")
        return expr

    def element(self, element: Element) -> Expr:
        """The expression of an element."""
        return self.checked(repetition(self.atom(element.atom), element.least, element.most))

    def atom(self, atom: Atom) -> Expr:
        """The expression of an atom."""
        match atom.kind:
            case "group":
                return self.alternatives(atom.inner)
            case "maybe":
                return repetition(self.alternatives(atom.inner), 0, 1)
            case "name":
                return self.named(atom.text, atom.at)
            case "string":
                return without_case(atom.text) if atom.ignores_case else literal(atom.text)
            case "range":
                return characters(((ord(atom.text), ord(atom.last)),))
            case "regex":
                check_flags(self.reader, atom.text, atom.at)
                return read_rust_regex(self.reader, *atom.span, atom.text)
            case "substring" | "words":
                return self.substring(atom)
            case "part":
                what = {"token": "a special token", "grammar": "another grammar"}.get(atom.text, f"%{atom.text}")
                raise self.reader.error(f"{what} stands in rules only, and this is a terminal", atom.at)
        raise self.reader.error("~ is supported only as a whole side of &, as in /[a-z]+/ & ~/if|else/", atom.at)

    def words(self, atom: Atom) -> tuple[str, ...]:
        """A text cut into runs of blanks, of letters and digits, and of other characters."""
        for character in atom.text:
            if unicodedata.category(character)[0] == "M" or 0x24B6 <= ord(character) <= 0x24E9:
                raise self.reader.error(
                    f"substring_words with {character!r} is not supported, which Rust may take for a letter; use substring_chunks",
                    atom.at,
                )
        return tuple("".join(group) for _, group in itertools.groupby(atom.text, _kind_of_character))

    def substring(self, atom: Atom) -> Expr:
        """What joins neighbouring chunks, none of them included."""
        chunks = atom.chunks if atom.kind == "substring" else self.words(atom)
        if len(chunks) > MAX_CHUNKS:
            raise self.reader.error(f"a substring of {len(chunks)} chunks is not supported; {MAX_CHUNKS} are", atom.at)
        options = [EMPTY]
        following: Expr = EMPTY
        for chunk in reversed(chunks):
            following = sequence((literal(chunk), repetition(following, 0, 1)))
            options.append(following)
        return choice(options[::-1])


def _kind_of_character(character: str) -> str:
    if any(low <= ord(character) <= high for low, high in perl_class("s")):
        return "blank"
    return "word" if character == "_" or unicodedata.category(character)[0] in "LN" else "other"


def _is_negated(elements: tuple[Element, ...]) -> bool:
    return len(elements) == 1 and elements[0].atom.kind == "not" and elements[0].least == elements[0].most == 1
