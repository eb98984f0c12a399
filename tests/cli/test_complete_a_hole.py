"""`maskwright complete --at`: what can stand in a hole of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maskwright.cli import app

GRAMMAR = 'start: "[" (N ("," N)*)? "]"\nN: /[0-9]+/\nW: /[ \\n]+/\n%ignore W\n'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "list.lark").write_text(GRAMMAR, encoding="utf-8")
    return str(tmp_path / "list.lark"), tmp_path / "text.txt"


@pytest.mark.parametrize(
    ("text", "at", "code", "said"),
    [
        ("[1\n 2]", "1:3", 0, "the shortest middle is ','; what may come first: '\\n', ' ', ','"),
        ("[1,\n 2]", "1:4", 0, "the text is whole as it stands"),
        ("[1,\n 2 2]", "1:4", 1, "'2' cannot stand at byte 4 of it, its line 2:4"),
        ("[1 1,\n 2]", "2:1", 2, "b'1' cannot stand at byte 3 of it, its line 1:4"),
        ("[1]", "2:1", 2, "the file has no place 2:1: it has 1 lines"),
    ],
)
def test_a_hole(files: tuple[str, Path], text: str, at: str, code: int, said: str) -> None:
    grammar, path = files
    path.write_text(text, encoding="utf-8")
    found = CliRunner().invoke(app, ["complete", grammar, str(path), "--at", at, "--check"])
    assert found.exit_code == code, found.output
    assert said in found.output


def test_facts_of_a_hole(files: tuple[str, Path]) -> None:
    grammar, path = files
    path.write_text("[1, x]", encoding="utf-8")
    asked = ["complete", grammar, "--prompt-file", str(path), "--at", "1:4", "--to", "1:6", "--check", "--json", "-"]
    found = CliRunner().invoke(app, asked)
    facts = json.loads(found.stdout)
    assert facts["has_middle"] and facts["shortest"] and not facts["may_be_empty"]
    found = CliRunner().invoke(app, ["complete", grammar, str(path), "--at", "1:4"])
    assert found.exit_code == 2 and "no middle leads to the suffix" in found.output
