"""Files written whole: under another name first, then renamed, so that nobody reads half a file."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from maskwright.analysis.errors import StoreError
from maskwright.maskstore.damaged import reason

TEMPORARY = re.compile(r"\.maskwright-[0-9a-f]{16}\.tmp")
"""The names of files while they are written."""

ABANDONED = 60
"""Seconds after which a file that is being written, and that no process holds, counts as left by a
killed process."""


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Make `data` the content of a file, all at once.

    path : the file, there or not.
    data : its new content.
    mode : the new file's permissions, less those that the umask takes away.

    Raises: StoreError if the folder does not exist, `path` is not a file, or the system refuses.
    """
    temporary = path.parent / f".maskwright-{secrets.token_hex(8)}.tmp"
    try:
        if (why := why_not_writable(path)) is not None:
            raise StoreError(f"cannot write {path}: {why}")
        sweep(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(temporary, flags, mode), "wb") as file:
            _hold(file.fileno())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # rename it while we hold it, so that nobody sweeps it away
                os.replace(temporary, path)
        if fcntl is None:
            os.replace(temporary, path)
    except StoreError:
        raise
    except BaseException as error:  # also after Ctrl-C no half-written file may stay
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError | ValueError):
            raise StoreError(f"cannot write {path}: {reason(error)}") from error
        raise


def why_not_writable(path: Path) -> str | None:
    """Why no file can be written at a path; None if nothing speaks against it.

    For callers that work long before they write. Writing may fail nevertheless.

    Raises: OSError or ValueError if the path cannot be looked at.
    """
    folder = path.absolute().parent
    if path.exists() and not path.is_file():
        return "it exists and is not a file; give a file's path"
    if not folder.is_dir():
        return f"there is no folder {folder}; make it first"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"you may not write in {folder}; check its permissions"
    return None


def sweep(folder: Path) -> None:
    """Delete the half-written files of killed processes in a folder.

    A process holds the file that it is writing, so such a file stays. Does nothing on Windows.
    """
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if TEMPORARY.fullmatch(entry.name) and time.time() - entry.stat(follow_symlinks=False).st_mtime > ABANDONED:
                with contextlib.suppress(OSError):
                    handle = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                    try:
                        _hold(handle, must=True)
                        os.unlink(entry.path)
                    finally:
                        os.close(handle)


def _hold(handle: int, must: bool = False) -> None:
    """Hold an open file for as long as it is open.

    must : raise OSError if another process holds it, or it cannot be held.
    """
    if fcntl is not None:
        with contextlib.suppress(*(() if must else (OSError,))):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
