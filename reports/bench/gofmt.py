"""What `gofmt -e` has against Go texts, many at a call."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILES_A_CALL = 200
LEAST = (1, 22)

_MESSAGE = re.compile(
    r"^(?P<file>[^:\n]*?(?P<number>\d+)\.go):(?P<line>\d+):(?P<column>\d+): (?P<what>.*)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Complaint:
    """offset : in bytes, of the first complaint by place. message : gofmt's."""

    offset: int
    message: str


def missing() -> str | None:
    """Why gofmt cannot be asked: None if it can."""
    if shutil.which("gofmt") is None or shutil.which("go") is None:
        return "gofmt is not installed: put the programs of Go 1.22 or later on the PATH"
    said = subprocess.run(["go", "version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"go(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < LEAST:
        return f"gofmt is too old ({said.strip() or 'no version'}): Go {LEAST[0]}.{LEAST[1]} or later is needed"
    return None


def standard_library() -> list[Path]:
    """The Go files of the installed toolchain, without its test data."""
    root = Path(subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip())
    return sorted(path for path in (root / "src").rglob("*.go") if "testdata" not in path.parts)


def complaints(texts: Sequence[bytes]) -> list[Complaint | None]:
    """For each text gofmt's first complaint, None if it has none. Raises RuntimeError if gofmt cannot be asked; see `missing`."""
    why = missing()
    if why is not None:
        raise RuntimeError(why)
    found: list[Complaint | None] = []
    for begin in range(0, len(texts), FILES_A_CALL):
        found += _of_a_call(texts[begin : begin + FILES_A_CALL])
    return found


def _of_a_call(texts: Sequence[bytes]) -> list[Complaint | None]:
    found: list[Complaint | None] = [None] * len(texts)
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            (Path(folder) / f"{number}.go").write_bytes(text)
        names = [f"{number}.go" for number in range(len(texts))]
        run = subprocess.run(["gofmt", "-e", "-l", *names], cwd=folder, capture_output=True, check=False)
    for match in _MESSAGE.finditer(run.stderr.decode(errors="replace")):
        number = int(match["number"])
        if found[number] is None:
            offset = _offset(texts[number], int(match["line"]), int(match["column"]))
            found[number] = Complaint(offset, match["what"])
    return found


def _offset(text: bytes, line: int, column: int) -> int:
    """Columns count bytes from 1. A //line directive may have moved line and column; then the text's end."""
    lines = text.split(b"\n")
    if line > len(lines) or column > len(lines[line - 1]) + 1:
        return len(text)
    return sum(len(before) + 1 for before in lines[: line - 1]) + column - 1
