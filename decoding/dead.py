"""Can any text be finished? Asked of what was built, before anybody decodes under it."""

from __future__ import annotations

import numpy as np

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.reference.reference import ReferenceDecoder
from maskwright.maskstore.entries.entry_table import EntryTable
from maskwright.maskstore.table.compiled import EngineTable


def refuse_dead(store: EngineTable | EntryTable) -> None:
    """Raises DeadEndError if no text of the grammar can be written with the vocabulary, or the first mask is empty.

    Of an `EntryTable` only the first mask is looked at. What is not known within a search's limits is let through.
    Cost: as `short_ending`; next to nothing if the empty text is legal.
    """
    if isinstance(store, EntryTable):
        if not ReferenceDecoder(store).mask().any():
            raise DeadEndError("no token can come first")
        return
    matcher = Matcher(store, 0)
    try:
        matcher.fill(np.zeros(store.n_words, np.uint32))
        matcher.short_ending()
    except LimitError:
        return
