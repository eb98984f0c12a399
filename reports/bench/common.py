"""What the benchmark scripts share: the machine, dated records, and texts to measure: the evaluation data or one's own files."""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import lzma
import os
import platform
import shlex
import shutil
import sqlite3
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from measured import hashes

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "reports" / "record"
SHARED = ROOT.parent / "shared" / "data"
SUFFIXES: dict[str, tuple[str, ...]] = {
    "c": (".c", ".h"),
    "go": (".go",),
    "java": (".java",),
    "javascript": (".js", ".cjs", ".mjs"),
    "json": (".json",),
    "python": (".py",),
    "sql_statements": (".sql",),
    "toml": (".toml",),
    "typescript": (".ts", ".cts", ".mts"),
    "xml": (".xml",),
    "yaml": (".yaml", ".yml"),
}
READERS: dict[str, Callable[[str], Any]] = {"json": json.loads, "python": ast.parse, "toml": tomllib.loads}
"""What says which of one's own files are of a language; those of other languages are believed."""
_own: list[Path] = []
"""What `--data` names: the command line's, for the whole process."""


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


def least_in_turn(
    calls: Sequence[Callable[[], Any]], repeats: int, clock: Callable[[Callable[[], Any]], float] | None = None
) -> list[float]:
    """The least of several times of each call, all of them in turn, so that what else the machine does meets all alike.

    clock : the time of a call; CPU seconds of the process by default.
    """
    rounds = [[(clock or cpu_seconds)(call) for call in calls] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


def cpu_seconds(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def records_folder() -> Path:
    """Where records go: those of one's own data to out/record, so that they do not count as a kind's last one."""
    return ROOT / "out" / "record" if _own else RECORDS


def write_record(name: str, command: str, facts: dict[str, Any]) -> Path:
    """DATE-name.json in `records_folder()`, with hashes of the code that the command measures; overwrites a record of the same day."""
    folder = records_folder()
    folder.mkdir(parents=True, exist_ok=True)
    today = datetime.date.today().isoformat()
    path = folder / f"{today}-{name}.json"
    data = {"data": [path.name for path in _own]} if _own else {}
    record = {"date": today, "command": command, "machine": machine(), "code": hashes(command), **data, **facts}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(folder.parent.parent)}", file=sys.stderr)
    return path


# ---- Texts to measure


class _Data(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: Any = None) -> None:
        for path in values:
            if not path.exists():
                parser.error(f"--data {path}: no such file or folder")
        _own.extend(path.resolve() for path in values)


def add_peers(parser: argparse.ArgumentParser, **options: Any) -> None:
    """`--peers-python PYTHON`: the interpreter that peers run in, from whatever folder.

    options : as for `add_argument`.
    """
    parser.add_argument(
        "--peers-python", type=program, metavar="PYTHON", help="an interpreter that has the peers", **options
    )


def program(name: str) -> str:
    """A program's path, from whatever folder it is called."""
    return os.path.abspath(shutil.which(name) or name)


def command_said() -> str:
    """The command under way, to be repeated elsewhere: the peers' Python is PYTHON."""
    words = [f"reports/bench/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    for at, word in enumerate(words):
        if words[at - 1] == "--peers-python":
            words[at] = "PYTHON"
        elif word.startswith("--peers-python="):
            words[at] = "--peers-python=PYTHON"
    return f"python {shlex.join(words)}"


def add_data(parser: argparse.ArgumentParser) -> None:
    """Adds `--data`, after which `shared_records` reads one's own files. docs/sources.md, "Data", says what it finds in them."""
    what = "files and folders of your own instead of the evaluation data (docs/sources.md, Data)"
    parser.add_argument("--data", action=_Data, nargs="+", type=Path, metavar="PATH", help=what)


def data_paths() -> list[Path]:
    """The files and folders to read."""
    return _own or [SHARED]


def data_files(name: str) -> list[Path]:
    """What holds the records of a name: the evaluation data's file, or one's own files and folders. Exits as `shared_records` does."""
    next(shared_records(name))
    return _own or [SHARED / f"{name}.jsonl.xz"]


def has_records(name: str) -> bool:
    return any(True for _ in _records(name))


def shared_records(name: str) -> Iterator[dict[str, Any]]:
    """The records of a file of the evaluation data, such as "source/json", or those that are made of one's own files.

    Of one's own damaged texts ("negative/...") there may be none. Otherwise it exits with a message if there are none.
    """
    n = -1
    for n, record in enumerate(_records(name)):  # noqa: B007
        yield record
    if n < 0 and _own and name.startswith("negative/"):
        print(f"--data: no {name}.jsonl.xz there; measured without", file=sys.stderr)
    elif n < 0:
        missing = f"nothing for {name} in --data" if _own else f"the evaluation data is not there ({name}.jsonl.xz)"
        sys.exit(
            f"{missing}: nothing was measured; --data PATH reads files of your own (docs/sources.md, Data, says which)"
        )


def python_files() -> Iterator[dict[str, Any]]:
    """Real Python files."""
    yield from shared_records("source/python")


def _records(name: str) -> Iterator[dict[str, Any]]:
    kind, _, what = name.partition("/")
    for path in data_paths():
        packed = path / f"{name}.jsonl.xz"
        if packed.exists():
            with lzma.open(packed, "rt", encoding="utf-8") as lines:
                yield from map(json.loads, lines)
        elif not _own or kind == "negative":
            continue
        elif kind == "source":
            yield from _sources(path, what)
        else:
            yield from {"schemastore": _schemas, "json_schema_test_suite": _suite}[what](path)


def _files(path: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[Path, str, str]]:
    """Files below a path that are UTF-8 and not empty: path, path below the folder's own name, text."""
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.suffix in suffixes and file.is_file() and ".git" not in file.parts:
            try:
                text = file.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue
            if text.strip():
                yield file, (file.relative_to(path).as_posix() if file != path else file.name), text


def _sources(path: Path, language: str) -> Iterator[dict[str, Any]]:
    for _, name, text in _files(path, SUFFIXES[language]):
        try:
            READERS.get(language, len)(text)
        except (ValueError, SyntaxError, RecursionError):
            continue
        for i, one in enumerate(_statements(text) if language == "sql_statements" else [text]):
            checks = {"cpython3.13": True} if language == "python" else {"sqlite_syntax": False}
            number = f"#{i}" if language == "sql_statements" else ""
            yield {
                "id": f"{path.name}/{name}{number}",
                "source": path.name,
                "path": name,
                "text": one,
                "checks": checks,
            }


def _statements(text: str) -> Iterator[str]:
    begun = ""
    for piece in text.split(";"):
        begun += piece + ";"
        if sqlite3.complete_statement(begun):
            if begun.strip() != ";":
                yield begun.strip()
            begun = ""


def _json_files(path: Path) -> Iterator[tuple[Path, str, Any]]:
    for file, name, text in _files(path, (".json",)):
        try:
            yield file, name, json.loads(text)
        except (ValueError, RecursionError):
            continue


def _schemas(path: Path) -> Iterator[dict[str, Any]]:
    """Objects whose `$schema` names json-schema.org; instances are the JSON files below folders of the same name."""
    files = list(_json_files(path))
    instances: dict[str, list[dict[str, Any]]] = {}
    for _, name, value in files:
        *folders, _last = name.split("/")
        valid = not {"negative_test", "invalid"} & set(folders)
        for folder in set(folders):
            instances.setdefault(folder, []).append({"data": value, "valid": valid})
    for file, name, value in files:
        if isinstance(value, dict) and "json-schema.org" in str(value.get("$schema")):
            yield {"id": f"{path.name}/{name}", "schema": value, "tests": instances.get(file.stem, [])}


def _suite(path: Path) -> Iterator[dict[str, Any]]:
    """Groups of the layout of JSON-Schema-Test-Suite: draft*/KEYWORD.json and draft*/optional/KEYWORD.json."""
    for file, _, groups in _json_files(path):
        parts = file.parts
        at = max((i for i, part in enumerate(parts) if part.startswith("draft") and part[5:6].isdigit()), default=-1)
        if (
            at < 0
            or not isinstance(groups, list)
            or not all("schema" in group and "tests" in group for group in groups)
        ):
            continue
        for group in groups:
            yield {
                "id": f"suite/{'/'.join(parts[at:])}#{group['description']}",
                "draft": parts[at],
                "needs_remotes": "localhost:1234" in json.dumps(group["schema"]),
                **group,
            }
