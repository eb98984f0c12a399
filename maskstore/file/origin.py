"""The file that a store was loaded from, and whether it has changed since."""

from __future__ import annotations

import os
from dataclasses import dataclass

from maskwright.analysis.files import absolute


@dataclass(frozen=True, slots=True)
class Origin:
    """The file that a store was loaded from.

    path : its absolute path.
    sha256 : the digest that the file states of its content; it covers the table's checksum.
    stamp : the file's device, inode, size and time of change when it was loaded; () if it could not
        be looked at.
    mapped : the store reads the file's own pages.
    """

    path: str
    sha256: str
    stamp: tuple[int, ...]
    mapped: bool

    @classmethod
    def of(cls, path: str | os.PathLike[str], sha256: str, mapped: bool) -> Origin:
        """The origin of the file that is at `path` now.

        sha256 : the digest that the file states.
        mapped : the store reads the file's own pages.
        """
        return cls(absolute(path), sha256, _stamp(path), mapped)

    def is_there(self) -> bool:
        """True if the file is still there, not replaced or altered since."""
        return bool(self.stamp) and _stamp(self.path) == self.stamp


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...]:
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns
