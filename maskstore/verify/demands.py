"""The tokens of a lexer state in groups, and what each group asks of the parser, by open brackets.

In: the lexer, the parser, a vocabulary. Out: for a lexer state and a number of open
brackets the line breaks that tokens bring, and behind them sets of continuations of which the
parser must accept one.

Tokens are walked side by side, as a trie, from some lexer states at once. What a token emits is a
*sequence* of events, by number. Sequences that no parser reads, whatever lies below the top of its
stack, are dropped on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.maskstore.table import schema
from maskwright.maskstore.verify.claims import LineBreaks, members
from maskwright.maskstore.verify.configurations import WHATEVER, Configurations, Continuation
from maskwright.maskstore.verify.reading import Move, Reader, bracket_of, column_of
from maskwright.maskstore.verify.trusted import Lexer, Parser

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


AT_ONCE = 8
"""Lexer states from which tokens are walked at once."""
MOST_DEPTHS = 1 << 12
"""Most numbers of open brackets that are told apart."""

Progress = Callable[[int, int], None]


class Resolved(NamedTuple):
    """What events and what follows them ask for, at one number of open brackets.

    asked : the line breaks, and the continuation behind them; None if no parser reads the events.
    is_last : whether more open brackets make no difference.
    """

    asked: tuple[LineBreaks, Continuation] | None
    is_last: bool


class Demands:
    """What the tokens of each lexer state that a text can stop in ask of the parser.

    states : these lexer states, ascending.
    progress : is told how many states of the lexer have been read, and how many are known.
    """

    def __init__(
        self,
        lexer: Lexer,
        parser: Parser,
        configurations: Configurations,
        tokens: tuple[bytes, ...],
        progress: Progress | None = None,
    ) -> None:
        self.lexer, self.parser, self.configurations = lexer, parser, configurations
        self.reader = Reader(lexer, parser.n_columns)
        self.sequences = Sequences(self.reader, configurations)
        self._trie = Trie(tokens)
        self.states = self._reachable(progress)
        self._keys: list[tuple[int, int, int]] = []
        self._key_number: dict[tuple[int, int, int], int] = {}
        self._alternatives: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        self._moves_matter: dict[int, bool] = {}
        self._resolved: dict[tuple[int, int], tuple[frozenset[tuple[LineBreaks, Continuation]], bool]] = {}
        self._to_end = WHATEVER
        if lexer.newline != schema.NONE:
            self._to_end = len(configurations.sets)
            inserted = 1 << lexer.dedent if lexer.dedent >= 0 else 0
            configurations.sets.append(1 << (parser.n_columns - 1) | inserted)

    def _reachable(self, progress: Progress | None) -> list[int]:
        """The lexer states in which a text can stop."""
        found, agenda = {0}, [0]
        classes = self.reader.byte_classes()
        some = [classes.index(number) for number in range(max(classes) + 1)]
        while agenda:
            state = agenda.pop()
            if progress is not None:
                progress(len(found) - len(agenda) - 1, len(found))
            for byte in some:
                for _, after, _ in self.reader.read(state, 0, byte):
                    if after not in found:
                        found.add(after)
                        agenda.append(after)
        return sorted(found)

    def groups(self, progress: Progress | None = None) -> Iterator[tuple[int, Ints, list[tuple[int, ...]]]]:
        """For each lexer state the group of each token, (n_tokens,) int64; -1: it cannot be read.

        Yields the state, these, and for each group its keys: numbers that `asked` takes.
        """
        reader = TokenReader(self._trie, self.reader, self.sequences)
        for begin in range(0, len(self.states), AT_ONCE):
            states = self.states[begin : begin + AT_ONCE]
            parts = [Rows(*np.zeros((5, 0), np.int64)), *reader.rows(states)]
            rows = Rows(*(np.concatenate(each) for each in zip(*parts, strict=True)))
            keys = self._keys_of(rows)
            for state in states:
                mine = rows.origin == state
                yield state, *self._grouped(rows.node[mine], keys[mine])
            if progress is not None:
                progress(min(begin + AT_ONCE, len(self.states)), len(self.states))

    def _keys_of(self, rows: Rows) -> Ints:
        """The number of each row's key: a sequence, a state, and a move if that matters."""
        both = np.stack([rows.sequence, rows.state, rows.move])
        distinct, number = np.unique(both, axis=1, return_inverse=True)
        found = [self._key(*each) for each in distinct.T.tolist()]
        return np.array(found, np.int64)[number.reshape(-1)] if found else number.reshape(-1)

    def _key(self, sequence: int, state: int, move: int) -> int:
        if state not in self._moves_matter:
            events = (event for more, _ in self.reader.endings(state, 0) for event in more)
            self._moves_matter[state] = any(event < 0 for event in events)
        key = sequence, state, move if self._moves_matter[state] else 0
        found = self._key_number.setdefault(key, len(self._keys))
        if found == len(self._keys):
            self._keys.append(key)
        return found

    def _grouped(self, node: Ints, key: Ints) -> tuple[Ints, list[tuple[int, ...]]]:
        """The group of each token, and the keys of each group, from pairs of a node and a key."""
        both = np.unique(node * (len(self._keys) + 1) + key)
        node, key = both // (len(self._keys) + 1), both % (len(self._keys) + 1)
        first = np.flatnonzero(np.append(True, node[1:] != node[:-1])) if len(node) else node
        counts = np.diff(np.append(first, len(node)))
        one = first[counts == 1]
        distinct, group = np.unique(key[one], return_inverse=True)
        group_of_node = np.full(self._trie.n_nodes, -1, np.int64)
        group_of_node[node[one]] = group.reshape(-1)
        number: dict[tuple[int, ...], int] = {(each,): i for i, each in enumerate(distinct.tolist())}
        for begin, n in zip(first[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
            keys = tuple(key[begin : begin + n].tolist())
            group_of_node[node[begin]] = number.setdefault(keys, len(number))
        return group_of_node[self._trie.node_of_token], list(number)

    def asked(self, key: int, depth: int) -> tuple[frozenset[tuple[LineBreaks, Continuation]], bool]:
        """The alternatives of a key while some brackets are open.

        Each is line breaks and a continuation. Also whether more open brackets make no difference.
        """
        known = self._resolved.get((key, depth))
        if known is None:
            sequence, state, move = self._keys[key]
            if key not in self._alternatives:
                events = self.sequences.events[sequence]
                self._alternatives[key] = [(events + more, code) for more, code in self.reader.endings(state, move)]
            found = [self._resolve(events, code, depth) for events, code in self._alternatives[key]]
            known = (
                frozenset(each.asked for each in found if each.asked is not None),
                all(each.is_last for each in found),
            )
            self._resolved[key, depth] = known
        return known

    def _resolve(self, events: tuple[int, ...], code: int, depth: int) -> Resolved:
        """What events ask for, and then what a code of ENDINGS says may be next."""
        if depth > MOST_DEPTHS:
            raise LimitError("tokens close too many brackets: nothing was decided")
        breaks: list[tuple[tuple[int, ...], Move]] = []
        part: list[int] = []
        is_last, is_behind_newline = True, False
        for event in events:
            if event >= 0:
                part.append(column_of(event))
                if part[-1] < self.parser.n_columns:
                    depth = max(0, depth + bracket_of(event))
                    is_behind_newline = False
            elif depth == 0:
                is_last = False
                if self.lexer.column[self.lexer.newline] < 0:
                    return Resolved(None, False)
                breaks.append((tuple(part), self.reader.move_of(event)))
                part, is_behind_newline = [], True
        ahead = WHATEVER if code < 0 else code >> 1
        if code >= 0 and code & 1:
            is_last = is_last and depth > 0
            ahead = WHATEVER if depth > 0 else ahead
        if ahead == WHATEVER and is_behind_newline:
            ahead = self.lexer.after_newline
        return Resolved((tuple(breaks), self.configurations.continuation(part, ahead)), is_last)

    def under_way(self, state: int, depth: int) -> frozenset[Continuation]:
        """The continuations of which the parser must accept one while a lexeme is under way.

        Empty if this is not known, as where a newline of the layout may end.
        """
        found: set[Continuation] = set()
        for events, code in self.reader.endings(state, 0):
            resolved = self._resolve(events, code, depth)
            if resolved.asked is None:
                continue
            if resolved.asked[0]:
                return frozenset()
            found.add(resolved.asked[1])
        return frozenset(found)

    def to_end(self, state: int, depth: int) -> tuple[frozenset[Continuation], bool]:
        """The continuations by which a text may end in a lexer state while some brackets are open.

        Also whether more open brackets make no difference.

        Raises: LimitError if the end of the text emits something behind a newline of the layout.
        """
        found: set[Continuation] = set()
        is_last = True
        for events in self.reader.ends(state):
            columns: list[int] = []
            open_now = depth
            for at, event in enumerate(events):
                if event >= 0:
                    columns.append(column_of(event))
                    open_now = max(0, open_now + (bracket_of(event) if columns[-1] < self.parser.n_columns else 0))
                elif open_now == 0:
                    is_last = False
                    if at + 1 < len(events):
                        raise LimitError(
                            "the end of a text emits a terminal behind a newline of the layout: verify does not cover this"
                        )
                    columns.append(self.lexer.column[self.lexer.newline])
            if min(columns, default=0) < 0:
                continue
            if self._to_end == WHATEVER:
                columns.append(self.parser.n_columns - 1)
            found.add(self.configurations.continuation(columns, self._to_end))
        return frozenset(found), is_last
