"""What is known of a host's states, kept for all texts of a composition: no cursors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import kept_with
from maskwright.decoding.composition.exits import Exits
from maskwright.maskstore.composition.tables import ComposedTables

MOST_STATES = 512
"""The most states of a host that are kept; when there are more, all are forgotten."""

MOST_MASKS = 128
"""The most masks that are kept, of 16 KB each with 131,072 tokens; then all are forgotten."""

MOST_ALLOWED = 1 << 16
"""The most byte strings of which a state keeps whether they may come."""


class HostState:
    """What is known of a state of a host.

    allowed : bytes -> whether they may come next, as host and parts.
    first : the bytes that may come next; None if not known yet.
    exits : the number of a part -> the tokens that can leave it for this state.
    masks : HOST, or the number of a part that begins here -> the tokens that begin in it.
    entering : the tokens that begin in the host and enter a part; None if not known yet.
    """

    __slots__ = ("allowed", "entering", "exits", "first", "masks")

    def __init__(self) -> None:
        self.allowed: dict[bytes, bool] = {}
        self.first: frozenset[int] | None = None
        self.exits: dict[int, Exits] = {}
        self.masks: dict[int, npt.NDArray[np.uint32]] = {}
        self.entering: tuple[int, ...] | None = None


class Memo:
    """What is kept of a composition's host.

    n_parts : the number of parts.

    INVARIANT: what is found for a key does not depend on who finds it, so that threads which forget
    or find the same at the same time do no harm.
    """

    def __init__(self, n_parts: int) -> None:
        self.begins: tuple[dict[bytes, bool], ...] = tuple({} for _ in range(n_parts))
        """By part: bytes -> whether the part can begin with them."""
        self._states: dict[object, HostState] = {}
        self._n_masks = 0

    def state(self, key: object) -> HostState:
        """What is known of the host's state with a key (`Cursor.key`)."""
        found = self._states.get(key)
        if found is None:
            if len(self._states) >= MOST_STATES:
                self._states = {}
                self._n_masks = 0
            found = self._states.setdefault(key, HostState())
        return found

    def keep_mask(self, state: HostState, which: int, words: npt.NDArray[np.uint32]) -> None:
        """Keep a mask, which is copied. which : as of `HostState.masks`."""
        if self._n_masks >= MOST_MASKS:
            for other in list(self._states.values()):
                other.masks = {}
            self._n_masks = 0
        self._n_masks += 1
        kept = words.copy()
        kept.setflags(write=False)
        state.masks[which] = kept


@kept_with
def memo_of(tables: ComposedTables) -> Memo:
    """What is kept of a composition."""
    return Memo(len(tables.parts))
