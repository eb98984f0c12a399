"""Records under reports/record, and Markdown made of them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reports"))

from figures.facts import RECORDS, newest

Record = dict[str, Any]
NUMBER = re.compile(r"(?<=\d) (?=u?m?s$|of )|(?<=\bof) (?=\d)")
"""Blanks inside what is read as one number."""
ENGINES = {"ours": "maskwright", "index": "maskwright, index", "guidance": "llguidance"}
"""What records call an engine -> its name in reports."""


class Records:
    """All records; `[kind]` is the newest of a kind, which has its file's name in `file`."""

    def __getitem__(self, kind: str) -> Record:
        return read(newest()[kind])

    def all(self) -> list[tuple[str, Record]]:
        """Files' names and records, the newest first."""
        return [(path.name, read(path)) for path in sorted(RECORDS.glob("*.json"), reverse=True)]

    def beginning(self, prefix: str) -> list[Record]:
        """The newest record of each kind that begins with a prefix, by kind."""
        return [self[kind] for kind in sorted(newest()) if kind.startswith(prefix)]


def read(path: Path) -> Record:
    return {"file": path.name, **json.loads(path.read_text(encoding="utf-8"))}


def engine(name: str) -> str:
    return ENGINES.get(name, name)


def source(*records: Record) -> str:
    """Where a chart comes from: record, command, processor."""
    parts = []
    for record in records:
        cpu = record.get("machine", {}).get("cpu", "")
        parts.append(f"[{record['file']}](record/{record['file']}), `{record['command'].strip()}`, {cpu}")
    return "*" + "; ".join(parts) + ".*\n"


def side_by_side(drawn: Iterable[str]) -> str:
    """Charts beside one another, where there is room."""
    figures = "\n".join("<figure>" + re.sub("\n+", "\n", chart).strip() + "</figure>" for chart in drawn)
    return f'```{{raw}} html\n<div class="charts">\n{figures}\n</div>\n```\n'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; columns of numbers to the right, and no number broken."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    columns = zip(*cells, strict=True)
    rule = ["--:" if all(cell[:1].isdigit() for cell in column if cell) else "---" for column in columns]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|"]
    lines += [f"| {' | '.join(re.sub(NUMBER, chr(160), cell) for cell in row)} |" for row in cells]
    return "\n".join(lines) + "\n"
