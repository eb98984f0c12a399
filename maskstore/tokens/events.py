"""The symbols of the sequences in a mask store: terminals, and events of newlines.

Whether a newline is followed by an indent, a dedent or nothing depends on its column. Two tokens
that emit the same terminals may leave a newline at different columns. So under a layout a sequence
has two kinds of symbols beside the terminals that begin in the token:

- "newline_at": a newline that begins and ends in the token ended after this move;
- "leave": the newline under way before the token ends after this move. It is always the first
  symbol.

A *move* is what a piece of a newline does to the column before it. A newline that begins in the
token and goes on past its end is the plain terminal.

The walk of longest-match lexing (`token_walk`) has only the first kind of event, for each newline
that ends in the token, wherever it began.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    """A function from columns to columns, in normal form.

    stop : which kind of function it is.
    wide, narrow : columns that are added, or the columns themselves, by `stop`.

    - PLAIN: `wide` and `narrow` are added to the two columns.
    - 0 to 7: the wide column grows by `stop`, then to the next multiple of 8 by a tab, then by
      `wide`. The narrow column grows by `narrow`.
    - ABSOLUTE: the piece has a line feed. The columns are `wide` and `narrow`, counted from it.
    - RESET: the piece has a form feed but no line feed. The columns are counted from the form feed.

    >>> layout = Layout(0, 1, 2, (), tabs="consistent")
    >>> move_of(layout, b" \\t"), move_of(layout, b" " * 9 + b"\\t")
    (Move(stop=1, wide=0, narrow=2), Move(stop=1, wide=8, narrow=10))
    >>> move_of(layout, b" \\t ").after(Column(7, 7))
    Column(wide=17, narrow=10)
    """

    stop: int = PLAIN
    wide: int = 0
    narrow: int = 0

    def after(self, column: Column) -> Column:
        """The column after a piece with this move. column : the column before it."""
        if self.stop <= RESET:
            return Column(self.wide, self.narrow)
        wide = column.wide
        if self.stop >= 0:
            wide = ((wide + self.stop) // TAB_STOP + 1) * TAB_STOP
        return Column(wide + self.wide, column.narrow + self.narrow)

    def then(self, byte: int, layout: Layout) -> Move:
        """The move of the piece with one more byte. byte : 0 .. 255."""
        if byte == LINE_FEED:
            return Move(ABSOLUTE)
        if layout.tabs == "consistent":
            if byte == FORM_FEED:
                return Move(min(self.stop, RESET))
            if byte == TAB and self.stop == PLAIN:
                # eight blanks before the tab do the same as eight after it
                return Move(self.wide % TAB_STOP, self.wide // TAB_STOP * TAB_STOP, self.narrow + 1)
        return Move(self.stop, *Column(self.wide, self.narrow).step(byte, layout.tabs, layout.tab_length))


def move_of(layout: Layout, piece: bytes) -> Move:
    """The move of a piece of a newline."""
    move = Move()
    for byte in piece:
        move = move.then(byte, layout)
    return move


class Moves:
    """Numbers for moves. Number 0 is `Move()`, which changes no column.

    Then come the moves of all beginnings of some tokens, then others when they are asked for.

    layout : the grammar's layout. None: nothing moves.
    members : the moves by number.
    """

    def __init__(self, layout: Layout | None, tokens: Iterable[bytes] = ()) -> None:
        """Number the moves of all beginnings of some tokens.

        layout : the grammar's layout, or None.
        tokens : the bytes of the tokens.
        """
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
        """The number of a move, a new one if it has none yet."""
        found = self._number.setdefault(move, len(self.members))
        if found == len(self.members):
            self.members.append(move)
        return found

    def find(self, move: Move) -> int:
        """The number of a move, or -1 if it has none yet."""
        return self._number.get(move, -1)

    def step(self, number: int, byte: int) -> int:
        """The number of the move with one more byte. Without a layout it is 0."""
        if self.layout is None:
            return 0
        if (number, byte) not in self._next:
            self._next[number, byte] = self.number(self.members[number].then(byte, self.layout))
        return self._next[number, byte]

    def table(self) -> npt.NDArray[np.int32]:
        """`step` for all bytes up to the blank: (n_moves, 33) int32. Other bytes move nothing.

        -1 stands for moves with no number because no token begins so.
        """
        table = np.repeat(np.arange(len(self.members), dtype=np.int32)[:, None], SPACE + 1, axis=1)
        if self.layout:
            table[:, [LINE_FEED, SPACE, TAB, FORM_FEED]] = -1
        for (number, byte), after in self._next.items():
            table[number, byte] = after
        return table


@dataclass(frozen=True, slots=True)
class EventCodes:
    """Numbers for symbols: terminals keep theirs, and two numbers follow for each move.

    >>> EventCodes(n_terminals=10).decode(15)
    ('leave', 2)
    """

    n_terminals: int
    moves: Moves = field(default_factory=lambda: Moves(None))

    @property
    def n_symbols(self) -> int:
        """How many symbols there are: terminals, and the events of the moves known so far."""
        return self.n_terminals + (2 * len(self.moves) if self.moves.layout else 0)

    def newline_at(self, move: int) -> int:
        """The symbol of a newline that begins and ends in the token, after this move."""
        return self.n_terminals + 2 * move

    def leave(self, move: int) -> int:
        """The symbol of a newline under way before the token that ends in it, after this move."""
        return self.n_terminals + 2 * move + 1

    def decode(self, symbol: int) -> tuple[Kind, int]:
        """The kind of a symbol, and the number of its terminal or move."""
        if symbol < self.n_terminals:
            return "terminal", symbol
        move, is_leave = divmod(symbol - self.n_terminals, 2)
        return "leave" if is_leave else "newline_at", move


def least_alike(
    column_of: Sequence[int], bracket: Mapping[int, int], newline: int, may_follow: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int32]:
    """For each terminal the least one that neither the parser nor the lexer's modes tell from it.

    It stands for all of them in sequences. A grammar with thousands of keywords that may stand in
    the same places has few sequences then.

    column_of : the parser's column of each terminal.
    bracket, newline : the layout's, as of `Requirements`.
    may_follow : (n_terminals, n_modes) bool; `Modes.may_follow`.

    Returns (n_terminals,) int32.
    """
    number: dict[tuple[int, int, bool, bytes], int] = {}
    found = []
    for terminal, column in enumerate(column_of):
        facts = column, bracket.get(terminal, 0), terminal == newline, may_follow[terminal].tobytes()
        found.append(number.setdefault(facts, terminal))
    return np.array(found, np.int32)
