"""The search for a shortest ending, byte by byte, under a lower bound that it learns.

It goes over the states of lexer, layout and parser.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.decoding.endings._ending_kernels import COSTLY

if TYPE_CHECKING:
    from maskwright.decoding.engine.slot import SlotText
    from maskwright.maskstore.table.compiled import EngineTable
from maskwright.decoding.endings.ending_machine import EndingMachine, Node, Options, ParserConfiguration
from maskwright.decoding.endings.ending_parser import Frame
from maskwright.decoding.endings.ending_spelling import PREFERRED, Spelling

MAX_KEPT = 64 << 20
"""Bytes of memory for what was learnt that are kept from one call to the next."""
MAX_HELD = 512 << 20
"""Bytes of memory that one search may take, by the sizes below.

These are measured. They are not what an allocator says.
"""
MAX_NODES = 100_000
"""States that a search may look at beyond `NODES_OF_A_BYTE` for each byte of the ending."""
NODES_OF_A_BYTE = 8
"""States that a search may look at for each byte of the ending."""
VISITS_OF_A_NODE = 16
"""The most visits of a state, on average, while the bound is raised byte by byte.

As many visits as states are allowed come on top. Where there is no ending, the bound may rise for
ever over a few states; a table says where there is none, so only a table that no compiler wrote
does so. The most in the tests is 14.
"""
MOST_TRAPPED = 2_000
"""States that are followed to tell whether a text comes to no end, once a search has given up."""
MAX_READINGS = 50_000
"""Stacks beyond the first, in all states looked at: how ambiguous a text may be."""


_NODE, _MOVE, _MADE = 300, 100, 500
"""Bytes of memory of a state's list of moves, of each move, and of each move that was followed."""
_SAMPLE = 4_096
"""States after which the search for a far ending estimates the memory that it will take."""

Key = tuple[int, int, Column, int]
"""A `Node` with the number of its configuration instead of the configuration."""
Move = tuple[int, int, Node | None]
"""A byte, a lower bound of what is left after it, and where it leads.

None instead of a node: not yet computed, or illegal.
"""


def _key(node: Node) -> Key:
    configuration, state, column, spelt = node
    return configuration.number, state, column, spelt


