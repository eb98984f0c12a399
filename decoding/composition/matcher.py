"""Matchers of compositions: the state of one text of several languages, and its masks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip, refuse_argument
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError
from maskwright.analysis.marks import MARK
from maskwright.decoding.composition.answers import Answers
from maskwright.decoding.composition.cursor import Cursor, has
from maskwright.decoding.composition.cursors import RunCursor
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
from maskwright.decoding.composition.replay import replay, restored
from maskwright.decoding.composition.words import dead_end, refusal, why_not
from maskwright.decoding.engine.allowed import AllowedTokens
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.arguments import NO_BITMASK, as_id, check_words, plain_bytes
from maskwright.decoding.names.refused import NoNamesInCompositions
from maskwright.maskstore.composition.tables import ComposedTables, TokenPart

Words = npt.NDArray[np.uint32]

DEFAULT_ROLLBACK = 256
"""The number of tokens that can be taken back, unless the caller says otherwise."""


class ComposedMatcher(AllowedTokens, NoNamesInCompositions, Answers):
    """One text of a composition: fill a bitmask, advance by a token, and so on.

    `store.matcher()` makes one. It has the methods of `Matcher`, with the same meaning.

    store : what the masks come from.
    max_rollback : the number of tokens that `rollback` can take back.

    Raises: MaskwrightError if the store is no store of a composition, or max_rollback is no integer
    or negative; LimitError if so much history takes too much memory.

    A matcher is for one thread at a time.
    """

    _what = "this matcher"
    _remedy = "store.matcher() or fork()"

    def __init__(self, store: ComposedTables, max_rollback: int = DEFAULT_ROLLBACK) -> None:
        if not isinstance(store, ComposedTables):
            refuse_argument("the store", store, "a store of a composition, as mw.build_store returns it")
        max_rollback = as_integer("max_rollback", max_rollback)
        if max_rollback < 0:
            raise MaskwrightError(f"max_rollback is {clip(max_rollback)}; expected at least 0")
        self.store = store
        self.max_rollback = max_rollback
        self._rules = Rules(store, max_rollback)
        self._readings = [Reading(self._rules.host(), HOST, None, True)]
        self._closed: list[Reading] | None = None
        self._steps: deque[Step] = deque(maxlen=max_rollback)
        self._said: list[int | bytes] = []
        self._is_ended = False
        self._masks = Masks(self._rules)
        self._words: Words = np.zeros(0, np.uint32)
        self._checked = NO_BITMASK

    # -- masks

    def fill(self, bitmask: Any) -> None:
        """Write the mask of the tokens allowed next, in place: zero after the end of the text.

        bitmask : (ceil(V / 32),) or longer (padded vocabularies), uint32 or int32; a contiguous
            NumPy array or a torch tensor on the CPU. Bit i of word w, the least significant first,
            is token 32 w + i. End-of-text tokens are allowed if the text is legal as a whole.

        Raises: MaskwrightError if the bitmask has another shape, dtype or device; DeadEndError if
        no token can come next; LimitError if the text can be cut into host and parts in too many
        ways, or as the matchers of host and parts.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            if bitmask is not self._checked:
                self._checked = NO_BITMASK  # for whoever interrupts here
                self._words = check_words(bitmask, (), self.store.n_words).view(np.uint32)
                self._checked = bitmask
            with self._rules.lock:
                if not self._try_fill(self._words) and not self._is_ended:
                    raise DeadEndError(dead_end(self))
        finally:
            self._is_busy = False

    def try_fill(self, words: Words) -> bool:
        """`fill` of a checked bitmask. Returns whether a token may come.

        None may at a dead end, nor behind the end of the text.

        words : (n_words,) uint32.

        Raises: LimitError as `fill`.
        """
        with Alone(self), self._rules.lock:
            return self._try_fill(words)

    def _try_fill(self, words: Words) -> bool:
        if self._is_ended:
            words[:] = 0
            return False
        own = words[: self.store.n_words]
        words[self.store.n_words :] = 0
        first = self._readings[0]
        if len(self._readings) == 1 and first.is_own and first.back is not None and first.left:
            self._closed, has_tokens = self._masks.fill_alone(first, own)
            return has_tokens
        self._masks.fill(self._close(), own)
        return bool(own.any())

    def _close(self) -> list[Reading]:
        if self._closed is None:
            self._closed = within_budgets(self._rules.close(self._readings))
        return self._closed

    # -- the text

    def advance(self, token: int) -> None:
        """Add a token to the text.

        token : an id; an end-of-text token ends the text.

        Raises: IllegalTokenError if the token is not allowed or no integer; LimitError as `fill`.
        The state is unchanged then.
        """
        if self._is_busy:
            self._refuse_sharing()
        number = token if token.__class__ is int else as_id(token)
        self._is_busy = True
        try:
            with self._rules.lock:
                if not self._take(number):
                    raise IllegalTokenError(why_not(self, number))
                self._said.append(number)
        finally:
            self._is_busy = False

    def _take(self, number: int) -> bool:
        """Add a token if it is allowed."""
        vocabulary = self.store.vocabulary
        if self._is_ended or not 0 <= number < vocabulary.size:
            return False
        if number in vocabulary.eos:
            if not self._accepts():
                return False
            self._note(self._readings, [])
            self._is_ended = True
            return True
        data = vocabulary.tokens[number]
        found = self._behind_token(number) if has(self.store.whole, number) else []
        if data and number not in self._rules.marked:
            if not found and self._stays(data):
                # PERF: no border can be in the token, so one reading reads it
                (reading,) = self._close()
                if not reading.cursor.try_token(number, data):
                    return False
                self._note([reading.counted()], [reading.cursor])
                return True
            return self._take_bytes(data, found, is_token=True)
        if not found:
            return False
        self._note(found, [])
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

    def try_token(self, number: int) -> bool:
        """Add a token that a part takes whole, here or in a part. Returns whether it may come."""
        with Alone(self), self._rules.lock:
            found = [] if self._is_ended else self._behind_token(number)
            if found:
                self._note(found, [])
                self._said.append(number)
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
                inner = cursor.matcher
                if not isinstance(inner, ComposedMatcher) or not has(inner.store.whole, number):
                    continue
                cursor = cursor.fork()
                if not cursor.matcher.try_token(number):  # type: ignore[attr-defined]
                    continue
            reading.back.settle()
            found.append(reading._replace(cursor=cursor, is_own=True).counted())
        return distinct(found)

    def _take_bytes(self, data: bytes, found: Sequence[Reading] = (), *, is_token: bool = False) -> bool:
        """Add bytes, not empty, if they are legal.

        found : readings that take them as a whole token.
        is_token : whether parts that may take so many tokens count them.
        """
        if max(data) >= MARK:
            return False
        if not found and self._stays(data):
            (reading,) = self._close()
            if not reading.cursor.try_bytes(data):
                return False
            self._note([reading], [reading.cursor])
            return True
        rules, closed = self._rules, self._close()
        behind = list(found)
        in_place: list[Cursor] = []
        if len(data) > PIECE:
            stays, crossed = rules.behind(closed, data)
            behind = distinct([*behind, *([one.counted() for one in stays] if is_token else stays), *crossed])
            if behind:
                self._note(behind, [])
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
        self._note(behind, in_place)
        return True

    def _note(self, behind: list[Reading], advanced: list[Cursor]) -> None:
        self._steps.append(Step(self._readings, advanced, self._is_ended))
        self._readings, self._closed = behind, None

    def step(self, token: int, bitmask: Any) -> None:
        """`advance`, then `fill`. token, bitmask : as there.

        Raises: as both. After an error of `advance` nothing has changed; after one of `fill` the
        token has been added.
        """
        check_words(bitmask, (), self.store.n_words)
        self.advance(token)
        self.fill(bitmask)

    def replay(self, tokens: Any) -> int:
        """Add tokens to the text as long as the masks have them. Returns how many were added.

        tokens : (n,) integers.

        Raises: MaskwrightError if the tokens have another shape or dtype; IllegalTokenError if the
        vocabulary lacks one of them (nothing is read then); DeadEndError and LimitError as `fill`.
        """
        return replay(self, tokens)

    def advance_bytes(self, data: bytes) -> None:
        """Add bytes to the text, as one token that can be taken back.

        data : any bytes; empty bytes change nothing.

        Raises: MaskwrightError if they are no bytes; IllegalTokenError if they are illegal here;
        LimitError as `fill`. The state is unchanged then.
        """
        data = plain_bytes("the text", data)
        if not self.try_bytes(data):
            if self._is_ended:
                raise IllegalTokenError(f"bytes {data[:40]!r} come after the end of the text: reset() begins a new one")
            raise IllegalTokenError(refusal(self, None, data))

    def try_bytes(self, data: bytes) -> bool:
        """`advance_bytes` if the bytes are legal here. Returns whether they are.

        Raises: LimitError as `fill`.
        """
        with Alone(self), self._rules.lock:
            if not data:
                return True
            if self._is_ended or not self._take_bytes(data):
                return False
            self._said.append(data)
            return True

    def state_key(self) -> object:
        """Texts of a store with equal keys have the same future."""
        return self._is_ended, frozenset(map(key_of, self._readings))

    def _allows_bytes(self, slot: int, data: bytes) -> bool:
        """Whether some bytes may come next. slot : 0, as for a text of a grammar."""
        if not data:
            return True
        if self._is_ended or max(data) >= MARK:
            return False
        return self._rules.can_read(self._close(), data)

    def is_allowed(self, token: int) -> bool:
        """Whether a token may come next, without making a mask.

        token : an id. Ids that the vocabulary lacks may not come.

        Raises: IllegalTokenError if it is no integer; LimitError as `fill`.
        """
        with Alone(self), self._rules.lock:
            return self._may_come(as_id(token))

    def _may_come(self, number: int) -> bool:
        vocabulary = self.store.vocabulary
        if self._is_ended or not 0 <= number < vocabulary.size:
            return False
        if number in vocabulary.eos:
            return self._accepts()
        data = vocabulary.tokens[number]
        if data and self._allows_bytes(0, data):
            return True
        return has(self.store.whole, number) and bool(self._behind_token(number))

    def is_accepting(self) -> bool:
        """Whether the text is legal as a whole."""
        with Alone(self), self._rules.lock:
            return self._is_ended or self._accepts()

    def _accepts(self) -> bool:
        return any(reading.back is None and reading.cursor.accepts() for reading in self._close())

    def is_finished(self) -> bool:
        """Whether an end-of-text token has been read."""
        return self._is_ended

    def rollback(self, n: int = 1) -> None:
        """Take back the last n tokens.

        Raises: MaskwrightError if n is no integer or negative, or fewer tokens are remembered
        (`max_rollback`).
        """
        with Alone(self), self._rules.lock:
            n = as_integer("the number of tokens to roll back", n)
            if not 0 <= n <= len(self._steps):
                raise MaskwrightError(
                    f"cannot roll back {clip(n)} tokens: {len(self._steps)} are remembered (max_rollback is {self.max_rollback})"
                )
            for _ in range(n):
                step = self._steps.pop()
                for cursor in step.advanced:
                    cursor.rollback()
                self._readings, self._is_ended, self._closed = step.readings, step.ended, None
                self._said.pop()

    def reset(self) -> None:
        """Put the text back to its start, with no history."""
        with Alone(self), self._rules.lock:
            self._readings = [Reading(self._rules.host(), HOST, None, True)]
            self._closed, self._is_ended = None, False
            self._steps.clear()
            self._said.clear()

    def fork(self) -> ComposedMatcher:
        """A second matcher in the same state, with the same history.

        Cost: O(the memory of the text and its history).
        """
        other = object.__new__(ComposedMatcher)
        other.become(self)
        return other

    def become(self, other: ComposedMatcher) -> None:
        """Take over the state and the history of another matcher of the same store."""
        with Alone(other), other._rules.lock:
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

            self.store, self.max_rollback, self._rules = other.store, other.max_rollback, other._rules
            self._readings, self._closed, self._is_ended = all_copied(other._readings), None, other._is_ended
            self._steps = deque(
                (
                    Step(all_copied(step.readings), [copied(cursor) for cursor in step.advanced], step.ended)
                    for step in other._steps
                ),
                maxlen=other.max_rollback,
            )
            self._said = other._said.copy()
            self._masks = Masks(other._rules)
            self._words, self._checked = np.zeros(0, np.uint32), NO_BITMASK

    __copy__ = fork

    def __deepcopy__(self, memo: Any) -> ComposedMatcher:
        return self.fork()

    def said_so_far(self) -> list[int | bytes]:
        """The tokens and the bytes that were added, in order; what was taken back is not there."""
        return self._said.copy()

    def remembered(self) -> int:
        """How many tokens `rollback` can take back now."""
        return len(self._steps)

    def read_again(self, said: list[int | bytes], remembered: int) -> None:
        """Add what `said_so_far` has told.

        remembered : how many tokens `rollback` could take back then, which are fewer behind a
            rollback than the text has.

        Raises: as `advance`.
        """
        for each in said:
            if isinstance(each, bytes):
                self.advance_bytes(each)
            else:
                self.advance(each)
        while len(self._steps) > remembered:
            self._steps.popleft()

    def said(self) -> bytes:
        """The bytes of the text so far."""
        tokens = self.store.vocabulary.tokens
        return b"".join(each if isinstance(each, bytes) else tokens[each] for each in self._said)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self.store, self.max_rollback, self.said_so_far(), self.remembered())

    def __repr__(self) -> str:
        state = "ended" if self._is_ended else f"in {self.where()}"
        of = f"{self.store.name} x {self.store.vocabulary.name}"
        return f"<Matcher {of}: {state}, {len(self._steps)} of {self.max_rollback} tokens to roll back>"
