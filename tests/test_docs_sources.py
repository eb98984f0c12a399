"""docs/sources.md: no point is missing, none is there in part without its reason, and its commands run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

PAGE = ROOT / "docs" / "sources.md"
ABSENT = re.compile(r".*(?:evaluation data is not there|is not installed|No module named|: not measured yet).*")


def rows() -> list[dict[str, str]]:
    """The rows of all tables that have a column `command`, each by its table's head."""
    found = []
    for table in re.findall(r"(?:^\|.*\|\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        head, _, *body = [[cell.strip() for cell in line.strip("| \n").split(" |")] for line in table.splitlines()]
        if "command" in head:
            for line, cells in zip(table.splitlines()[2:], body, strict=True):
                assert len(cells) == len(head), f"{line} has {len(cells)} cells, its head {len(head)}"
                found.append({name: cell.removeprefix("| ") for name, cell in zip(head, cells, strict=True)})
    return found


def commands() -> list[str]:
    """What is run here: all but what is marked as long."""
    found = (one for row in rows() for one in re.findall(r"`([^`]+)`( \(long\))?", row["command"]))
    return sorted({command for command, is_long in found if not is_long})


def test_each_point_is_there() -> None:
    assert len(rows()) >= 75
    for row in rows():
        said = " ".join(row.values())
        assert "missing" not in said.lower(), row
        assert "partly" not in said or re.search(r"partly(?:, since|: )", said), f"no reason: {row}"
        assert row["command"], f"no command: {row}"


def is_slow(command: str) -> bool:
    """Benchmarks, what is built of Python's grammar, and tests, which cost a process each to be found."""
    return any(word in command for word in ("reports/bench/", "lark:python", "-m pytest"))


def test_tests_that_are_named_are_there() -> None:
    """Their files, and what is chosen by `-k`: words of a file's tests, or of a page that they are run on."""
    pages = " ".join(path.name for path in (ROOT / "docs").rglob("*.md"))
    for command in commands():
        if "-m pytest" in command:
            words = shlex.split(command)
            named = [ROOT / word for word in words if word.startswith("tests/")]
            files = [file for one in named for file in ([one] if one.is_file() else sorted(one.rglob("test_*.py")))]
            assert files, command
            wanted = re.split(" or | and ", words[words.index("-k") + 1]) if "-k" in words else []
            text = "\n".join(f"{file.name}\n{file.read_text(encoding='utf-8')}" for file in files)
            assert all(word in text or word in pages for word in wanted), command


@pytest.mark.parametrize(
    "command", [pytest.param(one, marks=[pytest.mark.slow] if is_slow(one) else []) for one in commands()]
)
def test_commands_run(command: str, tmp_path: Path) -> None:
    """In the repository if it is Python's. What needs data or packages that are not here says so.

    Of tests it is seen that there are some of that name: this suite runs them.
    """
    words = shlex.split(command)
    assert words[0] in ("python", "maskwright"), command
    words[:1] = [sys.executable] if words[0] == "python" else [sys.executable, "-m", "maskwright"]
    if words[1:3] == ["-m", "pytest"]:
        words += ["-p", "no:cacheprovider", "--collect-only", "-rs"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH")))),
    }
    (tmp_path / "anbn.lark").write_text('start: "a" start "b" | "a" "b"\n', encoding="utf-8")
    folder = tmp_path if command.startswith("maskwright") else ROOT
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    said = done.stdout + done.stderr
    if done.returncode and (absent := ABSENT.search(said)):
        pytest.skip(absent[0].strip())
    assert done.returncode == 0, said[-3000:]
