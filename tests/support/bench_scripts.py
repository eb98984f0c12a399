"""A benchmark's script as a module, for tests of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from paths import ROOT

FOLDER = ROOT / "reports" / "bench"


@contextmanager
def bench_script(name: str) -> Iterator[ModuleType]:
    """The script's module. In the end it and those beside it that it has imported are forgotten: their names are short."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
        for new in set(sys.modules) - before:
            if str(getattr(sys.modules[new], "__file__", "")).startswith(str(FOLDER)):
                del sys.modules[new]
