"""Shortest endings: the fewest bytes that make the text so far a legal text, and their tokens.

What a kind of texts knows of its own is in its `States`; here is what is asked of the search
(`ending_search`) for all kinds. Endings of any bytes are searched for first. Where the vocabulary
cannot spell one, another search looks at those that it can spell.

BOUND: a search looks at `MAX_NODES` states at most (and some more for each byte) and holds
`MAX_HELD` bytes. Then it gives up; or, for a short ending, it follows the bounds that it has learnt
to an ending that is legal, though perhaps not shortest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.kept import cached_property
from maskwright.analysis.locks import new_lock
from maskwright.decoding.endings import ending_search
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending_search import EndingSearch
from maskwright.decoding.endings.ending_spelling import Spelling
from maskwright.decoding.endings.states import States
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

SHORT_NODES = 2_000
"""States that the search for a short ending looks at beyond those for each byte of the ending.

After these it takes an ending that is near.
"""
SHORT_STEPS = 20_000
"""Steps to an ending that is near, likewise."""
SECOND_TRY = 10
"""If both fail, both are tried once more with this many times as many states and steps.

Some endings are near, but not on a straight way.
"""


@dataclass(frozen=True)
class Ending:
    """An ending of a text.

    data : the bytes that complete the text.
    tokens : ids that spell them; the end-of-text token is not among them.
    is_shortest : whether it is proved that the vocabulary spells no shorter ending.
    """

    data: bytes
    tokens: tuple[int, ...]
    is_shortest: bool = True


class Endings:
    """Endings of the texts of a store (`TextState`). Several threads wait for one another.

    make : makes the states of the texts. It does not hold the store.
    vocabulary : what spells the endings; None for endings of any bytes.
    lock : of what the states share with others; it may be taken twice.
    """

    def __init__(self, make: Callable[[], States], vocabulary: Vocabulary | None, lock: Any = None) -> None:
        self._lock = lock or new_lock()
        self._make, self._vocabulary = make, vocabulary
        self._searches: dict[bool, EndingSearch] = {}

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """One question at a time, which changes no answer to the next."""
        with self._lock:
            try:
                yield
            finally:
                for search in self._searches.values():
                    if search.states.is_kept:
                        search.unlearn()
                    else:
                        search.forget()

    @cached_property
    def states(self) -> States:
        """The states of the texts, for endings of any bytes."""
        return self._make()

    @cached_property
    def spelling(self) -> Spelling:
        """What spells bytes in tokens."""
        assert self._vocabulary is not None
        return Spelling(self._vocabulary)

    def search(self, *, spelled: bool = False) -> EndingSearch:
        """The search for bytes, or for those that the vocabulary can spell."""
        found = self._searches.get(spelled)
        if found is None:
            states = self.states.spelled_by(self.spelling) if spelled else self.states
            found = self._searches[spelled] = EndingSearch(states)
        return found

    def shortest(self, text: Any, max_nodes: int | None = None) -> Ending:
        """A shortest byte string that completes a text, and the fewest tokens that spell it.

        max_nodes : instead of `MAX_NODES`.

        Both are empty if the text is legal already. Of several shortest endings that the vocabulary
        can spell, it is the first in the order of bytes with printable ASCII first; of a schema,
        one with the values that the schema names (`JsonStates`). Of several spellings with the
        fewest tokens it is the one whose tokens are longer from the left.

        Raises: DeadEndError if no sequence of tokens completes the text; LimitError if none was
        found among `MAX_NODES` states (and some more for each byte), in `MAX_HELD` bytes of memory
        or in the time that its states allow, or if the text has too many readings. Where items of
        any kind must differ, one that need not be shortest is taken then: `Ending.is_shortest` says
        which it is.

        Cost: the first call on a store builds its tables (python: 1.5 s). After that O(depth of the
        stack), and a few ms for each terminal; of a schema some 100 us a byte.
        """
        return self._ending(text, lambda search: _shortest(search, text, max_nodes))

    def short(self, text: Any, max_nodes: int | None = None, most_bytes: int | None = None) -> Ending:
        """A shortest ending if the search soon finds it; else one that is hardly longer.

        It is for callers that need some ending in time.

        max_nodes : states that may be looked at to find a shortest one (and some more for each
            byte); `SHORT_NODES` by default.
        most_bytes : an ending that has certainly more is not searched for.

        Raises: DeadEndError as `shortest`; LimitError if none is found.

        Cost: memory of about `MAX_HELD` bytes at most beside the tables; `MAX_KEPT` stay.
        """
        return self._ending(text, lambda search: _short(search, text, max_nodes, most_bytes))

    def short_bytes(self, text: Any) -> bytes:
        """The bytes of a short ending, whether or not the vocabulary can spell them.

        Raises: as `short`.
        """
        with self._asked():
            return b"" if text.can_end() else self._checked(*_short(self.search(), text))[0]

    def min_bytes_left(self, text: Any) -> int:
        """The length of a shortest ending, in bytes, whether or not the vocabulary can spell it.

        Raises: DeadEndError if no bytes complete the text; LimitError as `shortest`.

        Cost: as `shortest`.
        """
        with self._asked():
            return 0 if text.can_end() else len(self._checked(*_shortest(self.search(), text))[0])

    def is_completable(self, text: Any, max_nodes: int = 2_000) -> bool | None:
        """Whether some bytes complete a text, whatever the vocabulary; None if the search gave up.

        max_nodes : states that may be looked at (and some more for each byte).
        """
        with self._asked():
            search = self.search()
            try:
                self._checked(search.run(search.start_of(text), max_nodes), True)
            except DeadEndError:
                return False
            except LimitError:
                return None
            return True

    def _ending(self, text: Any, found_by: Callable[[EndingSearch], tuple[bytes | None, bool]]) -> Ending:
        """The ending of a text that a search finds, and the tokens that spell it.

        found_by : the search; it returns the bytes, and whether they are shortest.
        """
        with self._asked():
            if text.can_end():
                return Ending(b"", ())
            data, is_shortest = self._checked(*found_by(self.search()))
            if self._vocabulary is None:
                return Ending(data, (), is_shortest)
            tokens = self.spelling.fewest_tokens(data)
            if tokens is None:
                found, is_shortest = found_by(self.search(spelled=True))
                if found is None or (tokens := self.spelling.fewest_tokens(found)) is None:
                    raise DeadEndError(self.spelling.explanation(data))
                data = found
            return Ending(data, tokens, is_shortest)

    def _checked(self, found: bytes | None, is_shortest: bool) -> tuple[bytes, bool]:
        if found is None:
            if why := self.states.why_none():
                raise LimitError(why)
            raise DeadEndError(f"{self.states.under}: no bytes complete this text; `maskwright lint` says why")
        return found, is_shortest


def _shortest(search: EndingSearch, text: Any, max_nodes: int | None = None) -> tuple[bytes | None, bool]:
    """The bytes of a shortest ending, and whether they are shortest."""
    try:
        return search.run(search.start_of(text), ending_search.MAX_NODES if max_nodes is None else max_nodes), True
    except LimitError:
        if not search.states.may_settle or max_nodes is not None:
            raise
        found, is_shortest = _near(search, text)
        if not is_shortest and not search.states.is_vague:
            raise  # others may exist, and be shorter
        return found, is_shortest


def _short(
    search: EndingSearch, text: Any, max_nodes: int | None = None, most_bytes: int | None = None
) -> tuple[bytes | None, bool]:
    """The bytes of a short ending, and whether they are shortest."""
    if most_bytes is not None and most_bytes < (far := search.start_of(text).bound) < COSTLY:
        raise LimitError(f"{search.states.under}: an ending of the text has at least {far:,} bytes")
    nodes = SHORT_NODES if max_nodes is None else max_nodes
    for times in (1, SECOND_TRY):
        try:
            return search.run(search.start_of(text), times * nodes), True
        except LimitError:
            pass
        try:
            return _near(search, text, times)
        except LimitError as error:
            last = error
    raise last


def _near(search: EndingSearch, text: Any, times: int = 1) -> tuple[bytes | None, bool]:
    """The bytes of an ending that is near, and whether they are shortest.

    times : how many times `SHORT_STEPS` it may take.

    It comes after a search that was given up, so nothing that was learnt changes it.
    """
    start = search.start_of(text)
    try:
        found = search.descend(start, times * SHORT_STEPS)
    except LimitError:
        if (found := search.states.straight(start.state)) is None:
            raise
    return found, found is None or len(found) <= start.bound


_ENDINGS: WeakKeyDictionary[Any, Endings] = WeakKeyDictionary()
_LOCK = new_lock()
if hasattr(os, "register_at_fork"):  # a search that another thread had begun is half made in the fork
    os.register_at_fork(after_in_child=_ENDINGS.clear)


def endings_of(text: Any) -> Endings:
    """The endings of a text's store. The first call makes them; they live as long as the store."""
    with _LOCK:
        found = _ENDINGS.get(text.store)
        if found is None:
            found = _ENDINGS[text.store] = Endings(text.ending_states(), text.store.vocabulary)
    return found
