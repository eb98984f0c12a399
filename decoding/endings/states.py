"""What the search for endings asks of a kind of texts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

from maskwright.decoding.endings.ending_spelling import Spelling

Move = tuple[bytes, int]
"""Bytes that may come, and a lower bound of what is left after them."""


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
