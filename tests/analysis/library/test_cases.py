"""The texts written down for each grammar of the library (data/cases/NAME.toml): its verdicts, and that its rules do not conflict."""

from __future__ import annotations

import domino_tasks
import pytest
from library_cases import byte_parser, library_grammar
from written_cases import written

from maskwright.analysis.lr.conflicts import conflicts

CONFLICTED = ("c", "java")
"""Their conflicts are looked at with the rest of them, and so is Python, whose cases are in groups."""
FREE = (
    "domino.c",
    *(f"domino.{task}" for task in domino_tasks.IS),
    "go",
    "json",
    "json.compact",
    "json.indent2",
    "lark",
    "sql",
    "toml",
)
CASES = [
    pytest.param(name, case["text"].encode(), case.get("at"), id=f"{name}-{case['name']}")
    for name in (*CONFLICTED, *FREE)
    for part in ("accept", "refuse")
    for case in written(name)[part]
]


@pytest.mark.parametrize(("name", "text", "at"), CASES)
def test_texts_are_taken_or_refused_at_the_first_wrong_byte(name: str, text: bytes, at: int | None) -> None:
    assert byte_parser(name).refusal(text) == at


@pytest.mark.parametrize("name", FREE)
def test_rules_do_not_conflict(name: str) -> None:
    assert conflicts(library_grammar(name)) == ()
