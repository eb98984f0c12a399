"""The state of one text of a grammar, and of one with a terminal that is held to names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engine.texts import Texts
from maskwright.maskstore.table.compiled import EngineTable

if TYPE_CHECKING:
    # PERF: what few decoders ask for is imported when they do, since all others would wait for it
    # at their first import
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.endings.states import States
    from maskwright.decoding.explain import Explanation
    from maskwright.decoding.names.held import Held

Words = npt.NDArray[np.int32]


class GrammarText(SlotText):
    """One text of a grammar, of which no terminal is held to names."""

    held: Held | None = None
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

    def become(self, other: Any) -> TextState:
        super().become(other)
        if other.held is not None:
            return NamedText(self.texts, self.slot, other.held.copy(self.texts, self.slot))
        return self if self.held is None else GrammarText(self.texts, self.slot)

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

    def restricted(self, terminal: str, names: Iterable[str | bytes]) -> TextState:
        from maskwright.decoding.names.held import Held

        if self.is_finished():
            raise MaskwrightError(
                "the text has ended, so no terminal of it can be held to names; reset() begins a new one"
            )
        held = self.held or Held(self.texts, self.slot)
        held.hold(self.texts, terminal, names)
        return self if held is self.held else NamedText(self.texts, self.slot, held)

    def holding_as(self, other: Any) -> TextState:
        from maskwright.decoding.names.held import Held

        place = None if other.held is None else other.held.place
        if self.held is None and place is None:
            return self
        held = self.held or Held(self.texts, self.slot)
        held.place = place
        return self if held is self.held else NamedText(self.texts, self.slot, held)

    def load(self, state: Any) -> TextState:
        super().load(state)
        if len(state) == 2:
            return self
        from maskwright.decoding.names.held import Held

        held = Held(self.texts, self.slot)
        held.restore(state[2])
        return NamedText(self.texts, self.slot, held)

    # -- in words

    def explain(self, token: int) -> Explanation:
        """As `TextState.explain`. Cost: slow; 2 s for the first call."""
        from maskwright.decoding.explain import explain_next

        return explain_next(self, token)

    def explain_bytes(self, data: bytes) -> Explanation:
        from maskwright.decoding.explain.explain import explain_next_bytes

        return explain_next_bytes(self, data)

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


class NamedText(GrammarText):
    """One text of which a terminal is held to names, here or before a token of its history.

    held : what is held (`decoding.names`).

    PERF: it has no quick calls: masks are narrowed, and tokens are read twice.
    """

    held: Held

    def __init__(self, texts: Texts, slot: int, held: Held) -> None:
        super().__init__(texts, slot)
        self.held = held

    @property
    def quick(self) -> Any:
        """None."""
        return self

    @property
    def holds_names(self) -> bool:  # type: ignore[override]
        """True, as long as there is something to take back."""
        return not self._is_over

    @property
    def _is_over(self) -> bool:
        return self.held.is_over

    def bind(self, words: Words) -> bool:
        return True

    def plain(self) -> TextState:
        """A `GrammarText` once nothing is held, however far the text is taken back."""
        return GrammarText(self.texts, self.slot) if self._is_over else self

    def copy(self) -> TextState:
        found: Any = GrammarText(self.texts, self.slot).copy()
        return NamedText(found.texts, found.slot, self.held.copy(found.texts, found.slot))

    def dump(self) -> Any:
        """As `SlotText.dump`, and what is held."""
        return (*super().dump(), self.held.to_state())

    def read_token(self, token: int, commit: bool) -> int:
        code = super().read_token(token, False)
        if code != constants.OK:
            return code
        data, place = self.store.vocabulary.tokens[token], self.held.place
        if data:
            is_allowed, place = self.held.after(self.texts, data)
            if not is_allowed:
                return constants.ILLEGAL
        elif not self.held.may_end(self.texts):  # it ends the text
            return constants.NOT_COMPLETE
        if commit:
            with self._at_once():
                code = super().read_token(token, True)
                if code == constants.OK:
                    self.held.places.append(place)
        return code

    def read(self, data: bytes, commit: bool) -> int:
        code = super().read(data, False)
        if code != constants.OK:
            return code
        is_allowed, place = self.held.after(self.texts, data)
        if not is_allowed:
            return constants.ILLEGAL
        if commit:
            with self._at_once():
                code = super().read(data, True)
                if code == constants.OK:
                    self.held.places.append(place)
        return code

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        """Where what follows is interrupted, be as before: the engine may have moved already.

        PERF: 8 us of the 16 that a token of a held text takes, whose masks take ten times as long.
        """
        held, places, region = self.held, self.held.places.copy(), self.texts.take_out(self.slot)
        try:
            yield
        except BaseException:
            self.texts.put_in(self.slot, region)
            self.held, held.places = held, places
            raise

    def fill(self, words: Words) -> int:
        """As `TextState.fill`, without the tokens that spell no name."""
        code = super().fill(words)
        return constants.DEAD_END if code == constants.OK and not self.held.narrow(self.texts, words) else code

    def can_end(self) -> bool:
        return super().can_end() and self.held.may_end(self.texts)

    def undo(self, n: int) -> None:
        with self._at_once():
            super().undo(n)
            self.held.take_back(n)

    def reset(self) -> None:
        """As `TextState.reset`. Nothing is held then."""
        with self._at_once():
            super().reset()
            self.held = type(self.held)(self.texts, self.slot)

    def replay(self, ids: npt.NDArray[np.int64]) -> int:
        """As `TextState.replay`, token by token."""
        return TextState.replay(self, ids)

    def refuse_fill(self, code: int) -> None:
        """As `TextState.refuse_fill`: where names are at fault, it says so."""
        if code == constants.DEAD_END and self.held.place is not None:
            without_names = super().fill(np.zeros(self.store.n_words, np.int32))
            if without_names == constants.OK:
                raise DeadEndError(
                    f"no token of vocabulary {self.store.vocabulary.name} can come next: {self.held.says(self.texts)}. No text that the "
                    "grammar allows has one of them next; give other names, or take the tokens since back"
                )
        super().refuse_fill(code)

    def expectation(self, data: bytes) -> str:
        found = super().expectation(data)
        return found if self.held.place is None else f"{found}; {self.held.says(self.texts)}"

    def why(self, token: int, number: int) -> str:
        held_back = self._held_back(number)
        return (
            f"token {token} ({self.store.vocabulary.tokens[number]!r}) {held_back}"
            if held_back
            else super().why(token, number)
        )

    def explain(self, token: int) -> Explanation:
        found, held_back = super().explain(token), self._held_back(token)
        return replace(found, verdict="refused", summary=f"{found.what} {held_back}") if held_back else found

    def _held_back(self, token: int) -> str:
        """In words, that a token may not come because of names alone; else ""."""
        is_so = super().read_token(token, False) == constants.OK and self.read_token(token, False) != constants.OK
        return f"may not come next: {self.held.says(self.texts)}" if is_so else ""

    def shortest_ending(self) -> Ending:
        """As `TextState.shortest_ending`. Raises: LimitError if it is none of the names."""
        found = super().shortest_ending()
        if self.held.place is None:
            return found
        from maskwright.decoding.names.ending import fitting

        if fitting(self, found) is None:
            raise LimitError(
                f"a shortest ending is not known here, since {self.held.says(self.texts)}; `short_ending` finds one that need not be "
                "shortest"
            )
        return found

    def short_ending(self) -> Ending:
        if self.held.place is None:
            return super().short_ending()
        from maskwright.decoding.names.ending import short_ending

        return short_ending(self, self.held)

    def min_bytes_left(self) -> int:
        return super().min_bytes_left() if self.held.place is None else len(self.shortest_ending().data)


__all__ = ["GrammarText", "NamedText"]
