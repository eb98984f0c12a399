"""The state of one text of a grammar."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine import constants
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engine.texts import Texts
from maskwright.maskstore.table.compiled import EngineTable

if TYPE_CHECKING:
    # PERF: what few decoders ask for is imported when they do, since all others would wait for it
    # at their first import
    from maskwright.decoding.endings.states import States
    from maskwright.decoding.explain import Explanation

Words = npt.NDArray[np.int32]


class GrammarText(SlotText):
    """One text of a grammar, of which no terminal is held to names."""

    can_hold_names = looks_further = True

    def ignored_at_start(self) -> bytes:
        """What ignored terminals and layout begin with, and no terminal that may begin a text."""
        from maskwright.analysis.grammar.normalise import nullable_symbols
        from maskwright.analysis.lexing.terminals import compile_terminals
        from maskwright.analysis.lr.loops import first_terminals

        grammar = self.store.grammar
        first = first_terminals(grammar, nullable_symbols(grammar))[grammar.start]
        ignored = {*grammar.ignored, *((grammar.layout.newline,) if grammar.layout else ())}
        automata = [(n, each) for n, each in enumerate(compile_terminals(grammar)) if each is not None]
        begun = {space: {n for n, each in automata if each.next_state[0, space] >= 0} for space in b" \t\n\r\v\f"}
        return bytes(
            space
            for space, every in begun.items()
            if every & ignored and not any(first >> n & 1 for n in every - ignored)
        )

    @property
    def quick(self) -> Any:
        """Quick calls are for a text that is alone in its memory."""
        return self.texts if self.texts.size == 1 else self

    def bind(self, words: Words) -> bool:
        return self.texts.size > 1 or self.texts.bind(words)

    def placed(self, texts: Texts, slot: int) -> GrammarText:
        """The text in a slot that has its state."""
        return GrammarText(texts, slot)

    def become(self, other: Any) -> TextState:
        super().become(other)
        found: GrammarText = other.placed(self.texts, self.slot)
        return found

    def replay(self, ids: npt.NDArray[np.int64]) -> int:
        """As `TextState.replay`, in one compiled call where nothing has to be done on the way."""
        words, result = np.zeros(self.store.n_words, np.int32), np.zeros(2, np.int64)
        texts, at = self.texts, 0
        if texts.size > 1:
            return super().replay(ids)
        texts.renew()
        while True:
            at = int(entries.replay(texts._table, texts._memory, ids, at, words, result))
            code, was_fill = result.tolist()
            if code in (constants.OK, constants.ILLEGAL):
                return at
            if was_fill:
                if code == constants.AFTER_END:
                    return at
                self.refuse_fill(self.finish_fill(code, words))
            else:
                if code == constants.NO_ROOM:
                    code = self.read_token(int(ids[at]), True)
                if code != constants.OK:
                    self.refuse(int(ids[at]), code)
                at += 1

    def load(self, state: Any) -> TextState:
        super().load(state)
        # what a text held that was pickled (`decoding.names.text.Kept`)
        found: TextState = self if len(state) == 2 else state[2].held_by(self)
        return found

    # -- in words

    def explain(self, token: int) -> Explanation | None:
        """As `TextState.explain`. Cost: slow; 2 s for the first call."""
        from maskwright.decoding.explain import explain_next

        return None if self.is_finished() else explain_next(self, token)

    def explain_bytes(self, data: bytes) -> Explanation:
        from maskwright.decoding.explain import explain_next

        return explain_next(self, data)

    def _stuck(self, fact: str, allowed: bytes) -> str:
        """Who is at fault: grammar or vocabulary."""
        completable = self._endings().is_completable(self)
        if completable is False or not allowed:
            return (
                f"{fact} The grammar is at fault, not the vocabulary: no bytes at all complete this text. `maskwright lint` says where it "
                "leads into dead ends, and what to do"
            )
        wanted = f"The grammar allows the bytes {allowed[:20]!r} next, but no token that begins with one of them is legal: use"
        if completable:
            return f"{fact} {wanted} a vocabulary that has them, or a grammar that does not need them"
        return f"{fact} {wanted} a vocabulary that has them; or the grammar leads into a dead end, which `maskwright lint` may show"

    # -- endings

    def ending_states(self) -> Callable[[], States]:
        """What makes the states in which endings of the store's texts are searched for."""
        from maskwright.decoding.grammar.ending_states import GrammarStates

        # While these live, the store's table may be replaced (`EngineTable.is_final`), by one with
        # the same lexer and parser. So they keep to the first one.
        store = self.store
        return partial(GrammarStates, EngineTable(store.grammar, store.vocabulary, store.table, store.counts))


__all__ = ["GrammarText"]
