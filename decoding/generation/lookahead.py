"""Masks without the tokens that cross lexemes: Domino's lookahead k, to try what such masks cost.

Exact masks have all legal tokens. Under lookahead k a legal token stays only if at most k lexemes
begin inside it, behind its first byte (ignored ones count). With k = 0 a token lies in one lexeme.

Source: Beurer-Kellner, Fischer and Vechev, Guiding LLMs The Right Way (Domino, arXiv 2403.06988),
section 3 and table 4, where k bounds how far a token is followed in the subterminal trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, MaskwrightError
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.names import layout
from maskwright.decoding.names.lexer import name_lexer
from maskwright.maskstore.table.compiled import EngineTable
from maskwright.maskstore.vocabulary.masks import words_of


class Place(NamedTuple):
    """A lexeme under way.

    state : of the union automaton of the terminals.
    pending : the bytes since the lexeme could have ended, if it could have.
    could_end : whether it could have.
    """

    state: int
    pending: bytes
    could_end: bool


class Borders:
    """Where lexemes begin inside tokens, by longest match.

    Raises: MaskwrightError if the parser's state decides which terminals compete, since a token's
        lexemes then depend on it.
    """

    def __init__(self, store: EngineTable) -> None:
        self._lexer = name_lexer(store)
        if len(self._lexer.starts) > 1:
            raise MaskwrightError(
                f"grammar {store.grammar.name} has several lexing modes, so where lexemes begin in a token depends on the parser; "
                "lookahead is for lexers of one mode (lexing='longest', no verbatim terminals): load the grammar so, or leave it out"
            )
        self._tokens = store.vocabulary.tokens
        self._next, self._wins = self._lexer.next_state.tolist(), (self._lexer.winner >= 0).tolist()

    def place(self, matcher: Matcher) -> Place:
        """The lexeme under way where a matcher of the store stands."""
        array, lexer_state = self._lexer.array, matcher.text.lexer_state
        pending, winner = self._lexer.pending[lexer_state]
        return Place(int(array[array[layout.UNDER_WAY] + lexer_state]), pending, winner >= 0)

    def begins(self, place: Place, data: bytes) -> list[int] | None:
        """The offsets in some bytes, behind the first, at which lexemes begin.

        None if no lexeme goes on so.
        """
        state, pending, could_end = place
        data, base = pending + data, len(pending)
        at, end = base, 0 if could_end else -1
        found: list[int] = []
        while True:
            while at < len(data) and (after := self._next[state][data[at]]) >= 0:
                state, at = after, at + 1
                end = at if self._wins[state] else end
            if at == len(data):
                return found
            if end < 0:
                return None
            if end > base:
                found.append(end - base)
            at, state, end = end, self._lexer.starts[0], -1

    def counts(self, place: Place) -> npt.NDArray[np.int64]:
        """(V,) int64: how many lexemes begin inside each token; -1 if no lexeme goes on so.

        Cost: some us a token.
        """
        found = (self.begins(place, token) for token in self._tokens)
        return np.array([-1 if begins is None else len(begins) for begins in found], np.int64)


class Lookahead:
    """Narrows the masks of a matcher's text to tokens in which at most k lexemes begin.

    matcher : of a grammar; the caller advances it.
    k : 0 or more.

    Raises: MaskwrightError if the matcher has no lexemes, or several lexing modes.
    """

    def __init__(self, matcher: Matcher, k: int) -> None:
        if matcher.text.lexer_state < 0:
            raise MaskwrightError(
                "lookahead counts lexemes, which the matcher of a grammar's store has; one of a schema, a pattern or a composition has none"
            )
        self._matcher, self._k = matcher, k
        self._borders = Borders(matcher.store)
        self._kept: dict[Place, npt.NDArray[np.int32]] = {}  # the words of the other tokens, a state of the lexer each

    def narrow(self, words: npt.NDArray[np.int32]) -> None:
        """Take the tokens out of the matcher's mask that cross more lexemes.

        words : (ceil(V / 32),) int32; changed in place.

        Raises: DeadEndError if no token would be left.
        """
        place = self._borders.place(self._matcher)
        if place not in self._kept:
            crossing = np.flatnonzero(self._borders.counts(place) > self._k)
            self._kept[place] = ~words_of(crossing, self._matcher.store.vocabulary.size).view(np.int32)
        words &= self._kept[place]
        if not words.any():
            raise DeadEndError(
                f"every token that can come next crosses more than {self._k} lexemes; give a greater lookahead, or None for exact masks"
            )
