"""Compiled functions, *kernels*: Numba's `njit`, and where their machine code is kept from one process to the next.

Numba keeps a function's code for as long as the function's own file stays as it is. It does not look at the files of what the function
calls, nor at those that its constants come from, and would go on running what they were. So the code of each file is kept in a folder that
is named by a checksum of all of these.

Knows nothing of what the kernels do.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import threading
import warnings
import zlib
from collections.abc import Callable
from typing import Any

VARIABLE = "NUMBA_CACHE_DIR"

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of our modules."""

_LOCK = threading.Lock()
"""While Numba is told where to keep code. That is a setting of the whole process."""

_IMPORT = re.compile(rb"^from (maskwright(?:\.\w+)*) import (?:\(([^)]*)\)|([^\n]*))", re.MULTILINE)


def kernel(function: Callable[..., Any] | None = None, /, *, allocates: bool = False, forceinline: bool = False) -> Any:
    """A function that Numba compiles at its first call, without Python objects and without the interpreter's lock.

    allocates : whether it makes arrays, or returns some, in a tuple or otherwise. Without this Numba counts no references: a slice
        that such a function returns is taken for the whole array. forceinline : see `numba.njit`.

    PERF: references to arrays are counted only in functions that allocate. To count them costs some 10 ns for each array of each call,
    also of those in tuples, and such functions as these pass thirty.

    Example: `@kernel` above `def add(a, b): return a + b` in a module makes `add(1, 2)` compiled code.
    """
    if function is None:
        return functools.partial(kernel, allocates=allocates, forceinline=forceinline)
    njit: Any = importlib.import_module("numba").njit  # its stub does not know `_nrt`
    config: Any = importlib.import_module("numba.core.config")  # made from the environment: no stub knows its names
    path = function.__code__.co_filename
    with _LOCK:
        named = config.CACHE_DIR
        folder = os.path.join(_folder(named), f"{_stem(path)}-{checksum(path):08x}")
        config.CACHE_DIR = folder
        try:
            made = njit(cache=True, nogil=True, forceinline=forceinline, _nrt=allocates)(function)
        finally:
            config.CACHE_DIR = named
    if config.DISABLE_JIT or made._cache.cache_path.startswith(folder):
        return made
    # Numba could not write there after all, and would keep the code where nobody looks at the checksum
    _warn_once(folder)
    return njit(nogil=True, forceinline=forceinline, _nrt=allocates)(function)


@functools.cache
def _warn_once(folder: str) -> None:
    warnings.warn(
        f"compiled code cannot be written to {folder}, so each process compiles it anew; make room there, or set {VARIABLE} to another "
        "folder",
        RuntimeWarning,
        stacklevel=4,
    )


@functools.cache
def checksum(path: str) -> int:
    """Of all that the kernels of a file are made of. path : of the file; of one that cannot be read it is 0."""
    found = 0
    for source in sources(path).values():
        found = zlib.crc32(source, found)
    return found


def sources(path: str) -> dict[str, bytes]:
    """A module's file, those of the modules of ours that it imports from, and, where these have kernels, of what they import from."""
    found = {}
    agenda = [os.path.abspath(path)]
    for one in agenda:  # grows while it is read
        try:
            with open(one, "rb") as file:
                source = file.read()
        except OSError:
            continue
        found[one] = source
        if one == agenda[0] or has_kernels(source):
            agenda += [other for other in _imported(source) if other not in agenda]
    return found


def has_kernels(source: bytes) -> bool:
    """Whether a module defines functions that others' kernels may call."""
    return b"@kernel" in source


def _imported(source: bytes) -> list[str]:
    """The files of the modules of ours that a module imports from, in their order."""
    found = []
    for match in _IMPORT.finditer(source):
        module = os.path.join(PACKAGE, *match[1].decode().split(".")[1:])
        names = re.findall(r"(\w+)(?: as \w+)?", (match[2] or match[3]).decode())
        inside = [path for name in names if os.path.isfile(path := os.path.join(module, f"{name}.py"))]
        found += inside or [
            path for path in (f"{module}.py", os.path.join(module, "__init__.py")) if os.path.isfile(path)
        ]
    return found


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0].strip("_")


@functools.cache
def _folder(named: str) -> str:
    """Where folders for code are made. named : by the user; else beside our modules or, where nobody may write there, in the user's own
    cache; where that cannot be written either, a folder of this process, with a warning."""
    if named and _can_write(named):
        return named
    beside, users = os.path.join(PACKAGE, "__pycache__"), _users_folder()
    for folder in (beside, users):
        if _can_write(folder):
            if named:
                what = f"{VARIABLE} names {named}, where nothing can be written; compiled code is kept in {folder}"
                warnings.warn(what, RuntimeWarning, stacklevel=3)
            return folder
    import atexit
    import tempfile

    folder = tempfile.mkdtemp(prefix="maskwright-")
    atexit.register(_remove, os.getpid(), folder)
    os.environ[VARIABLE] = folder  # for processes that this one starts, too
    warnings.warn(
        f"compiled code can be kept neither in {PACKAGE} nor in {users}, so each process compiles it anew, for half a minute or more; set "
        f"{VARIABLE} to a folder of your own",
        RuntimeWarning,
        stacklevel=3,
    )
    return folder


def _users_folder() -> str:
    """The user's folder for what can be made again."""
    if os.name == "nt":
        return os.path.join(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~"), "maskwright-kernels")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "maskwright-kernels")


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
