"""Endings of texts, and the plain search for one, which knows nothing but what every engine has."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.decoding.engine import constants

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary import Vocabulary

MOST_TEXTS = 2_000
"""BOUND: the texts behind which the plain search tries all pieces; it holds 256 times as many."""


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


def plain_ending(text: Any, most_texts: int = MOST_TEXTS) -> Ending:
    """A shortest ending in bytes that the vocabulary spells, by trying all, the shortest first.

    text : a `TextState`; it is left as it is. Of texts with equal keys one is followed.
    most_texts : behind which all pieces are tried.

    Raises: DeadEndError if there is no ending; LimitError if none is found among so many texts.
    Cost: 256 readings of a byte for each text that is looked at; where the vocabulary lacks single
    bytes, one for each of its tokens.
    """
    vocabulary: Vocabulary = text.store.vocabulary
    # what single bytes spell, any tokens spell; printable ASCII comes first
    pieces: Iterable[bytes] = (
        [bytes((byte,)) for byte in (*range(32, 127), *range(32), *range(127, 256))]
        if vocabulary.is_byte_complete
        else vocabulary.id_of_text
    )
    seen: set[object] = set()
    number = itertools.count()  # of texts of one length those that were found first come first
    found = [(0, next(number), b"", text)]
    while found:
        # INVARIANT: all endings of fewer bytes have been tried
        length, _, data, here = heapq.heappop(found)
        if here.can_end():
            return Ending(data, _fewest_tokens(data, vocabulary))
        if (key := here.key()) in seen:
            continue
        seen.add(key)
        if len(seen) > most_texts:
            raise LimitError(f"{text.under}: no ending was found behind {most_texts:,} texts")
        for piece in pieces:
            if here.read(piece, False) == constants.OK:
                there = here.copy()
                there.read(piece, True)
                heapq.heappush(found, (length + len(piece), next(number), data + piece, there))
    raise DeadEndError(f"vocabulary {vocabulary.name} spells no ending of this text under {text.under}")


def _fewest_tokens(data: bytes, vocabulary: Vocabulary) -> tuple[int, ...]:
    """The fewest tokens that spell some bytes, which tokens do spell."""
    ids = vocabulary.id_of_text
    longest = max(map(len, ids), default=0)
    best: list[tuple[int, ...] | None] = [()]  # for each beginning of the bytes
    for end in range(1, len(data) + 1):
        ways = [
            (*before, ids[data[begin:end]])
            for begin in range(max(0, end - longest), end)
            if (before := best[begin]) is not None and data[begin:end] in ids
        ]
        best.append(min(ways, key=len, default=None))
    assert best[-1] is not None
    return best[-1]


__all__ = ["Ending", "plain_ending"]
