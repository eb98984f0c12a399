"""Numba beside code that was compiled ahead, in one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from maskwright.analysis.jit import Kernel


@contextmanager
def kernels_put_back() -> Iterator[None]:
    """After the block all modules have the kernels that they had before.

    Whoever asks a kernel for its dispatcher puts Numba's objects into the modules in place of the kernels, the entry points too. Later
    tests of the process would wait for Numba, and not run what was compiled ahead.
    """
    before = [
        (vars(module), name, value, value._dispatcher, value._ready)
        for key, module in list(sys.modules.items())
        if key.startswith("maskwright.")
        for name, value in list(vars(module).items())
        if isinstance(value, Kernel)
    ]
    try:
        yield
    finally:
        for names, name, value, dispatcher, ready in before:
            names[name] = value
            value._dispatcher, value._ready = dispatcher, ready
