"""Masks for language models that must write code or JSON, from grammars, schemas and patterns.

>>> import maskwright as mw
>>> mw.build_store(mw.load_regex("yes|no"), "python-tiny").matcher().allowed_tokens(as_bytes=True)
[b'n', b'y', b'no']
"""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from maskwright.version import version as _version

_HOME = {
    name: module
    for module, name in re.findall(
        r"^from (\S+) import (\w+) as ", Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"), re.MULTILINE
    )
}
"""Public name -> module that defines it; the stub is the one list of them.

A module is imported when one of its names is first used. `maskwright --help` needs none of them.
"""


_OLD = {"AutomatonStore": "Store", "MaskStore": "EntryStore"}
"""Deprecated name -> current name."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = globals()[name] = _version()
        return value
    if name in _OLD:
        warnings.warn(f"maskwright.{name} is now called {_OLD[name]}", DeprecationWarning, stacklevel=2)
        name = _OLD[name]
    if name not in _HOME:
        raise AttributeError(f"module 'maskwright' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, "__version__"})


__all__ = sorted(_HOME)  # noqa: PLE0605 - the stub has the names
