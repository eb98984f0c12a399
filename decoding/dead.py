"""Can any text be finished? The question is asked before anybody decodes under a new store."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.decoding.endings.ending import endings_of
from maskwright.decoding.engine.texts import Texts
from maskwright.decoding.grammar.text import GrammarText
from maskwright.decoding.reference.decoder import ReferenceDecoder
from maskwright.maskstore.entries.entry_table import EntryTable
from maskwright.maskstore.table.compiled import EngineTable

MOST_BYTES = 1 << 16
"""A store whose texts all have more bytes is let through: to spell one would take seconds."""


def refuse_dead(store: EngineTable | EntryTable) -> None:
    """Refuse a store under which no text can be written.

    store : what was built. Of an `EntryTable` only the first mask is looked at. A store for which
        the search reaches its limits is let through.

    Raises: DeadEndError if the vocabulary can write no text of the grammar, or the first mask is
    empty.

    Cost: as `Endings.short`; next to nothing if the empty text is legal.
    """
    if isinstance(store, EntryTable):
        if not ReferenceDecoder(store).mask().any():
            raise DeadEndError("no token can come first")
        return
    text = GrammarText(Texts(store, 1, 0))
    try:
        text.refuse_fill(text.fill(np.zeros(store.n_words, np.int32)))
        endings_of(text).short(text, most_bytes=MOST_BYTES)
    except LimitError:
        return
