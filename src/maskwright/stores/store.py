"""Stores as users hold them: made, saved, loaded, copied and pickled. A `Store` makes matchers.

The data are those of `maskstore`, which knows nothing of decoders. This module joins data and
decoders.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from maskwright.analysis.arguments import as_boolean, need_progress, printable
from maskwright.analysis.errors import StoreError
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa
from maskwright.analysis.nesting import on_own_stack
from maskwright.maskstore.entries.entry_table import EntryTable
from maskwright.maskstore.file.fileformat import read_store, save_store
from maskwright.maskstore.file.origin import Origin
from maskwright.maskstore.table.compiled import EngineTable, Progress
from maskwright.maskstore.vocabulary import VocabularySource
from maskwright.maskstore.vocabulary.masks import MaskPool
from maskwright.stores.closing import Close, Closing, Keep
from maskwright.stores.first_call import say_what_is_compiled
from maskwright.stores.texts import MakesTexts

if TYPE_CHECKING:
    from maskwright.analysis.loading.sources import GrammarSource
    from maskwright.stores.schema_store import SchemaStore

    AnyStore: TypeAlias = "Store | EntryStore | SchemaStore"


class _Portable:
    """Copying and pickling, for both kinds of store.

    Both are dataclasses with the fields `counts` and `origin`. A copy is the store itself. A pickle
    names the store's file if that is still there unchanged; otherwise it has the content.
    """

    origin: Origin | None

    @classmethod
    def of(cls, table: EngineTable | EntryTable) -> Self:
        """The store of a table that was built or read."""
        return cls(**{each.name: getattr(table, each.name) for each in dataclasses.fields(table)})

    def loaded_from(self, origin: Origin) -> Self:
        """The store itself, which now knows its file.

        `dataclasses.replace` makes another store, which knows no file.
        """
        object.__setattr__(self, "origin", origin)
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self

    @property
    def _title(self) -> str:
        store: Any = self
        return f"{printable(store.grammar.name)} x {printable(store.vocabulary.name)}"

    def __reduce__(self) -> tuple[Any, ...]:
        store: Any = self
        if self.origin is not None and self.origin.is_there():
            vocabulary = store.vocabulary
            return _load_again, (self.origin, vocabulary.name, vocabulary.checked)
        values = {field.name: getattr(store, field.name) for field in dataclasses.fields(store) if field.init}
        # a read-only mapping cannot be pickled; a table mapped from a file is pickled by its values
        values["counts"] = dict(store.counts)
        return _put_together, (type(self), values)


@dataclass(frozen=True, repr=False, eq=False)
class Store(MakesTexts, EngineTable, _Portable):
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the store to the file at `path`.

        Raises: as `save_store`.
        """
        save_store(self, path)

    def __repr__(self) -> str:
        if not self.is_closed:
            state = "being closed" if self.is_closing else "open"
            return f"<Store {self._title}: {state}, {self.table.nbytes / 1e6:.1f} MB>"
        return (
            f"<Store {self._title}: {self.counts.get('nodes', 0):,} nodes, "
            f"{self.counts.get('edges', 0):,} edges, {self.counts.get('masks', 0):,} masks, {self.table.nbytes / 1e6:.1f} MB>"
        )


@dataclass(frozen=True, repr=False, eq=False)
class EntryStore(MakesTexts, EntryTable, _Portable):
    """Masks by lexer state and terminal sequence, for lexing "nfa". A `ReferenceDecoder` reads it.

    It has neither matchers nor batches, and says so.

    For its arrays see `EntryTable`.

    origin : the file that it was loaded from; None if it was built. A pickle names this file if it
        is still there unchanged; otherwise it has the content.
    """

    origin: Origin | None = field(default=None, init=False, compare=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the store to the file at `path`.

        Raises: as `save_store`.
        """
        save_store(self, path)

    def __repr__(self) -> str:
        kind = f"streamlined on {self.rules} rules" if self.is_streamlined else "not streamlined"
        return (
            f"<EntryStore {self._title}: {self.n_entries} entries in {self.n_cells} cells, "
            f"{len(self.masks)} masks, {kind}>"
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
        objects. Names and paths are accepted too.
    mapped : a `Store`'s table is the file's own pages, so that processes that load the same file
        share one copy. Only for a file that nobody alters in place (replacing it by another is
        fine): altered pages are not checked again, and reading what was cut off ends the process.

    While this runs, nobody may cut the file off in place; `save_store` replaces a file as a whole.
    A file of a schema or a pattern gives a `SchemaStore`, which is built again.

    The arrays are read-only. `Vocabulary.checked` is not kept, because it is a fact about the
    machine that built the store.

    Raises: StoreError if there is no such file, or it cannot be read, is damaged, cut off, of
    another kind or version, breaks a rule of the format, or was made for another grammar or
    vocabulary.
    Cost: O(size of the file).
    """
    found, origin = read_store(path, vocabulary, grammar, as_boolean("mapped", mapped))
    say_what_is_compiled(of_schemas=not isinstance(found, EngineTable | EntryTable))
    if isinstance(found, EngineTable):
        return Store.of(found).loaded_from(origin)
    if isinstance(found, EntryTable):
        return EntryStore.of(found).loaded_from(origin)
    # PERF: a decoder of a grammar is not kept waiting for what reads schemas
    from maskwright.stores.schema_store import build_schema_store

    return build_schema_store(*found)


def as_store(source: AnyStore | str | os.PathLike[str]) -> AnyStore:
    """The store itself, or what `load_store` finds in a file.

    Raises: as `load_store`.
    """
    return load_store(source) if isinstance(source, str | bytes | os.PathLike) else source


def _load_again(origin: Origin, name: str, checked: bool) -> Any:
    """The store of a pickle that names its file. Raises StoreError if the file has another."""
    path = origin.path
    if not os.path.exists(path):
        raise StoreError(
            f"the store was pickled as the path of its file, but there is no file {path} here; put it there, or load the store "
            "from where it is"
        )
    store: Any = load_store(path, mapped=origin.mapped)
    if getattr(store, "origin", None) is None or store.origin.sha256 != origin.sha256:
        raise StoreError(
            f"{path} is not the store that was pickled under this path: the file was replaced since then; pickle the store again"
        )
    if (store.vocabulary.name, store.vocabulary.checked) != (name, checked):
        vocabulary = dataclasses.replace(store.vocabulary, name=name, checked=checked)
        store = dataclasses.replace(store, vocabulary=vocabulary).loaded_from(store.origin)
    return store


def _put_together(cls: type[Any], values: dict[str, Any]) -> Any:
    """The store of a pickle that has its content."""
    for value in values.values():
        inner = vars(value).values() if isinstance(value, TerminalNfa | MaskPool) else (value,)
        for array in inner:
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
    return cls(**{**values, "counts": MappingProxyType(values["counts"])})
