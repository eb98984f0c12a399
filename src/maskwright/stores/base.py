"""What a store of any kind does: it makes matchers and batches, and is saved."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import printable
from maskwright.analysis.errors import StoreError
from maskwright.decoding.batch import Batch
from maskwright.decoding.matcher import DEFAULT_ROLLBACK, Matcher

if TYPE_CHECKING:
    from maskwright.maskstore.file.fileformat import Origin
    from maskwright.maskstore.table.compiled import Progress


class BaseStore:
    """A store under which texts are read. A copy of it is the store itself.

    It comes after what is computed ahead of time (`maskstore`), of which a store is a kind.
    """

    @classmethod
    def of(cls, table: Any) -> Self:
        """The store of what was built or read."""
        return cls(**{each.name: getattr(table, each.name) for each in dataclasses.fields(table)})

    def matcher(self, max_rollback: int = DEFAULT_ROLLBACK, **hole: Any) -> Matcher:
        """The state of one text, at its start; or of the middle between a prefix and a suffix.

        max_rollback : how many tokens `rollback` can take back.
        hole : prefix, suffix, exact and if_broken, as of `decoding.infill.text.open_middle`.

        Raises: as `Matcher` and `open_middle`.
        """
        if not hole:
            return Matcher(self, max_rollback)
        from maskwright.decoding.infill.text import open_middle  # PERF: most decoders need it not

        return Matcher.of(open_middle(self, max_rollback, **hole))

    def batch(self, size: int, max_rollback: int = DEFAULT_ROLLBACK, n_threads: int = 1) -> Batch:
        """The states of several texts, at their starts.

        size : the number of texts.
        max_rollback : how many tokens of a text `rollback` can take back.
        n_threads : how many threads work on the batch.

        Raises: as `Batch`.
        """
        return Batch(self, size, max_rollback, n_threads)

    @property
    def whole(self) -> npt.NDArray[np.uint32] | None:
        """The tokens that parts take whole: (n_words,) uint32; None if there are no parts."""
        return None

    @property
    def is_closed(self) -> bool:
        """Whether all masks are looked up: only of a `Store` some may not be."""
        return True

    @property
    def is_closing(self) -> bool:
        """Whether the store is being closed in the background: only a `Store` ever is."""
        return False

    def close(self, progress: Progress | None = None) -> None:
        """Wait until the store is closed: only a `Store` can be built lazily."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the store to the file at `path`, from which `load_store` makes it again.

        Of a schema or a pattern the file has no tables: it is built again.

        Raises: as `save_store`; StoreError for a schema of values that JSON does not have.
        """
        # PERF: a decoder is not kept waiting for what writes files
        from maskwright.maskstore.file.fileformat import save_store

        save_store(self, path)  # type: ignore[arg-type]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self


class FiledStore(BaseStore):
    """A store whose file has all of its content: of a grammar.

    Its dataclasses have the fields `counts` and `origin`. A pickle names the store's file if that
    is still there unchanged; otherwise it has the content.
    """

    origin: Origin | None

    def loaded_from(self, origin: Origin) -> Self:
        """The store itself, which now knows its file.

        `dataclasses.replace` makes another store, which knows no file.
        """
        object.__setattr__(self, "origin", origin)
        return self

    @property
    def _title(self) -> str:
        store: Any = self
        return f"{printable(store.grammar.name)} x {printable(store.vocabulary.name)}"

    def __reduce__(self) -> tuple[Any, ...]:
        store: Any = self
        if self.origin is not None and self.origin.is_there():
            return _load_again, (type(self), self.origin, store.vocabulary.name, store.vocabulary.checked)
        values = {field.name: getattr(store, field.name) for field in dataclasses.fields(store) if field.init}
        # a read-only mapping cannot be pickled; a table mapped from a file is pickled by its values
        values["counts"] = dict(store.counts)
        return _put_together, (type(self), values)


def _load_again(cls: type[Any], origin: Origin, name: str, checked: bool) -> Any:
    """The store of a pickle that names its file. Raises StoreError if the file has another."""
    from maskwright.maskstore.file.fileformat import read_store

    path = origin.path
    if not os.path.exists(path):
        raise StoreError(
            f"the store was pickled as the path of its file, but there is no file {path} here; put it there, or load the store "
            "from where it is"
        )
    found, now = read_store(path, mapped=origin.mapped)
    if now.sha256 != origin.sha256:
        raise StoreError(
            f"{path} is not the store that was pickled under this path: the file was replaced since then; pickle the store again"
        )
    store = cls.of(found)
    if (store.vocabulary.name, store.vocabulary.checked) != (name, checked):
        store = dataclasses.replace(store, vocabulary=dataclasses.replace(store.vocabulary, name=name, checked=checked))
    return store.loaded_from(now)


def _put_together(cls: type[Any], values: dict[str, Any]) -> Any:
    """The store of a pickle that has its content, whose arrays become read-only."""
    for name in values.keys() - {"grammar", "vocabulary"}:
        for array in (values[name], *getattr(values[name], "__dict__", {}).values()):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
    return cls(**{**values, "counts": MappingProxyType(values["counts"])})
