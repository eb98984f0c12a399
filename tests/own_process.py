"""Processes of their own: tests run again under other settings of Numba, and how long Ctrl-C takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def check_tests(chosen: Sequence[str], environment: Mapping[str, str], timeout: float = 300) -> None:
    """All of these tests pass under these variables. chosen : as pytest names them, from the repository's root."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *chosen],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert f"{len(chosen)} passed" in run.stdout


def cpu_seconds_to_end(process: subprocess.Popen[Any], within: float = 60) -> float:
    """CPU seconds that a process takes until Ctrl-C has ended it: those of a clock depend on what else the machine does.

    Raises TimeoutExpired, and kills it, if it has not ended `within` so many seconds of a clock.
    """
    before = cpu_seconds_of(process.pid)
    process.send_signal(signal.SIGINT)
    until = time.monotonic() + within
    while time.monotonic() < until:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime - before
        time.sleep(0.02)
    process.kill()
    raise subprocess.TimeoutExpired(process.args, within)


def cpu_seconds_of(pid: int) -> float:
    """CPU seconds that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
