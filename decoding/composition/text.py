"""The state of one text of several languages: its readings, and what may come next in them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, MaskwrightError
from maskwright.analysis.marks import MARK, mark
from maskwright.decoding.composition.cursor import Cursor, has
from maskwright.decoding.composition.cursors import JsonCursor, RunCursor
from maskwright.decoding.composition.masks import Masks
from maskwright.decoding.composition.readings import (
    HOST,
    MOST_READINGS,
    PIECE,
    Reading,
    Rules,
    Step,
    advanced,
    distinct,
    key_of,
    within_budgets,
)
from maskwright.decoding.endings.ending_spelling import spelling_of
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.state import TextState, listed_bytes
from maskwright.maskstore.composition.tables import ComposedTables, TokenPart, TokenRunPart
from maskwright.maskstore.vocabulary.masks import tokens_of

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending

Words = npt.NDArray[np.uint32]


class ComposedText(TextState):
    """One text of a composition.

    rules : those of a text that this one will `become`; None for one at its start.

    Raises: LimitError, from all that reads or fills, if the text can be cut into host and parts in
    too many ways, or as the texts of host and parts.
    """

    said: list[int | bytes]
    takes_whole = True
    if_slow = "give the parts of the grammar an end that shows, such as a bracket or a tag, so that a text can be cut in fewer ways"
    instead_of_names = "in a composition, give the part that spells the names a schema with an enum, or a pattern"

    def __init__(self, store: ComposedTables, max_rollback: int, rules: Rules | None = None) -> None:
        super().__init__(store, max_rollback)
        self.under = store.name
        self._rules = rules or Rules(store, max_rollback)
        self._masks, self._n_words = Masks(self._rules), store.n_words
        self._steps: deque[Step] = deque(maxlen=min(max_rollback, sys.maxsize))  # the host refuses what is more
        self.said = []
        self._closed: list[Reading] | None = None
        self._readings: list[Reading] = []
        self._is_ended = False
        if rules is None:
            self.reset()

    # -- masks

    def fill(self, words: npt.NDArray[np.int32]) -> int:
        if self._is_ended:
            words[:] = 0
            return constants.AFTER_END
        with self._rules.lock:
            own, n_words = words.view(np.uint32), self._n_words
            if len(own) > n_words:
                own[n_words:] = 0
                own = own[:n_words]
            first = self._readings[0]
            if len(self._readings) == 1 and first.is_own and first.back is not None and first.left:
                self._closed, has_tokens = self._masks.fill_alone(first, own)
            else:
                self._masks.fill(self._close(), own)
                has_tokens = bool(own.any())
        return constants.OK if has_tokens else constants.DEAD_END

    def _close(self) -> list[Reading]:
        if self._closed is None:
            self._closed = within_budgets(self._rules.close(self._readings))
        return self._closed

    # -- the text

    def read_token(self, token: int, commit: bool) -> int:
        vocabulary = self.store.vocabulary
        if not 0 <= token < vocabulary.size:
            return constants.OUT_OF_RANGE
        if self._is_ended:
            return constants.AFTER_END
        with self._at_once(), self._rules.lock:
            if token not in vocabulary.eos:
                if self._take(token) if commit else self._may_come(token):
                    return constants.OK
                return constants.ILLEGAL if vocabulary.tokens[token] else constants.NO_TEXT
            if not self._accepts():
                return constants.NOT_COMPLETE
            if commit:
                self._note(token, self._readings, [])
                self._is_ended = True
            return constants.OK

    @contextmanager
    def _at_once(self, n_taken_back: int = 0) -> Iterator[None]:
        """Where what follows is interrupted, read the text again: a cursor may have moved already.

        n_taken_back : the tokens that what follows takes back. They are taken back then.
        """
        n, remembered = len(self.said) - n_taken_back, len(self._steps) - n_taken_back
        try:
            yield
        except MaskwrightError:
            raise
        except BaseException:
            said = self.said[:n]
            self.reset()
            with self._rules.lock:
                for each in said:
                    self._take(each) if isinstance(each, int) else self._take_bytes(each, each)
            self.forget(remembered)
            raise

    def _take(self, number: int) -> bool:
        """Add a token that ends no text, if it is allowed."""
        data = self.store.vocabulary.tokens[number]
        found = self._behind_token(number) if has(self.store.whole, number) else []
        if data and number not in self._rules.marked:
            if not found and self._stays(data):
                # PERF: no border can be in the token, so one reading reads it
                (reading,) = self._close()
                if not reading.cursor.try_token(number, data):
                    return False
                self._note(number, [reading.counted()], [reading.cursor])
                return True
            return self._take_bytes(number, data, found, is_token=True)
        if not found:
            return False
        self._note(number, found, [])
        return True

    def _stays(self, data: bytes) -> bool:
        """Whether there is one reading, and it is in a part that bytes do not leave."""
        closed = self._close()
        if len(closed) > 1:
            return False
        reading = closed[0]
        return (
            reading.is_own
            and reading.back is not None
            and (not reading.cursor.may_leave(data) or reading.back.first().isdisjoint(data[1:]))
        )

    def try_whole(self, token: int) -> bool:
        with self._rules.lock:
            found = [] if self._is_ended or not has(self.store.whole, token) else self._behind_token(token)
            if found:
                self._note(token, found, [])
            return bool(found)

    def _behind_token(self, number: int) -> list[Reading]:
        """The readings behind a token that a part takes whole, here or in a part."""
        marks = [
            self._rules.marks[at]
            for at, part in enumerate(self.store.parts)
            if isinstance(part, TokenPart) and has(part.words, number)
        ]
        found: list[Reading] = []
        for reading in self._close():
            if reading.back is None:
                found.extend(advanced(reading, each) for each in marks if reading.cursor.reads(each))
                continue
            cursor = reading.cursor
            if isinstance(cursor, RunCursor):
                if not has(cursor.words, number):
                    continue
                cursor = cursor.going_on()
            else:
                cursor = cursor.fork()
                if not cursor.text.try_whole(number):
                    continue
            reading.back.settle()
            found.append(reading._replace(cursor=cursor, is_own=True).counted())
        return distinct(found)

    def _take_bytes(
        self, said: int | bytes, data: bytes, found: Sequence[Reading] = (), *, is_token: bool = False
    ) -> bool:
        """Add bytes, not empty, if they are legal.

        said : the token that they are, or the bytes again.
        found : readings that take them as a whole token.
        is_token : whether parts that may take so many tokens count them.
        """
        if max(data) >= MARK:
            return False
        if not found and self._stays(data):
            (reading,) = self._close()
            if not reading.cursor.try_bytes(data):
                return False
            self._note(said, [reading], [reading.cursor])
            return True
        rules, closed = self._rules, self._close()
        behind = list(found)
        in_place: list[Cursor] = []
        if len(data) > PIECE:
            stays, crossed = rules.behind(closed, data)
            behind = distinct([*behind, *([one.counted() for one in stays] if is_token else stays), *crossed])
            if behind:
                self._note(said, behind, [])
            return bool(behind)
        try:
            for reading, rest in rules.walk(closed, data):
                if not (reading.is_own and rest is data):
                    one = advanced(reading, rest)
                    behind.append(one.counted() if is_token and rest is data else one)
            for reading in closed:
                if reading.is_own and reading.cursor.try_bytes(data):
                    in_place.append(reading.cursor)
                    behind.append(reading.counted() if is_token else reading)
            behind = distinct(behind)
            if len(behind) > MOST_READINGS:
                raise rules.too_many()
        except BaseException:
            for cursor in in_place:
                cursor.rollback()
            raise
        if not behind:
            return False
        self._note(said, behind, in_place)
        return True

    def _note(self, said: int | bytes, behind: list[Reading], advanced: list[Cursor]) -> None:
        """Something was read. said : what. behind : the readings then. advanced : as of `Step`."""
        self._steps.append(Step(self._readings, advanced, self._is_ended))
        self._readings, self._closed = behind, None
        self.said.append(said)

    def read(self, data: bytes, commit: bool) -> int:
        if self._is_ended:
            return constants.AFTER_END
        with self._at_once(), self._rules.lock:
            is_legal = self._take_bytes(data, data) if commit else self._reads(data)
        return constants.OK if is_legal else constants.ILLEGAL

    def _reads(self, data: bytes) -> bool:
        return max(data) < MARK and self._rules.can_read(self._close(), data)

    def _may_come(self, number: int) -> bool:
        data = self.store.vocabulary.tokens[number]
        if data and self._reads(data):
            return True
        return has(self.store.whole, number) and bool(self._behind_token(number))

    def can_end(self) -> bool:
        with self._rules.lock:
            return self._is_ended or self._accepts()

    def _accepts(self) -> bool:
        return any(reading.back is None and reading.cursor.accepts() for reading in self._close())

    def is_finished(self) -> bool:
        return self._is_ended

    def remembered(self) -> int:
        return len(self._steps)

    def forget(self, remembered: int) -> None:
        while len(self._steps) > remembered:
            self._steps.popleft()

    def undo(self, n: int) -> None:
        with self._at_once(n), self._rules.lock:
            for _ in range(n):
                step = self._steps.pop()
                for cursor in step.advanced:
                    cursor.rollback()
                self._readings, self._is_ended, self._closed = step.readings, step.ended, None
                self.said.pop()

    def reset(self) -> None:
        with self._rules.lock:
            self._readings = [Reading(self._rules.host(), HOST, None, True)]
            self._closed, self._is_ended = None, False
            self._steps.clear()
            self.said.clear()

    def copy(self) -> TextState:
        """As `TextState.copy`. Cost: O(the memory of the text and its history)."""
        return ComposedText(self.store, self.max_rollback, self._rules).become(self)

    def become(self, other: Any) -> TextState:
        with other._rules.lock:
            copies: dict[int, Cursor] = {}

            def copied(cursor: Cursor) -> Cursor:
                if id(cursor) not in copies:
                    copies[id(cursor)] = cursor.fork()
                return copies[id(cursor)]

            def all_copied(readings: list[Reading]) -> list[Reading]:
                return [
                    reading._replace(cursor=copied(reading.cursor)) if reading.is_own else reading
                    for reading in readings
                ]

            self.max_rollback, self._rules = other.max_rollback, other._rules
            self._readings, self._closed, self._is_ended = all_copied(other._readings), None, other._is_ended
            self._steps = deque(
                (
                    Step(all_copied(step.readings), [copied(cursor) for cursor in step.advanced], step.ended)
                    for step in other._steps
                ),
                maxlen=other.max_rollback,
            )
            self.said = other.said.copy()
            self._masks = Masks(other._rules)
        return self

    def key(self) -> object:
        return self._is_ended, frozenset(map(key_of, self._readings))

    # -- in words

    def where(self, readings: Sequence[Reading] = ()) -> str:
        """In which languages the text may be now, or `readings` of it, for messages."""
        names = dict.fromkeys(
            self.store.parts[reading.part].name if reading.back is not None else self.store.name
            for reading in readings or self._readings
        )
        return " or ".join(names)

    def languages(self) -> Iterator[tuple[str, TextState]]:
        for reading in self._close():
            if not isinstance(reading.cursor, RunCursor):  # it has tokens, and no words of its own
                name = self.store.name if reading.back is None else f"part {self.store.parts[reading.part].name}"
                yield name, reading.cursor.text

    def expectation(self, data: bytes) -> str:
        """As `TextState.expectation`. Cost: O(bytes), since they are read piece by piece."""
        rules = self._rules
        with rules.lock:
            readings, begin = rules.behind_pieces(self._close(), data)
            good = begin
            while good + 1 < len(data) and data[good] < MARK and rules.can_read(readings, data[begin : good + 1]):
                good += 1
            there = f", where the text is in {self.where(readings)}" if begin else ""
            if good > begin:
                stays, crossed = rules.behind(readings, data[begin:good])
                readings = rules.close(distinct([*stays, *crossed]))
            allowed = bytes(byte for byte in range(MARK) if rules.can_read(readings, bytes((byte,))))
            # where a part may end, what may come after it is no matter of its schema
            inner = (getattr(reading.cursor, "text", None) for reading in readings)
            parts = [one for one in inner if one is not None and not one.can_end()]
            why = next((found for one in parts if (found := one.reason(data[good : good + 1]))), "")
        return f"Byte {good} of it, {data[good : good + 1]!r}, cannot come here{why}; allowed: {listed_bytes(allowed)}{there}"

    def may_be_whole(self) -> bool:
        with self._rules.lock:
            text = self.store.whole_with_text
            if self._is_ended or not text.any():
                return False
            parts = enumerate(self.store.parts)
            marks = [
                self._rules.marks[at] for at, one in parts if isinstance(one, TokenPart) and (one.words & text).any()
            ]
            for reading in self._close():
                cursor = reading.cursor
                if reading.back is None:
                    found = any(map(cursor.reads, marks))
                else:
                    found = isinstance(cursor, RunCursor) or cursor.text.may_be_whole()
                if found:
                    return True
            return False

    # -- endings

    def short_ending(self) -> Ending:
        """As `TextState.short_ending`, made of the shortest ones of part and host under way.

        Raises: DeadEndError if none is found; LimitError as `Matcher.short_ending`.
        """
        from maskwright.decoding.endings.ending import Ending

        with self._rules.lock:
            if self._is_ended or self._accepts():
                return Ending(b"", ())
            return Ending(*_ending_of(self._rules, self._close()), False)

    def shortest_ending(self) -> Ending:
        """As `short_ending`."""
        return self.short_ending()

    def min_bytes_left(self) -> int:
        """The length of that ending, in bytes."""
        return len(self.short_ending().data)


def _ending_of(rules: Rules, closed: list[Reading]) -> tuple[bytes, tuple[int, ...]]:
    """An ending, as bytes and tokens: the shortest of those made of endings of its languages.

    closed : the closed readings of the text, none of which is whole.

    Raises: DeadEndError if there is none, or no tokens spell it.
    """
    found: list[list[bytes | int]] = []
    said = ""
    for reading in closed:
        try:
            pieces: list[bytes | int] = []
            if reading.back is not None:
                pieces.append(reading.cursor.ending())
                pieces += _host_ending(rules, reading.back.cursor)
            else:
                pieces += _host_ending(rules, reading.cursor)
            found.append(pieces)
        except DeadEndError as error:
            said = str(error)
    if not found:
        raise DeadEndError(said or f"no bytes complete this text under {rules.tables.name}")
    best = min(found, key=lambda pieces: sum(len(piece) if isinstance(piece, bytes) else 1 for piece in pieces))
    spelling = spelling_of(rules.tables.vocabulary)
    data, tokens = b"", list[int]()
    for piece in _joined(best):
        if isinstance(piece, int):
            tokens.append(piece)
            data += rules.tables.vocabulary.tokens[piece]
            continue
        spelled = spelling.fewest_tokens(piece)
        if spelled is None:
            raise DeadEndError(spelling.explanation(piece))
        data += piece
        tokens += spelled
    return data, tuple(tokens)


def _host_ending(rules: Rules, host: Cursor) -> list[bytes | int]:
    """The host's ending, with a shortest text of its part, or its token, for each mark."""
    data = host.ending_of_marks() if isinstance(host, JsonCursor) else host.ending()
    pieces: list[bytes | int] = []
    at = 0
    while (begin := data.find(bytes((MARK,)), at)) >= 0:
        pieces.append(data[at:begin])
        number = next(k for k in range(len(rules.marks)) if mark(k) == data[begin : begin + 3])
        part, start = rules.tables.parts[number], rules.start(number)
        if isinstance(part, TokenPart | TokenRunPart):
            pieces.append(int(tokens_of(part.words)[0]))
        elif start is not None and not start.accepts():
            pieces.append(start.ending())
        at = begin + 3
    return [*pieces, data[at:]]


def _joined(pieces: list[bytes | int]) -> list[bytes | int]:
    """The pieces, of which no two neighbours are bytes, and none is empty."""
    found: list[bytes | int] = []
    for piece in pieces:
        if isinstance(piece, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += piece
        elif piece != b"":
            found.append(piece)
    return found


__all__ = ["ComposedText"]
