"""Endings of texts of several languages: the part's under way, then the host's with its parts."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from maskwright.analysis.errors import DeadEndError
from maskwright.analysis.marks import MARK, part_of_mark
from maskwright.decoding.composition.cursors import Cursor, JsonCursor
from maskwright.decoding.composition.readings import Reading, Rules
from maskwright.decoding.endings.ending import endings_of
from maskwright.decoding.endings.ending_spelling import spelling_of
from maskwright.maskstore.composition.tables import TokenPart, TokenRunPart
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import tokens_of

Pieces = list[bytes | int]
"""Bytes, and tokens that are taken whole."""


def pieces_of(rules: Rules, closed: list[Reading]) -> Pieces:
    """An ending: the shortest of those made of endings of its languages.

    closed : the closed readings, none of which is whole. Raises: DeadEndError if there is none.
    """
    found: list[Pieces] = []
    said = ""
    for reading in closed:
        try:
            part = [] if reading.back is None else _ending(reading.cursor)
            found.append([*part, *_host_ending(rules, (reading.back or reading).cursor)])
        except DeadEndError as error:
            said = str(error)
    if not found:
        raise DeadEndError(said or f"no bytes complete this text under {rules.tables.name}")
    return min(found, key=lambda pieces: sum(len(piece) if isinstance(piece, bytes) else 1 for piece in pieces))


def spelled(pieces: Pieces, vocabulary: Vocabulary) -> tuple[bytes, tuple[int, ...]]:
    """The bytes of an ending, and its tokens. Raises: DeadEndError if no tokens spell it."""
    spelling = spelling_of(vocabulary)
    data, tokens = b"", list[int]()
    for is_bytes, run in groupby(pieces, lambda piece: isinstance(piece, bytes)):
        if not is_bytes:
            tokens += run  # type: ignore[arg-type]
            continue
        piece = b"".join(run)  # type: ignore[arg-type]
        found = spelling.fewest_tokens(piece)
        if found is None:
            raise DeadEndError(spelling.explanation(piece))
        data += piece
        tokens += found
    return data, tuple(tokens)


def _ending(part: Cursor) -> Pieces:
    """An ending of a part; one of a composition may have tokens that are taken whole."""
    text: Any = part.text if part.__class__ is Cursor else None
    return text.ending_pieces() if text is not None and text.takes_whole else [part.ending()]


def _host_ending(rules: Rules, host: Cursor) -> Pieces:
    """The host's ending, with a shortest text of its part, or its token, for each mark."""
    # the vocabulary need not spell the marks of a schema
    data = endings_of(host.text).short_bytes(host.text) if isinstance(host, JsonCursor) else host.ending()
    pieces: Pieces = []
    at = 0
    while (begin := data.find(bytes((MARK,)), at)) >= 0:
        pieces.append(data[at:begin])
        number = part_of_mark(data, begin)
        part, start = rules.tables.parts[number], rules.start(number)
        if isinstance(part, TokenPart | TokenRunPart):
            pieces.append(int(tokens_of(part.words)[0]))
        elif start is not None and not start.can_end():
            pieces += _ending(start)
        at = begin + 3
    return [*pieces, data[at:]]
