"""The state of one text of several languages: its readings, and what may come next in them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.marks import MARK
from maskwright.decoding.composition.cursor import Cursor, has
from maskwright.decoding.composition.cursors import RunCursor
from maskwright.decoding.composition.exits import Exits
from maskwright.decoding.composition.masks import Masks
from maskwright.decoding.composition.readings import (
    Known,
    Reading,
    Rules,
    advanced,
    distinct,
    key_of,
    rules_for,
    within_budgets,
)
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.quick import NOT_QUICK
from maskwright.decoding.engine.state import TextState, listed_bytes
from maskwright.maskstore.composition.tables import ComposedTables, TokenPart

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending

Words = npt.NDArray[np.uint32]

MOST_EXPLAINED = 4_096
"""BOUND: the bytes of a text that an error reads again."""

MOST_AFTER = 4096
"""The most tokens of a known state behind which the state is kept."""


class Step(NamedTuple):
    """A text before a token.

    in_place : whether the token has advanced `own`, which must be taken back then.
    """

    readings: list[Reading]
    known: Known | None
    own: Cursor | None
    in_place: bool
    is_ended: bool


class ComposedText(TextState):
    """One text of a composition.

    In a state that is `Known`, a mask and what comes behind a token are looked up. Inside a part,
    the part's engine reads and masks what cannot leave it (`_own`). Elsewhere all readings are
    followed, and the text's state becomes known.

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
        self._rules = rules or rules_for(store, max_rollback)
        self._masks, self._n_words = Masks(self._rules), store.n_words
        self._steps: deque[Step] = deque(maxlen=min(max_rollback, sys.maxsize))  # the host refuses what is more
        self.said = []
        self._n_noted = 0
        self._is_moving = self._is_ended = False
        self._words = self._padding = np.zeros(0, np.int32)
        self._enter([], None, None)
        if rules is None:
            self.reset()

    def _enter(self, readings: list[Reading], known: Known | None, own: Cursor | None) -> None:
        """Be in a state from now on.

        known : the state, if it is known. INVARIANT: the readings are its own then.
        own : the cursor of the only reading, which is in a part, if no one else has it. INVARIANT:
            there is none in a known state, nor behind the end of the text.
        """
        self._readings, self._known, self._own = readings, known, own
        self._closed = None if known is None else known.closed
        # of the own cursor's part, as far as quick calls may know them
        self._here: Exits | None = None
        self._crossing: dict[int, int] = {}

    # -- quick calls

    def bind(self, words: npt.NDArray[np.int32]) -> bool:
        self._words, self._padding = words[: self._n_words], words[self._n_words :]
        return True

    def quick_fill(self, bound: None) -> int:
        """Write the mask of a known state, or of a part's text, without the lock."""
        known = self._known
        if known is not None:
            if known.mask is None:
                return NOT_QUICK
            self._words[:] = known.mask
        else:
            own, here = self._own, self._here
            if own is None or here is None:
                return NOT_QUICK
            if here.long or not own.quick_fill(self._words, here):
                return NOT_QUICK
        if len(self._padding):
            self._padding[:] = 0
        return constants.OK

    def quick_read(self, bound: None, token: int) -> int:
        """Add a token that leads to a known state, or stays in a part, without the lock."""
        known = self._known
        if known is not None:
            after = known.after.get(token)
            if after is None:
                return NOT_QUICK
            self._is_moving = True
            self._go(after)
            self._is_moving = False
            return constants.OK
        own = self._own
        if own is None:
            return NOT_QUICK
        data, crossing = self._rules.texts.get(token), self._crossing.get(token)
        if data is None or crossing is None or (crossing and not _stays(own, crossing, data)):
            return NOT_QUICK
        self._is_moving = True
        if own.quick_read(token, data):
            self._closed = None
            self._steps.append(Step(self._readings, None, own, True, False))
            self._n_noted += 1
            self._is_moving = False
            return constants.OK
        self._is_moving = False
        return NOT_QUICK

    def quick_step(self, bound: None, token: int) -> int:
        """`quick_read`, then `quick_fill`."""
        code = self.quick_read(bound, token)
        return 2 * code if code else 1 + 2 * NOT_QUICK if self.quick_fill(bound) else 0

    def settle(self, added: int | bytes) -> None:
        """As `TextState.settle`. A part's text that was being read is read again."""
        if self._is_moving:
            self._read_again(self.said.copy(), len(self._steps))
        elif self._n_noted == len(self.said) + 1:
            self.said.append(added)

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
            if self._own is None or self._own.is_at_end():
                self._know()
            first, known = self._readings[0], self._known
            if known is not None and known.mask is not None:
                own[:] = known.mask.view(np.uint32)
                return constants.OK
            if len(self._readings) == 1 and first.back is not None and first.left:
                self._here = first.back.exits(first.part)
                has_tokens = self._masks.fill_alone(first, self._here, own)
                if first.left < 0 and has_tokens:
                    first.cursor.keep_mask(own.view(np.int32), self._here)
            else:
                self._masks.fill(self._close(), own)
                has_tokens = bool(own.any())
            if has_tokens and known is not None:
                known.closed, known.mask = self._closed, own.view(np.int32).copy()
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
                if self._read_known(token) if commit else self._may_come(token):
                    return constants.OK
                return constants.ILLEGAL if vocabulary.tokens[token] else constants.NO_TEXT
            if not self._accepts():
                return constants.NOT_COMPLETE
            if commit:
                self._note(token, self._readings)
                self._enter(self._readings, None, None)
                self._is_ended = True
            return constants.OK

    def _know(self) -> Known | None:
        """The known state that the text is in, from now on; None if it cannot be known."""
        if self._known is None:
            known = self._rules.known(self._readings, is_own=self._own is not None)
            if known is not None:
                self._enter(known.readings, known, None)
        return self._known

    def _go(self, after: Known) -> None:
        """A token was read, behind which the text is in a known state."""
        self._steps.append(Step(self._readings, self._known, self._own, False, False))
        self._n_noted += 1
        self._enter(after.readings, after, None)

    def _read_known(self, token: int) -> bool:
        """Add a token that ends no text, if it is allowed, from one known state to another."""
        data = self.store.vocabulary.tokens[token]
        if data and not has(self.store.whole, token) and self._reads_in_place(token, data):
            self._rules.texts[token] = data
            return True
        before = self._know() if self._own is None or self._own.has_short_key else None
        if before is not None and (after := before.after.get(token)) is not None:
            self._go(after)
            self.said.append(token)
            return True
        if not self._take(token):
            return False
        if before is not None and before.is_current and len(before.after) < MOST_AFTER:
            with suppress(LimitError):  # no memory: the token is read all the same
                if (after := self._know()) is not None:
                    before.after[token] = after
        return True

    def _reads_in_place(self, token: int, data: bytes) -> bool:
        """Add a token that stays in the part of the only reading, if it may come."""
        reading, back = self._readings[0], self._readings[0].back
        if len(self._readings) > 1 or back is None or reading.left >= 0 or token in self._rules.marked:
            return False
        if not _stays(reading.cursor, back.crossing(token, data), data):
            return False
        state, own = back.state, self._own
        self._crossing = state.crossing
        if own is None:
            cursor = reading.cursor.fork()
            if not (cursor.quick_read(token, data) or cursor.try_token(token, data)):
                return False
            self._note(token, [reading._replace(cursor=cursor)])
            self._here = state.exits.get(reading.part)
            return True
        if not (own.quick_read(token, data) or own.try_token(token, data)):
            return False
        self._note(token, self._readings, in_place=True)
        return True

    def _note(self, said: int | bytes, behind: list[Reading], *, in_place: bool = False) -> None:
        """Something was read. said : what. behind : the readings then. in_place : as of `Step`."""
        self._steps.append(Step(self._readings, self._known, self._own, in_place, self._is_ended))
        self._n_noted += 1
        if behind is not self._readings:
            first = behind[0]
            is_alone = len(behind) == 1 and first.back is not None and first.left < 0
            self._enter(behind, None, first.cursor if is_alone else None)
        self._closed = None
        self.said.append(said)

    @contextmanager
    def _at_once(self, n_taken_back: int = 0) -> Iterator[None]:
        """Where what follows is interrupted, read the text again, as it was before.

        n_taken_back : the tokens that what follows takes back. They are taken back then.
        """
        n, remembered = len(self.said) - n_taken_back, len(self._steps) - n_taken_back
        try:
            yield
        except MaskwrightError:
            raise
        except BaseException:
            self._read_again(self.said[:n], remembered)
            raise

    def _read_again(self, said: list[int | bytes], remembered: int) -> None:
        """Read a text from its start, after an interruption: a cursor may have moved.

        remembered : how many of its pieces can be taken back.
        """
        self.reset()
        with self._rules.lock:
            for each in said:
                self._take(each) if isinstance(each, int) else self._take_bytes(each, each)
        self.forget(remembered)

    def _take(self, number: int) -> bool:
        """Add a token that ends no text, if it is allowed, following all readings."""
        data = self.store.vocabulary.tokens[number]
        found = self._behind_token(number) if has(self.store.whole, number) else []
        if data and number not in self._rules.marked:
            return self._take_bytes(number, data, found, is_token=True)
        if not found:
            return False
        self._note(number, found)
        return True

    def try_whole(self, token: int) -> bool:
        with self._rules.lock:
            found = [] if self._is_ended or not has(self.store.whole, token) else self._behind_token(token)
            if found:
                self._note(token, found)
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
            found.append(reading._replace(cursor=cursor).counted())
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
        stays, crossed = self._rules.behind(self._close(), data)
        behind = distinct([*found, *([one.counted() for one in stays] if is_token else stays), *crossed])
        if behind:
            self._note(said, behind)
        return bool(behind)

    def read(self, data: bytes, commit: bool) -> int:
        if self._is_ended:
            return constants.AFTER_END
        with self._at_once(), self._rules.lock:
            is_legal = self._take_bytes(data, data) if commit else self._reads(data)
        return constants.OK if is_legal else constants.ILLEGAL

    def _reads(self, data: bytes) -> bool:
        return max(data) < MARK and self._rules.can_read(self._close(), data)

    def _may_come(self, number: int) -> bool:
        # PERF: a server asks before it adds a token
        if self._known is not None and self._known.mask is not None:
            return has(self._known.mask.view(np.uint32), number)
        if self._own is not None and (told := self._rules.texts.get(number)) is not None:
            crossing = self._crossing.get(number)
            if crossing is not None and _stays(self._own, crossing, told):
                return self._own.may_come(number, told)
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
                if step.in_place:
                    assert step.own is not None
                    step.own.rollback()
                self._enter(step.readings, step.known, step.own)
                self._is_ended = step.is_ended
                self._n_noted -= 1
                self.said.pop()

    def reset(self) -> None:
        with self._rules.lock:
            begin = self._rules.begin()
            self._enter(begin.readings, begin, None)
            self._is_ended = self._is_moving = False
            self._steps.clear()
            self.said.clear()
            self._n_noted = 0

    def copy(self) -> TextState:
        """As `TextState.copy`. Cost: O(the history, and the memory of the parts in it)."""
        return ComposedText(self.store, self.max_rollback, self._rules).become(self)

    def become(self, other: Any) -> TextState:
        with other._rules.lock:
            own = {id(one): one for one in (other._own, *(step.own for step in other._steps)) if one is not None}
            copies = {key: one.fork() for key, one in own.items()}

            def copied(readings: list[Reading]) -> list[Reading]:
                return [one._replace(cursor=copies.get(id(one.cursor), one.cursor)) for one in readings]

            self.max_rollback = other.max_rollback
            self._enter(copied(other._readings), other._known, copies.get(id(other._own)))
            self._steps = deque(
                (step._replace(readings=copied(step.readings), own=copies.get(id(step.own))) for step in other._steps),
                maxlen=other.max_rollback,
            )
            self.said[:], self._n_noted = other.said, other._n_noted
            self._is_moving, self._is_ended = False, other._is_ended
            self._rules, self._masks = other._rules, Masks(other._rules)
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
            why = self._reason(data[: good + 1])
        return f"Byte {good} of it, {data[good : good + 1]!r}, cannot come here{why}; allowed: {listed_bytes(allowed)}{there}"

    def _reason(self, data: bytes) -> str:
        """Why a part refuses the last of some bytes, as a refusal says it; "" if none says so."""
        if len(self.bytes_said()) > MOST_EXPLAINED:
            return ""
        # INVARIANT: a known state's parts have read another text than this one, of another user
        fresh = ComposedText(self.store, 0, self._rules)
        fresh._read_again([*self.said, data[:-1]] if data[:-1] else self.said, 0)
        inner = (getattr(reading.cursor, "text", None) for reading in fresh._close())
        # where a part may end, what may come after it is no matter of its schema
        parts = [one for one in inner if one is not None and not one.can_end()]
        return next((found for one in parts if (found := one.reason(data[-1:]))), "")

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
        from maskwright.decoding.composition.ending import ending_of
        from maskwright.decoding.endings.ending import Ending

        with self._rules.lock:
            if self._is_ended or self._accepts():
                return Ending(b"", ())
            return Ending(*ending_of(self._rules, self._close()), False)

    def shortest_ending(self) -> Ending:
        """As `short_ending`."""
        return self.short_ending()

    def min_bytes_left(self) -> int:
        """The length of that ending, in bytes."""
        return len(self.short_ending().data)


def _stays(cursor: Cursor, crossing: int, data: bytes) -> bool:
    """Whether all bytes of a token are a part's, if they may come.

    cursor : of the text's only reading. crossing : as of `HostState`. data : the token's bytes.
    """
    return not crossing or (not cursor.accepts() and (crossing == 1 or not cursor.may_leave(data)))


__all__ = ["ComposedText"]
