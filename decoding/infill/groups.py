"""Which tokens do the same: from a lexer state they emit the same, and come to the same state."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.columns import SPACE, TAB, column_bytes
from maskwright.analysis.kept import Kept
from maskwright.analysis.lexing.encoding import DEAD, RESTART
from maskwright.decoding.endings.ending_lexer import EndingLexer
from maskwright.decoding.infill.blocks import Cells
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


class Groups:
    """Groups of a vocabulary's tokens, by the state of a store's lexer.

    texts : the tokens.
    labels : of a state in which a lexeme may be under way, the group of each token that some text
        has there: (V,) int32. Those asked for lately are kept. Cost: O(the bytes of all tokens).
    """

    def __init__(self, vocabulary: Vocabulary, lexer: EndingLexer, cells: Cells) -> None:
        self.vocabulary, self.texts = vocabulary, vocabulary.tokens
        self._next = np.array(lexer.next_state, np.int64)
        silent = np.array([not each for each in lexer.outputs])
        output = np.array(lexer.output, np.int64)
        self._output = np.where(silent[output], 0, output)
        self._is_one_mode = len(lexer.modes) == 1
        classes = np.array(lexer.class_of, np.uint8)
        self._layout = layout = cells.layout
        self._is_line = np.array(lexer.is_newline) & (layout is not None)
        has_line = [layout is not None and layout.newline in each for each in lexer.outputs]
        self._has_line = np.array(has_line)[output]
        self._bytes = np.frombuffer(b"".join(self.texts), np.uint8)
        joined = classes[self._bytes].tobytes()
        lengths = np.array([len(each) for each in self.texts], np.int64)
        begins = np.concatenate([[0], np.cumsum(lengths)])
        self._texts = [joined[a:b] for a, b in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True)]
        self._classes, self._begins, self._lengths = np.frombuffer(joined, np.uint8), begins[:-1], lengths
        self.labels = Kept(self._labelled)
        # sequences of emissions by the one without the last, the last, and where its newline stands
        self._said: dict[tuple[int, ...], int] = {}
        # the bytes that lead to a column, by those without the last, and the last
        self._places: dict[tuple[int, ...], int] = {}

    def _labelled(self, state: int) -> Int32:
        size = len(self._lengths)
        states, said = np.full(size, state), np.zeros(size, np.int64)
        places = np.full(size, 1)  # where the line under way stands; 0: in the first column
        rest: list[tuple[int, int]] = []
        running = np.flatnonzero(self._lengths > 0)
        at = 0
        while len(running):
            klass = self._classes[self._begins[running] + at]
            after, output = self._next[states[running], klass], self._output[states[running], klass]
            # where a mode is chosen, which only the parser knows, what is left must be the same
            stops = after == RESTART
            rest += [(int(token), at) for token in running[stops]]
            has_line = self._has_line[states[running], klass]
            states[running[~stops]] = after[~stops]
            spoke = ~stops & (output > 0)
            if spoke.any():
                where = np.where(has_line, places[running], 0)[spoke]
                said[running[spoke]] = _numbered(self._said, 1, said[running[spoke]], output[spoke], where)
            if self._layout is not None:
                self._step(places, running, self._is_line[np.maximum(after, 0)] & (after > 0), at)
            keep = ~stops & (after != DEAD)
            if not self._is_one_mode:
                begun = keep & (after == 0) & (self._lengths[running] > at + 1)
                rest += [(int(token), at + 1) for token in running[begun]]
                keep &= ~begun
            at += 1
            running = running[keep]
            running = running[self._lengths[running] > at]
        labels = np.unique(np.stack([said, states], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        found: dict[tuple[int, bytes], int] = {}
        for token, begin in rest:
            key = int(labels[token]), self._texts[token][begin:]
            labels[token] = size + found.setdefault(key, len(found))
        return labels.astype(np.int32)

    def _step(self, places: Int64, running: Int64, is_line: npt.NDArray[np.bool_], at: int) -> None:
        """Let some tokens' lines come one byte further."""
        assert self._layout is not None
        byte = self._bytes[self._begins[running] + at].astype(np.int64)
        moves = is_line & ((byte == SPACE) | (byte == TAB))
        first = ~is_line | (~moves & np.isin(byte, list(column_bytes(self._layout.tabs))))
        places[running[first]] = 0
        places[running[moves]] = _numbered(self._places, 2, places[running[moves]], byte[moves])


def _numbered(known: dict[tuple[int, ...], int], first: int, *parts: Int64) -> Int64:
    """Numbers of tuples, from the first one on. known : those of tuples met before."""
    rows, which = np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)
    numbers = [known.setdefault(tuple(row), first + len(known)) for row in rows.tolist()]
    return np.array(numbers, np.int64)[which.reshape(-1)]
