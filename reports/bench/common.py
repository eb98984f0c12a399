"""What the benchmark scripts share: the machine, dated records, real Python files."""

from __future__ import annotations

import datetime
import json
import lzma
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from measured import hashes

RECORDS = Path(__file__).resolve().parent.parent / "record"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def machine() -> dict[str, Any]:
    """The facts that figures depend on."""
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    packages = ("lark", "numba", "numpy", "safetensors")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def write_record(name: str, command: str, facts: dict[str, Any]) -> Path:
    """reports/record/DATE-name.json, with hashes of the code that the command measures; overwrites a record of the same day."""
    RECORDS.mkdir(exist_ok=True)
    today = datetime.date.today().isoformat()
    path = RECORDS / f"{today}-{name}.json"
    record = {"date": today, "command": command, "machine": machine(), "code": hashes(command), **facts}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(RECORDS.parent.parent)}", file=sys.stderr)
    return path


def shared_records(name: str) -> Iterator[dict[str, Any]]:
    """The records of a file of the evaluation data, such as "source/json"; exits with a message if it is not there."""
    path = SHARED / f"{name}.jsonl.xz"
    if not path.exists():
        sys.exit(f"the evaluation data is not there ({path.name}): nothing was measured")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def python_files() -> Iterator[dict[str, Any]]:
    """Real Python files with their licences, from the evaluation data."""
    yield from shared_records("source/python")
