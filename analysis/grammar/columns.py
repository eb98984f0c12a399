"""Columns of lines: how far in a line begins, and how two lines compare.

Under "consistent" tabs a line has two columns, as in CPython. In `wide`, a tab leads to the next
multiple of 8. In `narrow`, a tab counts one column. A blank counts one in both, and a form feed
sets both to 0. If two lines compare one way by `wide` and another way by `narrow`, their meaning
depends on the reader's tabs, and the text is refused.

Under "lark" tabs both columns are the same: a tab counts `tab_length` columns wherever it stands,
and a form feed counts nothing.

Source: CPython, Parser/lexer/lexer.c (`col` and `altcol`); Lark 1.3, `lark.indenter.Indenter`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Tabs = Literal["lark", "consistent"]

TAB_STOP = 8
"""Columns from one tab stop to the next, and the default length of a tab."""

LINE_FEED, TAB, FORM_FEED, SPACE = 10, 9, 12, 32

MOST_COLUMN = 2**31 - 1
"""A line whose wide column is at least this is refused.

CPython's columns are C ints, Lark's are unbounded.
"""


class Column(NamedTuple):
    """How far in a line begins, counted in two ways.

    wide : columns, with tabs counted as `Tabs` says.
    narrow : columns, with tabs of one column; under "lark" tabs the same as `wide`.
    """

    wide: int = 0
    narrow: int = 0

    def step(self, byte: int, tabs: Tabs, tab_length: int) -> Column:
        """The column after one more byte of a newline lexeme.

        byte : 0 .. 255. A byte that is not one of `column_bytes` leaves the column as it is.
        tabs, tab_length : see `Layout`.
        """
        if byte == LINE_FEED or (byte == FORM_FEED and tabs == "consistent"):
            return FIRST_COLUMN
        if byte == SPACE:
            return Column(self.wide + 1, self.narrow + 1)
        if byte == TAB and tabs == "consistent":
            return Column((self.wide // TAB_STOP + 1) * TAB_STOP, self.narrow + 1)
        return Column(self.wide + tab_length, self.narrow + tab_length) if byte == TAB else self


FIRST_COLUMN = Column()


def column_bytes(tabs: Tabs) -> bytes:
    """The bytes that change a column: line feed, blank, tab, and for "consistent" form feed."""
    return bytes([LINE_FEED, SPACE, TAB] + [FORM_FEED] * (tabs == "consistent"))


def column_after(text: bytes, column: Column, tabs: Tabs, tab_length: int) -> Column:
    """The column after some bytes of a newline lexeme.

    text : the next bytes of the lexeme.
    column : the column before them.
    tabs, tab_length : see `Layout`.

    >>> column_after(b"\\n  \\t ", FIRST_COLUMN, "consistent", 8)
    Column(wide=9, narrow=4)
    >>> column_after(b"\\n  \\t ", FIRST_COLUMN, "lark", 8)
    Column(wide=11, narrow=11)
    """
    for byte in text:
        column = column.step(byte, tabs, tab_length)
    return column


def compare(column: Column, opened: Column) -> int | None:
    """1 if a line at `column` is further in than `opened`, 0 if equal, -1 if less far in.

    The wide columns decide. None means that the text is refused: the wide columns are equal and the
    narrow ones are not; or the line is further in by the wide column only; or its wide column has
    reached MOST_COLUMN. After -1 the caller closes the column and compares with the one before: a
    line must begin at a column that is still open.

    column : where the line begins.
    opened : an open column.

    Example: `compare(Column(8, 1), Column(4, 4))` is None: one tab against four blanks.
    """
    if column.wide >= MOST_COLUMN:
        return None
    if column.wide < opened.wide:
        return -1
    if column.wide == opened.wide:
        return 0 if column.narrow == opened.narrow else None
    return 1 if column.narrow > opened.narrow else None
