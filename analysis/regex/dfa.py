"""Minimal deterministic automata over bytes, and their boolean operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError, TerminalError
from maskwright.analysis.regex.minimise import column_classes, distances, minimise

MAX_STATES = 60_000
"""BOUND: default limit on the states of one terminal's automaton.

Its rows take 80 KB for 80 states, 60 MB at the limit.
"""

_PREFERRED = bytes([*range(0x20, 0x7F), *range(0x20), *range(0x7F, 0x100)])
"""All bytes in the order in which `Dfa.shortest` tries them."""


@dataclass(frozen=True, slots=True, eq=False)
class Dfa:
    """A regular set of byte strings as its minimal automaton; equal sets have equal arrays.

    next_state : (n_states, 256) int32, read-only; the next state, -1 for no transition.
    is_accepting : (n_states,) bool, read-only.

    INVARIANT: state 0 is initial. Every state is reachable and can reach an accepting one. No two
    states are equivalent. States are numbered breadth-first in the order of bytes. The empty set
    has one state, which does not accept, and no transition. `Dfa.minimal` establishes all of it.
    """

    next_state: npt.NDArray[np.int32]
    is_accepting: npt.NDArray[np.bool_]
    _hash: int = field(default=0, init=False, repr=False)  # 0 until it is asked for

    @classmethod
    def minimal(cls, next_state: npt.ArrayLike, is_accepting: npt.ArrayLike) -> Dfa:
        """The minimal automaton of any deterministic one with initial state 0.

        next_state : (n, 256) integers; the next state, -1 for no transition.
        is_accepting : (n,) bool.

        Cost: as `minimise`.
        """
        table, accepting = minimise(np.asarray(next_state, dtype=np.int32), np.asarray(is_accepting, dtype=np.bool_))
        table.flags.writeable = accepting.flags.writeable = False
        return cls(table, accepting)

    @classmethod
    def literal(cls, text: bytes) -> Dfa:
        """The set of the one string `text`."""
        n = len(text)
        table = np.full((n + 1, 256), -1, dtype=np.int32)
        table[np.arange(n), np.frombuffer(text, dtype=np.uint8)] = np.arange(1, n + 1)
        accepting = np.zeros(n + 1, dtype=np.bool_)
        accepting[n] = True
        table.flags.writeable = accepting.flags.writeable = False
        return cls(table, accepting)

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.is_accepting)

    @property
    def is_empty(self) -> bool:
        """Whether the set has no string."""
        return not self.is_accepting.any()

    def run(self, data: bytes, state: int = 0) -> int:
        """The state after reading `data`, or -1 if no accepted string goes on that way.

        state : the state at the start; 0 is the initial one.
        """
        for byte in data:
            if state < 0:
                break
            state = int(self.next_state[state, byte])
        return state

    def matches(self, data: bytes) -> bool:
        """Whether `data` is in the set.

        Example:
            >>> Dfa.literal(b"def").matches(b"def"), Dfa.literal(b"def").matches(b"de")
            (True, False)
        """
        state = self.run(data)
        return state >= 0 and bool(self.is_accepting[state])

    def shortest(self) -> bytes:
        """A shortest string of the set.

        Among several it is the first in an order of bytes in which printable ASCII comes first.

        Raises: TerminalError if the set is empty.
        """
        if self.is_empty:
            raise TerminalError("the automaton accepts nothing, so it has no shortest string")
        _, representatives = column_classes(self.next_state)
        distance = distances(self.next_state[:, representatives].tolist(), self.is_accepting.tolist())
        state, text = 0, bytearray()
        while distance[state]:
            row = self.next_state[state].tolist()
            byte = next(b for b in _PREFERRED if distance.get(row[b]) == distance[state] - 1)
            text.append(byte)
            state = row[byte]
        return bytes(text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dfa):
            return NotImplemented
        if self is other:
            return True
        same_acceptance = np.array_equal(self.is_accepting, other.is_accepting)
        return same_acceptance and np.array_equal(self.next_state, other.next_state)

    def __hash__(self) -> int:
        # PERF: automata are keys of caches; a look-up would read a kilobyte for each state
        if not self._hash:
            found = hash((self.next_state.tobytes(), self.is_accepting.tobytes()))
            object.__setattr__(self, "_hash", found or 1)
        return self._hash

    def __repr__(self) -> str:
        n_transitions = int((self.next_state >= 0).sum())
        shortest = b"" if self.is_empty else self.shortest()
        example = "nothing" if self.is_empty else f"{shortest[:20]!r}{'...' * (len(shortest) > 20)}"
        return f"<Dfa {self.n_states} states, {n_transitions} transitions, accepts {example}>"


def intersect(left: Dfa, right: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
    """The strings that are in both sets.

    Raises: LimitError if the product automaton has more than `max_states` reachable states.
    Cost: O(reachable states of the product).
    """
    return _product(left, right, lambda a, b: a & b, max_states)


def union(left: Dfa, right: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
    """The strings that are in `left`, `right` or both. Raises and cost: as `intersect`."""
    return _product(left, right, lambda a, b: a | b, max_states)


def difference(left: Dfa, right: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
    """The strings that are in `left` and not in `right`. Raises and cost: as `intersect`."""
    return _product(left, right, lambda a, b: a & ~b, max_states)


def complement(dfa: Dfa) -> Dfa:
    """All byte strings, not only valid UTF-8, that are not in the set."""
    table, accepting = _with_sink(dfa)
    return Dfa.minimal(table, ~accepting)


def concatenate(left: Dfa, right: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
    """The strings ``u v`` with u in `left` and v in `right`.

    Raises: LimitError if more than `max_states` states are needed before minimising.
    Cost: exponential in the states of `right` at worst.
    """
    classes, representatives = column_classes(np.vstack([left.next_state, right.next_state]))
    first = left.next_state[:, representatives].tolist()
    second = right.next_state[:, representatives].tolist()

    def state(at: int, inside: frozenset[int]) -> tuple[int, frozenset[int]]:
        return (at, inside | {0}) if at >= 0 and left.is_accepting[at] else (at, inside)

    states = [state(0, frozenset())]
    number = {states[0]: 0}
    rows: list[list[int]] = []
    for at, inside in states:  # grows while it is read
        look()
        row = []
        for c in range(len(representatives)):
            after = frozenset(second[s][c] for s in inside) - {-1}
            key = state(first[at][c] if at >= 0 else -1, after)
            if key == (-1, frozenset()):
                row.append(-1)
                continue
            if number.setdefault(key, len(states)) == len(states):
                states.append(key)
            row.append(number[key])
        _check_size(len(states), max_states, "concatenation")
        rows.append(row)
    accepting = [any(right.is_accepting[s] for s in inside) for _, inside in states]
    return Dfa.minimal(np.array(rows, dtype=np.int32)[:, classes], accepting)


def _product(
    left: Dfa,
    right: Dfa,
    accept: Callable[[npt.NDArray[np.bool_], npt.NDArray[np.bool_]], npt.NDArray[np.bool_]],
    max_states: int,
) -> Dfa:
    """The minimal automaton over reachable pairs of states; `accept` says which pairs accept.

    Both automata are completed by a sink. Pairs are found frontier by frontier.
    """
    (a, accepts_a), (b, accepts_b) = _with_sink(left), _with_sink(right)
    classes, representatives = column_classes(np.vstack([left.next_state, right.next_state]))
    a, b = a[:, representatives].astype(np.int64), b[:, representatives].astype(np.int64)
    known = np.zeros(1, dtype=np.int64)  # codes of pairs, in the order of their numbers
    frontier = in_order = known
    successors = []
    while len(frontier):
        look()
        codes = a[frontier // len(b)] * len(b) + b[frontier % len(b)]
        successors.append(codes)
        # PERF: `np.setdiff1d(codes, known)`, which hashes and sorts all that is known each time
        found = np.sort(codes, axis=None)
        found = found[np.append(True, found[1:] != found[:-1])]
        at = np.searchsorted(in_order, found)
        is_new = in_order[np.minimum(at, len(in_order) - 1)] != found
        frontier = found[is_new]
        in_order = np.insert(in_order, at[is_new], frontier)
        known = np.concatenate([known, frontier])
        _check_size(len(known), max_states, "product")
    order = np.argsort(known)
    table = order[np.searchsorted(known, np.vstack(successors), sorter=order)]
    return Dfa.minimal(table[:, classes], accept(accepts_a[known // len(b)], accepts_b[known % len(b)]))


def _with_sink(dfa: Dfa) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """The automaton with one more state, to which all missing transitions lead.

    Returns next_state : (n_states + 1, 256) int32 and is_accepting : (n_states + 1,) bool.
    """
    n = dfa.n_states
    table = np.vstack([dfa.next_state, np.full((1, 256), -1, dtype=np.int32)])
    table[table < 0] = n
    return table, np.append(dfa.is_accepting, False)


def _check_size(n: int, max_states: int, operation: str) -> None:
    if n > max_states:
        raise LimitError(f"the {operation} of two automata needs more than {max_states} states; raise max_states")
