"""Processes of their own: tests run again under other settings of Numba, scripts under other hash seeds, and how long Ctrl-C takes."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paths import ROOT


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


def prints_the_same(script: str, hash_seed: str, folder: Path = ROOT) -> str:
    """What a script prints here, where sets have an order of their own; in a process with this hash seed it prints the same."""
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(script, {})
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout == here.getvalue()
    return run.stdout


def seconds_to_end(process: subprocess.Popen[Any], within: float = 60) -> float:
    """Seconds until Ctrl-C has ended a process, without those in which it could run but the machine did something else.

    So a process that is blocked counts, and one on a busy machine does not count for more. Raises TimeoutExpired, and kills it, if it has
    not ended `within` so many seconds of a clock.
    """
    begin, waited = time.monotonic(), _seconds_in_queue(process.pid)
    process.send_signal(signal.SIGINT)
    while time.monotonic() < begin + within:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            taken = time.monotonic() - begin - (_seconds_in_queue(process.pid) - waited)
            process.wait()
            return taken
        time.sleep(0.02)
    process.kill()
    raise subprocess.TimeoutExpired(process.args, within)


def _seconds_in_queue(pid: int) -> float:
    """How long a process has waited for a core so far; 0 where the kernel does not say."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0


def cpu_seconds_of(pid: int) -> float:
    """CPU seconds that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
