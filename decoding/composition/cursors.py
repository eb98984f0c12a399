"""Cursors of grammars, JSON schemas and patterns.

PERF: a part's text that stays within its language is read and masked by the calls of its engine
that keep the GIL (`quick_read`, `quick_fill`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import Texts as JsonTexts
from maskwright.decoding.composition.cursor import Cursor, add, has
from maskwright.decoding.composition.exits import NO_EXITS, Exits
from maskwright.decoding.endings.ending import endings_of
from maskwright.decoding.engine._string_kernels import MAY_END, SOME, STATE
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engine.strings import NO_TAILS, fill_part
from maskwright.decoding.schema.text import SchemaText
from maskwright.decoding.tags.text import TagText
from maskwright.maskstore.composition.json_places import START, Place, place_after

Words = npt.NDArray[np.uint32]

MOST_MASKS = 64
"""The most states of a pattern of which masks are kept, for one way that its host goes on."""


class GrammarCursor(Cursor):
    """A text of a grammar: one call of the engine reads all that can leave it."""

    __slots__ = ("_told",)
    text: SlotText

    def __init__(self, text: SlotText, eos: tuple[int, ...]) -> None:
        super().__init__(text, eos)
        self._told = np.zeros(STATE, np.int32)

    def try_token(self, token: int, data: bytes) -> bool:
        self._key = None
        return self.text.is_ok(self.text.read_token(token, True))

    def may_come(self, token: int, data: bytes) -> bool:
        return self.text.is_ok(self.text.read_token(token, False))

    def quick_read(self, token: int, data: bytes) -> bool:
        self._key = None
        texts = self.text.texts
        return not texts.quick_read(texts.bound[0], token)

    def quick_fill(self, words: npt.NDArray[np.int32], exits: Exits) -> bool:
        texts, told = self.text.texts, self._told
        if texts._is_provisional:
            return False
        code = entries.fill_part(*texts.bound[1:3], 0, exits.strings(), NO_TAILS, words, words, -1, told)
        if code or not told[0]:
            return False
        if told[0] & MAY_END:
            if exits.behind is None:
                return False
            words |= exits.behind.view(np.int32)
        return bool(told[0] & SOME) or bool(words.any())

    def fill_part(self, words: Words, exits: Exits = NO_EXITS) -> tuple[bool, bool]:
        # BOUND: a token that was added may be the beginning of another one; that is read then
        return fill_part(self.text, exits.strings(), words.view(np.int32))


class JsonCursor(Cursor):
    """A text of a JSON schema, which may end only outside strings and brackets."""

    __slots__ = ("_bound_to", "_places")
    has_short_key = True
    text: SchemaText

    def __init__(self, text: SchemaText, eos: tuple[int, ...]) -> None:
        super().__init__(text, eos)
        self._places: list[Place] = [START]
        self._bound_to: npt.NDArray[np.int32] | None = None

    @property
    def place(self) -> Place:
        """Where the text stands."""
        return self._places[-1]

    def try_bytes(self, data: bytes) -> bool:
        if not data:
            return True
        if not super().try_bytes(data):
            return False
        self._places.append(place_after(data, self._places[-1]))
        return True

    def rollback(self) -> None:
        super().rollback()
        self._places.pop()

    def accepts(self) -> bool:
        return self._places[-1] == START and self.text.can_end()

    def accepts_after(self, data: bytes) -> bool:
        return place_after(data, self._places[-1]) == START and super().accepts_after(data)

    def fill_part(self, words: Words, exits: Exits = NO_EXITS) -> tuple[bool, bool]:
        place = self._places[-1]
        if place.depth > exits.deepest:
            # PERF: it ends neither here nor inside a token, so its mask has tokens, and no ends
            if not self.text.try_fill(words.view(np.int32)):
                words[:] = 0
                return False, False
            return False, True
        self._fill_inside(words)
        self._add_closing(words, exits)
        return self.accepts(), bool(words.any())

    def _add_closing(self, words: Words, exits: Exits) -> None:
        """Add the tokens that close the text and go on.

        INVARIANT: bytes that close all that is open, if they may come, make the text whole, and
        what white space does behind them does not depend on them.
        """
        place, at = self._places[-1], 0
        closings = exits.at_place(place)
        while at < len(closings):
            before, number, tokens, blank, skip = closings[at]
            at += 1
            if not (has(words, number) if number >= 0 else self.reads(before)):
                at = skip
                continue
            ends = exits.blanks.get(blank) if place != START else None
            if tokens and ends is None:
                ends = self.accepts_after(before)
                if place != START:
                    exits.blanks[blank] = ends
            if ends:
                for token in tokens:
                    add(words, token)

    def ending_of_marks(self) -> bytes:
        """As `ending`, for a host: the vocabulary need not spell marks."""
        return endings_of(self.text).short_bytes(self.text)

    def may_come(self, token: int, data: bytes) -> bool:
        return self.text.is_ok(self.text.read_token(token, False))

    def may_leave(self, data: bytes) -> bool:
        return len(data) > 1 and data[:-1].count(b"}") + data[:-1].count(b"]") >= self._places[-1].depth

    def quick_read(self, token: int, data: bytes) -> bool:
        text = self.text
        if text.quick_read(text.bound[0], token):
            return False
        self._key = None
        text.said.append(token)
        self._places.append(place_after(data, self._places[-1]))
        return True

    def quick_fill(self, words: npt.NDArray[np.int32], exits: Exits) -> bool:
        text, place = self.text, self._places[-1]
        if place == START:
            return False
        if self._bound_to is not words:
            text.bind(words)
            self._bound_to = words
        if text.quick_fill(text.bound[0]):
            return False
        if place.depth <= exits.deepest:
            self._add_closing(words.view(np.uint32), exits)
        return True

    def is_at_end(self) -> bool:
        return self._places[-1] == START

    def fork(self) -> Self:
        other = super().fork()
        other._places = self._places.copy()
        return other


class PatternCursor(Cursor):
    """A text of a pattern: what it allows is known from the state of an automaton.

    pattern : the automaton of all texts.
    """

    __slots__ = ("_pattern", "_states")
    has_short_key = True

    def __init__(self, text: TextState, eos: tuple[int, ...], pattern: Dfa) -> None:
        super().__init__(text, eos)
        self._pattern = pattern
        self._states = [0]

    def reads(self, data: bytes) -> bool:
        return self._pattern.run(data, self._states[-1]) >= 0

    def try_bytes(self, data: bytes) -> bool:
        if not data:
            return True
        state = self._pattern.run(data, self._states[-1])
        if state < 0 or not super().try_bytes(data):
            return False
        self._states.append(state)
        return True

    def rollback(self) -> None:
        super().rollback()
        self._states.pop()

    def accepts(self) -> bool:
        return bool(self._pattern.is_accepting[self._states[-1]])

    def accepts_after(self, data: bytes) -> bool:
        state = self._pattern.run(data, self._states[-1])
        return state >= 0 and bool(self._pattern.is_accepting[state])

    def quick_read(self, token: int, data: bytes) -> bool:
        return self.try_bytes(data)

    def quick_fill(self, words: npt.NDArray[np.int32], exits: Exits) -> bool:
        kept = exits.masks.get(self._states[-1])
        if kept is None:
            return False
        words[:] = kept
        return True

    def keep_mask(self, words: npt.NDArray[np.int32], exits: Exits) -> None:
        if len(exits.masks) < MOST_MASKS:
            exits.masks[self._states[-1]] = words.copy()

    def _find_key(self) -> object:
        return self._states[-1]

    def fork(self) -> Self:
        other = type(self)(self.text.copy(), self.eos, self._pattern)
        other._states = self._states.copy()
        return other


class TagCursor(Cursor):
    """A text of the rules of a structural tag, of a host."""

    __slots__ = ()
    text: TagText

    def next_bytes(self) -> Iterable[int]:
        return self.text.next_bytes()

    def parts_behind(self, data: bytes, marks: Sequence[bytes]) -> Iterable[int]:
        return self.text.parts_behind(data)


class RunCursor(Cursor):
    """A part that is a run of tokens: it reads no bytes, and may end once it has a token.

    words : (n_words,) uint32, the mask of its tokens.
    """

    __slots__ = ("_has_tokens", "words")

    def __init__(self, words: Words, *, has_tokens: bool = False) -> None:
        self._key, self.eos = None, ()
        self.words, self._has_tokens = words, has_tokens

    def going_on(self) -> RunCursor:
        """The run with one more token."""
        return RunCursor(self.words, has_tokens=True)

    def reads(self, data: bytes) -> bool:
        """As `Cursor.reads`: no bytes."""
        return not data

    def try_bytes(self, data: bytes) -> bool:
        return not data

    def may_leave(self, data: bytes) -> bool:
        return False

    def rollback(self) -> None:
        """As `Cursor.rollback`: nothing was added."""

    def accepts(self) -> bool:
        return self._has_tokens

    def accepts_after(self, data: bytes) -> bool:
        return not data and self._has_tokens

    def fill(self, words: Words) -> bool:
        words[:] = self.words
        return True

    def ending(self) -> bytes:
        """As `Cursor.ending`. Raises: DeadEndError if there is no token yet."""
        if not self._has_tokens:
            raise DeadEndError("a run of tokens has a token at least")
        return b""

    def _find_key(self) -> object:
        return self._has_tokens

    def fork(self) -> Self:
        return self


def _schema_cursor(text: SchemaText, eos: tuple[int, ...]) -> Cursor:
    texts = text.store.texts
    return JsonCursor(text, eos) if isinstance(texts, JsonTexts) else PatternCursor(text, eos, texts)


CURSORS: dict[str, Callable[..., Cursor]] = {"grammar": GrammarCursor, "schema": _schema_cursor, "tag": TagCursor}
"""By the engine of a store (`decoding.engines`), the cursors that are faster than a `Cursor`."""


def cursor_of(text: TextState, eos: tuple[int, ...]) -> Cursor:
    """The cursor of a text at its start. eos : the end-of-text tokens of its vocabulary."""
    return CURSORS.get(text.store.engine, Cursor)(text, eos)


__all__ = ["GrammarCursor", "JsonCursor", "PatternCursor", "RunCursor", "cursor_of"]
