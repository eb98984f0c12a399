"""A text's terminal that is held to names: what is known of its next lexeme, token by token."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.locks import new_lock
from maskwright.decoding.engine import constants
from maskwright.decoding.names import layout
from maskwright.decoding.names.entries import entries
from maskwright.decoding.names.lexer import name_lexer
from maskwright.decoding.names.names import Names, terminal_of

if TYPE_CHECKING:
    from maskwright.decoding.engine.texts import Texts

Words = npt.NDArray[np.int32]

_SPARE_ROWS = 24
"""Rows beside those of a token's bytes: an ignored lexeme that is backed up over takes one."""
_LOCK = new_lock()
"""Held while counts are added to names, which copies of a matcher share."""


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


class Held:
    """What a text's terminal is held to, here and before each token of its history.

    slot : of the text.
    lexer : of the store.

    INVARIANT: places change by one assignment, or one call of a deque, whoever interrupts.
    """

    def __init__(self, texts: Texts, slot: int) -> None:
        self.slot = slot
        self.lexer = name_lexer(texts.store)
        self.places: deque[Holding | None] = deque([None], texts.max_rollback + 1)
        """What is held before each token of the history since the first call, and at the end."""
        n = self.lexer.longest
        self._rows = np.zeros(layout.ROW_SIZE * (n + _SPARE_ROWS), np.int32)
        self._words = np.zeros(texts._n_words, np.int32)

    @property
    def place(self) -> Holding | None:
        """What is held at the text's end; None for nothing."""
        return self.places[-1]

    @place.setter
    def place(self, place: Holding | None) -> None:
        """Hold this at the text's end from now on."""
        self.places[-1] = place

    def hold(self, texts: Texts, terminal: str, names: Iterable[str | bytes]) -> None:
        """Hold a terminal to names from the end of the text on. Raises: as `Matcher.restrict`.

        A lexeme under way that is held already stays so: to the names of both calls.
        """
        number = terminal_of(texts.store.grammar, terminal)
        found = Names(self.lexer, number, names)
        place = self.place
        if place is not None and place.typed and self._may_become(texts, place.names.terminal):
            if number != place.names.terminal:
                raise MaskwrightError(
                    f"{clip(place.typed)} has begun a lexeme, and {self.says(texts)}: hold {terminal} to names behind it, or take "
                    "the tokens since it began back"
                )
            both = set(found.texts).intersection(place.names.texts)
            self.place = place._replace(names=Names(self.lexer, number, both))
            return
        data, winner = self.lexer.pending[int(self._memory(texts)[constants.LEXER])]
        self.place = Holding(found, data, len(data), winner)

    def _may_become(self, texts: Texts, terminal: int) -> bool:
        """Whether the lexeme under way may be one of a terminal, where it ends or further on."""
        array = self.lexer.array
        state = int(array[array[layout.UNDER_WAY] + int(self._memory(texts)[constants.LEXER])])
        return state < 0 or terminal in self._live(state)

    def _live(self, state: int) -> Words:
        """The terminals that win in a state of the union automaton, or further on."""
        array = self.lexer.array
        first, last = array[array[layout.LIVE_START] + state : array[layout.LIVE_START] + state + 2].tolist()
        return array[array[layout.LIVE] + first : array[layout.LIVE] + last]

    def _memory(self, texts: Texts) -> Words:
        """The memory of all texts, from this one's region on.

        A region refers only to itself, so kernels read it as that of a text that is alone. (They
        follow no walk, so they do not read its field CACHE.)
        """
        return texts._memory[int(texts._regions[self.slot]) :]

    def copy(self, texts: Texts, slot: int = 0) -> Self:
        """The same for a copy of the text, in a slot of these texts."""
        found = type(self)(texts, slot)
        found.places = self.places.copy()
        return found

    def to_state(self) -> tuple[Any, ...]:
        """What a pickle keeps: each set of names once, with their terminal; then the places."""
        kept = {id(place.names): place.names for place in self.places if place is not None}
        number = {key: at for at, key in enumerate(kept)}
        return (
            [(names.terminal, names.texts) for names in kept.values()],
            [None if place is None else (number[id(place.names)], *place[1:]) for place in self.places],
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Take what `to_state` gave."""
        names = [Names(self.lexer, terminal, texts) for terminal, texts in state[0]]
        places = [None if place is None else Holding(names[place[0]], *place[1:]) for place in state[1]]
        self.places = deque(places, self.places.maxlen)

    @property
    def is_over(self) -> bool:
        """Whether nothing is held, however many tokens are taken back."""
        return not any(self.places)

    def take_back(self, n: int) -> None:
        """Take back n tokens."""
        self.places = deque([None, *list(self.places)[:-n]], self.places.maxlen)

    def narrow(self, texts: Texts, words: Words) -> bool:
        """Take the tokens out of a mask that spell no name. Returns whether a token is left.

        words : (n_words,) int32 or longer, the engine's mask; changed in place.
        """
        place = self.place
        if place is None or self._memory(texts)[constants.FINISHED]:
            return True
        typed = len(place.data)
        room = np.zeros(typed + self.lexer.longest, np.int32)
        room[:typed] = np.frombuffer(place.data, np.uint8)
        lexer = self.lexer
        self._ask(
            texts,
            place,
            lambda: entries.narrow(
                texts._table,
                self._memory(texts),
                lexer.array,
                place.names.array,
                lexer.trie,
                room,
                typed,
                place.floor,
                self._rows,
                self._words,
            ),
        )
        vocabulary = texts.store.vocabulary
        ends = [token for token in vocabulary.eos if words[token >> 5] >> (token & 31) & 1]
        if ends and self.may_end(texts):
            for token in ends:
                self._words[token >> 5] |= np.array(1 << (token & 31), np.uint32).view(np.int32)
        mine = words[: len(self._words)]
        mine &= self._words
        return bool(mine.any())

    def after(self, texts: Texts, data: bytes) -> tuple[bool, Holding | None]:
        """Whether bytes that the engine takes may come, and what is held behind them."""
        place = self.place
        if place is None:
            return True, None
        typed, floor = len(place.data), place.floor
        whole = np.frombuffer(place.data + data, np.uint8).astype(np.int32)
        code = self._ask(
            texts,
            place,
            lambda: entries.read_held(
                texts._table,
                self._memory(texts),
                self.lexer.array,
                place.names.array,
                whole,
                typed,
                place.floor,
                self._rows,
            ),
        )
        if code != layout.UNDECIDED:
            return code == layout.FREE, None
        begin = int(self._rows[layout.BEGIN])
        if begin < floor or self._is_ignored(begin, len(whole)):
            winner = int(self._rows[layout.LAST_WINNER])
            end = int(self._rows[layout.LAST_END]) if winner >= 0 else len(whole)
            return True, Holding(place.names, _as_bytes(whole[end:]), max(0, floor - end), winner)
        return True, Holding(place.names, _as_bytes(whole[begin:]), -1, -1)

    def may_end(self, texts: Texts) -> bool:
        """Whether a text that the engine lets end may end, as far as names go."""
        place = self.place
        if place is None or self._memory(texts)[constants.FINISHED]:
            return True
        data = np.frombuffer(place.data, np.uint8).astype(np.int32)
        code = self._ask(
            texts,
            place,
            lambda: entries.ends_held(
                texts._table,
                self._memory(texts),
                self.lexer.array,
                place.names.array,
                data,
                len(data),
                place.floor,
                self._rows,
            ),
        )
        return code == constants.OK

    def says(self, texts: Texts) -> str:
        """What is held, for messages."""
        assert self.place is not None
        names = self.place.names
        shown = ", ".join(ascii(text.decode(errors="replace")) for text in names.texts[:3])
        more = ", ..." if len(names) > 3 else ""
        return f"terminal {texts.store.grammar.display_name(names.terminal)} is held to {len(names):,} names here" + (
            f" ({shown}{more})" if names.texts else ""
        )

    def _is_ignored(self, begin: int, n: int) -> bool:
        """Whether the lexeme of the first row can only be an ignored one, wherever it ends."""
        state, winner = int(self._rows[layout.STATE]), int(self._rows[layout.LAST_WINNER])
        if begin == n or (winner >= 0 and winner not in self.lexer.ignored):
            return False
        array = self.lexer.array
        return bool((array[array[layout.KIND] + self._live(state)] == layout.IGNORED).all())

    def _ask(self, texts: Texts, place: Holding, call: object) -> int:
        """The result of a kernel, with more room and counts as often as it needs them.

        Raises: LimitError as the engine.
        """
        assert callable(call)
        for tries in itertools.count():
            self._rows[layout.LAST_WINNER] = place.winner
            code = int(call())
            if code == layout.WANTS_COUNTS:
                with _LOCK:
                    place.names.count(int(self._rows[0]))
            elif code == constants.NO_ROOM:
                texts._give_room(self.slot, tries)
            else:
                break
        if code in (constants.TOO_MANY, constants.SPLIT, constants.TOO_LONG):
            raise texts.limit(code)
        return code


def _as_bytes(data: Words) -> bytes:
    return data.astype(np.uint8).tobytes()
