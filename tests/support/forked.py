"""The command line in forks of one process: each runs as in a process of its own, but what all need at first is made once."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FORKING = r"""
import json, os, sys
import maskwright.decoding.explain.explain, maskwright.lint, maskwright.report.analysis, maskwright.stores.cache
import maskwright.maskstore.vocabulary.encoders, maskwright.validation, rich.progress, rich.table
from maskwright.analysis.loading import parse_grammar
from maskwright.cli import app, main
from typer.testing import CliRunner
parse_grammar('start: "a"')  # Lark's own parser of grammars is made at the first
CliRunner().invoke(app, ["list"])
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(request["folder"])
        os.environ.update(request["environment"])
        for name, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.argv = ["maskwright", *request["words"]]
        exec(request["before"])
        main()
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Commands:
    """Runs commands, one after the other, each in a fork of a process that does nothing else."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def run(self, *words: str, folder: Path, before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """A command's exit code and output. folder : where it runs. before : statements to run first. environment : more variables."""
        paths = {name: self._folder / name for name in ("out", "err")}
        request = {"words": words, "folder": str(folder), "before": before, "environment": environment}
        assert self._process.stdin is not None and self._process.stdout is not None
        # ASCII alone, whatever the names of files are
        self._process.stdin.write(json.dumps(request | {name: str(path) for name, path in paths.items()}) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        out, err = (path.read_text(encoding="utf-8") for path in paths.values())
        return subprocess.CompletedProcess(words, code, out, err)


@contextmanager
def forked_commands() -> Iterator[Commands]:
    """`Commands`, until the block ends."""
    run = [sys.executable, "-c", FORKING]
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield Commands(process, Path(folder))
            assert process.stdin is not None
            process.stdin.close()
        assert process.returncode == 0
