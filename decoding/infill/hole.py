"""What is known of a hole in texts of one store: its suffix, and what can still come to it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.kept import kept_with
from maskwright.analysis.locks import new_rlock
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending import Endings
from maskwright.decoding.endings.ending_parser import State
from maskwright.decoding.endings.ending_spelling import ONE_BYTE, PREFERRED, Spelling
from maskwright.decoding.endings.states import Move, States
from maskwright.decoding.engine.texts import Texts
from maskwright.decoding.grammar.ending_states import GrammarStates
from maskwright.decoding.grammar.text import GrammarText
from maskwright.decoding.infill.blocks import Cells
from maskwright.decoding.infill.groups import Groups
from maskwright.decoding.infill.lexical import FreeBytes, Graph
from maskwright.decoding.infill.reach import Reach

MOST_STATES = 500
"""BOUND: the states that a search for a shortest middle looks at under a layout, and some more."""
MAX_HELD = 64 << 20
"""Bytes of memory of stacks after which all that is known of single ones is forgotten."""
MOST_HOLES, MOST_KEPT = 8, 1_000_000
"""BOUND: the holes that a store keeps, and their targets, those of the one asked for last aside."""
MOST_NAMED = 20_000
"""BOUND: the targets after which no more is tried to name the bytes that could stand somewhere."""


class Tables:
    """What of a grammar's store no suffix changes.

    states : of its texts, byte by byte. groups : of its tokens. lock : of all that is kept here,
    and of the holes.
    """

    def __init__(self, store: Any) -> None:
        self.lock = new_rlock()
        self.states: GrammarStates = GrammarText(Texts(store, 1, 0)).ending_states()()  # type: ignore[assignment]
        self.cells = Cells(store, self.states.parser)
        self.groups = Groups(store.vocabulary, self.states.lexer, self.cells)
        self._free = FreeBytes(self.states.lexer, False)
        self._counted = FreeBytes(self.states.lexer, True)
        self._holes: dict[tuple[int, bytes, bool], Hole] = {}

    def hole(self, suffix: bytes, is_open: bool) -> Hole:
        """The hole before a suffix, with what is known of it if it was asked for lately."""
        # a fork has its own: another thread may have been making one
        key, holes = (os.getpid(), suffix, is_open), self._holes
        with self.lock:
            found = holes.pop(key, None) or Hole(self, suffix, is_open)
            holes[key] = found
            n_steps = [each.reach.n_steps + each.weighted.n_steps for each in holes.values()]
            while len(n_steps) > MOST_HOLES or sum(n_steps[:-1]) > MOST_KEPT:
                del holes[next(iter(holes))], n_steps[0]
        return found

    def forget(self) -> None:
        """Forget all single states. Those still held remain usable."""
        self.states.forget()
        self.cells.forget()
        for hole in self._holes.values():
            hole.forget()

    def reach(self, pieces: Sequence[bytes], is_weighted: bool = False) -> Reach:
        """Which stacks come to the end of free bytes, given ones, and so on.

        is_weighted : whether the bytes before the first given ones are counted.
        """
        free = [self._counted if is_weighted else self._free, *[self._free] * (len(pieces) - 1)]
        return Reach(self.states.parser, Graph(self.states.parser, self.cells, free, pieces))

    def least(self, reach: Reach, node: int, state: State) -> int:
        """The least free bytes from a state at a node; COSTLY if it does not come to the end."""
        return reach.least(node, self.cells.stacks(state[0]))


@kept_with
def tables_of(store: Any) -> Tables:
    """The tables of a store."""
    return Tables(store)


def has_reach(text: Any) -> bool:
    """Whether it can be told which texts still come to a suffix: see `Cells.tells`."""
    return type(text) is GrammarText and (text.store.grammar.layout is None or tables_of(text.store).cells.tells)


class Hole:
    """A suffix behind texts of one grammar.

    is_open : whether anything may follow the suffix. Free bytes come before it, and then behind it.
    reach, weighted : which stacks come to the suffix; the same, and at which least costs.
    endings : shortest middles.
    """

    def __init__(self, tables: Tables, suffix: bytes, is_open: bool) -> None:
        self.tables, self.suffix = tables, suffix
        pieces = (suffix, b"") if is_open else (suffix,)
        self.reach, self.weighted = tables.reach(pieces), tables.reach(pieces, True)
        self.endings = Endings(partial(BridgeStates, self), tables.groups.vocabulary, tables.lock)
        self._verdicts: dict[tuple[Any, int], bool] = {}
        self._longest: dict[tuple[Any, int], int] = {}

    def leads(self, state: State) -> bool:
        """Whether some middle goes on from a state to the suffix."""
        found = self._verdicts.get(state[:2])
        if found is None:
            if self.tables.states.held > MAX_HELD:
                self.tables.forget()
                self.forget()
            found = self.tables.least(self.reach, self.reach.graph.free(state[1]), state) < COSTLY
            self._verdicts[state[:2]] = found
        return found

    def forget(self) -> None:
        """Forget all single states."""
        self._verdicts.clear()
        self._longest.clear()
        self.reach.forget()

    def read(self, state: State, data: bytes) -> State | None:
        """The state behind some bytes; None if they are illegal.

        Raises: LimitError if the text has more parses then than the engine follows.
        """
        states = self.tables.states
        for byte in data:
            after = states.after(state, ONE_BYTE[byte])
            if after is None:
                if states.is_cut(state):
                    raise LimitError(states.may_cut)
                return None
            state = after
        return state

    def narrow(self, state: State, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of some tokens, legal ones, leave a middle.

        Cost: two questions for each group of tokens.
        """
        lexer_state = state[1] or self.tables.states.mode_start(state[0])
        labels = self.tables.groups.labels(lexer_state)[ids]
        _, first, group = np.unique(labels, return_index=True, return_inverse=True)
        texts = self.tables.groups.texts
        verdicts = []
        for token in ids[first].tolist():
            after = self.read(state, texts[token])
            verdicts.append(after is not None and self.leads(after))
        found: npt.NDArray[np.bool_] = np.array(verdicts, np.bool_)[group]
        return found

    def longest_suffix(self, state: State) -> int:
        """How many bytes of the suffix can come behind some middle, if anything may follow them.

        Cost: a tabulation for each bit of the suffix's length.
        """
        good, bad = self._longest.get(state[:2], 0), len(self.suffix) + 1
        while bad - good > 1 and state[:2] not in self._longest:
            middle = (good + bad) // 2
            if self._can_follow(state, self.suffix[:middle])[0]:
                good = middle
            else:
                bad = middle
        self._longest[state[:2]] = good
        return good

    def _can_follow(self, state: State, data: bytes) -> tuple[bool, int]:
        """Whether bytes can come behind some middle, if anything may follow, and the cost."""
        reach = self.tables.reach((data, b""))
        return self.tables.least(reach, reach.graph.free(state[1]), state) < COSTLY, reach.n_steps

    def could_stand(self, state: State, good: int) -> bytes:
        """The bytes that can come behind some middle and so much of the suffix, ascending.

        b"" under a layout, and where it takes more than `MOST_NAMED` targets to tell.
        """
        found, left = bytearray(), MOST_NAMED if self.tables.cells.layout is None else 0
        for alike in filter(None, self.tables.states.lexer.by_class):
            if left <= 0:
                return b""
            can, n_steps = self._can_follow(state, self.suffix[:good] + bytes(alike[:1]))
            found += bytes(alike) if can else b""
            left -= n_steps
        return bytes(sorted(found))


