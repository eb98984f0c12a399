"""Compiled functions, *kernels*: Numba's `njit`, and the folders that keep their machine code.

Numba keeps a function's machine code from one process to the next for as long as the function's own
file does not change. It does not look at the files of the functions that it calls, nor at the files
that its constants come from. If one of these changed, Numba would go on running the old code. So we
keep the code of each file in a folder whose name has a checksum of all of these files.

Knows nothing of what the kernels do.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import importlib
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from maskwright.analysis import ahead
from maskwright.analysis.addresses import teach_numba
from maskwright.analysis.errors import MissingExtraError
from maskwright.analysis.kernel_sources import PACKAGE, checksum
from maskwright.analysis.locks import new_rlock

CACHE_VARIABLE = "NUMBA_CACHE_DIR"
"""The environment variable that names a folder for compiled code."""

_LOCK = new_rlock()
"""Held while Numba is told where to keep code.

That is a setting of the whole process.
"""


class Kernel:
    """A function that Numba compiles at its first call, or that was compiled before (`ahead`).

    Until then Numba is not even imported: half a second for whoever has the machine code, or never
    calls the function. Other attributes are those of Numba's dispatcher.

    py_func : the function.
    is_entry, allocates, forceinline, holds_gil : see `kernel`.
    """

    def __init__(
        self, function: Callable[..., Any], is_entry: bool, allocates: bool, forceinline: bool, holds_gil: bool
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.is_entry = is_entry
        self.allocates = allocates
        self.forceinline = forceinline
        self.holds_gil = holds_gil
        self._dispatcher: Any = None
        self._ready: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """What the compiled function returns."""
        return (self._ready or self.ready)(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    @property
    def ready(self) -> Callable[..., Any]:
        """What to call: an extension's function, if there is one, else Numba's `dispatcher`."""
        if self._ready is None:
            self._ready = ahead.compiled(self.py_func) if self.is_entry else None
        return self._ready or self.dispatcher  # type: ignore[no-any-return]

    @property
    def dispatcher(self) -> Any:
        """Numba's own object for the function, or under NUMBA_DISABLE_JIT the function.

        The first call puts the dispatchers of all kernels that this one calls, and its own, where
        Numba looks for them: in the modules, under their names.
        """
        with _LOCK:
            # others may call it only once Numba finds all that it calls
            found = self._made()
            self._ready = self._ready or found
            return found

    def _made(self) -> Any:
        if self._dispatcher is None:
            self._dispatcher = _dispatcher_of(self)
            names = {self.py_func.__name__, *_used(self.py_func.__code__)}
            for place in [self.py_func.__globals__, *_modules(self.py_func.__globals__, names)]:
                for name in names:
                    found = place.get(name)
                    if isinstance(found, Kernel):
                        place[name] = found._made()
        return self._dispatcher


def resolve(module: ModuleType) -> None:
    """Put Numba's objects for a module's kernels, and for all that they call, in their places.

    It is for code that Numba compiles outside `kernel`.
    """
    for found in list(vars(module).values()):
        if isinstance(found, Kernel):
            found.dispatcher  # noqa: B018


def _used(code: CodeType) -> set[str]:
    """The names that a function's code uses, that of comprehensions in it included."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_used, inner))


def _modules(names: dict[str, Any], used: Iterable[str]) -> list[dict[str, Any]]:
    """The names of the modules among the global names that a function uses."""
    return [vars(names[name]) for name in used if isinstance(names.get(name), ModuleType)]


def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    entry: bool = False,
    allocates: bool = False,
    forceinline: bool = False,
    holds_gil: bool = False,
) -> Any:
    """A function that Numba compiles at its first call, without Python objects.

    function : the function, or None where the decorator is written with options,
        `@kernel(allocates=True)`.
    entry : whether Python calls it. Then it is compiled ahead of time where that can be done; its
        parameters have the annotations of `arrays`, int, bool, float, or named tuples of such.
    allocates : whether the function makes arrays, or returns arrays, in a tuple or otherwise.
        Without it Numba counts no references: if such a function returns a slice, the slice is
        taken for the whole array.
    forceinline : see `numba.njit`.
    holds_gil : whether a call from Python keeps the GIL, which others release. It is for functions
        that take microseconds, and for those that no other thread may interrupt.

    PERF: references to arrays are counted only in functions that allocate. Counting costs some 10
    ns for each array of each call, arrays in tuples included, and kernels such as ours pass thirty.

    Warns, at the first call: RuntimeWarning where compiled code cannot be kept.

    Example: with `@kernel` above `def add(a, b): return a + b`, `add(1, 2)` runs compiled code.
    """
    if function is None:
        return functools.partial(kernel, entry=entry, allocates=allocates, forceinline=forceinline, holds_gil=holds_gil)
    return Kernel(function, entry, allocates, forceinline, holds_gil)


