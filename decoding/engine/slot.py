"""One text of a grammar: what the engine does to the text in a slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.grammar.columns import Column
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engine.texts import SOURCE, Texts

Words = npt.NDArray[np.int32]


class SlotText(TextState):
    """The text in a slot of some texts.

    It has no words for its future: endings and explanations (`decoding.grammar`).
    """

    def __init__(self, texts: Texts, slot: int = 0) -> None:
        super().__init__(texts.store, texts.max_rollback)
        self.texts, self.slot = texts, slot
        self.under = f"grammar {texts.store.grammar.name}"

    @property
    def region(self) -> int:
        """Where the text's region begins in `memory`."""
        return int(self.texts._regions[self.slot]) if self.slot else 0  # see `Texts._lay_out`

    @property
    def memory(self) -> Words:
        """The memory of all texts, from this one's region on."""
        return self.texts._memory[self.region :]

    @property
    def n_bytes(self) -> int:
        """Of all texts in this memory."""
        return self.texts.n_bytes

    def read_token(self, token: int, commit: bool) -> int:
        tries = 0
        while True:
            _, table, memory, _ = self.texts.bound
            code = entries.read_token(table, memory, self.region, token, commit)
            if code != constants.NO_ROOM:
                return int(code)
            self.texts._give_room(self.slot, tries)
            tries += 1

    def read(self, data: bytes, commit: bool) -> int:
        _, table, memory, _ = self.texts.bound
        region = self.region
        if memory[region + constants.FINISHED]:
            return constants.AFTER_END
        text = np.frombuffer(data, np.uint8).astype(np.int32)
        code = int(entries.read_bytes(table, text, False, 0, len(text), memory, region, commit))
        if code == constants.NO_ROOM:
            given = text, False, 0, len(text)
            code = self.with_room(
                lambda: entries.read_bytes(self.texts._table, *given, self.texts._memory, self.region, commit)
            )
        return code

    def with_room(self, call: Callable[[], int]) -> int:
        """The result of a compiled call, repeated with more room as long as it has too little.

        PERF: most calls have room. One that is made at each step is first made directly.
        """
        tries, code = 0, int(call())
        while code == constants.NO_ROOM:
            self.texts._give_room(self.slot, tries)
            tries, code = tries + 1, int(call())
        return code

    def fill(self, words: Words) -> int:
        texts = self.texts
        texts.renew()
        code = entries.fill(texts._table, texts._memory, self.region, words)
        return self.finish_fill(int(code), words) if code else constants.OK

    def finish_fill(self, code: int, words: Words) -> int:
        """Do what a compiled `fill` has left to be done. Returns its result then."""
        if code == constants.NO_ROOM:
            code = self.with_room(lambda: entries.fill(*self.texts.bound[1:3], self.region, words))
        if code == constants.AFTER_END:
            words[:] = 0
        elif code == constants.WANTS_CACHE:
            self.texts.give_caches(self.slot)
            return constants.OK
        return code

    def can_end(self) -> bool:
        _, table, memory, _ = self.texts.bound
        region = self.region
        if memory[region + constants.FINISHED]:
            return True
        code = entries.can_end(table, memory, region)
        if code == constants.NO_ROOM:
            code = self.with_room(lambda: entries.can_end(*self.texts.bound[1:3], self.region))
        return self.is_ok(code)

    def is_finished(self) -> bool:
        return bool(self.texts._memory[self.region + constants.FINISHED])

    def remembered(self) -> int:
        return int(self.texts.bound[2][self.region + constants.N_HISTORY])

    def undo(self, n: int) -> None:
        _, table, memory, _ = self.texts.bound
        entries.rollback(table, memory, self.region, n)

    def reset(self) -> None:
        entries.reset(self.texts._table, self.texts._memory, self.region)

    def become(self, other: SlotText) -> TextState:
        self.texts.put_in(self.slot, other.texts.take_out(other.slot))
        return self

    @property
    def lexer_state(self) -> int:
        return int(self.memory[constants.LEXER])

    def copy(self) -> TextState:
        """As `TextState.copy`, in memory of its own."""
        if self.texts.size == 1:
            return type(self)(self.texts.copy())
        other = type(self)(Texts(self.store, 1, self.max_rollback))
        return other.become(self)

    def dump(self) -> Any:
        """The checksum of the code that laid the text's memory out, and the memory."""
        return SOURCE, self.texts.take_out(self.slot)

    def load(self, state: Any) -> TextState:
        """As `TextState.load`. Raises: MaskwrightError if another version wrote it."""
        if state[0] != SOURCE:
            raise MaskwrightError(
                "the matcher or batch was pickled by another version of maskwright, which stores texts differently; read the texts again"
            )
        self.texts.put_in(self.slot, state[1])
        return self

    def limit(self, code: int) -> LimitError:
        return self.texts.limit(code)

    def key(self) -> object:
        """As `TextState.key`. Cost: O(depth of the stacks)."""
        memory = self.memory
        lexer, ended = memory[: constants.DEPTH + 1].tolist(), int(memory[constants.FINISHED])
        return (*lexer, ended, tuple(self.columns()), tuple(map(tuple, self.stacks())))

    def columns(self) -> list[Column]:
        """The columns of the open indents, the outermost first."""
        memory = self.memory
        arena, record = int(memory[constants.ARENA]), int(memory[constants.INDENTS])
        found = []
        while record >= 0:
            at = arena + constants.RECORD * record
            found.append(Column(int(memory[at]), int(memory[at + constants.RECORD])))
            record = int(memory[at + constants.BELOW_AT])
        return found[::-1]

    def stacks(self) -> list[list[int]]:
        """The LR states on each stack, from the bottom up."""
        stacks = int(self.memory[constants.STACKS])
        tops = [stacks] if stacks >= 0 else self._chain(constants.LIST - stacks)
        return [self._chain(top)[::-1] for top in tops]

    def _chain(self, record: int) -> list[int]:
        """The first integers of an arena record and of those below it."""
        memory = self.memory
        arena = int(memory[constants.ARENA])
        found = []
        while record >= 0:
            found.append(int(memory[arena + constants.RECORD * record]))
            record = int(memory[arena + constants.RECORD * record + constants.BELOW_AT])
        return found
