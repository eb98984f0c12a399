"""Kernels that were compiled ahead of time, and those that were not.

`scripts/compile_kernels.py` compiles the kernels that Python calls, the *entry points* of a
package, into an extension module beside them. The module's name has a checksum of all source files
that its machine code comes from. If a source has changed since, no extension has the name that is
looked for, and Numba compiles at the first call, as it does without any extension. Python code sees
no difference, but that an extension needs no Numba, and that its calls are cheaper.

Knows nothing of what the kernels do.
"""

from __future__ import annotations

import importlib
import os
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from maskwright.analysis.jit import Kernel, checksum

JIT_VARIABLE = "MASKWRIGHT_JIT"
"""The environment variable that asks for Numba where an extension is there too."""

Signatures = Mapping[str, Mapping[str, str]]
"""Module -> kernel -> its argument types in the words of `TYPES`, and what it returns."""

TYPES = {
    "table": "Array(int32, 1, 'C', readonly=True)",
    "words": "Array(int32, 1, 'C')",
    "longs": "Array(int64, 1, 'C')",
    "rows": "Array(int32, 2, 'C')",
}
"""Words of signatures, for types of Numba that are longer; others are Numba's own names."""


VARIANTS = {"v3": "x86-64-v3", "plain": ""}
"""Part of an extension's name -> the processor that LLVM compiles it for, the fastest first."""

_V3_FLAGS = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
"""What Linux calls the abilities of x86-64-v3 (System V ABI, AMD64 supplement, section 3.1.1)."""


def variants() -> tuple[str, ...]:
    """The variants that this machine can run, the fastest first.

    Whether x86-64-v3 is one of them is known on Linux alone.
    """
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = next((set(line.split()) for line in file if line.startswith("flags")), set())
    except OSError:
        flags = set()
    return tuple(VARIANTS) if flags >= _V3_FLAGS else ("plain",)


def extension_name(package: str, signatures: Signatures, variant: str) -> str:
    """The name of the extension module with the kernels of a package, as its sources are now."""
    folder = os.path.dirname(os.path.abspath(str(importlib.import_module(package).__file__)))
    written = repr(sorted((module, sorted(each.items())) for module, each in signatures.items()))
    found = zlib.crc32(written.encode())
    for module in sorted(signatures):
        found = zlib.crc32(checksum(os.path.join(folder, f"{module}.py")).to_bytes(4), found)
    return f"_compiled_{found:08x}_{variant}"


class EntryPoints:
    """The kernels of a package that Python calls, as attributes.

    package : the package.
    signatures : its entry points.

    Attributes: `is_compiled_ahead`, and each kernel under its name.

    Raises: whatever the import of the kernels' modules raises, where there is no extension.
    """

    def __init__(self, package: str, signatures: Signatures) -> None:
        extension = None if _wants_jit() else _extension(package, signatures)
        self.is_compiled_ahead = extension is not None
        for module, kernels in signatures.items():
            source = extension or importlib.import_module(f"{package}.{module}")
            for name in kernels:
                found = getattr(source, name)
                # PERF: a Kernel is one Python call more than what it stands for
                setattr(self, name, found.dispatcher if isinstance(found, Kernel) else found)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"no entry point is called {name}")


def _wants_jit() -> bool:
    """Whether kernels are to be compiled by Numba, or not at all, whatever is there."""
    return any(
        os.environ.get(name, "0") not in ("", "0") for name in (JIT_VARIABLE, "NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK")
    )


def _extension(package: str, signatures: Signatures) -> Any:
    """The package's extension module; None if there is none for these sources and this machine."""
    for variant in variants():
        try:
            return importlib.import_module(f"{package}.{extension_name(package, signatures, variant)}")
        except ImportError:
            pass
    return None
