"""The command line: `maskwright analyze | complete | export | info | validate`.

Exit codes: 0 fine, 1 a check failed, 2 usage or bad input (nothing is written), 130 interrupted.
"""

from __future__ import annotations

from maskwright.cli import analyze, complete, export, info, validate
from maskwright.cli.common import app

__all__ = ["analyze", "app", "complete", "export", "info", "main", "validate"]


def main() -> None:
    """The console script."""
    app()
