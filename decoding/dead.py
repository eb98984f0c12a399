"""Can any text be finished? The question is asked before anybody decodes under a new store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.decoding.engine.texts import Texts
from maskwright.decoding.grammar.text import GrammarText
from maskwright.maskstore.table.compiled import EngineTable

if TYPE_CHECKING:
    from maskwright.maskstore.entries.entry_table import EntryTable

MOST_BYTES = 1 << 16
"""A store whose texts all have more bytes is let through: to spell one would take seconds."""


def refuse_dead(store: EngineTable) -> None:
    """Refuse a store under which no text can be written.

    store : what was built. A store for which the search reaches its limits is let through.

    Raises: DeadEndError if the vocabulary can write no text of the grammar, or the first mask is
    empty.

    Cost: as `Endings.short`; next to nothing if the empty text is legal.
    """
    text = GrammarText(Texts(store, 1, 0))
    try:
        text.refuse_fill(text.fill(np.zeros(store.n_words, np.int32)))
        if not _is_short(text):
            from maskwright.decoding.endings.ending import endings_of

            endings_of(text).short(text, most_bytes=MOST_BYTES)
    except LimitError:
        return


def _is_short(text: GrammarText) -> bool:
    """PERF: whether some text of a byte at most is legal, and spelled: then no search is needed."""
    if text.can_end():
        return True
    longer = [(text.copy(), byte) for byte in text.next_bytes()] if text.store.vocabulary.is_byte_complete else []
    return any(there.try_read(bytes((byte,))) and there.can_end() for there, byte in longer)


def refuse_dead_entries(store: EntryTable) -> None:
    """The same for a store of lexing "nfa", of which only the first mask is looked at."""
    from maskwright.decoding.reference.decoder import ReferenceDecoder

    if not ReferenceDecoder(store).mask().any():
        raise DeadEndError("no token can come first")
