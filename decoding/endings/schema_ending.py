"""Endings of the texts of a schema's or a pattern's store, from the text so far.

A JSON text is read again by the reference interpreter (`json_ending`). What has been read is kept,
so that a decoder which asks at each step waits for the new bytes only.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.locks import new_lock
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.preferred import Preferred, preferred_of
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.endings.ending import Ending
from maskwright.decoding.endings.ending_spelling import PREFERRED, Spelling
from maskwright.decoding.endings.json_ending import JsonEndings
from maskwright.decoding.reference.json_places import Readings
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

N_KEPT = 64
"""The texts of a store whose readings are kept."""

MOST_PAIRS = 2_000_000
"""BOUND: pairs of a state of an automaton and one of the spelling that a search looks at."""


class PatternEndings:
    """Endings of the texts of an automaton under a vocabulary.

    automaton : of all texts.
    vocabulary : whose tokens spell the endings.

    Not safe for several threads at once.
    """

    def __init__(self, automaton: Dfa, vocabulary: Vocabulary) -> None:
        self.automaton = automaton
        self.spelling = Spelling(vocabulary)

    def after(self, text: bytes) -> Ending:
        """A shortest byte string that completes a text, and the fewest tokens that spell it.

        Raises: DeadEndError if the text is no legal prefix, or no tokens spell an ending;
            LimitError past `MOST_PAIRS`.
        """
        state = self.automaton.run(text)
        if state < 0:
            raise DeadEndError("no bytes complete this text: it is no legal prefix")
        data = self._search(state, None)
        if data is None:
            raise DeadEndError("no bytes complete this text")
        tokens = self.spelling.fewest_tokens(data)
        if tokens is None:
            found = self._search(state, self.spelling)
            if found is None or (tokens := self.spelling.fewest_tokens(found)) is None:
                raise DeadEndError(self.spelling.explanation(data))
            data = found
        return Ending(data, tokens)

    def length_after(self, text: bytes) -> int:
        """The length of a shortest ending, whether or not the vocabulary can spell it."""
        state = self.automaton.run(text)
        found = None if state < 0 else self._search(state, None)
        if found is None:
            raise DeadEndError("no bytes complete this text: it is no legal prefix")
        return len(found)

    def _search(self, state: int, spelling: Spelling | None) -> bytes | None:
        """The first of the shortest endings in the order of preference, breadth first."""
        automaton, alphabet = self.automaton, PREFERRED if spelling is None else spelling.alphabet
        queue = deque([(state, 0)])
        before: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {(state, 0): None}
        while queue:
            pair = queue.popleft()
            if automaton.is_accepting[pair[0]] and (spelling is None or spelling.is_whole(pair[1])):
                return _bytes_to(pair, before)
            row = automaton.next_state[pair[0]].tolist()
            for byte in alphabet:
                if row[byte] < 0:
                    continue
                spelled = 0 if spelling is None else spelling.after(pair[1], byte)
                after = (row[byte], spelled)
                if spelled >= 0 and after not in before:
                    before[after] = pair, byte
                    queue.append(after)
            if len(before) > MOST_PAIRS:
                raise LimitError(f"no ending was found among {len(before):,} states; the pattern is too large")
        return None


def _bytes_to(pair: tuple[int, int], before: dict[tuple[int, int], tuple[tuple[int, int], int] | None]) -> bytes:
    data = bytearray()
    while (step := before[pair]) is not None:
        pair, byte = step
        data.append(byte)
    return bytes(reversed(data))


class SchemaEndings:
    """Endings of the JSON texts of a store. Not safe for several threads at once.

    preferred : see `JsonEndings`.
    """

    def __init__(self, texts: Texts, vocabulary: Vocabulary, preferred: Preferred | None = None) -> None:
        self._endings = JsonEndings(texts, vocabulary, preferred)
        self._kept: dict[bytes, Readings] = {}

    def _readings(self, text: bytes) -> Readings:
        """The readings of a text, from those of the longest beginning of it that is kept."""
        known = max((one for one in self._kept if text.startswith(one)), key=len, default=b"")
        interpreter = self._endings.interpreter
        found = interpreter.read_bytes(self._kept.pop(known, ()) or interpreter.start(), text[len(known) :])
        if not found:
            raise DeadEndError("no bytes complete this text: it is no legal prefix")
        self._kept[text] = found
        if len(self._kept) > N_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def after(self, text: bytes) -> Ending:
        """A shortest ending of a text. Raises: as `JsonEndings.shortest`."""
        return self._endings.shortest(self._readings(text))

    def short_after(self, text: bytes) -> Ending:
        """A short ending of a text. Raises: as `JsonEndings.short`."""
        return self._endings.short(self._readings(text))

    def length_after(self, text: bytes) -> int:
        """The length of a shortest ending. Raises: as `JsonEndings.min_bytes_left`."""
        return self._endings.min_bytes_left(self._readings(text))


_ENDINGS: dict[int, tuple[PatternEndings | SchemaEndings, threading.Lock]] = {}
"""By the number of a store: its endings, and the lock of whoever asks for one, for a long time."""


def ending_after(store: SchemaTables, text: bytes, *, may_be_longer: bool = False) -> Ending:
    """A shortest byte string that completes a text, and the fewest tokens that spell it.

    store : of a schema or a pattern.
    text : a beginning of a legal text.
    may_be_longer : whether one that need not be the shortest will do, where the search takes long;
        see `JsonEndings.short`.

    It prefers the values that a schema names, then printable ASCII; see `JsonEndings`.

    Raises: DeadEndError if no tokens complete the text; LimitError if none are found in time.
    Cost: some 100 us for each byte of the ending, and 10 for each new byte of the text.
    """
    endings, lock = _endings_of(store)
    with lock:
        if may_be_longer and isinstance(endings, SchemaEndings):
            return endings.short_after(text)
        return endings.after(text)


def bytes_left_after(store: SchemaTables, text: bytes) -> int:
    """The length of a text's shortest ending, whether or not the vocabulary can spell it.

    Raises: as `ending_after`.
    """
    endings, lock = _endings_of(store)
    with lock:
        return endings.length_after(text)


def _endings_of(store: SchemaTables) -> tuple[PatternEndings | SchemaEndings, threading.Lock]:
    """The endings of a store. The first call makes them; they live as long as the store."""
    found = _ENDINGS.get(id(store))
    if found is None:
        texts, vocabulary = store.texts, store.vocabulary
        made = (
            SchemaEndings(texts, vocabulary, preferred_of(store.constraint))
            if isinstance(texts, Texts)
            else PatternEndings(texts, vocabulary)
        )
        mine = made, new_lock()
        found = _ENDINGS.setdefault(id(store), mine)  # another thread may have been sooner
        if found is mine:
            weakref.finalize(store, _ENDINGS.pop, id(store), None)
    return found


__all__ = ["PatternEndings", "SchemaEndings", "bytes_left_after", "ending_after"]
