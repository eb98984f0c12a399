"""Texts with a terminal that may be held to names: `Matcher` and `Batch` are such."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.decoding.dead_end_texts import DeadEndTexts
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.entries import entries

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.names.held import Held, Holding

Words = npt.NDArray[np.int32]


class HeldTexts(DeadEndTexts):
    """Texts whose masks are narrowed while a terminal is held to names (`decoding.names`).

    Where nothing is held, all is done as without.
    """

    _held: Held | None = None
    """Of the only text. `HeldSlots` has those of several."""

    def _held_in(self, slot: int) -> Held | None:
        """What a text's terminal is held to; None if to nothing, however far it is taken back."""
        return self._held

    def _hold_in(self, slot: int, held: Held | None) -> None:
        self._held = held

    @property
    def holds_names(self) -> bool:
        """Whether a terminal of some text is held, here or before a token of its history."""
        return self._held is not None

    def _restrict(self, slot: int, terminal: str, names: Iterable[str | bytes]) -> None:
        """`Matcher.restrict`."""
        from maskwright.decoding.names.held import Held

        with Alone(self):
            slot = self._slot(slot)
            if self._memory[int(self._regions[slot]) + constants.FINISHED]:
                raise MaskwrightError(
                    "the text has ended, so no terminal of it can be held to names; reset() begins a new one"
                )
            held = self._held_in(slot) or Held(self, slot)
            held.hold(self, terminal, names)
            self._hold_in(slot, held)

    def _narrow(self, held: Held, words: Words) -> None:
        """Take the tokens out of the engine's mask that spell no name.

        Raises: DeadEndError if none is left.
        """
        if not held.narrow(self, words):
            where = f" in slot {held.slot}" if self.size > 1 else ""
            raise DeadEndError(
                f"no token of vocabulary {self.store.vocabulary.name} can come next{where}: {held.says(self)}. No text that the grammar "
                "allows has one of them next; give other names, or take the tokens since back"
            )

    def _fill(self, slot: int, words: Words) -> None:
        super()._fill(slot, words)
        held = self._held_in(slot)
        if held is not None:
            self._narrow(held, words)

    def _advance_held(self, held: Held, token: int, number: int) -> None:
        """`Matcher.advance` while something is held. number : the token for compiled code."""
        code = self._try_held(held, number)
        if code:
            self._refuse(held.slot, token, code)

    def _try_held(self, held: Held, number: int) -> int:
        """The result of adding a token to a text while something is held."""
        code, place = self._place_behind(held, number)
        if code == constants.OK:
            code = int(entries.read_token(self._table, self._memory, int(self._regions[held.slot]), number, True))
            if code:
                code = self._retry(held.slot, number, code)
        if code == constants.OK:
            self._move(held, place)
        return code

    def _place_behind(self, held: Held, number: int) -> tuple[int, Holding | None]:
        """The result of reading a token, and what is held behind it. The text is left as it is."""
        for tries in itertools.count():
            region = int(self._regions[held.slot])
            code = int(entries.read_token(self._table, self._memory, region, number, False))
            if code != constants.NO_ROOM:
                break
            self._give_room(held.slot, tries)
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
            self._hold_in(held.slot, None)

    def _may_come(self, slot: int, token: int) -> bool:
        found, held = super()._may_come(slot, token), self._held_in(slot)
        return found and (held is None or self._place_behind(held, token)[0] == constants.OK)

    def _read(self, slot: int, data: bytes, commit: bool) -> int:
        held = self._held_in(slot)
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
        found, held = super()._can_end(slot), self._held_in(slot)
        return found and (held is None or held.may_end(self))

    def _rollback(self, slot: int, n: int = 1) -> None:
        super()._rollback(slot, n)
        held = self._held_in(slot)
        if held is not None:
            held.take_back(int(n))
            if held.is_over:
                self._hold_in(slot, None)

    def _reset(self, slot: int) -> None:
        super()._reset(slot)
        self._hold_in(slot, None)

    def _expectation(self, slot: int, data: bytes) -> str:
        found, held = super()._expectation(slot, data), self._held_in(slot)
        return found if held is None or held.place is None else f"{found}; {held.says(self)}"


class HeldText(HeldTexts):
    """One text, with a terminal that may be held to names: `Matcher` is such."""

    def hold_as(self, other: HeldTexts) -> None:
        """Hold what another matcher of the same store holds, whose text is the same.

        It is for who reads a token again in pieces, and calls `restrict` between them.
        """
        from maskwright.decoding.names.held import Held

        place = None if other._held is None else other._held.place
        if self._held is None and place is not None:
            self._held = Held(self, 0)
        if self._held is not None:
            self._held.place = place

    def _fitting(self, ending: Ending) -> Ending:
        """A shortest ending, if names allow it. Raises: LimitError if they do not."""
        if self._held is None or self._held.place is None:
            return ending
        from maskwright.decoding.names.ending import fitting

        found = fitting(self, ending)
        if found is None:
            raise LimitError(
                f"a shortest ending is not known here, since {self._held.says(self)}; `short_ending` finds one that need not be shortest"
            )
        return found

    def __setstate__(self, state: Any) -> None:
        from maskwright.decoding.names.held import Held

        self._held = Held(self, 0)
        self._held.restore(state)
