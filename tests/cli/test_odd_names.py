"""Names of files that are no text."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from forked import Commands
from typer.testing import CliRunner

from maskwright.cli import app
from maskwright.models import model_folder

ODD = "\udcff"
"""What Python makes of the byte 0xff in a file's name: no text in UTF-8 has it."""
ODD_COMMANDS = (
    ["lint", f"{ODD}.lark"],
    ["lint", f"{ODD}.lark", "--json", "-"],
    ["lint", f"{ODD}.lark", "--json", f"{ODD}.out"],
    ["analyze", f"{ODD}.lark", "-t", f"{ODD}.json", "--html", f"{ODD}.html", "--json", f"{ODD}.out"],
    ["analyze", f"{ODD}.lark"],
    ["export", f"{ODD}.lark", "-t", f"{ODD}.json", "-o", f"{ODD}.store"],
    ["export", f"{ODD}.lark", "-t", f"{ODD}.json", "-o", f"{ODD}.store", "--json", "-"],
    ["info", f"{ODD}.lark", "-t", f"{ODD}.json"],
    ["info", f"{ODD}.lark", "-t", f"{ODD}.json", "--json", f"{ODD}.out"],
    ["explain", f"{ODD}.lark", "--text", f"{ODD}.txt", "--json", f"{ODD}.out"],
    ["explain", f"{ODD}.lark", "--text", f"{ODD}.txt"],
    ["validate", f"{ODD}.lark", "-t", f"{ODD}.json", ".", "--suffix", ".txt", "--json", f"{ODD}.out", "--resume", f"{ODD}.log"],
    ["validate", f"{ODD}.lark", "-t", f"{ODD}.json", f"{ODD}.txt"],
    ["lint", f"none{ODD}.lark"],
    ["lint", f"bad{ODD}.lark"],
    ["export", "json", "-t", f"none{ODD}", "-o", "x"],
    ["info", f"none{ODD}.safetensors"],
    ["lint", "json", "--allow", ODD],
    ["lint", "json", "--json", f"no{ODD}/x"],
)  # fmt: skip


@pytest.mark.parametrize("words", ODD_COMMANDS, ids=lambda words: ascii(" ".join(words)))
def test_names_that_are_no_text_are_names_all_the_same(words: list[str], tmp_path: Path, commands: Commands) -> None:
    """Names of files are bytes. What cannot be written is escaped: no traceback, and no exit code that says something else."""
    tmp_path.chmod(0o700)
    for name, text in (
        (f"{ODD}.lark", 'start: "a" start "b" | "a" "b"\n'),
        (f"{ODD}.txt", "aabb"),
        (f"{ODD}x.txt", "a"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / f"bad{ODD}.lark").write_text('start: "a')
    (tmp_path / f"{ODD}.json").write_bytes((model_folder() / "tokenizer.json").read_bytes())
    before = "import sys\nfor s in (sys.stdout, sys.stderr): s.reconfigure(encoding='utf-8', errors='strict')"
    environment = {"MASKWRIGHT_CACHE": str(tmp_path / "cache"), "COLUMNS": "100"}
    done = commands.run(*words, folder=tmp_path, before=before, **environment)
    refused = words[-1] == f"no{ODD}/x" or any("none" in word or "bad" in word or word == ODD for word in words)
    assert done.returncode == (2 if refused else 0), (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr and "UnicodeEncodeError" not in done.stderr
    if refused:
        assert "\\udcff" in done.stderr, done.stderr
    for name in {word for word in words if word in (f"{ODD}.out", f"{ODD}.html", f"{ODD}.store")}:
        assert (tmp_path / name).stat().st_size > 100
    if f"{ODD}.out" in words:
        json.loads((tmp_path / f"{ODD}.out").read_text())
    if words[-2:] == ["--json", "-"]:
        json.loads(done.stdout)
    if words == ["lint", f"{ODD}.lark", "--json", f"{ODD}.out"]:
        # as JSON has it, so that the name can be made of it again
        assert json.loads((tmp_path / f"{ODD}.out").read_text())["grammar"] == f"{ODD}.lark"


@pytest.mark.parametrize(
    ("command", "text", "code", "shown"),
    [
        (["lint"], 'start: A\nA: "a" | "b"\n', 0, "0 errors"),
        (["lint"], 'start: "ab"', 0, "0 errors"),
        (["lint"], '{"type": "integer", "minimum": 3, "maximum": 1}', 1, "empty-schema"),
        (["analyze"], "start: @", 2, "expected"),
        (["info", "--tokenizer", "python-tiny", "--from", "regex"], "[a-z]+\n", 0, "python-tiny"),
    ],
)
def test_a_pipe_is_read_once(command: list[str], text: str, code: int, shown: str) -> None:
    """As in `maskwright lint <(command)`: what was read from a pipe is gone."""
    end, begin = os.pipe()
    with os.fdopen(end), os.fdopen(begin, "w") as written:
        written.write(text)
        written.close()
        done = CliRunner().invoke(app, [command[0], f"/dev/fd/{end}", *command[1:]])
    assert done.exit_code == code and shown in done.output, done.output
