"""The store of a grammar of lexing "nfa", as users hold it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from maskwright.maskstore.entries.entry_table import EntryTable
from maskwright.stores.base import FiledStore

if TYPE_CHECKING:
    from maskwright.maskstore.file.fileformat import Origin


@dataclass(frozen=True, repr=False, eq=False)
class EntryStore(EntryTable, FiledStore):
    """Masks by lexer state and terminal sequence, for lexing "nfa". A `ReferenceDecoder` reads it.

    It has neither matchers nor batches, and says so.

    For its arrays see `EntryTable`.

    origin : the file that it was loaded from; None if it was built. A pickle names this file if it
        is still there unchanged; otherwise it has the content.
    """

    origin: Origin | None = field(default=None, init=False, compare=False)

    def __repr__(self) -> str:
        kind = f"streamlined on {self.rules} rules" if self.is_streamlined else "not streamlined"
        return (
            f"<EntryStore {self._title}: {self.n_entries} entries in {self.n_cells} cells, "
            f"{len(self.masks)} masks, {kind}>"
        )
