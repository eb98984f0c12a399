"""The symbols of the sequences in a mask store: terminals, and what indentation needs to know about newlines.

Whether a newline is followed by an indent, a dedent or nothing depends on its column, and two tokens that spell the same terminals may
leave a newline at different columns. So for a grammar with layout a sequence holds, beside terminals that begin in the token,

- "newline that ended after this move", where the newline terminal begins and ends in the token;
- first of all, "the newline under way ends after this move", where the token leaves a newline.

A *move* is what a piece of a newline does to the column before it. A newline that has begun and goes on past the token is the plain
terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.columns import FORM_FEED, LINE_FEED, SPACE, TAB, TAB_STOP, Column
from maskwright.analysis.grammar.grammar import Layout

Kind = Literal["terminal", "newline_at", "leave"]

PLAIN, RESET, ABSOLUTE = -1, -2, -3

_OTHERS = bytes(set(range(256)) - {LINE_FEED, SPACE, TAB, FORM_FEED})


class Move(NamedTuple):
    """A function of columns, in its one form.

    stop : PLAIN: both columns grow by `wide` and `narrow`. 0 to 7: after so many blanks comes a tab, which leads to a multiple of 8, and
        `wide` more follow; `narrow` grows as before. ABSOLUTE: the piece holds a line feed, and both columns are as counted from it;
        RESET: as counted from a form feed, and there is no line feed.

    >>> layout = Layout(0, 1, 2, (), tabs="consistent")
    >>> move_of(layout, b" \\t"), move_of(layout, b" " * 9 + b"\\t"), move_of(layout, b" \\t ").after(Column(7, 7))
    (Move(stop=1, wide=0, narrow=2), Move(stop=1, wide=8, narrow=10), Column(wide=17, narrow=10))
    """

    stop: int = PLAIN
    wide: int = 0
    narrow: int = 0

    def after(self, column: Column) -> Column:
        if self.stop <= RESET:
            return Column(self.wide, self.narrow)
        wide = column.wide
        if self.stop >= 0:
            wide = ((wide + self.stop) // TAB_STOP + 1) * TAB_STOP
        return Column(wide + self.wide, column.narrow + self.narrow)

    def then(self, byte: int, layout: Layout) -> Move:
        """The move of a piece with one more byte."""
        if byte == LINE_FEED:
            return Move(ABSOLUTE)
        if layout.tabs == "consistent":
            if byte == FORM_FEED:
                return Move(min(self.stop, RESET))
            if byte == TAB and self.stop == PLAIN:
                # eight blanks before the tab are as good as eight behind it
                return Move(self.wide % TAB_STOP, self.wide // TAB_STOP * TAB_STOP, self.narrow + 1)
        return Move(self.stop, *Column(self.wide, self.narrow).step(byte, layout.tabs, layout.tab_length))


def move_of(layout: Layout, piece: bytes) -> Move:
    """The move of a piece of a newline."""
    move = Move()
    for byte in piece:
        move = move.then(byte, layout)
    return move


class Moves:
    """Numbers for moves: 0 for none at all, then those of all beginnings of some tokens, then others as they are asked for."""

    def __init__(self, layout: Layout | None, tokens: Iterable[bytes] = ()) -> None:
        self.layout = layout
        self.members: list[Move] = [Move()]
        self._number = {Move(): 0}
        self._next: dict[tuple[int, int], int] = {}
        if layout is not None:
            for piece in sorted({token.translate(None, _OTHERS) for token in tokens}):
                number = 0
                for byte in piece:
                    number = self.step(number, byte)

    def __len__(self) -> int:
        return len(self.members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moves) and (self.layout, self.members) == (other.layout, other.members)

    __hash__ = None  # type: ignore[assignment]

    def number(self, move: Move) -> int:
        found = self._number.setdefault(move, len(self.members))
        if found == len(self.members):
            self.members.append(move)
        return found

    def find(self, move: Move) -> int:
        """The number of a move; -1 if it has none yet."""
        return self._number.get(move, -1)

    def step(self, number: int, byte: int) -> int:
        """The number of a move with one more byte."""
        if self.layout is None:
            return 0
        if (number, byte) not in self._next:
            self._next[number, byte] = self.number(self.members[number].then(byte, self.layout))
        return self._next[number, byte]

    def table(self) -> npt.NDArray[np.int32]:
        """(n_moves, 33) int32: `step` for the bytes up to the blank; others move nothing. -1 for what no beginning of a token does."""
        table = np.full((len(self.members), SPACE + 1), -1, np.int32)
        moving = {LINE_FEED, SPACE, TAB, FORM_FEED} if self.layout else set()
        for byte in set(range(SPACE + 1)) - moving:
            table[:, byte] = np.arange(len(self.members))
        for (number, byte), after in self._next.items():
            table[number, byte] = after
        return table


@dataclass(frozen=True, slots=True)
class EventCodes:
    """Numbers for the symbols: terminals keep theirs, and two follow for each move.

    >>> EventCodes(n_terminals=10).decode(15)
    ('leave', 2)
    """

    n_terminals: int
    moves: Moves = field(default_factory=lambda: Moves(None))

    @property
    def n_symbols(self) -> int:
        """Terminals and the events of the moves that are known."""
        return self.n_terminals + (2 * len(self.moves) if self.moves.layout else 0)

    def newline_at(self, move: int) -> int:
        return self.n_terminals + 2 * move

    def leave(self, move: int) -> int:
        return self.n_terminals + 2 * move + 1

    def decode(self, symbol: int) -> tuple[Kind, int]:
        """What a symbol is, and the number of its terminal or move."""
        if symbol < self.n_terminals:
            return "terminal", symbol
        move, is_leave = divmod(symbol - self.n_terminals, 2)
        return "leave" if is_leave else "newline_at", move
