"""JSON without whitespace: must accept what Python's json.dumps writes with separators "," and ":" of the evaluation data's files, with
escapes for what is not ASCII and without; must refuse the files themselves, and those of negative/json, at the first blank outside of a
string, or at the first bad byte if that comes before.

Reference: Python's json; RFC 8259.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from common import shared_records

STRING_OR_BLANK = re.compile(rb'"(?:[^"\\]|\\.)*"|[ \t\r\n]', re.DOTALL)


def positive() -> Iterator[tuple[str, bytes]]:
    for record in shared_records("source/json"):
        value = json.loads(record["text"])
        for kind, is_ascii in (("ASCII", True), ("UTF-8", False)):
            text = json.dumps(value, separators=(",", ":"), ensure_ascii=is_ascii)
            yield f"{record['source']}/{record['path']}, {kind}", text.encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    for record in shared_records("source/json"):
        data = record["text"].encode()
        at = first_blank(data)
        if at is not None:
            yield f"{record['source']}/{record['path']}", data, at, at
    for record in shared_records("negative/json"):
        data = record["text"].encode()
        bad = record["first_bad_byte"]
        blank = first_blank(data[:bad])
        at = bad if blank is None else blank
        yield record["id"], data, at, at


def first_blank(data: bytes) -> int | None:
    """The first byte of whitespace outside of a string."""
    for match in STRING_OR_BLANK.finditer(data):
        if not match[0].startswith(b'"'):
            return match.start()
    return None
