"""The tokens of a lexer state in groups, and what each group asks of the parser, by open brackets.

In: the lexer, the parser, a vocabulary. Out: for a lexer state and a number of open
brackets the line breaks that tokens bring, and behind them sets of continuations of which the
parser must accept one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from maskwright.analysis.errors import LimitError
from maskwright.maskstore.table import schema
from maskwright.maskstore.verify.asked import Ints, Rows, Sequences, TokenReader, Trie
from maskwright.maskstore.verify.claims import LineBreaks
from maskwright.maskstore.verify.configurations import WHATEVER, Configurations, Continuation
from maskwright.maskstore.verify.reading import Move, Reader, bracket_of, column_of
from maskwright.maskstore.verify.trusted import Lexer, Parser

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
