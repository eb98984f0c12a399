"""Compile the GPU engine's kernels for a device that need not be there: PTX by numba-cuda, machine code by nvJitLink.

Needs numba-cuda with its CUDA 13 parts and this package (`make check-gpu-compile` makes an environment of its own for them). Prints each
kernel's size and the seconds it took; exits with 1 if one does not compile.
"""

from __future__ import annotations

import argparse
import sys
import time
from types import SimpleNamespace
from typing import Any


def signatures() -> dict[str, Any]:
    """The kernels and the types that `GpuBatch` calls them with."""
    from numba import int32, int64, types

    from maskwright.decoding.kernels import engine_cuda

    ints, longs, rows, number = int32[::1], int64[::1], int32[:, ::1], types.int64
    texts = (ints, ints, longs, ints)  # table, memory, regions, owners
    deep = (number, number, number)
    return {
        "advance": (engine_cuda.advance, (*texts, ints, ints, longs, *deep)),
        "find": (engine_cuda.find, (*texts, ints, ints, rows, *deep)),
        "write": (engine_cuda.write, (ints, ints, longs, ints, ints, rows, ints, ints)),
        "begin": (engine_cuda.begin, (*texts, ints, ints, longs, number, number, number)),
        "load": (engine_cuda.load, (ints, longs, ints, ints, longs, ints, *deep)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="90", help="compute capability without its point (90: H100, H200)")
    arch = parser.parse_args().arch
    capability = (int(arch[:-1]), int(arch[-1]))
    try:
        from cuda.core import Linker, LinkerOptions, ObjectCode
        from numba import cuda
        from numba.cuda import dispatcher
    except ImportError as error:
        print(f"not compiled: {error}; see the head of this file for what it needs")
        return 1
    # functions that kernels call are compiled for "the current device"
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    for name, (kernel, types) in signatures().items():
        begin = time.perf_counter()
        ptx, _ = cuda.compile_ptx(kernel.py_func, types, cc=capability)
        code = Linker(ObjectCode.from_ptx(ptx.encode()), options=LinkerOptions(arch=f"sm_{arch}")).link("cubin").code
        print(
            f"{name}: {len(ptx):,} bytes of PTX, {len(code):,} of sm_{arch} code, {time.perf_counter() - begin:.1f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
