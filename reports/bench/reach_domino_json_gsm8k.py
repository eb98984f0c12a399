"""Domino's task json_gsm8k, reasoning in JSON with a fixed schema: must accept texts of the task drawn at random with a fixed
seed, and those of their mutants that still are of the task; must refuse the other mutants (pieces dropped, doubled, swapped or replaced),
somewhere.

Reference: Python's json and a check of the schema (tests/domino_tasks.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))


def positive() -> Iterator[tuple[str, bytes]]:
    import domino_tasks

    return domino_tasks.positive("json_gsm8k")


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    import domino_tasks

    return domino_tasks.negative("json_gsm8k")
