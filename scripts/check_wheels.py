"""Source distribution and wheels as users have them: built for several Pythons, each installed alone into a fresh environment, and run.

python scripts/check_wheels.py [PYTHON...] [--wheels FOLDER] [--record]

PYTHON is a program, by default each of python3.11, python3.12 and python3.13 that there is. The source distribution is built once, and
pip makes each Python's wheel of it, as `pip install maskwright-VERSION.tar.gz` does it, which takes minutes; with --wheels a wheel is
taken from a folder that has one of today's sources. For the first Python the source distribution is installed without a C compiler
too: then Numba comes along, and compiles at the first call. With --record a dated record is written under reports/record.

What is run finds no compiler (an empty PATH), no home and no place in site-packages where it may write (root gives up its rights by
setpriv, where there is that), and must leave no file behind. The table in the end has, for each Python:

- MB: what `pip install` added to site-packages, byte code included, as `du` counts it, and the largest packages; the whole environment
  with pip; and what the extra `cli` adds;
- import: milliseconds of CPU of `import maskwright`, NumPy not included, since it is imported where it is used; the least of several;
- first masks: CPU seconds of a process that loads a finished store, masks, advances and fills a batch, Python's start included.

Exit code 1 if something failed or is past its limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
PACKAGES = ("analysis", "maskstore", "decoding", "src/maskwright")
PYTHONS = ("python3.11", "python3.12", "python3.13")
MOST_MEGABYTES, MOST_MILLISECONDS, MOST_SECONDS = 100.0, 50.0, 0.3
"""Limits: what installing adds, the import, and the first masks."""

UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
ROUNDS = 5

IMPORT = """
import time
begin = time.process_time()
import maskwright
print(1000 * (time.process_time() - begin))
"""
FIRST = (Path(__file__).parent / "first_masks.py").read_text("utf-8")
BESIDE = (
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "setup.py",
    "scripts/compile_kernels.py",
)
"""What the source distribution has beside the package."""

WITHOUT_COMPILER = """
import sys
import numpy as np
import maskwright as mw
matcher, words = mw.build_store("json", "python-tiny").matcher(), np.zeros(128, np.uint32)
matcher.advance_bytes(b"[1, ")
matcher.fill(words)
print(bool(words.any()), "numba" in sys.modules)
"""
LIBRARY = (Path(__file__).parent / "check_library.py").read_text("utf-8")


@dataclass(frozen=True)
class Job:
    """A command that a user may give. says : what its output must hold. code : its exit code. warnings : the most that it may write."""

    name: str
    arguments: tuple[str, ...]
    says: str = ""
    code: int = 0
    warnings: int = 0


def base_jobs(out: Path) -> list[Job]:
    """What is run where nothing but the base is installed. out : a folder where they may write."""
    return [
        Job("library", ("python", "-c", LIBRARY, f"{out}/json.safetensors"), warnings=1),
        Job("commands without the extra", ("maskwright", "list"), says="maskwright[cli]", code=2),
    ]


def command_jobs(out: Path) -> list[Job]:
    """All commands that are run, in order, where `maskwright[cli]` is installed. out : as for `base_jobs`."""
    schema = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
    (out / "text.json").write_text("[1, }")
    return [
        Job("list", ("maskwright", "list"), says="python-tiny"),
        Job(
            "analyze",
            ("maskwright", "analyze", "json", "-t", "python-tiny", "--html", f"{out}/json.html"),
            says="wrote",
        ),
        Job(
            "analyze: a picture",
            ("maskwright", "analyze", "json", "--then", '"["', "--drawing", f"{out}/json.svg"),
            says="wrote",
        ),
        Job("analyze: a schema", ("maskwright", "analyze", schema), says="nodes"),
        Job(
            "export",
            ("maskwright", "export", "json", "-t", "python-tiny", "-o", f"{out}/json.safetensors"),
            says="wrote",
            warnings=1,
        ),
        Job(
            "export: a regex",
            ("maskwright", "export", "--from", "regex", "a+", "-t", "python-tiny", "-o", f"{out}/regex.safetensors"),
        ),
        Job("info", ("maskwright", "info", f"{out}/json.safetensors"), says="json"),
        Job("lint", ("maskwright", "lint", "json", "-t", "python-tiny")),
        Job(
            "explain",
            ("maskwright", "explain", f"{out}/json.safetensors", "--text", f"{out}/text.json"),
            says="expected",
            code=1,
        ),
        Job("complete", ("maskwright", "complete", "json", "[1,"), says="maskwright[hf]", code=2, warnings=1),
    ]


@dataclass
class Result:
    """Of one Python: what was measured and what failed. added : MB of the base. commands : MB of `[cli]` on top of it."""

    python: str
    wheel: float = 0.0
    added: float = 0.0
    commands: float = 0.0
    whole: float = 0.0
    largest: dict[str, float] = field(default_factory=dict)
    version: str = ""
    milliseconds: float = 0.0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


class Environment:
    """A fresh environment with nothing but pip."""

    def __init__(self, python: str, folder: Path) -> None:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.folder, self.bin = folder, folder / "bin"
        self.site = Path(said(self.bin / "python", "import sysconfig; print(sysconfig.get_path('purelib'))"))
        self.version = said(self.bin / "python", "import platform; print(platform.python_version())")

    def pip(self, *arguments: str, **given: str) -> None:
        """Run pip, by default to install; byte code is compiled, as it is for users. given : for its environment."""
        command = () if arguments[0] == "wheel" else ("install",)
        environment = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
        }
        program = [self.bin / "python", "-m", "pip", *command, "-q", *arguments]
        subprocess.run(program, env=environment | given, check=True)


def said(python: str | Path, code: str) -> str:
    """What a program prints."""
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def size(*paths: Path) -> float:
    """MB on disk, as `du` counts them."""
    files = [file for path in paths for file in (path, *path.rglob("*"))]
    return sum(512 * file.lstat().st_blocks for file in files) / 2**20


def entries(folder: Path) -> dict[str, float]:
    """What stands in a folder -> its MB."""
    return {path.name: size(path) for path in folder.iterdir()}


def snapshot(*folders: Path) -> dict[str, tuple[int, int]]:
    """All files -> when they were written, and their size."""
    found = {}
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            facts = path.lstat()
            found[str(path)] = facts.st_mtime_ns, facts.st_size
    return found


def source_of(python: str, folder: Path) -> Path:
    """Build the source distribution."""
    building = Environment(python, folder / "building")
    building.pip("build")
    command = [building.bin / "python", "-m", "build", "--sdist", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (source,) = folder.glob("maskwright-*.tar.gz")
    return source


def source_failures(python: str, folder: Path, source: Path) -> Iterator[str]:
    """What is wrong with a source distribution: what it lacks, and how it runs where there is no C compiler."""
    with tarfile.open(source) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    for name in (*BESIDE, *(path.relative_to(ROOT).as_posix() for top in PACKAGES for path in modules(ROOT / top))):
        if name not in names:
            yield f"the source distribution lacks {name}"
    environment = Environment(python, folder / "without_compiler")
    environment.pip(str(source), CC="no-compiler")
    kept = {"PATH": "/nonexistent", "NUMBA_CACHE_DIR": str(folder / "numba")}
    command = [environment.bin / "python", "-c", WITHOUT_COMPILER]
    ended = subprocess.run(command, env=kept, cwd=folder, capture_output=True, text=True, check=False)
    if ended.stdout != "True True\n":
        yield f"without a compiler: {ended.stdout.strip()} {ended.stderr.strip()[-300:]}"


def modules(folder: Path) -> Iterator[Path]:
    """The Python files of a folder; those below a link are another folder's."""
    for path in folder.rglob("*.py"):
        inside = path.relative_to(folder).parents
        if not any((folder / above).is_symlink() for above in inside if above != Path()):
            yield path


