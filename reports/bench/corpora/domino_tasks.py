"""Domino's tasks conll, json_gsm8k, rpg_template and xml_person: must accept texts of the task drawn at random with a fixed seed, and
those of their mutants that still are of the task; must refuse the other mutants (pieces dropped, doubled, swapped or replaced), somewhere.

Reference: Python's json or xml.etree and a check of the schema; for rpg_template a reading line by line, with Python's json for the holes
(tests/support/domino_tasks.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "support"))

import domino_tasks


def positive(task: str) -> Iterator[tuple[str, bytes]]:
    return domino_tasks.positive(task)


def negative(task: str) -> Iterator[tuple[str, bytes, int, int]]:
    return domino_tasks.negative(task)
