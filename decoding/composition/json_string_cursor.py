"""Where a text stands inside a JSON string; and where a part of any kind begins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError
from maskwright.decoding.composition.cursors import Cursor, GrammarCursor, RunCursor, add, cursor_of, has
from maskwright.decoding.composition.exits import Exits
from maskwright.decoding.engine.strings import fill_part
from maskwright.maskstore.composition.json_strings import (
    ANY_CHARACTER,
    LIKELY,
    QUOTE,
    JsonStringTokens,
    Said,
    characters_of,
    escaped,
    going_on,
    said_inside,
    units_of,
    utf8_beginnings,
)
from maskwright.maskstore.composition.splits import Splits
from maskwright.maskstore.composition.tables import AnyPart, JsonStringPart, TokenPart, TokenRunPart

Words = npt.NDArray[np.int32]

_BEFORE, _INSIDE, _BEHIND = range(3)


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

    def reads(self, data: bytes, token: int = -1) -> bool:
        """As `Cursor.reads`: the escape under way must come to a character that may come."""
        if not data:
            return True
        found = self._said(data)
        if found is None:
            return False
        said = found[1]
        if said.is_closed:
            return self._inner.can_end_behind(said.text)
        if said.pending:
            return self._may_come(said.text, said.pending)
        return self._inner.reads(said.text)

    def _may_come(self, before: bytes, pending: bytes) -> bool:
        """Whether some character of an escape under way may come behind a text."""
        if before and not self._inner.reads(before):
            return False
        if len(pending) < 3 and any(self._inner.reads(before + bytes((byte,))) for byte in LIKELY):
            return True
        return any(self._inner.reads(before + beginning) for beginning in utf8_beginnings(characters_of(pending)))

    def read(self, data: bytes, token: int = -1) -> bool:
        if token >= 0 and self._place == _INSIDE and not self._pending and self._tokens.vocabulary.tokens[token]:
            # the token has no escape and no quote
            if not self._inner.read(data, token):
                return False
            self._history.append((_INSIDE, b"", True))
            return True
        found = self._said(data)
        if found is None or not self.reads(data):
            return False
        place, said = found
        before = self._place, self._pending, bool(said.text)
        if said.text and not self._inner.read(said.text):
            return False
        self._history.append(before)
        self._place, self._pending = place, said.pending
        return True

    def rollback(self) -> None:
        self._place, self._pending, is_said = self._history.pop()
        if is_said:
            self._inner.rollback()

    def can_end(self) -> bool:
        """Whether the string is closed: it is not unless what it says is legal."""
        return self._place == _BEHIND

    def can_end_behind(self, data: bytes) -> bool:
        """Whether the string is closed by some bytes, legally."""
        return data[-1:] == b'"' and (found := self._said(data)) is not None and found[1].is_closed and self.reads(data)

    def may_leave(self, data: bytes) -> bool:
        """As `Cursor.may_leave`: behind a quote."""
        return b'"' in data[:-1]

    def fill(self, words: Words) -> bool:
        """As `Cursor.fill`, over the text's own vocabulary."""
        words[:] = 0
        if self._place == _BEHIND:
            return False
        if self._place == _BEFORE:
            self._add_read(words, self._splits.starting_with(QUOTE))
        elif self._pending:
            for byte in going_on(self._pending):
                if self.reads(bytes((byte,))):
                    self._add_read(words, self._splits.starting_with(byte))
        else:
            self._fill_said(words)
        return bool(words.any())

    def fill_part(self, words: Words, exits: Exits) -> tuple[bool, bool]:
        """As `Cursor.fill_part`: one call of the engine if the string says a text of a grammar."""
        if self._place != _INSIDE or self._pending or not isinstance(self._inner, GrammarCursor):
            return super().fill_part(words, exits)
        tokens = self._tokens
        inside = np.empty(-(-tokens.vocabulary.size // 32), np.int32)
        given = exits.inside(tokens), words, inside, len(tokens.own), ANY_CHARACTER
        _, has_tokens = fill_part(self._inner.text, *given)
        for at in tokens.others:
            says, token = int(tokens.says[at]), int(tokens.ids[at])
            if (says < 0 or has(inside, says)) and self.reads(tokens.own[token]):
                add(words, (token,))
                has_tokens = True
        return False, has_tokens

    def _add_read(self, words: Words, ids: Iterable[int]) -> None:
        own = self._tokens.own
        add(words, (token for token in ids if self.reads(own[token])))

    def _fill_said(self, words: Words) -> None:
        tokens = self._tokens
        inside = np.empty(-(-tokens.vocabulary.size // 32), np.int32)
        self._inner.fill(inside)
        words[:] = inside[: len(words)]
        if over := len(tokens.own) & 31:
            words[-1] &= (1 << over) - 1
        ends = ((token, not data or has(inside, tokens.number[data])) for token, data in tokens.ends)
        self._add_read(words, (token for token, may_come in ends if may_come))
        says = tokens.says
        is_said = (says < 0) | ((inside[says >> 5] >> (says & 31)) & 1 != 0)
        known, found = dict[tuple[int, bytes], bool](), list[int]()
        for at in np.flatnonzero(is_said).tolist():
            token, key = int(tokens.ids[at]), (int(says[at]), tokens.pending[at])
            if key not in known:
                known[key] = not key[1] or self.reads(tokens.own[token])
            if known[key]:
                found.append(token)
        add(words, found)

    def ending(self) -> bytes:
        """Bytes that complete the string."""
        if self._place == _BEHIND:
            return b""
        if self._pending:
            return self._ending_of_escape()
        return b'"' * (self._place == _BEFORE) + escaped(self._inner.ending()) + b'"'

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
            more = units_of(character)[len(self._pending) :]
            other = self.copy()
            if other.read(more):
                return more + other.ending()
        raise DeadEndError("no bytes complete the escape of a JSON string")

    def key(self) -> object:
        return self._place, self._pending, self._inner.key()

    def copy(self) -> Self:
        other = type(self)(self._inner.copy(), self._tokens, self._splits)
        other._place, other._pending, other._history = self._place, self._pending, self._history.copy()
        return other


def _whole(beginning: bytes) -> str | None:
    """The character of a UTF-8 sequence; None for the beginning of one."""
    try:
        return beginning.decode()
    except UnicodeDecodeError:
        return None


def start_of(part: AnyPart, splits: Splits, max_rollback: int = 2) -> Cursor | None:
    """A part's text, at its start; None for a part that is a token.

    splits : of the whole text's vocabulary.
    max_rollback : what can be taken back.
    """
    if isinstance(part, TokenPart):
        return None
    if isinstance(part, TokenRunPart):
        return RunCursor(part.words.view(np.int32))
    inner = cursor_of(part.store.matcher(max_rollback).text, part.store.vocabulary.eos)
    return JsonStringCursor(inner, part.tokens, splits) if isinstance(part, JsonStringPart) else inner