def wheel_of(python: str, folder: Path, ready: Path | None, source: Path | None) -> Path:
    """Let pip make a Python's wheel of the source distribution, or find it."""
    if ready is not None:
        tag = said(python, "import sys; print('cp%d%d' % sys.version_info[:2])")
        return max(ready.glob(f"maskwright-*-{tag}-*.whl"), key=lambda path: path.stat().st_mtime)
    Environment(python, folder / "building").pip("wheel", "--no-deps", "-w", str(folder / "dist"), str(source))
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def run(environment: Environment, home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of an environment where there is no compiler and nothing may be written."""
    rights = UNPRIVILEGED if os.geteuid() == 0 and shutil.which(UNPRIVILEGED[0]) else ()
    given = {"PATH": "/nonexistent", "HOME": str(home), "COLUMNS": "200"}
    program, *rest = command
    line = [*rights, str(environment.bin / program), *rest]
    if rights:
        line[0] = str(shutil.which(rights[0]))
    return subprocess.run(line, env=given, cwd=home, capture_output=True, text=True, check=False)


@contextmanager
def read_only(*folders: Path) -> Iterator[None]:
    """Nothing in these folders may be written inside the block."""
    for path in (found for folder in folders for found in (folder, *folder.rglob("*"))):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        yield
    finally:
        for path in (found for folder in folders for found in (folder, *folder.rglob("*"))):
            path.chmod(path.stat().st_mode | 0o200)


def failures(environment: Environment, home: Path, jobs: list[Job]) -> Iterator[str]:
    """What is wrong with the commands' exit codes, outputs and warnings, and with the files that they leave."""
    before = snapshot(environment.folder, home)
    for job in jobs:
        ended = run(environment, home, *job.arguments)
        warned = [line for line in ended.stderr.splitlines() if "MASKWRIGHT_CACHE" in line]
        others = (
            [line for line in ended.stderr.splitlines() if line.strip() and line not in warned] if not job.code else []
        )
        if ended.returncode != job.code:
            yield f"{job.name}: exit code {ended.returncode}: {ended.stderr.strip()[-300:]}"
        elif job.says not in ended.stdout + ended.stderr:
            yield f"{job.name}: nothing says {job.says!r}"
        elif len(warned) > job.warnings or others:
            yield f"{job.name}: warns: {' / '.join([*warned, *others])[:300]}"
        after = snapshot(environment.folder, home)
        if after != before:
            yield f"{job.name}: wrote {sorted(path for path in after if after[path] != before.get(path))[:3]}"
            before = after


def least(environment: Environment, home: Path, code: str, *arguments: str) -> float:
    """The least number that a program prints in some rounds; infinity if it fails."""
    found = []
    for _ in range(ROUNDS):
        ended = run(environment, home, "python", "-c", code, *arguments)
        found.append(float(ended.stdout) if ended.returncode == 0 else float("inf"))
    return min(found)


def check(python: str, folder: Path, ready: Path | None, source: Path | None) -> Result:
    """Build, install, measure and run for one Python."""
    result = Result(python)
    wheel = wheel_of(python, folder, ready, source)
    result.wheel = wheel.stat().st_size / 2**20
    if wheel.name.endswith("-none-any.whl"):
        result.failures.append("the wheel has no compiled kernels: is there a C compiler?")
    environment = Environment(python, folder / "used")
    result.version = environment.version
    bare = entries(environment.site)
    environment.pip(str(wheel))
    full = entries(environment.site)
    grown = {name: megabytes - bare.get(name, 0.0) for name, megabytes in full.items()}
    result.added, result.whole = sum(full.values()) - sum(bare.values()), size(environment.folder)
    result.largest = {name: round(grown[name], 1) for name in sorted(grown, key=grown.__getitem__, reverse=True)[:12]}
    result.failures += [
        f"{name} is installed" for name in full if name in ("numba", "llvmlite", "networkx", "rich", "typer")
    ]
    home, out = folder / "home", folder / "out"
    home.mkdir()
    out.mkdir()
    with read_only(home, environment.site):
        result.failures += failures(environment, home, base_jobs(out))
        result.milliseconds = least(environment, home, IMPORT)
        result.seconds = least(environment, home, FIRST, f"{out}/json.safetensors")
    environment.pip(f"{wheel}[cli]")
    result.commands = sum(entries(environment.site).values()) - sum(full.values())
    with read_only(home, environment.site):
        result.failures += failures(environment, home, command_jobs(out))
    result.failures += [
        f"{what}: {found:.3g}, past {limit:g}"
        for what, found, limit in (
            ("MB added", result.added, MOST_MEGABYTES),
            ("ms of the import", result.milliseconds, MOST_MILLISECONDS),
            ("CPU seconds to the first masks", result.seconds, MOST_SECONDS),
        )
        if found > limit
    ]
    return result


def works(python: str) -> bool:
    """Whether there is a Python of that name that runs."""
    return shutil.which(python) is not None and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="take wheels from here in place of building them")
    parser.add_argument("--record", action="store_true", help="write a dated record")
    arguments = parser.parse_args()
    console = Console()
    results = []
    pythons = arguments.pythons or [name for name in PYTHONS if works(name)]
    if not pythons:
        parser.error(f"none of {', '.join(PYTHONS)} is there; name a Python")
    with tempfile.TemporaryDirectory() as first:
        source = None if arguments.wheels else source_of(pythons[0], Path(first))
        for python in pythons:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    results.append(check(python, Path(folder), arguments.wheels, source))
                except (subprocess.CalledProcessError, OSError, ValueError) as error:
                    results.append(Result(python, failures=[str(error)]))
        if source is not None:
            try:
                results[0].failures += source_failures(pythons[0], Path(first), source)
            except (subprocess.CalledProcessError, OSError) as error:
                results[0].failures.append(f"the source distribution without a compiler: {error}")
    table = Table(
        "", "wheel MB", "MB added", "MB in all", "MB of [cli]", "import ms", "first masks s", "result", title="wheels"
    )
    for number, one in enumerate(results):
        figures = (
            f"{one.wheel:.1f}",
            f"{one.added:.1f}",
            f"{one.whole:.1f}",
            f"{one.commands:.1f}",
            f"{one.milliseconds:.0f}",
            f"{one.seconds:.2f}",
        )
        result = "failed" if one.failures else "passed"
        table.add_row(str(number), *figures, result, style="red" if one.failures else "")
    console.print(table)
    for number, one in enumerate(results):
        console.print(
            f"{number} is {one.python}; MB: {', '.join(f'{name} {n}' for name, n in one.largest.items())}",
            highlight=False,
        )
        for failure in one.failures:
            console.print(f"  {failure}", markup=False, highlight=False)
    if arguments.record:
        sys.path.insert(0, str(ROOT / "reports" / "bench"))
        from common import write_record

        facts = {
            one.version: {
                "megabytes_added": round(one.added, 1),
                "megabytes_of_cli": round(one.commands, 1),
                "megabytes_in_all": round(one.whole, 1),
                "megabytes_of_the_largest": one.largest,
                "milliseconds_of_the_import": round(one.milliseconds, 1),
                "cpu_seconds_to_the_first_masks": round(one.seconds, 2),
                "failures": one.failures,
            }
            for one in results
        }
        write_record("wheels", "python scripts/check_wheels.py --record", {"wheels": facts})
    return int(not results or any(one.failures for one in results))


if __name__ == "__main__":
    sys.exit(main())
