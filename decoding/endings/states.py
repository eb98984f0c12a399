"""What the search for endings asks of a kind of texts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

from maskwright.decoding.endings.ending_spelling import ONE_BYTE, PREFERRED, Spelling

Move = tuple[bytes, int]
"""Bytes that may come, and a lower bound of what is left after them."""

MOST_TEXTS = 2_000
"""BOUND: the texts after which a search tries all bytes; it holds 256 times as many."""


class States(ABC):
    """What may follow the beginnings of texts of one kind, as the search sees it.

    under : what errors call the constraint.
    spelling : what must spell the endings; None for endings of any bytes. The search follows it.

    INVARIANT: states are hashable, and equal ones have the same future.
    """

    may_settle = False
    """Whether a near ending is searched for where a shortest one is not found in time.

    It is taken if it proves to be a shortest one, or `is_vague`.
    """
    is_vague = False
    """Whether bounds tell so little that a near ending is taken for a shortest one."""
    may_cut = ""
    """In words, that something may be left out that follows a text; "" if nothing ever is."""
    is_kept = True
    """Whether states may be kept from one question to the next: they do not hold the store."""
    size_of_move = 100
    """The bytes of memory of a move."""
    held = 0
    """The bytes of memory that all states take, about."""

    def __init__(self, under: str, spelling: Spelling | None) -> None:
        self.under, self.spelling = under, spelling

    @abstractmethod
    def start(self, text: Any) -> Hashable:
        """The state of a text. Raises: DeadEndError if there is none."""

    @abstractmethod
    def bound(self, state: Any) -> int:
        """A lower bound of the bytes that complete a text, COSTLY or more if none do."""

    @abstractmethod
    def is_end(self, state: Any) -> bool:
        """Whether the text may end."""

    @abstractmethod
    def moves(self, state: Any) -> Sequence[Move]:
        """What may come next, in the order of preference: all but what surely leads nowhere."""

    @abstractmethod
    def after(self, state: Any, data: bytes) -> Hashable | None:
        """The state after a move; None if it is illegal."""

    def straight(self, state: Any) -> bytes | None:
        """An ending by a way of the kind's own that never goes back, if `descend` finds none."""
        return None

    def begin(self, times: int = 1) -> None:  # noqa: B027 - most kinds have nothing to count
        """A search begins. times : how much it may do besides looking at states."""

    @abstractmethod
    def spelled_by(self, spelling: Spelling) -> States:
        """The same for endings that tokens spell."""

    def is_cut(self, state: Any) -> bool:
        """Whether something that may follow was left out (`may_cut`)."""
        return False

    def forget(self) -> None:  # noqa: B027
        """Drop all states. Those still held remain usable."""

    def most_nodes(self, wanted: int) -> int:
        """How many states a search may look at, of those that the caller allows."""
        return wanted

    def most_steps(self, wanted: int) -> int:
        """How many steps the search for a near ending may take, likewise."""
        return wanted

    def seconds(self, far: int) -> float:
        """The processor time that a search may take. far : the bound of its start."""
        return math.inf

    def why_none(self) -> str:
        """Why nothing follows from a search that found no ending; "" if something does."""
        return ""


class _Read:
    """A text that is only read, equal to others with its key."""

    __slots__ = ("key", "text")

    def __init__(self, text: Any) -> None:
        self.text, self.key = text, text.key()

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Read) and self.key == other.key


class TextStates(States):
    """What every `TextState` tells: which bytes it takes, and whether it may end.

    It takes a `TextState.key` to come far. The texts hold the store, so none is kept.

    Cost: 256 readings of a byte for each text that is looked at.
    """

    is_kept = False

    def start(self, text: Any) -> Hashable:
        return _Read(text.copy())

    def bound(self, state: _Read) -> int:
        return 0 if self.is_end(state) else 1

    def is_end(self, state: _Read) -> bool:
        return bool(state.text.can_end())

    def moves(self, state: _Read) -> Sequence[Move]:
        alphabet = PREFERRED if self.spelling is None else self.spelling.alphabet
        return [(ONE_BYTE[byte], 0) for byte in alphabet if state.text.reads(ONE_BYTE[byte])]

    def after(self, state: _Read, data: bytes) -> Hashable | None:
        there = state.text.copy()
        return _Read(there) if there.try_read(data) else None

    def most_nodes(self, wanted: int) -> int:
        return min(wanted, MOST_TEXTS)

    def most_steps(self, wanted: int) -> int:
        return min(wanted, MOST_TEXTS)

    def spelled_by(self, spelling: Spelling) -> States:
        return TextStates(self.under, spelling)