class EndingSearch(EndingMachine):
    """The search, with everything that it has learnt about one store.

    store, spelling : as of `EndingMachine`.
    """

    def __init__(self, store: EngineTable, spelling: Spelling | None) -> None:
        super().__init__(store, spelling)
        self._backs_up = np.array(self.lexer.backs_up)
        self._by_terminal = np.ascontiguousarray(self.lexer.least.T)
        self._text_columns = (1 << (self.parser.n_columns - 1)) - 1
        for column in (self.parser.indent, self.parser.dedent):
            if column >= 0 and all(self.lexer.width[t] >= COSTLY for t in self.parser.members[column]):
                self._text_columns &= ~(1 << column)
        self._nodes_left = self._visits_left = self._readings = 0
        self.forget()

    def forget(self) -> None:
        """Drop all states, and all bounds that were learnt."""
        super().forget()
        self._known: dict[Key, int] = {}
        self._children: dict[Key, list[Move]] = {}

    def start_of(self, text: SlotText) -> Node:
        """The state of a text, as of `EndingMachine`.

        What was learnt is dropped first if it takes more than `MAX_KEPT` bytes.
        """
        if self._held > MAX_KEPT:
            self.forget()
        return super().start_of(text)

    # --- bounds ---

    def _estimate(self, configuration: ParserConfiguration) -> list[int]:
        """The values of a configuration. Its bounds are computed with them."""
        if configuration.values is not None:
            return configuration.values
        parser, lexer = self.parser, self.lexer
        values = [COSTLY] * (lexer.end + 1)
        self._readings -= len(configuration.frames) - 1
        if self._readings < 0:
            raise LimitError(self._ambiguous())
        for column, target, below in self._actions(configuration.frames, self._text_columns):
            known: dict[int, int] = {}
            for terminal in parser.members[column]:
                before = parser.new_line if terminal == parser.newline else parser.class_of[terminal]
                if lexer.width[terminal] < COSTLY and (terminal != parser.newline or not configuration.depth):
                    if before not in known:
                        known[before] = parser.value(target, below, below.pay, before)
                    values[terminal] = min(values[terminal], known[before])
        ending: Sequence[Frame] = configuration.frames
        for _ in configuration.indents[1:]:
            ending = self._shift(ending, parser.dedent, configuration)
        if self._accepts(ending):
            values[lexer.end] = 0
        if configuration.depth and parser.newline >= 0:
            totals = [lexer.width[t] + value for t, value in enumerate(values)]
            values[parser.newline] = max(0, min(totals))
        configuration.bounds = self._bounds(values)
        if not configuration.depth and parser.newline >= 0:
            configuration.bounds_without = self._bounds(
                [*values[: parser.newline], COSTLY, *values[parser.newline + 1 :]]
            )
        configuration.values = values  # last, since it says that all is there: Ctrl-C may come between
        return values

    def _bounds(self, values: list[int]) -> array[int]:
        terminals = [t for t, value in enumerate(values) if value < COSTLY]
        if terminals:
            costs = np.array([values[t] for t in terminals], np.int32)
            least = (self._by_terminal[terminals] + costs[:, None]).min(axis=0)
            least[self._backs_up] = 0
        else:
            least = np.where(self._backs_up, 0, COSTLY)
        # PERF: np.clip looks up the limits of the type each time, which takes longer than this
        return array("i", np.minimum(np.maximum(least, 0), COSTLY).astype(np.intc).tobytes())

    def _newline_options(self, configuration: ParserConfiguration) -> Options:
        """What may follow the newline of a configuration."""
        if configuration.options is not None:
            return configuration.options
        parser, top = self.parser, configuration.indents[-1]
        frames = self._shift(configuration.frames, parser.column_of[parser.newline], configuration)
        inner = self._shift(frames, parser.indent, configuration, self._pay(self.lexer.indentation_inside(top)))
        opened = parser.values(inner, parser.indented)
        options = []
        for column, outer in zip(
            reversed(configuration.indents), [*reversed(configuration.indents[:-1]), FIRST_COLUMN], strict=True
        ):
            options.append((column, parser.values(frames, parser.indented)))
            last = frames
            frames = self._shift(frames, parser.dedent, configuration, self._pay(self.lexer.indentation(outer)))
        configuration.options = options, opened, 0 if self._accepts(last) else COSTLY
        return configuration.options

    def _newline_bound(self, configuration: ParserConfiguration, state: int, column: Column) -> int:
        """A lower bound of the bytes left if the newline under way ends as a newline."""
        lexer = self.lexer
        least = int(lexer.least[state, self.parser.newline])
        if least >= COSTLY:
            return COSTLY
        options, opened, ended = self._newline_options(configuration)
        # at the end of the text a newline has no column
        found = least + ended
        top = configuration.indents[-1]
        here, below = lexer.same_line[state], lexer.next_line[state]
        if opened < COSTLY:
            inner = (
                max(here, lexer.bytes_further_in(column, top)),
                max(below, 1 + lexer.bytes_further_in(FIRST_COLUMN, top)),
            )
            found = min(found, min(inner) + opened)
        for wanted, value in options:
            found = min(found, value + max(below, 1 + lexer.indentation(wanted)))
            found = min(found, value + max(here, lexer.bytes_to(column, wanted)))
        return min(found, COSTLY)

    def _bound(self, node: Node) -> int:
        """A lower bound of the bytes left: the one that was learnt, or else the estimate."""
        known = self._known.get(_key(node))
        return self._estimated(node) if known is None else known

    def _estimated(self, node: Node) -> int:
        """The lower bound of the bytes left before anything was learnt.

        The limits of a search depend on this bound, not on a learnt one. Where there is no ending,
        a learnt bound only says how far the search before has come. It would allow the next search
        more and more.
        """
        configuration, state, column, _ = node
        if configuration.values is None:
            self._estimate(configuration)
        if self.lexer.is_newline[state] and not configuration.depth and not self.lexer.backs_up[state]:
            return max(0, min(configuration.bounds_without[state], self._newline_bound(configuration, state, column)))
        return configuration.bounds[state]

    def _guess(self, configuration: ParserConfiguration, state: int, klass: int, column: Column) -> int:
        """A bound after a move that emits something, without making the configuration after it."""
        emitted = self.lexer.outputs[self.lexer.output[state][klass]]
        # a table that no compiler wrote may emit nothing under another number than 0
        if not emitted or self.lexer.backs_up[state]:
            return 0
        first = emitted[0]
        if first == self.parser.newline and not configuration.depth:
            options, opened, _ = self._newline_options(configuration)
            layout = self.parser.layout
            is_inner = layout is not None and layout.compare(column, configuration.indents[-1]) == 1
            value = opened if is_inner else dict(options).get(column, COSTLY)
        else:
            value = self._estimate(configuration)[first]
        whole = len(emitted) == 1 and self.lexer.next_state[state][klass] == 0 and self.lexer.least[state, first] > 0
        return max(0, value - (not whole))

    # --- the search ---

    def _moves(self, node: Node) -> list[Move]:
        """The moves from a state, in the order of preference."""
        configuration, state, column, spelt = node
        lexer = self.lexer
        here = state or self._begin(configuration)
        found: list[Move] = []
        if here < 0:
            return found
        self._estimate(configuration)
        bound = self._bound if self.spelling is None else self._estimated
        for byte, klass in lexer.moves[here]:
            after = lexer.next_state[here][klass]
            if lexer.output[here][klass]:
                least = self._guess(configuration, here, klass, column)
            elif after < 0 or (lexer.is_newline[after] and not configuration.depth):
                read = self._read(configuration, here, column, byte)
                # what was learnt holds for one state of the spelling only
                least = COSTLY if read is None else bound((*read, 0))
            else:
                least = configuration.bounds[after]
            if least >= COSTLY:
                continue
            if self.spelling is None:
                found.append((byte, least, None))
            else:
                found += [
                    (each, least, None) for each in lexer.by_class[klass] if self.spelling.after(spelt, each) >= 0
                ]
        if self.spelling is not None:
            found.sort(key=lambda move: PREFERRED.index(move[0]))
        return found

    def _made(self, node: Node, byte: int) -> Node | None:
        read = self._read(*node[:3], byte)
        if read is None:
            return None
        return (*read, 0 if self.spelling is None else self.spelling.after(node[3], byte))

    def run(self, start: Node, max_nodes: int | None = None) -> bytes | None:
        """The first of the shortest endings; None if there is none.

        start : the state of the text, from `start_of`.
        max_nodes : states that may be looked at beyond `NODES_OF_A_BYTE` for each byte; `MAX_NODES`
            by default. They may be visited as often, and `VISITS_OF_A_NODE` times for each state
            that no search before has looked at.

        Raises: LimitError if these are too few, or take more memory than `MAX_HELD`, or the text
        has more readings than `MAX_READINGS`.
        """
        self._readings = MAX_READINGS
        far = self._estimated(start)
        self._nodes_left = (MAX_NODES if max_nodes is None else max_nodes) + NODES_OF_A_BYTE * far
        self._visits_left = self._nodes_left
        # PERF: the memory of the first of at least `far` states tells what will not fit, long
        # before the last
        self._check_at = len(self._children) + _SAMPLE if far > _SAMPLE else -1
        self._most_a_state = 1.25 * (MAX_HELD - self._held) / max(1, far)
        self._held_before = self._held
        while True:
            bound = self._bound(start)
            if bound >= COSTLY:
                self._check_cuts(start)
                return None
            try:
                found = self._deepen(start, bound)
            except LimitError:
                # the bounds know neither tokens nor all that the lexer does: they may rise for ever
                if self._visits_left >= 0 or not self._is_trapped(start):
                    raise
                self._learn(_key(start), COSTLY)
                self._check_cuts(start)
                return None
            if found is not None:
                return found

    def _check_cuts(self, start: Node) -> None:
        """Check that a state from which no ending was found has none.

        It may have left something out that has more readings than the engine follows. What was
        learnt is dropped, so that the answer is the same whatever was asked before.

        Raises: LimitError where it did, or that would take too long to tell.
        """
        if self.has_conflicts:
            self._known, self._children = {}, {}  # what was learnt tells nothing of what was left out
            if not self._is_trapped(start):
                raise LimitError(self._ambiguous())

    def _ambiguous(self) -> str:
        return (
            f"grammar {self._name} is so ambiguous here that endings of the text have too many readings to follow; "
            "load the grammar with conflicts='shift', or make its rules less ambiguous"
        )

    def _is_trapped(self, start: Node) -> bool:
        """Whether a state leads to no end, and to at most `MOST_TRAPPED` states of few stacks."""
        seen, agenda = {_key(start)}, [start]
        for node in agenda:  # grows while it is read
            if self._is_end(node):
                return False
            moves = self._children.get(_key(node))
            for byte, _, after in self._moves(node) if moves is None else moves:
                made = self._made(node, byte) if after is None else after
                if made is not None and _key(made) not in seen and self._bound(made) < COSTLY:
                    if len(agenda) >= MOST_TRAPPED:
                        return False
                    seen.add(_key(made))
                    agenda.append(made)
            if node[0].is_cut:
                return False
        return True

    def refuse_far(self, start: Node, most_bytes: int) -> None:
        """Refuse a search for an ending that has certainly more than `most_bytes` bytes.

        Raises: LimitError; also for more readings than `4 * MAX_READINGS`.
        """
        self._readings = 4 * MAX_READINGS
        far = self._estimated(start)
        if most_bytes < far < COSTLY:
            raise LimitError(f"grammar {self._name}: an ending of the text has at least {far:,} bytes")

    def _count_node(self, moves: list[Move]) -> None:
        self._held += _NODE + _MOVE * len(moves)
        self._nodes_left -= 1
        self._visits_left += VISITS_OF_A_NODE
        is_far = len(self._children) == self._check_at and self._held - self._held_before > self._most_a_state * _SAMPLE
        if self._nodes_left < 0 or self._held > MAX_HELD or is_far:
            if self._nodes_left < 0:
                self._give_up("states of lexer and parser", len(self._children))
            self._give_up("bytes of memory", MAX_HELD)

    def _give_up(self, what: str, n: int) -> NoReturn:
        raise LimitError(
            f"grammar {self._name}: no shortest ending of the text was found among {n:,} {what}; go on with the text and ask again, "
            "or ask for a short ending that need not be the shortest (short_ending)"
        )

    def descend(self, start: Node, max_steps: int) -> bytes | None:
        """An ending that is hardly ever longer than a shortest one; None if there is no ending.

        Each byte is one after which the bound is least. No byte is taken back unless it leads
        nowhere, or back to a state where the text was before. The bound of a state that is left
        rises above that of the next one, so the search does not stay where the bound is too low.
        What was learnt is kept, so a second descent gets further.

        start : the state of the text, from `start_of`.
        max_steps : steps beyond `NODES_OF_A_BYTE` for each byte of the start's bound.

        Raises: LimitError if the steps are too few, or the text has more readings than
        `4 * MAX_READINGS`.

        Cost: about one state for each byte; memory for one configuration for each lexeme.

        Source: Korf, "Real-time heuristic search" (1990), LRTA*.
        """
        path = bytearray()
        trail, at = [start], {_key(start): 0}
        self._readings = 4 * MAX_READINGS
        far = self._estimated(start)
        steps = max_steps + NODES_OF_A_BYTE * min(far, MAX_NODES)
        for _ in range(0 if steps < far < COSTLY else steps):  # a step adds one byte at most
            node = trail[-1]
            if not self._bound(node) and self._is_end(node):
                return bytes(path)
            if self._held > MAX_HELD:
                self.forget()
            best: Node | None = None
            chosen, least = 0, COSTLY
            for byte, guess, _ in sorted(self._moves(node), key=lambda move: move[1]):
                if guess >= least:
                    break
                made = self._made(node, byte)
                if made is not None and (bound := self._bound(made)) < least:
                    best, chosen, least = made, byte, bound
            self._learn(_key(node), min(COSTLY, 1 + least))
            if best is None:
                if len(trail) == 1:
                    self._check_cuts(start)
                    return None
                del at[_key(trail.pop())]
                path.pop()
                continue
            back = at.get(_key(best))
            if back is None:
                at[_key(best)] = len(trail)
                trail.append(best)
                path.append(chosen)
            else:
                for left in trail[back + 1 :]:
                    del at[_key(left)]
                del trail[back + 1 :], path[back:]
        raise LimitError(
            f"grammar {self._name}: no ending of the text is found in {steps:,} steps; go on with the text and ask again"
        )

    def _learn(self, key: Key, bound: int) -> None:
        known = self._known.get(key)
        if known is None:
            self._held += _MADE
        self._known[key] = bound if known is None else max(known, bound)

    def _deepen(self, start: Node, bound: int) -> bytes | None:
        """An ending of `bound` bytes. If there is none, the bound of the start rises."""
        path = bytearray()
        agenda: list[tuple[Node, Key, list[Move], list[int]]] = []
        entered: Node | None = start
        while True:
            if entered is not None:
                key = _key(entered)
                if len(path) == bound:
                    if self._is_end(entered):
                        return bytes(path)
                    self._learn(key, 1)
                    if not agenda:
                        return None
                    path.pop()
                else:
                    moves = self._children.get(key)
                    if moves is None:
                        moves = self._children[key] = self._moves(entered)
                        self._count_node(moves)
                    self._visits_left -= 1
                    if self._visits_left < 0:
                        self._give_up("states of lexer and parser, each visited often", len(self._children))
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
            self._learn(key, min(COSTLY, 1 + least))
            agenda.pop()
            if not agenda:
                return None
            path.pop()

    def _promising(self, node: Node, moves: list[Move], at: int, left: int) -> Node | None:
        """The state after a move, if an ending may be within `left` bytes from there; else None."""
        byte, least, after = moves[at]
        if after is None:
            # a byte brings the end of the text nearer by one byte at most
            least = max(least, self._bound(node) - 1)
            if least > left:
                return None
            after = self._made(node, byte)
            least = COSTLY if after is None else max(least, self._bound(after))
            moves[at] = byte, least, after
            if after is None:
                return None
            self._learn(_key(after), least)
        return after if self._bound(after) <= left else None
