"""All checks, one after the other, whatever fails: each stage's output as it comes, and one table in the end. Run by `make check-all`.

With arguments only the stages whose names begin with one of them: `check_all.py bench`.

Exit code 1 if a stage failed. A stage that cannot run here (Coq that is not installed) is shown as skipped, which is no failure. Ctrl-C
ends the stage under way and shows the table of those before it.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
BENCHMARKS = ("streamlining", "mask_equality", "engine_replay", "oracle_agreement", "validation", "gpu")
INTERRUPTED = 130


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

    @property
    def says(self) -> str:
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
        Stage("slow tests", ("make", "test-slow")),
        Stage("wheels", (python, "scripts/check_wheels.py")),
        Stage("calls of compiled code", ("env", "MASKWRIGHT_CHECK_CALLS=1", "make", "test-fast")),
        Stage("website", ("make", "check-site")),
        Stage("pyformlang", (python, "reports/bench/pyformlang_agreement.py")),
        Stage("Coq proofs", ("make", "-C", "proofs"), needs="coqc"),
        *(Stage(f"bench: {name}", (python, f"reports/bench/{name}.py")) for name in BENCHMARKS),
    ]


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


def main(wanted: tuple[str, ...]) -> int:
    console = Console()
    results: list[Result] = []
    for stage in stages():
        if wanted and not stage.name.startswith(wanted):
            continue
        console.rule(stage.name)
        results.append(run(stage))
        if results[-1].code == INTERRUPTED:
            break
    table = Table("stage", "result", "minutes", "CPU minutes", title="checks")
    for one in results:
        style = "red" if one.code else "yellow" if one.code is None else ""
        table.add_row(one.stage.name, one.says, f"{one.wall / 60:.1f}", f"{one.cpu / 60:.1f}", style=style)
    console.print(table)
    return int(any(one.code for one in results))


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:])))
