"""Python: must accept all files of source/python and of the standard libraries of CPython 3.13 and 3.11 that CPython 3.13's `ast.parse`
takes. Must refuse the 600 texts of negative/python, between the bounds that their records prove or CPython reports, and, anywhere, the
files of those folders that `ast.parse` refuses.

Reference: `ast.parse` of a CPython 3.13, asked through a pipe. MASKWRIGHT_PYTHONS lists the interpreters whose standard libraries are read,
separated as in PATH; by default those are `python3.13` and `python3.11` of the PATH or of pyenv. The first that is a 3.13 judges. Without
one, files of source/python are judged by their records, and standard libraries are left out. Files are read as the interpreter would, by
their encoding declarations, and put to the grammar as UTF-8 without a byte order mark.
"""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from common import shared_records

KNOWN: dict[str, str] = {}

JUDGE = """
import ast, json, sys, warnings
warnings.simplefilter("ignore")
for line in sys.stdin:
    try:
        ast.parse(json.loads(line))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        print(json.dumps(str(error)), flush=True)
    else:
        print("null", flush=True)
"""

ASK = "import sys, sysconfig; print('%d.%d.%d' % sys.version_info[:3], sysconfig.get_path('stdlib'), sep='\\n')"


def positive() -> Iterator[tuple[str, bytes]]:
    for name, text, is_legal in judged():
        if is_legal:
            yield name, text.encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    for record in shared_records("negative/python"):
        name = f"{record['id']} {record['mutation']}"
        yield name, record["text"].encode(), record["first_bad_lower"], record["first_bad_upper"]
    for name, text, is_legal in judged():
        if not is_legal:
            data = text.encode()
            yield name, data, 0, len(data)


@functools.cache
def judged() -> tuple[tuple[str, str, bool], ...]:
    """Names and texts of all files, and whether the reference takes them."""
    found = []
    judge = reference()
    for record in shared_records("source/python"):
        is_legal = record["checks"]["cpython3.13"] if judge is None else judge.takes(record["text"])
        found.append((record["id"], record["text"], bool(is_legal)))
    if judge is None:
        print("no CPython 3.13 to judge standard libraries: they are left out", file=sys.stderr)
        return tuple(found)
    for version, folder in libraries():
        for path in sorted(folder.rglob("*.py")):
            if "site-packages" not in path.parts and (text := decoded(path.read_bytes())) is not None:
                found.append((f"cpython-{version}/Lib/{path.relative_to(folder)}", text, judge.takes(text)))
    return tuple(found)


def decoded(data: bytes) -> str | None:
    """A file's text by its encoding declaration; None if it is not written in that encoding."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
        text.encode()
    except (SyntaxError, UnicodeError):
        return None
    return text


def interpreters() -> Iterator[str]:
    """Paths of the interpreters to ask, 3.13 before 3.11."""
    if listed := os.environ.get("MASKWRIGHT_PYTHONS"):
        yield from listed.split(os.pathsep)
        return
    for release in ("3.13", "3.11"):
        pyenv = Path.home().glob(f".pyenv/versions/{release}.*/bin/python{release}")
        if path := next(map(str, sorted(pyenv)), None) or shutil.which(f"python{release}"):
            yield path


@functools.cache
def facts() -> tuple[tuple[str, str, Path], ...]:
    """Path, version and standard library of each interpreter that answers."""
    found = []
    for path in interpreters():
        try:
            done = subprocess.run([path, "-c", ASK], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{path} does not run and is left out: {error}", file=sys.stderr)
            continue
        version, folder = done.stdout.splitlines()
        found.append((path, version, Path(folder)))
    return tuple(found)


def libraries() -> Iterator[tuple[str, Path]]:
    for _, version, folder in facts():
        yield version, folder


def reference() -> Judge | None:
    path = next((path for path, version, _ in facts() if version.startswith("3.13.")), None)
    return None if path is None else Judge(path)


class Judge:
    """An interpreter that says of texts whether its `ast.parse` takes them."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            [path, "-X", "utf8", "-c", JUDGE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def takes(self, text: str) -> bool:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit("the interpreter that judges has ended; run it by hand on the text that it was given")
        return json.loads(answer) is None
