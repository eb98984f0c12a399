"""Texts with a terminal that may be held to names: `Matcher` is such."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError
from maskwright.decoding.dead_end_texts import DeadEndTexts
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.entries import entries

if TYPE_CHECKING:
    from maskwright.decoding.names.held import Held, Holding

Words = npt.NDArray[np.int32]


class HeldTexts(DeadEndTexts):
    """A text whose mask is narrowed while a terminal is held to names (`decoding.names`).

    Where nothing is held, all is done as without.
    """

    _held: Held | None = None

    def hold_as(self, other: HeldTexts) -> None:
        """Hold what another matcher of the same store holds, whose text is the same.

        It is for who reads a token again in pieces, and calls `restrict` between them.
        """
        from maskwright.decoding.names.held import Held

        place = None if other._held is None else other._held.place
        if self._held is None and place is not None:
            self._held = Held(self)
        if self._held is not None:
            self._held.place = place

    def _narrow(self, held: Held, words: Words) -> None:
        """Take the tokens out of the engine's mask that spell no name.

        Raises: DeadEndError if none is left.
        """
        if not held.narrow(self, words):
            raise DeadEndError(
                f"no token of vocabulary {self.store.vocabulary.name} can come next: {held.says(self)}. No text that the grammar "
                "allows has one of them next; give other names, or take the tokens since back"
            )

    def _fill(self, slot: int, words: Words) -> None:
        super()._fill(slot, words)
        if self._held is not None:
            self._narrow(self._held, words)

    def _advance_held(self, held: Held, token: int, number: int) -> None:
        """`Matcher.advance` while something is held. number : the token for compiled code."""
        code, place = self._place_behind(held, number)
        if code == constants.OK:
            code = entries.read_token(self._table, self._memory, 0, number, True)
            if code:
                code = self._retry(0, number, code)
        if code:
            self._refuse(0, token, code)
        self._move(held, place)

    def _place_behind(self, held: Held, number: int) -> tuple[int, Holding | None]:
        """The result of reading a token, and what is held behind it. The text is left as it is."""
        for tries in itertools.count():
            code = int(entries.read_token(self._table, self._memory, 0, number, False))
            if code != constants.NO_ROOM:
                break
            self._give_room(0, tries)
        if code != constants.OK:
            return code, None
        data = self.store.vocabulary.tokens[number]
        if not data:  # it ends the text
            return (constants.OK if held.may_end(self) else constants.NOT_COMPLETE), held.place
        is_allowed, place = held.after(self, data)
        return (constants.OK if is_allowed else constants.ILLEGAL), place

    def _move(self, held: Held, place: Holding | None) -> None:
        if self.max_rollback or place is not None:
            held.move(place)
        if place is None and (not self.max_rollback or held.is_over):
            self._held = None

    def _may_come(self, slot: int, token: int) -> bool:
        found = super()._may_come(slot, token)
        return found and (self._held is None or self._place_behind(self._held, token)[0] == constants.OK)

    def _read(self, slot: int, data: bytes, commit: bool) -> int:
        held = self._held
        if held is None:
            return super()._read(slot, data, commit)
        code = super()._read(slot, data, False)
        if code != constants.OK:
            return code
        is_allowed, place = held.after(self, data)
        if not is_allowed:
            return constants.ILLEGAL
        if commit:
            code = super()._read(slot, data, True)
            if code == constants.OK:
                self._move(held, place)
        return code

    def _can_end(self, slot: int) -> bool:
        found = super()._can_end(slot)
        return found and (self._held is None or self._held.may_end(self))

    def _rollback(self, slot: int, n: int = 1) -> None:
        super()._rollback(slot, n)
        if self._held is not None:
            self._held.take_back(int(n))
            if self._held.is_over:
                self._held = None

    def _reset(self, slot: int) -> None:
        super()._reset(slot)
        self._held = None

    def _expectation(self, slot: int, data: bytes) -> str:
        found = super()._expectation(slot, data)
        return found if self._held is None or self._held.place is None else f"{found}; {self._held.says(self)}"

    def __setstate__(self, state: Any) -> None:
        from maskwright.decoding.names.held import Held

        self._held = Held(self)
        self._held.restore(state)
