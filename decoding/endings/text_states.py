"""The states of texts of any engine, as the search for endings sees them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from maskwright.decoding.endings.ending_spelling import ONE_BYTE, PREFERRED, Spelling
from maskwright.decoding.endings.states import Move, States

MOST_TEXTS = 2_000
"""BOUND: the texts after which a search tries all bytes; it holds 256 times as many."""


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
        return [(ONE_BYTE[byte], 0) for byte in alphabet if state.text.allows(ONE_BYTE[byte])]

    def after(self, state: _Read, data: bytes) -> Hashable | None:
        there = state.text.copy()
        return _Read(there) if there.try_read(data) else None

    def most_nodes(self, wanted: int) -> int:
        return min(wanted, MOST_TEXTS)

    def most_steps(self, wanted: int) -> int:
        return min(wanted, MOST_TEXTS)

    def spelled_by(self, spelling: Spelling) -> States:
        return TextStates(self.under, spelling)
