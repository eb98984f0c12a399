"""The lexer's steps from the definition: what bytes make it emit, from any state, parser unknown.

An *event* is an integer. Up from 0 it is a column and what the terminal does to brackets
(`column_of`, `bracket_of`), or a mode that the next lexeme is read in (`Reader.mark`). Below 0 it
is a newline of the layout that ended after a move (`Reader.move_of`). Where the parser chooses the
mode of a lexeme, there is one outcome for each mode.
"""

from __future__ import annotations

from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.maskstore.table.schema import LARK_TABS
from maskwright.maskstore.verify.trusted import Lexer

DEAD, RESTART = -1, -2
"""In `next_state`: the text is not legal; the lexer backs up."""

LINE_FEED, TAB, FORM_FEED, BLANK = b"\n\t\f "
ADDED, COUNTED = -1, -3
"""A move adds columns to those before it; or counts them from a line feed or form feed."""
STOP = 8
"""Columns from one tab stop to the next."""

MOST_OUTCOMES = 1 << 16
"""Most ways to read one byte, bytes read anew included."""


class Move(NamedTuple):
    """What a piece of a newline does to the column before it, as in `schema.LINE_BREAKS`."""

    kind: int = ADDED
    wide: int = 0
    narrow: int = 0


class Outcome(NamedTuple):
    """One way to read bytes: the events, the lexer state after them, and the move's number."""

    events: tuple[int, ...]
    state: int
    move: int


def column_of(event: int) -> int:
    """The column of an event up from 0; from the parser's `n_columns` on it is a mode's."""
    return event >> 2


def bracket_of(event: int) -> int:
    """1 for an opening bracket of the layout, -1 for a closing one, else 0."""
    return (event & 3) - 1