class BridgeStates(States):
    """The states of a middle: what is left of it is known, in any bytes, but for indentation."""

    is_kept = False

    def __init__(self, hole: Hole, spelling: Spelling | None = None) -> None:
        super().__init__(hole.tables.states.under, spelling)
        self._hole, self._states, self.may_cut = hole, hole.tables.states, hole.tables.states.may_cut
        self._bounds: dict[Hashable, int] = {}

    def start(self, text: Any) -> State:
        found: State = text.state
        return found

    def bound(self, state: State) -> int:
        key = state[:2]
        found = self._bounds.get(key)
        if found is None:
            reach = self._hole.weighted
            found = self._bounds[key] = self._hole.tables.least(reach, reach.graph.free(state[1]), state)
        return found

    def is_end(self, state: State) -> bool:
        reach = self._hole.weighted
        return self._hole.tables.least(reach, reach.graph.given(state[1], state[2]), state) < COSTLY

    def moves(self, state: State) -> list[Move]:
        lexer = self._states.lexer
        here = state[1] or self._states.mode_start(state[0])
        found = []
        for byte, klass in lexer.moves[here] if here >= 0 else ():
            after = self._states.after(state, ONE_BYTE[byte])
            if after is not None and (least := self.bound(after)) < COSTLY:
                alike = (byte,) if self.spelling is None else lexer.by_class[klass]
                found += [(ONE_BYTE[each], least) for each in alike]
        if self.spelling is not None:
            found.sort(key=lambda move: PREFERRED.index(move[0]))
        return found

    def after(self, state: State, data: bytes) -> State | None:
        return self._states.after(state, data)

    def is_cut(self, state: State) -> bool:
        return self._states.is_cut(state)

    def most_nodes(self, wanted: int) -> int:
        # BOUND: under a layout bounds leave out indentation, and a search may go far astray
        return wanted if self._hole.tables.cells.layout is None else min(wanted, MOST_STATES)

    def forget(self) -> None:
        self._bounds.clear()
        self._hole.weighted.forget()

    def spelled_by(self, spelling: Spelling) -> States:
        return BridgeStates(self._hole, spelling)
