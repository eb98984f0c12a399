"""Which files of some folders are opened: an audit hook, which sees what any library opens."""

from __future__ import annotations

import contextlib
import functools
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


@functools.cache
def _begin() -> None:
    """From now on every audit event of the process calls `_see`: for its other tests that is time lost, and there is no way back."""
    sys.addaudithook(_see)


@contextlib.contextmanager
def watched(*paths: str | os.PathLike[str]) -> Iterator[None]:
    """Note in `opened` which files are opened below some paths, as long as the block runs."""
    _begin()
    _watched[:] = [os.path.realpath(path) for path in paths]
    opened.clear()
    try:
        yield
    finally:
        _watched.clear()
