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

from maskwright.analysis.lexing.encoding import DEAD, RESTART
from maskwright.decoding.endings.ending_lexer import EndingLexer
from maskwright.decoding.endings.ending_parser import EndingParser

Position: TypeAlias = tuple[int, bytes]
"""A lexer state, and bytes that are read again before all others. State 0 without such bytes, and
behind each lexeme: the mode's start."""
Starts: TypeAlias = frozenset[tuple[int, bytes, int]]
"""Positions, each with what it costs beyond the cheapest."""
Feeds: TypeAlias = dict[int, list[tuple[int, int]]]
"""By column: the nodes behind it, and their costs."""

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


_Event: TypeAlias = tuple[tuple[int, ...], int] | None
"""What given text emits first, and the node behind it; None if it cannot be read."""


class Graph:
    """The terminals of texts with a hole: free bytes, given bytes, and so on, then the end.

    pieces : the given bytes, each behind free ones. The last one ends the text.
    free : for each piece the closures of the bytes before it.

    Nodes are numbers, made as they are asked for. `feeds[n]` is of a resolved one.
    """

    def __init__(self, parser: EndingParser, free: Sequence[FreeBytes], pieces: Sequence[bytes]) -> None:
        self._parser, self._free, self._pieces = parser, free, pieces
        self._lexer = parser.lexer
        self.start_of: list[int] = [self._lexer.modes[mode] for mode in parser.mode_of]
        """The lexer state in which a lexeme begins, by the LR state on top."""
        self.feeds: list[Feeds | None] = []
        self.end_column = parser.n_columns - 1
        self._number: dict[object, int] = {}
        self._keys: list[Any] = []
        self._resolved: dict[tuple[int, int], int] = {}
        self._events: dict[tuple[int, int, int, int], _Event] = {}
        self._end = self._node(("end",), {self.end_column: [(NOWHERE, 0)]})

    def _node(self, key: object, feeds: Feeds | None = None) -> int:
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self.feeds)
            self.feeds.append(feeds)
            self._keys.append(key)
        return found

    def free(self, state: int) -> int:
        """The node of a middle that goes on in a lexer state."""
        return self._free_node(0, frozenset(((state, b"", 0),)))

    def _free_node(self, piece: int, starts: Starts) -> int:
        return self._node(("free", piece, starts))

    def given(self, state: int) -> int:
        """The node of a middle that ends in a lexer state."""
        return self._node(("given", 0, state, b"", 0))

    def resolve(self, node: int, cell: int) -> int:
        """What a node feeds where this LR state is on top; NOWHERE if nothing may come."""
        if node < 0 or self.feeds[node] is not None:
            return node
        mode = self.start_of[cell]
        found = self._resolved.get((node, mode))
        if found is None:
            kind, piece, *place = self._keys[node]
            feeds: dict[tuple[int, int], int] = {}
            if kind == "free":
                self._add_free(feeds, piece, place[0], mode, 0)
            else:
                state, tape, at = place
                self._add_event(feeds, self._event(piece, state, tape, at, mode), mode, 0)
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

    def _add(self, feeds: dict[tuple[int, int], int], outs: tuple[int, ...], then: int, cost: int) -> None:
        """Let terminals come first, then a node."""
        columns = [self._parser.column_of[terminal] for terminal in outs]
        if min(columns) < 0 or then == NOWHERE:
            return
        for column in reversed(columns[1:]):
            then = self._node(frozenset({((column, then), 0)}), {column: [(then, 0)]})
        key = columns[0], then
        feeds[key] = min(cost, feeds.get(key, cost))

    def _add_free(self, feeds: dict[tuple[int, int], int], piece: int, starts: Starts, mode: int, cost: int) -> None:
        """Let free bytes come, then a piece."""
        found = self._free[piece].closure(starts, mode)
        for outs, more, after in found.emits:
            self._add(feeds, outs, self._free_node(piece, after), cost + more)
        least: dict[_Event, int] = {}
        for (state, _), more in found.ends:
            event = self._event(piece, state, b"", 0, mode)
            least[event] = min(more, least.get(event, more))
        for event, more in least.items():
            self._add_event(feeds, event, mode, cost + more)

    def _add_event(self, feeds: dict[tuple[int, int], int], event: _Event, mode: int, cost: int) -> None:
        """Let come what a piece emits first."""
        if event is None:
            return
        outs, then = event
        if outs:
            self._add(feeds, outs, then, cost)
        elif then == self._end:
            key = self.end_column, NOWHERE
            feeds[key] = min(cost, feeds.get(key, cost))
        else:
            _, piece, starts = self._keys[then]
            self._add_free(feeds, piece, starts, mode, cost)

    def _event(self, piece: int, state: int, tape: bytes, at: int, mode: int) -> _Event:
        """What given text emits first, and the node behind it; None if it cannot be read.

        Nothing is emitted before the node of the end, or a free one.

        PERF: all states that run together share what comes behind. So it is kept on the way.
        """
        way = []
        found = None
        for here, again, byte, step in self._run(piece, state, tape, at, mode):
            if step is not None:
                found = step
                break
            if not again:
                key = piece, here, byte, mode
                if key in self._events:
                    found = self._events[key]
                    break
                way.append(key)
        for key in way:
            self._events[key] = found
        return found

    def _run(self, piece: int, state: int, tape: bytes, at: int, mode: int) -> Iterator[tuple[int, bytes, int, _Event]]:
        """The positions on the way to the first emission; with the last one the emission."""
        lexer, text = self._lexer, self._pieces[piece]
        # BOUND: as the engine's, which only a table that no compiler wrote meets
        left = most = 1 + lexer.again * (lexer.again + 1)
        while left:
            yield state, tape, at, None
            left -= 1
            outs: tuple[int, ...] = ()
            if tape or at < len(text):
                if tape:
                    byte, tape = tape[0], tape[1:]
                else:
                    byte, at, left = text[at], at + 1, most
                step = self._free[piece].step(state or mode, byte, tape)
                if step is None:
                    return
                outs, (state, tape) = step
            elif piece + 1 < len(self._pieces):
                yield state, tape, at, ((), self._free_node(piece + 1, frozenset(((state, b"", 0),))))
                return
            elif lexer.end_output[state] == RESTART:
                fallback = lexer.fallback[state]
                outs, tape, state = lexer.outputs[fallback] if fallback >= 0 else (), lexer.pending[state], 0
            else:
                if lexer.end_output[state] >= 0:
                    yield state, tape, at, (lexer.outputs[lexer.end_output[state]], self._end)
                return
            if outs:
                yield state, tape, at, (outs, self._node(("given", piece, state, tape, at)))
                return
