"""Where a text stands in one language, a host's or a part's: a cursor for each kind of language.

PERF: texts of grammars, schemas and patterns are read and masked by the calls of their engine that
keep the GIL (`quick_read`, `quick_fill`), as far as these can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError
from maskwright.analysis.marks import MARK
from maskwright.analysis.regex.dfa import Dfa
from maskwright.decoding.composition.exits import Exits
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engine.strings import fill_part
from maskwright.decoding.schema.text import SchemaText
from maskwright.decoding.tags.text import TagText
from maskwright.maskstore.composition.json_places import START, Place, place_after

Words = npt.NDArray[np.int32]

MOST_MASKS = 64
"""The most states of a pattern of which masks are kept, for one way that its host goes on."""


class Cursor:
    """A text of one language, as all engines can tell it.

    text : its state. A cursor that several readings share is never advanced.
    eos : the end-of-text tokens of the vocabulary.

    The classes below do the same as this one.
    """

    __slots__ = ("_key", "eos", "text")
    has_short_key = False
    """Whether `key` is found in no time, and is that of many texts."""

    def __init__(self, text: TextState, eos: tuple[int, ...]) -> None:
        self.text, self.eos = text, eos
        self._key: object = None

    def reads(self, data: bytes, token: int = -1) -> bool:
        """Whether bytes, all of them of this language, may come next.

        token : the id that they have in the whole text's vocabulary, or -1.
        """
        return self.text.reads(data)

    def read(self, data: bytes, token: int = -1) -> bool:
        """Add bytes, not empty, if `reads`. Returns whether they were added."""
        self._key = None
        return self.text.try_read(data)

    def behind_whole(self, token: int) -> Cursor | None:
        """The cursor behind a token that is taken whole; None if it may not come."""
        other = self.copy()
        return other if other.text.try_whole(token) else None

    def rollback(self) -> None:
        """Take back what the last successful `read` has added."""
        self._key = None
        self.text.undo(1)

    def next_bytes(self) -> Iterable[int]:
        """The bytes of this language that may come next."""
        return (byte for byte in range(MARK) if self.reads(bytes((byte,))))

    def parts_behind(self, data: bytes, marks: Sequence[bytes]) -> Iterable[int]:
        """Of a host: the parts that may begin behind some bytes. marks : those of all parts."""
        is_any = self.reads(data + bytes((MARK,)))
        return (number for number, each in enumerate(marks) if is_any and self.reads(data + each))

    def can_end(self) -> bool:
        """Whether the text is legal as a whole."""
        return self.text.can_end()

    def can_end_behind(self, data: bytes) -> bool:
        """Whether the text is legal as a whole with more bytes."""
        if not data:
            return self.can_end()
        if not self.reads(data):
            return False
        # other texts may have this cursor, so that it is not moved, if only for a moment
        other = self.copy()
        other.read(data)
        return other.can_end()

    def may_leave(self, data: bytes) -> bool:
        """Whether the text may be whole behind some, not all, of some bytes, as far as is known."""
        return len(data) > 1

    def keeps(self, data: bytes, crossing: int) -> bool:
        """Whether all bytes of a token are this language's, if they may come.

        crossing : as of `HostState`.
        """
        return not crossing or (not self.can_end() and (crossing == 1 or not self.may_leave(data)))

    def is_at_end(self) -> bool:
        """Whether the text may be whole, where few states are; False if nobody knows."""
        return False

    def fill(self, words: Words) -> bool:
        """Write the mask of the tokens that stay in this language. Returns whether there are such.

        words : as many as the language's own vocabulary has.
        """
        has_tokens = self.text.try_fill(words)
        if not has_tokens:
            words[:] = 0
        return has_tokens

    def fill_part(self, words: Words, exits: Exits) -> tuple[bool, bool]:
        """Write the mask of the tokens that begin in this language, of a part, and behind its end.

        words : (n_words,) int32.
        exits : the tokens that can leave it.

        Returns whether `exits.behind` is to be added, because the text may end and these are not
        known yet, and whether the mask has tokens.
        """
        self.fill(words)
        remove(words, self.eos)
        for before, number, tokens in exits.entries:
            if number >= 0 and not has(words, number):
                continue  # the bytes are a token that may not come
            if not all(has(words, token) for token in tokens) and self.can_end_behind(before):
                add(words, tokens)
        return with_behind(words, exits, self.can_end())

    def ending(self) -> bytes:
        """Bytes that complete the text."""
        return bytes(self.text.short_ending().data)

    def key(self) -> object:
        """Texts of a language with equal keys have the same future."""
        if self._key is None:
            self._key = self.text.key()
        return self._key

    def copy(self) -> Self:
        """A second cursor in the same state."""
        return type(self)(self.text.copy(), self.eos)


def has(words: npt.NDArray[Any], token: int) -> bool:
    """Whether a token is in a mask. words : int32 or uint32."""
    return bool(int(words[token >> 5]) >> (token & 31) & 1)


def add(words: Words, tokens: Iterable[int]) -> None:
    """Add tokens to a mask."""
    bits = words.view(np.uint32)
    for token in tokens:
        bits[token >> 5] |= np.uint32(1 << (token & 31))


def remove(words: Words, tokens: Iterable[int]) -> None:
    """Take tokens out of a mask."""
    bits = words.view(np.uint32)
    for token in tokens:
        bits[token >> 5] &= ~np.uint32(1 << (token & 31))


def with_behind(words: Words, exits: Exits, may_end: bool, has_tokens: bool = False) -> tuple[bool, bool]:
    """What `Cursor.fill_part` returns, having added the tokens behind the part if they are known.

    may_end : whether the text may end. has_tokens : whether the mask is known to have tokens.
    """
    if may_end and exits.behind is not None:
        words |= exits.behind
        may_end = False
    return may_end, has_tokens or bool(words.any())


class GrammarCursor(Cursor):
    """A text of a grammar: one call of the engine reads all that can leave it."""

    __slots__ = ()
    text: SlotText

    def reads(self, data: bytes, token: int = -1) -> bool:
        return super().reads(data) if token < 0 else self.text.is_ok(self.text.read_token(token, False))

    def read(self, data: bytes, token: int = -1) -> bool:
        self._key = None
        text = self.text
        if token < 0:
            return text.try_read(data)
        texts = text.texts
        return not texts.quick_read(texts.bound[0], token) or text.is_ok(text.read_token(token, True))

    def fill_part(self, words: Words, exits: Exits) -> tuple[bool, bool]:
        # BOUND: a token that was added may be the beginning of another one; that is read then
        may_end, has_tokens = fill_part(self.text, exits.strings(), words)
        return with_behind(words, exits, True, has_tokens) if may_end else (False, has_tokens)


class SchemaCursor(Cursor):
    """A text of a schema or a pattern, beside which its place is known.

    _places : that of the text, behind each of those before it.
    """

    __slots__ = ("_places",)
    has_short_key = True
    text: SchemaText

    def __init__(self, text: SchemaText, eos: tuple[int, ...], start: Any) -> None:
        super().__init__(text, eos)
        self._places = [start]

    def _place_behind(self, data: bytes) -> Any:
        """The place behind more bytes."""
        raise NotImplementedError

    def reads(self, data: bytes, token: int = -1) -> bool:
        return super().reads(data) if token < 0 else self.text.is_ok(self.text.read_token(token, False))

    def read(self, data: bytes, token: int = -1) -> bool:
        text, self._key = self.text, None
        if token >= 0 and not text.quick_read(text.bound[0], token):
            text.said.append(token)
        elif not text.try_read(data):
            return False
        self._places.append(self._place_behind(data))
        return True

    def rollback(self) -> None:
        super().rollback()
        self._places.pop()

    def fill(self, words: Words) -> bool:
        text = self.text
        if text.bound[2] is not words:
            text.bind(words)
        return not text.quick_fill(text.bound[0]) or super().fill(words)

    def copy(self) -> Self:
        other = super().copy()
        other._places = self._places.copy()
        return other


class JsonCursor(SchemaCursor):
    """A text of a JSON schema, which may end only outside strings and brackets."""

    __slots__ = ()
    _places: list[Place]

    def __init__(self, text: SchemaText, eos: tuple[int, ...]) -> None:
        super().__init__(text, eos, START)

    @property
    def place(self) -> Place:
        """Where the text stands."""
        return self._places[-1]

    def _place_behind(self, data: bytes) -> Place:
        return place_after(data, self._places[-1])

    def can_end(self) -> bool:
        return self._places[-1] == START and self.text.can_end()

    def can_end_behind(self, data: bytes) -> bool:
        return place_after(data, self._places[-1]) == START and super().can_end_behind(data)

    def may_leave(self, data: bytes) -> bool:
        return len(data) > 1 and data[:-1].count(b"}") + data[:-1].count(b"]") >= self._places[-1].depth

    def is_at_end(self) -> bool:
        return self._places[-1] == START

    def fill_part(self, words: Words, exits: Exits) -> tuple[bool, bool]:
        place, has_tokens = self._places[-1], self.fill(words)
        if place == START:
            remove(words, self.eos)
            self._add_closing(words, exits)
            return with_behind(words, exits, self.can_end())
        if place.depth <= exits.deepest:
            self._add_closing(words, exits)
        return False, has_tokens or bool(words.any())

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
                ends = self.can_end_behind(before)
                if place != START:
                    exits.blanks[blank] = ends
            if ends:
                add(words, tokens)


class PatternCursor(SchemaCursor):
    """A text of a pattern: what it allows is known from the state of an automaton, its place."""

    __slots__ = ("_pattern",)
    _places: list[int]

    def __init__(self, text: SchemaText, eos: tuple[int, ...]) -> None:
        super().__init__(text, eos, 0)
        self._pattern: Dfa = text.store.texts

    def _place_behind(self, data: bytes) -> int:
        return self._pattern.run(data, self._places[-1])

    def reads(self, data: bytes, token: int = -1) -> bool:
        return self._place_behind(data) >= 0

    def can_end(self) -> bool:
        return bool(self._pattern.is_accepting[self._places[-1]])

    def can_end_behind(self, data: bytes) -> bool:
        state = self._place_behind(data)
        return state >= 0 and bool(self._pattern.is_accepting[state])

    def fill_part(self, words: Words, exits: Exits) -> tuple[bool, bool]:
        kept = exits.masks.get(self._places[-1])
        if kept is not None:
            words[:] = kept
            return False, True
        is_partial, has_tokens = super().fill_part(words, exits)
        if has_tokens and not is_partial and len(exits.masks) < MOST_MASKS:
            exits.masks[self._places[-1]] = words.copy()
        return is_partial, has_tokens

    def key(self) -> object:
        return self._places[-1]


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

    words : (n_words,) int32, the mask of its tokens.
    """

    __slots__ = ("_has_tokens", "words")

    def __init__(self, words: Words, *, has_tokens: bool = False) -> None:
        self._key, self.eos = None, ()
        self.words, self._has_tokens = words, has_tokens

    def reads(self, data: bytes, token: int = -1) -> bool:
        """As `Cursor.reads`: no bytes."""
        return not data

    def behind_whole(self, token: int) -> RunCursor | None:
        return RunCursor(self.words, has_tokens=True) if has(self.words, token) else None

    def may_leave(self, data: bytes) -> bool:
        return False

    def can_end(self) -> bool:
        return self._has_tokens

    def fill(self, words: Words) -> bool:
        words[:] = self.words
        return True

    def ending(self) -> bytes:
        """As `Cursor.ending`. Raises: DeadEndError if there is no token yet."""
        if not self._has_tokens:
            raise DeadEndError("a run of tokens has a token at least")
        return b""

    def key(self) -> object:
        return self._has_tokens

    def copy(self) -> Self:
        return self


def _schema_cursor(text: SchemaText, eos: tuple[int, ...]) -> Cursor:
    return (PatternCursor if isinstance(text.store.texts, Dfa) else JsonCursor)(text, eos)


CURSORS: dict[str, Callable[..., Cursor]] = {"grammar": GrammarCursor, "schema": _schema_cursor, "tag": TagCursor}
"""By the engine of a store (`decoding.engines`), the cursors that are faster than a `Cursor`."""


def cursor_of(text: TextState, eos: tuple[int, ...]) -> Cursor:
    """The cursor of a text at its start. eos : the end-of-text tokens of its vocabulary."""
    return CURSORS.get(text.store.engine, Cursor)(text, eos)
