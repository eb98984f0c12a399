"""The log of results. In: outcomes. Out: the outcomes of earlier runs, which need no second work.

It is a file of JSON Lines, with a line for each outcome.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maskwright.analysis.errors import MaskwrightError, NestingError
from maskwright.analysis.files import open_file
from maskwright.analysis.nesting import read_json

VERSION = 2
"""Version of the lines' format."""


MAX_LINE = 64 << 20
"""Most bytes of a line; a longer one is no result."""


class ResultsLog:
    """Outcomes by key. Each new one is written to the file at once.

    A key stands for a text or a draw, with the store, tokenizer and check. So one file may hold the
    results of different runs.

    known : key -> outcome, of earlier runs and of this one.
    """

    def __init__(self, path: Path) -> None:
        """Open a log, or create it, and read the outcomes in it.

        A last line without a line feed is cut off from the file: it was not finished.

        Raises: MaskwrightError if the file cannot be read and written, if it is no regular file, or
            if any other line is no result.
        """
        self.path = path
        self.known: dict[str, Mapping[str, Any]] = {}
        try:
            if os.path.exists(path) and not os.path.isdir(path):
                open_file(path, None, "a log of `maskwright validate --resume`", is_output=True).close()
            self._file = path.open("a+b")
            self._file.seek(0)
            whole = 0
            for number, line in enumerate(iter(lambda: self._file.readline(MAX_LINE), b""), 1):
                is_whole = line.endswith(b"\n")
                if is_whole or len(line) == MAX_LINE or not _is_cut(line):
                    key, outcome = self._entry(line, number)
                if is_whole:
                    self.known[key] = outcome
                    whole += len(line)
            if whole < self._file.tell():
                self._file.truncate(whole)
            self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise MaskwrightError(f"the log {path} cannot be read or written: {error.strerror}") from None

    def add(self, key: str, outcome: Mapping[str, Any]) -> None:
        """Add a JSON-ready outcome. It has been handed to the system when this returns."""
        self.known[key] = outcome
        line = _written({"version": VERSION, "key": key, "outcome": outcome, "crc32": _checksum(key, outcome)})
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _entry(self, line: bytes, number: int) -> tuple[str, Mapping[str, Any]]:
        """Key and outcome of a line. number : the line's number, for the error."""
        try:
            entry = read_json(line)
            if entry["version"] != VERSION:
                raise ValueError(f"expected version {VERSION} but found {entry['version']!r}")
            key, outcome = entry["key"], entry["outcome"]
            if not isinstance(key, str) or not isinstance(outcome, dict):
                raise ValueError("key or outcome is of another type")
            if entry["crc32"] != _checksum(key, outcome):
                raise ValueError("it was changed: its checksum is another")
        except (ValueError, KeyError, TypeError) as error:
            self._file.close()
            raise MaskwrightError(
                f"{self.path}:{number}: not a result of maskwright validate ({error}); name another file (--resume), or mend it"
            ) from None
        return key, outcome


def _written(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":"))


def _checksum(key: str, outcome: Mapping[str, Any]) -> int:
    """What tells that a line was edited: what is counted must have been seen."""
    return zlib.crc32(_written({"key": key, "outcome": outcome}).encode())


def _is_cut(line: bytes) -> bool:
    """Whether a line without a line feed is the beginning of a result.

    Only such a line may be cut off; any other was written by someone else.
    """
    begin = b'{"version":'
    if not (line.startswith(begin) or begin.startswith(line)):
        return False
    try:
        read_json(line)
    except NestingError:
        return False
    except ValueError:
        return True
    return False
