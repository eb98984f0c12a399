"""Compile the kernels that Python calls into extension modules, so that nobody waits for Numba.

python scripts/compile_kernels.py

It needs a C compiler, and Numba with `numba.pycc` (deprecated there, but without a successor; docs/internals/ahead.md). Where one is
missing it says so and ends well: Numba compiles at the first call then. Extensions of other sources are removed; where they are those of
today's, nothing is done.
"""

from __future__ import annotations

import importlib
import re
import time
import warnings
from pathlib import Path
from typing import Any

from maskwright.analysis.ahead import TYPES, VARIANTS, Signatures, extension_name, variants
from maskwright.analysis.jit import resolve

PACKAGES = ("maskwright.decoding.engine",)


def compile_package(package: str, signatures: Signatures, variant: str) -> Path:
    """Compile one package's entry points for some processors. Returns the extension's file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from numba import types
        from numba.core import sigutils
        from numba.pycc import CC, compiler

    plain = compiler.compile_extra
    allocating: set[Any] = set()

    def compile_extra(
        typing: Any, target: Any, function: Any, types: Any, returned: Any, flags: Any, **more: Any
    ) -> Any:
        """With what `analysis.jit.kernel` asks of `numba.njit`, function by function."""
        flags.release_gil = True
        flags.nrt = function in allocating
        return plain(typing, target, function, types, returned, flags, **more)

    folder = Path(str(importlib.import_module(package).__file__)).parent
    made = CC(extension_name(package, signatures, variant), source_module=importlib.import_module(package))
    made.output_dir = str(folder)
    made.target_cpu = VARIANTS[variant]
    for module, kernels in signatures.items():
        source = importlib.import_module(f"{package}.{module}")
        for kernel, words in kernels.items():
            written = re.sub(r"\b(" + "|".join(TYPES) + r")\b", lambda match: TYPES[match[0]], words)
            arguments, returned = sigutils.normalize_signature(eval(written, vars(types)))
            resolve(source)
            dispatcher = getattr(source, kernel)
            if dispatcher.targetoptions["_nrt"]:
                allocating.add(dispatcher.py_func)
            made.export(kernel, returned(*arguments))(dispatcher.py_func)
    compiler.compile_extra = compile_extra
    try:
        made.compile()
    finally:
        compiler.compile_extra = plain
    return folder / made.output_file


def main() -> None:
    for package in PACKAGES:
        module = importlib.import_module(f"{package}.entries")
        folder = Path(str(module.__file__)).parent
        wanted = {variant: extension_name(package, module.SIGNATURES, variant) for variant in variants()}
        kept = {path.name.partition(".")[0]: path for path in folder.glob("_compiled_*")}
        for name, path in kept.items():
            if name not in wanted.values():
                path.unlink()
        for variant, name in wanted.items():
            if name in kept:
                continue
            begin = time.process_time()
            try:
                path = compile_package(package, module.SIGNATURES, variant)
            except Exception as error:
                print(
                    f"the kernels of {package} are compiled at their first call, since this failed: {type(error).__name__}: {error}"
                )
                return
            print(f"wrote {path.name}: {path.stat().st_size:,} bytes, {time.process_time() - begin:.1f} CPU seconds")


if __name__ == "__main__":
    main()
