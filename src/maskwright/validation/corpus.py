"""Finds the texts to validate on. In: paths. Out: named texts in a fixed order.

A path is a file, a folder, a glob or a file of JSON Lines. For a text that cannot be read there is
an `Unreadable` with the reason.
"""

from __future__ import annotations

import fnmatch
import glob
import lzma
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import MAX_TEXT, absolute, open_file, read_file_bytes
from maskwright.analysis.nesting import read_json

SUFFIXES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "python": (".py", ".pyi"),
        "json": (".json",),
        "c": (".c", ".h"),
        "go": (".go",),
        "java": (".java",),
        "javascript": (".js", ".mjs"),
        "typescript": (".ts",),
        "sql": (".sql",),
        "toml": (".toml",),
        "xml": (".xml",),
        "yaml": (".yaml", ".yml"),
        "lark": (".lark",),
    }
)
"""Beginning of a grammar's name -> the suffixes of files with its texts."""

_RECORDS = (".jsonl", ".jsonl.xz", ".ndjson")
"""Suffixes of files with a text in each line."""


class CorpusError(MaskwrightError):
    """There are no texts where the user said, or they do not have the form that a check needs."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text to validate on.

    name : the file, or file:line for a record.
    text : the text itself.
    weight : bytes that it takes on the disk, for progress.
    record : the other members of a JSON Lines record; None for the text of a whole file.
    """

    name: str
    text: str
    weight: int
    record: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A text that cannot be read.

    name : the file, or file:line for a record.
    reason : why it cannot be read.
    weight : bytes that it takes on the disk, for progress; 0 if not known.
    """

    name: str
    reason: str
    weight: int


@dataclass(frozen=True)
class Corpus:
    """The texts of some files. They are read during iteration.

    files : the files, each once, in the order of the paths given. Those of a folder or glob are in
        the order of their paths.
    field : the member of a JSON record that is its text; None if each line of a file is a text.
    n_bytes : sizes of all files together, in bytes.
    """

    files: tuple[Path, ...]
    field: str | None = "text"
    n_bytes: int = 0

    def __iter__(self) -> Iterator[Text | Unreadable]:
        for path in self.files:
            if self.field is None or path.name.endswith(_RECORDS):
                yield from self._records(path)
            else:
                yield _read_file(path)

    def _records(self, path: Path) -> Iterator[Text | Unreadable]:
        done = number = 0
        try:
            # `raw` is kept for progress: it says how far the file on the disk has been read
            with (
                open_file(path, None, "a file of texts", CorpusError) as raw,
                lzma.LZMAFile(raw) if path.name.endswith(".xz") else nullcontext(raw) as stream,
            ):
                for number, line in enumerate(iter(lambda: stream.readline(MAX_TEXT + 1), b""), 1):
                    if number == 1:
                        line = line.removeprefix(b"\xef\xbb\xbf")
                    if len(line) > MAX_TEXT:
                        yield Unreadable(
                            f"{path}:{number}", f"a line of more than {MAX_TEXT:,} bytes; the rest is left out", 0
                        )
                        return
                    if line.strip():
                        at = raw.tell()
                        yield self._record(f"{path}:{number}", line, at - done)
                        done = at
        except CorpusError as error:
            yield Unreadable(str(path), str(error), 0)
        except (OSError, EOFError, lzma.LZMAError) as error:
            yield Unreadable(f"{path}:{number + 1}", f"cannot be read: {error}", 0)

    def _record(self, name: str, line: bytes, weight: int) -> Text | Unreadable:
        try:
            decoded = line.decode("utf-8")
            if self.field is None:
                return Text(name, decoded.rstrip("\r\n"), weight)
            record = read_json(decoded)
        except UnicodeDecodeError as error:
            return Unreadable(name, f"not UTF-8 at byte {error.start} of the line", weight)
        except ValueError as error:
            return Unreadable(name, f"not JSON: {error}", weight)
        text = record.get(self.field) if isinstance(record, dict) else None
        if not isinstance(text, str):
            found = ", ".join(sorted(record)[:8]) if isinstance(record, dict) else type(record).__name__
            return Unreadable(name, f"no text in member {self.field!r} (found: {found}); name it (--field)", weight)
        return Text(name, text, weight, {key: value for key, value in record.items() if key != self.field})


def find_corpus(paths: Sequence[str | Path], suffixes: Sequence[str], field: str | None = "text") -> Corpus:
    """The corpus of some files, folders and globs.

    A file that is named, or matched by a glob, is taken whatever its suffix. `.jsonl`, `.jsonl.xz`
    and `.ndjson` files hold a record in each line.

    paths : files, folders and globs.
    suffixes : of the files to take from folders, at any depth; none: all files. Hidden files and
        folders are left out.
    field : as in `Corpus`.

    Raises: CorpusError for a path that does not exist, for a folder without files of these
        suffixes, or if there are no paths.
    """
    found: dict[Path, None] = {}
    for given in paths:
        if os.path.isdir(given):
            files = sorted(_files_of(Path(given), suffixes))
            if not files:
                of = f" with the suffix {' or '.join(suffixes)}; name another (--suffix)" if suffixes else ""
                raise CorpusError(f"{given} has no files{of}")
        else:
            files = _named(given)
        found.update(dict.fromkeys(files))
    if not found:
        raise CorpusError("no texts to validate on: name files, folders, globs or .jsonl files")
    files = list(found)
    return Corpus(tuple(files), field, sum(file.stat().st_size for file in files))


def is_in_corpus(output: Path, paths: Sequence[str | Path], suffixes: Sequence[str]) -> bool:
    """Whether an output is one of the files that `find_corpus` finds, now or once it is written.

    output : the file that will be written; it may exist already.
    paths, suffixes : as for `find_corpus`.
    """
    resolved = Path(os.path.realpath(Path(absolute(output)).parent), output.name)
    for given in map(str, paths):
        if os.path.isdir(given):
            root = Path(os.path.realpath(given))
            found = _files_of(Path(given), suffixes)
            will_be = resolved.is_relative_to(root) and _is_text_of(resolved.relative_to(root), suffixes)
        else:
            found = map(Path, glob.iglob(given, recursive=True))
            will_be = not os.path.exists(given) and _fits(resolved.parts, _real_pattern(given))
        # where the output exists, a text may be a link to it
        if will_be or (os.path.exists(output) and any(f.exists() and f.samefile(output) for f in found)):
            return True
    return False


def _files_of(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    return (f for f in folder.rglob("*") if _is_text_of(f.relative_to(folder), suffixes) and f.is_file())


def _is_text_of(path: Path, suffixes: Sequence[str]) -> bool:
    """Whether a file of a folder is one of its texts. path : relative to the folder."""
    return path.name.endswith(tuple(suffixes) or "") and not any(part.startswith(".") for part in path.parts)


def _real_pattern(pattern: str) -> tuple[str, ...]:
    """The parts of a glob pattern, made absolute, with links before the first wildcard resolved."""
    parts = Path(absolute(pattern)).parts
    n = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return (*Path(os.path.realpath(os.path.join(*parts[:n]))).parts, *parts[n:])


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether `glob.glob(pattern, recursive=True)` finds a file once it exists.

    parts, pattern : the parts of the file's path and of the pattern.

    >>> names = ("a/b.x", "a/b/c/d.x", "a/.b/c.x", "a/b.y", "b.x")
    >>> [_fits(name.split("/"), "a/**/*.x".split("/")) for name in names]
    [True, True, False, False, False]
    """
    if not parts or not pattern:
        return not parts and (not pattern or list(pattern) == ["**"])
    is_hidden = parts[0].startswith(".") and not pattern[0].startswith(".")
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or (not is_hidden and _fits(parts[1:], pattern))
    return not is_hidden and fnmatch.fnmatch(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def check_paths(paths: Sequence[str | Path]) -> None:
    """Check that each path exists, or matches a file. Meant for use before work that takes long.

    Raises: CorpusError for the first other path, as `find_corpus` would.
    """
    for given in paths:
        if not os.path.isdir(given):
            _named(given)


def _named(given: str | Path) -> list[Path]:
    """The file of a name, or the files that it matches as a pattern.

    Raises: CorpusError if there are none.
    """
    if os.path.exists(given):
        return [Path(given)]
    files = [Path(name) for name in sorted(glob.glob(str(given), recursive=True)) if Path(name).is_file()]
    if not files:
        raise CorpusError(f"{given}: there is no such file or folder, and as a pattern it matches no file")
    return files


def suffixes_of(grammar: str) -> tuple[str, ...]:
    """The suffixes of files with a grammar's texts, by the grammar's name; () if not known.

    >>> suffixes_of("python.lark"), suffixes_of("mine.lark")
    (('.py', '.pyi'), ())
    """
    stem = grammar.removesuffix(".lark").replace("-", "_").lower()
    for name in sorted(SUFFIXES, key=len, reverse=True):
        if stem == name or stem.startswith(f"{name}_") or stem.removeprefix(name).isdigit():
            return SUFFIXES[name]
    return ()


def _read_file(path: Path) -> Text | Unreadable:
    try:
        data = read_file_bytes(path, MAX_TEXT, "a text", CorpusError)
    except CorpusError as error:
        return Unreadable(str(path), str(error), 0)
    except OSError as error:
        return Unreadable(str(path), f"cannot be read: {error.strerror}", 0)
    try:
        # utf-8-sig drops a byte order mark, which is no part of the text
        return Text(str(path), data.decode("utf-8-sig"), len(data))
    except UnicodeDecodeError as error:
        return Unreadable(str(path), f"not UTF-8 at byte {error.start}", len(data))
