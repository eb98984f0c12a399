"""The version of the installed package."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """The version number, or "0+unknown" for a source tree that was never installed."""
    # PERF: 28 ms of processor time, most of it for the import of importlib.metadata.
    # `import maskwright` takes 5 ms without it.
    from importlib import metadata

    try:
        return metadata.version("maskwright")
    except metadata.PackageNotFoundError:
        return "0+unknown"
