"""The fewest bytes that strings, keys and numbers take, and how many of them take so many."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import Kept, kept_with
from maskwright.analysis.schema.shapes import Escapes
from maskwright.decoding.reference.json_characters import QUOTE, Characters, Ranges, is_in, left
from maskwright.decoding.reference.json_places import Quoted
from maskwright.decoding.reference.json_shapes import AutomatonShape, NumberShape, ObjectShape, goes_on
from maskwright.decoding.reference.json_values import Value, value_of

NEVER = 1 << 60
"""More bytes than anything takes."""
MOST_DIGITS = 3
"""BOUND: bytes up to which numbers are told from their spellings; some thousand have no more."""
MOST_CHARACTERS, MOST_CELLS = 20_000, 1 << 22
"""BOUND: the most characters to come that are told apart; and times the states, in 8 bytes each."""

_ESCAPED: Ranges = ((8, 10), (12, 13), (QUOTE, QUOTE), (0x5C, 0x5C))
_COSTS: tuple[tuple[int, Ranges], ...] = (
    (1, ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F))),
    (2, (*_ESCAPED, (0x80, 0x7FF))),
    (3, ((0x800, 0xD7FF), (0xE000, 0xFFFF))),
    (4, ((0x10000, 0x10FFFF),)),
    (6, ((0, 7), (11, 11), (14, 0x1F))),
)
"""The bytes of a shortest spelling, and the characters that take as many."""


def character_cost(character: int) -> int:
    """The bytes of a shortest spelling of a character within a string."""
    return next(cost for cost, ranges in _COSTS if is_in(character, ranges))


_BYTES = np.array([character_cost(byte) if byte < 0x80 else 1 for byte in range(256)])
"""What a byte of a character's UTF-8 takes in the character's shortest spelling."""


@Kept
def text_cost(text: bytes) -> int:
    """The bytes of a shortest spelling of a text within a string. text : UTF-8."""
    return sum(character_cost(ord(character)) for character in text.decode())


_PRINTABLE = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')


class CharacterCosts:
    """Bytes of shortest spellings of the strings of an automaton, and of what comes behind them.

    behind : what comes behind a string that ends in each state, in bytes; NEVER for states that do
        not accept.

    Within a character's UTF-8 a state counts the characters behind that one.
    """

    def __init__(self, characters: Characters, behind: list[int]) -> None:
        self.characters = characters
        self._behind = behind
        self._reached: list[Counter[int]] = []  # by so many bytes each state, in how many ways
        self._ended = Counter[int]()
        rows = characters.rows
        self._is_within = (rows[:, 0x80:0xC0] >= 0).any(axis=1)
        # PERF: a run of bytes that lead to one state is one edge; there are few in a row of 256
        is_first = np.ones(rows.shape, bool)
        is_first[:, 1:] = (rows[:, 1:] != rows[:, :-1]) | (_BYTES[1:] != _BYTES[:-1])
        before, byte = np.nonzero(is_first & (rows >= 0))
        every = np.arange(len(rows))  # each state has an edge, if only one that takes forever
        ends = np.append(before, every) * len(rows) + np.append(rows[before, byte], every)
        cost = np.append(_BYTES[byte], np.full(len(rows), NEVER))
        order = np.lexsort((cost, ends))
        order = order[np.append(True, np.diff(ends[order]) > 0)]  # of some edges between two states the shortest
        state, self._after = np.divmod(ends[order], len(rows))
        self._begin, self._cost = np.searchsorted(state, every), cost[order]
        into: list[list[tuple[int, int]]] = [[] for _ in rows]
        for one, after, n in zip(state.tolist(), self._after.tolist(), self._cost.tolist(), strict=True):
            into[after].append((one, n))
        first = list(behind)
        queue = [(far, at) for at, far in enumerate(first) if far < NEVER]
        heapify(queue)
        while queue:
            far, at = heappop(queue)
            for one, n in into[at] if far == first[at] else ():
                if far + n < first[one]:
                    first[one] = far + n
                    heappush(queue, (far + n, one))
        self._layers = [np.array(first, np.int64)]

    def _step(self, behind: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The bytes from each state on by an edge. behind : those behind it, by its state."""
        ways = np.minimum.reduceat(self._cost + behind[self._after], self._begin)
        found: npt.NDArray[np.int64] = np.minimum(ways, NEVER)
        return found

    def rest(self, state: int, least: int) -> int:
        """The bytes to the end of a string that has at least so many more characters.

        Where a table of all numbers up to `least` would be too large, it may be less.
        """
        layers, most = self._layers, min(MOST_CHARACTERS, MOST_CELLS // len(self._behind))
        while len(layers) <= min(least, most):
            longer = np.where(self._is_within, NEVER, self._step(layers[-1]))
            for _ in range(3 if self._is_within.any() else 0):  # the bytes behind a character's first
                longer = np.where(self._is_within, self._step(longer), longer)
            layers.append(longer)
        if least > most:  # each of the characters before the last `most` takes a byte or more
            return min(NEVER, least - most + int(layers[most].min()))
        return int(layers[max(least, 0)][state])

    def text(self, state: int, least: int) -> bytes | None:
        """The first of the shortest strings from a state on, of printable ASCII; None for others.

        least : the characters that it has at least. Nothing comes behind the strings.
        """
        found = bytearray()
        while far := self.rest(state, least - len(found)):
            row = self.characters.rows[state]
            ways = (byte for byte in _PRINTABLE if row[byte] >= 0)
            byte = next((b for b in ways if self.rest(int(row[b]), least - len(found) - 1) < far), 0)
            if not byte:
                return None
            found.append(byte)
            state = int(row[byte])
        return bytes(found)

    def n_of(self, cost: int) -> int:
        """The number of strings that take just so many bytes, with what comes behind them."""
        while len(self._reached) <= cost:
            k = len(self._reached)
            row = Counter[int]() if k else Counter({0: 1})
            for c, ranges in _COSTS:
                for state, n in self._reached[k - c].items() if c <= k else ():
                    for after, many in self.characters.steps(state, ranges).items():
                        row[after] += n * many
            self._reached.append(row)
            for state, n in row.items():
                self._ended[k + self._behind[state]] += n
        return self._ended[cost]


@kept_with
def string_costs(shape: AutomatonShape) -> CharacterCosts:
    """Those of the strings of a shape, with nothing behind them."""
    return CharacterCosts(shape.characters, [0 if accepts else NEVER for accepts in shape.characters.accepting])


@kept_with
def key_costs(shape: ObjectShape) -> list[int]:
    """The bytes of each named key within its quotation marks."""
    return [text_cost(key) for key in shape.shape.keys]


class ShortNumbers:
    """The numbers of a shape that take few bytes, and the fewest bytes of each.

    length_of : each of them -> the bytes of its shortest spelling.
    n_of : for each number of bytes up to `MOST_DIGITS`, how many have it as the shortest.
    """

    def __init__(self, shape: NumberShape) -> None:
        rows, accepting = shape.rows, shape.accepting
        self.length_of: dict[Value, int] = {}
        self.n_of: list[int] = []
        begun = [(0, b"")]
        while len(self.n_of) <= MOST_DIGITS:
            before = len(self.length_of)
            for state, text in begun:
                if accepting[state]:
                    self.length_of.setdefault(value_of(text), len(text))
            self.n_of.append(len(self.length_of) - before)
            begun = [
                (after, text + bytes([byte]))
                for state, text in begun
                for byte, after in enumerate(rows[state])
                if after >= 0
            ]


short_numbers = kept_with(ShortNumbers)


def rest_of(text: bytes, place: Quoted, escapes: Escapes) -> int:
    """The bytes that complete a certain text from within it, or NEVER."""
    ranges = place.ranges(escapes)
    if not goes_on(text, place.content, ranges):
        return NEVER
    behind = text[len(place.content) :]
    if ranges is None:
        return text_cost(behind)
    first = behind.decode()[0]
    return left(place.spelling) + text_cost(behind[len(first.encode()) :])


def written(place: Quoted) -> int:
    """The bytes of a shortest spelling of what a string says so far: at most those it took."""
    return text_cost(place.content) + len(place.spelling)
