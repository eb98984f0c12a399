"""C: must accept every C file of the evaluation data after `gcc -E`: its own lines, and the whole unit with its headers' lines. Must refuse
the texts of negative/c, between the bounds that their records prove or pycparser reports.

Reference: C17 and gcc 12 by default. A file's own lines are those that gcc's line markers ascribe to the file itself. They are a unit of
their own, since files are included between external declarations. gcc preprocesses with all folders of the file's repository that hold
headers in its path; a header that the data lacks is an empty file, so its macros stay in the text as names and calls. Such a unit cannot
be compiled, for lack of types; that it is C is what the record's `checks` say of the file as it was. The other units gcc compiled there.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import shared_records

_NO_SYMBOLS = "needs a symbol table: {} is no typedef name, but could be one; refused at the next token"

KNOWN = {
    "c-dev-0273 kw_typo": _NO_SYMBOLS.format("RETURN"),
    "c-dev-0300 kw_typo": _NO_SYMBOLS.format("elsee"),
    "c-dev-0301 kw_typo": _NO_SYMBOLS.format("STRUCT"),
    "c-dev-0516 cut_string": "0' begins a number of C23 with a separator, which pycparser takes and C17 has not",
}

_MARKER = re.compile(rb'# \d+ "((?:[^"\\]|\\.)*)"')
_MISSING = re.compile(r"fatal error: ([^:\n]+): No such file")


def positive() -> Iterator[tuple[str, bytes]]:
    for name, own, whole in units():
        yield name, own
        yield f"{name} with headers", whole


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    for record in shared_records("negative/c"):
        name = f"{record['id']} {record['mutation']}"
        yield name, record["text"].encode(), record["first_bad_lower"], record["first_bad_upper"]


def units() -> Iterator[tuple[str, bytes, bytes]]:
    """Of each file of the data: its name, its own lines after preprocessing, and all lines."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for record in shared_records("source/c"):
            path = Path(folder, record["source"], record["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(record["text"].encode())
            files.append((record["source"], path))
        for source, path in files:
            whole = preprocessed(path, Path(folder, source), Path(folder, "missing", source))
            yield f"{source}/{path.relative_to(Path(folder, source))}", own_lines(whole, bytes(path)), whole


def preprocessed(path: Path, repository: Path, missing: Path) -> bytes:
    """What `gcc -E` writes for a file; headers that are nowhere are made in the folder `missing`, empty."""
    include = [f"-I{folder}" for folder in header_folders(repository)]
    while True:
        command = ["gcc", "-E", *include, f"-I{missing}", str(path)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            return done.stdout
        wanted = _MISSING.search(done.stderr.decode(errors="replace"))
        if wanted is None or (missing / wanted[1]).exists():
            sys.exit(f"gcc -E fails on {path.relative_to(repository)}:\n{done.stderr.decode(errors='replace')}")
        (missing / wanted[1]).parent.mkdir(parents=True, exist_ok=True)
        (missing / wanted[1]).touch()


@functools.cache
def header_folders(repository: Path) -> tuple[Path, ...]:
    return tuple(sorted({header.parent for header in repository.rglob("*.h")}))


def own_lines(whole: bytes, name: bytes) -> bytes:
    """The lines of a preprocessed text that its line markers ascribe to the file `name`, with these markers."""
    kept: list[bytes] = []
    is_own = False
    for line in whole.split(b"\n")[:-1]:
        if marker := _MARKER.match(line):
            is_own = marker[1] == name
        if is_own:
            kept.append(line + b"\n")
    return b"".join(kept)
