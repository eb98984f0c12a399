"""Compile the kernels that Python calls into extension modules, so that nobody waits for Numba.

python scripts/compile_kernels.py [--all]

For this machine's processor; with --all for every variant of `analysis.ahead` that a package is made for. It needs a C compiler, and Numba
with `numba.pycc` (deprecated there, but without a successor; docs/internals/ahead.md). Where one is missing it says so and ends well:
Numba compiles at the first call then. Extensions of other sources are removed; where they are those of today's, nothing is done.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from maskwright.analysis import ahead
from maskwright.analysis.jit import Kernel, resolve
from maskwright.analysis.kernel_sources import PACKAGE

SCALARS = {int: "int64", bool: "boolean", float: "float64"}


def packages() -> list[str]:
    """The packages that have entry points."""
    found = []
    for folder, _, _ in os.walk(PACKAGE, followlinks=True):
        if ahead.entry_modules(folder):
            found.append(".".join(["maskwright", *Path(folder).relative_to(PACKAGE).parts]))
    return sorted(found)


@functools.cache
def entry_points(package: str) -> list[Kernel]:
    """A package's entry points, all of them made known to Numba."""
    folder = str(Path(str(importlib.import_module(package).__file__)).parent)
    modules = [importlib.import_module(f"{package}.{name}") for name in ahead.entry_modules(folder)]
    found = [
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, Kernel) and each.is_entry and each.py_func.__module__ == module.__name__
    ]
    for module in modules:
        resolve(module)
    return found


def numba_type(hint: Any, element: str) -> Any:
    """What Numba calls the type of an annotation.

    element : where the annotation has several types of array, that of these elements.
    """
    from numba import types

    notations = getattr(hint, "__metadata__", ())
    if notations:
        notation = next((each for each in notations if each.startswith(element)), notations[0])
        return eval(notation, vars(types))
    if isinstance(hint, type) and issubclass(hint, tuple):
        return types.NamedTuple([numba_type(field, element) for field in ahead.field_types(hint).values()], hint)
    return getattr(types, SCALARS.get(hint) or hint.__name__)


@contextlib.contextmanager
def as_kernels(kernels: list[Kernel]) -> Iterator[None]:
    """Within the block pycc compiles with what `analysis.jit.kernel` asks of `numba.njit`."""
    from numba.pycc import compiler

    plain = compiler.compile_extra
    allocating = {kernel.py_func for kernel in kernels if kernel.allocates}
    holding = {kernel.py_func for kernel in kernels if kernel.holds_gil}

    def compile_extra(
        typing: Any, target: Any, function: Any, types: Any, returned: Any, flags: Any, **more: Any
    ) -> Any:
        flags.release_gil = function not in holding
        flags.nrt = function in allocating
        return plain(typing, target, function, types, returned, flags, **more)

    compiler.compile_extra = compile_extra
    try:
        yield
    finally:
        compiler.compile_extra = plain


def compile_package(package: str, name: str, variant: str) -> None:
    """Compile one package's entry points for some processors, into the extension of a name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from numba.pycc import CC
    module = importlib.import_module(package)
    made = CC(name, source_module=module)
    folder = Path(str(module.__file__)).parent
    made.target_cpu = ahead.VARIANTS[variant]
    kernels = entry_points(package)
    for kernel in kernels:
        function = kernel.py_func
        hints = ahead.parameter_types(function)
        if list(hints) != list(inspect.signature(function).parameters):
            raise TypeError(f"{function.__module__}.{function.__name__} has parameters without a type")
        for notation, exported in ahead.exported_names(function).items():
            arguments = tuple(numba_type(hint, notation.partition("[")[0]) for hint in hints.values())
            made.export(exported, arguments)(function)
    with tempfile.TemporaryDirectory(dir=folder, prefix="compiling-") as temporary, as_kernels(kernels):
        made.output_dir = temporary
        made.compile()
        # whole or not at all: half a library ends the process that loads it
        os.replace(Path(temporary) / made.output_file, folder / made.output_file)


def main(arguments: list[str]) -> None:
    if arguments and arguments[0] != "--all":
        package, *pairs = arguments
        for pair in pairs:
            compile_package(package, *pair.split("="))
        return
    runnable = tuple(ahead.VARIANTS) if arguments else ahead.variants()
    jobs = []
    for package in packages():
        folder = Path(str(importlib.import_module(package).__file__)).parent
        names = {variant: ahead.extension_name(str(folder), variant) for variant in ahead.VARIANTS}
        kept = {path.name.partition(".")[0]: path for path in folder.glob("_compiled_*")}
        for name, path in kept.items():
            if name not in names.values():
                path.unlink()
        wanted = ahead.wanted(package, runnable)
        if not arguments:  # one is enough
            others = runnable if package not in ahead.WIDE else wanted[:1]
            wanted = [] if any(names[variant] in kept for variant in others) else wanted[:1]
        pairs = [f"{names[variant]}={variant}" for variant in wanted if names[variant] not in kept]
        if pairs:
            jobs.append([package, *pairs])
    if not jobs:
        return
    print("compiling kernels ahead of time: three minutes of one core", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [line for line in pool.map(run, jobs) if line]
    print(said[0] if said else "compiled")


def run(job: list[str]) -> str:
    """Compile the extensions of one package, in a process of its own.

    Returns what to say of it where it failed.
    """
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        if sys.platform == "linux":
            # no debugging symbols, and of the C parts only what some kernel reaches: most of them are tables of Unicode
            visible = Path(folder) / "visible.map"
            visible.write_text("{ global: PyInit_*; local: *; };")
            for name, more in (
                ("CFLAGS", "-ffunction-sections -fdata-sections"),
                ("LDFLAGS", f"-Wl,-s -Wl,--gc-sections -Wl,--version-script={visible}"),
            ):
                environment[name] = f"{environment.get(name, '')} {more}"
        done = subprocess.run(
            [sys.executable, __file__, *job], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode == 0:
        return ""
    why = (done.stderr.strip().splitlines() or ["no output"])[-1]
    return f"the kernels of {job[0]} are compiled at their first call, since this failed: {why}"


if __name__ == "__main__":
    main(sys.argv[1:])
