"""The search for an ending of any kind of text, byte by byte, under a lower bound that it learns.

A kind of texts has one class: `States`, which says what follows a state, and how many bytes are
left at least. The search knows nothing else of it.

A shortest ending is found by iterative deepening. Of several it is the first in the order of the
states' moves. A bound that proves too low is raised, and the search begins again. An ending that is
only near is found by a search that takes each byte that is left for `EAGERNESS` bytes.

Source: Korf, "Depth-first iterative-deepening" (1985), with learnt bounds as in Reinefeld and
Marsland (1994); Pohl, "Heuristic search viewed as path finding in a graph" (1970), with partial
expansion as in Yoshizumi, Miura, Ishida, "A* with partial expansion" (2000); Hoffmann and Nebel,
"The FF planning system" (2001) for enforced hill-climbing.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush
from typing import Any, NoReturn

from maskwright.analysis.errors import LimitError
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending_spelling import Spelling

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

As many visits as states are allowed come on top. The most in the tests is 14.
"""
MOST_IN_VAIN = 16
"""How often the bound may rise over the same states before it is asked whether they have no end.

Where there is no ending, it may rise for ever. A table says where there is none, so only a table
that no compiler wrote does so, or a vocabulary that lacks bytes.
"""
MOST_TRAPPED = 2_000
"""States that are followed to tell whether a text comes to no end."""
EAGERNESS = 8
"""BOUND: an ending that is only near is at most so many times as long as a shortest one.

So many bytes may be tried for each that is left. (Not where bounds are vague.)
"""
_NODE, _MOVE, _MADE = 300, 100, 500
"""Bytes of memory of a state that was looked at, of each of its moves, and of each state."""
_SAMPLE = 4_096
"""States after which the search for a far ending estimates the memory that it will take."""

Move = tuple[bytes, int]
"""Bytes that may come, and a lower bound of what is left after them."""


class States(ABC):
    """What may follow the beginnings of texts of one kind, as the search sees it.

    under : what errors call the constraint.
    spelling : what must spell the endings; None for endings of any bytes. The search follows it.

    INVARIANT: states are hashable, and equal ones have the same future.
    """

    may_settle = False
    """Whether a near ending is searched for where a shortest one is not found in time.

    It is taken if it proves to be a shortest one, or `is_vague`.
    """
    is_vague = False
    """Whether bounds tell so little that a near ending is taken for a shortest one."""
    may_cut = ""
    """In words, that something may be left out that follows a text; "" if nothing ever is."""
    is_kept = True
    """Whether states may be kept from one question to the next: they do not hold the store."""
    size_of_move = _MOVE
    """The bytes of memory of a move."""
    held = 0
    """The bytes of memory that all states take, about."""

    def __init__(self, under: str, spelling: Spelling | None) -> None:
        self.under, self.spelling = under, spelling

    @abstractmethod
    def start(self, text: Any) -> Hashable:
        """The state of a text. Raises: DeadEndError if there is none."""

    @abstractmethod
    def bound(self, state: Any) -> int:
        """A lower bound of the bytes that complete a text, COSTLY or more if none do."""

    @abstractmethod
    def is_end(self, state: Any) -> bool:
        """Whether the text may end."""

    @abstractmethod
    def moves(self, state: Any) -> Sequence[Move]:
        """What may come next, in the order of preference: all but what surely leads nowhere."""

    @abstractmethod
    def after(self, state: Any, data: bytes) -> Hashable | None:
        """The state after a move; None if it is illegal."""

    def straight(self, state: Any) -> bytes | None:
        """An ending by a way of the kind's own that never goes back, if `descend` finds none."""
        return None

    def begin(self, times: int = 1) -> None:  # noqa: B027 - most kinds have nothing to count
        """A search begins. times : how much it may do besides looking at states."""

    @abstractmethod
    def spelled_by(self, spelling: Spelling) -> States:
        """The same for endings that tokens spell."""

    def is_cut(self, state: Any) -> bool:
        """Whether something that may follow was left out (`may_cut`)."""
        return False

    def forget(self) -> None:  # noqa: B027
        """Drop all states. Those still held remain usable."""

    def most_nodes(self, wanted: int) -> int:
        """How many states a search may look at, of those that the caller allows."""
        return wanted

    def most_steps(self, wanted: int) -> int:
        """How many steps the search for a near ending may take, likewise."""
        return wanted

    def seconds(self, far: int) -> float:
        """The processor time that a search may take. far : the bound of its start."""
        return math.inf

    def why_none(self) -> str:
        """Why nothing follows from a search that found no ending; "" if something does."""
        return ""


