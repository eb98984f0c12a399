"""All checks, one after the other, whatever fails: each stage's output as it comes, and one table in the end. Run by `make check-all`.

With arguments only the stages whose names begin with one of them: `check_all.py bench`. With `--resume` without the stages that have
passed at this commit, so that two hours of checks may be done in parts. Records are not looked at, since stages write them; nor is what
is installed beside (Coq, a browser), without which tests leave themselves out.

Exit code 1 if a stage failed. A stage that cannot run here (Coq that is not installed) is shown as skipped, which is no failure. Ctrl-C
ends the stage under way and shows the table of those before it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
BENCHMARKS = ("streamlining", "mask_equality", "engine_replay", "oracle_agreement", "validation", "gpu")
SLOW = ("tests/analysis", "tests/maskstore", "tests/decoding", "")
"""Folders whose slow tests are a stage each; the last one is all the rest."""
INTERRUPTED = 130
PASSED = ROOT / "out" / "checks.json"
"""What has passed, and at which commit."""


@dataclass(frozen=True)
class Stage:
    """command : run in the repository's root. needs : a program without which the stage is skipped."""

    name: str
    command: tuple[str, ...]
    needs: str = ""


@dataclass(frozen=True)
class Result:
    """code : the exit code, None if the stage was skipped. wall, cpu : seconds; the CPU's are of all processes of the stage."""

    stage: Stage
    code: int | None
    wall: float = 0.0
    cpu: float = 0.0
    is_earlier: bool = False

    @property
    def says(self) -> str:
        if self.is_earlier:
            return "passed earlier"
        if self.code is None:
            return f"skipped: {self.stage.needs} is not installed"
        if self.code == INTERRUPTED:
            return "interrupted"
        return f"failed ({self.code})" if self.code else "passed"


def stages() -> list[Stage]:
    """Correctness first, benchmarks last."""
    python = sys.executable
    return [
        *(Stage(name, ("make", name)) for name in ("lint", "test", "check-gpu-compile")),
        *map(_slow_tests, SLOW),
        Stage("each test file alone, random orders", (python, "scripts/check_isolation.py")),
        Stage("digests of masks", (python, "scripts/golden.py")),
        Stage("wheels", (python, "scripts/check_wheels.py")),
        Stage("calls of compiled code", ("env", "MASKWRIGHT_CHECK_CALLS=1", "make", "test-fast")),
        Stage("website", ("make", "check-site")),
        Stage("pyformlang", (python, "reports/bench/pyformlang_agreement.py")),
        Stage("Coq proofs", ("make", "-C", "proofs"), needs="coqc"),
        *(Stage(f"bench: {name}", (python, f"reports/bench/{name}.py")) for name in BENCHMARKS),
    ]


def _slow_tests(folder: str) -> Stage:
    if folder:
        return Stage(f"slow: {folder}", ("make", "test-slow", f"TESTS={folder}"))
    others = " ".join(f"--ignore={each}" for each in SLOW if each)
    return Stage("slow: other tests", ("make", "test-slow", f"TESTS={others}"))


def commit() -> str | None:
    """The commit that is checked out; None if files differ from it, records aside, or nobody knows."""
    changed = [
        "git",
        "status",
        "--porcelain",
        "--",
        ".",
        ":!reports/record",
        ":!docs/internals/records.md",
        ":!reports/*.svg",
    ]
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        same = subprocess.run(changed, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return None
    return asked.stdout.strip() if asked.returncode == same.returncode == 0 and not same.stdout.strip() else None


class Passed:
    """The stages that have passed at a commit, kept in a file.

    commit : None: nothing is known, and nothing kept. is_read : whether what passed before is of interest.
    """

    def __init__(self, commit: str | None, *, is_read: bool, file: Path = PASSED) -> None:
        self.commit, self._file = commit, file
        self._found: dict[str, dict[str, float]] = {}
        if commit is not None and is_read:
            try:
                kept = json.loads(file.read_text())
                self._found = dict(kept["passed"]) if kept["commit"] == commit else {}
            except (OSError, ValueError, KeyError, TypeError):
                pass  # there is none, or it is none of ours

    def earlier(self, stage: Stage) -> Result | None:
        """The result of a stage that has passed before."""
        found = self._found.get(stage.name)
        return None if found is None else Result(stage, 0, found["wall"], found["cpu"], is_earlier=True)

    def add(self, result: Result) -> None:
        """Keep whether a stage has passed, if the commit is still the same."""
        if self.commit is None or result.is_earlier:
            return
        self._found.pop(result.stage.name, None)
        if result.code == 0 and commit() == self.commit:
            self._found[result.stage.name] = {key: asdict(result)[key] for key in ("wall", "cpu")}
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps({"commit": self.commit, "passed": self._found}, indent=1))


def run(stage: Stage) -> Result:
    """Run a stage to its end."""
    if stage.needs and shutil.which(stage.needs) is None:
        return Result(stage, None)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with subprocess.Popen(stage.command, cwd=ROOT, env={**os.environ, "MAKEFLAGS": ""}) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:  # the process has it too
            process.wait()
            code = INTERRUPTED
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(stage, code, time.monotonic() - begin, cpu)


def main(wanted: tuple[str, ...], *, resumes: bool = False) -> int:
    console = Console()
    passed = Passed(commit(), is_read=resumes or bool(wanted))
    if passed.commit is None:
        console.print("git knows of no commit that these files are, so nothing can be resumed", style="yellow")
    results: list[Result] = []
    names = [stage.name for stage in stages()]
    for name in wanted:
        if not any(each.startswith(name) for each in names):
            console.print(f"no stage begins with {name!r}; there are: {', '.join(names)}", style="red", markup=False)
            return 2
    for stage in stages():
        if wanted and not stage.name.startswith(wanted):
            continue
        console.rule(stage.name)
        results.append((passed.earlier(stage) if resumes else None) or run(stage))
        passed.add(results[-1])
        if results[-1].code == INTERRUPTED:
            break
    table = Table("stage", "result", "minutes", "CPU minutes", title="checks")
    for one in results:
        style = "red" if one.code else "yellow" if one.code is None else ""
        table.add_row(one.stage.name, one.says, f"{one.wall / 60:.1f}", f"{one.cpu / 60:.1f}", style=style)
    console.print(table)
    return int(any(one.code for one in results))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", help="the beginnings of names; all stages without")
    parser.add_argument("--resume", action="store_true", help="leave out what has passed at this commit")
    arguments = parser.parse_args()
    sys.exit(main(tuple(arguments.stages), resumes=arguments.resume))
