"""Kernels that were compiled ahead of time, and those that were not.

`scripts/compile_kernels.py` compiles the kernels that Python calls, the *entry points*, into
extension modules: one for each folder of ours that has entry points. The module's name has a
checksum of all source files that its machine code comes from. If a source has changed since, no
extension has the name that is looked for, and Numba compiles at the first call, as it does without
any extension. Python code sees no difference, but that an extension needs no Numba, and that its
calls are cheaper.

Knows nothing of what the kernels do.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import typing
import zlib
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from maskwright.analysis.kernel_sources import checksum

JIT_VARIABLE = "MASKWRIGHT_JIT"
"""The environment variable that asks for Numba where an extension is there too."""

CHECK_VARIABLE = "MASKWRIGHT_CHECK_CALLS"
"""The environment variable that has every call of an entry point checked; for tests."""

_MACHINE = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")

VARIANTS = {"v3": "x86-64-v3", "plain": ""} if _MACHINE in ("x86_64", "AMD64") else {"plain": ""}
"""Part of an extension's name -> the processor that LLVM compiles it for, the fastest first.

"" is any processor of this machine's architecture.
"""

WIDE = ("maskwright.decoding.engine", "maskwright.decoding.logits")
"""The packages whose extensions are made for each variant; others are made for any processor alone.

PERF: `apply_mask` on 64 rows of 32,000 logits takes 0.5 ms under x86-64-v3 and 7 ms without it
(random masks, one core). Building stores, masks of schemas and endings take the same time.
"""

_V3_FLAGS = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
"""What Linux calls the abilities of x86-64-v3 (System V ABI, AMD64 supplement, section 3.1.1)."""


@functools.cache
def variants() -> tuple[str, ...]:
    """The variants that this machine can run, the fastest first.

    Whether x86-64-v3 is one of them is known on Linux alone.
    """
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = next((set(line.split()) for line in file if line.startswith("flags")), set())
    except OSError:
        flags = set()
    return tuple(name for name in VARIANTS if name != "v3" or flags >= _V3_FLAGS)


def wanted(package: str, variants: Iterable[str]) -> list[str]:
    """Those of some variants, the fastest first, that are made of a package's kernels."""
    found = list(variants)
    return found if package in WIDE else found[-1:]


def entry_modules(folder: str) -> list[str]:
    """The names of the modules of a folder that have entry points, in order."""
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                if b"\n@kernel(entry=True" in file.read():
                    found.append(name[:-3])
    return found


VERSION = 1
"""Raised when `scripts/compile_kernels.py` makes other code of the same sources."""


def extension_name(folder: str, variant: str) -> str:
    """The name of the extension module with a folder's entry points, as the sources are now."""
    found = VERSION
    for module in entry_modules(folder):
        found = zlib.crc32(checksum(os.path.join(folder, f"{module}.py")).to_bytes(4), found)
    return f"_compiled_{found:08x}_{variant}"


@functools.cache
def extension(package: str) -> ModuleType | None:
    """A package's extension module.

    Returns None if there is none for today's sources and this machine, or none is wanted.
    """
    if any(
        os.environ.get(name, "0") not in ("", "0") for name in (JIT_VARIABLE, "NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK")
    ):
        return None
    folder = os.path.dirname(os.path.abspath(str(sys.modules[package].__file__)))
    for variant in variants():
        try:
            return importlib.import_module(f"{package}.{extension_name(folder, variant)}")
        except (ImportError, OSError):
            pass
    return None


def compiled(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The machine code of an entry point, if an extension has it."""
    module = extension(function.__module__.rpartition(".")[0])
    if module is None:
        return None
    names = exported_names(function)
    if len(names) == 1:
        found = getattr(module, function.__name__)
    else:
        found = _ByElements({notation.partition("[")[0]: getattr(module, name) for notation, name in names.items()})
    if os.environ.get(CHECK_VARIABLE, "0") not in ("", "0"):
        return _checked(function, found)
    return found  # type: ignore[no-any-return]


class _ByElements:
    """An entry point for several types of elements, which are those of its first argument."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = functions

    def __call__(self, first: Any, *others: Any) -> Any:
        return self._functions[first.dtype.name](first, *others)


# what annotations say


def exported_names(function: Callable[..., Any]) -> dict[str, str]:
    """The names under which an extension has an entry point.

    Returns notation -> name, of the kinds of array that its first parameter may be (see `arrays`).
    """
    notations = _notations(next(iter(parameter_types(function).values())))
    if len(notations) < 2:
        return {"": function.__name__}
    return {each: f"{function.__name__}_{each.partition('[')[0]}" for each in notations}


def parameter_types(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function's parameters, evaluated; `arrays` keep their notation."""
    hints = typing.get_type_hints(function, include_extras=True)
    return {name: hint for name, hint in hints.items() if name != "return"}


def field_types(kind: type) -> dict[str, Any]:
    """The annotations of a named tuple's fields, evaluated."""
    return typing.get_type_hints(kind, include_extras=True)


def _notations(hint: Any) -> tuple[str, ...]:
    return getattr(hint, "__metadata__", ())


def _checked(function: Callable[..., Any], found: Callable[..., Any]) -> Callable[..., Any]:
    """An entry point that looks at its arguments first, which machine code does not."""
    hints = parameter_types(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        assert len(arguments) == len(hints), f"{function.__name__} takes {len(hints)} arguments"
        for (name, hint), value in zip(hints.items(), arguments, strict=True):
            _check(f"{function.__name__}: {name}", hint, value)
        return found(*arguments)

    return call


def _check(where: str, hint: Any, value: Any) -> None:
    notations = _notations(hint)
    if notations:
        assert type(value) is np.ndarray, f"{where} is no array: {type(value)}"
        expected = [(each.partition("[")[0].replace("boolean", "bool"), each.count(":") - 1) for each in notations]
        shown = (value.dtype.name, value.ndim)
        assert shown in expected and value.flags.c_contiguous and value.flags.aligned, (
            f"{where} is {shown}, {value.flags}"
        )
    elif hint in (int, bool, float):
        assert isinstance(value, hint | {int: np.integer, bool: np.bool_, float: np.floating}[hint]), (
            f"{where}: {type(value)}"
        )
    elif issubclass(hint, np.integer):
        assert isinstance(value, (int, hint)), f"{where}: {type(value)}"
    else:
        assert isinstance(value, tuple) and len(value) == len(field_types(hint)), f"{where} is no {hint}"
        for (name, inner), item in zip(field_types(hint).items(), value, strict=True):
            _check(f"{where}.{name}", inner, item)


class EntryPoints:
    """Entry points of a package, as attributes.

    package : the package.
    names : module -> its entry points that are wanted.

    Attributes: `is_compiled_ahead`, and each kernel under its name.

    PERF: a `Kernel` is one Python call more than what it stands for. Where there is an extension,
    the kernels' modules are not even imported.

    Raises: whatever the import of the kernels' modules raises, where there is no extension.
    """

    def __init__(self, package: str, names: Mapping[str, tuple[str, ...]]) -> None:
        found = extension(package)
        self.is_compiled_ahead = found is not None
        is_checked = os.environ.get(CHECK_VARIABLE, "0") not in ("", "0")
        for module, kernels in names.items():
            for name in kernels:
                if found is not None and not is_checked:
                    setattr(self, name, getattr(found, name))
                else:
                    kernel = getattr(importlib.import_module(f"{package}.{module}"), name)
                    setattr(self, name, getattr(kernel, "ready", kernel))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"no entry point is called {name}")
