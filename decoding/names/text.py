"""A text of a grammar of which a terminal is held to names: what of its next lexeme is known."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.analysis.locks import new_lock
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.state import LIMITS, TextState
from maskwright.decoding.engine.texts import Texts
from maskwright.decoding.grammar.text import GrammarText
from maskwright.decoding.names import layout
from maskwright.decoding.names.entries import entries
from maskwright.decoding.names.lexer import name_lexer
from maskwright.decoding.names.names import Names, terminal_of
from maskwright.maskstore.vocabulary.masks import words_of

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.explain import Explanation

Words = npt.NDArray[np.int32]

_SPARE_ROWS = 24
"""Rows beside those of a token's bytes: an ignored lexeme that is backed up over takes one."""
_LOCK = new_lock()
"""Held while counts are added to names, which copies of a text share."""


class Holding(NamedTuple):
    """Where a text stands while a terminal is held.

    names : what the terminal is held to.
    data : the bytes of the lexeme under way if it may come to be held; else those since it could
        have ended, which are read again if it fails.
    floor : how many of these come before the place of the call; -1 if the lexeme may be held.
    winner : the terminal that the lexeme is if it fails and is not held; -1 if none.
    """

    names: Names
    data: bytes
    floor: int
    winner: int

    @property
    def typed(self) -> bytes:
        """The bytes of the lexeme under way if it may come to be held; else none."""
        return self.data if self.floor < 0 else b""


class Kept(NamedTuple):
    """What a pickle keeps of what is held.

    names : each set once: the terminal, and the names. places : as of `NamedText`, with the numbers
    of the names in their place.
    """

    names: list[tuple[int, list[bytes]]]
    places: list[tuple[int, bytes, int, int] | None]

    def held_by(self, text: GrammarText) -> NamedText:
        """A text with what was held."""
        found = NamedText(text.texts, text.slot)
        names = [Names(found.lexer, terminal, texts) for terminal, texts in self.names]
        places = [None if place is None else Holding(names[place[0]], *place[1:]) for place in self.places]
        found.places = deque(places, found.places.maxlen)
        return found


