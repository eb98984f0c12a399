"""What the first call on a machine compiles, said before it does: a silent minute is long."""

from __future__ import annotations

import functools
import importlib
import logging
import os

from maskwright.analysis.ahead import extension
from maskwright.analysis.kernel_sources import checksum


def say_what_is_compiled(kind: str) -> None:
    """Say it once in a process, by the logger "maskwright": by default on standard error.

    kind : of the constraint whose texts are to be read.
    """
    _say_once("maskwright.decoding.engine" if kind == "grammar" else "maskwright.decoding.schema")


@functools.cache
def _say_once(package: str) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return
    module = importlib.import_module(package)
    if extension(package) is not None:
        return
    # PERF: what is compiled ahead does without what compiles
    from maskwright.analysis import jit

    path = os.path.join(os.path.dirname(os.path.abspath(str(module.__file__))), "_mask_kernels.py")
    folder = jit.code_folder(os.environ.get(jit.CACHE_VARIABLE, ""))
    if not os.path.isdir(os.path.join(folder, f"mask_kernels-{checksum(path):08x}")):
        logging.getLogger("maskwright").warning(
            "maskwright was installed without compiled kernels (no C compiler, or MASKWRIGHT_PURE), so Numba compiles those of %s now, "
            "at the first calls: for about a minute, once. They are kept in %s",
            "schemas and patterns" if package.endswith("schema") else "grammars",
            folder,
        )
