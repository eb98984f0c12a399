"""Where a store was loaded from, and whether that file is still what it was."""

from __future__ import annotations

import os
from dataclasses import dataclass


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


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...]:
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns
