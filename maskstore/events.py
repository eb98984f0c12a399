"""The symbols of the sequences in a mask store: terminals, and what indentation needs to know about newlines.

Whether a newline is followed by an indent, a dedent or nothing depends on its column, and two tokens that spell the same terminals may
leave a newline at different columns. So for a grammar with layout a sequence holds, beside terminals that begin in the token,

- "newline that ended at column c", where the newline terminal begins and ends in the token;
- first of all, "the newline under way ends at column c" or "... ends k columns further on", where the token leaves a newline.

A newline that has begun and goes on past the token is the plain terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["terminal", "newline_at", "leave_at", "leave_after"]


@dataclass(frozen=True, slots=True)
class EventCodes:
    """Numbers for the symbols: terminals keep theirs, the others follow, in blocks of `n_columns`.

    >>> EventCodes(n_terminals=10, n_columns=4).decode(15)
    ('leave_at', 1)
    """

    n_terminals: int
    n_columns: int

    def newline_at(self, column: int) -> int:
        return self.n_terminals + column

    def leave_at(self, column: int) -> int:
        return self.n_terminals + self.n_columns + column

    def leave_after(self, columns: int) -> int:
        return self.n_terminals + 2 * self.n_columns + columns

    def decode(self, symbol: int) -> tuple[Kind, int]:
        """What a symbol is, and its terminal number or column."""
        if symbol < self.n_terminals:
            return "terminal", symbol
        kinds: tuple[Kind, Kind, Kind] = ("newline_at", "leave_at", "leave_after")
        block, column = divmod(symbol - self.n_terminals, self.n_columns)
        return kinds[block], column
