"""A terminal: what a lexeme may be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from maskwright.analysis.errors import GrammarError

INT32 = range(-(2**31), 2**31)

_RANGE = re.compile(r"(?P<least>[0-9]*)(?P<dots>\.\.)?(?P<most>[0-9]*)")


class Lengths(NamedTuple):
    """A least and a greatest number of characters; None is no bound.

    >>> print(Lengths(0, 8)), print(Lengths(2, None)), print(Lengths(3, 3))
    ..8
    2..
    3
    (None, None, None)
    """

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        return f"{self.least or ''}..{'' if self.most is None else self.most}"

    @classmethod
    def read(cls, name: str, text: str) -> Lengths:
        """The lengths that a text says: ``..8``, ``2..``, ``2..8`` or ``8``.

        name : the terminal that they are of, for messages.

        Raises: GrammarError for a text that says none, or numbers that no lexeme can have.
        """
        found = _RANGE.fullmatch(text.strip())
        if found is None or not (found["least"] or found["most"]):
            raise GrammarError(
                f"the length of {name[:40]} is {text[:40]!r}; expected numbers of characters, as in ..8, 2.., 2..8 or 8"
            )
        least, most = (int(number[:12]) if number else None for number in (found["least"], found["most"]))
        if not found["dots"]:
            most = least
        if most is not None and most < (least or 0):
            raise GrammarError(f"no lexeme of {name[:40]} has {text[:40]} characters: {least} > {most}")
        if any(number is not None and number not in INT32 for number in (least, most)):
            raise GrammarError(f"the length {text[:40]} of {name[:40]} is too large; leave it out for no bound")
        return cls(least or 0, most)


@dataclass(frozen=True, slots=True)
class Terminal:
    """A named set of strings, given by a Python regular expression or by a literal.

    name : the terminal's name, such as "NUMBER"; anonymous terminals have names such as "__ANON_0".
    pattern : source text for Python's `re`. None for a declared terminal: no text matches it, the
        layout inserts it.
    flags : letters of the `re` flags that hold for the whole pattern, sorted, such as "is".
    literal : the string that the terminal matches, if it is a string literal of the grammar; else
        None.
    priority : Lark's priority; the higher one wins.
    line, column : place where the grammar's text defines, imports or declares the terminal, or
        where the literal first stands; counted from 1. Both are 0 if the text does not name it.
    lengths : how many characters a lexeme has; of what the pattern matches nothing else is a
        lexeme. None: all of it is.
    beyond : the name of another terminal of the same pattern and lengths. The lexemes of this one
        are those that are too short or too long for that one: they are read where that one could
        be, and refused. "": there is none.
    """

    name: str
    pattern: str | None
    flags: str = ""
    literal: str | None = None
    priority: int = 0
    line: int = 0
    column: int = 0
    lengths: Lengths | None = None
    beyond: str = ""

    @property
    def is_declared(self) -> bool:
        """Whether the terminal has no pattern, so that no text matches it."""
        return self.pattern is None

    def to_list(self) -> list[Any]:
        """The terminal's parts as JSON's types; `from_list` reads them back."""
        parts = [self.name, self.pattern, self.flags, self.literal, self.priority, self.line, self.column]
        # left out if there are none: most grammars' digests and files stay the same
        return parts if self.lengths is None else [*parts, *self.lengths, self.beyond]

    @classmethod
    def from_list(cls, fields: list[Any]) -> Terminal:
        """The terminal that `to_list` wrote. Raises: GrammarError if it did not write this."""
        if len(fields) not in (7, 10):
            raise GrammarError(
                f"not a grammar written by maskwright: a terminal has {len(fields)} fields; expected 7 or 10"
            )
        name, pattern, flags, literal, priority, line, column = fields[:7]
        typed(name, str, "a terminal's name")
        typed(flags, str, f"flags of terminal {name}")
        for text in (pattern, literal):
            if text is not None:
                typed(text, str, f"pattern or literal of terminal {name}")
        for number in (priority, line, column):
            typed(number, int, f"priority, line or column of terminal {name}")
        if len(fields) == 7:
            return cls(name, pattern, flags, literal, priority, line, column)
        least, most, beyond = fields[7:]
        for number in (least, most):
            if number is not None and typed(number, int, f"a length of terminal {name}") not in range(INT32.stop):
                raise GrammarError(f"not a grammar written by maskwright: terminal {name} has the length {number}")
        typed(beyond, str, f"the terminal that {name} stands beside")
        return cls(name, pattern, flags, literal, priority, line, column, Lengths(least or 0, most), beyond)


_T = TypeVar("_T")


def typed(value: object, kind: type[_T], what: str) -> _T:
    """The value itself, if it is of type `kind` (a bool is not an int here)."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise GrammarError(
            f"not a grammar written by maskwright: {what} is of type {type(value).__name__}; expected {kind.__name__}"
        )
    return value
