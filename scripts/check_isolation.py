"""Whether each test file passes alone, and the suite in random orders: a result may depend on nothing but its input.

python scripts/check_isolation.py [alone] [orders] [--jobs N] [FILE ...]

"alone" runs each test file (or those named) in a process of its own. "orders" runs the suite three times, its files and the tests in
them in the order of a seed, each time in another environment: time zone, locale, umask, hash seed and recursion limit differ. Without
either word both are done. The exit code is 1 if anything failed; what failed is shown with its output.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import track

ROOT = Path(__file__).parents[1]
NO_TESTS = 5
"""pytest's exit code where all tests of a file are slow ones."""
ORDERS = (
    (1, {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "1"}, 0o077),
    (2, {"TZ": "America/St_Johns", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "4294967295", "PYTHONUTF8": "0"}, 0o002),
    (3, {"TZ": "UTC", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "random", "TEST_RECURSION_LIMIT": "3000"}, 0o022),
)
"""Seed, environment and umask of each run of the whole suite."""


def pytest(arguments: list[str], variables: dict[str, str], umask: int = -1) -> subprocess.CompletedProcess[str]:
    """Run pytest in a fresh process; its output is kept."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, cwd=ROOT, env=environment, umask=umask, text=True, errors="replace", check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run_alone(files: list[str], jobs: int, console: Console) -> list[str]:
    """The files of which a test fails in a process of their own. Their output is shown."""
    failed = []
    with ThreadPoolExecutor(jobs) as pool:
        runs = {pool.submit(pytest, [file], {}): file for file in files}
        for run in track(as_completed(runs), total=len(runs), description="each test file alone", console=console):
            if run.result().returncode not in (0, NO_TESTS):
                failed.append(runs[run])
                console.print(f"{runs[run]}\n{run.result().stdout}", markup=False)
    return sorted(failed)


def run_in_orders(jobs: int, console: Console) -> list[str]:
    """The orders in which a test fails. Their output is shown."""
    failed = []
    for seed, variables, umask in track(ORDERS, description="the suite in random orders", console=console):
        run = pytest(["-n", str(jobs), "--dist", "worksteal", f"--order={seed}"], variables, umask)
        console.print(f"--order={seed}: {run.stdout.rstrip().splitlines()[-1]}", markup=False)
        if run.returncode:
            failed.append(f"--order={seed}, environment {variables}, umask {umask:o}")
            console.print(run.stdout, markup=False)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="alone, orders, or test files, which are run alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes at a time")
    options = parser.parse_args()
    files = [name for name in options.what if name not in ("alone", "orders")]
    console = Console()
    failed = []
    if files or "alone" in options.what or not options.what:
        every = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))]
        failed += run_alone(files or every, options.jobs, console)
    if not files and ("orders" in options.what or not options.what):
        failed += run_in_orders(options.jobs, console)
    for each in failed:
        console.print(f"failed: {each}", style="red", markup=False)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
