"""A text that is read from left to right, and errors at a place in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from maskwright.analysis.arguments import need_type
from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.lark_files import caret, suggestion
from maskwright.analysis.nesting import MOST_NESTED
from maskwright.analysis.regex.cursor import Cursor

MAX_LITERAL = 10_000
"""The most characters of a text in quotes."""
MAX_COUNT = 1_000_000
"""The largest number of a repetition."""
MAX_TEXT = 10_000_000
"""The most characters of a text."""
MOST_NAMED = 8
"""The most names that a message lists."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_HEX = re.compile(r"[0-9A-Fa-f]*")
_DIGITS = re.compile(r"[0-9]*")


class Reader(Cursor):
    """A text of some name, and how far it has been read.

    text : the whole. name : what error messages call it. n_tokens : those that sets name.
    """

    def __init__(self, text: str, name: str) -> None:
        need_type("the text of a grammar", text, str, "a str", GrammarError)
        need_type("name", name, str, "a str", GrammarError)
        super().__init__(text.removeprefix("\ufeff"))
        self.name, self.depth, self.n_tokens = name, 0, 0
        self._lines: list[int] = []
        if len(text) > MAX_TEXT:
            raise GrammarError(f"grammar {name} has {len(text)} characters; the most that is read is {MAX_TEXT}")
        if (bad := _SURROGATE.search(self.text)) is not None:
            raise self.error(f"the text has a lone surrogate, {bad[0]!r}, which is no character", bad.start())

    def error(self, message: str, at: int | None = None) -> GrammarError:
        """An error at an offset, by default at the next character. It is returned, not raised."""
        line, column = self.place(self.at if at is None else at)
        return GrammarError(f"{self.name}:{line}:{column}: {message}{caret(self.text, line, column)}")

    def place(self, at: int) -> tuple[int, int]:
        """The line and column of an offset, counted from 1."""
        if not self._lines:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect_right(self._lines, at)
        return line, at - self._lines[line - 1] + 1

    @property
    def found(self) -> str:
        """The next character in words, for messages."""
        return repr(self.next) if self.next else "the end of the text"

    def expect(self, wanted: str, why: str, at: int | None = None) -> None:
        """Reads over a text. Raises GrammarError if it does not come next."""
        if not self.take(wanted):
            raise self.error(f"expected {wanted!r} {why}, found {self.found}", at)

    def enter(self) -> None:
        """Goes one group deeper. Raises GrammarError past MOST_NESTED."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.error(
                f"groups are nested more than {MOST_NESTED} deep; give the inner ones a name, as rules of their own"
            )

    def leave(self) -> None:
        """Comes out of a group."""
        self.depth -= 1

    def check_literal(self, length: int, at: int) -> None:
        """Raises LimitError if a text in quotes, which begins at an offset, is too long."""
        if length > MAX_LITERAL:
            message = f"a text of {length} characters; the most that is read is {MAX_LITERAL}"
            raise LimitError(str(self.error(message, at)))

    def count(self) -> int:
        """A number of a repetition. Raises GrammarError if none comes, or if it is too large."""
        start = self.at
        digits = str(_DIGITS.match(self.text, start)[0])  # type: ignore[index]
        if not digits:
            raise self.error(f"expected a number of repetitions, found {self.found}")
        self.at += len(digits)
        return self.number(digits, start)

    def number(self, digits: str, at: int) -> int:
        """A number of a repetition, from its digits. Raises GrammarError if it is too large."""
        if len(digits) > 12 or int(digits) > MAX_COUNT:
            raise self.error(f"a repetition of more than {MAX_COUNT} is not supported", at)
        return int(digits)

    def counts(self, space: re.Pattern[str], endless: str = "") -> tuple[int, int | None]:
        """What repeats an element: the least and the most times; None for no limit.

        space : what may stand between the parts of a repetition in braces.
        endless : what says that there is no limit, besides nothing.

        Raises: GrammarError for what is no repetition, or has fewer at most than at least.
        """
        for sign, found in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return found
        start = self.at
        self.take("{")
        self.match(space)
        least = self.count()
        most: int | None = least
        self.match(space)
        if self.take(","):
            self.match(space)
            is_endless = self.next == "}" or (endless != "" and self.take(endless))
            most = None if is_endless else self.count()
            self.match(space)
        self.expect("}", "at the end of a repetition")
        if most is not None and most < least:
            raise self.error(f"the repetition {self.text[start : self.at]} has fewer at most than at least", start)
        return least, most

    def hexadecimal(self, n_digits: int | None, start: int) -> int:
        r"""The character of an escape such as \x41, behind its letter.

        n_digits : how many hexadecimal digits it has; None: as many as there are.
        start : where the escape begins, for messages.

        Raises: GrammarError for another number of digits, and for what is no character.
        """
        digits = str(_HEX.match(self.text, self.at, self.at + (n_digits or len(self.text)))[0])  # type: ignore[index]
        if not digits or len(digits) < (n_digits or 1):
            many = f"{n_digits}" if n_digits else "some"
            raise self.error(f"expected {many} hexadecimal digits in the escape {self.text[start : self.at]}", start)
        self.at += len(digits)
        value = int(digits.lstrip("0")[:8] or "0", 16) if len(digits.lstrip("0")) <= 8 else 1 << 40
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            raise self.error(f"the escape {self.text[start : start + 12]} stands for no character of Unicode", start)
        return value


def suggested(name: str, known: Sequence[str]) -> str:
    """The end of a message that says which names are like this one, and the first of all."""
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return suggestion(name[:60], known[:MOST_NAMED], more, known[MOST_NAMED:2000])


def undefined(reader: Reader, name: str, offset: int, known: Mapping[str, object]) -> GrammarError:
    """The error that a rule is used but not defined."""
    return reader.error(f"rule {name[:60]!r} is not defined{suggested(name, list(known))}", offset)
