"""Readings of a text of several languages: in the host, or in a part that stands in it.

A *reading* is one way to cut the text so far into host and parts. Readings are *closed* if for each
of them that may leave its language here, entering a part or returning to the host, the reading that
has done so is among them. Bytes are then read by each reading within its language, or cut in two:
the first bytes within the language, the others behind a border.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.analysis.marks import MARK, mark
from maskwright.decoding.composition.cursor import Cursor, JsonStringCursor
from maskwright.decoding.engine.state_keys import state_key
from maskwright.decoding.engine.texts import Texts
from maskwright.maskstore.composition.splits import Splits, splits_of
from maskwright.maskstore.composition.tables import AnyPart, ComposedTables, JsonStringPart, TextPart, TokenPart

MOST_READINGS = 512
"""The most readings of a text at a time."""

HOST = -1
"""Instead of a part's number: the reading is in the host."""


class Reading(NamedTuple):
    """One way to cut the text so far.

    cursor : where it stands in the innermost language.
    part : the part's number, or HOST.
    back : the host behind the part, if it is in one.
    is_own : whether the cursor is of this reading alone, so that it may be advanced.
    """

    cursor: Cursor
    part: int
    back: Back | None
    is_own: bool


class Back:
    """The host as it goes on behind a part: its text with the part's mark.

    host : the cursor of the host before the part, which is not advanced while this is young.
    more : what is added to it: the bytes before the part, and its mark.
    """

    def __init__(self, rules: Rules, host: Cursor, more: bytes) -> None:
        self._rules, self._source, self._more = rules, host, more
        self._cursor: Cursor | None = None
        self._closed: list[Reading] | None = None
        self._allowed: dict[bytes, bool] = {}
        self._first: tuple[int, ...] | None = None
        self._exits: list[tuple[bytes, int, tuple[int, ...]]] | None = None

    @property
    def cursor(self) -> Cursor:
        """The host's cursor behind the part; not to be advanced."""
        if self._cursor is None:
            made = self._source.fork()
            made.try_bytes(self._more)
            self._cursor = made
        return self._cursor

    def settle(self) -> None:
        """Make the cursor, before the host that it is made of is advanced."""
        self.cursor  # noqa: B018

    def closed(self) -> list[Reading]:
        """The closed readings behind the part."""
        if self._closed is None:
            self._closed = self._rules.close([Reading(self.cursor, HOST, None, False)])
        return self._closed

    def allows(self, data: bytes) -> bool:
        """Whether bytes may come behind the part."""
        found = self._allowed.get(data)
        if found is None:
            found = self._allowed[data] = self._rules.can_read(self.closed(), data)
        return found

    def exits(self, part: AnyPart) -> list[tuple[bytes, int, tuple[int, ...]]]:
        """The tokens that can leave the part: what of them is before the border; its id; they.

        part : the part that is left, always the same one.

        PERF: how the host goes on does not depend on where the part stands, so this is found once.
        """
        if self._exits is None:
            self._exits = []
            for byte in self.first():
                for split in self._rules.splits.before_byte(byte):
                    if not _may_end(part, split.before):
                        continue
                    tokens = tuple(token for data, token in split.behind if self.allows(data))
                    if tokens:
                        self._exits.append((split.before, split.token, tokens))
        return self._exits

    def first(self) -> tuple[int, ...]:
        """The bytes that may come behind the part."""
        if self._first is None:
            self._first = tuple(byte for byte in range(MARK) if self.allows(bytes((byte,))))
        return self._first


