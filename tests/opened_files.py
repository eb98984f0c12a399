"""Which files of some folders are opened: an audit hook, which sees what any library opens."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

_watched: list[str] = []
opened: list[str] = []
"""What has been opened since `watched` was entered."""


def _see(event: str, arguments: tuple[Any, ...]) -> None:
    if (
        _watched
        and event in ("open", "os.listdir", "os.scandir")
        and isinstance(arguments[0], str | bytes | os.PathLike)
    ):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(tuple(_watched)):
            opened.append(path)


sys.addaudithook(_see)


@contextlib.contextmanager
def watched(*paths: str | os.PathLike[str]) -> Iterator[None]:
    """Note in `opened` which files are opened below some paths, as long as the block runs."""
    _watched[:] = [os.path.realpath(path) for path in paths]
    opened.clear()
    try:
        yield
    finally:
        _watched.clear()
