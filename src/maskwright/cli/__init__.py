"""The command line: `maskwright analyze | audit | complete | explain | export | info | lint | list | validate`.

Exit codes: 0 fine, 1 a check failed, 2 usage or bad input (nothing is written), 130 interrupted.
"""

from __future__ import annotations

from maskwright.cli import analyze, audit, complete, explain, export, info, lint, list_names, validate
from maskwright.cli.common import app

__all__ = ["analyze", "app", "audit", "complete", "explain", "export", "info", "lint", "list_names", "main", "validate"]


def main() -> None:
    """The console script."""
    app()
