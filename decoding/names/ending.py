"""Short endings of a text whose terminal is held to names.

The search for endings knows nothing of names. So its ending is taken if it spells one, or spells no
lexeme of the terminal; else a name is put in front, or another terminal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.decoding.endings.ending import Ending
from maskwright.decoding.endings.ending import short_ending as without_names
from maskwright.decoding.endings.ending_spelling import spelling_of

if TYPE_CHECKING:
    from maskwright.decoding.names.held import Held

MOST_NAMES = 16
"""Names that are tried, the shortest first."""


def short_ending(matcher: Any, held: Held) -> Ending:
    """An ending of the text that spells a name where one must come. It need not be shortest.

    matcher : a `Matcher` (which asks this module, so that it is not imported here).

    Raises: DeadEndError if the vocabulary spells no ending; LimitError if none is found.
    """
    found = fitting(matcher, without_names(matcher))
    if found is not None:
        return found
    spelling = spelling_of(matcher.store.vocabulary)
    for data in _beginnings(matcher, held):
        there = matcher.fork()
        if not there.try_bytes(data):
            continue
        for between in (b"", *_words(held, ignored=True)):
            after = there.fork()
            if between and not after.try_bytes(between):
                continue
            try:
                rest = fitting(after, without_names(after))
            except (DeadEndError, LimitError):
                continue
            whole = data + between + (b"" if rest is None else rest.data)
            tokens = None if rest is None else spelling.fewest_tokens(whole)
            if tokens is not None:
                return Ending(whole, tokens, False)
    raise LimitError(
        f"grammar {matcher.store.grammar.name}: no ending was found, since {held.says(matcher)}; take tokens back, or give names that "
        "can end the text"
    )


def fitting(matcher: Any, ending: Ending) -> Ending | None:
    """An ending, if it leaves the text legal with the names as they are; else None."""
    there = matcher.fork()
    return ending if there.try_bytes(ending.data) and there.is_accepting() else None


def _beginnings(matcher: Any, held: Held) -> Iterator[bytes]:
    """Bytes that may begin an ending: the rest of a name, then other terminals."""
    assert held.place is not None
    typed = held.place.typed
    names = sorted((name for name in held.place.names.texts if name.startswith(typed)), key=len)[:MOST_NAMES]
    for between in (b"", *_words(held, ignored=True)):
        yield from (between + name[len(typed) :] for name in names if not (between and typed))
    if not typed:
        yield from _words(held, ignored=False)


def _words(held: Held, ignored: bool) -> list[bytes]:
    """A shortest spelling of each ignored terminal, or of each other but for the one held."""
    assert held.place is not None
    lexer, names = held.lexer, held.place.names
    found: dict[int, bytes] = {}
    seen = set(lexer.starts)
    agenda = deque((start, b"") for start in lexer.starts)
    while agenda:
        state, text = agenda.popleft()
        for byte in lexer.bytes_of_classes:
            after = int(lexer.next_state[state, byte])
            if after >= 0 and after not in seen:
                seen.add(after)
                agenda.append((after, text + bytes([byte])))
                if lexer.winner[after] >= 0:
                    found.setdefault(int(lexer.winner[after]), text + bytes([byte]))
    return [
        word
        for terminal, word in found.items()
        if (terminal in lexer.ignored) == ignored and terminal != names.terminal
    ]
