"""What is known of a host's states, kept for all texts of a composition."""

from __future__ import annotations

from maskwright.decoding.composition.exits import Exits

MOST_STATES = 512
"""The most states of a host that are kept; when there are more, all are forgotten."""

MOST_ALLOWED = 1 << 16
"""The most byte strings of which a state keeps whether they may come."""


class HostState:
    """What is known of a state of a host.

    allowed : bytes -> whether they may come next, as host and parts.
    first : the bytes that may come next; None if not known yet.
    crossing : token -> 2 if it has one of these behind its first byte, 1 if as its first byte, else
        0.
    exits : the number of a part -> the tokens that can leave it for this state.
    entering : the tokens that begin in the host and enter a part, of a structural tag's host all
        that begin in it; None if not known yet.
    """

    __slots__ = ("allowed", "crossing", "entering", "exits", "first")

    def __init__(self) -> None:
        self.allowed: dict[bytes, bool] = {}
        self.first: frozenset[int] | None = None
        self.crossing: dict[int, int] = {}
        self.exits: dict[int, Exits] = {}
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

    def state(self, key: object) -> HostState:
        """What is known of the host's state with a key (`Cursor.key`)."""
        found = self._states.get(key)
        if found is None:
            if len(self._states) >= MOST_STATES:
                self._states = {}
            found = self._states.setdefault(key, HostState())
        return found
