"""Where Numba keeps compiled code, settled before it is asked to.

Numba keeps it beside the modules or, where nobody may write there, in the user's cache folder. A user who can write to neither (a package
that root has installed, used by an account without a home) would get an error from each compiled function.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "NUMBA_CACHE_DIR"


def settle(package: str) -> None:
    """If compiled code could be kept nowhere, keep it in a folder of this process, and say so. package : the folder of our modules.

    Does nothing where the user has named a folder.
    """
    beside = os.path.join(package, "__pycache__")
    if os.environ.get(VARIABLE) or _can_write(beside) or _can_write(_users_folder()):
        return
    import atexit
    import tempfile
    import warnings

    folder = tempfile.mkdtemp(prefix="maskwright-")
    atexit.register(_remove, os.getpid(), folder)
    os.environ[VARIABLE] = folder  # for processes that this one starts, too
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = folder
    warnings.warn(
        f"compiled code can be kept neither in {package} nor in {_users_folder()}, so each process compiles it anew, for half a minute or "
        f"more; set {VARIABLE} to a folder of your own",
        RuntimeWarning,
        stacklevel=3,
    )


def _users_folder() -> str:
    """Where Numba keeps code for a user."""
    if sys.platform in ("win32", "darwin"):
        return os.path.expanduser("~")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "numba")


def _can_write(folder: str) -> bool:
    """Whether files can be made in a folder, or in the folder itself if it has to be made first."""
    while not os.path.isdir(folder):
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return os.access(folder, os.W_OK | os.X_OK)


def _remove(process: int, folder: str) -> None:
    """Not in a fork of the process, which ends earlier."""
    import shutil

    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
