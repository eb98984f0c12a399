"""What is known of a host behind a part, above all the tokens that can leave the part for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.composition.json_places import Place, closes
from maskwright.maskstore.composition.json_strings import JsonStringTokens, said_inside
from maskwright.maskstore.composition.strings import ENDS, Asked, strings_array

Exit: TypeAlias = tuple[bytes, int, tuple[int, ...]]
"""The bytes before the border, not empty; the id of a token of these bytes alone, or -1; the tokens
that go on in the host."""

_BLANK = b" \t\n\r"


class Closing(NamedTuple):
    """Bytes that may close all that is open at a place of a JSON text, or the first ones of such.

    number, tokens : as of an `Exit`; no tokens for bytes that close less.
    blank : the white space at their end.
    skip : if they may not come, nor may those up to this number among all of the place.
    """

    before: bytes
    number: int
    tokens: tuple[int, ...]
    blank: bytes
    skip: int


class Exits:
    """The tokens that can leave a part in a state of the host.

    entries : sorted by their bytes, each of which is there once.
    long : the bytes and ids of long tokens (`Splits`) that may be such, sorted; they have no
        entries.
    id_of : the first token of some bytes, or -1.
    deepest : the most brackets that an entry closes; at least 0.
    masks : by a pattern's state, the tokens that may come there, in the host too if it may end.
    behind : the tokens that may come in the host where the part may end; None if not known yet.
    blanks : of white space behind a JSON text, whether the text may end behind it.

    The forms that cursors want are made at their first use. INVARIANT: two threads that make one at
    the same time make the same.
    """

    __slots__ = ("_id_of", "_inside", "_places", "_strings", "behind", "blanks", "deepest", "entries", "long", "masks")

    def __init__(
        self, entries: tuple[Exit, ...], long: tuple[tuple[bytes, int], ...], id_of: Callable[[bytes], int]
    ) -> None:
        self.entries, self.long, self._id_of = entries, long, id_of
        self.masks: dict[int, npt.NDArray[np.int32]] = {}
        self.blanks = {b"": True}
        self.behind: npt.NDArray[np.int32] | None = None
        self.deepest = max((sum(map(before.count, (b"]", b"}"))) for before, _, _ in entries), default=0)
        self._strings: npt.NDArray[np.int32] | None = None
        self._places: dict[Place, tuple[Closing, ...]] = {}
        self._inside: npt.NDArray[np.int32] | None = None

    def strings(self) -> npt.NDArray[np.int32]:
        """For the engine: where the text may end behind the bytes."""
        if self._strings is None:
            self._strings = strings_array(Asked(before, ENDS, number, ids) for before, number, ids in self.entries)
        return self._strings

    def at_place(self, place: Place) -> tuple[Closing, ...]:
        """The exits of a JSON text behind whose bytes no bracket and no string is open.

        What an exit begins with is there too if it is a token, so that all that begins so can be
        left out at once.
        """
        if place.depth > self.deepest:
            return ()
        found = self._places.get(place)
        if found is None:
            ends = {before: (number, ids) for before, number, ids in self.entries if closes(before, place)}
            for before in list(ends):
                for n in range(1, len(before)):
                    if before[:n] not in ends and (number := self._id_of(before[:n])) >= 0:
                        ends[before[:n]] = number, ()
            asked = sorted(ends)
            found = self._places[place] = tuple(
                Closing(
                    one,
                    *ends[one],
                    one[len(one.rstrip(_BLANK)) :],
                    next((n for n in range(at + 1, len(asked)) if not asked[n].startswith(one)), len(asked)),
                )
                for at, one in enumerate(asked)
            )
        return found

    def inside(self, tokens: JsonStringTokens) -> npt.NDArray[np.int32]:
        """For the engine, of a text in a JSON string: what tokens say, those that leave too.

        tokens : the vocabulary's, always the same.
        """
        if self._inside is None:
            asked = list(tokens.asked)
            for before, _, ids in self.entries:
                said = said_inside(before)
                if said is not None and said.is_closed:
                    asked.append(Asked(said.text, ENDS, tokens.number.get(said.text, -1), ids))
            self._inside = strings_array(asked)
        return self._inside


@dataclass(slots=True, eq=False)
class HostState:
    """What is known of a state of a host, for all texts.

    allowed : bytes -> whether they may come next, as host and parts.
    first : the bytes that may come next; None if not known yet.
    crossing : token -> 2 if it has one of these behind its first byte, 1 if as its first byte, else
        0; of tokens with text that no part takes whole.
    exits : the number of a part -> the tokens that can leave it for this state.
    entering : the tokens that begin in the host and enter a part, of a structural tag's host all
        that begin in it; None if not known yet.

    INVARIANT: what is found does not depend on who finds it, so that threads which forget or find
    the same at the same time do no harm.
    """

    allowed: dict[bytes, bool] = field(default_factory=dict)
    first: frozenset[int] | None = None
    crossing: dict[int, int] = field(default_factory=dict)
    exits: dict[int, Exits] = field(default_factory=dict)
    entering: tuple[int, ...] | None = None
