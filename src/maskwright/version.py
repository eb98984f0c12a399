"""The version of the installed package."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """Its number, or "0+unknown" for a source tree that was never installed."""
    # PERF: 28 ms of processor time, most of it to import what reads metadata; `import maskwright` takes 5 ms without
    from importlib import metadata

    try:
        return metadata.version("maskwright")
    except metadata.PackageNotFoundError:
        return "0+unknown"
