"""JSON with two blanks a level: must accept what Python's json.dumps writes with indent=2 of the evaluation data's files, with escapes
for what is not ASCII and without; must refuse, at the very byte, the same with one blank, line break or comma changed (a change of each
kind at a place drawn with a fixed seed).

Reference: Python's json. The files are at most 15 levels deep, less than the 16 that the grammar has exactly.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

from common import shared_records

STRING_OR_MARK = re.compile(rb'"(?:[^"\\]|\\.)*"|\n *|: |,', re.DOTALL)


def positive() -> Iterator[tuple[str, bytes]]:
    for name, value in values():
        for kind, is_ascii in (("ASCII", True), ("UTF-8", False)):
            yield f"{name}, {kind}", json.dumps(value, indent=2, ensure_ascii=is_ascii).encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    chosen = random.Random(20)
    for name, value in values():
        data = json.dumps(value, indent=2).encode()
        marks = [match for match in STRING_OR_MARK.finditer(data) if not match[0].startswith(b'"')]
        lines = [match for match in marks if match[0].startswith(b"\n")]
        colons = [match for match in marks if match[0] == b": "]
        commas = [match for match in marks if match[0] == b","]
        yield f"{name}, a line break at the end", data + b"\n", len(data), len(data)
        if lines:
            _, end = chosen.choice(lines).span()
            yield f"{name}, a blank more", data[:end] + b" " + data[end:], end, end
            begin, end = chosen.choice(lines).span()
            if end - begin > 1:
                yield f"{name}, a blank less", data[: end - 1] + data[end:], end - 1, end - 1
            yield f"{name}, no line break", data[:begin] + data[end:], begin, begin
        if colons:
            begin, end = chosen.choice(colons).span()
            yield f"{name}, no blank after a colon", data[: end - 1] + data[end:], end - 1, end - 1
            yield f"{name}, a blank before a colon", data[:begin] + b" " + data[begin:], begin, begin
        if commas:
            end = chosen.choice(commas).end()
            yield f"{name}, a blank after a comma", data[:end] + b" " + data[end:], end, end


def values() -> Iterator[tuple[str, object]]:
    for record in shared_records("source/json"):
        yield f"{record['source']}/{record['path']}", json.loads(record["text"])
