"""The grammar python: cases by sections of the language reference, held against CPython 3.13 where it runs, and real files."""

from __future__ import annotations

import ast
import functools
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any

import pytest
from library_cases import byte_parser, library_grammar, records, sampled
from shares import share
from written_cases import written

from maskwright.analysis.lr.conflicts import conflicts

CHANGED = ("f'{x:\n", "f'{x:a\n", "f'{\nx:\n", 'f"{x:\n', "f'{f'{y:\n", r"rf'{x:\N", r"rf'{x:\x", "f'{x:{y:{z=")
"""How texts begin on which the releases of 3.13 differ: newlines and escapes in format specs."""


@functools.cache
def groups() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = written("python")["texts"]
    return found


def each_group() -> list[Any]:
    return [pytest.param(group, id=group["name"]) for group in groups()]


def is_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


def needs_python_3_13() -> None:
    if sys.version_info[:2] != (3, 13):
        pytest.skip(f"this is Python {sys.version.split()[0]}; the cases are of 3.13")


def test_conflicts() -> None:
    """Only behind `match`, which may be a name or begin a statement."""
    found = conflicts(library_grammar("python"))
    assert len(found) == 6
    for conflict in found:
        assert any(item == "capture : MATCH ." for action in conflict.actions for item in action.items)


@pytest.mark.parametrize("group", each_group())
def test_accepts(group: dict[str, Any]) -> None:
    texts = group.get("accept", []) + group.get("beyond", [])
    refused = [(text, byte_parser("python").refusal(text.encode())) for text in texts]
    assert [(text, at) for text, at in refused if at is not None] == []


@pytest.mark.parametrize("group", each_group())
def test_refuses(group: dict[str, Any]) -> None:
    cases = group.get("refuse", []) + group.get("short", [])
    found = [(text, at, byte_parser("python").refusal(text.encode())) for text, at in cases]
    assert [case for case in found if case[1] != case[2]] == []


@pytest.mark.parametrize("group", each_group())
def test_the_reference_says_the_same(group: dict[str, Any]) -> None:
    needs_python_3_13()
    legal = group.get("accept", []) + [text for text, _ in group.get("short", [])]
    illegal = [text for text, _ in group.get("refuse", [])] + group.get("beyond", [])
    assert [text for text in legal if not is_python(text) and not text.startswith(CHANGED)] == []
    assert [text for text in illegal if is_python(text) and not text.startswith(CHANGED)] == []


def test_cases_are_told_apart() -> None:
    """No text stands twice, and differences from the reference are few."""
    texts = [
        case if isinstance(case, str) else case[0]
        for group in groups()
        for kind in ("accept", "refuse", "beyond", "short")
        for case in group.get(kind, [])
    ]
    assert len(texts) == len(set(texts)) > 2000
    assert sum(len(group.get("beyond", [])) + len(group.get("short", [])) for group in groups()) < 60


def test_the_standard_library() -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("a later standard library may have syntax that 3.13 has not")
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    assert len(files) > 50
    for path in files[::4]:
        data = path.read_bytes()
        if len(data) < 60_000 and is_python(data.decode()):
            assert byte_parser("python").refusal(data) is None, path.name


def test_prefixes_of_the_standard_library() -> None:
    """A legal text cut anywhere is the beginning of one."""
    data = Path(functools.__file__).read_bytes()
    for end in range(0, len(data), 997):
        assert byte_parser("python").refusal(data[:end]) in (None, end)


def test_real_files() -> None:
    n = 0
    for record in records("source/python", 60):
        if record["checks"]["cpython3.13"]:
            n += 1
            assert byte_parser("python").refusal(record["text"].encode()) is None, record["id"]
    assert n > 30


def test_damaged_texts() -> None:
    """They are refused nowhere but between the bounds that their records prove or CPython reports."""
    for record in records("negative/python", 600)[::4]:
        at = byte_parser("python").refusal(record["text"].encode())
        assert at is not None, record["id"]
        assert record["first_bad_lower"] <= at <= record["first_bad_upper"], record["id"]


def test_texts_before_the_damage() -> None:
    for text in {record["valid_text"] for record in records("negative/python", 100)}:
        assert byte_parser("python").refusal(text.encode()) is None


@pytest.mark.slow
@pytest.mark.parametrize("n", share([20, 60], 1))
def test_drawn_texts(n: int) -> None:
    """None of their prefixes is a dead end."""
    assert len(set(sampled("python", n))) > 2 * n // 3
