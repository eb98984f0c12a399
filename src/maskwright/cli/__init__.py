"""The command line: `maskwright analyze | export | info`.

Exit codes: 0 fine, 2 usage or bad input (nothing is written), 130 interrupted.
"""

from __future__ import annotations

from maskwright.cli import analyze, export, info
from maskwright.cli.common import app

__all__ = ["analyze", "app", "export", "info", "main"]


def main() -> None:
    """The console script."""
    app()
