"""Where a text stands in one language: in a host, in a part, or inside a JSON string."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError
from maskwright.decoding.endings.ending import Ending
from maskwright.maskstore.composition.json_strings import (
    BACKSLASH,
    QUOTE,
    JsonStringTokens,
    Said,
    characters_of,
    said_inside,
    utf8_beginnings,
)
from maskwright.maskstore.composition.splits import Splits

Words = npt.NDArray[np.uint32]


class Inner(Protocol):
    """What `Matcher`, `SchemaMatcher` and `ComposedMatcher` have in common."""

    def try_bytes(self, data: bytes) -> bool:
        """Add bytes if they are legal."""

    def try_fill(self, words: Words) -> bool:
        """Write the mask; False at a dead end."""

    def is_accepting(self) -> bool:
        """Whether the text is legal as a whole."""

    def rollback(self, n: int = 1) -> None:
        """Take back the last n tokens or bytes."""

    def short_ending(self) -> Ending:
        """An ending."""

    def fork(self) -> Inner:
        """A second matcher in the same state."""

    def _allows_bytes(self, slot: int, data: bytes) -> bool:
        """Whether bytes may come next."""


class Cursor:
    """A text of one language.

    matcher : its state. A cursor that several readings share is never advanced.
    """

    __slots__ = ("matcher",)

    def __init__(self, matcher: Inner) -> None:
        self.matcher = matcher

    def reads(self, data: bytes) -> bool:
        """Whether bytes, all of them of this language, may come next."""
        return self.matcher._allows_bytes(0, data)

    def try_bytes(self, data: bytes) -> bool:
        """Add bytes if `reads`."""
        return self.matcher.try_bytes(data)

    def rollback(self) -> None:
        """Take back what the last successful `try_bytes` has added."""
        self.matcher.rollback(1)

    def accepts(self) -> bool:
        """Whether the text is legal as a whole."""
        return self.matcher.is_accepting()

    def accepts_after(self, data: bytes) -> bool:
        """Whether the text is legal as a whole with more bytes."""
        return _accepts_after(self.matcher, data)

    def fill(self, words: Words) -> bool:
        """Write the mask of the tokens that stay in this language. Returns whether there is one.

        words : as many as the language's own vocabulary has.
        """
        return self.matcher.try_fill(words)

    def ending(self) -> bytes:
        """Bytes that complete the text."""
        return self.matcher.short_ending().data

    def fork(self) -> Cursor:
        """A second cursor in the same state."""
        return Cursor(self.matcher.fork())


_BEFORE, _INSIDE, _BEHIND = range(3)

_LIKELY = b" \nea0_,;)"
"""PERF: any character will do for an escape of which nothing is known; these are tried first."""


class JsonStringCursor(Cursor):
    """A text inside a JSON string, quotes included.

    matcher : the state of what the string says.
    tokens : what tokens say inside a string.
    splits : the cuts of the text's own vocabulary.
    """

    __slots__ = ("_history", "_pending", "_place", "_splits", "_tokens")

    def __init__(self, matcher: Inner, tokens: JsonStringTokens, splits: Splits) -> None:
        super().__init__(matcher)
        self._tokens, self._splits = tokens, splits
        self._place, self._pending = _BEFORE, b""
        self._history: list[tuple[int, bytes, bool]] = []

    def _said(self, data: bytes) -> tuple[int, Said] | None:
        """Where the text is behind some bytes, and what they say; None if JSON forbids them."""
        if self._place == _BEFORE:
            if data[:1] != b'"':
                return None
            said = said_inside(data[1:])
        elif self._place == _INSIDE:
            said = said_inside(data, self._pending)
        else:
            return None
        return None if said is None else (_BEHIND if said.is_closed else _INSIDE, said)

    def reads(self, data: bytes) -> bool:
        """As `Cursor.reads`: the escape under way must come to a character that may come."""
        if not data:
            return True
        found = self._said(data)
        if found is None:
            return False
        said = found[1]
        if said.is_closed:
            return _accepts_after(self.matcher, said.text)
        if said.pending:
            return self._may_come(said.text, said.pending)
        return super().reads(said.text)

    def _may_come(self, before: bytes, pending: bytes) -> bool:
        """Whether some character of an escape under way may come behind a text."""
        if before and not self.matcher._allows_bytes(0, before):
            return False
        if len(pending) < 3 and any(self.matcher._allows_bytes(0, before + bytes((byte,))) for byte in _LIKELY):
            return True
        return any(
            self.matcher._allows_bytes(0, before + beginning) for beginning in utf8_beginnings(characters_of(pending))
        )

    def try_bytes(self, data: bytes) -> bool:
        """Add bytes if `reads`."""
        if not data:
            return True
        found = self._said(data)
        if found is None or not self.reads(data):
            return False
        place, said = found
        before = self._place, self._pending, bool(said.text)
        if said.text and not self.matcher.try_bytes(said.text):
            return False
        self._history.append(before)
        self._place, self._pending = place, said.pending
        return True

    def rollback(self) -> None:
        """Take back what the last successful `try_bytes` has added."""
        self._place, self._pending, is_said = self._history.pop()
        if is_said:
            self.matcher.rollback(1)

    def accepts(self) -> bool:
        """Whether the string is closed: it is not unless what it says is legal."""
        return self._place == _BEHIND

    def accepts_after(self, data: bytes) -> bool:
        """Whether the string is closed by some bytes, legally."""
        return data[-1:] == b'"' and (found := self._said(data)) is not None and found[1].is_closed and self.reads(data)

    def fill(self, words: Words) -> bool:
        """As `Cursor.fill`, over the text's own vocabulary."""
        words[:] = 0
        if self._place == _BEHIND:
            return False
        if self._place == _BEFORE:
            self._add_read(words, self._splits.starting_with(QUOTE))
        elif self._pending:
            for byte in _going_on(self._pending):
                if self.reads(bytes((byte,))):
                    self._add_read(words, self._splits.starting_with(byte))
        else:
            self._fill_inside(words)
        return bool(words.any())

    def _add_read(self, words: Words, ids: tuple[int, ...]) -> None:
        own = self._tokens.own
        for token in ids:
            if self.reads(own[token]):
                words[token >> 5] |= np.uint32(1 << (token & 31))

    def _fill_inside(self, words: Words) -> None:
        tokens = self._tokens
        inside = np.zeros(-(-tokens.vocabulary.size // 32), np.uint32)
        if self.matcher.try_fill(inside):
            words[:] = inside[: len(words)]
            over = len(tokens.own) & 31
            if over:
                words[-1] &= np.uint32((1 << over) - 1)
        for token, data in tokens.ends:
            if (not data or _has(inside, tokens.number[data])) and self.reads(tokens.own[token]):
                words[token >> 5] |= np.uint32(1 << (token & 31))
        says = tokens.says
        allowed = (says < 0) | ((inside[says >> 5] >> (says & 31).astype(np.uint32)) & 1).astype(bool)
        known: dict[tuple[int, bytes], bool] = {}
        for at in np.flatnonzero(allowed).tolist():
            token, pending = int(tokens.ids[at]), tokens.pending[at]
            if pending:
                key = int(says[at]), pending
                if key not in known:
                    known[key] = self.reads(tokens.own[token])
                if not known[key]:
                    continue
            words[token >> 5] |= np.uint32(1 << (token & 31))
        for token in self.matcher_eos:
            words[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)

    @property
    def matcher_eos(self) -> tuple[int, ...]:
        """The end-of-text tokens, which end no string."""
        return self._tokens.vocabulary.eos

    def ending(self) -> bytes:
        """Bytes that complete the string."""
        if self._place == _BEHIND:
            return b""
        if self._pending:
            return self._ending_of_escape()
        return b'"' * (self._place == _BEFORE) + _escaped(self.matcher.short_ending().data) + b'"'

    def _ending_of_escape(self) -> bytes:
        """The rest of the escape under way, and an ending behind it."""
        for beginning in utf8_beginnings(characters_of(self._pending)):
            if not self.matcher._allows_bytes(0, beginning):
                continue
            while (character := _whole(beginning)) is None:
                # what may begin can go on: some continuation is legal
                beginning = next(
                    longer
                    for byte in range(0x80, 0xC0)
                    if self.matcher._allows_bytes(0, longer := beginning + bytes((byte,)))
                )
            more = _spelled(character)[len(self._pending) :]
            if self.try_bytes(more):
                try:
                    return more + self.ending()
                finally:
                    self.rollback()
        raise DeadEndError("no bytes complete the escape of a JSON string")

    def fork(self) -> JsonStringCursor:
        """A second cursor in the same state."""
        other = JsonStringCursor(self.matcher.fork(), self._tokens, self._splits)
        other._place, other._pending, other._history = self._place, self._pending, self._history.copy()
        return other


def _accepts_after(matcher: Inner, data: bytes) -> bool:
    """Whether a text is legal as a whole with more bytes."""
    if not data:
        return matcher.is_accepting()
    if not matcher._allows_bytes(0, data) or not matcher.try_bytes(data):
        return False
    try:
        return matcher.is_accepting()
    finally:
        matcher.rollback(1)


def _has(words: Words, token: int) -> bool:
    return bool(words[token >> 5] >> np.uint32(token & 31) & 1)


def _going_on(pending: bytes) -> bytes:
    """The bytes with which an escape under way may go on."""
    if len(pending) == 1:
        return b'"\\/bfnrtu'
    if len(pending) == 6:
        return b"\\"
    return b"u" if len(pending) == 7 else b"0123456789abcdefABCDEF"


def _whole(beginning: bytes) -> str | None:
    """The character of a UTF-8 sequence; None for the beginning of one."""
    try:
        return beginning.decode()
    except UnicodeDecodeError:
        return None


def _spelled(character: str) -> bytes:
    r"""A character as ``\uXXXX``, or two of them."""
    units = character.encode("utf-16-be")
    return b"".join(b"\\u%04x" % int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))


def _escaped(data: bytes) -> bytes:
    r"""Text as it is spelled inside a JSON string: with an escape where one must stand."""
    found = bytearray()
    short = {0x22: b'\\"', BACKSLASH: b"\\\\", 0x0A: b"\\n", 0x0D: b"\\r", 0x09: b"\\t", 0x08: b"\\b", 0x0C: b"\\f"}
    for byte in data:
        found += short.get(byte) or (b"\\u%04x" % byte if byte < 0x20 else bytes((byte,)))
    return bytes(found)
