"""The state of one text of several languages: its readings, and what may come next in them."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.marks import MARK
from maskwright.decoding.composition.cursors import Cursor, RunCursor, has
from maskwright.decoding.composition.exits import HostState
from maskwright.decoding.composition.masks import Shared, shared_by
from maskwright.decoding.composition.readings import PIECE, Known, Reading, distinct, within_budgets
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.quick import NOT_QUICK
from maskwright.decoding.engine.state import TextState, listed_bytes
from maskwright.maskstore.composition.tables import ComposedTables

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending

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

    shared : that of a text that this one will `become`; None for one at its start.

    Raises: LimitError, from all that reads or fills, if the text can be cut into host and parts in
    too many ways, or as the texts of host and parts.
    """

    said: list[int | bytes]
    takes_whole = True
    if_slow = "give the parts of the grammar an end that shows, such as a bracket or a tag, so that a text can be cut in fewer ways"
    instead_of_names = "in a composition, give the part that spells the names a schema with an enum, or a pattern"

    def __init__(self, store: ComposedTables, max_rollback: int, shared: Shared | None = None) -> None:
        super().__init__(store, max_rollback)
        self.under = store.name
        self._shared = shared or shared_by(store, max_rollback)
        self._steps: deque[Step] = deque(maxlen=min(max_rollback, sys.maxsize))  # the host refuses what is more
        self.said, self._n_noted, self._is_ended = [], 0, False
        self._words = self._padding = np.zeros(0, np.int32)
        self._enter([], None, None)
        if shared is None:
            self.reset()

    def _enter(self, readings: list[Reading], known: Known | None, own: Cursor | None) -> None:
        """Be in a state from now on.

        known : the state, if it is known. INVARIANT: the readings are its own then.
        own : the cursor of the only reading, which is in a part, if no one else has it. INVARIANT:
            there is none in a known state, nor behind the end of the text.
        """
        self._readings, self._known, self._own = readings, known, own
        self._closed = None if known is None else known.closed
        self._host: HostState | None = None
        """The state of the host behind the own cursor's part, as far as quick calls may know it."""

    # -- quick calls

    def bind(self, words: npt.NDArray[np.int32]) -> bool:
        self._words, self._padding = words[: self.store.n_words], words[self.store.n_words :]
        return True

    def quick_fill(self, bound: None) -> int:
        """Write the mask of a known state, or of a part's text, without the lock."""
        known, own, host = self._known, self._own, self._host
        if known is not None:
            if known.mask is None:
                return NOT_QUICK
            self._words[:] = known.mask
        else:
            if own is None or host is None or own.is_at_end():
                return NOT_QUICK
            exits = host.exits.get(self._readings[0].part)
            if exits is None or exits.long:
                return NOT_QUICK
            lacks_behind, has_tokens = own.fill_part(self._words, exits)
            if lacks_behind or not has_tokens:
                return NOT_QUICK
        if len(self._padding):
            self._padding[:] = 0
        return constants.OK

    def quick_read(self, bound: None, token: int) -> int:
        """Add a token that leads to a known state, or stays in a part, without the lock."""
        known, own, host = self._known, self._own, self._host
        try:
            if known is not None:
                after = known.after.get(token)
                if after is None:
                    return NOT_QUICK
                self._go(after)
                return constants.OK
            crossing = None if own is None or host is None else host.crossing.get(token)
            if own is None or crossing is None:
                return NOT_QUICK
            data = self.store.vocabulary.tokens[token]
            if not own.keeps(data, crossing) or not own.read(data, token):
                return NOT_QUICK
            self._closed = None
            self._steps.append(Step(self._readings, None, own, True, False))
            self._n_noted += 1
            return constants.OK
        except MaskwrightError:
            return NOT_QUICK
        except BaseException:
            self._read_again(self.said.copy(), len(self._steps))
            raise

    def quick_step(self, bound: None, token: int) -> int:
        """`quick_read`, then `quick_fill`."""
        code = self.quick_read(bound, token)
        return 2 * code if code else 1 + 2 * NOT_QUICK if self.quick_fill(bound) else 0

    def settle(self, added: int | bytes) -> None:
        """As `TextState.settle`."""
        if self._n_noted == len(self.said) + 1:
            self.said.append(added)

    # -- masks

    def fill(self, words: npt.NDArray[np.int32]) -> int:
        if self._is_ended:
            words[:] = 0
            return constants.AFTER_END
        n_words = self.store.n_words
        if len(words) > n_words:
            words[n_words:] = 0
            words = words[:n_words]
        with self._shared.lock:
            if self._own is None or self._own.is_at_end():
                self._know()
            first, known = self._readings[0], self._known
            if known is not None and known.mask is not None:
                words[:] = known.mask
                return constants.OK
            part = first.back if len(self._readings) == 1 and first.left else None
            if part is None or (part.any_may_follow(first.part) and first.cursor.can_end()):
                self._shared.masks.fill(self._close(), words)
                has_tokens = bool(words.any())
            else:
                self._host = part.state
                has_tokens = self._shared.masks.fill_alone(first, part.exits(first.part), words)
            if has_tokens and known is not None:
                known.closed, known.mask = self._closed, words.copy()
        return constants.OK if has_tokens else constants.DEAD_END

    def _close(self) -> list[Reading]:
        if self._closed is None:
            self._closed = within_budgets(self._shared.rules.close(self._readings))
        return self._closed

    # -- the text

    def read_token(self, token: int, commit: bool) -> int:
        vocabulary = self.store.vocabulary
        if not 0 <= token < vocabulary.size:
            return constants.OUT_OF_RANGE
        if self._is_ended:
            return constants.AFTER_END
        with self._at_once(), self._shared.lock:
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
            known = self._shared.known(self._readings, is_own=self._own is not None)
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
        if self._reads_in_place(token):
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

    def _reads_in_place(self, token: int) -> bool:
        """Add a token that stays in the part of the only reading, if it may come."""
        reading, back, own = self._readings[0], self._readings[0].back, self._own
        data = self.store.vocabulary.tokens[token]
        if len(self._readings) > 1 or back is None or reading.left >= 0 or not data or has(self.store.whole, token):
            return False
        if token in self._shared.rules.splits.marked or not reading.cursor.keeps(data, back.crossing(token, data)):
            return False
        cursor = reading.cursor.copy() if own is None else own
        if not cursor.read(data, token):
            return False
        self._note(
            token, [reading._replace(cursor=cursor)] if own is None else self._readings, in_place=own is not None
        )
        self._host = back.state
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
        """Where what follows is interrupted, read the text again: a cursor may have moved.

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
        """Read a text from its start. remembered : how many of its pieces can be taken back."""
        self.reset()
        with self._shared.lock:
            for each in said:
                self._take(each) if isinstance(each, int) else self._take_bytes(each, each)
        self.forget(remembered)

    def _take(self, number: int) -> bool:
        """Add a token that ends no text, if it is allowed, following all readings."""
        data = self.store.vocabulary.tokens[number]
        found = self._behind_token(number) if has(self.store.whole, number) else []
        if data and number not in self._shared.rules.splits.marked:
            return self._take_bytes(number, data, found, is_token=True)
        if found:
            self._note(number, found)
        return bool(found)

    def try_whole(self, token: int) -> bool:
        with self._shared.lock:
            found = [] if self._is_ended or not has(self.store.whole, token) else self._behind_token(token)
            if found:
                self._note(token, found)
            return bool(found)

    def _behind_token(self, number: int) -> list[Reading]:
        """The readings behind a token that a part takes whole, here or in a part."""
        marks = [mark for mark, words in self._shared.rules.token_parts if has(words, number)]
        found: list[Reading] = []
        for reading in self._close():
            if reading.back is None:
                found.extend(reading.behind(each) for each in marks if reading.cursor.reads(each))
            elif (cursor := reading.cursor.behind_whole(number)) is not None:
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
        stays, crossed = self._shared.rules.behind(self._close(), data)
        behind = distinct([*found, *([one.counted() for one in stays] if is_token else stays), *crossed])
        if behind:
            self._note(said, behind)
        return bool(behind)

    def read(self, data: bytes, commit: bool) -> int:
        if self._is_ended:
            return constants.AFTER_END
        with self._at_once(), self._shared.lock:
            is_legal = self._take_bytes(data, data) if commit else self._can_read(data)
        return constants.OK if is_legal else constants.ILLEGAL

    def _can_read(self, data: bytes) -> bool:
        return max(data) < MARK and self._shared.rules.can_read(self._close(), data)

    def _may_come(self, number: int) -> bool:
        # PERF: a server asks before it adds a token
        if self._known is not None and self._known.mask is not None:
            return has(self._known.mask, number)
        data, own, host = self.store.vocabulary.tokens[number], self._own, self._host
        if own is not None and host is not None:
            crossing = host.crossing.get(number)
            if crossing is not None and own.keeps(data, crossing):
                return own.reads(data, number)
        if data and self._can_read(data):
            return True
        return has(self.store.whole, number) and bool(self._behind_token(number))

    def can_end(self) -> bool:
        with self._shared.lock:
            return self._is_ended or self._accepts()

    def _accepts(self) -> bool:
        return any(reading.back is None and reading.cursor.can_end() for reading in self._close())

    def is_finished(self) -> bool:
        return self._is_ended

    def remembered(self) -> int:
        return len(self._steps)

    def forget(self, remembered: int) -> None:
        while len(self._steps) > remembered:
            self._steps.popleft()

    def undo(self, n: int) -> None:
        with self._at_once(n), self._shared.lock:
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
        with self._shared.lock:
            begin = self._shared.begin
            self._enter(begin.readings, begin, None)
            self._steps.clear()
            self.said.clear()
            self._n_noted, self._is_ended = 0, False

    def copy(self) -> TextState:
        """As `TextState.copy`. Cost: O(the history, and the memory of the parts in it)."""
        return ComposedText(self.store, self.max_rollback, self._shared).become(self)

    def become(self, other: Any) -> TextState:
        with other._shared.lock:
            own = {id(one): one for one in (other._own, *(step.own for step in other._steps)) if one is not None}
            copies = {key: one.copy() for key, one in own.items()}

            def copied(readings: list[Reading]) -> list[Reading]:
                return [one._replace(cursor=copies.get(id(one.cursor), one.cursor)) for one in readings]

            self.max_rollback, self._shared = other.max_rollback, other._shared
            self._enter(copied(other._readings), other._known, copies.get(id(other._own)))
            self._steps = deque(
                (step._replace(readings=copied(step.readings), own=copies.get(id(step.own))) for step in other._steps),
                maxlen=other.max_rollback,
            )
            self.said[:], self._n_noted, self._is_ended = other.said, other._n_noted, other._is_ended
        return self

    def key(self) -> object:
        return self._is_ended, frozenset(reading.key() for reading in self._readings)

    # -- in words

    def where(self, readings: Sequence[Reading] = ()) -> str:
        """In which languages the text may be now, or `readings` of it, for messages."""
        parts, name = self.store.parts, self.store.name
        names = [name if one.back is None else parts[one.part].name for one in readings or self._readings]
        return " or ".join(dict.fromkeys(names))

    def languages(self) -> Iterator[tuple[str, TextState]]:
        for reading in self._close():
            if not isinstance(reading.cursor, RunCursor):  # it has tokens, and no words of its own
                name = self.store.name if reading.back is None else f"part {self.store.parts[reading.part].name}"
                yield name, reading.cursor.text

    def expectation(self, data: bytes) -> str:
        """As `TextState.expectation`. Cost: O(bytes log bytes)."""
        rules = self._shared.rules
        with self._shared.lock:
            good = bisect_left(range(1, len(data)), True, key=lambda n: not self._can_read(data[:n]))
            readings = rules.closed_behind(self._close(), data[:good])
            there = f", where the text is in {self.where(readings)}" if good >= PIECE else ""
            allowed = bytes(byte for byte in range(MARK) if rules.can_read(readings, bytes((byte,))))
            why = self._reason(data[: good + 1])
        return f"Byte {good} of it, {data[good : good + 1]!r}, cannot come here{why}; allowed: {listed_bytes(allowed)}{there}"

    def _reason(self, data: bytes) -> str:
        """Why a part refuses the last of some bytes, as a refusal says it; "" if none says so."""
        if len(self.bytes_said()) > MOST_EXPLAINED:
            return ""
        # INVARIANT: a known state's parts have read another text than this one, of another user
        fresh = ComposedText(self.store, 0, self._shared)
        fresh._read_again([*self.said, data[:-1]] if data[:-1] else self.said, 0)
        inner = (getattr(reading.cursor, "text", None) for reading in fresh._close())
        # where a part may end, what may come after it is no matter of its schema
        parts = [one for one in inner if one is not None and not one.can_end()]
        return next((found for one in parts if (found := one.reason(data[-1:]))), "")

    def may_be_whole(self) -> bool:
        with self._shared.lock:
            text = self.store.whole_with_text
            if self._is_ended or not text.any():
                return False
            marks = [mark for mark, words in self._shared.rules.token_parts if (words & text.view(np.int32)).any()]
            return any(
                any(map(reading.cursor.reads, marks))
                if reading.back is None
                else isinstance(reading.cursor, RunCursor) or reading.cursor.text.may_be_whole()
                for reading in self._close()
            )

    # -- endings

    def short_ending(self) -> Ending:
        """As `TextState.short_ending`, made of the shortest ones of part and host under way."""
        from maskwright.decoding.composition.ending import spelled
        from maskwright.decoding.endings.ending import Ending

        pieces = self.ending_pieces()
        return Ending(*spelled(pieces, self.store.vocabulary), False) if pieces else Ending(b"", ())

    def ending_pieces(self) -> list[bytes | int]:
        """The same as bytes, and tokens that are taken whole."""
        from maskwright.decoding.composition.ending import pieces_of

        with self._shared.lock:
            return [] if self._is_ended or self._accepts() else pieces_of(self._shared.rules, self._close())

    shortest_ending = short_ending

    def min_bytes_left(self) -> int:
        """The length of that ending, in bytes."""
        return len(self.short_ending().data)
