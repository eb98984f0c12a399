"""What the lexer makes of a middle that is free and of the suffix behind it: a graph of terminals.

A *free* node: any bytes come, then perhaps the suffix. A *fixed* node reads the suffix from some
byte on. Neither feeds the parser as it stands: in a mode, which the parser's state decides where a
lexeme begins, each is *resolved* to the terminals that may be emitted first and what comes behind
each. A lexeme that goes on from the middle into the suffix needs no case of its own: it is what is
emitted first.

PERF: resolved nodes are told apart by what they feed alone, whatever states they come from: of the
states of a lexer hardly two or three kinds remain. Without it, the parser's part has six times as
many entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeAlias

from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.lexing.encoding import DEAD, RESTART
from maskwright.decoding.endings.ending_lexer import EndingLexer
from maskwright.decoding.endings.ending_parser import EndingParser
from maskwright.decoding.infill.blocks import ANYWHERE, Cells, Guards, Place, Wanted

Position: TypeAlias = tuple[int, bytes]
"""A lexer state, and bytes that are read again before all others. State 0 without such bytes, and
behind each lexeme: the mode's start."""
Starts: TypeAlias = frozenset[tuple[int, bytes, int]]
"""Positions, each with what it costs beyond the cheapest."""
Feeds: TypeAlias = dict[int, list[tuple[int, int]]]
"""By column: the nodes behind it, and their costs. By -1 - guard: those that may stand for the
node itself on a stack that has what the guard asks for."""

NOWHERE = -1
"""The node at which nothing may come."""


class Closure(NamedTuple):
    """What free bytes lead to from some positions in one mode.

    emits : terminals, the least bytes up to their emission, and where the lexer is then.
    ends : positions in which the free bytes may end before anything is emitted, and their costs.
    """

    emits: tuple[tuple[tuple[int, ...], int, Starts], ...]
    ends: tuple[tuple[Position, int], ...]


class FreeBytes:
    """Closures of positions under a store's lexer. They know no suffix, and are kept.

    is_weighted : whether bytes are counted; otherwise all costs are 0.
    """

    def __init__(self, lexer: EndingLexer, is_weighted: bool) -> None:
        self._lexer, self._cost = lexer, int(is_weighted)
        self._known: dict[tuple[Starts, int], Closure] = {}
        self._moves: dict[tuple[int, bytes, int], list[tuple[tuple[int, ...], Position, int]]] = {}

    def closure(self, starts: Starts, mode: int) -> Closure:
        """What free bytes lead to. mode : the state in which a lexeme begins."""
        found = self._known.get((starts, mode))
        if found is None:
            found = self._known[starts, mode] = self._closed(starts, mode)
        return found

    def _closed(self, starts: Starts, mode: int) -> Closure:
        costs: dict[Position, int] = {}
        emits: dict[tuple[int, ...], dict[Position, int]] = {}
        agenda = [(cost, state, tape) for state, tape, cost in starts]
        agenda.sort()
        while agenda:
            cost, state, tape = heappop(agenda)
            if (state, tape) in costs:
                continue
            costs[state, tape] = cost
            for outs, after, more in self._steps(state, tape, mode):
                if not outs:
                    if after not in costs:
                        heappush(agenda, (cost + more, *after))
                else:
                    ways = emits.setdefault(outs, {})
                    ways[after] = min(cost + more, ways.get(after, cost + more))
        found = []
        for outs, ways in sorted(emits.items()):
            least = min(ways.values())
            found.append((outs, least, frozenset((*after, cost - least) for after, cost in ways.items())))
        return Closure(tuple(found), tuple((each, cost) for each, cost in costs.items() if not each[1]))

    def _steps(self, state: int, tape: bytes, mode: int) -> list[tuple[tuple[int, ...], Position, int]]:
        """What one byte does: the terminals emitted, the position after it, and its cost."""
        key = state or mode, tape, mode
        found = self._moves.get(key)
        if found is None:
            lexer = self._lexer
            wanted = [(tape[0], 0)] if tape else [(byte, self._cost) for byte, _ in lexer.moves[key[0]]]
            steps = ((self.step(key[0], byte, tape[1:]), cost) for byte, cost in wanted)
            found = self._moves[key] = [(*step, cost) for step, cost in steps if step is not None]
        return found

    def step(self, state: int, byte: int, tape: bytes) -> tuple[tuple[int, ...], Position] | None:
        """The terminals that a byte emits, and the position after it; None if it is illegal.

        state : not that between lexemes, but the mode's. tape : what is to be read again behind it.
        """
        lexer = self._lexer
        klass = lexer.class_of[byte]
        after, outs = lexer.next_state[state][klass], lexer.outputs[lexer.output[state][klass]]
        if after == RESTART:
            tape = lexer.pending[state] + bytes((byte,)) + tape
            # BOUND: as the engine's, which only a table that no compiler wrote meets
            return (outs, (0, tape)) if len(tape) <= lexer.again else None
        return None if after == DEAD else (outs, (after, tape))


