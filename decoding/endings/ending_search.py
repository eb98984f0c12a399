"""The search for an ending of any kind of text, byte by byte, under a lower bound that it learns.

A kind of texts has one class: `states.States`, which says what follows a state, and how many bytes
are left at least. The search knows nothing else of it.

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
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, NoReturn

from maskwright.analysis.errors import LimitError
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.states import Move, States

MAX_KEPT = 64 << 20
"""Bytes of memory for what is kept from one call to the next."""
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
_NODE, _MADE = 300, 500
"""Bytes of memory of a state that was looked at, its moves aside, and of each state."""
_SAMPLE = 4_096
"""States after which the search for a far ending estimates the memory that it will take."""


class Node:
    """A state that the search has come by.

    spelt : the state of the spelling.
    bound : a lower bound of the bytes left, as far as is known.
    moves : None as long as nobody has looked at the state.
    made : what moves lead to, by their offsets, as far as it was made; None for nothing.
    time : of the processor, when it was visited, if that is limited.
    """

    __slots__ = ("bound", "made", "moves", "spelt", "state", "time")

    def __init__(self, state: Any, spelt: int, bound: int) -> None:
        self.state, self.spelt, self.bound = state, spelt, bound
        self.moves: Sequence[Move] | None = None
        self.made: dict[int, Node | None] = {}
        self.time = 0.0


class Tail(NamedTuple):
    """What completes a text by a way from which the search never turned back.

    data : the first move. after : the key of the node after it, None at the end.
    n_bytes, n_moves : of all that completes the text. seconds : that it took.

    INVARIANT: on its way all estimates are exact, and rule out what comes before each move. So a
    search that comes by with so many bytes left goes the same way, whatever it has learnt.
    """

    data: bytes
    after: tuple[Hashable, int] | None
    n_bytes: int
    n_moves: int
    seconds: float


class EndingSearch:
    """The search for endings of the texts of one store.

    From one question to the next it keeps the tails of endings: what bounds were learnt would tell
    a later search more than its limits let it find out.
    """

    def __init__(self, states: States) -> None:
        self.states, self._spelling = states, states.spelling
        self._nodes_left = self._visits_left = 0
        self._until, self._now = math.inf, 0.0
        self.forget()

    def forget(self) -> None:
        """Drop all states and tails, and all bounds that were learnt."""
        self.states.forget()
        self._tails: dict[tuple[Hashable, int], Tail] = {}
        self.unlearn()

    def unlearn(self) -> None:
        """Drop the bounds that were learnt, but no tails, nor what states know by themselves."""
        self._nodes: dict[tuple[Hashable, int], Node] = {}
        self._n_seen = self._own = 0

    @property
    def held(self) -> int:
        """The bytes of memory that it takes, about."""
        return self._own + self.states.held

    def start_of(self, text: Any) -> Node:
        """The node of a text. What is kept is dropped first if it takes more than `MAX_KEPT`."""
        if self.held + _MADE * len(self._tails) > MAX_KEPT:
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
            visited as often, and `VISITS_OF_A_NODE` times for each.

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
                tail = self._tail_of(entered, most - n_bytes)
                if tail is not None:
                    self._keep([(node, at[0] - 1) for node, _, at in agenda], path, entered)
                    return b"".join([*path, *tail])
                if n_bytes == most:
                    entered.bound = max(entered.bound, 1)
                    if not agenda:
                        return None
                    n_bytes -= len(path.pop())
                else:
                    agenda.append((entered, self._moves(entered), [0]))
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

    def _tail_of(self, node: Node, left: int) -> list[bytes] | None:
        """The moves that surely complete a text by so many bytes; None if none are known to.

        None as well where the search would be given up on the way.
        """
        if not left:
            return [] if self._is_end(node) else None
        tail = self._tails.get((node.state, node.spelt))
        if tail is None or tail.n_bytes != left or tail.n_moves > min(self._nodes_left, self._visits_left):
            return None
        if self._until < math.inf:
            self._now = time.thread_time()
            if self._now + tail.seconds > self._until:
                return None
        found = [tail.data]
        while tail.after is not None:
            tail = self._tails[tail.after]
            found.append(tail.data)
        return found

    def _keep(self, way: list[tuple[Node, int]], path: list[bytes], end: Node) -> None:
        """Keep the tails of an ending that was found.

        way : its nodes, each with the offset of its move. path : the moves.
        end : the node after them, which is the end of the text or has a tail.

        PERF: a text that goes on another way comes soon by one of the same states.
        """
        key = end.state, end.spelt
        after = self._tails.get(key)
        n_bytes, n_moves, seconds = (0, 0, 0.0) if after is None else after[2:]
        following = None if after is None else key
        for (node, at), data in zip(reversed(way), reversed(path), strict=True):
            n_bytes, n_moves = n_bytes + len(data), n_moves + 1
            others = ((node.moves[before][0], node.made.get(before)) for before in range(at)) if node.moves else ()
            may_turn = any(
                other is not None and len(move) + self.states.bound(other.state) <= n_bytes for move, other in others
            )
            if may_turn or self.states.bound(node.state) != n_bytes:
                return
            key = node.state, node.spelt
            self._tails[key] = Tail(data, following, n_bytes, n_moves, seconds + self._now - node.time)
            following = key

    def _moves(self, node: Node) -> Sequence[Move]:
        """The moves of a node that is visited."""
        if node.moves is None:
            node.moves = self.states.moves(node.state)
            self._count_node(len(node.moves))
        self._visits_left -= 1
        if self._visits_left < 0:
            self._give_up(f"{self._n_seen:,} states, each visited often")
        if self._until < math.inf:
            self._now = node.time = time.thread_time()
            if self._now > self._until:
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
