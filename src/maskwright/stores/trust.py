"""Whether others may have written a folder or a file.

This is asked before anything in the cache is used, as ssh asks it of its keys.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

HAS_OWNERS = hasattr(os, "getuid")
"""False on Windows. There, access lists protect a user's folders, and nothing is checked here."""

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def why_not_trusted(folder: Path) -> str | None:
    """Why others may have written what is in a folder; None if only this user or root can.

    folder : a path without links.

    The folder must belong to this user or root, and nobody else may write there. The same holds for
    the folders above it, except that a sticky one, such as /tmp, may be writable for all: nobody
    can replace another user's files there.

    Raises: OSError as `os.lstat`.
    """
    if not HAS_OWNERS:
        return None
    for path in (folder, *folder.parents):
        facts = os.lstat(path)
        if not stat.S_ISDIR(facts.st_mode):
            return f"{path} is not a folder"
        if facts.st_uid not in (0, os.getuid()):
            return f"{path} belongs to another user (user id {facts.st_uid})"
        is_sticky = path != folder and facts.st_mode & stat.S_ISVTX
        if facts.st_mode & _WRITABLE_BY_OTHERS and not is_sticky:
            return f"others may write in {path} (mode {stat.S_IMODE(facts.st_mode):04o}; chmod go-w prevents it)"
    return None


def why_not_trusted_file(path: Path) -> str | None:
    """The same as `why_not_trusted`, for a file in a trusted folder.

    Raises: OSError as `os.lstat`.
    """
    if not HAS_OWNERS:
        return None
    facts = os.lstat(path)
    if not stat.S_ISREG(facts.st_mode):
        return "it is not a file, or it is a link to one"
    if facts.st_uid not in (0, os.getuid()):
        return f"it belongs to another user (user id {facts.st_uid})"
    if facts.st_mode & _WRITABLE_BY_OTHERS:
        return f"others may write in it (mode {stat.S_IMODE(facts.st_mode):04o})"
    return None


def why_others_cannot_read(folder: Path) -> str | None:
    """Why other users cannot come to a folder that all may read; None if they can.

    folder : a path without links.

    Raises: OSError as `os.lstat`.
    """
    for path in folder.parents if HAS_OWNERS else ():
        mode = os.lstat(path).st_mode
        if not mode & stat.S_IXOTH:
            return f"they may not enter {path} (mode {stat.S_IMODE(mode):04o}; chmod o+x allows it)"
    return None


def make_own_folder(folder: Path) -> None:
    """Make a folder, and the missing folders above it, for this user alone.

    Raises: OSError if one cannot be made.
    """
    for path in (*reversed(folder.parents), folder):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError:
            if not path.is_dir():  # an existing one above may lie on a read-only disk
                raise
