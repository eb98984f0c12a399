"""The log of results, JSON Lines: what is finished is not done again when a run is taken up."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import open_file

VERSION = 1


MAX_LINE = 64 << 20
"""A longer line is no result."""


class ResultsLog:
    """Outcomes by key, kept in a file as they come.

    key : of a text or of a draw; the file may hold results of other stores, tokenizers and checks, whose keys differ.
    """

    def __init__(self, path: Path) -> None:
        """Reads what is there. A last line that was not finished is cut off; any other that is no result is an error."""
        self.path = path
        self.known: dict[str, Mapping[str, Any]] = {}
        try:
            if path.exists() and not path.is_dir():
                open_file(path, None, "a log of `maskwright validate --resume`", is_output=True).close()
            self._file = path.open("a+b")
            self._file.seek(0)
            whole, number = 0, 0
            while (line := self._file.readline(MAX_LINE)).endswith(b"\n"):
                number += 1
                self._take(line[:-1], number)
                whole += len(line)
            if len(line) == MAX_LINE:
                self._take(line, number + 1)
            if line:
                if not _is_cut(line):
                    self._entry(line, number + 1)
                self._file.truncate(whole)
            self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise MaskwrightError(f"the log {path} cannot be read or written: {error.strerror}") from None

    def add(self, key: str, outcome: Mapping[str, Any]) -> None:
        """Keep a result; it is in the file when this returns."""
        self.known[key] = outcome
        line = json.dumps(
            {"version": VERSION, "key": key, "outcome": outcome}, ensure_ascii=True, separators=(",", ":")
        )
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _take(self, line: bytes, number: int) -> None:
        key, outcome = self._entry(line, number)
        self.known[key] = outcome

    def _entry(self, line: bytes, number: int) -> tuple[str, Mapping[str, Any]]:
        try:
            entry = json.loads(line)
            if entry["version"] != VERSION:
                raise ValueError(f"expected version {VERSION} but found {entry['version']!r}")
            key, outcome = entry["key"], entry["outcome"]
            if not isinstance(key, str) or not isinstance(outcome, dict):
                raise ValueError("key or outcome are of another type")
        except (ValueError, KeyError, TypeError) as error:
            self._file.close()
            raise MaskwrightError(
                f"{self.path}:{number}: no result of maskwright validate ({error}); name another file (--resume), or mend it"
            ) from None
        return key, outcome


def _is_cut(line: bytes) -> bool:
    """Whether a line without its end is the beginning of a result: what else stands there is not ours to cut off."""
    begin = b'{"version":'
    if not (line.startswith(begin) or begin.startswith(line)):
        return False
    try:
        json.loads(line)
    except ValueError:
        return True
    return False
