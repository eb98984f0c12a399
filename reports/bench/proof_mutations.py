"""Does each row of proofs/README.md name a test that fails when the function is changed? One change a row, made in a copy of the sources.

python reports/bench/proof_mutations.py [--only THEOREM]

A row is a theorem with a function and a test. The change makes the function do what the theorem forbids. A test that passes all the same is
written down as such: `fails` is false.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from common import write_record
from proof_changes import CHANGES, Change

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("analysis", "maskstore", "decoding", "src", "tests", "proofs", "pyproject.toml", "docs", "README.md")


def rows() -> Iterator[str]:
    """The theorems that the table gives a test."""
    for line in (ROOT / "proofs" / "README.md").read_text().splitlines():
        found = re.match(r"\| `([a-z_]+\.[A-Za-z_]+)` \| .* \| .* \| .*`.* \|$", line)
        if found:
            yield found[1]


def outcome(change: Change, folder: Path) -> dict[str, object]:
    """Whether the tests fail with the change, and how long they took."""
    file = folder / change.file
    text = file.read_text()
    file.write_text(text.replace(change.old, change.new, 1))
    begin = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "slow or not slow", *change.tests.split()]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder / 'src'}:{folder / 'tests' / 'support'}:{folder / 'tests' / 'naive'}",
    }
    try:
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
        last = (ended.stdout.strip().splitlines() or [""])[-1]
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
        fails = ended.returncode == 1 and bool(failed)
    except subprocess.TimeoutExpired:
        fails, failed, last = False, [], "timeout"
    finally:
        file.write_text(text)
    return {
        "theorems": list(change.theorems),
        "file": change.file,
        "old": change.old,
        "new": change.new,
        "tests": change.tests,
        "fails": fails,
        "by": failed[:1],
        "last_line": last,
        "seconds": round(time.perf_counter() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="a part of a theorem's name")
    arguments = parser.parse_args()
    for each in CHANGES:
        if each.old not in (ROOT / each.file).read_text():
            parser.error(f"{each.file} has no such text: {each.old}")
    chosen = [c for c in CHANGES if not arguments.only or any(arguments.only in name for name in c.theorems)]
    known = {name for change in CHANGES for name in change.theorems}
    missing = [name for name in rows() if name not in known]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in FOLDERS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, folder / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / part)
        found = []
        for change in chosen:
            found.append(outcome(change, folder))
            print(
                found[-1]["fails"], ", ".join(change.theorems), found[-1]["seconds"], found[-1]["last_line"], flush=True
            )
    survivors = [name for each in found if not each["fails"] for name in each["theorems"]]  # type: ignore[attr-defined]
    print("no change:", missing, "\nsurvive:", survivors)
    if not arguments.only:
        result = {"changes": found, "rows_without_a_change": missing, "rows_whose_test_passes": survivors}
        write_record("proof_mutations", "python reports/bench/proof_mutations.py", result)


if __name__ == "__main__":
    main()
