"""Which tokens do the same: from a lexer state they emit the same, and come to the same state."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.lexing.encoding import DEAD, RESTART
from maskwright.decoding.endings.ending_lexer import EndingLexer
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

Int64 = npt.NDArray[np.int64]

ILLEGAL = -1
"""The label of tokens that no text has here."""


class Groups:
    """Groups of a vocabulary's tokens, by the state of a store's lexer.

    texts : the tokens.
    """

    def __init__(self, vocabulary: Vocabulary, lexer: EndingLexer) -> None:
        self.vocabulary, self.texts = vocabulary, vocabulary.tokens
        self._next = np.array(lexer.next_state, np.int64)
        silent = np.array([not each for each in lexer.outputs])
        output = np.array(lexer.output, np.int64)
        self._output = np.where(silent[output], 0, output)
        self._is_one_mode = len(lexer.modes) == 1
        classes = np.array(lexer.class_of, np.uint8)
        joined = classes[np.frombuffer(b"".join(self.texts), np.uint8)].tobytes()
        lengths = np.array([len(each) for each in self.texts], np.int64)
        begins = np.concatenate([[0], np.cumsum(lengths)])
        self._texts = [joined[a:b] for a, b in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True)]
        self._classes, self._begins, self._lengths = np.frombuffer(joined, np.uint8), begins[:-1], lengths
        self._labels: dict[int, Int64] = {}
        # sequences of emissions by the one without the last and the last
        self._said: dict[tuple[int, int], int] = {}

    def labels(self, state: int) -> Int64:
        """The group of each token, in a state in which a lexeme may be under way: (V,) int64.

        Cost: of the first call for a state O(the bytes of all tokens).
        """
        found = self._labels.get(state)
        if found is None:
            found = self._labels[state] = self._labelled(state)
        return found

    def _labelled(self, state: int) -> Int64:
        size = len(self._lengths)
        states, said = np.full(size, state), np.zeros(size, np.int64)
        rest: list[tuple[int, int]] = []
        running = np.flatnonzero(self._lengths > 0)
        at = 0
        while len(running):
            klass = self._classes[self._begins[running] + at]
            after, output = self._next[states[running], klass], self._output[states[running], klass]
            # where a mode is chosen, which only the parser knows, what is left must be the same
            stops = after == RESTART
            rest += [(int(token), at) for token in running[stops]]
            states[running[~stops]] = after[~stops]
            spoke = ~stops & (output > 0)
            if spoke.any():
                pairs, number = np.unique(
                    np.stack([said[running[spoke]], output[spoke]], axis=1), axis=0, return_inverse=True
                )
                numbers = [self._said.setdefault((before, one), 1 + len(self._said)) for before, one in pairs.tolist()]
                said[running[spoke]] = np.array(numbers, np.int64)[number.reshape(-1)]
            keep = ~stops & (after != DEAD)
            if not self._is_one_mode:
                begun = keep & (after == 0) & (self._lengths[running] > at + 1)
                rest += [(int(token), at + 1) for token in running[begun]]
                keep &= ~begun
            at += 1
            running = running[keep]
            running = running[self._lengths[running] > at]
        labels = np.unique(np.stack([said, states], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        labels[states == DEAD] = ILLEGAL
        found: dict[tuple[int, bytes], int] = {}
        for token, begin in rest:
            key = int(labels[token]), self._texts[token][begin:]
            labels[token] = size + found.setdefault(key, len(found))
        return labels
