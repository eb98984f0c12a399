"""The search for a shortest ending, byte by byte over the states of lexer, layout and parser, under a learnt lower bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from maskwright.analysis.errors import LimitError
from maskwright.analysis.lexing.transducer import RESTART
from maskwright.decoding import _kernels as engine
from maskwright.decoding._ending_kernels import COSTLY

if TYPE_CHECKING:
    from maskwright.decoding.texts import Texts
    from maskwright.maskstore.automaton_store import AutomatonStore
from maskwright.decoding.ending_lexer import EndingLexer
from maskwright.decoding.ending_parser import EndingParser, Frame, pop_frames
from maskwright.decoding.ending_spelling import PREFERRED, Spelling

MAX_KEPT = 200_000
"""Frames and search nodes that are kept from one call to the next."""
MAX_NODES = 3_000_000
MAX_READINGS = 50_000
"""Stacks beyond the first in all states looked at: how ambiguous a text may be."""


class Place:
    """Stacks, open indents' columns and the number of open brackets: all that a lexeme's end can change.

    values[u] : least bytes after lexeme u, if it comes next. bounds[q] : least bytes from lexer state q, and without the newline.
    """

    __slots__ = ("after", "bounds", "bounds_without", "depth", "frames", "indents", "number", "options", "values")

    def __init__(self, frames: tuple[Frame, ...], indents: tuple[int, ...], depth: int, number: int) -> None:
        self.frames = frames
        self.indents = indents
        self.depth = depth
        self.number = number
        self.after: dict[tuple[int, int], Place | None] = {}
        self.values: list[int] | None = None
        self.bounds: list[int] = []
        self.bounds_without: list[int] = []
        self.options: tuple[list[tuple[int, int]], int] | None = None


Node = tuple[Place, int, int, int]
"""Place, lexer state, column of the newline under way (0 if none is), state of the spelling."""
Key = tuple[int, int, int, int]
Move = tuple[int, int, Node | None]
"""A byte, a bound of what is left after it, and where it leads, or None if that is not made yet or illegal."""


def _key(node: Node) -> Key:
    place, state, column, spelt = node
    return place.number, state, column, spelt


class EndingSearch:
    """The search, with all that it has learnt about one store.

    spelling : if given, only endings that its tokens spell.
    """

    def __init__(self, store: AutomatonStore, spelling: Spelling | None) -> None:
        self.lexer = EndingLexer(store, PREFERRED if spelling is None else spelling.alphabet)
        self.parser = EndingParser(store, self.lexer)
        self.spelling = spelling
        self._name = store.grammar.name
        self._backs_up = np.array(self.lexer.backs_up)
        self._by_terminal = np.ascontiguousarray(self.lexer.least.T)
        self._text_columns = (1 << (self.parser.n_columns - 1)) - 1
        for column in (self.parser.indent, self.parser.dedent):
            if column >= 0 and all(self.lexer.width[t] >= COSTLY for t in self.parser.members[column]):
                self._text_columns &= ~(1 << column)
        self.forget()

    def forget(self) -> None:
        self._frames: dict[tuple[int, int, int], Frame] = {}
        self._places: dict[tuple[tuple[int, ...], tuple[int, ...], int], Place] = {}
        self._known: dict[Key, int] = {}
        self._children: dict[Key, list[Move]] = {}

    # --- states ---

    def start_of(self, texts: Texts, slot: int) -> Node:
        """The state of a text."""
        if len(self._frames) + len(self._children) + len(self._places) > MAX_KEPT:
            self.forget()
        memory, region = texts._memory, int(texts._regions[texts._slot(slot)])
        columns = texts._columns(slot)
        frames = [self._stack(states, columns) for states in texts._stacks(slot)]
        place = self._place(frames, tuple(columns), int(memory[region + engine.DEPTH]))
        state = int(memory[region + engine.LEXER])
        column = int(memory[region + engine.COLUMN]) if self.lexer.is_newline[state] else 0
        return place, state, column, 0

    def _stack(self, states: Sequence[int], columns: Sequence[int]) -> Frame:
        opened = self.parser.column_targets[self.parser.indent] if self.parser.has_levels else set()
        is_level = sum(state in opened for state in states) + 1 == len(columns)
        level = 0
        frame: Frame | None = None
        for state in states:
            level += is_level and state in opened
            frame = self._frame(state, frame, self._pay(columns[level]) if is_level else 0)
        assert frame is not None  # a stack has the start state
        return frame

    def _frame(self, state: int, below: Frame | None, pay: int) -> Frame:
        key = (state, -1 if below is None else below.number, pay)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = Frame(state, below, pay, len(self._frames))
        return found

    def _pay(self, column: int) -> int:
        if not self.parser.has_levels:
            return 0
        # what the least newline has beyond a line feed may be part of the indentation
        return max(0, self.lexer.indentation(column) - (self.lexer.width[self.parser.newline] - 1))

    def _place(self, frames: Iterable[Frame], indents: tuple[int, ...], depth: int) -> Place:
        members = {frame.number: frame for frame in frames}
        key = (tuple(sorted(members)), indents, depth)
        found = self._places.get(key)
        if found is None:
            found = Place(tuple(members[number] for number in key[0]), indents, depth, len(self._places))
            self._places[key] = found
        return found

    # --- the machine, as in `_kernels` ---

    def _actions(self, frames: Iterable[Frame], columns: int) -> Iterator[tuple[int, int, Frame]]:
        """What follows on some columns (bits): column, state and the stack to push it on; state -1 where the text is accepted."""
        parser = self.parser
        end = parser.n_columns - 1
        agenda = [(frame, columns) for frame in frames]
        done: dict[int, int] = {}
        while agenda:
            frame, wanted = agenda.pop()
            # readings of an ambiguous text meet again
            known = done.get(frame.number, 0)
            done[frame.number] = known | wanted
            wanted &= ~known
            state = frame.state
            rules = [(parser.default[state], wanted)]
            if parser.default[state] < 0:
                rules = parser.reduces[state]
                for column, target in parser.shifts[state]:
                    if wanted >> column & 1:
                        yield column, target, frame
                if parser.accepts[state] and wanted >> end & 1:
                    yield end, -1, frame
            for rule, before in rules:
                if wanted & before:
                    base = pop_frames(frame, parser.rule_length[rule])
                    if base is not None:
                        target = parser.goto[base.state][parser.rule_lhs[rule]]
                        if target >= 0:
                            agenda.append((self._frame(target, base, base.pay), wanted & before))

    def _shift(self, frames: Iterable[Frame], column: int, pay: int = -1) -> list[Frame]:
        """The stacks after a column. pay : of the block that an indent opens."""
        if column < 0:
            return []
        found = {}
        for _, target, below in self._actions(frames, 1 << column):
            frame = self._frame(target, below, below.pay if pay < 0 else pay)
            found[frame.number] = frame
        # the engine gives up where a text has more readings
        return list(found.values()) if len(found) <= engine.MAX_STACKS else []

    def _accepts(self, frames: Iterable[Frame]) -> bool:
        """Whether the text may end on one of these stacks."""
        return any(True for _ in self._actions(frames, 1 << (self.parser.n_columns - 1)))

    def _emit(self, place: Place, output: int, column: int) -> Place | None:
        """The place after emitted terminals; None if the parser does not take them."""
        parser = self.parser
        symbols = self.lexer.outputs[output]
        key = (output, column if parser.newline in symbols and not place.depth else -1)
        if key in place.after:
            return place.after[key]
        frames: Sequence[Frame] = place.frames
        indents, depth = place.indents, place.depth
        for symbol in symbols:
            if symbol == parser.newline and depth > 0:
                continue
            frames = self._shift(frames, parser.column_of[symbol])
            if symbol == parser.newline and parser.layout is not None:
                compare = parser.layout.compare
                if compare(column, indents[-1]) == 1:
                    frames = self._shift(frames, parser.indent, self._pay(column))
                    indents = (*indents, column)
                while compare(column, indents[-1]) == -1:
                    frames = self._shift(frames, parser.dedent)
                    indents = indents[:-1]
                if column != indents[-1]:
                    frames = []
            else:
                depth = max(0, depth + parser.depth_of[symbol])
            if not frames:
                break
        found = place.after[key] = self._place(frames, indents, depth) if frames else None
        return found

    def _begin(self, place: Place) -> int:
        """The lexer state in which a lexeme begins; -1 if the stacks disagree."""
        if len(self.lexer.modes) == 1:
            return 0
        modes = {self.lexer.modes[self.parser.mode_of[frame.state]] for frame in place.frames}
        return modes.pop() if len(modes) == 1 else -1

    def _read(self, place: Place, state: int, column: int, data: bytes) -> tuple[Place, int, int] | None:
        """After some bytes; None if they are illegal."""
        lexer = self.lexer
        waiting = list(reversed(data))
        while waiting:
            byte = waiting.pop()
            if state == 0:
                state = self._begin(place)
                if state < 0:
                    return None
            klass = lexer.class_of[byte]
            after, output = lexer.next_state[state][klass], lexer.output[state][klass]
            if after == -1:
                return None
            if output:
                emitted = self._emit(place, output, column)
                if emitted is None:
                    return None
                place = emitted
            if after == RESTART:
                waiting.append(byte)
                waiting += reversed(lexer.pending[state])
                after = 0
            if not lexer.is_newline[after] or byte == engine.LINE_FEED:
                column = 0
            elif byte == engine.SPACE:
                column += 1
            elif byte == engine.TAB:
                column += lexer.tab_length
            state = after
        return place, state, column

    def _is_end(self, node: Node) -> bool:
        """Whether the text may end."""
        place, state, column, spelt = node
        lexer, parser = self.lexer, self.parser
        if self.spelling is not None and not self.spelling.is_whole(spelt):
            return False
        while lexer.end_output[state] == RESTART:
            at: Place | None = place
            if lexer.fallback[state] >= 0:
                at = self._emit(place, lexer.outputs.index((lexer.fallback[state],)), column)
            read = None if at is None else self._read(at, 0, column, lexer.pending[state])
            if read is None:
                return False
            place, state, column = read
        if lexer.end_output[state] < 0:
            return False
        ended = self._emit(place, lexer.end_output[state], 0)
        if ended is None:
            return False
        frames: Sequence[Frame] = ended.frames
        for _ in ended.indents[1:]:
            frames = self._shift(frames, parser.dedent)
        return self._accepts(frames)

    # --- bounds ---

    def _estimate(self, place: Place) -> list[int]:
        """values of a place, and its bounds."""
        if place.values is not None:
            return place.values
        parser, lexer = self.parser, self.lexer
        values = [COSTLY] * (lexer.end + 1)
        self._readings -= len(place.frames) - 1
        if self._readings < 0:
            raise LimitError(
                f"grammar {self._name} is so ambiguous here that endings of the text have too many readings to follow; "
                "load the grammar with conflicts='shift', or make its rules less ambiguous"
            )
        for column, target, below in self._actions(place.frames, self._text_columns):
            known: dict[int, int] = {}
            for terminal in parser.members[column]:
                before = parser.new_line if terminal == parser.newline else parser.class_of[terminal]
                if lexer.width[terminal] < COSTLY and (terminal != parser.newline or not place.depth):
                    if before not in known:
                        known[before] = parser.value(target, below, below.pay, before)
                    values[terminal] = min(values[terminal], known[before])
        ending: Sequence[Frame] = place.frames
        for _ in place.indents[1:]:
            ending = self._shift(ending, parser.dedent)
        if self._accepts(ending):
            values[lexer.end] = 0
        if place.depth and parser.newline >= 0:
            rest = [lexer.width[t] + value for t, value in enumerate(values)]
            values[parser.newline] = max(0, min(rest))
        place.values = values
        place.bounds = self._bounds(values)
        if not place.depth and parser.newline >= 0:
            place.bounds_without = self._bounds([*values[: parser.newline], COSTLY, *values[parser.newline + 1 :]])
        return values

    def _bounds(self, values: list[int]) -> list[int]:
        terminals = [t for t, value in enumerate(values) if value < COSTLY]
        if not terminals:
            return np.where(self._backs_up, 0, COSTLY).tolist()  # type: ignore[no-any-return]
        least = (self._by_terminal[terminals] + np.array([values[t] for t in terminals], np.int32)[:, None]).min(axis=0)
        least[self._backs_up] = 0
        bounds: list[int] = np.clip(least, 0, COSTLY).tolist()
        return bounds

    def _newline_options(self, place: Place) -> tuple[list[tuple[int, int]], int]:
        """What a newline may lead to: (column, value) of each open block, and the value of a new one."""
        if place.options is not None:
            return place.options
        parser, top = self.parser, place.indents[-1]
        frames = self._shift(place.frames, parser.column_of[parser.newline])
        pay = min(self._pay(column) for column in self.lexer.further_in(top))
        inner = self._shift(frames, parser.indent, pay)
        opened = parser.values(inner, parser.indented)
        options = []
        for column in reversed(place.indents):
            options.append((column, parser.values(frames, parser.indented)))
            frames = self._shift(frames, parser.dedent)
        place.options = options, opened
        return place.options

    def _newline_bound(self, place: Place, state: int, column: int) -> int:
        """Least bytes if the newline under way ends as one."""
        lexer = self.lexer
        least = int(lexer.least[state, self.parser.newline])
        if least >= COSTLY:
            return COSTLY
        options, opened = self._newline_options(place)
        top = place.indents[-1]
        found = max(least, min(lexer.bytes_further_in(column, top), 1 + lexer.bytes_further_in(0, top))) + opened
        for wanted, value in options:
            bytes_left = 1 + lexer.indentation(wanted)
            if column <= wanted:
                bytes_left = min(bytes_left, lexer.indentation(wanted - column))
            found = min(found, max(least, bytes_left) + value)
        return found

    def _bound(self, node: Node) -> int:
        """A lower bound of the bytes left."""
        place, state, column, _ = node
        known = self._known.get(_key(node))
        if known is not None:
            return known
        if place.values is None:
            self._estimate(place)
        if self.lexer.is_newline[state] and not place.depth and not self.lexer.backs_up[state]:
            return max(0, min(place.bounds_without[state], self._newline_bound(place, state, column)))
        return place.bounds[state]

    def _guess(self, place: Place, state: int, klass: int, column: int) -> int:
        """A bound after a move that emits something, without making the place that it leads to."""
        emitted = self.lexer.outputs[self.lexer.output[state][klass]]
        first = emitted[0]
        if self.lexer.backs_up[state]:
            return 0
        if first == self.parser.newline and not place.depth:
            options, opened = self._newline_options(place)
            value = opened if column > place.indents[-1] else dict(options).get(column, COSTLY)
        else:
            value = self._estimate(place)[first]
        whole = len(emitted) == 1 and self.lexer.next_state[state][klass] == 0 and self.lexer.least[state, first] > 0
        return max(0, value - (not whole))

    # --- the search ---

    def _moves(self, node: Node) -> list[Move]:
        """The moves of a state, in the order of preference."""
        place, state, column, spelt = node
        lexer = self.lexer
        here = state or self._begin(place)
        found: list[Move] = []
        if here < 0:
            return found
        self._estimate(place)
        for byte, klass in lexer.moves[here]:
            after = lexer.next_state[here][klass]
            if lexer.output[here][klass]:
                least = self._guess(place, here, klass, column)
            elif after < 0 or (lexer.is_newline[after] and not place.depth):
                read = self._read(place, here, column, bytes([byte]))
                least = COSTLY if read is None else self._bound((*read, 0))
            else:
                least = place.bounds[after]
            if least >= COSTLY:
                continue
            if self.spelling is None:
                found.append((byte, least, None))
            else:
                found += [
                    (each, least, None) for each in lexer.by_class[klass] if self.spelling.after(spelt, each) >= 0
                ]
        return found

    def _made(self, node: Node, byte: int) -> Node | None:
        read = self._read(*node[:3], bytes([byte]))
        if read is None:
            return None
        return (*read, 0 if self.spelling is None else self.spelling.after(node[3], byte))

    def run(self, start: Node) -> bytes | None:
        """The first of the shortest endings; None if there is none."""
        self._budget = MAX_NODES
        self._readings = MAX_READINGS
        while True:
            bound = self._bound(start)
            if bound >= COSTLY or self._budget < 0:
                return None
            found = self._deepen(start, bound)
            if found is not None:
                return found

    def _deepen(self, start: Node, bound: int) -> bytes | None:
        """An ending of `bound` bytes. If there is none, more is known about the start afterwards."""
        path = bytearray()
        agenda: list[tuple[Node, Key, list[Move], list[int]]] = []
        entered: Node | None = start
        while True:
            if entered is not None:
                key = _key(entered)
                if len(path) == bound:
                    if self._is_end(entered):
                        return bytes(path)
                    self._known[key] = max(1, self._known.get(key, 0))
                    if not agenda:
                        return None
                    path.pop()
                else:
                    moves = self._children.get(key)
                    if moves is None:
                        moves = self._children[key] = self._moves(entered)
                        self._budget -= 1
                        if self._budget < 0:
                            return None
                    agenda.append((entered, key, moves, [0]))
            node, key, moves, at = agenda[-1]
            entered = None
            while at[0] < len(moves) and entered is None:
                entered = self._promising(node, moves, at[0], bound - len(agenda))
                at[0] += 1
            if entered is not None:
                path.append(moves[at[0] - 1][0])
                continue
            least = min((each if after is None else self._bound(after) for _, each, after in moves), default=COSTLY)
            self._known[key] = min(COSTLY, max(1 + least, self._known.get(key, 0)))
            agenda.pop()
            if not agenda:
                return None
            path.pop()

    def _promising(self, node: Node, moves: list[Move], at: int, left: int) -> Node | None:
        """Where a move leads, if an ending may be as near as `left` bytes from there."""
        byte, least, after = moves[at]
        if after is None:
            # what is left from here on is one byte less at the most
            least = max(least, self._bound(node) - 1)
            if least > left:
                return None
            after = self._made(node, byte)
            least = COSTLY if after is None else max(least, self._bound(after))
            moves[at] = byte, least, after
            if after is None:
                return None
            self._known[_key(after)] = least
        return after if self._bound(after) <= left else None