class Reader:
    """A lexer that reads bytes, and numbers moves as it meets them. Move 0 changes nothing."""

    def __init__(self, lexer: Lexer, n_columns: int) -> None:
        self.lexer = lexer
        self.n_columns = n_columns
        self.n_modes = len(lexer.mode_state)
        self.moves = [Move()]
        self._move_number = {Move(): 0}
        self._stepped: dict[tuple[int, int], int] = {}
        self._read: dict[tuple[int, int, int], tuple[Outcome, ...]] = {}

    def mark(self, mode: int) -> int:
        """The event that asks for a mode."""
        return (self.n_columns + mode) << 2 | 1

    def move_of(self, event: int) -> Move:
        """The move of a newline, an event below 0."""
        return self.moves[-1 - event]

    def byte_classes(self) -> list[int]:
        """For each byte a number. Bytes of one number do the same everywhere."""
        number: dict[tuple[int, int], int] = {}
        special = (LINE_FEED, TAB, FORM_FEED, BLANK) if any(self.lexer.is_newline) else ()
        return [
            number.setdefault((self.lexer.byte_class[byte], byte if byte in special else -1), len(number))
            for byte in range(256)
        ]

    def step_move(self, number: int, byte: int) -> int:
        """The number of a move with one more byte."""
        key = number, byte
        if key not in self._stepped:
            move = self._moved(self.moves[number], byte)
            found = self._stepped[key] = self._move_number.setdefault(move, len(self.moves))
            if found == len(self.moves):
                self.moves.append(move)
        return self._stepped[key]

    def _moved(self, move: Move, byte: int) -> Move:
        kind, wide, narrow = move
        if byte == LINE_FEED:
            return Move(COUNTED)
        if byte == BLANK:
            return Move(kind, wide + 1, narrow + 1)
        if self.lexer.tabs == LARK_TABS:
            tab = self.lexer.tab_length if byte == TAB else 0
            return Move(kind, wide + tab, narrow + tab)
        if byte == FORM_FEED:
            return Move(COUNTED)
        if byte != TAB:
            return move
        if kind == ADDED:
            # blanks and then a tab: the stop, and how many stops of eight the blanks pass before it
            return Move(wide % STOP, wide // STOP * STOP, narrow + 1)
        return Move(kind, (wide // STOP + 1) * STOP, narrow + 1)

    def events_of(self, terminals: list[int] | tuple[int, ...], move: int) -> tuple[int, ...] | None:
        """The events of terminals; None if no parser reads them. move : of newlines."""
        lexer = self.lexer
        found = []
        for terminal in terminals:
            if terminal == lexer.newline:
                found.append(-1 - move)
            elif lexer.column[terminal] < 0:
                return None
            else:
                found.append(lexer.column[terminal] << 2 | (lexer.bracket[terminal] + 1))
        return tuple(found)

    def read(self, state: int, move: int, byte: int) -> tuple[Outcome, ...]:
        """All ways to read one byte."""
        key = state, move, byte
        if key not in self._read:
            self._read[key] = self._read_bytes(Outcome((), state, move), bytes([byte]))
        return self._read[key]

    def _read_bytes(self, begin: Outcome, data: bytes) -> tuple[Outcome, ...]:
        lexer = self.lexer
        found: dict[Outcome, None] = {}
        agenda = [(begin, data, 0)]
        n = 0
        while agenda:
            n += 1
            if n > MOST_OUTCOMES:
                raise LimitError("a byte can be read in too many ways: nothing was decided")
            (events, state, move), todo, restarts = agenda.pop()
            if not todo:
                found[Outcome(events, state, move)] = None
                continue
            for started, at in self._starts(events, state):
                klass = lexer.byte_class[todo[0]]
                after = lexer.next_state[at][klass]
                emitted = self.events_of(lexer.outputs[lexer.output[at][klass]], move)
                if after == DEAD or emitted is None:
                    continue
                if after == RESTART:
                    if restarts <= lexer.again:
                        agenda.append((Outcome(started + emitted, 0, move), lexer.pending[at] + todo, restarts + 1))
                    continue
                moved = self.step_move(move, todo[0]) if lexer.is_newline[after] else move
                agenda.append((Outcome(started + emitted, after, moved), todo[1:], restarts))
        return tuple(found)

    def _starts(self, events: tuple[int, ...], state: int) -> list[tuple[tuple[int, ...], int]]:
        """Where a lexer reads on: the events with the mode that is asked for, and the state."""
        if state != 0 or self.n_modes == 1:
            return [(events, state)]
        last = column_of(events[-1]) - self.n_columns if events and events[-1] >= 0 else -1
        if last >= 0:
            return [(events, self.lexer.mode_state[last])]
        return [((*events, self.mark(mode)), begin) for mode, begin in enumerate(self.lexer.mode_state)]

    def endings(self, state: int, move: int) -> list[tuple[tuple[int, ...], int]]:
        """What a lexeme under way may become: events, and then a code as in `schema.ENDINGS`."""
        lexer = self.lexer
        found: dict[tuple[tuple[int, ...], int], None] = {}
        agenda = [(Outcome((), state, move), 0)]
        while agenda:
            (events, at, moved), backed_up = agenda.pop()
            for terminals, code in lexer.endings[at]:
                more = self.events_of(terminals, moved)
                if more is not None:
                    found[events + more, code] = None
            if self.n_modes > 1 and lexer.pending[at] and backed_up < lexer.again:
                agenda += [(each, backed_up + 1) for each in self._backed_up(Outcome(events, at, moved))]
        return list(found)

    def ends(self, state: int) -> list[tuple[int, ...]]:
        """The events by which the lexer ends a text. A newline among them has move 0."""
        lexer = self.lexer
        found: dict[tuple[int, ...], None] = {}
        agenda = [(Outcome((), state, 0), 0)]
        while agenda:
            (events, at, _), backed_up = agenda.pop()
            output = lexer.end_output[at]
            if output == RESTART and backed_up < lexer.again:
                agenda += [(each, backed_up + 1) for each in self._backed_up(Outcome(events, at, 0))]
            elif output >= 0:
                more = self.events_of(lexer.outputs[output], 0)
                if more is not None:
                    found[events + more] = None
        return list(found)

    def _backed_up(self, place: Outcome) -> tuple[Outcome, ...]:
        """What becomes of a lexer that ends the lexeme under way at its last possible end."""
        emitted = self.events_of(self.lexer.fallback[place.state], place.move)
        if emitted is None:
            return ()
        return self._read_bytes(Outcome(place.events + emitted, 0, place.move), self.lexer.pending[place.state])
