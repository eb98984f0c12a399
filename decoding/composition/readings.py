"""Readings of a text of several languages: in the host, or in a part that stands in it.

A *reading* is one way to cut the text so far into host and parts. Readings are *closed* if for each
of them that may leave its language here, entering a part or returning to the host, the reading that
has done so is among them. Bytes are then read by each reading within its language, or cut in two:
the first bytes within the language, the others behind a border.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import proxy

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.kept import cached_property
from maskwright.analysis.marks import MARK, mark
from maskwright.decoding.composition.cursors import Cursor, cursor_of
from maskwright.decoding.composition.exits import Exit, Exits, HostState
from maskwright.decoding.composition.json_string_cursor import start_of
from maskwright.maskstore.composition.splits import Splits, rest_of_character, splits_of
from maskwright.maskstore.composition.tables import (
    AnyPart,
    ComposedTables,
    TextPart,
    TokenPart,
    TokenRunPart,
    may_end,
)

MOST_READINGS = 512
"""The most readings of a text at a time."""

PIECE = 16
"""Longer bytes are read in pieces of so many. Equal readings are merged between two pieces, and not
within one, where the ways to cut it multiply."""

MOST_STATES = 512
"""The most states of a host that are kept; when there are more, all are forgotten."""

MOST_ALLOWED = 1 << 16
"""The most byte strings, and tokens, of which a host's state keeps what is asked of them."""

HOST = -1
"""Instead of a part's number: the reading is in the host."""


class Reading(NamedTuple):
    """One way to cut the text so far.

    cursor : where it stands in the innermost language. INVARIANT: others may have it too, so it is
        not advanced, but for the one that a text has as its own (`ComposedText`).
    part : the part's number, or HOST.
    back : the host behind the part, if it is in one.
    left : the tokens that the part may still take; -1 for any number.
    """

    cursor: Cursor
    part: int
    back: Back | None
    left: int = -1

    def counted(self) -> Reading:
        """The reading behind one more token of its part."""
        return self._replace(left=self.left - 1) if self.left > 0 else self

    def behind(self, data: bytes) -> Reading:
        """The reading behind bytes of its language, which may come. Nobody else has its cursor."""
        cursor = self.cursor.copy()
        cursor.read(data)
        return self._replace(cursor=cursor)

    def key(self) -> object:
        """Readings with equal keys have the same future."""
        back = None if self.back is None else self.back.cursor.key()
        return self.part, back, self.cursor.key(), self.left


@dataclass(slots=True, eq=False)
class Known:
    """A state of a text that others may come to again: what follows from it is found once.

    readings, closed : of the text, as they were found, and closed.
    mask : (n_words,) int32, the tokens that may come next; None if not known yet, or if there are
        none.
    after : the states behind tokens.
    is_current : whether it is still among those that are kept.
    """

    readings: list[Reading]
    closed: list[Reading] | None = None
    mask: npt.NDArray[np.int32] | None = None
    after: dict[int, Known] = field(default_factory=dict)
    is_current: bool = True


