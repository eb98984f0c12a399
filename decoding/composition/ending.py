"""Endings of texts of several languages: the part's under way, then the host's with its parts."""

from __future__ import annotations

from itertools import groupby

from maskwright.analysis.errors import DeadEndError
from maskwright.analysis.marks import MARK, part_of_mark
from maskwright.decoding.composition.cursors import Cursor, JsonCursor
from maskwright.decoding.composition.readings import Reading, Rules
from maskwright.decoding.endings.ending import endings_of
from maskwright.decoding.endings.ending_spelling import spelling_of
from maskwright.maskstore.composition.tables import TokenPart, TokenRunPart
from maskwright.maskstore.vocabulary.masks import tokens_of


def ending_of(rules: Rules, closed: list[Reading]) -> tuple[bytes, tuple[int, ...]]:
    """An ending, as bytes and tokens: the shortest of those made of endings of its languages.

    closed : the closed readings of the text, none of which is whole.

    Raises: DeadEndError if there is none, or no tokens spell it.
    """
    found: list[list[bytes | int]] = []
    said = ""
    for reading in closed:
        try:
            pieces: list[bytes | int] = []
            if reading.back is not None:
                pieces.append(reading.cursor.ending())
                pieces += _host_ending(rules, reading.back.cursor)
            else:
                pieces += _host_ending(rules, reading.cursor)
            found.append(pieces)
        except DeadEndError as error:
            said = str(error)
    if not found:
        raise DeadEndError(said or f"no bytes complete this text under {rules.tables.name}")
    best = min(found, key=lambda pieces: sum(len(piece) if isinstance(piece, bytes) else 1 for piece in pieces))
    spelling = spelling_of(rules.tables.vocabulary)
    data, tokens = b"", list[int]()
    for is_bytes, run in groupby(best, lambda piece: isinstance(piece, bytes)):
        if not is_bytes:
            tokens += run  # type: ignore[arg-type]
            continue
        piece = b"".join(run)  # type: ignore[arg-type]
        spelled = spelling.fewest_tokens(piece)
        if spelled is None:
            raise DeadEndError(spelling.explanation(piece))
        data += piece
        tokens += spelled
    return data, tuple(tokens)


def _host_ending(rules: Rules, host: Cursor) -> list[bytes | int]:
    """The host's ending, with a shortest text of its part, or its token, for each mark."""
    # the vocabulary need not spell the marks of a schema
    data = endings_of(host.text).short_bytes(host.text) if isinstance(host, JsonCursor) else host.ending()
    pieces: list[bytes | int] = []
    at = 0
    while (begin := data.find(bytes((MARK,)), at)) >= 0:
        pieces.append(data[at:begin])
        number = part_of_mark(data, begin)
        part, start = rules.tables.parts[number], rules.start(number)
        if isinstance(part, TokenPart | TokenRunPart):
            pieces.append(int(tokens_of(part.words)[0]))
        elif start is not None and not start.can_end():
            pieces.append(start.ending())
        at = begin + 3
    return [*pieces, data[at:]]
