"""Can any text be finished? The question is asked before anybody decodes under a new store."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.decoding.engine.ending import plain_ending
from maskwright.decoding.engine.texts import Texts
from maskwright.decoding.grammar.text import GrammarText
from maskwright.maskstore.table.compiled import EngineTable

if TYPE_CHECKING:
    from maskwright.maskstore.entries.entry_table import EntryTable

MOST_BYTES = 1 << 16
"""A store whose texts all have more bytes is let through: to spell one would take seconds."""
FEW = 16
"""The texts behind which all bytes are tried before the search for an ending begins."""


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
        # PERF: where a text of a byte or two is legal, the search and its tables are not needed
        with suppress(DeadEndError, LimitError):
            plain_ending(text, FEW)
            return
        from maskwright.decoding.endings.ending import endings_of

        endings_of(text).short(text, most_bytes=MOST_BYTES)
    except LimitError:
        return


def refuse_dead_entries(store: EntryTable) -> None:
    """The same for a store of lexing "nfa", of which only the first mask is looked at."""
    from maskwright.decoding.reference.decoder import ReferenceDecoder

    if not ReferenceDecoder(store).mask().any():
        raise DeadEndError("no token can come first")