class Back:
    """The host as it goes on behind a part: its text with the part's mark.

    host : the cursor of the host before the part.
    more : what is added to it: the bytes before the part, and its mark.
    """

    def __init__(self, rules: Rules, host: Cursor, more: bytes) -> None:
        self._rules: Rules = proxy(rules)
        self._source, self._more = host, more

    @cached_property
    def cursor(self) -> Cursor:
        """The host's cursor behind the part; not to be advanced."""
        made = self._source.copy()
        made.read(self._more)
        return made

    @cached_property
    def closed(self) -> list[Reading]:
        """The closed readings behind the part."""
        return self._rules.close([Reading(self.cursor, HOST, None)])

    @cached_property
    def state(self) -> HostState:
        """What is known of the host behind the part."""
        return self._rules.host_state(self.cursor.key())

    def allows(self, data: bytes) -> bool:
        """Whether bytes may come behind the part."""
        allowed = self.state.allowed
        found = allowed.get(data)
        if found is None:
            found = self._rules.can_read(self.closed, data)
            if len(allowed) < MOST_ALLOWED:
                allowed[data] = found
        return found

    def exits(self, number: int) -> Exits:
        """The tokens that can leave a part.

        number : the part's.

        PERF: how the host goes on does not depend on where the part stands, so this is found once.
        """
        found = self.state.exits.get(number)
        if found is None:
            part = self._rules.tables.parts[number]
            found = self.state.exits[number] = Exits(
                self._find_exits(part), self._long_exits(part), self._rules.splits.id_of
            )
        return found

    def _find_exits(self, part: AnyPart) -> tuple[Exit, ...]:
        first = self.first()
        splits = [
            split
            for byte in sorted(first)
            for split in self._rules.splits.before_byte(byte)
            if may_end(part, split.before)
        ]
        found: dict[bytes, tuple[int, list[int]]] = {}
        for split in splits:
            tokens = [token for data, token in split.behind if self.allows(data)]
            if tokens:
                found.setdefault(split.before, (split.token, []))[1].extend(tokens)
        return tuple((before, token, tuple(sorted(tokens))) for before, (token, tokens) in sorted(found.items()))

    def _long_exits(self, part: AnyPart) -> tuple[tuple[bytes, int], ...]:
        """The long tokens that can leave a part, as far as bytes around the border tell."""
        first = self.first()
        return tuple(
            (data, token)
            for data, token in self._rules.splits.long
            if any(
                data[at] in first and may_end(part, data[:at][-PIECE:]) and self.allows(data[at : at + PIECE])
                for at in range(1, len(data))
            )
        )

    def first(self) -> frozenset[int]:
        """The bytes that may come behind the part."""
        if self.state.first is None:
            self.state.first = frozenset(byte for one in self.closed for byte in one.cursor.next_bytes())
        return self.state.first

    def any_may_follow(self, number: int) -> bool:
        """Whether most bytes may come behind a part, whose exits nobody has asked for yet."""
        return number not in self.state.exits and len(self.first()) > MARK // 2

    def crossing(self, token: int, data: bytes) -> int:
        """Where a token has bytes that may come behind the part (`HostState.crossing`)."""
        found = self.state.crossing.get(token)
        if found is None:
            first = self.first()
            found = 0 if first.isdisjoint(data) else 1 if first.isdisjoint(data[1:]) else 2
            if len(self.state.crossing) < MOST_ALLOWED:
                self.state.crossing[token] = found
        return found