def _dispatcher_of(kernel: Kernel) -> Any:
    """Numba's object for a kernel, which keeps machine code where `checksum` says.

    The caller holds `_LOCK`.

    Raises: MissingExtraError without Numba.
    """
    function = kernel.py_func
    try:
        njit: Any = importlib.import_module("numba").njit  # its stub does not know `_nrt`
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{function.__module__}.{function.__name__} was not compiled when this package was built, and Numba, which would compile it "
            "now, is not installed: pip install numba"
        ) from error
    config: Any = importlib.import_module("numba.core.config")  # its names come from the environment: no stub
    path = function.__code__.co_filename
    if kernel.holds_gil:  # only what such kernels call uses addresses
        teach_numba()
    options = {"nogil": not kernel.holds_gil, "forceinline": kernel.forceinline, "_nrt": kernel.allocates}
    named = config.CACHE_DIR
    folder = os.path.join(code_folder(named), f"{_stem(path)}-{checksum(path):08x}")
    config.CACHE_DIR = folder
    try:
        made = njit(cache=True, **options)(function)
    except RuntimeError:
        made = None
    finally:
        config.CACHE_DIR = named
    if made is not None and config.DISABLE_JIT:
        return made
    if made is not None and made._cache.cache_path.startswith(folder):
        _forget_lost_types(made._cache._cache_file)
        return made
    # Numba cannot write there after all: it found no folder at all, or one without our checksum.
    _warn_once(folder)
    return njit(**options)(function)


def _forget_lost_types(file: Any) -> None:
    """Let a function's machine code be compiled anew if its index names types that are gone.

    The index names the types of all arguments that the function was compiled for. Such a named
    tuple may be a caller's, of a file that is not in the checksum, and in later versions elsewhere.
    Two versions that share a folder forget each other's code.

    file : Numba's IndexDataCacheFile.
    """
    load = file._load_index

    def loaded() -> Any:
        try:
            return load()
        except (AttributeError, ImportError):
            # Numba would give a new file of code an old one's name, and write the index first
            index = Path(file._index_path)
            for path in (index, *index.parent.glob(f"{glob.escape(index.stem)}.*.nbc")):
                with contextlib.suppress(OSError):
                    path.unlink()
            return {}

    file._load_index = loaded


@functools.cache
def _warn_once(folder: str) -> None:
    """Warn that code cannot be written to a folder, once for each folder."""
    warnings.warn(
        f"compiled code cannot be written to {folder}, so each process compiles it anew; make room there, or set {CACHE_VARIABLE} to "
        "another folder",
        RuntimeWarning,
        stacklevel=4,
    )


def _stem(path: str) -> str:
    """The name of a file without folder, ending and outer underscores."""
    return os.path.splitext(os.path.basename(path))[0].strip("_")


@functools.cache
def code_folder(named: str) -> str:
    """The folder in which folders for code are made.

    The choices are, in this order: the folder that the user named; one beside our modules; the
    user's own cache; a folder of this process, with a warning. The first in which files can be
    created is taken. If that is not the folder that the user named, there is a warning.

    named : the folder that the user named, or "".
    """
    if named and _can_write(named):
        return named
    beside, users = os.path.join(PACKAGE, "__pycache__"), _users_folder()
    for folder in (beside, users):
        if _can_write(folder):
            if named:
                what = (
                    f"{CACHE_VARIABLE} names {named}, where nothing can be written; compiled code is kept in {folder}"
                )
                warnings.warn(what, RuntimeWarning, stacklevel=3)
            return folder
    import atexit
    import tempfile

    folder = tempfile.mkdtemp(prefix="maskwright-")
    atexit.register(_remove, os.getpid(), folder)
    os.environ[CACHE_VARIABLE] = folder  # for processes that this one starts, too
    warnings.warn(
        f"compiled code can be kept neither in {PACKAGE} nor in {users}, so each process compiles it anew, for half a minute or more; set "
        f"{CACHE_VARIABLE} to a folder of your own",
        RuntimeWarning,
        stacklevel=3,
    )
    return folder


def _users_folder() -> str:
    """The user's own cache folder for kernels."""
    if os.name == "nt":
        return os.path.join(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~"), "maskwright-kernels")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "maskwright-kernels")


def _can_write(folder: str) -> bool:
    """Whether files can be created in a folder.

    A folder that does not exist can be created if the nearest folder above it that exists can be
    written.
    """
    folder = os.path.abspath(folder)
    while not os.path.isdir(folder):
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return os.access(folder, os.W_OK | os.X_OK)


def _remove(process: int, folder: str) -> None:
    """Remove a folder when a process ends.

    process : the id of the process that made the folder. A fork of it ends earlier, and must not
        remove the folder.
    """
    import shutil

    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