_Event: TypeAlias = tuple[tuple[int, ...], int, Place] | None
"""What given text emits first, the node behind it, and where a newline among it stands; None if it
cannot be read."""


class Graph:
    """The terminals of texts with a hole: free bytes, given bytes, and so on, then the end.

    pieces : the given bytes, each behind free ones. The last one ends the text.
    free : for each piece the closures of the bytes before it.

    Nodes are numbers, made as they are asked for. `feeds[n]` is of a resolved one.
    """

    def __init__(self, parser: EndingParser, cells: Cells, free: Sequence[FreeBytes], pieces: Sequence[bytes]) -> None:
        self._parser, self._free, self._pieces = parser, free, pieces
        self.cells, self.guards = cells, Guards(cells)
        self._lexer = parser.lexer
        self.start_of: list[int] = [self._lexer.modes[mode] for mode in parser.mode_of]
        """The lexer state in which a lexeme begins, by the LR state on top."""
        self.feeds: list[Feeds | None] = []
        self.end_column = parser.n_columns - 1
        self._number: dict[object, int] = {}
        self._keys: list[Any] = []
        self._resolved: dict[tuple[int, int], int] = {}
        self._events: dict[tuple[int, int, int, Place, int], _Event] = {}
        self.block_of: dict[int, Place] = {}
        """The column of the block that an indent before a node opens."""
        self._ends: Feeds = {self.end_column: [(NOWHERE, 0)]}
        self._end = self._node(("end",), self._ends)
        if cells.layout is not None:
            self._ends[parser.dedent] = [(self._end, 0)]

    def _node(self, key: object, feeds: Feeds | None = None) -> int:
        found = self._number.get(key)
        if found is None:
            found = len(self._number)
            self.feeds[found:], self._keys[found:] = [feeds], [key]
            self._number[key] = found  # last, since an interrupt may come between
        return found

    def free(self, state: int, piece: int = 0) -> int:
        """The node of a middle, or of free bytes before another piece, in a lexer state."""
        return self._node(("free", piece, frozenset(((state, b"", 0),))))

    def given(self, state: int, column: Column = FIRST_COLUMN) -> int:
        """The node of a middle that ends in a lexer state. column : of the newline under way."""
        return self._node(("given", 0, state, b"", 0, column))

    def resolve(self, node: int, cell: int) -> int:
        """What a node feeds where this LR state is on top; NOWHERE if nothing may come."""
        if node < 0 or self.feeds[node] is not None:
            return node
        mode = self.start_of[self.cells.state[cell]]
        found = self._resolved.get((node, mode))
        if found is None:
            kind, piece, *place = self._keys[node]
            feeds: dict[tuple[int, int], int] = {}
            if kind == "free":
                self._add_free(feeds, piece, place[0], mode, 0)
            else:
                state, tape, at, column = place
                self._add_event(feeds, self._event(piece, state, tape, at, column, mode), mode, 0)
            found = self._resolved[node, mode] = self._fed(feeds)
        return found

    def _fed(self, feeds: dict[tuple[int, int], int]) -> int:
        """The node that feeds this: by column and node behind it, the cost."""
        if not feeds:
            return NOWHERE
        by_column: Feeds = {}
        for (column, node), cost in feeds.items():
            by_column.setdefault(column, []).append((node, cost))
        return self._node(frozenset(feeds.items()), by_column)

    def _add(
        self, feeds: dict[tuple[int, int], int], outs: tuple[int, ...], then: int, cost: int, place: Place
    ) -> None:
        """Let terminals come first, then a node. place : where a newline among them stands."""
        if min(self._parser.column_of[terminal] for terminal in outs) < 0 or then == NOWHERE:
            return
        for terminal in reversed(outs[1:]):
            then = self._fed(dict.fromkeys(self._read(terminal, then, place), 0))
        for key in self._read(outs[0], then, place):
            feeds[key] = min(cost, feeds.get(key, cost))

    def _read(self, terminal: int, then: int, place: Place) -> list[tuple[int, int]]:
        """The columns that a terminal feeds, or guards, and the nodes behind."""
        column, layout = self._parser.column_of[terminal], self.cells.layout
        if layout is None or terminal != layout.newline:
            return [(column, then)]
        # inside brackets it is dropped
        return [(column, self._line(place, then, True)), (-1 - self.guards.of(n_open=1), then)]

    def _line(self, place: Place, then: int, may_indent: bool) -> int:
        """The node at which a line's column is compared with those of the open blocks.

        A dedent needs no guard: the block that the line goes on is further out than those it ends.
        """
        key = "line", place, then, may_indent
        if key in self._number:
            return self._number[key]
        parser, of = self._parser, self.guards.of
        same = of(Wanted(same=place)) if isinstance(place, Column) else of(Wanted(behind=place))
        feeds: Feeds = {-1 - same: [(then, 0)]}
        found = self._node(key, feeds)
        feeds[parser.dedent] = [(self._line(place, then, False) if may_indent else found, 0)]
        if may_indent and (isinstance(place, bytes) or min(place) > 0):
            inner = self._node(("block", place, then), {-1: [(then, 0)]})
            self.block_of[inner] = place
            opens = self._node(("indent", place, then), {parser.indent: [(inner, 0)]})
            around = of(Wanted(Column(place.wide - 1, place.narrow - 1))) if isinstance(place, Column) else 0
            feeds.setdefault(-1 - around, []).append((opens, 0))
        return found

    def _add_free(self, feeds: dict[tuple[int, int], int], piece: int, starts: Starts, mode: int, cost: int) -> None:
        """Let free bytes come, then a piece."""
        found = self._free[piece].closure(starts, mode)
        for outs, more, after in found.emits:
            self._add(feeds, outs, self._node(("free", piece, after)), cost + more, ANYWHERE)
        least: dict[_Event, int] = {}
        for (state, _), more in found.ends:
            place = ANYWHERE if self._is_line(state) else FIRST_COLUMN
            event = self._event(piece, state, b"", 0, place, mode)
            least[event] = min(more, least.get(event, more))
        for event, more in least.items():
            self._add_event(feeds, event, mode, cost + more)

    def _add_event(self, feeds: dict[tuple[int, int], int], event: _Event, mode: int, cost: int) -> None:
        """Let come what a piece emits first."""
        if event is None:
            return
        outs, then, column = event
        if outs:
            self._add(feeds, outs, then, cost, column)
        elif then == self._end:
            for each, ((node, _),) in self._ends.items():
                feeds[each, node] = min(cost, feeds.get((each, node), cost))
        else:
            _, piece, starts = self._keys[then]
            self._add_free(feeds, piece, starts, mode, cost)

    def _is_line(self, state: int) -> bool:
        """Whether the layout's newline may be under way."""
        return self.cells.layout is not None and self._lexer.is_newline[state]

    def _event(self, piece: int, state: int, tape: bytes, at: int, place: Place, mode: int) -> _Event:
        """What given text emits first, and the node behind it; None if it cannot be read.

        Nothing is emitted before the node of the end, or a free one.

        PERF: all states that run together share what comes behind. So it is kept on the way.
        """
        way = []
        found = None
        for here, again, byte, there, step in self._run(piece, state, tape, at, place, mode):
            if step is not None:
                found = step
                break
            if not again:
                key = piece, here, byte, there, mode
                if key in self._events:
                    found = self._events[key]
                    break
                way.append(key)
        for key in way:
            self._events[key] = found
        return found

    def _run(
        self, piece: int, state: int, tape: bytes, at: int, place: Place, mode: int
    ) -> Iterator[tuple[int, bytes, int, Place, _Event]]:
        """The positions on the way to the first emission; with the last one the emission."""
        lexer, text = self._lexer, self._pieces[piece]
        # BOUND: as the engine's, which only a table that no compiler wrote meets
        left = most = 1 + lexer.again * (lexer.again + 1)
        while left:
            yield state, tape, at, place, None
            left -= 1
            outs: tuple[int, ...] = ()
            before = place
            if tape or at < len(text):
                if tape:
                    byte, tape = tape[0], tape[1:]
                else:
                    byte, at, left = text[at], at + 1, most
                step = self._free[piece].step(state or mode, byte, tape)
                if step is None:
                    return
                outs, (state, tape) = step
                place = self.cells.step(place, byte) if self._is_line(state) else FIRST_COLUMN
            elif piece + 1 < len(self._pieces):
                yield state, tape, at, place, ((), self.free(state, piece + 1), place)
                return
            elif lexer.end_output[state] == RESTART:
                fallback = lexer.fallback[state]
                outs, tape, state = lexer.outputs[fallback] if fallback >= 0 else (), lexer.pending[state], 0
            else:
                if lexer.end_output[state] >= 0:
                    yield state, tape, at, place, (lexer.outputs[lexer.end_output[state]], self._end, FIRST_COLUMN)
                return
            if outs:
                # where no newline comes it is all one where it would stand
                has_line = self.cells.layout is not None and self.cells.layout.newline in outs
                there = self._node(("given", piece, state, tape, at, place))
                yield state, tape, at, place, (outs, there, before if has_line else FIRST_COLUMN)
                return
