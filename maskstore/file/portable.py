"""Stores for other processes: pickled by their file where they have one, else by content. A copy is the store itself."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from maskwright.analysis.errors import StoreError


@dataclass(frozen=True, slots=True)
class Origin:
    """The file that a store was loaded from. path : absolute. sha256 : what the file says of its content; it covers the table's checksum.
    stamp : the file's place, size and time of change when it was loaded."""

    path: str
    sha256: str
    stamp: tuple[int, ...]

    @classmethod
    def of(cls, path: str | os.PathLike[str], sha256: str) -> Origin:
        return cls(os.path.abspath(path), sha256, _stamp(path))

    def is_there(self) -> bool:
        """Whether nobody has replaced or altered the file since."""
        return bool(self.stamp) and _stamp(self.path) == self.stamp


class Portable:
    """What both kinds of store do when they are copied or pickled. They are dataclasses with the fields `counts` and `origin`."""

    origin: Origin | None

    def loaded_from(self, origin: Origin) -> Self:
        """The store itself, which now knows its file. What `dataclasses.replace` makes of it is another one and knows none."""
        object.__setattr__(self, "origin", origin)
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        store: Any = self
        if self.origin is not None and self.origin.is_there():
            vocabulary = store.vocabulary
            return _load_again, (self.origin.path, self.origin.sha256, vocabulary.name, vocabulary.checked)
        values = {field.name: getattr(store, field.name) for field in dataclasses.fields(store) if field.init}
        # a read-only mapping cannot be pickled; a mapped table is written out
        values["counts"] = dict(store.counts)
        return _put_together, (type(self), values)


def _load_again(path: str, sha256: str, name: str, checked: bool) -> Any:
    from maskwright.maskstore.file.fileformat import load_store

    if not Path(path).exists():
        raise StoreError(
            f"the store was pickled by its file, and there is no file {path} here; put it there, or load the store from where it is"
        )
    store = load_store(path)
    if store.origin is None or store.origin.sha256 != sha256:
        raise StoreError(
            f"{path} is another store than the one that was pickled by this path: it was replaced in between; pickle the store again"
        )
    if (store.vocabulary.name, store.vocabulary.checked) != (name, checked):
        vocabulary = dataclasses.replace(store.vocabulary, name=name, checked=checked)
        store = dataclasses.replace(store, vocabulary=vocabulary).loaded_from(store.origin)
    return store


def _put_together(cls: type[Any], values: dict[str, Any]) -> Any:
    for value in values.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return cls(**{**values, "counts": MappingProxyType(values["counts"])})


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...]:
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


__all__ = ["Origin", "Portable"]
