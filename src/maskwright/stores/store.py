"""The store of a grammar, as users hold it, and what makes stores of files.

The data are those of `maskstore`, which knows nothing of decoders. Stores join data and decoders.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from maskwright.analysis.arguments import as_boolean, need_progress
from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.nesting import on_own_stack
from maskwright.maskstore.damaged import reason, refuse
from maskwright.maskstore.table.compiled import EngineTable, Progress
from maskwright.stores.base import FiledStore
from maskwright.stores.first_call import say_what_is_compiled

if TYPE_CHECKING:
    from maskwright.analysis.loading.sources import GrammarSource
    from maskwright.maskstore.file.fileformat import Origin
    from maskwright.maskstore.vocabulary import VocabularySource
    from maskwright.stores.closing import Close, Closing, Keep
    from maskwright.stores.composed_store import ComposedStore
    from maskwright.stores.entry_store import EntryStore
    from maskwright.stores.schema_store import SchemaStore

    AnyStore: TypeAlias = "Store | EntryStore | SchemaStore | ComposedStore"


@dataclass(frozen=True, repr=False, eq=False)
class Store(EngineTable, FiledStore):
    """Exact masks for a grammar and a vocabulary. `build_store` and `load_store` make it.

    table, counts : see `EngineTable`.
    origin : the file that it was loaded from; None if it was built. A pickle names this file if it
        is still there unchanged; otherwise it has the content.

    A store that is built lazily (`build_store`) is open at first, and is closed in the background:
    see `is_closed`, `is_closing` and `close`. Whatever needs the closed table waits for it: files,
    pickles and GPUs.
    """

    origin: Origin | None = field(default=None, init=False, compare=False)
    _closing: Closing | None = field(default=None, init=False, compare=False)

    def close_in_background(self, close: Close, keep: Keep | None = None) -> Self:
        """The store itself, which is being closed from now on. See `Closing`."""
        # PERF: only what is built lazily needs it
        from maskwright.stores.closing import Closing

        object.__setattr__(self, "_closing", Closing(self, close, keep))
        return self

    def _replace_table(self, found: EngineTable) -> None:
        object.__setattr__(self, "table", found.table)
        object.__setattr__(self, "counts", found.counts)

    @property
    def is_final(self) -> bool:
        """Whether the table is not replaced any more."""
        return self._closing is None or self._closing.is_done

    @property
    def is_closing(self) -> bool:
        """Whether the store is being closed in the background, by this process.

        False once it has the closed table, though that may yet be on its way into the cache.
        """
        return self._closing is not None and self._closing.is_at_work

    def close(self, progress: Progress | None = None) -> None:
        """Wait until the store is closed. Does nothing for a store that was not built lazily.

        Past its budget an automaton stays open (`is_closed`), with the same masks; so does a copy
        that `dataclasses.replace` makes of an open store.

        progress : see `build_store`.

        Raises: what went wrong in the background, as MemoryError. The store can still be used.
        """
        need_progress(progress)
        if self._closing is not None:
            self._closing.wait(progress)

    @property
    def n_bytes(self) -> int:
        """About how many bytes the store holds now, beside its grammar and vocabulary."""
        return int(self.table.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        self.close()
        return super().__reduce__()

    def __repr__(self) -> str:
        if not self.is_closed:
            state = "being closed" if self.is_closing else "open"
            return f"<Store {self._title}: {state}, {self.table.nbytes / 1e6:.1f} MB>"
        return (
            f"<Store {self._title}: {self.counts.get('nodes', 0):,} nodes, "
            f"{self.counts.get('edges', 0):,} edges, {self.counts.get('masks', 0):,} masks, {self.table.nbytes / 1e6:.1f} MB>"
        )


@on_own_stack
def load_store(
    path: str | os.PathLike[str],
    *,
    vocabulary: VocabularySource | None = None,
    grammar: GrammarSource | None = None,
    mapped: bool = False,
) -> AnyStore:
    """The store that `save_store` wrote. The whole file is checked, since it may come from anyone.

    path : the file.
    vocabulary, grammar : refuse a store that was not made for them. The store then holds these very
        objects. Names and paths are accepted too. With a grammar, stores of schemas, patterns and
        compositions are refused.
    mapped : a `Store`'s table is the file's own pages, so that processes that load the same file
        share one copy. Only for a file that nobody alters in place (replacing it by another is
        fine): altered pages are not checked again, and reading what was cut off ends the process.

    While this runs, nobody may cut the file off in place; `save_store` replaces a file as a whole.
    A file of a schema or a pattern gives a `SchemaStore`, which is built again, and one of a
    composition a `ComposedStore`, of which schemas and patterns are.

    The arrays are read-only. `Vocabulary.checked` is not kept, because it is a fact about the
    machine that built the store.

    Raises: StoreError if there is no such file, or it cannot be read, is damaged, cut off, of
    another kind or version, breaks a rule of the format, or was made for another grammar or
    vocabulary.
    Cost: O(size of the file).
    """
    from maskwright.maskstore.file.fileformat import read_store

    found: Any
    found, origin = read_store(path, vocabulary, grammar, as_boolean("mapped", mapped))
    if found.file_kind == "automaton":
        say_what_is_compiled("grammar")
        return Store.of(found).loaded_from(origin)
    # PERF: a decoder of a grammar is not kept waiting for the others
    if found.file_kind == "entries":
        from maskwright.stores.entry_store import EntryStore

        return EntryStore.of(found).loaded_from(origin)
    say_what_is_compiled(found.file_kind)
    if found.file_kind == "composition":
        from maskwright.stores.composed_store import stored_composition

        try:
            return stored_composition(found, Store.of)
        except MaskwrightError as error:
            raise refuse(os.fsdecode(path), f"its composition has no store: {reason(error)}") from error
    from maskwright.stores.schema_store import SchemaStore

    return SchemaStore.of(found)


def as_store(source: AnyStore | str | os.PathLike[str]) -> AnyStore:
    """The store itself, or what `load_store` finds in a file.

    Raises: as `load_store`.
    """
    return load_store(source) if isinstance(source, str | bytes | os.PathLike) else source