class NamedText(GrammarText):
    """One text of which a terminal is held to names, here or before a token of its history.

    places : what is held before each token of the history since the first call, and at the end.
    lexer : of the store.

    INVARIANT: places change by one assignment, or one call of a deque, whoever interrupts.

    PERF: it has no quick calls: masks are narrowed, and tokens are read twice.
    """

    def __init__(self, texts: Texts, slot: int = 0, places: Iterable[Holding | None] = (None,)) -> None:
        super().__init__(texts, slot)
        self.is_apart = True
        self.lexer = name_lexer(texts.store)
        self.places = deque(places, texts.max_rollback + 1)
        self._rows = np.zeros(layout.ROW_SIZE * (self.lexer.longest + _SPARE_ROWS), np.int32)
        self._words = np.zeros(texts._n_words, np.int32)

    @property
    def place(self) -> Holding | None:
        """What is held at the text's end; None for nothing."""
        return self.places[-1]

    @place.setter
    def place(self, place: Holding | None) -> None:
        """Hold this at the text's end from now on."""
        self.places[-1] = place

    @property
    def holds_names(self) -> bool:  # type: ignore[override]
        """Whether something is held, however far the text is taken back."""
        return any(self.places)

    def hold(self, terminal: str, names: Iterable[str | bytes]) -> None:
        """Hold a terminal to names from the end of the text on. Raises: as `Matcher.restrict`.

        A lexeme under way that is held already stays so: to the names of both calls.
        """
        number = terminal_of(self.store.grammar, terminal)
        found = Names(self.lexer, number, names)
        place = self.place
        if place is not None and place.typed and self._may_become(place.names.terminal):
            if number != place.names.terminal:
                raise MaskwrightError(
                    f"{clip(place.typed)} has begun a lexeme, and {self.says()}: hold {terminal} to names behind it, or take "
                    "the tokens since it began back"
                )
            both = set(found.texts).intersection(place.names.texts)
            self.place = place._replace(names=Names(self.lexer, number, both))
            return
        data, winner = self.lexer.pending[self.lexer_state]
        self.place = Holding(found, data, len(data), winner)

    # -- what is not as in a text that holds nothing

    @property
    def quick(self) -> Any:
        """None."""
        return self

    def plain(self) -> TextState:
        """A `GrammarText` once nothing is held, however far the text is taken back."""
        return self if self.holds_names else GrammarText(self.texts, self.slot)

    def placed(self, texts: Texts, slot: int) -> GrammarText:
        return NamedText(texts, slot, self.places)

    def copy(self) -> TextState:
        found: Any = GrammarText(self.texts, self.slot).copy()
        return self.placed(found.texts, found.slot)

    def dump(self) -> Any:
        """As `SlotText.dump`, and what is held."""
        kept = {id(place.names): place.names for place in self.places if place is not None}
        number = {key: at for at, key in enumerate(kept)}
        names = [(names.terminal, names.texts) for names in kept.values()]
        places = [None if place is None else (number[id(place.names)], *place[1:]) for place in self.places]
        return (*super().dump(), Kept(names, places))

    def read_token(self, token: int, commit: bool) -> int:
        tokens = self.store.vocabulary.tokens
        return self._read(super().read_token, token, tokens[token] if 0 <= token < len(tokens) else b"", commit)

    def read(self, data: bytes, commit: bool) -> int:
        return self._read(super().read, data, data, commit)

    def _read(self, read: Callable[[Any, bool], int], what: Any, data: bytes, commit: bool) -> int:
        """Read a token, or bytes, if the names let it come.

        read, what : how the engine reads it, and what it is given.
        data : its bytes; none if it ends the text.
        """
        code = read(what, False)
        if code != constants.OK:
            return code
        place = self.place
        if data:
            is_allowed, place = self._after(data)
            if not is_allowed:
                return constants.ILLEGAL
        elif not self._may_end():
            return constants.NOT_COMPLETE
        if commit:
            with self._at_once():
                code = read(what, True)
                if code == constants.OK:
                    self.places.append(place)
        return code

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        """Where what follows is interrupted, be as before: the engine may have moved already.

        PERF: 8 us of the 16 that a token of a held text takes, whose masks take ten times as long.
        """
        places, region = self.places.copy(), self.texts.take_out(self.slot)
        try:
            yield
        except BaseException:
            self.texts.put_in(self.slot, region)
            self.places = places
            raise

    def fill(self, words: Words) -> int:
        """As `TextState.fill`, without the tokens that spell no name."""
        code = super().fill(words)
        return constants.DEAD_END if code == constants.OK and not self._narrow(words) else code

    def can_end(self) -> bool:
        return super().can_end() and self._may_end()

    def undo(self, n: int) -> None:
        with self._at_once():
            super().undo(n)
            self.places = deque([None, *list(self.places)[:-n]], self.places.maxlen)

    def reset(self) -> None:
        """As `TextState.reset`. Nothing is held then."""
        with self._at_once():
            super().reset()
            self.places = deque([None], self.places.maxlen)

    def replay(self, ids: npt.NDArray[np.int64]) -> int:
        """As `TextState.replay`, token by token."""
        return TextState.replay(self, ids)

    # -- what the kernels say

    def _ask(self, entry: Callable[..., Any], place: Holding, *arguments: Any) -> int:
        """The result of a kernel, with more room and counts as often as it needs them.

        A region refers only to itself, so kernels read it as that of a text that is alone. (They
        follow no walk, so they do not read its field CACHE.)

        Raises: LimitError as the engine.
        """
        for tries in itertools.count():
            self._rows[layout.LAST_WINNER] = place.winner
            code = int(entry(self.texts._table, self.memory, self.lexer.array, place.names.array, *arguments))
            if code == layout.WANTS_COUNTS:
                with _LOCK:
                    place.names.count(int(self._rows[0]))
            elif code == constants.NO_ROOM:
                self.texts._give_room(self.slot, tries)
            else:
                break
        if code in LIMITS:
            raise self.limit(code)
        return code

    def _narrow(self, words: Words) -> bool:
        """Take the tokens out of a mask that spell no name. Returns whether a token is left.

        words : (n_words,) int32 or longer, the engine's mask; changed in place.
        """
        place = self.place
        if place is None or self.is_finished():
            return True
        typed = len(place.data)
        room = np.zeros(typed + self.lexer.longest, np.int32)
        room[:typed] = np.frombuffer(place.data, np.uint8)
        self._ask(entries.narrow, place, self.lexer.trie, room, typed, place.floor, self._rows, self._words)
        ends = [token for token in self.store.vocabulary.eos if words[token >> 5] >> (token & 31) & 1]
        if ends and self._may_end():
            self._words |= words_of(ends, self.store.vocabulary.size).view(np.int32)
        mine = words[: len(self._words)]
        mine &= self._words
        return bool(mine.any())

    def _after(self, data: bytes) -> tuple[bool, Holding | None]:
        """Whether bytes that the engine takes may come, and what is held behind them."""
        place = self.place
        if place is None:
            return True, None
        typed, floor, rows = len(place.data), place.floor, self._rows
        whole = np.frombuffer(place.data + data, np.uint8).astype(np.int32)
        code = self._ask(entries.read_held, place, whole, typed, floor, rows)
        if code != layout.UNDECIDED:
            return code == layout.FREE, None
        begin = int(rows[layout.BEGIN])
        if begin < floor or self._is_ignored(begin, len(whole)):
            winner = int(rows[layout.LAST_WINNER])
            end = int(rows[layout.LAST_END]) if winner >= 0 else len(whole)
            return True, Holding(place.names, _as_bytes(whole[end:]), max(0, floor - end), winner)
        return True, Holding(place.names, _as_bytes(whole[begin:]), -1, -1)

    def _may_end(self) -> bool:
        """Whether a text that the engine lets end may end, as far as names go."""
        place = self.place
        if place is None or self.is_finished():
            return True
        data = np.frombuffer(place.data, np.uint8).astype(np.int32)
        return self._ask(entries.ends_held, place, data, len(data), place.floor, self._rows) == constants.OK

    def _may_become(self, terminal: int) -> bool:
        """Whether the lexeme under way may be one of a terminal, where it ends or further on."""
        array = self.lexer.array
        state = int(array[array[layout.UNDER_WAY] + self.lexer_state])
        return state < 0 or terminal in self._live(state)

    def _live(self, state: int) -> Words:
        """The terminals that win in a state of the union automaton, or further on."""
        array = self.lexer.array
        first, last = array[array[layout.LIVE_START] + state : array[layout.LIVE_START] + state + 2].tolist()
        return array[array[layout.LIVE] + first : array[layout.LIVE] + last]

    def _is_ignored(self, begin: int, n: int) -> bool:
        """Whether the lexeme of the first row can only be an ignored one, wherever it ends."""
        state, winner = int(self._rows[layout.STATE]), int(self._rows[layout.LAST_WINNER])
        if begin == n or (winner >= 0 and winner not in self.lexer.ignored):
            return False
        array = self.lexer.array
        return bool((array[array[layout.KIND] + self._live(state)] == layout.IGNORED).all())

    # -- in words

    def says(self) -> str:
        """What is held, for messages."""
        assert self.place is not None
        names = self.place.names
        shown = ", ".join(ascii(text.decode(errors="replace")) for text in names.texts[:3])
        more = ", ..." if len(names.texts) > 3 else ""
        return (
            f"terminal {self.store.grammar.display_name(names.terminal)} is held to {len(names.texts):,} names here"
            + (f" ({shown}{more})" if names.texts else "")
        )

    def refuse_fill(self, code: int) -> None:
        """As `TextState.refuse_fill`: where names are at fault, it says so."""
        if code == constants.DEAD_END and self.place is not None:
            without_names = super().fill(np.zeros(self.store.n_words, np.int32))
            if without_names == constants.OK:
                raise DeadEndError(
                    f"no token of vocabulary {self.store.vocabulary.name} can come next: {self.says()}. No text that the "
                    "grammar allows has one of them next; give other names, or take the tokens since back"
                )
        super().refuse_fill(code)

    def expectation(self, data: bytes) -> str:
        found = super().expectation(data)
        return found if self.place is None else f"{found}; {self.says()}"

    def why(self, token: int, number: int) -> str:
        if held_back := self._held_back(number):
            return f"token {token} ({self.store.vocabulary.tokens[number]!r}) {held_back}"
        return super().why(token, number)

    def explain(self, token: int) -> Explanation | None:
        found, held_back = super().explain(token), self._held_back(token)
        return replace(found, verdict="refused", summary=f"{found.what} {held_back}") if found and held_back else found

    def _held_back(self, token: int) -> str:
        """In words, that a token may not come because of names alone; else ""."""
        is_so = super().read_token(token, False) == constants.OK and self.read_token(token, False) != constants.OK
        return f"may not come next: {self.says()}" if is_so else ""

    # -- endings

    def shortest_ending(self) -> Ending:
        """As `TextState.shortest_ending`. Raises: LimitError if it is none of the names."""
        from maskwright.decoding.names.ending import fitting

        found = super().shortest_ending()
        if self.place is not None and fitting(self, found) is None:
            raise LimitError(
                f"a shortest ending is not known here, since {self.says()}; `short_ending` finds one that need not be shortest"
            )
        return found

    def short_ending(self) -> Ending:
        from maskwright.decoding.names.ending import short_ending

        return super().short_ending() if self.place is None else short_ending(self)

    def min_bytes_left(self) -> int:
        return super().min_bytes_left() if self.place is None else len(self.shortest_ending().data)


def _as_bytes(data: Words) -> bytes:
    return data.astype(np.uint8).tobytes()


def restricted(text: TextState, terminal: str, names: Iterable[str | bytes]) -> TextState:
    """The same text with a terminal held to names. Raises: as `Matcher.restrict`."""
    if not isinstance(text, GrammarText):
        raise MaskwrightError(
            f"only a terminal of a grammar's store can be held to names (`restrict`); {text.instead_of_names}"
        )
    if text.is_finished():
        raise MaskwrightError("the text has ended, so no terminal of it can be held to names; reset() begins a new one")
    found = _named(text)
    found.hold(terminal, names)
    return found


def holding_as(text: TextState, other: TextState) -> TextState:
    """The same text, holding what another one holds that has read the same."""
    place = other.place if isinstance(other, NamedText) else None
    if not isinstance(text, GrammarText) or (place is None and not isinstance(text, NamedText)):
        return text
    found = _named(text)
    found.place = place
    return found


def _named(text: GrammarText) -> NamedText:
    return text if isinstance(text, NamedText) else NamedText(text.texts, text.slot)


__all__ = ["NamedText", "holding_as", "restricted"]