class Rules:
    """How texts of a composition are read.

    tables : the composition's stores.
    max_rollback : the tokens of a text that can be taken back.

    host : the host's text at its start; not to be advanced.
    marks : by part, its mark. budgets : how many tokens it may take; -1 for any number.
    token_parts : of the parts that are a token, mark and mask: (n_words,) int32.
    """

    def __init__(self, tables: ComposedTables, max_rollback: int) -> None:
        # INVARIANT: what the tables keep refers to none of its owners, and goes with them at once
        self.tables = proxy(tables)
        self.splits: Splits = splits_of(tables.vocabulary)
        self._max_rollback = max_rollback + 2  # a look ahead forgets the oldest token
        self.host = cursor_of(tables.host.matcher(self._max_rollback).text, ())
        self.marks = tuple(map(mark, range(len(tables.parts))))
        self.budgets = tuple(part.most if isinstance(part, TextPart | TokenRunPart) else -1 for part in tables.parts)
        self.token_parts = [
            (each, part.words.view(np.int32))
            for each, part in zip(self.marks, tables.parts, strict=True)
            if isinstance(part, TokenPart)
        ]
        self._starts: list[Cursor | None] = [None for _ in tables.parts]
        self._any_first: frozenset[int] = frozenset().union(*tables.first)
        self._states: dict[object, HostState] = {}

    def host_state(self, key: object) -> HostState:
        """What is known of the host's state with a key (`Cursor.key`)."""
        found = self._states.get(key)
        if found is None:
            if len(self._states) >= MOST_STATES:
                self._states = {}
            found = self._states.setdefault(key, HostState())
        return found

    def start(self, number: int) -> Cursor | None:
        """A part's text, at its start, which is not to be advanced; None for a token."""
        found = self._starts[number]
        if found is None:
            found = self._starts[number] = start_of(self.tables.parts[number], self.splits, self._max_rollback)
        return found

    def entered(self, host: Cursor, before: bytes = b"") -> Iterator[tuple[int, Cursor]]:
        """The parts that may begin in the host behind some bytes, each with its start."""
        for number in host.parts_behind(before, self.marks):
            if (start := self.start(number)) is not None:
                yield number, start

    def entering(self, number: int, start: Cursor, back: Back) -> Reading:
        """The reading at the start of a part."""
        return Reading(start, number, back, self.budgets[number])

    def close(self, readings: list[Reading]) -> list[Reading]:
        """The readings, and those that have crossed a border here.

        Raises: LimitError if there are more than MOST_READINGS.
        """
        if len(readings) == 1 and (back := readings[0].back) is not None:
            # PERF: the readings behind a part's end are closed once
            return [*readings, *back.closed] if readings[0].cursor.can_end() else readings
        found, seen = list(readings), {one.key() for one in readings}
        for reading in found:  # grows while it is read
            if reading.back is None:
                new: Iterable[Reading] = [
                    self.entering(number, start, Back(self, reading.cursor, self.marks[number]))
                    for number, start in self.entered(reading.cursor)
                ]
            elif not reading.cursor.can_end():
                continue
            else:
                new = [Reading(reading.back.cursor, HOST, None)]
            found.extend(one for one in new if is_new(one, seen))
            if len(found) > MOST_READINGS:
                raise self.too_many()
        return found

    def crossings(self, reading: Reading, data: bytes) -> Iterator[tuple[list[Reading], bytes]]:
        """The borders inside some bytes: the closed readings at each, and the bytes behind."""
        for at in range(1, len(data)):
            if reading.back is None:
                if data[at] not in self._any_first:
                    continue
                before = data[:at]
                if not reading.cursor.reads(before):
                    return
                for number, start in self.entered(reading.cursor, before):
                    back = Back(self, reading.cursor, before + self.marks[number])
                    yield self.close([self.entering(number, start, back)]), data[at:]
            elif reading.back.allows(data[at : at + 1]) and reading.cursor.can_end_behind(data[:at]):
                yield reading.back.closed, data[at:]

    def walk(self, readings: list[Reading], data: bytes) -> Iterator[tuple[Reading, bytes]]:
        """The ways in which some bytes may come: a reading behind the last border, and its bytes.

        readings : those of the text so far, all of whose borders here have been crossed.

        The border of each way is looked at once for each place in the bytes, whatever came before
        it.

        Raises: LimitError if there are more than MOST_READINGS at one place.
        """
        at: dict[int, tuple[list[Reading], set[object]]] = {0: (readings, set())}
        for place in range(len(data)):
            rest = data[place:] if place else data
            for reading in at.pop(place, ((), None))[0]:
                if reading.cursor.reads(rest):
                    yield reading, rest
                for closed, behind in self.crossings(reading, rest):
                    there, seen = at.setdefault(len(data) - len(behind), ([], set()))
                    if closed[0].key() in seen:
                        continue  # PERF: so are those that it leads to
                    there.extend(one for one in closed if is_new(one, seen))
                    if len(there) > MOST_READINGS:
                        raise self.too_many()

    def too_many(self) -> LimitError:
        """The error for more readings than there is room for."""
        return LimitError(
            f"{self.tables.name}: the text can be cut into host and parts in more than {MOST_READINGS} ways: give parts an end that "
            "shows, such as a bracket or a line's end"
        )

    def can_read(self, readings: list[Reading], data: bytes) -> bool:
        """Whether some bytes may come. readings : as for `walk`."""
        if len(data) > PIECE or left_of_character(readings, data):
            return any(self.behind(readings, data))
        return any(True for _ in self.walk(readings, data))

    def behind(self, readings: list[Reading], data: bytes) -> tuple[list[Reading], list[Reading]]:
        """The readings behind some bytes: those that crossed no border in them, and the others.

        readings : as for `walk`. They are not advanced.

        Raises: LimitError as `walk`. Cost: O(bytes) for so many readings.
        """
        if n := left_of_character(readings, data):
            further = within_budgets(self.closed_behind(readings, data[:n]))
            stays, crossed = self.behind(further, data[n:]) if further else ([], [])
            return [], distinct([*stays, *crossed])
        stays, crossed = readings, list[Reading]()
        for at in range(0, len(data), PIECE):
            if at:
                closed = self.close(stays)
                stays, crossed = closed[: len(stays)], self.close(distinct([*crossed, *closed[len(stays) :]]))
            piece = data[at : at + PIECE]
            new: list[Reading] = [one.behind(rest) for one, rest in self.walk(crossed, piece)]
            kept: list[Reading] = []
            for one, rest in self.walk(stays, piece):
                (kept if rest is piece else new).append(one.behind(rest))
            stays, crossed = distinct(kept), distinct(new)
            if len(stays) + len(crossed) > MOST_READINGS:
                raise self.too_many()
        return stays, crossed

    def closed_behind(self, readings: list[Reading], data: bytes) -> list[Reading]:
        """The closed readings behind some bytes. readings, raises : as for `behind`."""
        stays, crossed = self.behind(readings, data)
        return self.close(distinct([*stays, *crossed]))

    def readable(self, reading: Reading, texts: Iterable[tuple[bytes, int]]) -> Iterator[int]:
        """The numbers of those of some texts that may come in a reading, and begin in its language.

        texts : sorted by their bytes, each with its number.

        PERF: what texts begin with is read once, piece by piece, up to the first wrong one.
        """
        path, before = [[reading]], b""
        for data, number in texts:
            common = next((at for at, (a, b) in enumerate(zip(data, before, strict=False)) if a != b), len(before))
            del path[common // PIECE + 1 :]
            while path[-1] and (at := PIECE * (len(path) - 1)) < len(data):
                path.append(self.closed_behind(path[-1], data[at : at + PIECE]))
            before = data
            if path[-1]:
                yield number

    def can_enter(self, number: int, start: Cursor, back: Back, data: bytes) -> bool:
        """Whether a part can begin with some bytes, and perhaps end in them."""
        return start.reads(data) or self.can_read(self.close([self.entering(number, start, back)]), data)


def is_new(reading: Reading, seen: set[object]) -> bool:
    """Whether none of those seen has the same future as a reading, which is seen from now on."""
    n = len(seen)
    seen.add(reading.key())
    return len(seen) > n


def within_budgets(readings: list[Reading]) -> list[Reading]:
    """The closed readings between two tokens, without those in a part whose budget is spent.

    If nothing else can come, such a part goes on: it cannot end here, as within a character. So a
    mask leads nowhere into a dead end that only the budget would make.
    """
    if all(one.left for one in readings):
        return readings
    return [one for one in readings if one.left] or readings


def left_of_character(readings: list[Reading], data: bytes) -> int:
    """How many of some bytes a part whose budget is spent may take: those that end its character.

    readings : as `within_budgets` gives them. Returns 0 if all bytes, or none, are such.
    """
    return 0 if not readings or readings[0].left else rest_of_character(data)


def distinct(readings: list[Reading]) -> list[Reading]:
    """The readings without those that have the same future as one before them."""
    if len(readings) < 2:
        return readings
    seen = set[object]()
    return [one for one in readings if is_new(one, seen)]
