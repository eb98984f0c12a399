"""The kernels as plain Python: the same code, with every index and type as Python sees it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_kernels_without_jit() -> None:
    chosen = [
        "tests/decoding/test_engine_random.py::test_rows_equal_the_naive_engines[plain-0]",
        "tests/decoding/test_engine_random.py::test_rows_equal_the_naive_engines[layout-2]",
        "tests/decoding/test_engine_random.py::test_rollback_fork_and_reset_give_the_rows_back[layout-3]",
        "tests/decoding/test_matcher.py::test_an_illegal_token_is_named_with_its_bytes_the_byte_and_what_could_come",
        "tests/decoding/test_batch.py::test_an_illegal_token_names_its_slot_and_the_others_advance",
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *chosen],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert f"{len(chosen)} passed" in run.stdout
