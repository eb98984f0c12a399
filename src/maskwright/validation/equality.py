"""The check "streamlined": do the masks equal those of the store before streamlining?

In: texts. Out: the positions where masks differ. A store is compared with its *original*:

- For an automaton store, the original is the *open* store of the same grammar and vocabulary. It
  has the same lexer and LALR tables, but no closed automaton. At each position it asks the parser
  about every entry of the lexer state, one by one. Nothing in it is judged, merged, folded or
  closed. So the check covers all that streamlining and the closed automaton say, with 300 to 1,000
  parser questions for a position.
- For a store of entries (lexing "nfa"), the original is `build_store(streamlined=False)`. The
  reference decoder reads both. Its states come from the definition and not from a store. A position
  whose whole state, stacks included, was met before is counted but not compared again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.reference.decoder import Hypothesis, ReferenceDecoder
from maskwright.maskstore.automaton.stack_automaton import Budget, build_automaton
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import tokens_of
from maskwright.stores.build import compile_entry_store
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store
from maskwright.validation.replay import ENDED_EARLY, NOT_COMPLETE, Stop, facts_of_place, facts_of_stop, stop_at
from maskwright.validation.work import Outcome, Setup

SAME = "same masks"
DIFFERENT = "different masks"

Words = npt.NDArray[np.uint32]
"""(2, ceil(V / 32)) uint32; two masks, where bit i of word w is token 32 w + i."""


def original_store(store: Store | EntryStore, progress: Progress | None = None) -> Store | EntryStore:
    """The store of the same grammar and vocabulary before streamlining.

    store : a store; progress : called with (what, done, total) while the original is built.

    Raises: MaskwrightError for a store of entries that is not streamlined itself. Cost: as building
        the store.
    """
    if not store.engine:
        if set(store.counts) == {"original"}:
            raise MaskwrightError(
                "the store is not streamlined: there is nothing to compare it with; export it without --original"
            )
        return compile_entry_store(store.grammar, store.vocabulary, streamlined=False, progress=progress)
    automaton = build_automaton(store.grammar, store.vocabulary, progress, Budget(edges=0, bytes=0))
    table = engine_table(store.grammar, store.vocabulary, automaton)
    return Store(store.grammar, store.vocabulary, table, automaton.counts)


def streamlined(setup: Setup) -> Callable[[str], Outcome]:
    """The check "streamlined". A unit of work is a text.

    A text is followed as far as its tokens are legal. The outcome of a text that is not legal as a
    whole is "ended early", unless masks differ before.
    """
    pair: Any = (_Engines if setup.store.engine else _Decoders)(setup.store, setup.original)
    vocabulary = setup.store.vocabulary

    def run(text: str) -> Outcome:
        tokens = setup.tokens(text)
        pair.reset()
        different: list[Outcome] = []
        positions = offset = n_different = 0
        stop: Stop | None = None
        try:
            for token in [*tokens, None]:
                masks = pair.differing_masks()
                positions += 1
                n_different += masks is not None
                if masks is not None and len(different) < 3:
                    different.append(_difference(text, offset, token, vocabulary, masks))
                if token is not None:
                    stop = pair.advance(token)
                    offset += len(vocabulary.tokens[token])
                elif not pair.is_accepting():
                    stop = Stop(len(tokens), None, NOT_COMPLETE)
                if stop is not None:
                    break
        except LimitError:
            if not different:
                raise
        found: Outcome = {"class": SAME, "positions": positions, "different": n_different}
        if different:
            found |= {"class": DIFFERENT, **different[0], "more": different[1:]}
        elif stop is not None:
            stop = stop._replace(n_tokens=positions - 1)
            found |= {"class": ENDED_EARLY, **facts_of_stop(text, tokens, stop, vocabulary)}
        return found

    return run


class _Engines:
    """Two automaton stores, each with a matcher of its own."""

    def __init__(self, store: Store, original: Store) -> None:
        self._matchers = store.matcher(0), original.matcher(0)
        self._words = np.zeros((2, store.n_words), np.uint32)
        self.is_accepting = self._matchers[0].is_accepting

    def reset(self) -> None:
        """Go back to the start of a text."""
        for matcher in self._matchers:
            matcher.reset()

    def differing_masks(self) -> Words | None:
        """The masks of the store and of the original; None if they are equal."""
        for matcher, words in zip(self._matchers, self._words, strict=True):
            try:
                matcher.fill(words)
            except DeadEndError:
                words[:] = 0
        return None if np.array_equal(*self._words) else self._words

    def advance(self, token: int) -> Stop | None:
        """Read a token in both stores; returns where that is refused."""
        try:
            for matcher in self._matchers:
                matcher.advance(token)
        except IllegalTokenError:
            return stop_at(self._matchers[0], 0, token)
        return None


class _Decoders:
    """Two stores of entries with one state: the states do not depend on the store.

    The methods mean the same as those of `_Engines`.
    """

    def __init__(self, store: EntryStore, original: EntryStore) -> None:
        self._decoder, self._other = ReferenceDecoder(store), ReferenceDecoder(original)
        # stacks belong to the parser that made them, so both decoders must have the same parser
        self._other.parser = self._decoder.parser
        self._known: set[tuple[Hypothesis, ...]] = set()
        self.reset, self.is_accepting = self._decoder.reset, self._decoder.is_accepting

    def differing_masks(self) -> Words | None:
        state = self._decoder.hypotheses
        if state in self._known:
            return None
        self._other.hypotheses, self._other._finished = state, self._decoder.is_finished()
        masks = np.array([self._decoder.mask(), self._other.mask()])
        if not np.array_equal(*masks):
            return masks
        self._known.add(state)
        return None

    def advance(self, token: int) -> Stop | None:
        try:
            self._decoder.advance(token)
        except IllegalTokenError as error:
            return Stop(0, token, str(error))
        return None


def _difference(text: str, offset: int, token: int | None, vocabulary: Vocabulary, masks: Words) -> Outcome:
    """The facts of a position where masks differ: its place, and the tokens missing and added."""
    own, original = map(tokens_of, masks)
    lacking, added = np.setdiff1d(original, own), np.setdiff1d(own, original)
    why = f"the store lacks {len(lacking)} tokens {lacking[:8].tolist()} and adds {len(added)} {added[:8].tolist()}"
    return facts_of_place(text, offset, offset, token, vocabulary) | {"why": why}