class Node:
    """A state that the search has come by.

    spelt : the state of the spelling.
    bound : a lower bound of the bytes left, as far as is known.
    moves : None as long as nobody has looked at the state.
    made : what moves lead to, by their offsets, as far as it was made; None for nothing.
    way : the offset of the first move to try: that of a shortest ending, where it is known.
    """

    __slots__ = ("bound", "made", "moves", "spelt", "state", "way")

    def __init__(self, state: Any, spelt: int, bound: int) -> None:
        self.state, self.spelt, self.bound = state, spelt, bound
        self.moves: Sequence[Move] | None = None
        self.made: dict[int, Node | None] = {}
        self.way = 0


class EndingSearch:
    """The search, with everything that it has learnt about the texts of one store."""

    def __init__(self, states: States) -> None:
        self.states, self._spelling = states, states.spelling
        self._nodes_left = self._visits_left = 0
        self._until = math.inf
        self.forget()

    def forget(self) -> None:
        """Drop all states, and all bounds that were learnt."""
        self.states.forget()
        self.unlearn()

    def unlearn(self) -> None:
        """Drop the bounds that were learnt, but not what the states know without a search."""
        self._nodes: dict[tuple[Hashable, int], Node] = {}
        self._n_seen = self._own = 0

    @property
    def held(self) -> int:
        """The bytes of memory that it takes, about."""
        return self._own + self.states.held

    def start_of(self, text: Any) -> Node:
        """The node of a text. What was learnt is dropped first if it takes more than `MAX_KEPT`."""
        if self.held > MAX_KEPT:
            self.forget()
        self.states.begin()
        return self._node(self.states.start(text), 0)

    def _node(self, state: Hashable, spelt: int) -> Node:
        key = state, spelt
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Node(state, spelt, self.states.bound(state))
            self._own += _MADE
        return found

    def _is_end(self, node: Node) -> bool:
        return (self._spelling is None or self._spelling.is_whole(node.spelt)) and self.states.is_end(node.state)

    def _after(self, node: Node, at: int, data: bytes) -> Node | None:
        """What a move leads to. at : its offset among the node's moves."""
        if at in node.made:
            return node.made[at]
        spelt = node.spelt
        if self._spelling is not None:
            for byte in data:
                spelt = self._spelling.after(spelt, byte)
                if spelt < 0:
                    return None
        state = self.states.after(node.state, data)
        return None if state is None else self._node(state, spelt)

    # --- shortest endings

    def run(self, start: Node, max_nodes: int) -> bytes | None:
        """The first of the shortest endings; None if there is none.

        INVARIANT: a search that is given up leaves nothing behind: what it has learnt depends on
        its limits, of time as well.

        start : of the text, from `start_of`.
        max_nodes : states that may be looked at beyond `NODES_OF_A_BYTE` for each byte. They may be
            visited as often, and `VISITS_OF_A_NODE` times for each state that no search before has
            looked at.

        Raises: LimitError if these are too few, or take more time than the states allow or more
            memory than `MAX_HELD`; and as the methods of the states.
        """
        try:
            return self._run(start, max_nodes)
        except LimitError:
            self.unlearn()
            raise

    def _run(self, start: Node, max_nodes: int) -> bytes | None:
        self.states.begin()
        # The limits do not depend on a learnt bound. Where there is no ending, that only says how
        # far the search before has come. It would allow the next search more and more.
        far = self.states.bound(start.state)
        self._nodes_left = self.states.most_nodes(max_nodes) + NODES_OF_A_BYTE * far
        self._visits_left = self._nodes_left
        self._until = time.thread_time() + self.states.seconds(far)
        # PERF: the memory of the first of at least `far` states tells what will not fit, long
        # before the last
        self._check_at = self._n_seen + _SAMPLE if far > _SAMPLE else -1
        self._most_a_state = 1.25 * (MAX_HELD - self.held) / max(1, far)
        self._held_before = self.held
        n_in_vain = 0
        while start.bound < COSTLY:
            n_seen = self._n_seen
            found = self._deepen(start, start.bound)
            if found is not None:
                return found
            # the bounds know neither tokens nor all that a lexer does: they may rise for ever
            n_in_vain = n_in_vain + 1 if self._n_seen == n_seen else 0
            if n_in_vain % MOST_IN_VAIN == MOST_IN_VAIN - 1 and self._is_trapped(start):
                start.bound = COSTLY
        self._check_cuts(start)
        return None

    def _deepen(self, start: Node, most: int) -> bytes | None:
        """An ending of `most` bytes. If there is none, the bound of the start rises."""
        path: list[bytes] = []
        n_bytes = 0
        agenda: list[tuple[Node, Sequence[Move], list[int]]] = []
        entered: Node | None = start
        while True:
            if entered is not None:
                if n_bytes == most:
                    if self._is_end(entered):
                        # PERF: a text that goes on another way comes soon by one of the same states
                        for (node, _, at), data in zip(reversed(agenda), reversed(path), strict=True):
                            n_bytes -= len(data)
                            node.bound, node.way = most - n_bytes, at[0] - 1
                        return b"".join(path)
                    entered.bound = max(entered.bound, 1)
                    if not agenda:
                        return None
                    n_bytes -= len(path.pop())
                else:
                    # INVARIANT: where the way is known, the bound is exact, so that it is what is
                    # left; within that no move before it led to an ending
                    agenda.append((entered, self._moves(entered), [entered.way]))
            node, moves, at = agenda[-1]
            entered = None
            while at[0] < len(moves) and entered is None:
                entered = self._promising(node, moves[at[0]], at[0], most - n_bytes)
                at[0] += 1
            if entered is not None:
                path.append(moves[at[0] - 1][0])
                n_bytes += len(path[-1])
                continue
            least = min((self._least(node, move, number) for number, move in enumerate(moves)), default=COSTLY)
            node.bound = max(node.bound, min(COSTLY, least))
            agenda.pop()
            if not agenda:
                return None
            n_bytes -= len(path.pop())

    def _moves(self, node: Node) -> Sequence[Move]:
        """The moves of a node that is visited."""
        if node.moves is None:
            node.moves = self.states.moves(node.state)
            self._count_node(len(node.moves))
        self._visits_left -= 1
        if self._visits_left < 0:
            self._give_up(f"{self._n_seen:,} states, each visited often")
        if self._until < math.inf and time.thread_time() > self._until:
            self._give_up(f"{self._n_seen:,} states in the time that it may take")
        return node.moves

    def _count_node(self, n_moves: int) -> None:
        self._n_seen += 1
        self._own += _NODE + self.states.size_of_move * n_moves
        self._nodes_left -= 1
        self._visits_left += VISITS_OF_A_NODE
        is_far = self._n_seen == self._check_at and self.held - self._held_before > self._most_a_state * _SAMPLE
        if self._nodes_left < 0:
            self._give_up(f"{self._n_seen:,} states")
        if self.held > MAX_HELD or is_far:
            self._give_up(f"{MAX_HELD:,} bytes of memory")

    def _give_up(self, what: str) -> NoReturn:
        raise LimitError(
            f"{self.states.under}: no shortest ending of the text was found among {what}, so the search was given up; go on with the text "
            "and ask again, or ask for a short ending that need not be the shortest (short_ending)"
        )

    def _least(self, node: Node, move: Move, at: int) -> int:
        """A lower bound of the bytes left at a node if a move comes next."""
        data, least = move
        after = node.made.get(at, self)
        if after is None:
            return COSTLY
        # bytes bring the end of the text nearer by as many bytes at most
        return len(data) + (after.bound if isinstance(after, Node) else max(least, node.bound - len(data)))

    def _promising(self, node: Node, move: Move, at: int, left: int) -> Node | None:
        """What a move leads to, if an ending may be within `left` bytes of the node; else None."""
        if self._least(node, move, at) > left:
            return None
        after = self._after(node, at, move[0])
        if at not in node.made:
            if after is not None:
                after.bound = max(after.bound, self._least(node, move, at) - len(move[0]))
            node.made[at] = after
        return None if after is None or len(move[0]) + after.bound > left else after

    # --- what comes to no end

    def _check_cuts(self, start: Node) -> None:
        """Check that a state from which no ending was found has none.

        It may have left something out that has more readings than the engine follows. What was
        learnt is dropped, so that the answer is the same whatever was asked before.

        Raises: LimitError where it did, or that would take too long to tell.
        """
        if self.states.may_cut:
            self._nodes = {}  # what was learnt tells nothing of what was left out
            if not self._is_trapped(self._node(start.state, start.spelt)):
                raise LimitError(self.states.may_cut)

    def _is_trapped(self, start: Node) -> bool:
        """Whether a state leads to no end, and to at most `MOST_TRAPPED` states, none cut."""
        seen, agenda = {start}, [start]
        for node in agenda:  # grows while it is read
            if self._is_end(node):
                return False
            for at, (data, _) in enumerate(node.moves or self.states.moves(node.state)):
                after = self._after(node, at, data)
                if after is not None and after not in seen and after.bound < COSTLY:
                    if len(agenda) >= MOST_TRAPPED:
                        return False
                    seen.add(after)
                    agenda.append(after)
            if self.states.is_cut(node.state):
                return False
        return True

    # --- near endings

    def descend(self, start: Node, max_steps: int) -> bytes | None:
        """An ending that is hardly ever longer than a shortest one; None if there is no ending.

        It takes each byte that is left for `EAGERNESS` bytes: so it goes straight on where the
        bound falls, and around where it does not. What was learnt before is of use. Where bounds
        are vague, too low again and again, it never goes back from where it came nearer than
        before: enforced hill-climbing.

        start : of the text, from `start_of`.
        max_steps : states beyond `NODES_OF_A_BYTE` for each byte of the start's bound.

        Raises: LimitError if these are too few, or take more time than the states allow.

        Cost: about one state for each byte.
        """
        self.states.begin(4)
        far = self.states.bound(start.state)
        steps = self.states.most_steps(max_steps) + NODES_OF_A_BYTE * min(far, MAX_NODES)
        until = time.thread_time() + self.states.seconds(far)
        come: dict[Node, tuple[int, Node | None, bytes]] = {start: (0, None, b"")}
        # cost, minus the bytes so far, when it was added, and moves that were not tried yet
        queue: list[tuple[int, int, int, Node, list[tuple[int, int]] | None]] = [(0, 0, 0, start, None)]
        n_added, nearest, is_cut_off = 0, start.bound, False
        for _ in range(0 if steps < far < COSTLY else steps):  # a step adds one byte at most
            if not queue and not is_cut_off:
                self._check_cuts(start)
                return None
            if not queue:
                break
            _, minus, _, node, untried = heappop(queue)
            if come[node][0] < -minus:
                continue  # it was reached sooner
            if self.states.is_vague and node.bound < nearest:
                nearest, is_cut_off = node.bound, True
                queue.clear()
            if untried is None and not node.bound and self._is_end(node):
                return _path(come, node)
            if time.thread_time() > until:
                break
            if self.held > MAX_HELD:
                self.forget()
            moves = self.states.moves(node.state) if node.moves is None else node.moves
            if untried is None:
                found = ((self._least(node, move, at), len(move[0]), at) for at, move in enumerate(moves))
                untried = sorted((n + EAGERNESS * (least - n), at) for least, n, at in found if least < COSTLY)[::-1]
            while untried:
                price, at = untried[-1]
                n_added += 1
                if queue and queue[0][0] <= price - minus:
                    heappush(queue, (price - minus, minus, n_added, node, untried))
                    break
                untried.pop()
                data = moves[at][0]
                after = self._after(node, at, data)
                if after is not None and after.bound < COSTLY:
                    n_bytes = len(data) - minus
                    if n_bytes < come.get(after, (COSTLY,))[0]:
                        come[after] = n_bytes, node, data
                        heappush(queue, (n_bytes + EAGERNESS * after.bound, -n_bytes, n_added, after, None))
        raise LimitError(
            f"{self.states.under}: no ending of the text is found in {steps:,} steps; go on with the text and ask again"
        )


def _path(come: dict[Node, tuple[int, Node | None, bytes]], node: Node) -> bytes:
    path: list[bytes] = []
    before: Node | None = node
    while before is not None:
        _, before, data = come[before]
        path.append(data)
    return b"".join(reversed(path))
