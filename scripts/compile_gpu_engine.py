"""Compile the GPU engine's kernels for a device that need not be there, twice: the second process must find the code that the first kept.

Needs numba-cuda with its CUDA 13 parts and this package (`make check-gpu-compile` makes an environment of its own for them). The kernels'
own dispatchers compile, link and keep, as they do where there is a device; only its capability is made up, and the machine code is not
loaded. Prints each kernel's size and the seconds that it took; exits with 1 if one does not compile, or is compiled again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace
from typing import Any


def signatures() -> dict[str, Any]:
    """The kernels and the types that `GpuBatch` calls them with."""
    from numba import int32, int64, types

    from maskwright.decoding.gpu import engine_cuda

    ints, longs, rows, number = int32[::1], int64[::1], int32[:, ::1], types.int64
    texts = (ints, ints, longs, ints)  # table, memory, regions, owners
    deep = (number, number, number)
    return {
        "advance": (engine_cuda.advance, (*texts, ints, ints, longs, *deep)),
        "find": (engine_cuda.find, (*texts, ints, ints, rows, *deep)),
        "write": (engine_cuda.write, (ints, ints, longs, ints, ints, rows, ints, ints)),
        "begin": (engine_cuda.begin, (*texts, ints, ints, longs, ints, number, number)),
        "load": (engine_cuda.load, (ints, longs, ints, ints, ints, number, *deep)),
    }


def pretend(capability: tuple[int, int]) -> None:
    """Answer for a device where numba-cuda asks one."""
    from numba.cuda import codegen, dispatcher

    device = SimpleNamespace(compute_capability=capability, id=0)
    loaded = SimpleNamespace(module=SimpleNamespace(initialized=True))
    module = SimpleNamespace(get_function=lambda name: loaded)
    context = SimpleNamespace(device=device, create_module_image=lambda *given: module)
    dispatcher.get_current_device = lambda: device
    codegen.devices = SimpleNamespace(get_context=lambda *given: context)


def compile_all(capability: tuple[int, int], is_kept: bool) -> int:
    """Compile all kernels, or take them from what was kept; how many were compiled although they should have been kept."""
    pretend(capability)
    n_compiled = 0
    for name, (kernel, types) in signatures().items():
        begin = time.perf_counter()
        made = kernel.compile(types)
        hits = sum(kernel.stats.cache_hits.values())
        n_compiled += is_kept and not hits
        (ptx,) = made._codelibrary._ptx_cache.values()
        (code,) = made._codelibrary._cubin_cache.values()
        print(
            f"{name}: {'kept' if hits else 'compiled'}, {sum(map(len, ptx)):,} bytes of PTX, {len(code.code):,} of machine code, "
            f"{time.perf_counter() - begin:.1f} s",
            flush=True,
        )
    return n_compiled


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="90", help="compute capability without its point (90: H100, H200)")
    parser.add_argument("--one", choices=["first", "second"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        import cuda.core  # noqa: F401
        import numba_cuda  # type: ignore[import-not-found,unused-ignore] # noqa: F401
    except ImportError as error:
        print(f"not compiled: {error}; see the head of this file for what it needs")
        return 1
    if options.one:
        return compile_all((int(options.arch[:-1]), int(options.arch[-1])), options.one == "second")
    with tempfile.TemporaryDirectory() as folder:
        for which in ("first", "second"):
            print(f"the {which} process:", flush=True)
            command = [sys.executable, __file__, "--arch", options.arch, "--one", which]
            if subprocess.run(command, env={**os.environ, "NUMBA_CACHE_DIR": folder}, check=False).returncode:
                print(f"the {which} process failed, or compiled what was kept")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