class Rules:
    """How texts of a composition are read.

    tables : the composition's stores.
    max_rollback : the tokens of a text that can be taken back.
    """

    def __init__(self, tables: ComposedTables, max_rollback: int) -> None:
        self.tables = tables
        self.lock = threading.RLock()  # texts that were forked share starts and hosts
        self.splits: Splits = splits_of(tables.vocabulary)
        self._max_rollback = max_rollback + 2  # a look ahead forgets the oldest token
        self.marks = tuple(map(mark, range(len(tables.parts))))
        self.starts = tuple(start_of(part, self.splits, self._max_rollback) for part in tables.parts)
        self._static: tuple[dict[bytes, bool], ...] = tuple({} for _ in tables.parts)
        self._any_first: frozenset[int] = frozenset().union(*tables.first)
        self.marked = tuple(token for token, data in enumerate(tables.vocabulary.tokens) if data and max(data) >= MARK)

    def host(self) -> Cursor:
        """The host's text, at its start."""
        return Cursor(self.tables.host.matcher(self._max_rollback))

    def entered(self, host: Cursor, before: bytes = b"") -> Iterator[tuple[int, Cursor]]:
        """The parts that may begin in the host behind some bytes, each with its start."""
        if not host.reads(before + bytes((MARK,))):
            return
        for number, start in enumerate(self.starts):
            if start is not None and host.reads(before + self.marks[number]):
                yield number, start

    def close(self, readings: list[Reading]) -> list[Reading]:
        """The readings, and those that have crossed a border here.

        Raises: LimitError if there are more than MOST_READINGS.
        """
        found = list(readings)
        keys = {key_of(one) for one in found}
        for reading in found:  # grows while it is read
            new: list[Reading] = []
            if reading.back is None:
                for number, start in self.entered(reading.cursor):
                    back = Back(self, reading.cursor, self.marks[number])
                    new.append(Reading(start, number, back, False))
            elif reading.cursor.accepts():
                new.append(Reading(reading.back.cursor, HOST, None, False))
            for one in new:
                key = key_of(one)
                if key not in keys:
                    keys.add(key)
                    found.append(one)
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
                for number, start in self.entered(reading.cursor, before):
                    back = Back(self, reading.cursor, before + self.marks[number])
                    yield self.close([Reading(start, number, back, False)]), data[at:]
            elif reading.back.allows(data[at : at + 1]) and reading.cursor.accepts_after(data[:at]):
                yield reading.back.closed(), data[at:]

    def walk(self, readings: list[Reading], data: bytes) -> Iterator[tuple[Reading, bytes]]:
        """The ways in which some bytes may come: a reading behind the last border, and its bytes.

        readings : those of the text so far, all of whose borders here have been crossed.

        The border of each way is looked at once for each place in the bytes, whatever came before
        it.

        Raises: LimitError if there are more than MOST_READINGS at one place.
        """
        at: dict[int, list[Reading]] = {0: readings}
        keys: dict[int, object] = {}
        for place in range(len(data)):
            rest = data[place:] if place else data
            for reading in at.pop(place, ()):
                if reading.cursor.reads(rest):
                    yield reading, rest
                for closed, behind in self.crossings(reading, rest):
                    self._join(at.setdefault(len(data) - len(behind), []), closed, keys)

    def _join(self, found: list[Reading], closed: list[Reading], keys: dict[int, object]) -> None:
        """Add readings whose future is not one of those that are there. keys : of hosts, by id."""

        def key(cursor: Cursor) -> object:
            if id(cursor) not in keys:
                keys[id(cursor)] = cursor, host_key(cursor)
            return keys[id(cursor)]

        def same(one: Reading, other: Reading) -> bool:
            if one.part != other.part or (one.back is None) != (other.back is None):
                return False
            if one.back is None or other.back is None:
                return one.cursor is other.cursor or key(one.cursor)[1] == key(other.cursor)[1]  # type: ignore[index]
            if one.cursor is not other.cursor:
                return False
            return one.back is other.back or key(one.back.cursor)[1] == key(other.back.cursor)[1]  # type: ignore[index]

        for one in closed:
            if not any(same(one, other) for other in found):
                found.append(one)
        if len(found) > MOST_READINGS:
            raise self.too_many()

    def too_many(self) -> LimitError:
        """The error for more readings than there is room for."""
        return LimitError(
            f"{self.tables.name}: the text can be cut into host and parts in more than {MOST_READINGS} ways: give parts an end that "
            "shows, such as a bracket or a line's end"
        )

    def can_read(self, readings: list[Reading], data: bytes) -> bool:
        """Whether some bytes may come. readings : as for `walk`."""
        return any(True for _ in self.walk(readings, data))

    def can_enter(self, number: int, start: Cursor, back: Back, data: bytes) -> bool:
        """Whether a part can begin with some bytes, and perhaps end in them."""
        known = self._static[number]
        found = known.get(data)
        if found is None:
            found = known[data] = start.reads(data)
        return found or self.can_read(self.close([Reading(start, number, back, False)]), data)


def advanced(reading: Reading, data: bytes) -> Reading:
    """A reading of its own behind some bytes of its language, which may come."""
    cursor = reading.cursor.fork()
    cursor.try_bytes(data)
    if reading.back is not None:
        reading.back.settle()
    return Reading(cursor, reading.part, reading.back, True)


def start_of(part: AnyPart, splits: Splits, max_rollback: int = 2) -> Cursor | None:
    """A part's text, at its start; None for a part that is a token.

    splits : of the whole text's vocabulary.
    max_rollback : what can be taken back.
    """
    if isinstance(part, TokenPart):
        return None
    matcher = part.store.matcher(max_rollback)
    return JsonStringCursor(matcher, part.tokens, splits) if isinstance(part, JsonStringPart) else Cursor(matcher)


def _may_end(part: AnyPart, data: bytes) -> bool:
    """Whether a part's text may be whole behind some bytes, as far as its last byte tells."""
    if isinstance(part, JsonStringPart):
        return data[-1:] == b'"'
    if not isinstance(part, TextPart) or part.ends is None:
        return True
    said = data.rstrip(b" \t\n\r")
    return not said or said[-1] in part.ends


def key_of(reading: Reading) -> object:
    """Readings with equal keys have the same future."""
    if reading.back is not None:
        return (reading.part, id(reading.back), id(reading.cursor))
    return host_key(reading.cursor)


def host_key(cursor: Cursor) -> object:
    """Hosts with equal keys have the same future."""
    matcher = cursor.matcher
    return state_key(matcher) if isinstance(matcher, Texts) else id(matcher)


def distinct(readings: list[Reading]) -> list[Reading]:
    """The readings without those that have the same future as one before them."""
    if len(readings) < 2:
        return readings
    found: dict[object, Reading] = {}
    for one in readings:
        key = key_of(one)
        if key not in found:
            found[key] = one
    return list(found.values())


__all__ = ["HOST", "MOST_READINGS", "Back", "Reading", "Rules", "advanced", "distinct", "key_of", "start_of"]
