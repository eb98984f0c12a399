"""Columns of lines: how far in a line begins, and how two lines compare.

A line has two columns, as in CPython. In `wide` a tab leads to the next multiple of 8, in `narrow` it counts one column; a blank counts one
in both, a form feed leads back to 0 in both. Where lines are as far in by one and not by the other, what is meant depends on who reads it,
and the text is refused. As Lark has it, both are alike: a tab counts `tab_length` columns wherever it stands, a form feed none.

Source: CPython, Parser/lexer/lexer.c (`col` and `altcol`); Lark 1.3, `lark.indenter.Indenter`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Tabs = Literal["lark", "consistent"]

TAB_STOP = 8

LINE_FEED, TAB, FORM_FEED, SPACE = 10, 9, 12, 32

MOST_COLUMN = 2**31 - 1
"""A line that begins so far in, or further, is refused. (CPython's columns are C ints, Lark's have no end.)"""


class Column(NamedTuple):
    """How far in a line begins, with tabs that lead to multiples of 8 and with tabs of one column."""

    wide: int = 0
    narrow: int = 0

    def step(self, byte: int, tabs: Tabs, tab_length: int) -> Column:
        """The column after one more byte of a newline lexeme."""
        if byte == LINE_FEED or (byte == FORM_FEED and tabs == "consistent"):
            return FIRST_COLUMN
        if byte == SPACE:
            return Column(self.wide + 1, self.narrow + 1)
        if byte == TAB and tabs == "consistent":
            return Column((self.wide // TAB_STOP + 1) * TAB_STOP, self.narrow + 1)
        return Column(self.wide + tab_length, self.narrow + tab_length) if byte == TAB else self


FIRST_COLUMN = Column()


def column_bytes(tabs: Tabs) -> bytes:
    """The bytes that move a column."""
    return bytes([LINE_FEED, SPACE, TAB] + [FORM_FEED] * (tabs == "consistent"))


def column_after(text: bytes, column: Column, tabs: Tabs, tab_length: int) -> Column:
    """The column after some bytes of a newline lexeme.

    >>> column_after(b"\\n  \\t ", FIRST_COLUMN, "consistent", 8), column_after(b"\\n  \\t ", FIRST_COLUMN, "lark", 8)
    (Column(wide=9, narrow=4), Column(wide=11, narrow=11))
    """
    for byte in text:
        column = column.step(byte, tabs, tab_length)
    return column


def compare(column: Column, opened: Column) -> int | None:
    """1 where a line is further in than an open column, 0 where they are equal, -1 where it is less far in. None: refused.

    A line that is less far in still has to be at another open column: it has to come to 0 with one of them.
    """
    if column.wide >= MOST_COLUMN:
        return None
    if column.wide < opened.wide:
        return -1
    if column.wide == opened.wide:
        return 0 if column.narrow == opened.narrow else None
    return 1 if column.narrow > opened.narrow else None
