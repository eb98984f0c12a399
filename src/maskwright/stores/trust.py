"""Whether others may have written what is in a folder or file: asked before anything in the cache is believed, as ssh asks of its keys."""

from __future__ import annotations

import os
import stat
from pathlib import Path

HAS_OWNERS = hasattr(os, "getuid")
"""Elsewhere (Windows) a user's own folders are protected by lists of rights, and nothing is asked here."""

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def why_not_trusted(folder: Path) -> str | None:
    """Why a folder may hold what others wrote; None if only this user, or root, can write there. folder : without links in its path.

    The folder must belong to this user or root, and nobody else may write there. The same holds of the folders above it, where one
    that all may write is fine if it is sticky, as /tmp is: there nobody can replace what is another's.

    Raises: OSError as `os.stat`.
    """
    if not HAS_OWNERS:
        return None
    for place in (folder, *folder.parents):
        facts = os.lstat(place)
        if not stat.S_ISDIR(facts.st_mode):
            return f"{place} is no folder"
        if facts.st_uid not in (0, os.getuid()):
            return f"{place} belongs to another user (number {facts.st_uid})"
        is_sticky = place != folder and facts.st_mode & stat.S_ISVTX
        if facts.st_mode & _WRITABLE_BY_OTHERS and not is_sticky:
            return f"others may write in {place} (mode {stat.S_IMODE(facts.st_mode):04o}; chmod go-w takes that back)"
    return None


def why_not_trusted_file(path: Path) -> str | None:
    """The same of a file in a trusted folder. Raises: OSError as `os.stat`."""
    if not HAS_OWNERS:
        return None
    facts = os.lstat(path)
    if not stat.S_ISREG(facts.st_mode):
        return "it is not a file, or a link to one"
    if facts.st_uid not in (0, os.getuid()):
        return f"it belongs to another user (number {facts.st_uid})"
    if facts.st_mode & _WRITABLE_BY_OTHERS:
        return f"others may write in it (mode {stat.S_IMODE(facts.st_mode):04o})"
    return None


def make_own_folder(folder: Path) -> None:
    """Make a folder, and those above that are not there, for this user alone. Raises: OSError."""
    for place in (*reversed(folder.parents), folder):
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError:
            if not place.is_dir():  # one above that is there may lie on a disk that is read-only
                raise


__all__ = ["HAS_OWNERS", "make_own_folder", "why_not_trusted", "why_not_trusted_file"]
