"""Tests run again in a process of their own, under other settings of Numba."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def check_tests(chosen: Sequence[str], environment: Mapping[str, str], timeout: float = 300) -> None:
    """All of these tests pass under these variables. chosen : as pytest names them, from the repository's root."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *chosen],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert f"{len(chosen)} passed" in run.stdout
