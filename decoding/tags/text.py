"""A text of the host of a structural tag: its rules are followed top down, as far as the text goes.

A *position* is a place in a literal, and what comes behind it. A text stands at several of them at
once, where rules begin with the same bytes.

Source: E. Scott, A. Johnstone, GLL parsing (2010): descents that share what they go on with. Those
that stand inside different rules are not merged; where rules are ambiguous for long, they come to
`MOST_PLACES`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Self, TypeAlias
from weakref import WeakValueDictionary

from maskwright.analysis.composition.tag_rules import NOTHING
from maskwright.analysis.errors import LimitError
from maskwright.analysis.kept import kept_with
from maskwright.analysis.marks import MARK, part_of_mark
from maskwright.decoding.endings.ending import Ending
from maskwright.decoding.endings.ending_spelling import PREFERRED
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.state import TextState
from maskwright.maskstore.composition.splits import Split
from maskwright.maskstore.composition.tables import TagTables

MOST_PLACES = 20_000
"""BOUND: the beginnings of bodies at which a text may stand at once."""

MOST_BYTES = 200_000
"""BOUND: the bytes of an ending; 5 us each."""


class Rest:
    """What comes behind a rule: a node, and behind its body the rest of the rule around it."""

    __slots__ = ("__weakref__", "around", "least", "node")

    def __init__(self, node: int, around: Rest | None, least: int) -> None:
        self.node, self.around = node, around
        self.least = least
        """The length of a shortest text of it, in bytes."""


Position: TypeAlias = tuple[int, int, Rest | None]
"""A node that is a literal, how much of it was read, and what comes behind its body. The text may
end at NOTHING."""
State: TypeAlias = tuple[Position, ...]


class _Descent:
    """How rules are followed."""

    def __init__(self, tables: TagTables) -> None:
        rules = tables.rules
        self._nodes, self._rules, self._least = rules.nodes, rules.rules, rules.least
        # INVARIANT: equal rests are one object. (Where two threads make one at the same time, two
        # texts are not known to be alike.)
        self._rests: WeakValueDictionary[tuple[int, int], Rest] = WeakValueDictionary()
        self.start = self._opened((first, None) for first in self._rules[0])

    def _opened(self, agenda: Iterable[tuple[int, Rest | None]]) -> State:
        """The positions at which nodes begin, each with what comes behind its body."""
        found: list[Position] = []
        todo = list(agenda)
        seen = set(todo)
        while todo:
            node, rest = todo.pop()
            if node == NOTHING:
                if rest is None:
                    found.append((NOTHING, 0, None))
                    continue
                new = [(rest.node, rest.around)]
            else:
                value, behind = self._nodes[node]
                if isinstance(value, bytes):
                    found.append((node, 0, rest))
                    continue
                inner = rest if behind == NOTHING else self._rest(behind, rest)
                new = [(first, inner) for first in self._rules[value]]
            todo += [one for one in new if one not in seen]
            seen.update(new)
            if len(seen) > MOST_PLACES:
                raise LimitError(
                    f"a text may go on at more than {MOST_PLACES:,} places of its structural tag: give alternatives a "
                    "common beginning, and repeat nothing that may be empty"
                )
        return tuple(found)

    def _rest(self, node: int, around: Rest | None) -> Rest:
        key = node, id(around)  # INVARIANT: a rest that is there holds the one around it
        found = self._rests.get(key)
        if found is None:
            found = self._rests[key] = Rest(node, around, self._least_behind(node, around))
        return found

    def _least_behind(self, node: int, rest: Rest | None) -> int:
        """The length of a shortest text of a node and what comes behind it."""
        found = 0 if rest is None else rest.least
        while node != NOTHING:
            value, node = self._nodes[node]
            found += len(value) if isinstance(value, bytes) else self._least[value]
        return found

    def moves(self, state: State) -> Iterator[tuple[int, State]]:
        """The bytes that may come next but for marks, and the states behind them."""
        by_byte: dict[int, list[Position]] = {}
        for position in state:
            if position[0] != NOTHING:
                by_byte.setdefault(self._nodes[position[0]][0][position[1]], []).append(position)  # type: ignore[index]
        return ((byte, self._stepped(some, 1)) for byte, some in by_byte.items() if byte < MARK)

    def _stepped(self, state: Iterable[Position], n: int) -> State:
        """The state behind n bytes that some literals have next."""
        found: list[Position] = []
        ended: list[tuple[int, Rest | None]] = []
        for node, at, rest in state:
            literal, behind = self._nodes[node]
            if at + n < len(literal):  # type: ignore[arg-type]
                found.append((node, at + n, rest))
            else:
                ended.append((behind, rest))
        return tuple(dict.fromkeys((*found, *self._opened(ended)))) if ended else tuple(found)

    def followed(self, state: State, texts: Sequence[bytes]) -> Iterator[tuple[int, int, int, State]]:
        """The beginnings of some texts that may come in a state. texts : sorted.

        Yields the length of each, which texts begin so, as a range, and the state behind it.
        """
        agenda = [(0, 0, len(texts), state)]
        while agenda:
            n, begin, end, state = agenda.pop()
            if n:
                yield n, begin, end, state
            if begin == end or n == len(texts[end - 1]):
                continue
            before = texts[begin][:n]
            for byte, after in self.moves(state):
                first = bisect_left(texts, before + bytes((byte,)), begin, end)
                last = bisect_left(texts, before + bytes((byte + 1,)), first, end)
                if first < last:
                    agenda.append((n + 1, first, last, after))

    def read(self, state: State, data: bytes) -> State:
        """The state behind some bytes; () if they may not come."""
        at = 0
        while at < len(data) and state:
            # PERF: of one literal, all at once
            one = self._nodes[state[0][0]][0][state[0][1] :] if len(state) == 1 and state[0][0] != NOTHING else b""  # type: ignore[index]
            n = min(len(one), len(data) - at) or 1
            state = self._stepped([each for each in state if self._begins(each, data[at : at + n])], n)
            at += n
        return state

    def _begins(self, position: Position, data: bytes) -> bool:
        """Whether the literal at a position goes on with some bytes."""
        return position[0] != NOTHING and self._nodes[position[0]][0].startswith(data, position[1])  # type: ignore[union-attr]

    def parts(self, state: State) -> list[int]:
        """The parts that may begin, ascending."""
        found = set()
        for node, at, _ in state:
            if node != NOTHING:
                literal: bytes = self._nodes[node][0]  # type: ignore[assignment]
                if literal[at] == MARK:
                    found.add(part_of_mark(literal, at))
        return sorted(found)

    def ending(self, state: State) -> bytes:
        """A shortest text that completes one: of several the first in the order of `PREFERRED`.

        Raises: LimitError if it is too long.
        """
        if min(map(self._least_from, state)) > MOST_BYTES:
            raise LimitError(f"the shortest ending has more than {MOST_BYTES:,} bytes, so it is not written out")
        found = bytearray()
        while True:
            least = min(self._least_from(each) for each in state)
            if not least:
                return bytes(found)
            best = [each for each in state if self._least_from(each) == least]
            byte = min((self._nodes[node][0][at] for node, at, _ in best), key=PREFERRED.index)  # type: ignore[index]
            found.append(byte)
            state = self.read(tuple(best), bytes((byte,)))

    def _least_from(self, position: Position) -> int:
        return self._least_behind(position[0], position[2]) - position[1]


@kept_with
def descent_of(tables: TagTables) -> _Descent:
    """How the rules of a host are followed: the same for all texts."""
    return _Descent(tables)


class TagText(TextState):
    """One text of the host of a structural tag, in which parts are marks."""

    said: list[int | bytes]

    def __init__(self, store: TagTables, max_rollback: int) -> None:
        super().__init__(store, max_rollback)
        self.under = store.name
        self.descent = descent_of(store)
        self.reset()

    @property
    def state(self) -> State:
        """Where the text stands."""
        return self._states[-1]

    def reset(self) -> None:
        self.said = []
        self._states = [self.descent.start]

    def read(self, data: bytes, commit: bool) -> int:
        state = self.descent.read(self._states[-1], data)
        if state and commit:
            self.said.append(data)
            self._states = [*self._states[-self.max_rollback :], state] if self.max_rollback else [state]
        return constants.OK if state else constants.ILLEGAL

    def read_token(self, token: int, commit: bool) -> int:
        """As `TextState.read_token`, of a token with text: a host is read by bytes."""
        return self.read(self.store.vocabulary.tokens[token], commit)

    def tokens(self, marked: Container[int]) -> tuple[list[int], list[Split]]:
        """The tokens that may come, and the cuts of others where a part may begin.

        marked : the tokens with a byte of a mark, which are none of these.
        """
        descent, every = self.descent, self.store.vocabulary.sorted_texts
        texts, tokens, cuts = every.texts, list[int](), list[Split]()
        for n, begin, end, state in descent.followed(self.state, texts):
            whole = begin
            while whole < end and len(texts[whole]) == n:
                whole += 1
            ids = every.ids[begin:end].tolist()
            tokens += ids[: whole - begin]
            if whole < end and descent.parts(state):
                behind = zip(texts[whole:end], ids[whole - begin :], strict=True)
                tails = tuple((text[n:], token) for text, token in behind if token not in marked)
                cuts.append(Split(texts[begin][:n], ids[0] if begin < whole else -1, tails))
        if self.can_end():
            tokens += self.store.vocabulary.eos
        return tokens, cuts

    def parts_behind(self, data: bytes) -> list[int]:
        """The parts that may begin behind some bytes."""
        return self.descent.parts(self.descent.read(self.state, data))

    def next_bytes(self, data: bytes = b"") -> bytes:
        return bytes(byte for byte, _ in self.descent.moves(self.descent.read(self.state, data)))

    def short_ending(self) -> Ending:
        """As `TextState.short_ending`, without tokens: it may hold marks."""
        return Ending(self.descent.ending(self.state), ())

    def can_end(self) -> bool:
        return any(node == NOTHING for node, _, _ in self._states[-1])

    def is_finished(self) -> bool:
        return False

    def remembered(self) -> int:
        return len(self._states) - 1

    def undo(self, n: int) -> None:
        del self._states[-n:], self.said[-n:]

    def become(self, other: Any) -> TextState:
        self.max_rollback, self._states, self.said = other.max_rollback, other._states.copy(), other.said.copy()
        return self

    def copy(self) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.become(self)
        return other

    def key(self) -> object:
        return frozenset(self._states[-1])
