"""What each token asks of the parser, from each lexer state: `reading` over a whole vocabulary.

Tokens are walked side by side, as a trie, from some lexer states at once. What a token emits is a
*sequence* of events, by number. Sequences that no parser reads, whatever lies below the top of its
stack, are dropped on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.verify.claims import members
from maskwright.maskstore.verify.configurations import Configurations
from maskwright.maskstore.verify.reading import Reader, column_of

Ints = npt.NDArray[np.int64]


class Trie:
    """A vocabulary as a trie. Node 0 is the root; nodes ascend by depth.

    byte : (n,) the last byte of each node.
    child_start, child : (n + 1,) and (n - 1,); where its children are.
    node_of_token : for each token its node, the root for one without bytes. depth : of the longest.
    """

    def __init__(self, tokens: tuple[bytes, ...]) -> None:
        number: dict[tuple[int, int], int] = {}
        parents, last = [0], [0]
        self.node_of_token = np.zeros(len(tokens), np.int64)
        at = dict.fromkeys((i for i, token in enumerate(tokens) if token), 0)
        depth = 0
        while at:
            reached: dict[int, int] = {}
            for token, node in at.items():
                key = node, tokens[token][depth]
                found = number.get(key)
                if found is None:
                    found = number[key] = len(parents)
                    parents.append(node)
                    last.append(key[1])
                if depth + 1 == len(tokens[token]):
                    self.node_of_token[token] = found
                else:
                    reached[token] = found
            at = reached
            depth += 1
        self.n_nodes = len(parents)
        self.has_token = np.zeros(len(parents), np.bool_)
        self.has_token[self.node_of_token] = True
        self.byte = np.array(last, np.int64)
        self.depth = depth
        parent = np.array(parents[1:], np.int64)
        self.child = 1 + np.argsort(parent, kind="stable")
        self.child_start = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=len(parents)))]).astype(
            np.int64
        )


class Rows(NamedTuple):
    """Ways to read tokens, each a row of arrays (n,) int64.

    origin, state : the lexer state before, and after. node : of the trie.
    sequence : what was emitted. move : what was done to the column of a newline.
    """

    origin: Ints
    node: Ints
    state: Ints
    sequence: Ints
    move: Ints

    def taken(self, which: npt.NDArray[np.bool_] | Ints) -> Rows:
        """The rows of an index or a mask."""
        return Rows(*(each[which] for each in self))


class Sequences:
    """Sequences of events by number; 0 is the empty one. -1 stands for those that no parser reads.

    events : of each.
    """

    def __init__(self, reader: Reader, configurations: Configurations) -> None:
        self._reader = reader
        self._configurations = configurations
        self._every = (1 << configurations.parser.n_states) - 1
        self.events: list[tuple[int, ...]] = [()]
        self._tops = [self._every]
        self._number: dict[tuple[int, ...], int] = {(): 0}
        self._tops_known: dict[tuple[int, int], int] = {}

    def longer(self, number: int, more: tuple[int, ...]) -> int:
        """The number of a sequence and some more events."""
        for event in more:
            if number < 0:
                break
            events = (*self.events[number], event)
            found = self._number.get(events)
            if found is None:
                tops = self._after(self._tops[number], event)
                found = self._number[events] = len(self.events) if tops else -1
                if tops:
                    self.events.append(events)
                    self._tops.append(tops)
            number = found
        return number

    def _after(self, tops: int, event: int) -> int:
        """The states that may be on top after an event, any behind a newline: as bits."""
        if event < 0:
            return self._every
        column = column_of(event)
        found = self._tops_known.get((tops, column))
        if found is None:
            found, mode = 0, column - self._reader.n_columns
            for top in members(tops):
                if mode < 0:
                    found |= self._configurations.ways.tops_after(top, column)
                elif self._configurations.mode_of[top] == mode:
                    found |= 1 << top
            self._tops_known[tops, column] = found
        return found


class TokenReader:
    """Reads all tokens from lexer states."""

    def __init__(self, trie: Trie, reader: Reader, sequences: Sequences) -> None:
        self.trie = trie
        self.reader = reader
        self.sequences = sequences
        classes = np.array(reader.byte_classes(), np.int64)
        self._byte_of_class = np.unique(classes, return_index=True)[1].tolist()
        self._class_of_node = classes[trie.byte]

    def rows(self, states: list[int]) -> Iterator[Rows]:
        """The ways to read all tokens from some lexer states, a length of tokens at a time."""
        n = len(states)
        zeros = np.zeros(n, np.int64)
        rows = Rows(np.array(states, np.int64), zeros, np.array(states, np.int64), zeros, zeros)
        for _ in range(self.trie.depth):
            rows = self._step(rows)
            if not len(rows.node):
                return
            yield rows.taken(self.trie.has_token[rows.node])

    def _step(self, rows: Rows) -> Rows:
        """The ways to read one byte more."""
        counts = self.trie.child_start[rows.node + 1] - self.trie.child_start[rows.node]
        which, offset = _each(counts)
        node = self.trie.child[self.trie.child_start[rows.node][which] + offset]
        keys = ((rows.state[which] << 20) | rows.move[which]) << 9 | self._class_of_node[node]
        distinct, number = np.unique(keys, return_inverse=True)
        outcomes = [
            self.reader.read(key >> 29, (key >> 9) & 0xFFFFF, self._byte_of_class[key & 511])
            for key in distinct.tolist()
        ]
        starts = np.concatenate([[0], np.cumsum([len(each) for each in outcomes])]).astype(np.int64)
        number = number.reshape(-1)
        again, offset = _each(np.diff(starts)[number])
        at = starts[number[again]] + offset
        which, node = which[again], node[again]
        flat = [one for each in outcomes for one in each]
        sequence = self._longer(rows.sequence[which], at, [one.events for one in flat])
        found = Rows(
            rows.origin[which],
            node,
            np.array([one.state for one in flat], np.int64)[at] if flat else at,
            sequence,
            np.array([one.move for one in flat], np.int64)[at] if flat else at,
        )
        return found.taken(sequence >= 0)

    def _longer(self, before: Ints, at: Ints, events: list[tuple[int, ...]]) -> Ints:
        """The sequences with the events of outcomes `at`."""
        found = before.copy()
        emits = np.array([bool(each) for each in events], np.bool_)[at] if events else np.zeros(0, np.bool_)
        keys, number = np.unique(before[emits] * max(1, len(events)) + at[emits], return_inverse=True)
        longer = [self.sequences.longer(key // len(events), events[key % len(events)]) for key in keys.tolist()]
        found[emits] = np.array(longer, np.int64)[number.reshape(-1)]
        return found


def _each(counts: Ints) -> tuple[Ints, Ints]:
    """For each i and each j below counts[i]: i, and j. Two arrays."""
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
