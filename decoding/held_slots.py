"""The slots of a batch, in each of which a terminal may be held to names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.dead_end_texts import DeadEndTexts
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.held_texts import HeldTexts
from maskwright.decoding.matcher import Matcher

if TYPE_CHECKING:
    from maskwright.decoding.names.held import Held

Words = npt.NDArray[np.int32]


class HeldSlots(HeldTexts):
    """Several texts, in each of which a terminal may be held to names: `Batch` is such."""

    _held_slots: dict[int, Held]

    def _held_in(self, slot: int) -> Held | None:
        return self._held_slots.get(slot)

    def _hold_in(self, slot: int, held: Held | None) -> None:
        if held is None:
            self._held_slots.pop(slot, None)
        else:
            self._held_slots[slot] = held

    @property
    def holds_names(self) -> bool:
        """Whether a terminal of some text is held, here or before a token of its history."""
        return bool(self._held_slots)

    def _narrow_all(self, results: npt.NDArray[np.int32]) -> None:
        """Take out of the rows in `_words` what spells no name, or finish them, as `fill` does.

        results : (size,) int32; what compiled code said of each row, IDLE for those to leave alone.

        Raises: the first error, when all rows have been narrowed.
        """
        first: MaskwrightError | None = None
        codes = results.tolist()
        for slot, code in enumerate(codes):
            if code == constants.IDLE:
                continue
            try:
                self._finish_fill(slot, code, self._words[slot])
                held = self._held_slots.get(slot)
                if held is not None:
                    self._narrow(held, self._words[slot])
            except MaskwrightError as error:
                first = first or error
        if first is not None:
            raise first

    def _without_held(self, tokens: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The tokens of a batch, with -1 for the slots that hold something."""
        left = tokens.copy()
        left[list(self._held_slots)] = -1
        return left

    def _advance_held_slots(self, tokens: npt.NDArray[Any]) -> list[tuple[int, int]]:
        """Add the tokens of the slots that hold something.

        tokens : (size,) integers, -1 for texts to leave alone.

        Returns (slot, result) of those that may not come.
        """
        failures = []
        for slot, held in sorted(self._held_slots.items()):
            token = int(tokens[slot])
            if token != -1 and (code := self._try_held(held, self._id(token))) != constants.OK:
                failures.append((slot, code))
        return failures

    def _explain(self, slot: int, token: int) -> str:
        with Alone(self):
            slot, number = self._slot(slot), self._id(token)
            held = self._held_slots.get(slot)
            is_held_back = (
                held is not None and DeadEndTexts._may_come(self, slot, number) and not self._may_come(slot, number)
            )
        if held is not None and is_held_back:
            return f"token {token} ({self.store.vocabulary.tokens[number]!r}) may not come next in slot {slot}: {held.says(self)}"
        return super()._explain(slot, token)

    def _copy_text(self, source: int, target: int) -> None:
        super()._copy_text(source, target)
        if source != target:
            held = self._held_slots.get(source)
            self._hold_in(target, None if held is None else held.copy(self, target))

    def _alone(self, slot: int) -> Matcher:
        """A matcher with the text of a slot, and what is held there."""
        found = Matcher(self.store, self.max_rollback)
        region = int(self._regions[slot])
        n = int(self._memory[region + constants.ARENA])
        n += constants.RECORD * int(self._memory[region + constants.CAPACITY])
        memory = self._memory[region : region + n].copy()
        memory[constants.CACHE] = 0
        found._bound = found._bound_to(found._table, memory, found._words)
        held = self._held_slots.get(slot)
        found._held = None if held is None else held.copy(found)
        return found

    def __setstate__(self, state: dict[int, Any]) -> None:
        from maskwright.decoding.names.held import Held

        for slot, held in state.items():
            self._held_slots[slot] = Held(self, slot)
            self._held_slots[slot].restore(held)
