"""Where a text stands inside a JSON string."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError
from maskwright.decoding.composition.cursor import Cursor, add, has
from maskwright.decoding.composition.cursors import GrammarCursor
from maskwright.decoding.composition.exits import NO_EXITS, Exits
from maskwright.decoding.engine.strings import fill_part
from maskwright.maskstore.composition.json_strings import (
    ANY_CHARACTER,
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

_BEFORE, _INSIDE, _BEHIND = range(3)

_LIKELY = b" \nea0_,;)"
"""PERF: any character will do for an escape of which nothing is known; these are tried first."""


class JsonStringCursor(Cursor):
    """A text inside a JSON string, quotes included.

    inner : the cursor of what the string says.
    tokens : what tokens say inside a string.
    splits : the cuts of the text's own vocabulary.
    """

    __slots__ = ("_history", "_inner", "_pending", "_place", "_splits", "_tokens")

    def __init__(self, inner: Cursor, tokens: JsonStringTokens, splits: Splits) -> None:
        super().__init__(inner.text, inner.eos)
        self._inner, self._tokens, self._splits = inner, tokens, splits
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
            return self._inner.accepts_after(said.text)
        if said.pending:
            return self._may_come(said.text, said.pending)
        return self._inner.reads(said.text)

    def _may_come(self, before: bytes, pending: bytes) -> bool:
        """Whether some character of an escape under way may come behind a text."""
        if before and not self._inner.reads(before):
            return False
        if len(pending) < 3 and any(self._inner.reads(before + bytes((byte,))) for byte in _LIKELY):
            return True
        return any(self._inner.reads(before + beginning) for beginning in utf8_beginnings(characters_of(pending)))

    def try_bytes(self, data: bytes) -> bool:
        """Add bytes if `reads`."""
        if not data:
            return True
        self._key = None
        found = self._said(data)
        if found is None or not self.reads(data):
            return False
        place, said = found
        before = self._place, self._pending, bool(said.text)
        if said.text and not self._inner.try_bytes(said.text):
            return False
        self._history.append(before)
        self._place, self._pending = place, said.pending
        return True

    def rollback(self) -> None:
        """Take back what the last successful `try_bytes` has added."""
        self._key = None
        self._place, self._pending, is_said = self._history.pop()
        if is_said:
            self._inner.rollback()

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
            self._fill_said(words)
        return bool(words.any())

    def try_token(self, token: int, data: bytes) -> bool:
        if self._place != _INSIDE or self._pending or not self._tokens.vocabulary.tokens[token]:
            return self.try_bytes(data)
        # the token has no escape and no quote
        self._key = None
        if not self._inner.try_token(token, data):
            return False
        self._history.append((_INSIDE, b"", True))
        return True

    def quick_read(self, token: int, data: bytes) -> bool:
        if self._place != _INSIDE or self._pending or not self._tokens.vocabulary.tokens[token]:
            return False
        if not self._inner.quick_read(token, data):
            return False
        self._key = None
        self._history.append((_INSIDE, b"", True))
        return True

    def may_leave(self, data: bytes) -> bool:
        """As `Cursor.may_leave`: behind a quote."""
        return b'"' in data[:-1]

    def fill_part(self, words: Words, exits: Exits = NO_EXITS) -> tuple[bool, bool]:
        """As `Cursor.fill_part`: one call of the engine if the string says a text of a grammar."""
        if self._place != _INSIDE or self._pending or not isinstance(self._inner, GrammarCursor):
            return super().fill_part(words, exits)
        tokens = self._tokens
        inside = np.empty(-(-tokens.vocabulary.size // 32), np.uint32)
        _, has_tokens = fill_part(
            self._inner.text,
            exits.inside(tokens),
            words.view(np.int32),
            inside.view(np.int32),
            len(tokens.own),
            ANY_CHARACTER,
        )
        for at in tokens.others:
            says, token = int(tokens.says[at]), int(tokens.ids[at])
            if (says < 0 or has(inside, says)) and self.reads(tokens.own[token]):
                add(words, token)
                has_tokens = True
        return False, has_tokens

    def _add_read(self, words: Words, ids: tuple[int, ...]) -> None:
        own = self._tokens.own
        for token in ids:
            if self.reads(own[token]):
                add(words, token)

    def _fill_said(self, words: Words) -> None:
        tokens = self._tokens
        inside = np.zeros(-(-tokens.vocabulary.size // 32), np.uint32)
        if self._inner.fill(inside):
            words[:] = inside[: len(words)]
            over = len(tokens.own) & 31
            if over:
                words[-1] &= np.uint32((1 << over) - 1)
        for token, data in tokens.ends:
            if (not data or has(inside, tokens.number[data])) and self.reads(tokens.own[token]):
                add(words, token)
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
            add(words, token)

    def ending(self) -> bytes:
        """Bytes that complete the string."""
        if self._place == _BEHIND:
            return b""
        if self._pending:
            return self._ending_of_escape()
        return b'"' * (self._place == _BEFORE) + _escaped(self._inner.ending()) + b'"'

    def _ending_of_escape(self) -> bytes:
        """The rest of the escape under way, and an ending behind it."""
        for beginning in utf8_beginnings(characters_of(self._pending)):
            if not self._inner.reads(beginning):
                continue
            while (character := _whole(beginning)) is None:
                # what may begin can go on: some continuation is legal
                beginning = next(
                    longer for byte in range(0x80, 0xC0) if self._inner.reads(longer := beginning + bytes((byte,)))
                )
            more = _spelled(character)[len(self._pending) :]
            other = self.fork()
            if other.try_bytes(more):
                return more + other.ending()
        raise DeadEndError("no bytes complete the escape of a JSON string")

    def _find_key(self) -> object:
        return self._place, self._pending, self._inner.key()

    def fork(self) -> JsonStringCursor:
        """A second cursor in the same state."""
        other = JsonStringCursor(self._inner.fork(), self._tokens, self._splits)
        other._place, other._pending, other._history = self._place, self._pending, self._history.copy()
        return other


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
